"""Rows of `data/published/`, in the units of their headers, as runs in SI.

Leaves out: checks against the sources, which were made when the tables were drawn up.
"""

import csv
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import accumulate

from commwall import catalog
from commwall.hardware import Cluster
from commwall.model import Model
from commwall.plan import Overlap, Plan, Precision
from commwall.published.measured_run import Run
from commwall.units import GB_PER_S, GIB, Bytes, BytesPerSecond

_DEGREES = ("tp", "pp", "vpp", "dp", "cp", "zero_stage", "micro_batch", "global_batch")
_FAMILIES = {  # what is on, beside two matrices of the feed-forward block and a norm
    "gpt": ("biases", "learned_positions", "dropout"),
    "bert": ("biases", "learned_positions", "dropout"),
    "bloom": ("biases", "dropout"),
    "mpt": ("biases", "learned_positions"),
    "nanogpt": ("learned_positions",),
    "llama": ("gated_mlp",),
    "internlm": ("gated_mlp", "qkv_bias"),
    "qwen": ("gated_mlp", "qkv_bias"),
}
_FUSED = {  # first words of frameworks whose small kernels are fused
    "kwai", "llmq", "megatron", "megatron-deepspeed", "nanogpt", "nemo", "nvidia",
    "simumax", "torchtitan",
}  # fmt: skip
_FLAGS = ("gated_mlp", "biases", "qkv_bias", "learned_positions", "dropout")
_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter")
_NANOTRON = Precision(gradients=4)  # sums in fp32, and sends those


def nanotron_stages(model: Model, stages: int) -> tuple[int, ...]:
    r"""Layers of each pipeline stage as nanotron cuts them.

    The projection onto the vocabulary counts $vh$ beside a layer's $4h^2 + 3hf$. A
    stage is full once the running sum exceeds its share, so that the block which
    crosses the line stays, and a large vocabulary leaves the last stage few layers or
    none. nanotron-build.

    >>> tiny = Model(16, 2048, 32, 32, 8192, 131072, 4096, gated_mlp=True,
    ...              tied_embeddings=True)
    >>> nanotron_stages(tiny, 4)    # a layer 67e6, the projection four times that
    (6, 5, 5, 0)
    """
    layer = 4 * model.hidden**2 + 3 * model.hidden * model.ffn
    total = model.layers * layer + model.vocab * model.hidden
    counts, stage = [0] * stages, 0
    for done in accumulate([layer] * model.layers):
        counts[stage] += 1
        if done * stages > total * (stage + 1):
            stage += 1
    return tuple(counts)


def stages_with_ends(layers: int, stages: int) -> tuple[int, ...]:
    """Layers of each stage where embedding and output projection count as one each.

    As DeepSpeed and the zero-bubble code cut them, so that the ends have less to do.

    >>> stages_with_ends(22, 8)         # 24 / 8, and one fewer at the ends
    (2, 3, 3, 3, 3, 3, 3, 2)
    """
    shares = [
        (layers + 2) // stages + (i < (layers + 2) % stages) for i in range(stages)
    ]
    return (shares[0] - 1, *shares[1:-1], shares[-1] - 1)


def read(table: str) -> Iterator[dict[str, str]]:
    """Rows of one of the tables, as text."""
    path = files("commwall") / "data" / "published" / f"{table}.csv"
    with path.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


@cache
def _cluster(*names: str | int | None) -> Cluster:
    gpu, gpus, node, network, inside, nics = names
    return catalog.cluster(gpu, gpus, node, network, inside=inside, nics_per_node=nics)


def run(row: dict[str, str]) -> Run:
    """One row of `runs` or `memory`."""
    text = ("source", "where", "how", "certainty", "note", "memory_kind", "stage")
    model = _model(row, row["family"])
    plan = _plan(row, row["overlap"].split(), _precision(row))
    if model.layers % plan.pp:
        plan = replace(plan, stage_layers=stages_with_ends(model.layers, plan.pp))
    return Run(
        **{name: row[name] for name in text},
        model=model,
        plan=plan,
        cluster=_box(row),
        step_seconds=float(row["step_seconds"]) if row["step_seconds"] else None,
        peak_memory=_gib(row["peak_memory_gib"]),
        software=row["framework"],
        link_stated=row["link_stated"] == "yes",
    )


def _box(row: dict[str, str]) -> Cluster:
    nics = int(row["nics_per_node"]) if row["nics_per_node"] else None
    links = row["network"] or None, row["inside"] or None, nics
    return _cluster(row["gpu"], int(row["gpus"]), int(row["gpus_per_node"]), *links)


