"""Every page, as a reader meets it: complete, quiet, and no wider than the screen."""

import pytest

from toc import page_names

WIDTHS = (1440, 820, 390)  # desktop, tablet, phone
READ = {"viewport": {"width": WIDTHS[0], "height": 900}}

# What stands in the article, code and its output left out.
PROSE = """() => {
  const article = document.querySelector("article").cloneNode(true);
  const code = "pre, code, script, style, mjx-container";
  article.querySelectorAll(code).forEach(element => element.remove());
  return article.textContent;
}"""
RAW = ["$$", "\\(", "\\[", "\\frac", "\\text", "\\begin", "```", ":::", "{ref}", "{eq}"]

WIDER = """() => {
  const right = document.documentElement.clientWidth;
  const page = document.documentElement.scrollWidth;
  if (page <= right) return [];
  return [...document.querySelectorAll("article *")]
    .filter(element => element.getBoundingClientRect().right > right + 1)
    .slice(0, 5).map(element => element.outerHTML.slice(0, 160)).concat(page);
}"""

UNNAMED = """() => [...document.querySelectorAll("article img")]
  .filter(image => !image.alt.trim() || /[.](png|svg|jpe?g)$/.test(image.alt))
  .map(image => image.outerHTML.slice(0, 160))"""

BROKEN = """() => [...document.querySelectorAll("article img")]
  .filter(image => !image.complete || image.naturalWidth === 0)
  .map(image => image.src)"""

NOT_SET = """() => [...document.querySelectorAll("article .math")]
  .filter(element => !element.querySelector("mjx-container"))
  .map(element => element.textContent)"""

WRONG = "mjx-merror, mjx-container [style*='color: red']"
COMPLAINTS = ".output.stderr, .output.traceback, .system-message, .problematic"


@pytest.mark.parametrize("name", page_names())
def test_a_page_is_complete_and_quiet(visit, name):
    reader = visit(**READ)
    page = reader.open(name)
    prose = page.evaluate(PROSE)

    assert not [mark for mark in RAW if mark in prose]
    assert page.evaluate(NOT_SET) == []
    assert page.locator(WRONG).count() == 0
    assert page.locator(COMPLAINTS).count() == 0
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(BROKEN) == []
    assert reader.faults == []


@pytest.mark.parametrize("name", page_names())
def test_a_page_is_no_wider_than_the_screen(visit, name):
    page = visit(**READ).open(name)

    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(WIDER) == [], f"at {width} px"


@pytest.mark.parametrize("name", page_names())
def test_a_page_can_be_read_without_scripts(visit, name):
    reader = visit(java_script_enabled=False, **READ)
    reader.page.goto(f"{reader.site}/{name}.html")

    assert reader.page.locator("article h1").first.is_visible()
    assert len(reader.page.locator("article").inner_text()) > 100
    assert reader.faults == []


def test_the_front_door_leads_to_the_title_page(visit):
    reader = visit(**READ)
    reader.open("index")

    reader.page.wait_for_url(f"{reader.site}/{page_names()[0]}.html")


def test_search_finds_a_word_of_the_course(visit):
    reader = visit(**READ)
    reader.page.goto(f"{reader.site}/search.html?q=bandwidth")

    page = reader.page
    page.wait_for_selector("ul.search li a")
    page.wait_for_selector("ul.search li p.context")
    assert reader.faults == []
