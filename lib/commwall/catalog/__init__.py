"""Named GPUs, links, models and clusters, each with its source, what was measured,
and what was quoted as a price.

The tables of `data/` are in vendors' units and turn into SI here, nowhere else. A name
may be written in any case, with or without its maker, spaces, hyphens and dots. One
that fits two things is an error, as is one that fits none. `data/left_out.csv` says
what is missing on purpose.
"""

from commwall.catalog.clusters import cluster
from commwall.catalog.measurements import BusBandwidth, measured
from commwall.catalog.prices import Price, prices
from commwall.catalog.tables import (
    data_sheet,
    gpu,
    gpu_names,
    link,
    link_names,
    model,
    model_names,
)

__all__ = [
    "BusBandwidth",
    "Price",
    "cluster",
    "data_sheet",
    "gpu",
    "gpu_names",
    "link",
    "link_names",
    "measured",
    "model",
    "model_names",
    "prices",
]

RTX_3090 = gpu("RTX 3090")
RTX_4090 = gpu("RTX 4090")
RTX_5090 = gpu("RTX 5090")
A100 = gpu("A100-80 SXM")
H100 = gpu("H100 SXM5")

PCIE4 = link("PCIe 4.0 x16")
PCIE4_HOST = link("PCIe 4.0 x16 host bounce")
PCIE5 = link("PCIe 5.0 x16")
PCIE5_HOST = link("PCIe 5.0 x16 host bounce")
NVLINK3 = link("NVLink 3")
NVLINK4 = link("NVLink 4")
NVLINK5 = link("NVLink 5")
HDR200 = link("InfiniBand HDR 200")
NDR400 = link("InfiniBand NDR 400")
ETHERNET10 = link("10 GbE (TCP)")

GPT3_175B = model("GPT-3 175B")
LLAMA2_7B = model("LLaMA-2 7B")
LLAMA2_13B = model("LLaMA-2 13B")
LLAMA2_70B = model("LLaMA-2 70B")
