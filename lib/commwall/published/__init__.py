"""Other people's measurements: configuration, step time and memory, with their source.

The tables of `data/published/` are facts that others printed, in the units of their
headers, and turn into SI here. Where layers do not divide into stages, the plan says
how many each holds (`stage_layers`).

Leaves out: runs whose configuration the source does not state in full, fp8, offloading,
mixtures of experts, recomputation of single operations, ZeRO inside a node only.
"""

from functools import cache

from commwall import catalog
from commwall.published.measured_run import Run
from commwall.published.tables import (
    megatron_run,
    nanotron_run,
    nanotron_stages,
    read,
    run,
    stages_with_ends,
)

__all__ = [
    "Run",
    "h100_out_of_memory",
    "h100_sweep",
    "megatron_runs",
    "memory_runs",
    "nanotron_stages",
    "runs",
    "stages_with_ends",
]


@cache
def megatron_runs() -> tuple[Run, ...]:
    """Eighteen GPT runs on A100s, 1.7 to 1008 billion parameters, 8 to 3072 GPUs.

    narayanan2021, table 1, and korthikanti2022, table 5. Attention was not fused, stage
    boundaries were scattered, dropout was on; the larger runs of the first did not
    overlap their gradient sync.
    """
    return tuple(megatron_run(row) for row in read("megatron_a100"))


@cache
def h100_sweep() -> tuple[Run, ...]:
    """473 nanotron runs on 16 to 256 H100s: three models, every mix of dp, tp and pp.

    ultrascale-playbook, collected in rapid-llm-sweep. Some are many times slower than
    physics allows, and the network that each measured for itself varies.
    """
    return tuple(nanotron_run(row) for row in read("h100_sweep"))


@cache
def h100_out_of_memory() -> tuple[Run, ...]:
    """917 runs of the same sweep that ran out of memory, 20 of them repeats."""
    return tuple(nanotron_run(row) for row in read("h100_out_of_memory"))


def runs(
    gpu: str | None = None, source: str | None = None, software: str | None = None
) -> tuple[Run, ...]:
    """Runs of many frameworks and GPUs whose step was timed; those of `gpu`, ...

    `source` and `software` may be a part of the text.

    >>> sorted({each.plan.dp for each in runs("RTX 3090", software="lambda")})
    [1, 2, 3]
    """
    name = gpu and catalog.gpu(gpu).name
    return tuple(
        each
        for each in _all("runs")
        if name in (None, each.cluster.gpu.name)
        and (source or "") in each.source
        and (software or "") in each.software
    )


def memory_runs() -> tuple[Run, ...]:
    """Runs of certainty A whose peak memory is printed, of the fullest or one stage."""
    return _all("memory")


@cache
def _all(table: str) -> tuple[Run, ...]:
    return tuple(run(row) for row in read(table))
