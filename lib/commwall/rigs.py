"""Boxes that somebody measured, and what the flow model says of them.

`data/rigs.csv` draws each box as its owner describes it. Constants are those of `boxes`
for all rows, but where one pair of the same box was measured and gives `achieved`.

Leaves out: what `topology` leaves out; `known` says what of a box had to be assumed.
"""

import csv
from dataclasses import dataclass
from importlib.resources import files

from commwall.boxes import PCIE_ACHIEVED, parse
from commwall.rules import choice
from commwall.topology import (
    Flow,
    PeerToPeer,
    Topology,
    all_to_all_flows,
    bus_bandwidth,
    pair_flows,
    ring_all_reduce_flows,
    slowest,
)
from commwall.units import GB_PER_S, BytesPerSecond


def traffic(topology: Topology, words: str, p2p: PeerToPeer = True) -> tuple[Flow, ...]:
    """The flows that `words` name.

    "ring", "ring both ways", "all-to-all", each with the numbers of its GPUs where not
    all take part; "pair 0 1", "both 0 1"; or single streams, "0>4 1>5".
    """
    if ">" in words:
        pairs = [[f"gpu{n}" for n in arrow.split(">")] for arrow in words.split()]
        return sum((pair_flows(topology, *pair, p2p) for pair in pairs), ())
    gpus = tuple(f"gpu{word}" for word in words.split() if word.isdigit()) or None
    kind = " ".join(word for word in words.split() if not word.isdigit())
    kinds = {
        "ring": lambda: ring_all_reduce_flows(topology, gpus, p2p),
        "ring both ways": lambda: ring_all_reduce_flows(topology, gpus, p2p, True),
        "all-to-all": lambda: all_to_all_flows(topology, gpus, p2p),
        "pair": lambda: pair_flows(topology, *gpus, p2p),
        "both": lambda: pair_flows(topology, *gpus, p2p, bidirectional=True),
    }
    return kinds[choice("traffic", kind, kinds)]()


@dataclass(frozen=True, kw_only=True, slots=True)
class Rig:
    """One measurement on one box."""

    id: str
    system: str
    topology: Topology
    flows: tuple[Flow, ...]
    measured: BytesPerSecond  # as printed
    sum_of: int  # of how many equal rates that is the sum
    known: str  # what is known of the box, or assumed
    source: str
    note: str = ""

    @property
    def predicted(self) -> BytesPerSecond:
        """The figure that the tool would print, by the model."""
        return bus_bandwidth(self.topology, self.flows) * self.sum_of

    @property
    def bound_by(self) -> str:
        """The edge or memory that sets the pace."""
        return slowest(self.topology, self.flows).name


_P2P = {"yes": True, "no": False, "switch": "switch"}


def _rig(row: dict[str, str]) -> Rig:
    topology = parse(row["box"], achieved=float(row["achieved"] or PCIE_ACHIEVED))
    return Rig(
        topology=topology,
        flows=traffic(topology, row["flows"], _P2P[row["p2p"]]),
        measured=float(row["printed_GBps"]) * GB_PER_S,
        sum_of=int(row["sum_of"]),
        **{name: row[name] for name in ("id", "system", "known", "source", "note")},
    )


def rigs() -> dict[str, Rig]:
    """Every measured box of `data/rigs.csv`, by its id."""
    table = files("commwall").joinpath("data/rigs.csv").read_text(encoding="utf-8")
    return {row["id"]: _rig(row) for row in csv.DictReader(table.splitlines(True))}
