"""A box drawn as a few lines of indented text that a reader edits, as a `Topology`.

    socket 0   8x DDR4-3200        # or its memory's GB/s as measured: 170
      switch A   gen4 x16          # lanes of the uplink; a bare x16 is of generation 4
        gpu 0    gen4 x16
        gpu 1    gen4 x4
      gpu 2    24.4                # GB/s of one direction, as measured
    socket 1   8x DDR4-3200
      gpu 3    gen4 x16
    link 0 1   rome                # or GB/s to memory, and GPU to GPU: 90 peer 16
    bridge 0 1 50                  # NVLink between two GPUs, GB/s of one direction
    acs on                         # peers' traffic turns round at the socket

Numbers in GB/s are taken as they stand; the rest comes from constants, the same for all
boxes. PCIe achieves what NCCL counts on, 12 of 15.75 GB/s (nccl-topo), so 24 of Gen4's
31.5 (nccltests-307); memory 0.83 of its data sheet, as STREAM does (azure-hbv3). A
link carries 90 GB/s to memory (nccl-1163), to a GPU what NCCL counts on (nccl-topo).

Leaves out, beside what `topology` does: Gen5 copy engines, which achieve 0.85 to 0.9;
new boxes whose sockets exceed NCCL's figure (rtx6kpro); memory channels left empty.
"""

import re
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean

from commwall.rules import choice, divides, positive, whole
from commwall.topology import Edge, Topology, memory_of
from commwall.units import GB_PER_S, BytesPerSecond

PCIE_LANE = {  # one direction of one lane, after its line code: 8b/10b, 128b/130b, FLIT
    1: 0.25 * GB_PER_S, 2: 0.5 * GB_PER_S, 3: 0.984615 * GB_PER_S,
    4: 1.969231 * GB_PER_S, 5: 3.938462 * GB_PER_S, 6: 7.5625 * GB_PER_S,
}  # fmt: skip
PCIE_ACHIEVED = 12 / 15.754  # nccl-topo: PCI_BW over Gen3 x16
MEMORY_ACHIEVED = 0.83  # azure-hbv3: 330-350 over 2 sockets * 204.8 GB/s
SOCKET_LINK = 90 * GB_PER_S  # nccl-1163: by Intel's Memory Latency Checker
PEER_LINK = {  # nccl-topo: AMD_ZEN12_BW, SRP_QPI_BW, ...
    "broadwell": 6 * GB_PER_S, "skylake": 10 * GB_PER_S,
    "sapphire rapids": 22 * GB_PER_S, "emerald rapids": 40 * GB_PER_S,
    "rome": 16 * GB_PER_S, "milan": 24 * GB_PER_S, "genoa": 24 * GB_PER_S,
    "turin": 32 * GB_PER_S,
}  # fmt: skip

_LANES = re.compile(r"(?:(?:pcie|gen)?\s*(\d+)(?:\.0)?\s+)?(x\d+)", re.I)
_MODULES = re.compile(r"(\d+)\s*x\s*DDR\d-(\d+)", re.I)
_HEAD = re.compile(r"(socket|switch|gpu|link|bridge|acs)(\w*)", re.I)
_WIDTHS = ("x1", "x2", "x4", "x8", "x16", "x32")
_KINDS = ("socket", "switch", "gpu", "link", "bridge", "acs")


def pcie_bandwidth(
    width: int, generation: int, achieved: float = PCIE_ACHIEVED
) -> BytesPerSecond:
    """One direction of a PCIe link: lanes times a lane's rate times `achieved`.

    >>> round(pcie_bandwidth(16, 4, achieved=1) / GB_PER_S, 1)  # 16 * 1.969
    31.5
    """
    return width * PCIE_LANE[generation] * achieved


def memory_bandwidth(
    channels: int, transfers: float, achieved: float = MEMORY_ACHIEVED
) -> BytesPerSecond:
    """Reads and writes together: channels times transfers a second times 8 bytes.

    >>> memory_bandwidth(8, 3200e6, achieved=1) / GB_PER_S  # 8 * 3.2e9 * 8
    204.8
    """
    return channels * transfers * 8 * achieved


def _measured(name: str, words: str, wanted: str) -> BytesPerSecond:
    try:
        return positive(name, float(words.removesuffix("GB/s"))) * GB_PER_S
    except ValueError:
        raise ValueError(f"{name}={words!r} is no bandwidth: give {wanted}") from None


def _speed(name: str, words: str, generation: int, achieved: float) -> BytesPerSecond:
    lanes = _LANES.fullmatch(words)
    if not lanes:
        wanted = "x16, gen5 x8, or GB/s one way such as 24.4"
        return _measured(f"bandwidth of {name}", words, wanted)
    known = tuple(map(str, PCIE_LANE))
    number = choice(f"generation of {name}", lanes[1] or str(generation), known)
    width = choice(f"width of {name}", lanes[2].lower(), _WIDTHS)
    return pcie_bandwidth(int(width[1:]), int(number), achieved)


def _host_memory(name: str, words: str) -> BytesPerSecond:
    modules = _MODULES.fullmatch(words)
    if not modules:
        wanted = "channels such as 8x DDR4-3200, or GB/s such as 170"
        return _measured(f"memory of {name}", words, wanted)
    channels = whole(f"channels of {name}", int(modules[1]))
    return memory_bandwidth(channels, int(modules[2]) * 1e6)


