r"""One tensor-parallel layer of LLaMA-2 70B: what several sections of the article meet.

Eight cards, forward and backward, nothing hidden. A rate is a "peak", or "sustained" as
`kernels` holds it in PyTorch (GeForce cards) or in Megatron (the others); a bandwidth
is a "datasheet" one, or "achieved".
"""

from dataclasses import replace

from commwall import catalog
from commwall.catalog import LLAMA2_70B
from commwall.hardware import Link
from commwall.kernels import product_rate
from commwall.plan import Plan
from commwall.rules import choice
from commwall.units import Bytes, BytesPerSecond, Flop, FlopPerSecond
from commwall.volumes import volumes

RANKS = 8


def wire(link: str = "PCIe 4.0 x16", bandwidth: str = "datasheet") -> BytesPerSecond:
    """One direction of a link of the catalog."""
    found: Link = catalog.link(link)
    datasheet = choice("bandwidth", bandwidth, ("datasheet", "achieved")) == "datasheet"
    return found.datasheet if datasheet else found.bandwidth


def rate(gpu: str = "RTX 4090", compute: str = "peak") -> FlopPerSecond:
    """FLOP/s of one GPU of the catalog: at its peak, or in long products."""
    card = catalog.gpu(gpu)
    if choice("compute", compute, ("peak", "sustained")) == "peak":
        return card.compute
    return product_rate(card, Plan(fused_kernels=not card.geforce))


def layer_flop_per_token() -> Flop:
    r"""FLOP of one token in one layer, both directions: $6 N_\text{layer} + 6 s h$.

    The projection onto the vocabulary is left out. narayanan2021.
    """
    model = LLAMA2_70B
    weights = model.attention_matmul + model.mlp_matmul(model.ffn)
    return 6 * weights + 6 * model.seq * model.hidden


def tensor_parallel_bytes(
    tokens: int = 4096, sequences: int = 1, recompute: str = "none"
) -> Bytes:
    """Bytes each of eight cards sends in a step of one micro-batch. shoeybi2019."""
    plan = Plan(tp=RANKS, micro_batch=sequences, global_batch=sequences,
                recompute=recompute)  # fmt: skip
    return volumes(replace(LLAMA2_70B, seq=tokens), plan)["tp"]


def compute_over_communication(
    gpu: str = "RTX 4090",
    link: str = "PCIe 4.0 x16",
    compute: str = "peak",
    bandwidth: str = "datasheet",
) -> float:
    """Seconds of a layer's products over seconds of its all-reduces.

    Batch and number of layers cancel. Leaves out: small kernels and latency.
    """
    model = LLAMA2_70B
    busy = layer_flop_per_token() * model.seq / RANKS / rate(gpu, compute)
    return busy / (tensor_parallel_bytes() / model.layers / wire(link, bandwidth))


def communication_share(
    gpu: str = "RTX 4090",
    link: str = "PCIe 4.0 x16",
    compute: str = "peak",
    bandwidth: str = "datasheet",
) -> float:
    """Share of a layer's time that goes on its all-reduces, nothing hidden."""
    return 1 / (1 + compute_over_communication(gpu, link, compute, bandwidth))


def waits_more_than_it_works(
    gpu: str = "RTX 4090",
    link: str = "PCIe 4.0 x16",
    compute: str = "peak",
    bandwidth: str = "datasheet",
) -> bool:
    """Whether the all-reduces are the larger part."""
    return communication_share(gpu, link, compute, bandwidth) > 0.5
