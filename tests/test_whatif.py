"""What-ifs without a browser: controls, pictures, the element, its replies, widgets."""

import csv
import io
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from commwall.whatif import WHAT_IFS, WhatIf, show
from commwall.whatif.answers import Answer
from commwall.whatif.controls import Choice, Range, Toggle, doublings, scale
from commwall.whatif.drawing import draw
from commwall.whatif.element import element_html, reply
from commwall.whatif.front import STILL
from commwall.whatif.live import widget
from commwall.whatif.pictures import (
    Axis,
    Bar,
    Bars,
    Line,
    Lines,
    Mark,
    Node,
    Part,
    Span,
    Spans,
    Table,
    Tree,
    Wire,
)
from commwall.whatif.svg import WIDTHS, legend_html, picture_svg
from commwall.whatif.ticks import limits, place, ticks

LIB = Path(__file__).resolve().parents[1] / "lib"
SPEED = Range(name="speed", label="Speed", unit="GB/s", one=1e9, start=10,
              stops=(1, 10, 100))  # fmt: skip
COUNT = Range(name="count", label="Count", start=8, stops=(1, 8, 64), whole=True)
WORD = Choice(name="word", label="Word", options=("one", "<two & three>"), start="one")
FLAG = Toggle(name="flag", label="Flag")
NASTY = '<b>"&'
PICTURES = {
    "lines": Lines(
        x=Axis(label=NASTY, unit="B", log=10),
        y=Axis(label="time", unit="s", log=10),
        lines=(Line(NASTY, (1e3, 1e6), (1e-3, 2.0)),
               Line("dots", (1e3, 1e5), (0.1, float("inf")), dots=True)),
        marks=(Mark(NASTY, 1e4, 0.1),),
        rules=((NASTY, 1e5),),
    ),
    "flat": Lines(
        x=Axis(label="ranks", log=2),
        y=Axis(label="share", unit="%", low=0, high=1),
        lines=(Line("level", (1, 2, 4), (0.5, 0.5, 0.5)),),
    ),
    "bars": Bars(
        axis=Axis(label="memory", unit="GiB", one=2**30),
        bars=(Bar(NASTY, (Part(NASTY, 2**30, "#0072b2"), Part("none", 0, "#000000"),
                          Part("pale", 2**29, "#d55e00", pale=True)), NASTY),),
        limit=(NASTY, 2**31),
    ),
    "nothing": Bars(axis=Axis(label="sent", unit="B"), bars=(Bar("none", ()),)),
    "spans": Spans(
        axis=Axis(label="time"),
        rows=("stage 0", NASTY),
        spans=(Span(0, 0, 1, "forward", "1"), Span(1, 1, 3, "backward", "1", True)),
        idle="bubble",
    ),
    "tree": Tree(
        nodes=(Node(NASTY, 0, 0), Node("1", 1, 1)),
        wires=(Wire(NASTY, ((0, 0), (1, 1)), 1.0), Wire("b", ((0, 0), (0, 1)), 0.0)),
    ),
}  # fmt: skip


def twice(speed, count, word, flag):
    """An answer that shows what it was asked; 64 are too many."""
    if count == 64:
        raise ValueError("count=64 must be at most 8")
    if word != "one" and flag:
        raise ValueError("these two do not go together")
    return Answer(finding=f"{count} at {speed:g}, {word}, {flag}.",
                  facts=(("speed", f"{speed:g} B/s"),),
                  picture=PICTURES["bars"])  # fmt: skip


TWICE = WhatIf(name="twice", title=NASTY, controls=(SPEED, COUNT, WORD, FLAG),
               answer=twice)  # fmt: skip


def asked(**texts):
    """The reply to these texts."""
    return json.loads(reply(TWICE, json.dumps({"texts": texts, "width": 340})))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10", 1e10),
        (" 2.5 ", 2.5e9),
        ("1e1", 1e10),
        ("100", 1e11),
        ("\uff11\uff10", 1e10),
    ],
)
def test_a_number_is_read_in_its_unit_and_given_in_si(text, value):
    assert SPEED.value(text) == value


@pytest.mark.parametrize(
    "text",
    ["", " ", "abc", "0", "-1", "101", "1e308", "nan", "inf", "-inf", "0x10", "1 2",
     "\u4e03", "10 GB/s", "<b>", "9" * 400, "1,5", "1,0"],
)  # fmt: skip
def test_what_is_no_number_of_the_range_is_refused_by_name_value_and_rule(text):
    with pytest.raises(
        ValueError, match=r"^Speed=.* must be a number from 1 to 100 GB"
    ):
        SPEED.value(text)


