"""A PCIe box of eight cards: which wire is the slowest?"""

from commwall.boxes import pcie_box, positions
from commwall.topology import (
    Flow,
    Topology,
    Use,
    all_to_all_flows,
    bus_bandwidth,
    pair_flows,
    ring_all_reduce_flows,
    slowest,
    usage,
)
from commwall.units import format_si
from commwall.whatif.answers import Answer
from commwall.whatif.controls import Choice
from commwall.whatif.front import WhatIf
from commwall.whatif.pictures import Node, Tree, Wire

PEERS = {
    "off: through the host": False,
    "within a switch": "switch",
    "everywhere": True,
}
TRAFFIC = ("ring all-reduce", "ring, order shuffled", "all-to-all", "GPU 0 to GPU 1",
           "GPU 0 to GPU 7")  # fmt: skip
SHUFFLED = (0, 4, 1, 5, 2, 6, 3, 7)  # each hop leaves its half of the box


def _flows(box: Topology, traffic: str, p2p) -> tuple[Flow, ...]:
    if traffic == "all-to-all":
        return all_to_all_flows(box, p2p=p2p)
    if traffic.startswith("GPU"):
        return pair_flows(box, "gpu0", f"gpu{traffic[-1]}", p2p)
    shuffled = [f"gpu{n}" for n in SHUFFLED] if "shuffled" in traffic else None
    return ring_all_reduce_flows(box, shuffled, p2p)


def topology_flow(generation: str, lanes: str, switch: str, sockets: str,
                  socket_link: str, peers: str, traffic: str) -> Answer:  # fmt: skip
    """How busy each wire is, and the bus bandwidth that the slowest allows."""
    box = pcie_box(gpus_per_switch=int(switch), sockets=int(sockets),
                   lane=f"gen{generation} {lanes}", uplink=f"gen{generation} x16",
                   socket_link=socket_link)  # fmt: skip
    flows = _flows(box, traffic, PEERS[peers])
    rate, tightest = bus_bandwidth(box, flows), slowest(box, flows)
    return Answer(
        finding=f"{format_si(rate, 'B/s')} a GPU: the slowest is {tightest.name}.",
        facts=(
            ("bus bandwidth", format_si(rate, "B/s")),
            ("slowest", tightest.name),
            (_carries(tightest), format_si(tightest.carried, "B/s")),
            ("bytes on it, for one from each sender", f"{tightest.load:.3g}"),
        ),
        picture=_tree(box, usage(box, flows)),
    )


def _carries(use: Use) -> str:
    """A wire has its bandwidth each way; a memory shares it."""
    shared = use.name.startswith("memory")
    return f"which carries, {'reads and writes together' if shared else 'one way'}"


def _tree(box: Topology, uses: tuple[Use, ...]) -> Tree:
    places = positions(box)
    right = max(x for x, _ in places.values())
    deep = min(y for _, y in places.values())
    at = {name: (x / right, (1 - y) / (1 - deep)) for name, (x, y) in places.items()}
    busiest: dict[tuple[str, ...], Use] = {}
    for use in uses:
        ends = tuple(sorted(use.ends))
        held = busiest.setdefault(ends, use)
        busiest[ends] = max(held, use, key=lambda u: u.utilisation)
    nodes = tuple(Node(_short(name), *place) for name, place in at.items())
    wires = tuple(
        Wire(use.name, tuple(sorted((at[a], at[b]), key=_depth)), use.utilisation)
        for (a, b), use in busiest.items()
    )
    return Tree(nodes=nodes, wires=wires)


def _depth(place: tuple[float, float]) -> float:
    return place[1]


def _short(name: str) -> str:
    """A label that has room: a GPU's number, a switch's letter."""
    if name.startswith("memory"):
        return "memory"
    return name.replace("gpu", "").replace("switch", "sw ").replace("socket", "cpu ")


TOPOLOGY_FLOW = WhatIf(
    name="topology_flow",
    title="Which wire of a box is the slowest?",
    controls=(
        Choice(name="traffic", label="Traffic", options=TRAFFIC, start=TRAFFIC[0]),
        Choice(name="peers", label="Peer-to-peer", options=tuple(PEERS),
               start="off: through the host"),
        Choice(name="generation", label="PCIe generation", options=tuple("3456"[:3]),
               start="4"),
        Choice(name="lanes", label="Lanes of a card", options=("x4", "x8", "x16"),
               start="x16"),
        Choice(name="switch", label="Cards on a switch", options=("1", "2", "4"),
               start="1"),
        Choice(name="sockets", label="Sockets", options=("1", "2"), start="2"),
        Choice(name="socket_link", label="Link between sockets",
               options=("broadwell", "skylake", "rome", "milan", "genoa",
                        "sapphire rapids", "turin"), start="rome"),
    ),
    answer=topology_flow,
)  # fmt: skip
