"""A what-if on its page of the built book, and what CPython says in its place."""

import json
import random
import re
from math import isclose
from pathlib import Path

from commwall.whatif import WHAT_IFS
from commwall.whatif.controls import Choice, Range
from commwall.whatif.element import reply
from toc import page_names

ROOT = Path(__file__).resolve().parents[1]
PHONE = {"width": 390, "height": 900}
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
PATIENCE = 60_000  # ms: a guard against hanging
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
        asked = []
        self.visit.page.on("request", lambda request: asked.append(request.url))
        self.page = self.visit.open(pages_with(name)[0])
        self.untouched = tuple(asked)  # what the page asked for by itself
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
