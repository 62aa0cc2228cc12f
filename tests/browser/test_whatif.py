"""What-ifs as a reader moves them: the answers of CPython, whatever is typed."""

import csv
import io
import json
import random
import re
from math import isclose
from pathlib import Path

import pytest

from commwall.whatif import WHAT_IFS
from commwall.whatif.controls import Choice, Range
from commwall.whatif.element import reply
from toc import page_names

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
PHONE = {"width": 390, "height": 900}
DESKTOP = {"width": 1440, "height": 900}
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
RANDOM, MOVES = 50, 200
PATIENCE = 60_000  # ms: a guard against hanging
GROWTH = 32 * 2**20  # bytes of Python's memory that 200 moves may leave behind
LITTER = 4 * 2**20  # bytes of the page's own
NODES = 3000  # of the page: about two tables and two pictures

STATE = """element => ({
  finding: element.querySelector(".whatif-finding").textContent,
  facts: [...element.querySelectorAll(".whatif-facts div")].map(
    pair => [...pair.children].map(part => part.textContent)),
  rows: [...element.querySelectorAll("tbody tr")].map(
    row => [...row.cells].map(cell => cell.textContent)),
  errors: Object.fromEntries([
    ...[...element.querySelectorAll("form [name]")].map(
      field => [field.name, document.getElementById(`${field.id}-error`).textContent]),
    ["", element.querySelector(".whatif-problem").textContent],
  ].filter(([, text]) => text)),
})"""

START_AGAIN = """element => {
  element.whatIf.set(element.whatIf.initial);
  return element.whatIf.ask();
}"""

SETTLED = "element => !element.whatIf.answering"

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

each = pytest.mark.parametrize("name", WHAT_IFS)


def pages_with(name):
    """Pages of the built book that show this what-if."""
    marked = f'data-whatif="{name}"'
    built = ROOT / "_build" / "html"
    pages = [page for page in page_names() if page.startswith(("book/", "notebooks/"))]
    return [p for p in pages if marked in (built / f"{p}.html").read_text("utf-8")]


def stops_of(control):
    """Texts that a control can hold."""
    if isinstance(control, Range):
        return [control.text(stop) for stop in control.stops]
    return control.options if isinstance(control, Choice) else ("on", "off")


def any_settings(name, count):
    """Settings drawn at random, the same at every run; some numbers lie between."""
    draw = random.Random(name)

    def text(control):
        if isinstance(control, Range) and not control.whole and draw.random() < 0.3:
            ends = control.stops[0], control.stops[-1]
            return control.text(draw.uniform(*ends))
        return draw.choice(stops_of(control))

    controls = WHAT_IFS[name].controls
    return [{c.name: text(c) for c in controls} for _ in range(count)]


def in_cpython(name, texts):
    """What the same Python says here."""
    asked = {"texts": texts, "width": 640}
    errors = json.loads(reply(WHAT_IFS[name], json.dumps(asked)))["errors"]
    if errors:
        return {"errors": errors}
    answer = WHAT_IFS[name].ask(**texts)
    rows = [
        [cell if isinstance(cell, str) else f"{cell:.4g}" for cell in row]
        for row in answer.numbers.rows
    ]
    facts = [list(fact) for fact in answer.facts]
    return {"errors": {}, "finding": answer.finding, "facts": facts, "rows": rows}


def alike(shown, expected):
    """Equal, but for the last digit that is shown."""
    if shown == expected:
        return True
    if NUMBER.sub("#", shown) != NUMBER.sub("#", expected):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(expected), strict=True)
    numbers = [[float(text.replace(",", "")) for text in pair] for pair in pairs]
    return all(isclose(a, b, rel_tol=2e-3, abs_tol=1e-9) for a, b in numbers)


def assert_same(shown, expected):
    """The page shows what CPython says; errors are the same words."""
    assert shown["errors"] == expected["errors"]
    if not expected["errors"]:
        assert alike(shown["finding"], expected["finding"]), expected["finding"]
        assert [label for label, _ in shown["facts"]] == [
            label for label, _ in expected["facts"]
        ]
        for (_, here), (label, there) in zip(
            shown["facts"], expected["facts"], strict=True
        ):
            assert alike(here, there), (label, here, there)
        for here, there in zip(shown["rows"], expected["rows"], strict=True):
            assert all(map(alike, here, there)), (here, there)


