"""The rounds of a loop are counted one by one: those that gather their items cost less each time."""

from __future__ import annotations

import pytest
from tests.analysis.explore import explore_seed
from tests.analysis.test_counts import counts, proven
from tests.plan.test_bounds import PIPE
from tests.plan.test_bounds import pipeline as seed_pipeline

from quire.analysis import expressions
from quire.analysis.abstract_values import NULL
from quire.analysis.amounts import Amount
from quire.analysis.contributions import contributions
from quire.analysis.pipeline_loops import Round
from quire.plan.nodes import Plan

TWELVE = "range(12)"
PAIRS = "map(range(ceil(count(acc) / 2)), n -> slice(acc, n * 2, (n + 1) * 2))"


def pipeline(*steps: str) -> Plan:
    return seed_pipeline(*steps, dialect="dialect: quire\n")


def loop(over: str, *, init: str = TWELVE, rounds: int = 4, fan: str = "on_error: abort", around: str = "{}") -> str:
    """Return a loop whose round goes through a list that is made from the results of the round before."""
    each = f'{{for_each: {{over: "{over}", {fan}, do: {{tool: {{name: t}}}}, {PIPE}}}}}'
    return f'repeat: {{init: "{init}", do: {around.format(each)}, until: "false", max: {rounds}, on_max: keep}}'


@pytest.mark.parametrize(
    ("step", "tools"),
    [
        pytest.param(loop(PAIRS), 6 + 3 + 2 + 1, id="a half in each round"),
        pytest.param(loop("acc"), 4 * 12, id="as many in each round"),
        pytest.param(loop(PAIRS, fan="on_error: retry(1)"), 2 * 12, id="each twice"),
        pytest.param(loop(PAIRS, fan="on_error: abort, max_items: 4"), 4 + 2 + 1 + 1, id="no more than allowed"),
        pytest.param(loop("range(count(acc) - 1)"), 11 + 10 + 9 + 8, id="one less in each round"),
        pytest.param(loop("slice(acc, 1, 4)"), 4 * 3, id="a part"),
        pytest.param(loop("slice(acc, -4, 2)"), 4 * 12, id="a part that is counted from the end"),
        pytest.param(loop("range(min(count(acc), 5))"), 4 * 5, id="the smaller number"),
        pytest.param(loop("range(max(count(acc), 13))"), 4 * 13, id="the larger number"),
        pytest.param(loop("range(count(acc) + 1)"), 13 + 14 + 15 + 16, id="one more in each round"),
        pytest.param(loop("flatten([acc, acc])", init="[1, 2]"), 4 + 8 + 16 + 32, id="twice as many in each round"),
        pytest.param(loop(PAIRS, rounds=30), 6 + 3 + 2 + 27, id="rounds that are all alike in the end"),
        pytest.param(loop(PAIRS, around="{{steps: [{}]}}"), 12, id="in a block"),
    ],
)
def test_rounds_are_counted_one_by_one(step: str, tools: int) -> None:
    assert counts(proven(pipeline(step)))[1] == f"0 to {tools:,}"


def test_a_store_that_a_round_leaves_to_the_next_is_followed() -> None:
    kept = '{{steps: [{}, {{transform: {{value: "map(pipe, x -> [x, x])", output: kept}}}}]}}'
    grows = loop("range(count(get(ctx, 'kept', [1])) + 1)", init="[]", around=kept)
    stays = loop("range(count(get(ctx, 'other', [1])) + 1)", init="[]", around=kept)
    before = "transform: {value: '[1]', output: kept}", "transform: {value: '[1]', output: other}"
    assert counts(proven(pipeline(*before, grows)))[1] == "0 to 14"  # 2 + 3 + 4 + 5
    assert counts(proven(pipeline(*before, stays)))[1] == "0 to 8"


def test_the_items_of_an_input_stay_a_size() -> None:
    assert counts(proven(pipeline(loop("acc", init="ctx.rows"))))[1] == "0 to 4·|rows|"
    assert counts(proven(pipeline(loop(PAIRS, init="ctx.rows"))))[1] == "0 to 4·|rows|"


def test_a_loop_of_many_rounds_costs_as_much_as_any_round_in_the_rest() -> None:
    step = loop("range(min(count(acc) + 1, 40))", init="[]", rounds=50)
    assert counts(proven(pipeline(step)))[1] == f"0 to {sum(range(1, 13)) + 38 * 40:,}"


def test_a_step_says_how_often_it_runs_in_all_rounds() -> None:
    (tool,) = contributions(proven(pipeline(loop(PAIRS))), "tool_calls")
    assert str(tool.whole) == "12"


def test_questions_and_stops_in_a_loop_are_noted_once() -> None:
    asks = "{{steps: [{{tool: {{name: ask, args: {{prompt: hi}}}}}}, {{stop: {{when: \"pipe == 'no'\"}}}}, {}]}}"
    proof = proven(pipeline(loop("[1, 2]", around=asks)))
    assert len(proof.questions) == 1
    assert counts(proof)[2] == "1 to 4"


@pytest.mark.parametrize("wrong", ["rounds", "division", "items"])
def test_drawn_documents_show_a_rule_that_is_low(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if wrong == "rounds":
        after = Round.after
        monkeypatch.setattr(Round, "after", lambda self, value, stores: (NULL, *after(self, value, stores)[1:]))
    elif wrong == "division":
        exact = expressions.largest_after
        monkeypatch.setattr(expressions, "largest_after", lambda sign, most, by: _half(exact(sign, most, by)))
    else:
        counted = expressions.items_counted
        monkeypatch.setattr(expressions, "items_counted", lambda bounds: _halves(counted(bounds)))
    assert any(explore_seed(seed, "sized").problems for seed in range(23, 120))


def _half(most: Amount | None) -> Amount | None:
    return most.divided(2) if most is not None else None


def _halves(counted: tuple[Amount, Amount] | None) -> tuple[Amount, Amount] | None:
    return (counted[0].divided(2), counted[1]) if counted is not None else None


def test_a_round_that_may_end_the_pipeline_may_be_the_only_one() -> None:
    fold = "fold: {{items: [1, 2, 3], init: '0', do: {{steps: [{{tool: {{name: t}}}}{}]}}, output: x}}"
    assert counts(proven(pipeline(fold.format(""))))[1] == "3"
    assert counts(proven(pipeline(fold.format(', {stop: {when: "pipe == 1"}}'))))[1] == "1 to 3"


def test_a_round_leaves_no_trace() -> None:
    """Nothing that was noted is noted twice, however many rounds are looked at."""
    plan = pipeline(loop(PAIRS))
    facts = [type(fact).__name__ for fact in (*proven(plan).effects, *proven(plan).fans)]
    assert facts == ["EffectFact", "FanFact", "FanFact"]
