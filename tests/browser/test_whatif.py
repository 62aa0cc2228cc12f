"""What-ifs as a reader moves them: the answers of CPython, whatever is typed."""

import csv
import io
import json
from pathlib import Path

import pytest

from commwall.whatif import WHAT_IFS
from commwall.whatif.controls import Choice, Range
from readers import (
    PATIENCE,
    ROOT,
    STATE,
    Reader,
    any_settings,
    assert_same,
    in_cpython,
    pages_with,
)

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
RANDOM, MOVES = 50, 200
GROWTH = 32 * 2**20  # bytes of Python's memory that 200 moves may leave behind
LITTER = 4 * 2**20  # bytes of the page's own
NODES = 3000  # of the page: about two tables and two pictures

ASK_ALL = (
    """async (element, settings) => {
  const found = [], state = """
    + STATE
    + """;
  for (const texts of settings) {
    element.whatIf.set(texts);
    await element.whatIf.ask();
    found.push(state(element));
  }
  return found;
}"""
)

# Moves of every control in turn, faster than any answer; the last state is asked for.
HURRY = """async (element, moves) => {
  let replies = 0;
  element.addEventListener("whatif:shown", () => { replies += 1; });
  for (const texts of moves) {
    element.whatIf.set(texts);
    element.whatIf.fields[0].dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise(done => setTimeout(done, 2));
  }
  await element.whatIf.answering;
  return [replies, element.whatIf.engine.waiting.size, element.whatIf.engine.memory];
}"""

WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
FAULTS = """async name => (await axe.run(`#whatif-${name}`)).violations.map(
  fault => [fault.id, ...fault.nodes.map(node => node.html)].join("\\n"))"""


@pytest.fixture(scope="module", params=WHAT_IFS)
def shared(request, lasting_visit):
    """One page for all tests of a what-if; each holds 300 MB while it is open."""
    reader = Reader(lasting_visit, request.param, accept_downloads=True)
    yield reader
    reader.visit.context.close()


@pytest.fixture
def reader(shared):
    """A what-if at its first state."""
    shared.start_again()
    shared.visit.faults.clear()
    return shared


def test_every_what_if_is_on_a_page():
    assert [name for name in WHAT_IFS if not pages_with(name)] == []


def test_nothing_of_python_is_loaded_before_the_first_touch(shared):
    python = ("pyodide", "worker", ".snap")

    assert shared.untouched
    assert not [u for u in shared.untouched if any(word in u for word in python)]


def test_each_control_answers_to_the_keyboard(reader):
    name = reader.name
    for control in WHAT_IFS[name].controls:
        if isinstance(control, Range):
            slider = reader.element.locator(f'[data-for="{control.name}"]')
            at_end = slider.input_value() == slider.get_attribute("max")
            slider.press("ArrowLeft" if at_end else "ArrowRight")
            assert_same(reader.state(), in_cpython(name, reader.texts()))
            reader.type(control, control.text(control.stops[1]))
        elif isinstance(control, Choice):
            at_end = control.start == control.options[-1]
            reader.field(control).press("ArrowUp" if at_end else "ArrowDown")
            assert reader.texts()[control.name] != control.start
        else:
            reader.field(control).press("Space")
            assert reader.texts()[control.name] != control.initial
        assert_same(reader.state(), in_cpython(name, reader.texts()))
    assert reader.page.evaluate(WIDER) <= 0
    assert reader.visit.faults == []


def test_fifty_settings_agree_with_cpython(reader):
    settings = any_settings(reader.name, RANDOM)

    shown = reader.element.evaluate(ASK_ALL, settings)

    for texts, state in zip(settings, shown, strict=True):
        assert_same(state, in_cpython(reader.name, texts))
    assert len({json.dumps(state) for state in shown}) > 1


def test_bad_values_are_refused_at_the_control_and_lose_nothing(reader):
    ranges = [c for c in WHAT_IFS[reader.name].controls if isinstance(c, Range)]
    before, picture = reader.state()["finding"], reader.picture()

    for control, text in zip(
        [*ranges, *ranges, *ranges, *ranges, *ranges],
        ["", "abc", "1e308", "-5", "\u4e03", "inf", "0x10"],
        strict=False,
    ):
        reader.field(control).fill(text)
        state = reader.state()
        assert control.label in state["errors"][control.name]
        assert reader.field(control).get_attribute("aria-invalid") == "true"
        assert state["finding"] == before
        assert reader.picture() == picture
        reader.field(control).fill(control.initial)
        assert reader.state()["errors"] == {}
    assert reader.visit.faults == []


def test_quick_moves_leave_no_queue_and_no_memory_behind(reader):
    moves = any_settings(reader.name, MOVES)
    reader.element.evaluate(HURRY, moves[:20])
    before = reader.element.evaluate("element => element.whatIf.engine.memory")
    heap, nodes = reader.memory()

    replies, waiting, memory = reader.element.evaluate(HURRY, moves)

    assert waiting == 0
    assert replies <= MOVES
    assert memory - before <= GROWTH
    after = reader.memory()
    assert after[0] - heap <= LITTER
    assert after[1] - nodes <= NODES
    assert_same(reader.state(), in_cpython(reader.name, moves[-1]))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_living_what_if_has_no_fault_of_accessibility(reader, scheme):
    controls = WHAT_IFS[reader.name].controls
    reader.page.emulate_media(color_scheme=scheme)
    reader.page.locator(f"html[data-theme={scheme}]").wait_for(state="attached")
    reader.page.add_script_tag(path=AXE)
    reader.element.locator("summary").press("Enter")
    reader.settle()

    for control in controls:
        if isinstance(control, Range):
            reader.field(control).fill("abc")
    reader.settle()

    assert reader.page.evaluate(FAULTS, reader.name) == []


def test_a_link_brings_back_the_state_and_reset_the_first_one(reader):
    name = reader.name
    texts = next(
        texts
        for texts in any_settings(name, RANDOM)
        if not in_cpython(name, texts)["errors"]
    )
    reader.element.evaluate("(element, texts) => element.whatIf.set(texts)", texts)
    reader.element.get_by_role("button", name="Copy link").press("Enter")
    reader.element.locator(".whatif-said").filter(has_text="ink").wait_for()
    address = reader.page.url

    reader.page.reload()
    assert reader.page.url == address
    assert reader.texts() == texts
    assert_same(reader.state(), in_cpython(name, texts))

    reader.element.get_by_role("button", name="Reset").press("Enter")
    assert reader.texts() == WHAT_IFS[name].initial
    assert_same(reader.state(), in_cpython(name, {}))


def test_the_numbers_download_as_csv(reader):
    name = reader.name
    with reader.page.expect_download(timeout=PATIENCE) as download:
        reader.element.get_by_role("button", name="Download CSV").press("Enter")

    rows = list(csv.reader(io.StringIO(Path(download.value.path()).read_text("utf-8"))))
    table = WHAT_IFS[name].ask().numbers
    assert download.value.suggested_filename == f"{name}.csv"
    assert rows[0] == list(table.head)
    for shown, expected in zip(rows[1:], table.rows, strict=True):
        for cell, value in zip(shown, expected, strict=True):
            if isinstance(value, str):
                assert cell == value
            else:
                assert float(cell) == pytest.approx(value, rel=1e-9, abs=1e-300)
