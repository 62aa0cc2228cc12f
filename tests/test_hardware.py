"""GPUs, links and clusters: which link a group of GPUs meets, and what is refused."""

from dataclasses import FrozenInstanceError, replace
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall.hardware import Cluster, Tier
from samples import A100, NIC, NOT_COUNTS, NOT_SIZES, NVLINK, cluster, clusters, faster

POD = cluster(64)
HOST = replace(NIC, name="host", bandwidth=20e9, through_host=True)


def test_inside_a_node_every_group_meets_the_inner_link():
    assert POD.link_across(2) == POD.link_across(8) == POD.link_across(8, 4) == NVLINK


def test_a_ring_of_whole_nodes_uses_all_nics():
    """Eight NICs of 24 GB/s; one hop in eight is between nodes: (4 + 7 * 2) / 8 us."""
    link = POD.link_across(64)

    assert link.bandwidth == 8 * 24e9
    assert link.latency == pytest.approx((4e-6 + 7 * 2e-6) / 8)


def test_a_ring_with_one_gpu_in_each_node_has_its_share_of_the_nics():
    """Stride 8: eight rings leave each node side by side, one NIC each."""
    assert POD.link_across(64, stride=8) == NIC
    assert cluster(64, nics=1).link_across(64, 8).bandwidth == NIC.bandwidth / 8


def test_stride_shares_the_nics_among_the_rings_of_a_node():
    bandwidths = [POD.link_across(64, stride).bandwidth for stride in (1, 2, 4, 8, 16)]

    assert bandwidths == [8 * 24e9, 4 * 24e9, 2 * 24e9, 24e9, 24e9]


def test_a_ring_is_never_faster_than_its_slowest_part():
    thin = replace(NVLINK, bandwidth=10e9)

    machine = cluster(64, inside=thin)
    assert machine.link_across(64).bandwidth == 10e9
    assert machine.link_across(64, stride=8) == NIC  # never meets the inner link


def test_a_message_of_its_own_has_one_gpus_share_of_the_nics():
    assert POD.link_alone(64).bandwidth == 24e9
    assert POD.link_alone(8) == NVLINK


def test_a_rack_of_one_fabric_has_no_network():
    rack = Cluster(gpu=A100, gpus=72, gpus_per_node=4, tiers=(Tier(72, link=NVLINK),))

    assert rack.link_across(72) == rack.link_across(72, 4) == NVLINK
    assert rack.nodes == 18


def test_gpus_behind_one_uplink_share_it_when_they_cross_the_host():
    """Two cards on a 24 GB/s uplink: 12 GB/s each, though the copy alone makes 20."""
    box = Cluster(gpu=A100, gpus=8, tiers=(Tier(8, link=HOST),), gpus_per_uplink=2,
                  uplink=NIC)  # fmt: skip

    assert box.link_across(8).bandwidth == 12e9
    assert replace(box, gpus_per_uplink=1).link_across(8) == HOST


def test_peer_to_peer_is_what_the_driver_does_unless_said():
    geforce = replace(A100, p2p=False)

    assert POD.peer_to_peer
    assert not cluster(8, gpu=geforce).peer_to_peer
    assert replace(cluster(8, gpu=geforce), p2p=True).peer_to_peer


def test_cards_without_peers_cross_host_memory_between_nodes_as_well():
    boxes = cluster(64, inside=HOST)
    assert boxes.link_across(64).through_host
    assert boxes.link_across(64, 8).through_host
    assert not POD.link_across(64).through_host


def test_nodes_are_counted_and_a_part_of_one_is_one():
    assert POD.nodes == 8
    assert cluster(4).nodes == 1


@given(
    data=st.data(), gpus=st.sampled_from([1, 4, 8, 16, 48]), factor=st.floats(1, 100)
)
def test_a_faster_link_never_makes_a_group_slower(data, gpus, factor):
    machine = data.draw(clusters(gpus))
    span = data.draw(st.integers(1, gpus))
    stride = data.draw(st.integers(1, 16))
    tiers = machine.tiers
    for place in range(len(tiers)):
        quick = replace(tiers[place], link=faster(tiers[place].link, factor))
        better = replace(machine, tiers=(*tiers[:place], quick, *tiers[place + 1 :]))
        before, after = (each.link_across(span, stride) for each in (machine, better))
        assert after.bandwidth >= before.bandwidth
        assert after.latency == before.latency