class Reader:
    """A what-if on its page, and hands on the keyboard."""

    def __init__(self, visit, name, **options):
        self.name = name
        self.visit = visit(
            **({"viewport": PHONE, "reduced_motion": "reduce"} | options)
        )
        self.page = self.visit.open(pages_with(name)[0])
        self.page.set_default_timeout(PATIENCE)
        self.element = self.page.locator(f"#whatif-{name}")

    def start_again(self):
        """The first state of everything."""
        self.element.evaluate(START_AGAIN)
        self.settle()

    def settle(self):
        """Wait until nothing is being computed."""
        handle = self.element.element_handle()
        self.page.wait_for_function(SETTLED, arg=handle, timeout=PATIENCE)

    def state(self):
        """What the element shows."""
        self.settle()
        return self.element.evaluate(STATE)

    def texts(self):
        """What its controls hold."""
        return self.element.evaluate("element => element.whatIf.texts()")

    def picture(self):
        """What is drawn."""
        return self.element.locator(".whatif-chart").inner_html()

    def memory(self):
        """Bytes and nodes of the page that nothing can let go of."""
        session = self.page.context.new_cdp_session(self.page)
        session.send("Performance.enable")
        for _ in range(2):
            session.send("HeapProfiler.collectGarbage")
        metrics = session.send("Performance.getMetrics")["metrics"]
        found = {metric["name"]: metric["value"] for metric in metrics}
        session.detach()
        return found["JSHeapUsedSize"], found["Nodes"]

    def field(self, control):
        return self.element.locator(f'[name="{control.name}"]')

    def type(self, control, text):
        """Replace what a field holds, key by key."""
        self.field(control).press("Control+a")
        self.field(control).press("Delete")
        self.page.keyboard.type(text)


@pytest.fixture(scope="module", params=WHAT_IFS)
def shared(request, lasting_visit):
    """One page for all tests of a what-if."""
    return Reader(lasting_visit, request.param, accept_downloads=True)


@pytest.fixture
def reader(shared):
    """A what-if at its first state."""
    shared.start_again()
    shared.visit.faults.clear()
    return shared


def test_every_what_if_is_on_a_page():
    assert [name for name in WHAT_IFS if not pages_with(name)] == []


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

    assert reader.page.evaluate(FAULTS, reader.name) == []

    for control in controls:
        if isinstance(control, Range):
            reader.field(control).fill("abc")
    reader.settle()

    assert reader.page.evaluate(FAULTS, reader.name) == []


def test_nothing_is_loaded_before_the_first_touch(visit):
    pages = {page for name in WHAT_IFS for page in pages_with(name)}
    for page in pages:
        reader, asked = visit(viewport=DESKTOP), []
        reader.page.on(
            "request", lambda request, asked=asked: asked.append(request.url)
        )
        reader.page.goto(f"{reader.site}/{page}.html", wait_until="load")

        assert [url for url in asked if "pyodide" in url or "worker" in url] == []


@each
def test_without_scripts_the_first_state_is_there(visit, name):
    reader = visit(java_script_enabled=False, viewport=PHONE)
    reader.page.goto(f"{reader.site}/{pages_with(name)[0]}.html")
    element = reader.page.locator(f"#whatif-{name}")
    answer = WHAT_IFS[name].ask()

    assert element.locator(".whatif-finding").inner_text() == answer.finding
    assert element.locator(".whatif-facts dd").all_inner_texts() == [
        fact for _, fact in answer.facts
    ]
    assert element.locator("svg[role=img]:visible").count() == 1
    assert element.locator(".whatif-still").is_visible()
    assert not element.locator("form").is_visible()


