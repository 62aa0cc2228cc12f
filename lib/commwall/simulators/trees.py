"""All-reduce by two trees at once, counted like the rings of `counting`.

Half the payload goes through each tree.
A rank that is busy inside one tree is a leaf of the other, so nobody sends more than
twice the payload, and the number of steps grows with log n instead of n.
sanders2009; the trees are those of NCCL (nccl-trees).

Leaves out the pipeline: NCCL cuts each half into chunks, so that the upper levels work
while the lower ones still send.
That changes the time, not the bytes.
"""

from __future__ import annotations

import numpy as np

from commwall.simulators.counting import Arrays, Counted
from commwall.simulators.wire import Wire

Tree = dict[int, int]  # child: parent


def tree_all_reduce(buffers: Arrays) -> Counted:
    r"""The sum at every rank: each half goes up its tree, and down again.

    Exactly $2 \lceil \log_2 n \rceil$ steps, for every n.
    The busiest rank sends exactly 2S from four ranks on (S even), 1.5 S with three and
    S with two.
    The mean over the ranks is 2(n-1)/n of S, as with the ring.

    >>> sums, wire = tree_all_reduce([np.ones(2)] * 256)
    >>> wire.steps, wire.busiest         # 2 * log2(256), 2 * 2 values * 8 bytes
    (16, 32)
    """
    halves = [np.array_split(buffer.ravel(), 2) for buffer in buffers]
    first, second = double_tree(len(buffers))
    left, wire = _up_and_down([half for half, _ in halves], first)
    right, beside = _up_and_down([half for _, half in halves], second)
    sums = [
        np.concatenate(both).reshape(buffer.shape)
        for *both, buffer in zip(left, right, buffers, strict=True)
    ]
    return sums, wire | beside


def double_tree(ranks: int) -> tuple[Tree, Tree]:
    """Two trees over the same ranks, nearly every rank being a leaf of just one.

    The second is the first in a mirror, or shifted by one when the ranks are odd in
    number; then rank 0 alone is inside both.

    >>> double_tree(4)         # 0 - 2 - (1, 3) and 3 - 1 - (2, 0)
    ({1: 2, 2: 0, 3: 2}, {2: 1, 1: 3, 0: 1})
    """
    first = {rank: _parent(rank, ranks) for rank in range(1, ranks)}
    twin = list(range(ranks))[::-1] if ranks % 2 == 0 else [*range(1, ranks), 0]
    return first, {twin[child]: twin[parent] for child, parent in first.items()}


def depth(rank: int, tree: Tree) -> int:
    """Hops from a rank up to the root."""
    return 1 + depth(tree[rank], tree) if rank in tree else 0


def _parent(rank: int, ranks: int) -> int:
    """The neighbour one level up, where a rank's level is how often 2 divides it.

    When the ranks end before that neighbour, the next one below that is higher up.
    """
    stride = rank & -rank  # 2 to the power of the level
    above = rank + stride
    one_level_up = above % (4 * stride) == 2 * stride
    return above if one_level_up and above < ranks else rank - stride


def _up_and_down(buffers: Arrays, tree: Tree) -> Counted:
    wire = Wire(len(buffers))
    sums = list(buffers)
    levels = _levels(tree)
    for edges in reversed(levels):
        upward = wire.step({(child, parent): sums[child] for child, parent in edges})
        for (_, parent), partial in upward.items():
            sums[parent] = sums[parent] + partial
    for edges in levels:
        downward = wire.step({(parent, child): sums[parent] for child, parent in edges})
        for (_, child), total in downward.items():
            sums[child] = total
    return sums, wire


def _levels(tree: Tree) -> list[list[tuple[int, int]]]:
    """The edges, child first, by the depth of the child."""
    depths = {child: depth(child, tree) for child in tree}
    return [
        [(child, parent) for child, parent in tree.items() if depths[child] == level]
        for level in range(1, max(depths.values(), default=0) + 1)
    ]