def _precision(row: dict[str, str]) -> Precision:
    """Bytes of "weights/gradients/master/moments", and what products multiply in."""
    names = ("weights", "gradients", "master", "moments")
    kept = dict(zip(names, map(float, row["precision"].split("/")), strict=True))
    arithmetic = row.get("arithmetic", "bf16")
    width = 2 if arithmetic == "bf16" else 4
    return Precision(**kept, activations=width, arithmetic=arithmetic)


def _gib(cell: str) -> Bytes | None:
    return float(cell) * GIB if cell else None


def _model(row: dict[str, str], family: str) -> Model:
    rest = ("ffn", "vocab", "seq")
    return Model(
        int(row["layers"]),
        int(row["hidden"]),
        int(row["heads"]),
        int(row.get("kv_heads", row["heads"])),
        *(int(row[name]) for name in rest),
        **{flag: flag in _FAMILIES[family] for flag in _FLAGS},
        tied_embeddings=row.get("tied_embeddings", "yes") == "yes",
        scored=float(row.get("scored", 1)),
        name=row.get("label", f"Llama-like {row['layers']} x {row['hidden']}"),
        source=row["source"],
    )


def _plan(row: dict[str, str], overlap: list[str], precision: Precision) -> Plan:
    return Plan(
        **{name: int(row[name]) for name in _DEGREES if name in row},
        recompute=row.get("recompute", "none"),
        schedule=row.get("schedule", "1f1b"),
        sequence_parallel=row["sequence_parallel"] == "yes",
        fused_attention=row.get("fused_attention", "yes") == "yes",
        fused_kernels=row.get("framework", "nanotron").split()[0] in _FUSED,
        cuda_graphs="cuda_graphs" in overlap,
        scatter_gather="scatter_gather" in overlap,
        precision=precision,
        overlap=Overlap(
            **{axis: axis in overlap for axis in ("dp", "zero3", "cp", "tp", "pp")}
        ),
    )


def megatron_run(row: dict[str, str]) -> Run:
    """One row of `megatron_a100`."""
    overlap = ["zero3", "cp", "scatter_gather"]
    overlap += ["dp"] if row["overlap_dp"] == "yes" else []
    year = "2022" if row["source"].startswith("korthikanti") else "2021"
    return Run(
        **{name: row[name] for name in ("source", "where", "how", "certainty")},
        model=_model(row, "gpt"),
        plan=_plan(
            row | {"fused_attention": "no", "framework": "megatron"},
            overlap,
            Precision(),
        ),
        cluster=_cluster(row["gpu"], int(row["gpus"]), 8, None, None, None),
        step_seconds=float(row["step_seconds"]),
        software=f"megatron {year}",
    )


def nanotron_run(row: dict[str, str]) -> Run:
    """One run of the sweep, on AWS P5: 32 EFA links of 100 Gbit/s a node.

    Its memory is what rank 0, of the first stage, had reserved. nanotron-bench.
    """
    model = _model(row, "llama")
    gpus, step = int(row["gpus"]), row.get("step_seconds")
    return Run(
        source=row["source"],
        where=f"job {row['job']}" if step else "out of memory",
        model=model,
        plan=_nanotron_plan(row, model),
        cluster=_cluster("H100 SXM5", gpus, 8, "EFA 100", None, 32),
        step_seconds=float(step) if step else None,
        peak_memory=_gib(row.get("peak_memory_gib", "")),
        memory_kind="reserved" if step else "",
        stage="first" if step and row["pp"] != "1" else "",
        certainty="A",
        software="nanotron 2025",
        link_stated=gpus <= 8,
        kept_gradients=6,  # bf16, and the sums in fp32
        network=_network(row),
    )


def _nanotron_plan(row: dict[str, str], model: Model) -> Plan:
    """The plan with nanotron's stages, and its gathers.

    Each goes to a new tensor on another stream, whose memory PyTorch does not hand out
    again before the GPU gets there; the CPU is by then in the next micro-batches.
    nanotron-linear, pytorch-record-stream.
    """
    plan = _plan(row, ["dp", "zero3", "cp"], _NANOTRON)
    stages = nanotron_stages(model, plan.pp) if plan.pp > 1 else None
    return replace(plan, stage_layers=stages, keep_gathered=True)


def _network(row: dict[str, str]) -> dict[str, BytesPerSecond]:
    names = [f"{side}{op}" for side in ("", "inside_") for op in _COLLECTIVES]
    measured = {name: row.get(f"{name}_gb_per_s") for name in names}
    return {op: float(rate) * GB_PER_S for op, rate in measured.items() if rate}
