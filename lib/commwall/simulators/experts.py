"""Expert parallelism: tokens go to the ranks of their experts and back, counted.

Every rank holds some tokens and an equal share of the experts.
A router has chosen `top_k` experts for each token; one copy of the token travels for
each choice (dispatch), and its result travels back (combine).
The backward pass is the mirror: gradients are dispatched and combined.

An expert is one matrix here: what it computes does not change what is sent.

Leaves out: the router itself, capacity limits and dropped tokens, sending one copy to
a rank that holds several of a token's experts, and the expert numbers, which travel
but are not counted.
lepikhin2020, fedus2022switch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from commwall.simulators.counting import Arrays, exchange
from commwall.simulators.wire import Wire, each_rank

Array = np.ndarray


def balanced_choices(tokens: int, experts: int, top_k: int) -> Array:
    """Different experts for each token, all equally busy where the numbers divide.

    >>> balanced_choices(tokens=4, experts=4, top_k=2).tolist()
    [[0, 1], [2, 3], [0, 1], [2, 3]]
    """
    if not 1 <= top_k <= experts:
        raise ValueError(f"{top_k=} is not between 1 and {experts=}")
    return (np.arange(tokens * top_k) % experts).reshape(tokens, top_k)


def mixture(tokens: Array, choices: Array, gates: Array, weights: Array) -> Array:
    """The layer on one rank: each token's gated sum over its experts."""
    return np.einsum("tk,th,tkho->to", gates, tokens, weights[choices])


def mixture_gradients(
    dout: Array, tokens: Array, choices: Array, gates: Array, weights: Array
) -> tuple[Array, Array, Array]:
    """Gradients of tokens, gates and weights, on one rank."""
    chosen = weights[choices]
    dtokens = np.einsum("to,tk,tkho->th", dout, gates, chosen)
    dgates = np.einsum("to,th,tkho->tk", dout, tokens, chosen)
    dweights = np.zeros_like(weights)
    np.add.at(dweights, choices, np.einsum("to,tk,th->tkho", dout, gates, tokens))
    return dtokens, dgates, dweights


@dataclass
class ExpertParallel:
    """The same layer over several ranks: four trips for a forward and a backward."""

    weights: Arrays  # one a rank, (experts / ranks, hidden, hidden)
    choices: Arrays  # one a rank, (tokens, top_k)
    gates: Arrays  # one a rank, (tokens, top_k)

    def __post_init__(self) -> None:
        share = len(self.weights[0])
        numbers = each_rank(np.ravel, self.choices)
        self.owners = [mine // share for mine in numbers]
        arrived, _ = dispatch(numbers, self.owners)
        self.local = [mine % share for mine in arrived]

    def forward(self, tokens: Arrays) -> tuple[Arrays, Wire, Wire]:
        """Each rank's outputs, the dispatch and the combine."""
        top_k = self.choices[0].shape[1]
        copies = [np.repeat(mine, top_k, axis=0) for mine in tokens]
        self.arrived, there = dispatch(copies, self.owners)
        done = each_rank(_outputs, self.arrived, self.weights, self.local)
        results, back = combine(done, self.owners)
        self.results = each_rank(_by_token, results, self.choices)
        return each_rank(_gated_sum, self.gates, self.results), there, back

    def backward(self, dout: Arrays) -> tuple[Arrays, Arrays, Arrays, Wire, Wire]:
        """Gradients of tokens, gates and weights, the dispatch and the combine."""
        dgates = each_rank(_gate_gradients, dout, self.results)
        copies = each_rank(_gated_copies, self.gates, dout)
        arrived, there = dispatch(copies, self.owners)
        dweights = each_rank(
            _weight_gradients, arrived, self.arrived, self.weights, self.local
        )
        done = each_rank(_input_gradients, arrived, self.weights, self.local)
        results, back = combine(done, self.owners)
        dtokens = [rows.sum(axis=1) for rows in each_rank(_by_token, results, dgates)]
        return dtokens, dgates, dweights, there, back


def dispatch(copies: Arrays, owners: Arrays) -> tuple[Arrays, Wire]:
    """Every copy at the rank that owns its expert, in the order of senders."""
    ranks = range(len(copies))
    pieces = each_rank(
        lambda mine, owner: [mine[owner == rank] for rank in ranks], copies, owners
    )
    received, wire = exchange(pieces)
    return each_rank(np.concatenate, received), wire


def combine(results: Arrays, owners: Arrays) -> tuple[Arrays, Wire]:
    """The reverse of `dispatch`: every result at the place its copy came from."""
    pieces = []
    for rank, rows in enumerate(results):
        counts = [np.count_nonzero(owner == rank) for owner in owners]
        pieces.append(np.split(rows, np.cumsum(counts)[:-1]))
    received, wire = exchange(pieces)
    return each_rank(_homecoming, received, owners), wire


def _homecoming(received: Arrays, owner: Array) -> Array:
    home = np.empty((len(owner), *received[0].shape[1:]))
    for rank, rows in enumerate(received):
        home[owner == rank] = rows
    return home


def _by_token(copies: Array, choices: Array) -> Array:
    return copies.reshape(*choices.shape, -1)


def _outputs(rows: Array, weights: Array, local: Array) -> Array:
    return np.einsum("nh,nho->no", rows, weights[local])


def _gated_sum(gates: Array, results: Array) -> Array:
    return np.einsum("tk,tko->to", gates, results)


def _gate_gradients(dout: Array, results: Array) -> Array:
    return np.einsum("to,tko->tk", dout, results)


def _gated_copies(gates: Array, dout: Array) -> Array:
    return np.einsum("tk,to->tko", gates, dout).reshape(-1, dout.shape[1])


def _input_gradients(dout: Array, weights: Array, local: Array) -> Array:
    return np.einsum("no,nho->nh", dout, weights[local])


def _weight_gradients(dout: Array, rows: Array, weights: Array, local: Array) -> Array:
    dweights = np.zeros_like(weights)
    np.add.at(dweights, local, np.einsum("nh,no->nho", rows, dout))
    return dweights
