"""What `tools/notebooks.py` keeps of a notebook, and what it complains about."""

import json

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import notebook_style
import notebooks

PICTURE = new_output("display_data", {"image/png": "iVBO", "text/plain": "<Figure>"})
VALUE = new_output("execute_result", {"text/plain": "30"}, execution_count=7)
TABLE = new_output("execute_result", {"text/plain": "30", "text/html": "<b>30</b>"})
ALT = {"mystnb": {"image": {"alt": "Two bars, the left one higher."}}}


def line(text, name="stdout"):
    """What a cell prints."""
    return new_output("stream", name=name, text=text)


def cleaned(tmp_path, source, outputs, tags=()):
    """One code cell after cleaning."""
    cell = new_code_cell(source, outputs=outputs, execution_count=7)
    cell["metadata"] = {"tags": list(tags), "collapsed": True}
    path = tmp_path / "page.ipynb"
    path.write_text(notebooks.written(new_notebook(cells=[cell])))
    notebooks.clean_in_place(path)
    return json.loads(path.read_text())["cells"][0]


def faults(source, tags=(), metadata=None):
    """Faults of style of one code cell."""
    cell = new_code_cell(source, execution_count=1, metadata=metadata or {})
    cell["metadata"]["tags"] = list(tags)
    return list(notebook_style.source_faults(new_notebook(cells=[cell])))


def test_what_a_cell_prints_is_kept_with_a_count_that_nbval_compares(tmp_path):
    cell = cleaned(tmp_path, "x", [line("a\n"), line("b\n"), VALUE])

    assert cell["execution_count"] == 1
    assert [output["output_type"] for output in cell["outputs"]] == [
        "stream",
        "execute_result",
    ]
    assert cell["outputs"][0]["text"] == ["a\n", "b\n"]
    assert cell["outputs"][1]["execution_count"] == 1


def test_pictures_and_html_are_not_kept(tmp_path):
    assert cleaned(tmp_path, "x", [PICTURE, TABLE])["outputs"] == []


def test_a_cell_that_is_not_compared_keeps_nothing(tmp_path):
    cell = cleaned(tmp_path, "x", [VALUE, PICTURE], ["nbval-ignore-output"])

    assert cell["outputs"] == []
    assert cell["execution_count"] is None


def test_only_our_own_metadata_is_kept(tmp_path):
    assert cleaned(tmp_path, "x", [], ["hide-input"])["metadata"] == {
        "tags": ["hide-input"]
    }


def test_cleaning_twice_changes_nothing_more(tmp_path):
    cleaned(tmp_path, "x", [PICTURE, VALUE])
    path = tmp_path / "page.ipynb"

    assert notebooks.clean_text(path) == path.read_text()


def test_a_cell_without_an_id_always_gets_the_same_one():
    ids = [
        notebooks.new_id({"source": text}, taken)
        for text, taken in [("x", set()), ("x", set()), ("y", set())]
    ]

    assert ids[0] == ids[1] != ids[2]
    assert notebooks.new_id({"source": "x"}, {ids[0]}) != ids[0]


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("x = 1;", "semicolon"),
        ("x = " + "1" * 70, "columns"),
        ("x\n" * 16, "lines"),
        ("# TODO", "TODO"),
        ("x = '\u00b5'", "ASCII"),
        ("%time x", "plain Python"),
        ("  ", "empty"),
    ],
)
def test_faults_of_layout_are_named(source, fault):
    assert any(fault in found for found in faults(source))


@pytest.mark.parametrize(
    "source",
    [
        "fig, ax = plt.subplots()",
        "ax = charts.step_bars(steps)",
        "from commwall.charts import step_bars\nax = step_bars(steps)",
    ],
)
def test_a_cell_that_draws_needs_words_and_tags(source):
    tags = ["hide-input", "nbval-ignore-output"]

    assert len(faults(source)) == 3
    assert faults(source, tags, ALT) == []


def test_importing_what_draws_is_not_drawing():
    assert faults("from commwall import charts") == []
    assert faults("def draw(ax):\n    plt.sca(ax)") == []


@pytest.mark.parametrize(("id", "count"), [("answer-ex-sum", 0), ("sum", 1)])
def test_the_cell_that_answers_an_exercise_is_named_after_it(id, count):
    start = new_markdown_cell("```{solution-start} ex-sum\n```")
    end = new_markdown_cell("```{solution-end}\n```")
    code = new_code_cell("1 + 1", execution_count=1, id=id)
    page = new_notebook(cells=[start, code, end])

    assert len(list(notebook_style.source_faults(page))) == count
