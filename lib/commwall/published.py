"""Other people's measurements: configuration and step time, with their source.

Leaves out: runs whose configuration the source does not state in full.
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from commwall import catalog
from commwall.hardware import Cluster
from commwall.model import Model
from commwall.plan import Overlap, Plan
from commwall.steptime import StepTime, step_time
from commwall.units import Seconds

__all__ = ["Run", "megatron_runs"]


@dataclass(frozen=True, kw_only=True)
class Run:
    """One published training run and the time of its step."""

    source: str  # bibliography key
    where: str  # table or section
    model: Model
    plan: Plan
    cluster: Cluster
    step_seconds: Seconds  # measured
    how: str  # as printed, or how it follows from what is printed

    @property
    def predicted(self) -> StepTime:
        """What the library says of the same configuration."""
        return step_time(self.model, self.plan, self.cluster)

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted.total / self.step_seconds - 1


@cache
def megatron_runs() -> tuple[Run, ...]:
    """Eighteen GPT runs on A100s, 1.7 to 1008 billion parameters, 8 to 3072 GPUs.

    narayanan2021, table 1, and korthikanti2022, table 5. Attention was not fused, stage
    boundaries were scattered, dropout was on; the larger runs of the first did not
    overlap their gradient sync.
    """
    path = files("commwall") / "data" / "published" / "megatron_a100.csv"
    with path.open(encoding="utf-8", newline="") as table:
        return tuple(_megatron_run(row) for row in csv.DictReader(table))


def _megatron_run(row: dict[str, str]) -> Run:
    return Run(
        source=row["source"],
        where=row["where"],
        model=_gpt(row),
        plan=_plan(row),
        cluster=catalog.cluster(row["gpu"], int(row["gpus"])),
        step_seconds=float(row["step_seconds"]),
        how=row["how"],
    )


def _gpt(row: dict[str, str]) -> Model:
    heads = int(row["heads"])
    return Model(
        *(int(row[field]) for field in ("layers", "hidden")),
        heads,
        heads,
        *(int(row[field]) for field in ("ffn", "vocab", "seq")),
        gated_mlp=False,
        tied_embeddings=True,
        biases=True,
        learned_positions=True,
        dropout=True,
        name=row["label"],
        source=row["source"],
    )


def _plan(row: dict[str, str]) -> Plan:
    degrees = ("tp", "pp", "vpp", "dp", "micro_batch", "global_batch")
    return Plan(
        **{field: int(row[field]) for field in degrees},
        recompute=row["recompute"],
        sequence_parallel=row["sequence_parallel"] == "yes",
        fused_attention=False,
        scatter_gather=True,
        overlap=Overlap(dp=row["overlap_dp"] == "yes", pp=False),
    )
