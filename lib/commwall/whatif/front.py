"""A what-if, and the face it shows: widgets where a kernel runs, else an element."""

import os
from dataclasses import dataclass

from commwall.whatif.element import element_html
from commwall.whatif.questions import Question

__all__ = ["WhatIf"]

STILL = "COMMWALL_STILL"
"""Set while the book is built, when nobody will move a slider of the kernel's."""


@dataclass(frozen=True, kw_only=True)
class WhatIf(Question):
    """Declared once; live in a notebook and in the built book.

    As the last line of a cell it shows itself.
    """

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        shown = {"text/plain": f"{self.title} {self.ask().finding}"}
        if os.environ.get(STILL):
            return shown | {"text/html": element_html(self)}
        from commwall.whatif.live import widget

        return widget(self)._repr_mimebundle_() | shown
