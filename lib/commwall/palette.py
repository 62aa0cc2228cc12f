"""One palette for figures, what-ifs and pages: a colour for each part of a step.

The colours are those of Okabe and Ito, told apart by colour-blind readers too; lines
differ by their dashes as well. Okabe and Ito, 2008: https://jfly.uni-koeln.de/color/
"""

INK = "#333333"

COLOURS = {
    "compute": "#7f7f7f",
    "elementwise": "#bfbfbf",
    "launch": "#b07aa1",
    "bubble": "#f0e442",
    "tp": "#0072b2",
    "cp": "#56b4e9",
    "ep": "#cc79a7",
    "dp": "#d55e00",
    "pp": "#009e73",
    "optimizer": "#000000",
    "weights": "#0072b2",
    "gradients": "#d55e00",
    "activations": "#e69f00",
    "logits": "#cc79a7",
    "buffers": "#bfbfbf",
    "forward": "#56b4e9",
    "backward": "#009e73",
    "weight gradients": "#e69f00",
}

LABELS = {
    "compute": "matrix products",
    "elementwise": "memory-bound kernels",
    "launch": "waiting for the host",
    "tp": "tensor-parallel traffic",
    "cp": "context-parallel traffic",
    "ep": "expert-parallel traffic",
    "dp": "data-parallel traffic",
    "pp": "pipeline traffic",
}

LINES = (  # colour, dashes in points
    ("#d55e00", ()),
    ("#0072b2", (6, 3)),
    ("#009e73", (8, 3, 2, 3)),
    ("#cc79a7", (2, 2)),
    ("#e69f00", (10, 4)),
    ("#56b4e9", (4, 1)),
)
