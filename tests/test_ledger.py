"""A ledger runs collectives and writes down purpose, operation, payload and wire."""

import numpy as np

from commwall.simulators.ledger import Ledger


def test_payload_is_the_whole_buffer_for_every_operation():
    """Six numbers of 8 bytes, whether each rank holds all of them or a third."""
    ledger = Ledger(ranks=3)
    whole = [np.arange(6.0) * rank for rank in range(3)]

    pieces = ledger.reduce_scatter(whole, "scatter")
    gathered = ledger.all_gather(pieces, "gather")
    sums = ledger.all_reduce(whole, "reduce")

    assert [(call.name, call.op, call.payload) for call in ledger.calls] == [
        ("scatter", "reduce_scatter", 48),
        ("gather", "all_gather", 48),
        ("reduce", "all_reduce", 48),
    ]
    assert np.array_equal(gathered, sums)


def test_the_total_is_all_calls_one_after_another():
    """Two all-reduces of 3 numbers over 3 ranks: 2 * 2 * 2 steps, 2 * 4 numbers."""
    ledger = Ledger(ranks=3)

    for name in ("once", "twice"):
        ledger.all_reduce([np.ones(3)] * 3, name)

    assert (ledger.total.steps, ledger.total.values_sent) == (8, [8, 8, 8])
    assert ledger.calls[0].wire.steps == 4


def test_a_ledger_without_calls_sent_nothing():
    assert Ledger(ranks=2).total.sent == [0, 0]
