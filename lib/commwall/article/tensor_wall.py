"""Figures for the article's section 3.1: tensor parallelism over PCIe."""

from commwall.article.layer import (
    RANKS,
    compute_over_communication,
    layer_flop_per_token,
    rate,
    tensor_parallel_bytes,
    wire,
)
from commwall.balance import tensor_parallel_ratio
from commwall.catalog import LLAMA2_70B, cluster, gpu_names, link
from commwall.collectives import (
    all_gather_bytes,
    all_reduce_bytes,
    all_reduce_time,
    bus_factor,
)
from commwall.plan import Plan
from commwall.units import GB_PER_S, Bytes, BytesPerSecond, Seconds
from commwall.volumes import traffic

ARTICLE_STEP: Bytes = 28e9
ARTICLE_BANDWIDTH = 64 * GB_PER_S
ARTICLE_SECONDS: Seconds = 0.44


def all_reduces(recompute: str = "none") -> float:
    """Tensor-parallel all-reduces of 70B in a step of one micro-batch."""
    records = traffic(LLAMA2_70B, Plan(tp=RANKS, recompute=recompute))
    return sum(r.calls for r in records if r.axis == "tp")


def gathered_over_stream(tensor: str = "qkv") -> float:
    """Bytes an all-gather of these tensors would send, in units of the stream."""
    model = LLAMA2_70B
    widths = {"qkv": (model.heads + 2 * model.kv_heads) * model.head_dim,
              "ffn middle": model.ffn}  # fmt: skip
    return all_gather_bytes(widths[tensor] / model.hidden, RANKS)


def summed_over_stream() -> float:
    """Bytes that the all-reduce of the stream sends, in its own units."""
    return bus_factor("all_reduce", RANKS)


def middle_on_a_card() -> float:
    """Width of the feed-forward middle on each of eight cards."""
    return LLAMA2_70B.ffn / RANKS


def layer_bytes(all_reduces: int = 4, tokens: int = 4096) -> Bytes:
    """Bytes that a card sends in so many all-reduces of the stream."""
    stream = tokens * LLAMA2_70B.hidden * Plan().precision.activations
    return all_reduces * all_reduce_bytes(stream, RANKS)


def tokens_of_350_mb() -> float:
    """Tokens at which four all-reduces send exactly 350 MB."""
    return 350e6 / layer_bytes(tokens=1)


def seconds_of_28_gb(name: str = "PCIe 4.0 x16", bandwidth: str = "datasheet") -> float:
    """What 28 GB take on one direction of a link, latency left out."""
    return ARTICLE_STEP / wire(name, bandwidth)


def article_seconds() -> Seconds:
    """What 28 GB take at the article's 64 GB/s."""
    return ARTICLE_STEP / ARTICLE_BANDWIDTH


def seconds_of_all_reduces(name: str = "PCIe 4.0 x16 host bounce") -> Seconds:
    """The step's 320 all-reduces of 3,072 tokens on a link, with their latency."""
    stream = 3072 * LLAMA2_70B.hidden * Plan().precision.activations
    return all_reduces() * all_reduce_time(stream, RANKS, link(name))


def square_layer_ratio(bandwidth: BytesPerSecond = 0.0) -> float:
    """Compute over communication of a layer of $12h^2$ weights on eight RTX 4090s.

    At the peak, on one direction of PCIe 4.0 unless a bandwidth is given.
    """
    sent = bandwidth or wire("PCIe 4.0 x16")
    return tensor_parallel_ratio(LLAMA2_70B.hidden, RANKS, sent, rate("RTX 4090"))


def ratio_of_the_articles_numbers() -> float:
    """Compute of the 3,072 tokens that send 28 GB, at the peak, over its 0.44 s."""
    flop = layer_flop_per_token() * LLAMA2_70B.layers * 3072 / RANKS
    return flop / rate("RTX 4090") / ARTICLE_SECONDS


def machines_at_ratio(ratio: float = 10) -> int:
    """GPUs of the catalog of which eight reach that ratio, as measured.

    On the link that joins eight of them, sustained and achieved.
    """
    joined = {gpu: cluster(gpu, RANKS).link_across(RANKS).name for gpu in gpu_names()}
    reached = (
        compute_over_communication(gpu, link, "sustained", "achieved")
        for gpu, link in joined.items()
    )
    return sum(each >= ratio for each in reached)


def bandwidth_for_ratio(ratio: float = 10, gpu: str = "RTX 4090") -> BytesPerSecond:
    """One direction that a GPU at its peak needs for that ratio, real 70B layers."""
    flop = layer_flop_per_token() * LLAMA2_70B.layers * LLAMA2_70B.seq / RANKS
    return ratio * tensor_parallel_bytes() / (flop / rate(gpu))
