"""What-ifs: a function of the library behind a few controls, live in every page.

Declared once, in `cases`. In a notebook a what-if is made of ipywidgets; in the built
book it is an element that stands without a script and comes alive in the browser,
where the same Python runs. No arithmetic here: a what-if asks the library.
"""

from commwall.rules import choice
from commwall.whatif.cases.boxes import TOPOLOGY_FLOW
from commwall.whatif.cases.choices import PLAN_SEARCH, YOUR_RIG
from commwall.whatif.cases.costs import BREAK_EVEN, COST_OF_TOKENS
from commwall.whatif.cases.data_wall import GRADIENT_SYNC
from commwall.whatif.cases.demand import BYTES_BY_AXIS, WILL_IT_FIT
from commwall.whatif.cases.links import MESSAGE_TIME
from commwall.whatif.cases.new_hardware import NEW_HARDWARE
from commwall.whatif.cases.pipeline_wall import PIPELINE_TIMELINE
from commwall.whatif.cases.roofline import NETWORK_ROOFLINE
from commwall.whatif.cases.tensor_wall import TENSOR_SCALING
from commwall.whatif.front import WhatIf

__all__ = ["WHAT_IFS", "WhatIf", "show"]

_ALL = (
    YOUR_RIG,
    BYTES_BY_AXIS,
    WILL_IT_FIT,
    MESSAGE_TIME,
    NETWORK_ROOFLINE,
    TOPOLOGY_FLOW,
    TENSOR_SCALING,
    PIPELINE_TIMELINE,
    GRADIENT_SYNC,
    COST_OF_TOKENS,
    BREAK_EVEN,
    NEW_HARDWARE,
    PLAN_SEARCH,
)
WHAT_IFS = {each.name: each for each in _ALL}


def show(name: str) -> WhatIf:
    """The what-if of that name, which shows itself as the last line of a cell."""
    return WHAT_IFS[choice("name", name, WHAT_IFS)]
