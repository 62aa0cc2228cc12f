"""What-ifs: a function of the library behind a few controls, live in every page.

Declared once, in `cases`. In a notebook a what-if is made of ipywidgets; in the built
book it is an element that stands without a script and comes alive in the browser,
where the same Python runs. No arithmetic here: a what-if asks the library.
"""

from commwall.rules import choice
from commwall.whatif.cases.links import MESSAGE_TIME
from commwall.whatif.front import WhatIf

__all__ = ["WHAT_IFS", "WhatIf", "show"]

WHAT_IFS = {each.name: each for each in (MESSAGE_TIME,)}


def show(name: str) -> WhatIf:
    """The what-if of that name, which shows itself as the last line of a cell."""
    return WHAT_IFS[choice("name", name, WHAT_IFS)]
