"""Sending less: what gradient compression saves, what it costs, and what it spoils.

`codecs`, `schemes`, `gradients` and `costs` are formulas and need no third-party
package. `encoders`, `exchange`, `language` and `training` do it to real arrays, in
numpy: import them by name.
"""

from commwall.compression.codecs import (
    FLOAT32,
    BFloat16,
    Codec,
    Int8,
    LowRank,
    Sign,
    TopK,
)
from commwall.compression.costs import (
    StepCost,
    break_even_bandwidth,
    codec_time,
    memory_traffic,
    step_cost,
    wire_time,
)
from commwall.compression.gradients import gradient_shapes
from commwall.compression.schemes import SCHEMES, Scheme, encoded, sent

__all__ = [
    "FLOAT32",
    "SCHEMES",
    "BFloat16",
    "Codec",
    "Int8",
    "LowRank",
    "Scheme",
    "Sign",
    "StepCost",
    "TopK",
    "break_even_bandwidth",
    "codec_time",
    "encoded",
    "gradient_shapes",
    "memory_traffic",
    "sent",
    "step_cost",
    "wire_time",
]
