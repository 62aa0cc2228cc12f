"""Figures for the article's section 1: what training has to send."""

from dataclasses import replace
from math import ceil

from commwall.article.layer import tensor_parallel_bytes
from commwall.catalog import LLAMA2_7B, LLAMA2_70B, PCIE4, RTX_4090
from commwall.memory import memory
from commwall.plan import AXES, Plan, Precision
from commwall.units import Bytes, Flop
from commwall.volumes import held_params, traffic, volumes

CARDS = 8
RESNET_MULTIPLY_ADDS, RESNET_PARAMS = 4.09e9, 25_557_032  # torchvision-resnet50
ARTICLE_STEP: Bytes = 28e9  # its section 3.1


def image_flop_per_parameter(images: int = 32) -> Flop:
    """FLOP of ResNet-50 on some images, both directions, over its parameters."""
    return 3 * 2 * RESNET_MULTIPLY_ADDS * images / RESNET_PARAMS


def token_flop_per_parameter(tokens: int = 4096) -> Flop:
    """FLOP of LLaMA-2 7B's matrices on some tokens, over its parameters."""
    return 6 * LLAMA2_7B.matmul_params * tokens / LLAMA2_7B.params


def cards_for_state(params: float = 10e9) -> int:
    """RTX 4090s over which a model's training state must be split."""
    return ceil(params * Precision().bytes_per_param / RTX_4090.memory)


def must_be_split(params: float = 10e9) -> bool:
    """Whether a model's training state exceeds one RTX 4090."""
    return cards_for_state(params) > 1


def ways_to_split() -> int:
    """Axes along which this book's plans can split a model."""
    return len(AXES)


def sync_bytes_per_parameter(zero_stage: int = 0) -> Bytes:
    """Bytes that one of eight replicas sends a step and parameter. rajbhandari2020."""
    plan = Plan(dp=CARDS, zero_stage=zero_stage, global_batch=CARDS)
    return volumes(LLAMA2_7B, plan)["dp"] / LLAMA2_7B.params


def largest_replica() -> float:
    """Parameters whose training state fills an RTX 4090, without activations."""
    return RTX_4090.memory / Precision().bytes_per_param


def share_of_weights_held(zero_stage: int = 0) -> float:
    """Weights on one of eight data-parallel cards, over all weights."""
    plan = Plan(dp=CARDS, zero_stage=zero_stage, global_batch=CARDS)
    whole = Plan().precision.weights * LLAMA2_7B.params
    return memory(LLAMA2_7B, plan).weights / whole


def sync_growth(micro_batches: int = 4) -> float:
    """Gradient sync of a step with so many micro-batches over that of one."""
    one = Plan(dp=CARDS, global_batch=CARDS)
    many = replace(one, global_batch=CARDS * micro_batches)
    return volumes(LLAMA2_7B, many)["dp"] / volumes(LLAMA2_7B, one)["dp"]


def places_between_layers() -> int:
    """Places between two layers of LLaMA-2 70B."""
    return LLAMA2_70B.layers - 1


def shape_of_70b(field: str = "hidden") -> int:
    """One entry of LLaMA-2 70B's shape."""
    return getattr(LLAMA2_70B, field)


def context_parallel_sends() -> bool:
    """Whether keys and values travel where the sequence is split over eight cards."""
    records = traffic(LLAMA2_70B, Plan(cp=CARDS))
    return any(r.axis == "cp" and r.what == "keys and values" for r in records)


def snippet_bytes(
    embedding_size: int = 8192, batch_size: int = 8, tensor_parallel_degree: int = 8
) -> Bytes:
    """The article's own formula, letter by letter: `batch_size` does not occur."""
    return 2 * (embedding_size**2) / tensor_parallel_degree * 2


def snippet_batch_growth() -> float:
    """What eight sequences send over one, by the article's formula."""
    return snippet_bytes(batch_size=8) / snippet_bytes(batch_size=1)


def snippet_rank_growth() -> float:
    """What eight ranks send each over two, by the article's formula."""
    few = snippet_bytes(tensor_parallel_degree=2)
    return snippet_bytes(tensor_parallel_degree=8) / few


def times_the_snippet(sequences: int = 1) -> float:
    """What really leaves a card in a step, over the article's formula."""
    return tensor_parallel_bytes(sequences=sequences) / snippet_bytes()


def article_against_itself() -> float:
    """The article's 28 GB a step over what its formula gives for the same step."""
    return ARTICLE_STEP / snippet_bytes()


def bytes_per_token() -> Bytes:
    """Tensor-parallel bytes that one token more adds to a step, on each card."""
    more = tensor_parallel_bytes(tokens=8192) - tensor_parallel_bytes(tokens=4096)
    return more / 4096


def batch_growth() -> float:
    """What eight sequences send over one."""
    return tensor_parallel_bytes(sequences=8) / tensor_parallel_bytes()


def rank_growth(more: int = 8, fewer: int = 2) -> float:
    """What each of more ranks sends over each of fewer."""
    sent = [volumes(LLAMA2_70B, Plan(tp=ranks))["tp"] for ranks in (more, fewer)]
    return sent[0] / sent[1]


def gradient_sync() -> Bytes:
    """Gradients that a tensor-parallel rank of 70B sends a step to many replicas.

    A ring over many sends everything twice; norms are whole on every rank.
    """
    held = sum(held_params(LLAMA2_70B, Plan(tp=CARDS)))
    return 2 * Precision().gradients * held


def tokens_for_extra(extra: float = 0.3) -> float:
    """Tokens a replica and step at which gradient sync adds so much to the traffic."""
    return gradient_sync() / (extra * bytes_per_token())


def extra_of_gradient_sync(tokens: int = 4096) -> float:
    """What gradient sync adds to tensor-parallel traffic."""
    return gradient_sync() / (bytes_per_token() * tokens)


def wire_over_achieved() -> float:
    """How much longer traffic takes than the data sheet of PCIe 4.0 lets hope."""
    return PCIE4.datasheet / PCIE4.bandwidth - 1


def gathered_bytes_per_parameter(zero_stage: int = 0) -> Bytes:
    """Bytes of updated weights that one of eight replicas sends, a parameter."""
    plan = Plan(dp=CARDS, zero_stage=zero_stage, global_batch=CARDS)
    records = traffic(LLAMA2_7B, plan)
    weights = sum(r.bytes for r in records if r.what == "weights")
    return weights / LLAMA2_7B.params


def sync_of_one_replica() -> Bytes:
    """Gradient sync of a job that is tensor parallel and nothing else."""
    return volumes(LLAMA2_70B, Plan(tp=CARDS))["dp"]