def test_thousands_may_be_set_apart_but_a_comma_is_no_point():
    money = Range(name="price", label="Price", stops=(1, 1e6), start=1)

    assert money.value("12,500") == 12_500
    assert money.value("1,000,000.0") == 1e6
    with pytest.raises(ValueError, match=r"^Price='12,5' must be a number"):
        money.value("12,5")


def test_a_count_is_whole():
    assert COUNT.value("8") == 8
    assert isinstance(COUNT.value("8.0"), int)
    with pytest.raises(ValueError, match="must be a whole number from 1 to 64"):
        COUNT.value("8.5")


def test_choices_and_toggles_take_only_what_they_offer():
    assert WORD.value("<two & three>") == "<two & three>"
    assert FLAG.value("on") is True
    for control in (WORD, FLAG):
        with pytest.raises(ValueError, match=f"^{control.label}="):
            control.value("two")


def test_a_slider_needs_rising_stops_and_a_start_among_them():
    with pytest.raises(ValueError, match="must rise"):
        Range(name="a", label="A", stops=(2, 1), start=1)
    with pytest.raises(ValueError, match="A='3'"):
        Range(name="a", label="A", stops=(1, 2), start=3)


def test_stops_begin_and_end_where_they_are_told():
    assert doublings(2, 1024)[0::9] == (2, 1024)
    assert scale(0.1, 20)[0 :: len(scale(0.1, 20)) - 1] == (0.1, 20)


@given(
    low=st.floats(1e-9, 1e9),
    factor=st.floats(1.001, 1e9),
    log=st.sampled_from([0, 2, 10]),
    most=st.integers(3, 8),
)
def test_ticks_lie_between_the_ends_and_are_not_too_many(low, factor, log, most):
    axis = Axis(label="any", log=log)
    ends = limits(axis, [low, low * factor])

    found = ticks(axis, ends, most)

    assert all(-1e-6 <= place(axis, ends, tick) <= 1 + 1e-6 for tick in found)
    assert len(found) <= 2 * most
    assert found == sorted(found)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)
def test_a_picture_is_well_formed_whatever_its_words(picture, width):
    drawn = ET.fromstring(picture_svg(picture, width, NASTY))
    ET.fromstring(f"<div>{legend_html(picture)}</div>")

    assert drawn.get("aria-label") == NASTY
    assert drawn.get("width") == str(width)
    assert not [e for e in drawn.iter() if e.tag.endswith("}b")]
    for element in drawn.iter():
        for place_of in ("x", "y", "x1", "width", "cx"):
            assert "n" not in element.get(place_of, "")  # nan, inf


@pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)
def test_a_picture_is_drawn_by_matplotlib_too(picture):
    figure, ax = plt.subplots()

    draw(picture, ax)
    figure.canvas.draw()

    plt.close(figure)


def test_a_legend_shows_dots_as_dots():
    line, dots = BeautifulSoup(legend_html(PICTURES["lines"]), "html.parser")("li")

    assert [line.polyline is None, line.circle is None] == [False, True]
    assert [dots.polyline is None, dots.circle is None] == [True, False]


def test_the_pieces_of_a_bar_reach_as_far_as_their_numbers():
    drawn = ET.fromstring(picture_svg(PICTURES["bars"], 340, ""))
    widths = [float(e.get("width")) for e in drawn.iter() if e.tag.endswith("}rect")]

    assert widths[0] == pytest.approx(2 * widths[1], rel=0.01)


def test_an_element_stands_without_a_script():
    page = BeautifulSoup(element_html(TWICE), "html.parser").section

    assert "8 at 1e+10, one, False." in page.text
    assert page.dd.text == "1e+10 B/s"
    assert page["data-whatif"] == "twice"
    assert page["aria-label"] == f"What if: {NASTY}"
    assert len(page.find_all("svg", role="img")) == 2
    assert page.form.has_attr("hidden")
    assert [p["role"] for p in page.find_all(class_="whatif-error")] == ["status"] * 4
    assert [option.text for option in page.find_all("option")] == list(WORD.options)
    assert [b.text for b in page.find_all("b")] == ["10 GB/s", "8", "one", "off"]


class Nesting(HTMLParser):
    """The tags that are open, and those that closed another's."""

    def __init__(self):
        """Start outside of everything."""
        super().__init__()
        self.open, self.crossed = [], []

    def handle_starttag(self, tag, attributes):
        """Go in, unless a tag of this name stands alone."""
        if tag != "input":
            self.open.append(tag)

    def handle_endtag(self, tag):
        """Come out of what was opened last."""
        if not self.open or self.open.pop() != tag:
            self.crossed.append(tag)

    def handle_startendtag(self, tag, attributes):
        """Stay: such a tag holds nothing."""


