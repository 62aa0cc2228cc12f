"""The drawing of a box: what readers write, and the errors they get."""

import pytest

from commwall.boxes import (
    PCIE_ACHIEVED,
    box_text,
    memory_bandwidth,
    parse,
    pcie_bandwidth,
    pcie_box,
    positions,
)
from commwall.topology import memory_of, ring_all_reduce_flows, usage

DRAWING = """
socket 0   8x DDR4-3200        # memory
  switch A   gen4 x16
    gpu 0    PCIe 4.0 x16
    gpu 1    x4
  gpu 2    24.4
socket 1   170 GB/s
  gpu3     gen5 x16
link 0 1   90 peer 16
bridge 0 1 50
acs on
"""


@pytest.mark.parametrize(
    ("width", "generation", "published"),
    [(16, 3, 15.754), (16, 4, 31.508), (8, 4, 15.754), (4, 4, 7.877), (16, 5, 63.015)],
)
def test_pcie_data_sheet_rates(width, generation, published):
    """facts/links.csv: GT/s times lanes times 128/130, over 8 bits."""
    rate = pcie_bandwidth(width, generation, achieved=1)

    assert rate == pytest.approx(published * 1e9, rel=1e-4)


def test_the_achieved_fraction_makes_24_of_gen4_as_nccl_logs():
    """nccl-tests-307 prints PCI[24.0] for a Gen4 x16 slot."""
    assert pcie_bandwidth(16, 4) == pytest.approx(24.0e9, rel=1e-3)


def test_memory_is_channels_times_rate():
    """azure-hbv3: 330-350 GB/s by STREAM on two sockets of 8x DDR4-3200."""
    assert 330e9 < 2 * memory_bandwidth(8, 3200e6) < 350e9


def test_a_drawing_is_read_as_written():
    box = parse(DRAWING)
    rates = {ends: edge.bandwidth for ends, edge in box.edge.items()}

    assert box.gpus == ("gpu0", "gpu1", "gpu2", "gpu3")
    assert box.acs
    assert box.chain("gpu1") == ("gpu1", "switchA", "socket0")
    assert rates["gpu0", "switchA"] == pcie_bandwidth(16, 4)
    assert rates["gpu1", "switchA"] == pcie_bandwidth(4, 4)
    assert rates["gpu2", "socket0"] == 24.4e9
    assert rates["gpu3", "socket1"] == pcie_bandwidth(16, 5)
    assert rates["gpu0", "gpu1"] == 50e9
    link = box.edge["socket1", "socket0"]
    assert (link.bandwidth, link.peer) == (90e9, 16e9)
    assert box.memory == {"socket0": memory_bandwidth(8, 3200e6), "socket1": 170e9}


def test_a_link_may_name_its_cpu():
    """nccl-topo: SRP_QPI_BW 22.0."""
    lines = "socket 0 170\nsocket 1 170\n gpu 0 x16\nlink 0 1 Sapphire Rapids"
    link = parse(lines).edge["socket0", "socket1"]

    assert (link.bandwidth, link.peer) == (90e9, 22e9)


def test_the_data_sheet_and_another_generation_are_a_choice_of_the_reader():
    text = "socket 0 170\n  gpu 0 x16"

    slot = parse(text, generation=5, achieved=1).edge["gpu0", "socket0"]

    assert slot.bandwidth == pcie_bandwidth(16, 5, achieved=1)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("sokcet 0 170", "line 1: first word='sokcet' must be one of .*'socket'"),
        ("socket 0 lots", "line 1: memory of socket0='lots' is no bandwidth"),
        ("socket 0 0x DDR4-3200", "line 1: channels of socket0=0 must be a whole"),
        ("socket 0 170\n gpu 0 x12", "line 2: width of gpu0='x12' must be one of x1"),
        ("socket 0 170\n gpu 0 gen9 x4", "line 2: generation of gpu0='9' must be"),
        ("socket 0 170\n gpu 0", "line 2: bandwidth of gpu0='' .* give x16"),
        ("socket 0 170\n gpu 0 -3", "line 2: bandwidth of gpu0='-3' is no bandwidth"),
        ("socket 0 170\n gpu 0 nan", "line 2: bandwidth of gpu0='nan'"),
        ("socket 0 170\n gpu", "line 2: name='gpu' must be given, and once only"),
        ("\n\nsocket 0 170\n gpu 0 x8\n gpu 0 x8", "line 5: name='gpu0'"),
        ("gpu 0 x16", "line 1: gpu0 is indented under nothing"),
        ("socket 0 170\n gpu 0 x8\n  gpu 1 x8", "line 3: gpu1 is indented under gpu0"),
        ("socket 0 170\n socket 1 170", "line 2: socket1 is indented under socket0"),
        ("socket 0 170\nlink 0 1 90", "line 2: socket='socket1' must be one of"),
        ("socket 0 170\nlink 0 1", "line 2: link needs two ends and GB/s"),
        (
            "socket 0 170\n gpu 0 x8\nbridge 0 0 x",
            "line 3: bridge of gpu0 and gpu0='x'",
        ),
        ("socket 0 9\nsocket 1 9\n gpu 0 x1\nlink 0 1 zen", "line 4: .*genoa, turin"),
        ("acs perhaps", "line 1: acs='perhaps' must be one of on, off"),
        ("socket 0 170", "needs at least one gpu"),
        ("socket 0 170\n gpu 0 x8\nsocket 1 170\n gpu 1 x8", "have no link: add 'link"),
    ],
)
def test_errors_name_the_line_the_field_and_the_rule(text, error):
    with pytest.raises(ValueError, match=error):
        parse(text)


def test_the_text_of_a_regular_box_draws_that_box():
    box = pcie_box(gpus=8, gpus_per_switch=2, sockets=2, lane="gen3 x8")

    assert box.chain("gpu7") == ("gpu7", "switch3", "socket1")
    assert box.edge["gpu0", "switch0"].bandwidth == pcie_bandwidth(8, 3)
    assert box == parse(box_text(8, 2, 2, lane="gen3 x8"), achieved=PCIE_ACHIEVED)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"gpus": 8, "sockets": 3}, "sockets=3 must divide gpus=8"),
        ({"gpus": 8, "gpus_per_switch": 3}, "gpus_per_switch=3 must divide"),
        ({"gpus": 0}, "gpus=0 must be a whole number"),
        ({"lane": "x17"}, "line 2: width of gpu0='x17'"),
    ],
)
def test_a_regular_box_checks_its_counts(arguments, error):
    with pytest.raises(ValueError, match=error):
        pcie_box(**arguments)


def test_every_end_of_every_use_has_a_place_in_the_drawing():
    box = parse(DRAWING)
    places = positions(box)
    uses = usage(box, ring_all_reduce_flows(box, p2p=False))

    assert {end for use in uses for end in use.ends} == set(places)
    assert [places[gpu] for gpu in box.gpus] == [(0, -2), (1, -2), (2, -2), (3, -2)]
    assert places["switchA"] == (0.5, -1)
    assert places["socket0"] == (1.25, 0)
    assert places[memory_of("socket0")] == (1.25, 1)


def test_an_empty_socket_stands_beside_the_others():
    box = parse("socket 0 170\n gpu 0 x8\n gpu 1 x8\nsocket 1 170\nlink 0 1 90")

    assert positions(box)["socket1"] == (2, 0)