@dataclass
class _Draft:
    """What the lines so far have drawn."""

    generation: int
    achieved: float
    edges: list[Edge] = field(default_factory=list)
    gpus: list[str] = field(default_factory=list)
    memory: dict[str, BytesPerSecond] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    open: list[tuple[int, str]] = field(default_factory=list)  # indents of the branch
    acs: bool = False

    def read(self, line: str) -> None:
        first, *words = line.split()
        head = _HEAD.fullmatch(first)
        kind = head[1].lower() if head else choice("first word", first, _KINDS)
        if kind == "acs":
            self.acs = choice("acs", " ".join(words), ("on", "off")) == "on"
        elif kind in ("link", "bridge"):
            self._join(kind, words)
        else:
            number = head[2] or (words.pop(0) if words else "")
            indent = len(line) - len(line.lstrip())
            self._hang(kind, kind + number, indent, " ".join(words))

    def _join(self, kind: str, words: list[str]) -> None:
        if len(words) < 3:
            raise ValueError(f"{kind} needs two ends and GB/s: '{kind} 0 1 50'")
        end = "socket" if kind == "link" else "gpu"
        known = self.memory if kind == "link" else self.gpus
        names = [end + word if word.isdigit() else word for word in words[:2]]
        a, b = (choice(end, name, known) for name in names)
        rest = " ".join(words[2:])
        if kind == "link" and rest.lower() in PEER_LINK:
            self.edges.append(Edge(a, b, SOCKET_LINK, peer=PEER_LINK[rest.lower()]))
            return
        rate, _, peer = rest.partition(" peer ")
        name = f"{kind} of {a} and {b}"
        wanted = f"GB/s such as 90, 90 peer 16, or for a link {', '.join(PEER_LINK)}"
        slower = _measured(name, peer, wanted) if peer else None
        self.edges.append(Edge(a, b, _measured(name, rate, wanted), peer=slower))

    def _hang(self, kind: str, name: str, indent: int, words: str) -> None:
        if name == kind or name in self.names:
            raise ValueError(f"name={name!r} must be given, and once only")
        while self.open and self.open[-1][0] >= indent:
            self.open.pop()
        above = self.open[-1][1] if self.open else "nothing"
        self.names.add(name)
        self.open.append((indent, name))
        if (kind == "socket") != (above == "nothing") or above in self.gpus:
            rule = "a socket hangs on nothing, all else on a socket or a switch"
            raise ValueError(f"{name} is indented under {above}: {rule}")
        if kind == "socket":
            self.memory[name] = _host_memory(name, words)
            return
        rate = _speed(name, words, self.generation, self.achieved)
        self.edges.append(Edge(above, name, rate))
        self.gpus += [name] if kind == "gpu" else []


def parse(text: str, generation: int = 4, achieved: float = PCIE_ACHIEVED) -> Topology:
    """The box that `text` draws; an error names the line, the field and the rule.

    `achieved=1` computes with the data sheet's PCIe rates.

    >>> parse("socket 0 170" + chr(10) + "  gpu 0 x6")
    Traceback (most recent call last):
    ValueError: line 2: width of gpu0='x6' must be one of x1, x2, x4, \
x8, x16, x32; did you mean 'x16'?
    """
    draft = _Draft(generation, achieved)
    for number, line in enumerate(text.expandtabs().splitlines(), 1):
        drawn = line.partition("#")[0]
        try:
            if drawn.strip():
                draft.read(drawn)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    return Topology(
        edges=tuple(draft.edges),
        gpus=tuple(draft.gpus),
        memory=draft.memory,
        acs=draft.acs,
    )


def box_text(
    gpus: int = 8,
    gpus_per_switch: int = 1,
    sockets: int = 2,
    lane: str = "gen4 x16",
    uplink: str = "gen4 x16",
    socket_link: str = "rome",
    host_memory: str = "8x DDR4-3200",
) -> str:
    """The drawing of a regular box, for a reader to edit; one GPU a switch: none.

    >>> print(box_text(gpus=2, gpus_per_switch=2, sockets=1))
    socket 0  8x DDR4-3200
      switch 0  gen4 x16
        gpu 0  gen4 x16
        gpu 1  gen4 x16
    """
    divides("sockets", whole("sockets", sockets), "gpus", whole("gpus", gpus))
    here = gpus // sockets
    divides("gpus_per_switch", gpus_per_switch, "gpus of a socket", here)
    lines = []
    for gpu in range(gpus):
        switched = gpus_per_switch > 1
        if gpu % here == 0:
            lines.append(f"socket {gpu // here}  {host_memory}")
        if switched and gpu % gpus_per_switch == 0:
            lines.append(f"  switch {gpu // gpus_per_switch}  {uplink}")
        lines.append(f"{'    ' if switched else '  '}gpu {gpu}  {lane}")
    pairs = combinations(range(sockets), 2)
    return "\n".join(lines + [f"link {a} {b}  {socket_link}" for a, b in pairs])


def pcie_box(achieved: float = PCIE_ACHIEVED, **drawing) -> Topology:
    """The regular box that `box_text` draws with the arguments `drawing`."""
    return parse(box_text(**drawing), achieved=achieved)


def positions(topology: Topology) -> dict[str, tuple[float, float]]:
    """A place for each node and memory, to draw the tree in layers.

    GPUs stand side by side at the bottom, a parent above the middle of its children.
    """
    bottom = 1 - max(len(topology.chain(gpu)) for gpu in topology.gpus)
    places = {gpu: (float(x), float(bottom)) for x, gpu in enumerate(topology.gpus)}
    inner = (*topology.memory, *topology.parent)
    for node in sorted(inner, key=lambda node: -len(topology.chain(node))):
        if node not in places:
            below = [places[b][0] for b, a in topology.parent.items() if a == node]
            right = max(x for x, _ in places.values()) + 1
            places[node] = fmean(below or [right]), 1.0 - len(topology.chain(node))
    memories = {memory_of(s): (places[s][0], 1.0) for s in topology.memory}
    return places | memories
