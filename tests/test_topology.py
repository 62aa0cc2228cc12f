"""Flows over a tree: loads counted by hand, and what public threads report."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall.boxes import parse, pcie_bandwidth, pcie_box
from commwall.hardware import GPU, Cluster, Link, Tier
from commwall.topology import (
    Edge,
    Topology,
    all_to_all_flows,
    bus_bandwidth,
    pair_flows,
    ring_all_reduce_flows,
    slowest,
    usage,
)

DATASHEET = pcie_bandwidth(16, 4, achieved=1)  # 31.5 GB/s each way
ROOMY = {"host_memory": "10000", "socket_link": "1000"}  # GB/s: never the slowest
ONE_UPLINK = pcie_box(gpus=4, gpus_per_switch=4, sockets=1, achieved=1, **ROOMY)
TWO_UPLINKS = pcie_box(gpus=8, gpus_per_switch=4, sockets=2, achieved=1, **ROOMY)
ZIGZAG = [f"gpu{i}" for i in (0, 4, 1, 5, 2, 6, 3, 7)]

boxes = st.builds(
    lambda sockets, switches, cards, lane, uplink: pcie_box(
        gpus=sockets * switches * cards,
        gpus_per_switch=cards,
        sockets=sockets,
        lane=lane,
        uplink=uplink,
        socket_link="90",
    ),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(2, 4),
    st.sampled_from(["gen3 x16", "gen4 x8", "gen4 x16", "gen5 x16"]),
    st.sampled_from(["gen3 x16", "gen4 x8", "gen4 x16", "gen5 x16"]),
)


def loads(topology, flows):
    return {use.name: use.load for use in usage(topology, flows)}


def scaled(topology, factor):
    edges = tuple(
        replace(e, bandwidth=e.bandwidth * factor, peer=e.peer and e.peer * factor)
        for e in topology.edges
    )
    memory = {socket: rate * factor for socket, rate in topology.memory.items()}
    return replace(topology, edges=edges, memory=memory)


@pytest.mark.parametrize(("p2p", "carried"), [(True, 16e9), (False, 90e9)])
def test_a_link_that_is_slower_for_peers_carries_what_they_get(p2p, carried):
    """EPYC Rome: 90 GB/s to the other side's memory, 16 from card to card."""
    box = pcie_box()
    uses = {use.name: use for use in usage(box, ring_all_reduce_flows(box, p2p=p2p))}
    between = uses["socket0 -> socket1"]

    assert between.bandwidth == 90e9
    assert between.carried == pytest.approx(carried)
    assert between.load / between.busy == pytest.approx(carried)


def test_what_nothing_crosses_carries_its_bandwidth():
    box = pcie_box()
    uses = usage(box, pair_flows(box, "gpu0", "gpu1", p2p=True))
    idle = [use for use in uses if not use.busy]

    assert idle
    assert all(use.carried == use.bandwidth for use in idle)


def test_four_cards_behind_one_uplink_get_a_quarter_each_without_p2p():
    """Four flows climb the uplink and four come down it: 31.5 / 4 = 7.9 GB/s."""
    flows = ring_all_reduce_flows(ONE_UPLINK, p2p=False)

    assert bus_bandwidth(ONE_UPLINK, flows) == pytest.approx(7.877e9, rel=1e-3)
    assert {"socket0", "switch0"} == set(slowest(ONE_UPLINK, flows).ends)
    assert loads(ONE_UPLINK, flows)["switch0 -> socket0"] == 4
    assert loads(ONE_UPLINK, flows)["memory of socket0"] == 8  # written and read


def test_with_p2p_the_same_cards_get_the_whole_lane_and_leave_the_uplink_idle():
    flows = ring_all_reduce_flows(ONE_UPLINK)

    assert bus_bandwidth(ONE_UPLINK, flows) == pytest.approx(DATASHEET)
    assert loads(ONE_UPLINK, flows)["switch0 -> socket0"] == 0


@given(boxes)
def test_a_ring_in_tree_order_crosses_every_uplink_at_most_once_each_way(box):
    flows = ring_all_reduce_flows(box)

    assert all(use.load <= 1 + 1e-9 for use in usage(box, flows))


def test_a_ring_that_jumps_between_sockets_crosses_each_uplink_at_every_hop():
    """Four cards on a switch send up at every hop: 4 on the uplink instead of 1."""
    good = ring_all_reduce_flows(TWO_UPLINKS)
    bad = ring_all_reduce_flows(TWO_UPLINKS, ZIGZAG)

    assert loads(TWO_UPLINKS, good)["switch0 -> socket0"] == 1
    assert loads(TWO_UPLINKS, bad)["switch0 -> socket0"] == 4
    ratio = bus_bandwidth(TWO_UPLINKS, good) / bus_bandwidth(TWO_UPLINKS, bad)
    assert ratio == pytest.approx(4)


