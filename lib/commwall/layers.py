r"""Seconds of one layer of a transformer, part by part, and of a pipeline's stages.

What tensor parallelism divides and what it does not shows on one layer better than on a
step. Leaves out: the embedding, the optimizer, and whatever lies between layers.
"""

from dataclasses import dataclass

from commwall.exposure import traffic_time
from commwall.hardware import GPU, Cluster
from commwall.model import Model
from commwall.passes import backward_pass, host_time, layer_pass, logits_pass
from commwall.plan import Plan
from commwall.units import Seconds
from commwall.volumes import traffic

__all__ = ["LayerTime", "layer_time", "stage_times", "weight_times"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerTime:
    """Seconds of one layer and micro-batch, forward and backward."""

    products: Seconds  # matrix products, attention's own among them
    memory_bound: Seconds  # norms, activations, dropout, softmax
    sums: Seconds  # tensor-parallel traffic that nothing hides
    launch: Seconds  # the GPU waits for the host

    @property
    def work(self) -> Seconds:
        """The kernels: what a faster wire leaves as it is."""
        return self.products + self.memory_bound

    @property
    def total(self) -> Seconds:
        """The whole layer."""
        return self.work + self.sums + self.launch


def layer_time(model: Model, plan: Plan, cluster: Cluster) -> LayerTime:
    r"""One layer's time on one GPU of `plan.tp`, for one micro-batch.

    $$t = \frac{C}{t_p} + M + 4\,t_\text{all-reduce}$$

    but for tiles, which do not divide evenly, and never less than the host needs to
    launch it. shoeybi2019, korthikanti2022.
    """
    forward = layer_pass(model, plan, cluster.gpu)
    passes = (forward, backward_pass(plan, forward))
    products = sum(each.matmul + each.attention for each in passes)
    memory_bound = sum(each.memory_bound for each in passes)
    records = [r for r in traffic(model, plan) if r.axis == "tp"]
    wire = sum(traffic_time(record, plan, cluster) for record in records)
    sums = wire / plan.micro_batches / plan.most_layers(model)
    if plan.overlap.tp:
        sums = max(0.0, sums - products - memory_bound)
    busy = products + memory_bound + sums
    return LayerTime(
        products=products,
        memory_bound=memory_bound,
        sums=sums,
        launch=max(0.0, host_time(plan, 1) - busy),
    )


def stage_times(
    model: Model, plan: Plan, gpu: GPU
) -> tuple[tuple[Seconds, ...], tuple[Seconds, ...]]:
    """Forward and backward seconds of each pipeline stage, for one micro-batch.

    What `schedule` takes to time stages that are not equal: the last also has the
    projection onto the vocabulary and the loss, a third of it forward. Leaves out:
    traffic inside a stage, and waiting for the host.
    """
    plan.check(model)
    one = layer_pass(model, plan, gpu)
    ahead, back = one.total, backward_pass(plan, one).total
    logits = logits_pass(model, plan, gpu).total
    layers = [plan.layers_on(model, stage) for stage in range(plan.pp)]
    forward, backward = [n * ahead for n in layers], [n * back for n in layers]
    forward[-1] += logits / 3
    backward[-1] += logits * 2 / 3
    return tuple(forward), tuple(backward)


def weight_times(model: Model, plan: Plan, gpu: GPU) -> tuple[Seconds, ...]:
    """Of each stage's backward seconds, those for the gradients of its weights.

    One product for each of the forward pass: less than half, since attention and the
    memory-bound kernels only have an input's gradient. What a zero-bubble schedule may
    put off. qi2024.
    """
    plan.check(model)
    product = layer_pass(model, plan, gpu).matmul
    times = [plan.layers_on(model, stage) * product for stage in range(plan.pp)]
    times[-1] += logits_pass(model, plan, gpu).matmul / 3
    return tuple(times)