@pytest.mark.parametrize("what_if", [TWICE, *WHAT_IFS.values()], ids=lambda w: w.name)
def test_the_tags_of_an_element_are_nested(what_if):
    page = Nesting()
    page.feed(element_html(what_if))
    page.close()

    assert (page.open, page.crossed) == ([], [])


@pytest.mark.parametrize("name", WHAT_IFS)
def test_numbers_come_back_from_csv_as_they_were(name):
    request = json.dumps({"texts": {}, "width": 640, "csv": True})
    rows = list(csv.reader(io.StringIO(
        json.loads(reply(WHAT_IFS[name], request))["csv"])))  # fmt: skip
    table = WHAT_IFS[name].ask().numbers

    assert tuple(rows[0]) == table.head
    for shown, row in zip(rows[1:], table.rows, strict=True):
        kinds = [type(cell) for cell in row]
        assert tuple(k(c) for k, c in zip(kinds, shown, strict=True)) == row


@pytest.mark.parametrize("name", WHAT_IFS)
def test_every_what_if_has_widgets_that_draw(name):
    box = widget(WHAT_IFS[name])
    controls, picture = box.children[1:-3], box.children[-2]

    assert [c.value for c in controls] == list(WHAT_IFS[name].initial.values())
    assert bytes(picture.value).startswith(b"\x89PNG")


@pytest.mark.parametrize("name", WHAT_IFS)
def test_every_element_names_each_control_and_holds_its_answer(name):
    html = element_html(WHAT_IFS[name])

    for control in WHAT_IFS[name].controls:
        assert html.count(f'<label for="{name}-{control.name}">') == 1
        assert html.count(f'id="{name}-{control.name}"') == 1
    assert html.count("<table>") == 1


def test_a_reply_has_the_pieces_that_were_asked_for():
    plain = asked(count="1")
    full = json.loads(reply(TWICE, '{"texts": {}, "width": 340, "csv": true}'))

    assert plain["finding"] == "1 at 1e+10, one, False."
    assert set(full) - set(plain) == {"csv"}
    rows = list(csv.reader(io.StringIO(full["csv"])))
    assert rows[0] == list(PICTURES["bars"].table().head)
    assert rows[1] == [NASTY, NASTY, str(float(2**30))]
    assert NASTY not in full["table"]


def test_a_reply_says_at_which_control_something_is_wrong():
    assert set(asked(speed="fast", count="")["errors"]) == {"speed", "count"}
    assert set(asked(count="64")["errors"]) == {"count"}
    assert set(asked(word="<two & three>", flag="on")["errors"]) == {""}
    assert set(asked(count="64")) == {"errors"}


def test_a_widget_updates_one_picture_in_place():
    box = widget(TWICE)
    controls = {each.description: each for each in box.children
                if hasattr(each, "description")}  # fmt: skip
    said, picture = box.children[-3], box.children[-2]
    before = bytes(picture.value)

    controls["Speed (GB/s)"].value = "100"
    assert said.value == "8 at 1e+11, one, False."
    assert box.children[-2] is picture
    assert bytes(picture.value).startswith(b"\x89PNG")

    controls["Count"].value = "64"
    assert said.value == "count=64 must be at most 8"
    assert bytes(picture.value) == before

    controls["Count"].value = "1"
    assert said.value == "1 at 1e+11, one, False."


def test_a_widget_draws_another_picture_for_another_setting():
    box = widget(WHAT_IFS["message_time"])
    ranks, picture = box.children[1], box.children[-2]
    before = bytes(picture.value)

    ranks.value = "1024"

    assert box.children[-2] is picture
    assert bytes(picture.value) != before


def test_a_what_if_shows_widgets_in_a_kernel_and_an_element_in_the_book(monkeypatch):
    monkeypatch.delenv(STILL, raising=False)
    live = TWICE._repr_mimebundle_()
    monkeypatch.setenv(STILL, "1")
    still = TWICE._repr_mimebundle_()

    assert "application/vnd.jupyter.widget-view+json" in live
    assert "text/html" not in live
    assert set(still) == {"text/plain", "text/html"}


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'will_it_fit'"):
        show("will_fit")


def test_what_the_browser_runs_needs_no_third_party_package():
    blocked = ("numpy", "matplotlib", "ipywidgets", "torch", "IPython")
    code = f"""
import sys
for name in {blocked}: sys.modules[name] = None
from commwall.whatif import WHAT_IFS
from commwall.whatif.element import element_html, reply
for each in WHAT_IFS.values():
    element_html(each)
    reply(each, '{{"texts": {{}}, "width": 340, "csv": true}}')
"""
    environment = {"PYTHONPATH": str(LIB)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_a_table_of_its_own_comes_before_the_picture_s():
    table = Table(("a",), (("1",),))
    answer = Answer(finding="", facts=(), picture=PICTURES["bars"], table=table)

    assert answer.numbers is table
