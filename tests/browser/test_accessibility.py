"""No page has a fault that axe-core knows, by day or by night, wide or narrow."""

from pathlib import Path

import pytest

from toc import page_names

AXE = Path(__file__).resolve().parents[2] / "node_modules/axe-core/axe.min.js"
# Opened small: on loading the theme lets the keyboard reach what is cut off there.
SMALL = {"width": 390, "height": 900}
LARGE = {"width": 1440, "height": 900}
FAULTS = """async () => (await axe.run()).violations.map(
  fault => [fault.id, ...fault.nodes.map(node => node.html)].join("\\n"))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [*page_names(), "search"])
def test_a_page_has_no_fault_of_accessibility(visit, name, scheme):
    page = visit(viewport=SMALL, color_scheme=scheme, reduced_motion="reduce").open(
        name
    )
    assert page.locator(f"html[data-theme={scheme}]").count() == 1
    page.add_script_tag(path=AXE)

    for size in (SMALL, LARGE):
        page.set_viewport_size(size)
        assert page.evaluate(FAULTS) == [], size
