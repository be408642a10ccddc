"""Bounds as formulas, on the examples and on small documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.analysis.amounts import compared, number, parsed, size
from quire.library.document import load, read
from quire.library.foresight import Foresight
from quire.source import Source

EXAMPLES = Path(__file__).parents[2] / "examples"


def most(text: str, kind: str = "model_calls", name: str = "p.yaml") -> str:
    plan = read(Source.of(text, name)).plan
    assert plan is not None
    return str(Foresight(None).proof(plan).bound(kind).most)


def test_the_readers_of_a_board_are_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "review-board")
    plan = load(Path("review-board.yaml")).plan
    assert plan is not None
    proof = Foresight.here("review-board.yaml").proof(plan)
    assert str(proof.bound("model_calls").most) == "6·|readers| + 30"


PIPELINE = """
pipeline: p
steps:
  - for_each:
      over: ctx.rows
      on_error: abort
      do: {agent: {prompt: "Look at {item}", capabilities: {tools: []}}}
      collect: {transform: {value: pipe}}
"""


def test_a_list_without_a_limit_is_a_size() -> None:
    assert most(PIPELINE) == "|rows|"


def test_max_items_is_the_bound() -> None:
    assert most(PIPELINE.replace("on_error", "max_items: 7\n      on_error")) == "7"


def test_an_input_that_get_reads_from_all_stores_is_a_size_from_then_on() -> None:
    plan = read(
        Source.of(
            """
pipeline: p
steps:
  - transform: {value: "get(ctx, 'rows', [])", output: first}
  - transform: {value: "get(ctx, 'rows', [])"}
""",
            "p.yaml",
        )
    ).plan
    assert plan is not None
    assert str(Foresight(None).proof(plan).result.items) == "|rows|"


QUESTION = """
pipeline: p
dialect: quire
steps:
  - transform: {value: "1 + 1"}
  - tool: {name: ask, args: {prompt: "Go?", type: confirm}, output: ok}
  - transform: {value: "ctx.ok == 'yes'"}
"""


def test_an_expression_after_a_question_depends_on_the_answer() -> None:
    plan = read(Source.of(QUESTION, "p.yaml")).plan
    assert plan is not None
    proof = Foresight(None).proof(plan)
    (question,) = proof.questions
    computed = proof.result.computed
    assert computed is not None
    assert computed.reads["ctx.ok"].answer is question


def test_formulas_are_compared_for_all_sizes() -> None:
    rows = size("|rows|")
    assert compared(rows.plus(number(1)), rows) == "higher"
    assert compared(rows, rows.times(number(2))) == "lower"
    assert compared(rows.plus(number(1)), rows.times(number(2))) == "unclear"


@pytest.mark.parametrize("text", ["6·|readers| + 30", "0", "|a|²·|b| + 2·|c|", "∞", "1,000,000"])
def test_a_formula_is_read_as_it_was_written(text: str) -> None:
    found = parsed(text)
    assert found is not None
    assert str(found) == text


@pytest.mark.parametrize("text", ["", "x", "-1", "|a", "3·", "|a|⁴⁴"])
def test_other_text_is_no_formula(text: str) -> None:
    assert parsed(text) is None
