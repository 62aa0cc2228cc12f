"""What-ifs that stand still, fail, or are led astray: they say so and stay true."""

import pytest

from commwall.whatif import WHAT_IFS
from readers import PATIENCE, PHONE, ROOT, STATE, Reader, in_cpython, pages_with

DESKTOP = {"width": 1440, "height": 900}

each = pytest.mark.parametrize("name", WHAT_IFS)


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