def test_the_close_pair_is_half_as_fast_as_the_far_pair_without_p2p():
    """nccl-1086: GPU 0 and 1 use the link of CPU and switch twice in each direction."""
    near = ring_all_reduce_flows(TWO_UPLINKS, ["gpu0", "gpu1"], p2p=False)
    far = ring_all_reduce_flows(TWO_UPLINKS, ["gpu0", "gpu4"], p2p=False)

    assert loads(TWO_UPLINKS, near)["switch0 -> socket0"] == 2
    ratio = bus_bandwidth(TWO_UPLINKS, far) / bus_bandwidth(TWO_UPLINKS, near)
    assert ratio == pytest.approx(2)


def test_access_control_sends_the_close_pair_up_to_the_socket():
    """rtx6kpro: 103 GB/s both ways with ACS off, 50 with ACS on."""
    guarded = replace(TWO_UPLINKS, acs=True)
    both = pair_flows(guarded, "gpu0", "gpu1", bidirectional=True)
    ratio = bus_bandwidth(TWO_UPLINKS, both) / bus_bandwidth(guarded, both)

    assert ratio == pytest.approx(2)
    far = pair_flows(guarded, "gpu0", "gpu4")
    assert bus_bandwidth(guarded, far) == bus_bandwidth(TWO_UPLINKS, far)


def test_both_ways_do_not_double_where_host_memory_is_narrow():
    """Two channels of DDR4-3200: 42.5 GB/s; one way asks for 2 bytes, both for 4."""
    box = pcie_box(gpus=2, sockets=1, host_memory="2x DDR4-3200")
    one = bus_bandwidth(box, pair_flows(box, "gpu0", "gpu1", p2p=False))
    both = bus_bandwidth(
        box, pair_flows(box, "gpu0", "gpu1", p2p=False, bidirectional=True)
    )

    assert one == pytest.approx(42.5e9 / 2, rel=1e-3)
    assert 2 * both == pytest.approx(one)
    peers = [
        bus_bandwidth(box, pair_flows(box, "gpu0", "gpu1", bidirectional=twice))
        for twice in (False, True)
    ]
    assert peers[0] == peers[1]  # each way: the sum doubles


def test_eight_cards_of_two_sockets_are_bound_by_memory_as_a_maintainer_says():
    """nccl-1639: "8 flows in both directions": 4 writes + 4 reads a socket."""
    box = pcie_box(lane="gen5 x16", host_memory="8x DDR5-4800")
    flows = ring_all_reduce_flows(box, p2p=False)

    assert loads(box, flows)["memory of socket0"] == 8
    assert slowest(box, flows).name.startswith("memory of socket")
    assert bus_bandwidth(box, flows) == pytest.approx(0.83 * 307.2e9 / 8)


def test_spreading_four_cards_over_two_sockets_is_faster_without_p2p():
    """nccl-1130: 24 GB/s on one socket, 35 over two."""
    box = pcie_box(lane="gen5 x16", host_memory="8x DDR5-4800")
    together, apart = (
        bus_bandwidth(
            box, ring_all_reduce_flows(box, [f"gpu{i}" for i in cards], p2p=False)
        )
        for cards in ((0, 1, 2, 3), (0, 1, 6, 7))
    )

    assert apart > 1.3 * together


def test_all_to_all_collapses_on_a_shared_uplink_where_the_ring_does_not():
    """Each of 4 cards sends 4/7 of its bytes across: 16/7 on the uplink, not 1."""
    everyone = all_to_all_flows(TWO_UPLINKS)

    uplink = loads(TWO_UPLINKS, everyone)["switch0 -> socket0"]
    assert uplink == pytest.approx(16 / 7)
    assert bus_bandwidth(TWO_UPLINKS, everyone) == pytest.approx(DATASHEET * 7 / 16)
    ring = ring_all_reduce_flows(TWO_UPLINKS)
    assert bus_bandwidth(TWO_UPLINKS, ring) == pytest.approx(DATASHEET)


@pytest.mark.parametrize("p2p", [True, False])
def test_one_x4_slot_makes_the_whole_ring_a_quarter(p2p):
    lines = "\n".join(f"  gpu {i} x{4 if i == 5 else 16}" for i in range(8))
    narrow = parse("socket 0 10000\n" + lines)
    wide = pcie_box(gpus=8, sockets=1, host_memory="10000")
    ring = ring_all_reduce_flows(wide, p2p=p2p)

    ratio = bus_bandwidth(narrow, ring) / bus_bandwidth(wide, ring)

    assert ratio == pytest.approx(1 / 4)
    assert "gpu5" in slowest(narrow, ring).ends


def test_a_bridge_carries_its_pair_and_the_ring_still_waits_for_pcie():
    """nccl-tests-178: a bridged pair 208 GB/s, with a third GPU outside it 20."""
    slots = "\n".join(f"  gpu {i} gen4 x16" for i in range(3))
    box = parse("socket 0 8x DDR4-3200\n" + slots + "\nbridge 0 1 240")
    pair = ring_all_reduce_flows(box, ["gpu0", "gpu1"], p2p=False)
    three = ring_all_reduce_flows(box)

    assert bus_bandwidth(box, pair) == pytest.approx(240e9)
    assert bus_bandwidth(box, three) == pytest.approx(24e9, rel=1e-3)


