r"""Which wire of a box is the slowest: flows over a tree of sockets and switches.

While every rank sends one byte, each direction of an edge $e$ and each socket's memory
adds up what crosses it; the busiest sets the pace:

$$\text{bus bandwidth} = 1 \Big/ \max_e \frac{\text{load}_e}{B_e}$$

in the convention of nccl-tests. Without peer-to-peer a byte is written to the memory of
the receiver's socket and read back from it, where NCCL puts its buffers (nccl-shm).
`p2p` is True (NCCL_P2P_LEVEL=SYS), "switch" (NCCL's default, PXB: peers that need not
cross a CPU) or False (GeForce cards); NVLink peers always talk directly.

Leaves out: latency and small messages; NCCL's choice of rings and channels, and what a
kernel's copy loses against a copy engine's; NUMA nodes inside a socket (draw each as a
socket); what a CPU does to many crossing writes, worst for all-to-all between peers
(nccl-1603, rtx6kpro); the driver's staged copies, timed by p2pBandwidthLatencyTest with
P2P off, which do not run at full rate both ways at once.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import combinations, pairwise, permutations

from commwall.rules import choice, positive
from commwall.units import BytesPerSecond, Seconds

PeerToPeer = bool | str  # True, False or "switch"


@dataclass(frozen=True, slots=True)
class Edge:
    """A wire from `a`, the end nearer to the CPU, to `b`; equal in both directions."""

    a: str
    b: str
    bandwidth: BytesPerSecond  # achieved, each direction
    _: KW_ONLY
    peer: BytesPerSecond | None = None  # of GPU-to-GPU traffic, where that is slower

    def __post_init__(self):
        for rate in (self.bandwidth, self.peer or self.bandwidth):
            positive(f"bandwidth of {self.a} - {self.b}", rate)


@dataclass(frozen=True, kw_only=True)
class Topology:
    """A tree below each socket, links between sockets, and NVLink bridges."""

    edges: tuple[Edge, ...]
    gpus: tuple[str, ...]
    memory: Mapping[str, BytesPerSecond]  # of each socket; reads and writes share it
    acs: bool = False  # access control on: peers' traffic turns round at the socket

    def __post_init__(self):
        if not self.gpus:
            raise ValueError("gpus=() needs at least one gpu under a socket")
        for socket, rate in self.memory.items():
            positive(f"memory of {socket}", rate)
        for a, b in combinations(self.memory, 2):
            if (a, b) not in self.edge:
                raise ValueError(f"{a} and {b} have no link: add 'link {a} {b} 90'")
        for gpu in self.gpus:
            choice(f"top of {gpu}", self.chain(gpu)[-1], self.memory)

    @cached_property
    def edge(self) -> dict[tuple[str, str], Edge]:
        """The edge that joins two nodes, by its ends in either order."""
        return {ends: e for e in self.edges for ends in ((e.a, e.b), (e.b, e.a))}

    @cached_property
    def parent(self) -> dict[str, str]:
        """What each switch and GPU hangs on; links and bridges lie across the tree."""
        level = (set(self.memory), set(self.gpus))
        return {e.b: e.a for e in self.edges if not any({e.a, e.b} <= s for s in level)}

    def chain(self, node: str) -> tuple[str, ...]:
        """The nodes from `node` up to its socket, both included."""
        above = self.chain(self.parent[node]) if node in self.parent else ()
        return (node, *above)

    def path(self, source: str, target: str) -> tuple[str, ...]:
        """The nodes that a byte visits: up to where two chains meet, then down.

        A bridge comes first, and from socket to socket goes their link.
        """
        if (source, target) in self.edge:
            return source, target
        up, down = self.chain(source), self.chain(target)
        common = [node for node in up if node in down]
        if not common:
            return *up, *reversed(down)
        meet = common[-1 if self.acs else 0]
        return *up[: up.index(meet)], meet, *reversed(down[: down.index(meet)])


@dataclass(frozen=True, slots=True)
class Flow:
    """A stream of bytes from one GPU to another."""

    source: str
    target: str
    share: float = 1.0  # bytes, while every rank sends one
    through: str | None = None  # socket whose memory it bounces off; None: peer-to-peer


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What flows ask of one direction of an edge, or of one socket's memory."""

    name: str
    ends: tuple[str, str]  # nodes, or a socket and its memory
    bandwidth: BytesPerSecond
    load: float  # bytes, while every rank sends one
    busy: Seconds  # those bytes' time
    utilisation: float  # busy, as a part of the busiest's

    @property
    def carried(self) -> BytesPerSecond:
        """What it carries of these flows: less than `bandwidth` where peers do."""
        return self.load / self.busy if self.busy else self.bandwidth


def _send(topology: Topology, ends: tuple, share: float, p2p: PeerToPeer) -> Flow:
    if p2p not in (True, False, "switch"):
        raise ValueError(f"p2p={p2p!r} must be True, False or 'switch'")
    up, down = map(topology.chain, ends)
    peers = p2p is True or ends in topology.edge
    if p2p == "switch" and set(up[:-1]) & set(down[:-1]):
        peers = True
    return Flow(*ends, share, None if peers else down[-1])