@given(data=st.data(), gpus=st.sampled_from([8, 16, 48]))
def test_farther_groups_never_meet_a_faster_link(data, gpus):
    """As long as the network is the slower of the two."""
    machine = data.draw(clusters(gpus))
    inner, outer = (tier.link for tier in machine.tiers)
    slow = replace(outer, bandwidth=min(inner.bandwidth, outer.bandwidth))
    machine = replace(machine, tiers=(machine.tiers[0], Tier(gpus, link=slow)))
    near = machine.link_across(machine.gpus_per_node)

    assert machine.link_across(gpus).bandwidth <= near.bandwidth


def test_infinite_bandwidth_is_a_legal_limit():
    free = replace(NVLINK, bandwidth=inf, latency=0)

    assert cluster(64, inside=free, between=free).link_across(64).bandwidth == inf


@pytest.mark.parametrize("value", NOT_SIZES, ids=repr)
@pytest.mark.parametrize("field", ["bandwidth", "latency", "datasheet", "in_network"])
def test_a_link_refuses_what_is_not_a_size(field, value):
    limits = [] if field == "latency" else ["inf"]
    unknown = ["None"] if field in ("datasheet", "in_network") else []
    if repr(value) in limits + unknown:
        assert replace(NVLINK, **{field: value})
        return
    with pytest.raises(ValueError, match=f"^{field} of NVLink="):
        replace(NVLINK, **{field: value})


@pytest.mark.parametrize("value", NOT_SIZES, ids=repr)
@pytest.mark.parametrize("field", ["memory", "compute", "memory_bandwidth", "tdp"])
def test_a_gpu_refuses_what_is_not_a_size(field, value):
    if repr(value) == "inf" and field.startswith("memory"):
        assert replace(A100, **{field: value})
        return
    with pytest.raises(ValueError, match=f"^{field} of A100="):
        replace(A100, **{field: value})


@pytest.mark.parametrize("value", NOT_COUNTS, ids=repr)
@pytest.mark.parametrize(
    "field", ["gpus", "gpus_per_node", "nics_per_node", "gpus_per_uplink"]
)
def test_a_cluster_refuses_what_is_not_a_count(field, value):
    with pytest.raises(ValueError, match=rf"^{field}=.*nearest legal value"):
        replace(POD, **{field: value})
    with pytest.raises(ValueError, match=r"^gpus of a tier="):
        Tier(value, link=NVLINK)
    with pytest.raises(ValueError, match=r"^sms of A100="):
        replace(A100, sms=value)


@pytest.mark.parametrize("value", NOT_COUNTS, ids=repr)
def test_a_span_refuses_what_is_not_a_count(value):
    POD.link_across(2, 2)  # now 2 is known, and 2.0 would be found as 2

    with pytest.raises(ValueError, match=r"^gpus="):
        POD.link_across(value)
    with pytest.raises(ValueError, match=r"^stride="):
        POD.link_across(2, value)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: cluster(12),
            r"gpus=12 is not a multiple of gpus_per_node=8; .*: 8, 16",
        ),
        (lambda: POD.link_across(65), "gpus=65 must be at most .* value: 64"),
        (lambda: replace(POD, tiers=POD.tiers[:1]), "tiers reach 8 GPUs, but gpus=64"),
        (lambda: replace(POD, tiers=POD.tiers[::-1]), "from inside out; .*: .8, 64."),
        (lambda: replace(POD, tiers=POD.tiers[0]), "must be a tuple"),
        (lambda: replace(POD, tiers=()), "tiers reach 1 GPUs, but gpus=64"),
        (lambda: replace(POD, gpus_per_uplink=2), "gpus_per_uplink=2 needs the uplink"),
        (lambda: replace(POD, gpu="A100"), "gpu='A100' must be a GPU"),
        (lambda: replace(POD, p2p="off"), "p2p='off' must be True or False"),
        (lambda: Tier(8, link="NVLink 3"), "link of a tier='NVLink 3' must be a Link"),
    ],
)
def test_what_does_not_fit_together_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_numpy_integers_count_as_whole_numbers():
    assert replace(POD, gpus=np.int64(64), gpus_per_node=np.int16(8)) == POD


@pytest.mark.parametrize(
    ("thing", "field"),
    [(NVLINK, "bandwidth"), (A100, "memory"), (POD, "gpus"), (POD.tiers[0], "link")],
)
def test_hardware_does_not_change(thing, field):
    with pytest.raises(FrozenInstanceError):
        setattr(thing, field, 1)