def test_two_opposite_rings_help_only_where_bridges_leave_directions_free():
    """0=1-2=3: one ring uses gpu0's slot inwards only, its opposite outwards."""
    slots = "\n".join(f"  gpu {i} gen4 x16" for i in range(4))
    plain = parse("socket 0 10000\n" + slots)
    bridged = parse("socket 0 10000\n" + slots + "\nbridge 0 1 500\nbridge 2 3 500")
    gains = [
        bus_bandwidth(box, ring_all_reduce_flows(box, both_ways=True))
        / bus_bandwidth(box, ring_all_reduce_flows(box))
        for box in (plain, bridged)
    ]

    assert gains == pytest.approx([1, 2])


def test_peers_between_sockets_meet_the_slower_figure_and_memory_traffic_the_faster():
    box = pcie_box(lane="gen5 x16", socket_link="90 peer 16", host_memory="10000")
    peers = ring_all_reduce_flows(box)
    staged = ring_all_reduce_flows(box, p2p=False)

    assert bus_bandwidth(box, peers) == pytest.approx(16e9)
    assert bus_bandwidth(box, staged) == pytest.approx(48e9, rel=1e-3)


def test_peers_of_one_switch_only_is_what_nccl_does_by_default():
    flows = ring_all_reduce_flows(TWO_UPLINKS, p2p="switch")

    staged = {(f.source, f.target): f.through for f in flows if f.through}
    assert staged == {("gpu3", "gpu4"): "socket1", ("gpu7", "gpu0"): "socket0"}


def test_the_quarter_is_what_a_cluster_with_a_shared_uplink_computes():
    """`hardware.Cluster` knows only the count behind an uplink: the same 31.5 / 4."""
    card = GPU(name="card", memory=1, compute=1, memory_bandwidth=1, source="x")
    lane = {"name": "lane", "bandwidth": DATASHEET, "latency": 0, "source": "x"}
    cluster = Cluster(
        gpu=card,
        gpus=4,
        tiers=(Tier(4, link=Link(**lane, through_host=True)),),
        gpus_per_uplink=4,
        uplink=Link(**lane),
    )
    flows = ring_all_reduce_flows(ONE_UPLINK, p2p=False)

    assert cluster.link_across(4).bandwidth == pytest.approx(
        bus_bandwidth(ONE_UPLINK, flows)
    )


@given(boxes, st.floats(1e-3, 1e3), st.sampled_from([True, False, "switch"]))
def test_bandwidth_scales_with_every_edge(box, factor, p2p):
    """A dimension check: every rate times k, the answer times k."""
    for flows in (ring_all_reduce_flows(box, p2p=p2p), all_to_all_flows(box, p2p=p2p)):
        assert bus_bandwidth(scaled(box, factor), flows) == pytest.approx(
            factor * bus_bandwidth(box, flows)
        )


@given(boxes)
def test_peer_to_peer_never_loses_where_peers_are_not_held_back(box):
    for pattern in (ring_all_reduce_flows, all_to_all_flows):
        with_p2p, without = (
            bus_bandwidth(box, pattern(box, p2p=p2p)) for p2p in (True, False)
        )
        assert with_p2p >= without * (1 - 1e-9)


@given(boxes, st.booleans())
def test_what_leaves_a_card_is_one_byte_and_the_busiest_use_is_full(box, p2p):
    for pattern in (ring_all_reduce_flows, all_to_all_flows):
        uses = usage(box, pattern(box, p2p=p2p))
        sent = {use.name: use.load for use in uses}
        for gpu in box.gpus:
            assert sent[f"{gpu} -> {box.parent[gpu]}"] == pytest.approx(1)
        assert max(use.utilisation for use in uses) == 1


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda box: ring_all_reduce_flows(box, ["gpu0"]), "at least two different"),
        (lambda box: ring_all_reduce_flows(box, ["gpu0", "gpu0"]), "two different"),
        (lambda box: pair_flows(box, "gpu0", "gpu44"), "did you mean 'gpu4'"),
        (lambda box: all_to_all_flows(box, p2p="sys"), "p2p='sys' must be True, False"),
    ],
)
def test_errors_name_the_field_the_value_and_the_rule(call, error):
    with pytest.raises(ValueError, match=error):
        call(TWO_UPLINKS)


def test_a_topology_needs_links_between_sockets_and_a_socket_above_each_gpu():
    slots = (Edge("socket0", "gpu0", 1.0), Edge("socket1", "gpu1", 1.0))
    sockets = {"socket0": 1.0, "socket1": 1.0}
    with pytest.raises(ValueError, match="socket0 and socket1 have no link"):
        Topology(edges=slots, gpus=("gpu0", "gpu1"), memory=sockets)
    with pytest.raises(ValueError, match="top of gpu1='socket1' must be one of"):
        Topology(edges=slots, gpus=("gpu0", "gpu1"), memory={"socket0": 1.0})
    with pytest.raises(ValueError, match="bandwidth of socket0 - gpu0=0"):
        Edge("socket0", "gpu0", 0)
