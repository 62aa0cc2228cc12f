"""GPUs, the links between them, and a cluster as tiers of links from inside out.

A bandwidth is one direction of one GPU. Leaves out: how ranks are placed on wires
inside a node (see `topology`), link failures, and other jobs on the same network.
"""

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property

from commwall.rules import (
    choice,
    flag,
    instance,
    multiple,
    nonnegative,
    positive,
    whole,
)
from commwall.units import Bytes, BytesPerSecond, FlopPerSecond, Seconds, Watts

USUAL_PRODUCT = 0.86
"""Best measured product over the peak, where nobody's measurement was found: that of
an A100 SXM. Cards that run into their power limit reach less."""

USUAL_ATTENTION = 0.6
"""Rate of a fused attention kernel over that of the best product, where nobody's
measurement was found: FlashAttention-2 on an A100, forward and backward. dao2024."""

__all__ = ["GPU", "USUAL_ATTENTION", "USUAL_PRODUCT", "Cluster", "Link", "Tier"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """One GPU's path to its peers.

    `bandwidth` is what large messages achieve, `datasheet` what the wire carries;
    both in one direction. An infinite bandwidth is allowed: it is a useful limit.
    """

    name: str
    bandwidth: BytesPerSecond  # achieved, one direction, per GPU
    latency: Seconds  # one hop of a ring
    source: str  # bibliography key or address
    datasheet: BytesPerSecond | None = None  # on the wire, one direction
    in_network: BytesPerSecond | None = None  # payload/time where the switch sums
    in_network_latency: Seconds | None = None  # one way through it; None: as a hop
    through_host: bool = False  # no peer-to-peer: every hop crosses host memory
    certainty: str = ""  # A measured or read in source, B one source, D derived
    note: str = ""

    def __post_init__(self):
        positive(f"bandwidth of {self.name}", self.bandwidth, infinite=True)
        nonnegative(f"latency of {self.name}", self.latency)
        if self.in_network_latency is not None:
            nonnegative(f"in_network_latency of {self.name}", self.in_network_latency)
        flag(f"through_host of {self.name}", self.through_host)
        for field in ("datasheet", "in_network"):
            if getattr(self, field) is not None:
                positive(f"{field} of {self.name}", getattr(self, field), infinite=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class GPU:
    """One accelerator.

    `compute` is dense bf16 with fp32 accumulation: a GeForce card's larger figures
    accumulate in fp16 or count zeros.
    """

    name: str
    memory: Bytes  # as the driver reports
    compute: FlopPerSecond  # dense bf16 (fp16 where there is none), fp32 accumulation
    memory_bandwidth: BytesPerSecond
    source: str
    product: FlopPerSecond | None = None  # best bf16 product measured; None: unknown
    attention: FlopPerSecond | None = None  # measured of a fused kernel, both passes
    tf32: FlopPerSecond | None = None  # best product of tensor cores on fp32 values
    fp32: FlopPerSecond | None = None  # and without tensor cores
    sms: int = 108  # multiprocessors: how many tiles of a matmul run at once
    tdp: Watts = 0.0  # 0: unknown
    p2p: bool = True  # does the stock driver let PCIe peers talk directly?
    geforce: bool = False  # half rate when accumulating in fp32
    year: int = 0
    launch_price: float | None = None  # US dollars, the maker's list price
    certainty: str = ""
    note: str = ""

    def __post_init__(self):
        for field in ("memory", "memory_bandwidth"):
            positive(f"{field} of {self.name}", getattr(self, field), infinite=True)
        positive(f"compute of {self.name}", self.compute)
        for field in ("product", "attention", "tf32", "fp32"):
            if getattr(self, field) is not None:
                positive(f"{field} of {self.name}", getattr(self, field))
        for field in ("p2p", "geforce"):
            flag(f"{field} of {self.name}", getattr(self, field))
        whole(f"sms of {self.name}", self.sms)
        nonnegative(f"tdp of {self.name}", self.tdp)

    def best_product(self, arithmetic: str = "bf16") -> FlopPerSecond:
        """FLOP/s of the best large product: as measured, else `USUAL_PRODUCT`."""
        if choice("arithmetic", arithmetic, ("bf16", "tf32", "fp32")) == "bf16":
            return self.product or USUAL_PRODUCT * self.compute
        best = getattr(self, arithmetic)
        if best is None:
            raise ValueError(
                f"arithmetic={arithmetic!r} needs a rate that is not known of "
                f"{self.name}; nearest legal value: 'bf16'"
            )
        return best

    @property
    def fused_attention(self) -> FlopPerSecond:
        """FLOP/s of fused attention: as measured, else `USUAL_ATTENTION`."""
        return self.attention or USUAL_ATTENTION * self.best_product()


@dataclass(frozen=True, slots=True)
class Tier:
    """A set of `gpus` that reach each other through one kind of link."""

    gpus: int
    _: KW_ONLY
    link: Link

    def __post_init__(self):
        object.__setattr__(self, "gpus", whole("gpus of a tier", self.gpus))
        instance("link of a tier", self.link, Link)


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """GPUs, and the tiers of links that join them, from inside out.

    The last tier may be a network between nodes; its `link` is one NIC, and a node
    has `nics_per_node` of them.
    """

    gpu: GPU
    gpus: int
    tiers: tuple[Tier, ...]
    gpus_per_node: int = 8
    nics_per_node: int = 1
    p2p: bool | None = None  # None: what the stock driver does
    gpus_per_uplink: int = 1  # GPUs behind one PCIe uplink to the host
    uplink: Link | None = None  # that uplink; needed where it is shared
    name: str = ""
    note: str = ""  # what was assumed

    def __post_init__(self):
        for field in ("gpus", "gpus_per_node", "nics_per_node", "gpus_per_uplink"):
            object.__setattr__(self, field, whole(field, getattr(self, field)))
        instance("gpu", self.gpu, GPU)
        if self.p2p is not None:
            flag("p2p", self.p2p)
        self._check_tiers()
        if self.gpus > self.gpus_per_node:
            per_node = self.gpus_per_node
            multiple("gpus", self.gpus, f"gpus_per_node={per_node}", per_node)
        if self.gpus_per_uplink > 1 and self.uplink is None:
            raise ValueError(
                f"gpus_per_uplink={self.gpus_per_uplink} needs the uplink they share: "
                "give uplink=Link(...)"
            )

    def _check_tiers(self):
        for tier in instance("tiers", self.tiers, tuple):
            instance("tiers", tier, Tier)
        reach = [tier.gpus for tier in self.tiers]
        if reach != sorted(reach):
            raise ValueError(
                f"tiers reach {reach} GPUs, but must go from inside out; "
                f"nearest legal value: {sorted(reach)}"
            )
        if max(reach, default=1) < self.gpus:
            raise ValueError(
                f"tiers reach {max(reach, default=1)} GPUs, but gpus={self.gpus}: "
                "add a tier, such as a network"
            )

    @property
    def nodes(self) -> int:
        """Machines in the cluster."""
        return max(1, self.gpus // self.gpus_per_node)

    @property
    def peer_to_peer(self) -> bool:
        """Whether PCIe peers talk directly: as set, else as the stock driver does."""
        return self.gpu.p2p if self.p2p is None else self.p2p

    @cached_property
    def _links(self) -> dict:
        return {}

    def link_across(self, gpus: int, stride: int = 1) -> Link:
        """The link that a group stretching over `gpus` neighbouring GPUs meets.

        A group takes every `stride`-th GPU of its stretch. Inside a node that is the
        tier wide enough. Between nodes all the node's NICs serve the `stride` groups
        that leave it side by side, and a hop is as slow as the mean of the group's
        hops inside and between nodes. Leaves out: rails that do not line up, an
        oversubscribed network.
        """
        key = whole("gpus", gpus), whole("stride", stride)
        if key not in self._links:
            if gpus > self.gpus:
                raise ValueError(
                    f"gpus={gpus} must be at most the cluster's {self.gpus}; "
                    f"nearest legal value: {self.gpus}"
                )
            inside = gpus <= self.gpus_per_node
            build = self._inside if inside else self._between
            self._links[key] = build(gpus, stride)
        return self._links[key]

    def _inside(self, gpus: int, stride: int) -> Link:
        link = next(tier.link for tier in self.tiers if tier.gpus >= gpus)
        if not link.through_host or self.gpus_per_uplink == 1:
            return link
        share = self.uplink.bandwidth / self.gpus_per_uplink
        return replace(link, bandwidth=min(link.bandwidth, share))

    def _between(self, gpus: int, stride: int) -> Link:
        nic = next(tier.link for tier in self.tiers if tier.gpus >= gpus)
        if nic is self.tiers[0].link:
            return nic  # one domain wider than a node, such as a rack of NVLink
        groups = min(stride, self.gpus_per_node)
        members = self.gpus_per_node // groups
        rails = nic.bandwidth * self.nics_per_node / groups
        inner = self._inside(self.gpus_per_node, stride)
        if members == 1:
            return replace(nic, bandwidth=rails, through_host=inner.through_host)
        return replace(
            nic,
            through_host=inner.through_host,
            bandwidth=min(rails, inner.bandwidth),
            latency=(nic.latency + (members - 1) * inner.latency) / members,
        )

    def link_alone(self, gpus: int) -> Link:
        """The link of one GPU that shares no ring: its own part of the NICs.

        For point-to-point messages and all-to-all, whose bytes do not travel
        together over all the rails of a node.
        """
        return self.link_across(gpus, max(1, self.gpus_per_node))
