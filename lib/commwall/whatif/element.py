"""A what-if as an element of a page, whole without a script; and its replies to one.

`element_html` is written when the book is built. `reply` is called in the reader's
browser, by the worker of `book/_static/whatif.js`; both make the same pieces.
"""

import csv
import io
import json
from html import escape

from commwall.whatif.answers import Answer
from commwall.whatif.controls import Choice, Control, Range
from commwall.whatif.pictures import Table
from commwall.whatif.questions import Question
from commwall.whatif.svg import WIDTHS, legend_html, picture_svg

__all__ = ["element_html", "reply"]

BUTTONS = """<p class="whatif-buttons" hidden>
<button type="button" data-do="reset">Reset</button>
<button type="button" data-do="link">Copy link</button>
<button type="button" data-do="csv">Download CSV</button>
<progress hidden aria-label="Computing"></progress>
<span class="whatif-said" role="status"></span></p>"""


def element_html(what_if: Question) -> str:
    """The element with its first state: controls, sentence, numbers, picture, table."""
    answer, name, title = what_if.ask(), what_if.name, escape(what_if.title)
    controls = "".join(_control(name, control) for control in what_if.controls)
    return f"""<section class="whatif" id="whatif-{name}" data-whatif="{name}"
 aria-label="What if: {title}">
<p class="whatif-title">{title}</p>
<form class="whatif-controls" hidden autocomplete="off">{controls}</form>
<p class="whatif-still">{_still(what_if)}</p>
<p class="whatif-finding" role="status">{escape(answer.finding)}</p>
<p class="whatif-problem" role="alert" hidden></p>
<dl class="whatif-facts">{_facts(answer)}</dl>
<div class="whatif-legends">{legend_html(answer.picture)}</div>
<div class="whatif-chart">{_charts(answer)}</div>
<details class="whatif-numbers"><summary>The numbers</summary>
<div class="whatif-table" tabindex="0" role="region" aria-label="Numbers of: {title}">
{_table(answer.numbers)}</div></details>
{BUTTONS}</section>"""


def _charts(answer: Answer) -> str:
    """The picture for a wide column and for a narrow one; the page shows one."""
    return "".join(
        f'<div class="whatif-{size}">'
        f"{picture_svg(answer.picture, width, answer.finding)}</div>"
        for size, width in zip(("wide", "narrow"), WIDTHS, strict=True)
    )


def _still(what_if: Question) -> str:
    """What is set, for a page whose controls do not work."""
    parts = (
        f"{escape(c.label)}: <b>{escape(f'{c.initial} {c.unit}'.strip())}</b>"
        for c in what_if.controls
    )
    return "Shown for " + ", ".join(parts) + "."


def _control(owner: str, control: Control) -> str:
    key = f"{owner}-{control.name}"
    label = f'<label for="{key}">{escape(control.label)}</label>'
    named = f'id="{key}" name="{control.name}" aria-describedby="{key}-error"'
    if isinstance(control, Range):
        field = _number_field(key, named, control)
    elif isinstance(control, Choice):
        options = "".join(
            f"<option{' selected' * (each == control.start)}>{escape(each)}</option>"
            for each in control.options
        )
        field = f"<select {named}>{options}</select>"
    else:
        checked = " checked" if control.start else ""
        field = f'<input type="checkbox" {named}{checked}>'
    kind = type(control).__name__.lower()
    return (
        f'<div class="whatif-control whatif-{kind}">{label}{field}'
        f'<p class="whatif-error" id="{key}-error" role="status" hidden></p></div>'
    )


def _number_field(key: str, named: str, control: Range) -> str:
    stops = json.dumps([control.text(stop) for stop in control.stops])
    nearest = min(control.stops, key=lambda stop: abs(stop - control.start))
    unit = f'<span class="whatif-unit">{escape(control.unit)}</span>'
    return (
        f'<span class="whatif-entry"><input type="text" inputmode="decimal" {named} '
        f'value="{control.initial}" size="7">{unit}</span>'
        f'<input type="range" min="0" max="{len(control.stops) - 1}" step="1" '
        f'value="{control.stops.index(nearest)}" data-stops="{escape(stops)}" '
        f'data-for="{control.name}" aria-label="{escape(control.label)}, slider" '
        f'aria-valuetext="{escape(f"{control.initial} {control.unit}".strip())}">'
    )


def _facts(answer: Answer) -> str:
    return "".join(
        f"<div><dt>{escape(label)}</dt><dd>{escape(shown)}</dd></div>"
        for label, shown in answer.facts
    )


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.head)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(_cell(cell))}</td>" for cell in row) + "</tr>"
        for row in table.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(cell: str | float) -> str:
    return cell if isinstance(cell, str) else f"{cell:.4g}"


def _csv(table: Table) -> str:
    out = io.StringIO()
    csv.writer(out).writerows([table.head, *table.rows])
    return out.getvalue()


def reply(what_if: Question, request: str) -> str:
    """What to show, as JSON, for a JSON of texts and width; with "csv", that too.

    What is wrong with a control comes back under its name, whether nobody could read
    it or the library refuses it; what is wrong with none of them, under "". Then
    nothing else comes back.
    """
    asked = json.loads(request)
    values, errors = what_if.settings(what_if.initial | asked["texts"])
    if errors:
        return json.dumps({"errors": errors})
    try:
        answer = what_if.answer(**values)
    except ValueError as error:
        field = str(error).partition("=")[0]
        owner = field if field in values else ""
        return json.dumps({"errors": {owner: str(error)}})
    return json.dumps({"errors": {}} | _pieces(answer, asked))


def _pieces(answer: Answer, asked: dict) -> dict[str, str]:
    pieces = {
        "finding": answer.finding,
        "facts": _facts(answer),
        "legend": legend_html(answer.picture),
        "chart": picture_svg(answer.picture, int(asked["width"]), answer.finding),
        "table": _table(answer.numbers),
    }
    if asked.get("csv"):
        pieces["csv"] = _csv(answer.numbers)
    return pieces
