"""Bounds as formulas, on the examples and on small documents."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.given import given

from quire.analysis.amounts import compared, number, parsed, size
from quire.analysis.labels import OUTSIDE
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


def test_the_value_after_steps_that_may_be_left_out_is_that_of_any_of_them() -> None:
    """Thousands of them in a row are not gone through one inside the other."""
    first = "  - tool: {name: http__get, args: {url: 'https://example.org'}}\n"
    left_out = "".join(f"  - transform: {{value: '{10**at}', when: ctx.ok}}\n" for at in range(9)) * 300
    for last in ("", "  - transform: {value: pipe, output: last}\n"):
        plan = read(Source.of(f"pipeline: p\ndialect: quire\nsteps:\n{first}{left_out}{last}", "p.yaml")).plan
        assert plan is not None
        proof = Foresight(None).proof(plan)
        fetched = proof.effects[0].tool.result_tokens
        assert (proof.result.label.integrity, proof.result.length) == (OUTSIDE, number(fetched))
    plan = read(Source.of(f"pipeline: p\ndialect: quire\nsteps:\n{left_out}", "p.yaml")).plan
    assert plan is not None
    assert Foresight(None).proof(plan).result.length == number(9)


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


EACH = """
pipeline: each
steps:
  - for_each:
      over: x.rows
      on_error: abort
      do: {agent: {prompt: "{item}", capabilities: {tools: []}}}
      collect: {transform: {value: pipe}}
"""
ROWS = "fields: {{rows: {{type: list, of: {{type: string}}, max_items: {}}}}}\n---\n"
ROUND = """  - agent: {{prompt: x, schema: {0}, capabilities: {{tools: []}}, output: first}}
  - fold:
      items: [1]
      init: first
      output: last{0}
      do:
        steps:
          - transform: {{value: "1"}}
          - call: {{pipeline: each, pass: {{x: {1}}}}}
          - agent: {{prompt: x, schema: {0}, capabilities: {{tools: []}}}}
"""


@pytest.fixture
def work(here: Path) -> Path:
    (here / "pipelines").mkdir()
    return here


def most_of_calls(work: Path, called: str, caller: str) -> int | None:
    given({"pipelines/each.yaml": called, "caller.yaml": caller}, work)
    plan = load(Path("caller.yaml")).runnable()
    return Foresight.here("caller.yaml").proof(plan).bound("model_calls").most.as_number


@pytest.mark.parametrize("order", ["AB", "BA"])
def test_two_values_that_differ_only_in_their_types_are_two_calls(work: Path, order: str) -> None:
    schemas = f"schema: A\n{ROWS.format(2)}schema: B\n{ROWS.format(1000)}"
    rounds = "".join(ROUND.format(one, "acc") for one in order)
    # Each round asks twice, with two corrections each, and once for each row.
    assert most_of_calls(work, EACH, f"{schemas}pipeline: p\ndialect: quire\nsteps:\n{rounds}") == 12 + 2 + 1000


def test_the_name_of_a_schema_means_that_of_its_own_file(work: Path) -> None:
    whole = "schema: Whole\nfields: {row: {type: ref, schema: Row}}\n---\n"
    called = f"schema: Row\n{ROWS.format(2)}" + EACH.strip().replace("steps:", "dialect: quire\nsteps:", 1)
    caller = (
        f"schema: Row\n{ROWS.format(1000)}{whole}pipeline: p\ndialect: quire\nsteps:\n{ROUND.format('Whole', 'acc')}"
    )
    found = most_of_calls(work, called.replace("x.rows", "x.row.rows"), caller)
    assert found is not None and found >= 6 + 1000
