"""Figures for the article's section 2: PCIe and NVLink."""

from math import isclose, log10

from commwall.article.layer import wire
from commwall.catalog import RTX_4090, cluster, data_sheet, gpu_names, link
from commwall.rules import choice
from commwall.units import GB_PER_S, MB, MILLISECOND, Bytes, BytesPerSecond, Seconds

NODE = 8
OTHER_MAKERS = ("MI", "TPU")
SNIPPET_PAYLOAD = 1.8 * MB


def kind(name: str) -> str:
    """Kind of a link of the catalog: pcie, nvlink, infiniband, ..."""
    return data_sheet("link", name)["kind"]


def nvidia_nodes_use_the_two() -> bool:
    """Whether every NVIDIA node of the catalog is joined by PCIe or NVLink."""
    names = [name for name in gpu_names() if not name.startswith(OTHER_MAKERS)]
    joined = [cluster(name, NODE).link_across(NODE).name for name in names]
    return all(kind(name) in ("pcie", "nvlink") for name in joined)


def kinds_of_links() -> int:
    """Kinds of links between accelerators that are neither PCIe nor NVLink."""
    nodes = ("RTX 4090", "H100 SXM5", "MI300X", "TPU v4")
    inside = {kind(cluster(name, NODE).link_across(NODE).name) for name in nodes}
    between = {kind(data_sheet("gpu", name)["network"]) for name in nodes[:3]}
    return len((inside | between) - {"pcie", "nvlink"})


def has_only_pcie(gpu: str = "RTX 4090") -> bool:
    """Whether a card has PCIe 4.0 x16, and neither NVLink nor a bridge."""
    row = data_sheet("gpu", gpu)
    return row["pcie"] == "PCIe 4.0 x16" and not (row["scale_up"] or row["bridge"])


def talks_to_peers() -> bool:
    """Whether the stock driver lets RTX 4090s talk over PCIe without the host."""
    return RTX_4090.p2p


def has_link(gpu: str, name: str) -> bool:
    """Whether eight of these GPUs are joined by that link."""
    return cluster(gpu, NODE).link_across(NODE) is link(name)


def both_directions(name: str = "NVLink 4") -> BytesPerSecond:
    """What the maker prints: both directions of a link added."""
    return 2 * wire(name)


def in_the_switch(name: str = "NVLink 4") -> BytesPerSecond:
    """Payload a second of an all-reduce that the switch adds up."""
    return link(name).in_network


def times(
    name: str = "NVLink 4", base: str = "PCIe 4.0 x16", bandwidth: str = "datasheet"
) -> float:
    """One link's bandwidth over another's, both counted in the same way."""
    return wire(name, bandwidth) / wire(base, bandwidth)


def orders_of_magnitude(name: str = "NVLink 4", base: str = "PCIe 4.0 x16") -> float:
    """The same on a scale of tens."""
    return log10(times(name, base))


def raw_both_directions(name: str = "PCIe 4.0 x16") -> BytesPerSecond:
    """Lanes times transfers a second, both directions, before the line code."""
    row = data_sheet("link", name)
    return 2 * int(row["lanes"]) * float(row["lane_rate"]) * 1e9 / 8


def carried(bandwidth: float = 900, seconds: Seconds = MILLISECOND) -> Bytes:
    """Bytes that so many GB/s carry in a time."""
    return bandwidth * GB_PER_S * seconds


def seconds_for_snippet_payload(bandwidth: float = 900) -> Seconds:
    """What 1.8 MB take at so many GB/s."""
    return SNIPPET_PAYLOAD / (bandwidth * GB_PER_S)


def snippet_share(bandwidth: float = 64, compute_time: float = 1e-3) -> float:
    """The article's own formula, letter by letter: 1.8 / 64 is in milliseconds."""
    transfer_time = 1.8 / bandwidth
    return transfer_time / (transfer_time + compute_time)


def repaired_share(bandwidth: BytesPerSecond = 64e9) -> float:
    """The same in SI: 1.8 MB beside a millisecond of computing."""
    return serial_share(SNIPPET_PAYLOAD / bandwidth, MILLISECOND)


def repaired_share_one_way() -> float:
    """The same with one direction of PCIe 4.0, as its data sheet has it."""
    return repaired_share(wire("PCIe 4.0 x16"))


def share_for_a_gigabyte(bandwidth: BytesPerSecond = 64e9) -> float:
    """Share of communication if the millisecond's payload were 1.8 GB."""
    return serial_share(1000 * SNIPPET_PAYLOAD / bandwidth, MILLISECOND)


def unit_slip() -> float:
    """One millisecond in the unit of the other addend, over what is written."""
    written, unit_of_the_other = 1e-3, MILLISECOND
    return MILLISECOND / unit_of_the_other / written


def serial_share(communication: Seconds, compute: Seconds) -> float:
    """Share of communication where nothing overlaps."""
    return communication / (communication + compute)


def formula_is_serial() -> bool:
    """Whether the article's formula, in one unit, is `serial_share`."""
    return isclose(snippet_share(64, compute_time=1.0), repaired_share(64e9))


def exposed_share(communication: Seconds, compute: Seconds) -> float:
    """Share of communication that shows where everything could overlap."""
    return max(0.0, communication - compute) / max(communication, compute)


def share(way: str, communication: Seconds, compute: Seconds) -> float:
    """Either of the two."""
    ways = {"serial": serial_share, "exposed": exposed_share}
    return ways[choice("way", way, ways)](communication, compute)
