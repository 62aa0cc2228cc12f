"""Clusters of catalog GPUs as they are usually built, with a note on what was assumed.

Leaves out: sockets, switches and slots of a box (see `boxes`), mixed GPUs, rails that
do not line up.
"""

from commwall.catalog.tables import gpu, link, row_of
from commwall.hardware import GPU, Cluster, Link, Tier
from commwall.rules import whole

_BOARD = 8  # a domain of more GPUs is a rack or a pod, and keeps its size


def cluster(
    gpu_name: str,
    gpus: int,
    gpus_per_node: int = 8,
    network: str | Link | None = None,
    p2p: bool | None = None,
    *,
    inside: str | None = None,
    nics_per_node: int | None = None,
    gpus_per_uplink: int = 1,
) -> Cluster:
    """GPUs of one kind in equal nodes; `note` says what was assumed.

    `network` and `nics_per_node` are what such nodes usually have, `p2p` is what the
    stock driver does with PCIe peers, and `inside` is a bridge that joins pairs.

    >>> cluster("RTX 4090", 16).note.split("; ")[1]
    'assumed network: 1 x 10 GbE (TCP) a node'
    """
    card, row = gpu(gpu_name), row_of("gpu", gpu_name)
    tiers, notes = _node(card, row, whole("gpus_per_node", gpus_per_node), p2p, inside)
    nics = _nics(row, gpus_per_node, nics_per_node)
    if whole("gpus", gpus) > tiers[-1].gpus:
        tiers.append(Tier(gpus, link=_network(row, network)))
        if network is None or nics_per_node is None:
            what = "network" if network is None else "NICs"
            notes.append(f"assumed {what}: {nics} x {tiers[-1].link.name} a node")
    return Cluster(
        gpu=card,
        gpus=gpus,
        tiers=tuple(tiers),
        gpus_per_node=gpus_per_node,
        nics_per_node=nics,
        p2p=p2p,
        gpus_per_uplink=gpus_per_uplink,
        uplink=link(row["pcie"]) if gpus_per_uplink != 1 and row["pcie"] else None,
        name=f"{gpus} x {card.name}",
        note="; ".join(notes),
    )


def _node(
    card: GPU, row: dict[str, str], node: int, p2p: bool | None, inside: str | None
) -> tuple[list[Tier], list[str]]:
    """Tiers of a node from inside out, and notes on them."""
    direct, note = _peers(card, p2p)
    bridge = None if inside is None else _bridge(row, inside, node)
    if row["scale_up"]:
        return _scale_up(row["scale_up"], node)
    if bridge and node == 2:
        return [bridge], []
    pcie = Tier(node, link=link(row["pcie" if direct else "pcie_host"]))
    return ([bridge, pcie] if bridge else [pcie]), [note]


def _scale_up(ladder: str, node: int) -> tuple[list[Tier], list[str]]:
    """Tiers of "2:one link; 8:another", the last of them over the whole node."""
    steps = [step.split(":") for step in ladder.split("; ")]
    sizes = {int(size): link(name) for size, name in steps}
    widest = max(sizes)
    top = node if widest <= _BOARD else max(widest, node)
    last = next((own for size, own in sizes.items() if size >= top), sizes[widest])
    inner = [
        Tier(size, link=own)
        for size, own in sizes.items()
        if size < top and own is not last
    ]
    over = f"assumed: {last.name} over {node} GPUs, of which {widest} are sold joined"
    return [*inner, Tier(top, link=last)], [over] if node > widest else []


def _peers(card: GPU, p2p: bool | None) -> tuple[bool, str]:
    """Whether PCIe peers talk directly, and a note on why."""
    if p2p not in (None, True, False):
        raise ValueError(
            f"p2p={p2p!r} must be True, False, or None: what the stock driver does"
        )
    direct = card.p2p if p2p is None else bool(p2p)
    if direct == card.p2p:
        state = "on" if direct else "off: the stock driver refuses it"
    else:
        state = "on: needs a patched driver" if direct else "off, as asked"
    return direct, f"peer to peer over PCIe is {state}"


def _bridge(row: dict[str, str], inside: str, node: int) -> Tier:
    """The pair that a bridge joins."""
    own = row["bridge"]
    if not own or link(inside) is not link(own):
        legal = f"its bridge is {own!r}" if own else "it has none: leave inside=None"
        raise ValueError(f"inside={inside!r} is no bridge of {row['name']}; {legal}")
    if node < 2:
        raise ValueError(
            f"gpus_per_node={node} leaves nothing to bridge; nearest legal value: 2"
        )
    return Tier(2, link=link(own))


def _network(row: dict[str, str], network: str | Link | None) -> Link:
    if isinstance(network, Link):
        return network
    if network is None and not row["network"]:
        raise ValueError(
            f"network=None, and {row['name']} has no usual network in the catalog: "
            "give one, such as 'InfiniBand NDR 400'"
        )
    return link(row["network"] if network is None else network)


def _nics(row: dict[str, str], node: int, nics_per_node: int | None) -> int:
    """NICs of a node: as given, else as usual, one a node for PCIe boxes."""
    if nics_per_node is not None:
        return whole("nics_per_node", nics_per_node)
    return max(1, round(float(row["nics_per_gpu"] or 0) * node))