@pytest.mark.parametrize("missing", ["whatif-worker.js", "library.snap", "asm.wasm"])
def test_where_python_cannot_load_the_first_state_stays_and_says_so(visit, missing):
    reader = Reader(visit, "message_time")
    reader.visit.context.route(f"**/*{missing}*", lambda route: route.abort())
    before = reader.state()

    reader.element.locator("[data-for=payload]").press("ArrowRight")

    after = reader.state()
    assert "do not work here" in after["errors"].pop("")
    assert after == before
    assert reader.element.locator(".whatif-still").is_visible()
    assert not reader.element.locator("form").is_visible()


def test_where_python_fails_later_the_first_state_comes_back(visit):
    reader = Reader(visit, "message_time")
    still = reader.element.locator(".whatif-still")
    settings, before = still.text_content(), reader.state()
    picture = reader.picture()
    reader.element.locator("[data-for=payload]").press("ArrowRight")
    assert reader.state() != before

    reader.element.evaluate(
        "element => element.whatIf.engine.worker.onmessage({data: {failure: 'lost'}})"
    )
    reader.element.locator("[data-for=payload]").press("ArrowRight")

    after = reader.state()
    assert "do not work here: lost" in after["errors"].pop("")
    assert after == before
    assert reader.picture() == picture
    assert still.is_visible()
    assert still.text_content() == settings


def test_a_picture_fits_a_column_that_shrank_while_it_was_drawn(visit):
    reader = Reader(visit, "message_time", viewport=DESKTOP)
    reader.element.evaluate(
        """async element => {
          const answer = element.whatIf.ask();
          element.style.width = "400px";
          await answer;
        }"""
    )

    chart = reader.element.locator(".whatif-chart")
    reader.element.locator("svg[role=img]").and_(
        reader.page.locator(f"[width='{chart.evaluate('e => e.clientWidth')}']")
    ).wait_for(timeout=PATIENCE)


def test_after_a_refusal_the_table_is_still_that_of_the_picture(visit):
    reader = Reader(visit, "message_time")
    field = reader.element.locator("[name=ranks]")
    field.fill("64")
    reader.settle()
    field.fill("none")
    reader.settle()

    reader.element.locator("summary").press("Enter")

    reader.page.wait_for_timeout(200)
    assert reader.state()["rows"] == in_cpython("message_time", {"ranks": "64"})["rows"]
    reader.element.get_by_role("button", name="Download CSV").press("Enter")
    reader.element.get_by_text("Not saved").wait_for(timeout=PATIENCE)


def test_the_keyboard_walks_through_and_out(visit):
    reader = Reader(visit, "message_time")
    inside = "document.activeElement.closest('.whatif') !== null"
    reader.element.locator("[name=ranks]").focus()

    steps = 0
    while reader.page.evaluate(inside) and steps < 30:
        reader.page.keyboard.press("Tab")
        steps += 1

    assert 8 <= steps < 30  # two fields, two sliders, the numbers, three buttons


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


def test_a_bad_link_is_refused_where_it_is_wrong(visit):
    reader = visit(viewport=PHONE)
    page = pages_with("message_time")[0]
    query = "message_time.ranks=%3Cb%3E&message_time.nobody=1&other.thing=2"
    reader.page.goto(f"{reader.site}/{page}.html?{query}")
    element = reader.page.locator("#whatif-message_time")
    element.locator(".whatif-error:visible").wait_for(timeout=PATIENCE)

    assert list(element.evaluate(STATE)["errors"]) == ["ranks"]
    settings = len(WHAT_IFS["message_time"].controls)
    assert element.locator("b").count() == settings  # and none from the address


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


def test_the_table_follows_the_controls(visit):
    reader = Reader(visit, "will_it_fit")
    reader.element.locator("summary").press("Enter")
    before = reader.state()["rows"]

    reader.element.locator("[data-for=micro_batch]").press("ArrowRight")

    assert reader.state()["rows"] != before


def test_a_page_opened_as_a_file_says_that_it_stands_still(browser):
    path = ROOT / "_build" / "html" / f"{pages_with('message_time')[0]}.html"
    page = browser.new_page()
    page.goto(path.as_uri())
    element = page.locator("#whatif-message_time")

    assert "make serve" in element.locator(".whatif-problem").inner_text()
    assert element.locator(".whatif-chart svg").first.is_visible()
    page.close()
