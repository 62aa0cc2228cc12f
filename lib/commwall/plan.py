"""How a model is split over GPUs, and how its batch is cut.

Axes from the closest GPUs outward: tp, cp, dp, pp. `ep` divides dp * cp. Batches are
counted in sequences. Leaves out: uneven batches, expert tensor parallelism, and
different tp for attention and experts.
"""

from dataclasses import dataclass
from functools import cached_property

from commwall.model import Model
from commwall.rules import (
    choice,
    divides,
    flag,
    instance,
    multiple,
    nonnegative,
    positive,
    whole,
)

__all__ = ["AXES", "Overlap", "Plan", "Precision"]

AXES = ("tp", "cp", "ep", "dp", "pp")
_DEGREES = ("tp", "pp", "vpp", "dp", "cp", "ep", "micro_batch", "global_batch")
_FLAGS = ("sequence_parallel", "fused_attention", "fused_kernels", "cuda_graphs",
          "keep_gathered", "scatter_gather")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Precision:
    """Bytes of each value that is kept or sent.

    >>> Precision().bytes_per_param     # 2 + 2 + 4 + 8
    16
    """

    weights: float = 2  # bf16
    gradients: float = 2  # bf16; 4 where they are kept and summed in fp32
    master: float = 4  # fp32 copy of the weights
    moments: float = 8  # two fp32 moments of Adam
    activations: float = 2  # bf16
    arithmetic: str = "bf16"  # bf16 (or fp16), tf32, fp32: what products multiply in

    def __post_init__(self):
        for field in ("weights", "gradients", "activations"):
            positive(field, getattr(self, field))
        nonnegative("master", self.master)
        nonnegative("moments", self.moments)
        choice("arithmetic", self.arithmetic, ("bf16", "tf32", "fp32"))

    @property
    def optimizer(self) -> float:
        """Bytes a parameter that only the optimizer reads."""
        return self.master + self.moments

    @property
    def bytes_per_param(self) -> float:
        """Bytes of training state a parameter. rajbhandari2020."""
        return self.weights + self.gradients + self.optimizer


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """Which traffic hides behind compute instead of lengthening the step."""

    dp: bool = True  # gradient sync behind the backward pass
    zero3: bool = True  # parameter gathers behind the layer before
    cp: bool = True  # keys and values behind the attention of the block before
    tp: bool = False  # the next matmul needs the sum
    pp: bool = True  # stage boundaries, as far as the schedule gives time for it
    host: bool = False  # dp and zero3 also where they bounce through host memory

    def __post_init__(self):
        for field in ("dp", "zero3", "cp", "tp", "pp", "host"):
            flag(field, getattr(self, field))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Degrees of parallelism, batches, and what is kept or recomputed.

    Unless `fused_kernels` says that SwiGLU, rotations and the loss each run as one
    kernel, as in Megatron, Liger or torch.compile, PyTorch runs them operation by
    operation, and keeps what lies between.

    >>> plan = Plan(tp=8, dp=4, micro_batch=2, global_batch=64)
    >>> plan.gpus, plan.micro_batches, plan.span("dp")
    (32, 8, 32)
    """

    tp: int = 1  # tensor parallel
    pp: int = 1  # pipeline stages
    vpp: int = 1  # chunks of layers on each stage; above 1: interleaved
    dp: int = 1  # data parallel replicas
    cp: int = 1  # context parallel
    ep: int = 1  # expert parallel, taken out of dp * cp
    zero_stage: int = 0  # 0 to 3; 3 is FSDP's full shard
    micro_batch: int = 1  # sequences, per data-parallel rank
    global_batch: int = 1  # sequences, per optimizer step
    sequence_parallel: bool = False
    recompute: str = "none"  # none, selective (attention core), full
    schedule: str = "1f1b"  # gpipe, 1f1b, zero_bubble
    context: str = "ring"  # ring, ulysses
    stage_layers: tuple[int, ...] | None = None  # of each stage; None: equal stages
    fused_attention: bool = True  # the s x s scores are never written to memory
    fused_kernels: bool = False  # by hand or compiler, not operation by operation
    cuda_graphs: bool = False  # the host launches a whole step at once
    keep_gathered: bool = False  # inputs that sequence parallelism gathers stay whole
    scatter_gather: bool = False  # a stage boundary sends 1/tp per rank, then gathers
    precision: Precision = Precision()
    overlap: Overlap = Overlap()

    def __post_init__(self):
        for field in _DEGREES:
            object.__setattr__(self, field, whole(field, getattr(self, field)))
        self._check_choices()
        multiple(
            "global_batch",
            self.global_batch,
            f"dp * micro_batch = {self.dp} * {self.micro_batch}",
            self.dp * self.micro_batch,
        )
        divides("ep", self.ep, "dp * cp", self.dp * self.cp)
        if self.vpp > 1:
            self._check_interleaving()
        if self.stage_layers is not None:
            self._check_stages()

    def _check_choices(self):
        if whole("zero_stage", self.zero_stage, 0) > 3:
            raise ValueError(
                f"zero_stage={self.zero_stage} must be 0, 1, 2 or 3; "
                "nearest legal value: 3"
            )
        choice("recompute", self.recompute, ("none", "selective", "full"))
        choice("schedule", self.schedule, ("gpipe", "1f1b", "zero_bubble"))
        choice("context", self.context, ("ring", "ulysses"))
        for field in _FLAGS:
            flag(field, getattr(self, field))
        instance("precision", self.precision, Precision)
        instance("overlap", self.overlap, Overlap)

    def _check_interleaving(self):
        if self.pp == 1:
            raise ValueError(
                f"vpp={self.vpp} needs pp of at least 2, but pp=1; "
                "nearest legal value: vpp=1"
            )
        if self.schedule != "1f1b":
            raise ValueError(
                f"vpp={self.vpp} needs schedule='1f1b', but schedule={self.schedule!r};"
                " nearest legal value: vpp=1"
            )
        multiple("micro_batches", self.micro_batches, f"pp={self.pp}", self.pp)

    def _check_stages(self):
        stages = instance("stage_layers", self.stage_layers, tuple)
        for layers in stages:
            whole("stage_layers", layers, 0)
        if self.vpp > 1 or len(stages) != self.pp:
            raise ValueError(
                f"stage_layers={stages} needs vpp=1 and one entry for each of "
                f"pp={self.pp} stages, but vpp={self.vpp} and it has {len(stages)}"
            )

    @cached_property
    def micro_batches(self) -> int:
        """Micro-batches of one replica in one optimizer step, m."""
        return self.global_batch // (self.dp * self.micro_batch)

    @property
    def kernels(self) -> str:
        """How kernels run: "fused", or operation by operation, "eager"."""
        return "fused" if self.fused_kernels else "eager"

    @cached_property
    def gpus(self) -> int:
        """GPUs that the plan fills."""
        return self.tp * self.cp * self.dp * self.pp

    @cached_property
    def replicas(self) -> int:
        """Ranks that hold the same weights and sum their gradients: dp * cp."""
        return self.dp * self.cp

    def ranks(self, axis: str) -> int:
        """GPUs in one group of this axis; "dp" counts every copy of the weights."""
        choice("axis", axis, AXES)
        return self.replicas if axis == "dp" else getattr(self, axis)

    def stride(self, axis: str) -> int:
        """GPUs from one member of a group to the next."""
        choice("axis", axis, AXES)
        if axis == "tp":
            return 1
        return self.tp * self.replicas if axis == "pp" else self.tp

    def span(self, axis: str) -> int:
        """Neighbouring GPUs over which one group of this axis stretches."""
        return self.stride(axis) * self.ranks(axis)

    def layers_on(self, model: Model, stage: int) -> int:
        """Layers that one stage holds, counted from 0."""
        if self.stage_layers is None:
            return model.layers // self.pp
        return self.stage_layers[stage]

    def most_layers(self, model: Model) -> int:
        """Layers of the fullest stage, which sets the pace."""
        if self.stage_layers is None:
            return model.layers // self.pp
        return max(self.stage_layers)

    def check(self, model: Model) -> None:
        """Raise ValueError unless `model` can be cut this way."""
        if self.__dict__.get("_checked") is instance("model", model, Model):
            return
        self._check_layers(model)
        divides("tp", self.tp, "heads", model.heads)
        divides("tp", self.tp, "kv_heads", model.kv_heads)
        divides("tp", self.tp, "ffn", model.ffn)
        divides("tp", self.tp, "moe_ffn", model.moe_ffn)
        divides("cp", self.cp, "seq", model.seq)
        if self.cp > 1 and self.context == "ulysses":
            divides("cp", self.cp, "kv_heads / tp", model.kv_heads // self.tp)
        if self.sequence_parallel:
            divides("tp", self.tp, "seq / cp", model.seq // self.cp)
        divides("ep", self.ep, "experts", model.experts)
        self.__dict__["_checked"] = model  # a search asks several times

    def _check_layers(self, model: Model):
        if self.stage_layers is None:
            divides("pp", self.pp, "layers", model.layers)
            divides("vpp", self.vpp, "layers / pp", model.layers // self.pp)
        elif sum(self.stage_layers) != model.layers:
            raise ValueError(
                f"stage_layers={self.stage_layers} must sum to layers={model.layers}, "
                f"not {sum(self.stage_layers)}"
            )