def _ranks(topology: Topology, gpus: Sequence[str] | None) -> tuple[str, ...]:
    ranks = tuple(choice("gpu", gpu, topology.gpus) for gpu in gpus or topology.gpus)
    if len(ranks) < 2 or len(set(ranks)) < len(ranks):
        raise ValueError(f"gpus={ranks} must be at least two different GPUs")
    return ranks


def ring_all_reduce_flows(
    topology: Topology,
    order: Sequence[str] | None = None,
    p2p: PeerToPeer = True,
    both_ways: bool = False,
) -> tuple[Flow, ...]:
    """Each GPU sends to the next of `order`, by default that of the drawing.

    `both_ways` halves the bytes over two opposite rings. In the order of the tree a
    ring crosses an uplink once each way; an order that jumps to and fro crosses it at
    every hop. The flows of a reduce-scatter or an all-gather are the same.
    patarasuk2009.
    """
    ranks = _ranks(topology, order)
    hops = [*zip(ranks, ranks[1:] + ranks[:1], strict=True)]
    hops += [(b, a) for a, b in hops] if both_ways else []
    return tuple(_send(topology, hop, len(ranks) / len(hops), p2p) for hop in hops)


def all_to_all_flows(
    topology: Topology, gpus: Sequence[str] | None = None, p2p: PeerToPeer = True
) -> tuple[Flow, ...]:
    """Each of n GPUs sends 1/(n-1) of its byte to every other one.

    Most of them cross the middle of the tree, which the ring's order avoids.
    """
    ranks = _ranks(topology, gpus)
    share = 1 / (len(ranks) - 1)
    return tuple(_send(topology, hop, share, p2p) for hop in permutations(ranks, 2))


def pair_flows(
    topology: Topology,
    a: str,
    b: str,
    p2p: PeerToPeer = True,
    bidirectional: bool = False,
) -> tuple[Flow, ...]:
    """From `a` to `b`, or both ways at once.

    Bus bandwidth is of each way; p2pBandwidthLatencyTest prints the sum of both.
    """
    hops = permutations(_ranks(topology, (a, b)))
    return tuple(_send(topology, hop, 1.0, p2p) for hop in hops)[: 1 + bidirectional]


def memory_of(socket: str) -> str:
    """What a socket's memory is called in `Use.name`, `Use.ends` and a drawing."""
    return f"memory of {socket}"


def _crossings(topology: Topology, flow: Flow) -> Iterator[tuple[tuple, float]]:
    if flow.through is None:
        for hop in pairwise(topology.path(flow.source, flow.target)):
            edge = topology.edge[hop]
            yield hop, edge.peer or edge.bandwidth
        return
    for leg in ((flow.source, flow.through), (flow.through, flow.target)):
        store = flow.through, memory_of(flow.through)
        yield store, topology.memory[flow.through]  # once written, once read
        for hop in pairwise(topology.path(*leg)):
            yield hop, topology.edge[hop].bandwidth


def usage(topology: Topology, flows: Iterable[Flow]) -> tuple[Use, ...]:
    """What `flows` ask of every edge, each way, and of every memory, idle ones too.

    Two cards on a switch without peer-to-peer: the uplink carries each byte twice.
    """
    rates = {ends: edge.bandwidth for ends, edge in topology.edge.items()}
    rates |= {(s, memory_of(s)): rate for s, rate in topology.memory.items()}
    load, busy = defaultdict(float), defaultdict(float)
    for flow in flows:
        for ends, bandwidth in _crossings(topology, flow):
            load[ends] += flow.share
            busy[ends] += flow.share / bandwidth
    longest = max(busy.values())
    return tuple(
        Use(
            name=" -> ".join(ends) if ends in topology.edge else ends[1],
            ends=ends,
            bandwidth=rate,
            load=load[ends],
            busy=busy[ends],
            utilisation=busy[ends] / longest,
        )
        for ends, rate in rates.items()
    )


def slowest(topology: Topology, flows: Iterable[Flow]) -> Use:
    """The edge or memory that is busy longest: the one to change first."""
    return max(usage(topology, flows), key=lambda use: use.busy)


def bus_bandwidth(topology: Topology, flows: Iterable[Flow]) -> BytesPerSecond:
    """Bytes per second that every rank sends, as fast as the slowest edge allows.

    Four cards on one uplink of 31.6 GB/s without peer-to-peer get a quarter of it each:

    >>> edges = [Edge("socket0", "switch", 31.6e9)]
    >>> edges += [Edge("switch", f"gpu{i}", 31.6e9) for i in range(4)]
    >>> gpus = ("gpu0", "gpu1", "gpu2", "gpu3")
    >>> box = Topology(edges=tuple(edges), gpus=gpus, memory={"socket0": 170e9})
    >>> round(bus_bandwidth(box, ring_all_reduce_flows(box, p2p=False)) / 1e9, 3)
    7.9
    """
    return 1 / slowest(topology, flows).busy
