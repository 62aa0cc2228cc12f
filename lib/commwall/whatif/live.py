"""A what-if as ipywidgets: one control a row, and one picture updated in place."""

import io

import ipywidgets
from matplotlib.figure import Figure

from commwall.whatif.answers import Answer
from commwall.whatif.controls import Choice, Control, Range
from commwall.whatif.drawing import draw
from commwall.whatif.questions import Question

__all__ = ["picture_png", "widget"]

WIDE = {"style": {"description_width": "11em"}, "layout": {"width": "34em"}}


def picture_png(answer: Answer) -> bytes:
    """The picture as matplotlib draws it, in the look of `charts`."""
    rows = len(getattr(answer.picture, "bars", getattr(answer.picture, "rows", ())))
    figure = Figure(figsize=(5.8, max(3.4, 1.4 + 0.42 * rows)), dpi=130,
                    layout="constrained")  # fmt: skip
    draw(answer.picture, figure.subplots())
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()


def control_widget(control: Control) -> ipywidgets.DOMWidget:
    """The ordinary widget of a control; its value is the control's text."""
    if isinstance(control, Range):
        label = f"{control.label} ({control.unit})" if control.unit else control.label
        stops = sorted({*control.stops, control.start})
        return ipywidgets.SelectionSlider(
            options=[control.text(stop) for stop in stops], value=control.initial,
            description=label, continuous_update=True, **WIDE)  # fmt: skip
    if isinstance(control, Choice):
        return ipywidgets.Dropdown(options=control.options, value=control.start,
                                   description=control.label, **WIDE)  # fmt: skip
    return ipywidgets.ToggleButtons(options=["off", "on"], value=control.initial,
                                    description=control.label, **WIDE)  # fmt: skip


def widget(what_if: Question) -> ipywidgets.VBox:
    """Controls over a sentence, a picture, and the numbers."""
    controls = {c.name: control_widget(c) for c in what_if.controls}
    said, numbers = ipywidgets.Label(), ipywidgets.HTML()
    picture = ipywidgets.Image(format="png", layout={"max_width": "46em"})

    def update(_change=None):
        try:
            answer = what_if.ask(**{name: c.value for name, c in controls.items()})
        except ValueError as error:
            said.value = str(error)
            return
        said.value = answer.finding
        picture.value = picture_png(answer)
        numbers.value = "<br>".join(f"{a}: <b>{b}</b>" for a, b in answer.facts)

    for each in controls.values():
        each.observe(update, names="value")
    update()
    title = ipywidgets.HTML(f"<b>{what_if.title}</b>")
    return ipywidgets.VBox([title, *controls.values(), said, picture, numbers])
