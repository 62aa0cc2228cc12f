"""One measured run, and what the library predicts of the same configuration.

Leaves out: measurements of parts of a step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from commwall.hardware import Cluster
from commwall.memory import Memory, memory, stage_memory
from commwall.model import Model
from commwall.plan import Plan
from commwall.steptime import StepTime, step_time
from commwall.units import Bytes, BytesPerSecond, Seconds


@dataclass(frozen=True, kw_only=True)
class Run:
    """One published training run: what was set, and what was measured."""

    source: str  # bibliography keys or addresses
    where: str  # table or section
    model: Model
    plan: Plan
    cluster: Cluster
    step_seconds: Seconds | None = None  # measured; None: it ran out, or only memory
    peak_memory: Bytes | None = None  # measured, on the fullest GPU or of one stage
    memory_kind: str = ""  # allocated: in use; reserved: held; printed: not said
    stage: str = ""  # first or last, where the memory is of one stage
    how: str = ""  # as printed, or how it follows from what is printed
    certainty: str = ""  # A machine-readable or exact, B second-hand or rounded
    software: str = ""  # framework and year
    note: str = ""
    link_stated: bool = True  # False: the catalog's usual link stands in
    kept_gradients: float | None = None  # bytes of one, where more is kept than sent
    network: Mapping[str, BytesPerSecond] = field(
        default_factory=dict, compare=False
    )  # what the run measured of its own, as printed: an all-reduce counts twice

    @property
    def memory_plan(self) -> Plan:
        """The plan, with the gradients that are kept: nanotron's bf16 and fp32."""
        if self.kept_gradients is None:
            return self.plan
        kept = replace(self.plan.precision, gradients=self.kept_gradients)
        return replace(self.plan, precision=kept)

    @property
    def predicted(self) -> StepTime:
        """What the library says of the same configuration."""
        return step_time(self.model, self.plan, self.cluster)

    @property
    def predicted_memory(self) -> Memory:
        """What the library says of the fullest GPU."""
        return memory(self.model, self.memory_plan)

    @property
    def predicted_peak(self) -> Memory:
        """What the library says of the stage that was measured."""
        if not self.stage:
            return self.predicted_memory
        index = 0 if self.stage == "first" else self.plan.pp - 1
        return stage_memory(self.model, self.memory_plan, index)

    @property
    def error(self) -> float:
        """Predicted step over measured, less one."""
        if self.step_seconds is None:
            raise ValueError(f"step_seconds=None: {self.where} has no measured step")
        return self.predicted.total / self.step_seconds - 1
