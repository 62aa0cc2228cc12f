r"""How wrong the predictions are: errors of published runs, and what earns them.

An error is the predicted time over the measured one, less one: -10 % is a tenth too
fast. Leaves out: how exact the measurements are; repeats of one run differ by a few per
cent, on consumer boxes by up to twofold.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import mean, median, mode

from commwall.kernels import SUSTAINED
from commwall.published import Run
from commwall.steptime import StepTime
from commwall.units import FlopPerSecond, Seconds

__all__ = [
    "RUNGS", "Summary", "best_ranked", "errors", "fitted", "groups", "healthy",
    "predicted", "rungs", "summary", "throughput",
]  # fmt: skip

RUNGS = ("FLOP only", "+ bubble and logits", "+ communication",
         "+ memory-bound kernels", "+ tiles")  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """Errors of several runs, as fractions."""

    count: int
    mean: float  # of their sizes
    median: float  # of their sizes
    bias: float  # median with the sign: below 0, predictions are too fast
    worst: float  # with the sign

    def __str__(self) -> str:
        return (
            f"{self.count:4d}  mean {self.mean:6.1%}  median {self.median:6.1%}  "
            f"bias {self.bias:+6.1%}  worst {self.worst:+7.1%}"
        )


def summary(errors: Iterable[float]) -> Summary:
    """Size, sign and worst of some errors.

    >>> print(summary([0.05, -0.02, -0.11]))
       3  mean   6.0%  median   5.0%  bias  -2.0%  worst  -11.0%
    """
    errors = list(errors)
    if not errors:
        raise ValueError(f"errors={errors} must hold at least one")
    sizes = [abs(error) for error in errors]
    return Summary(
        count=len(errors),
        mean=mean(sizes),
        median=median(sizes),
        bias=median(errors),
        worst=max(errors, key=abs),
    )


def throughput(run: Run) -> float:
    """Tokens a second that were measured, of all GPUs together."""
    return run.plan.global_batch * run.model.seq / run.step_seconds


def groups(runs: Iterable[Run]) -> dict[tuple[int, int], list[Run]]:
    """Runs by parameters of the model and number of GPUs, smallest first."""
    found: dict[tuple[int, int], list[Run]] = {}
    for run in runs:
        found.setdefault((run.model.params, run.cluster.gpus), []).append(run)
    return dict(sorted(found.items()))


def healthy(runs: Sequence[Run], share: float = 0.5) -> list[Run]:
    """Those of one group that reach `share` of its best measured throughput."""
    best = max(throughput(run) for run in runs)
    return [run for run in runs if throughput(run) >= share * best]


def best_ranked(runs: Sequence[Run]) -> Run:
    """The run whose plan the model ranks first, at the global batch that most have.

    A search is for one batch: a larger one is faster by token, and learns less from it.
    """
    usual = mode(run.plan.global_batch for run in runs)
    alike = [run for run in runs if run.plan.global_batch == usual]
    return min(alike, key=lambda run: predicted(run).total)


@cache
def predicted(run: Run) -> StepTime:
    """`run.predicted`, computed once."""
    return run.predicted


def rungs(run: Run) -> dict[str, tuple[Seconds, Seconds]]:
    """For each rung of the ladder: (seconds at a sustained fraction of 1, the rest).

    At a sustained fraction e the rung predicts the first over e plus the second.
    """
    step, plan = predicted(run), run.plan
    everywhere, slowest = _flop_times(run, step)
    bubble = step.bubble / step.compute
    kernels = SUSTAINED[plan.kernels] * step.matmul
    traffic = sum(step.exposed.values())
    bound = (step.elementwise + step.launch) * (1 + bubble) + step.optimizer
    return dict(
        zip(
            RUNGS,
            [
                (everywhere, 0.0),
                (slowest * (1 + bubble), 0.0),
                (slowest * (1 + bubble), traffic),
                (slowest * (1 + bubble), traffic + bound),
                (kernels * (1 + bubble), traffic + bound),
            ],
            strict=True,
        )
    )


def _flop_times(run: Run, step: StepTime) -> tuple[Seconds, Seconds]:
    """Seconds of the FLOP at the best product's rate: shared evenly, slowest stage."""
    best: FlopPerSecond = run.cluster.gpu.best_product(run.plan.precision.arithmetic)
    flop = step.tokens * step.hardware_flop_per_token / (best * run.cluster.gpus)
    logits = 6 * run.model.scored * run.model.vocab * run.model.hidden
    layers = run.plan.most_layers(run.model) / run.model.layers
    slowest = (step.hardware_flop_per_token - logits) * layers + logits
    return flop, flop * run.plan.pp * slowest / step.hardware_flop_per_token


def fitted(
    times: Sequence[tuple[Seconds, Seconds]], measured: Sequence[Seconds]
) -> float:
    """The sustained fraction, in steps of 0.001, with the least mean absolute error."""
    fractions = [step / 1000 for step in range(300, 1201)]
    return min(fractions, key=lambda e: mean(map(abs, errors(times, measured, e))))


def errors(
    times: Sequence[tuple[Seconds, Seconds]],
    measured: Sequence[Seconds],
    fraction: float,
) -> list[float]:
    """Errors of a rung at a sustained fraction."""
    return [
        (scaled / fraction + rest) / seconds - 1
        for (scaled, rest), seconds in zip(times, measured, strict=True)
    ]
