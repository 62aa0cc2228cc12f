"""The what-if on the network roofline: its page's numbers, and all settings.

Cells of `notebooks/balance.ipynb` print the same numbers.
"""

import re
from contextlib import suppress
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall.whatif import WHAT_IFS
from commwall.whatif.controls import Choice
from commwall.whatif.svg import WIDTHS, picture_svg

ROOFLINE = WHAT_IFS["network_roofline"]
TENSOR, DATA = (f"{way} parallel: FLOP for each byte" for way in ("tensor", "data"))


def facts(**texts):
    return dict(ROOFLINE.ask(**texts).facts)


def ratio(**texts):
    """Computing over sending, from the roof and the rate of the point below it."""
    roof, _, tensor, _ = ROOFLINE.ask(**texts).picture.lines
    return tensor.ys[0] / (max(roof.ys) - tensor.ys[0])


def drawn(**texts):
    """FLOP a byte of each point."""
    return {line.label: line.xs[0] for line in ROOFLINE.ask(**texts).picture.lines[2:]}


def typed(control):
    """What a reader may put there: a stop, any name, any whole number."""
    if isinstance(control, Choice):
        return st.sampled_from(control.options)
    return st.integers(control.stops[0], control.stops[-1]).map(str)


@given(data=st.data())
def test_any_setting_answers_or_says_which_rule_it_breaks(data):
    texts = {c.name: data.draw(typed(c)) for c in ROOFLINE.controls}
    with suppress(ValueError):
        answer = ROOFLINE.ask(**texts)
        cells = [cell for row in answer.numbers.rows for cell in row[1:]]
        assert all(isfinite(cell) and cell > 0 for cell in cells)
        words = " ".join([answer.finding, *(shown for _, shown in answer.facts)])
        pictures = [picture_svg(answer.picture, width, "") for width in WIDTHS]
        assert not re.search(r"\b(nan|inf)\b", " ".join([words, *pictures]))


def test_it_starts_with_eight_rtx_4090s_through_the_host():
    """9 * 8192 / 14 FLOP a byte, 18 GB/s, 154.2 TFLOP/s; 4,999 tokens."""
    balance = 18e9 / 154.2459e12

    assert ROOFLINE.ask().finding == (
        f"Cut 8 ways, a layer computes {9 * 8192 / 14 * balance:.3g} times as long as "
        "it sends: the GPU waits 61.9 % of the time."
    )
    assert facts()[TENSOR] == "5,266"
    assert facts()[DATA] == f"{8 / 7 * 3 * 4096 / 2:,.0f}"
    assert facts()["tokens for half and half"] == "4,999"
    assert facts()["data parallel waits"] == f"{100 * 4999 / (4999 + 4096):.3g} %"
    assert facts()["bytes per kFLOP, one way"] == f"{1e3 * balance:.3g}"


@pytest.mark.parametrize(
    ("gpu", "link", "printed"),
    [
        ("RTX 4090", "PCIe 4.0 x16 host bounce", 0.61),
        ("H100 SXM5", "NVLink 4", 2.73),
        ("A100-80 SXM", "NVLink 3", 5.13),
        ("H20", "NVLink 4", 15.33),
    ],
)
def test_ratios_are_those_of_the_page(gpu, link, printed):
    assert ratio(gpu=gpu, link=link) == pytest.approx(printed, abs=0.005)


def test_width_and_ranks_move_the_ratio_as_its_exercise_says():
    """On one machine the ratio goes as FLOP a byte, which are not rounded."""
    first = drawn()

    assert drawn(hidden="16384")["tensor parallel"] == 2 * first["tensor parallel"]
    assert drawn(ranks="4")["tensor parallel"] == pytest.approx(
        7 / 3 * first["tensor parallel"]
    )
    assert drawn(tokens="65536") == first | {
        "data parallel": 16 * first["data parallel"]
    }


def test_at_the_tokens_of_half_and_half_the_gpu_waits_half():
    assert facts(tokens="4999")["data parallel waits"] == "50 %"


def test_the_roof_has_its_corner_where_computing_takes_as_long_as_sending():
    roof = ROOFLINE.ask().picture.lines[0]
    corner = 154.2459e12 / 18e9

    at = dict(zip(roof.xs, roof.ys, strict=True))
    assert min(x for x, y in at.items() if y == max(roof.ys)) == pytest.approx(corner)


def test_the_points_lie_on_the_lower_curve():
    """Rate = work over the sum of both times."""
    for line in ROOFLINE.ask().picture.lines[2:]:
        (intensity,), (rate,) = line.xs, line.ys
        assert intensity / rate == pytest.approx(intensity / 154.2459e12 + 1 / 18e9)
