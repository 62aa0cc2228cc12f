r"""What a bigger batch buys: fewer steps, for more examples. mccandlish2018.

A batch may be counted in sequences or in tokens, as long as all arguments are. Sizes
are compared at equal final loss, each at its best learning rate. Leaves out: that the
critical batch grows while the loss falls, and rates that are not tuned again.
"""

from math import sqrt

from commwall.rules import nonnegative, positive

__all__ = ["best_batch", "examples_factor", "noise_scale", "steps_factor",
           "training_factor"]  # fmt: skip


def steps_factor(batch: float, critical: float) -> float:
    r"""Steps to a given loss, over the fewest that any batch needs.

    $$\frac{\text{steps}}{\text{fewest}} = 1 + \frac{\mathcal{B}_c}{\mathcal{B}}$$

    mccandlish2018, whose hyperbola of steps and examples this is, solved for steps.

    >>> steps_factor(1e6, critical=1e6)     # at the critical batch: twice the fewest
    2.0
    """
    return 1 + positive("critical", critical) / positive("batch", batch)


def examples_factor(batch: float, critical: float) -> float:
    r"""Examples to a given loss, over the fewest that any batch needs.

    $$\frac{\text{examples}}{\text{fewest}} = 1 + \frac{\mathcal{B}}{\mathcal{B}_c}$$

    >>> examples_factor(1e6, critical=1e6)  # and twice the fewest examples
    2.0
    """
    return 1 + positive("batch", batch) / positive("critical", critical)


def training_factor(batch: float, critical: float, half: float) -> float:
    r"""Time to a given loss, over that of a small batch on a perfect wire.

    $$\left(1 + \frac{\mathcal{B}}{\mathcal{B}_c}\right)
    \left(1 + \frac{\mathcal{B}_h}{\mathcal{B}}\right)$$

    `half` is the batch at which half of the step is sync, all ranks together: $n T^*$
    of `balance.data_parallel_tokens`. Nothing overlaps. Own derivation.

    >>> training_factor(2e6, critical=2e6, half=2e6)    # 2 * 2
    4.0
    """
    nonnegative("half", half)
    return examples_factor(batch, critical) * (1 + half / batch)


def best_batch(critical: float, half: float) -> float:
    r"""The batch that reaches a given loss soonest.

    $$\mathcal{B} = \sqrt{\mathcal{B}_c\, \mathcal{B}_h}$$

    Where the slope of `training_factor` is zero; the factor is then
    $(1 + \sqrt{\mathcal{B}_h / \mathcal{B}_c})^2$.

    >>> best_batch(critical=4e6, half=1e6)
    2000000.0
    """
    return sqrt(positive("critical", critical) * positive("half", half))


def noise_scale(
    small_square: float, big_square: float, small: float, big: float
) -> float:
    r"""Gradient noise scale from the squared norms of gradients of two batch sizes.

    A gradient of a batch $\mathcal{B}$ has on average the squared norm
    $|G|^2 + \text{tr}\,\Sigma / \mathcal{B}$; two sizes give both unknowns, and

    $$\mathcal{B}_c \approx \frac{\text{tr}\,\Sigma}{|G|^2}$$

    Data parallelism has both at hand: a rank's own gradient, and the sum's. Average
    the norms over many steps first. mccandlish2018, its first appendix.

    >>> noise_scale(5.0, 2.0, small=1, big=4)       # |G|^2 = 1, tr = 4
    4.0
    """
    if not positive("small", small) < positive("big", big):
        raise ValueError(f"small={small} must be less than big={big}")
    square = (big * big_square - small * small_square) / (big - small)
    trace = (small_square - big_square) / (1 / small - 1 / big)
    return trace / positive("true square", square)
