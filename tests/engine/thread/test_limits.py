from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.engine.interpreter.thread.budgets import (
    DEFAULTS,
    Cost,
    LimitEvent,
    Limits,
    exceeded,
    resolve_limits,
    spawn_refused,
)
from quire.errors import BadInputs, LimitReached
from quire.values import Value

PARENT = Limits(turns=30, tokens=1000, spend=0.5, spawns=2, depth=4, duration_seconds=60)


@pytest.mark.parametrize(
    ("declared", "overrides", "parent", "changed"),
    [
        ({}, {}, None, {}),
        ({"turns": 6, "tokens": 4096}, {}, None, {"turns": 6, "tokens": 4096}),
        ({"max_turns": 6, "max_tokens": "4096"}, {}, None, {"turns": 6, "tokens": 4096}),
        ({"turns": 6, "max_turns": "6"}, {}, None, {"turns": 6}),
        ({"turns": 6}, {"max_turns": 60}, None, {"turns": 60}),
        ({"spend": "0.05", "spend_currency": "usd"}, {}, None, {"spend": 0.05}),
        ({}, {"tokens": None}, None, {"tokens": None}),
        ({"duration_seconds": 0.5}, {}, None, {"duration_seconds": 0.5}),
        (
            {"turns": 40},
            {"spend": 2, "tokens": 10},
            PARENT,
            {"turns": 30, "tokens": 10, "spend": 0.5, "spawns": 2, "depth": 3, "duration_seconds": 60},
        ),
        ({"depth": 1}, {}, Limits(depth=4), {"depth": 1}),
        ({}, {}, Limits(depth=1), {"depth": 0}),
        ({}, {"tokens": None}, Limits(tokens=7), {"tokens": 7}),
    ],
)
def test_the_tightest_word_holds(
    declared: dict[str, Value], overrides: dict[str, Value], parent: Limits | None, changed: dict[str, Value]
) -> None:
    assert resolve_limits(declared, overrides, parent).as_value() == {**DEFAULTS, **changed}


@pytest.mark.parametrize(
    ("declared", "overrides", "problems"),
    [
        ({"trns": 1}, {}, ["unknown limit trns in the directive: did you mean turns?"]),
        (
            {},
            {"wings": 1, "turns": "many"},
            [
                "unknown limit wings in the overrides: the limits are turns, tokens, spend, spend_currency, spawns, "
                "depth, duration_seconds",
                'limit turns in the overrides: "many" is not an integer',
            ],
        ),
        ({"spend": -1}, {}, ["limit spend in the directive: -1 is not between 0 and 1,000,000,000,000,000"]),
        ({"turns": True}, {}, ["limit turns in the directive: true is not an integer"]),
        ({"turns": "9" * 3000}, {}, None),
        (
            {"spend_currency": 5},
            {"spend_currency": "JPY"},
            [
                "limit spend_currency in the directive: 5 is not USD: costs are counted in US dollars",
                'limit spend_currency in the overrides: "JPY" is not USD: costs are counted in US dollars',
            ],
        ),
        ({"turns": 6, "max_turns": 5}, {}, ["turns has two different values in the directive: 6 and 5"]),
    ],
)
def test_what_is_no_limit_is_refused(
    declared: dict[str, Value], overrides: dict[str, Value], problems: list[str] | None
) -> None:
    with pytest.raises(BadInputs) as error:
        resolve_limits(declared, overrides, None)
    if problems is not None:
        assert error.value.problems == problems


def test_a_thread_of_0_1_0_keeps_the_limits_that_it_ran_under() -> None:
    """G13: what is an error now is read as it was when a recorded run is replayed."""
    declared: dict[str, Value] = {"turns": 6, "max_turns": 5, "spend_currency": "jpy"}
    limits = resolve_limits(declared, {}, None, rules=1)
    assert (limits.turns, limits.spend_currency) == (5, "JPY")


def test_threads_are_not_nested_deeper_than_the_limit() -> None:
    with pytest.raises(LimitReached, match="depth limit"):
        resolve_limits({}, {"depth": 99}, Limits(depth=0))


def test_a_chain_of_threads_ends_where_depth_does() -> None:
    limits = resolve_limits({"depth": 3}, {}, None)
    seen = []
    while spawn_refused(limits, Cost()) is None:
        limits = resolve_limits({}, {}, limits)
        seen.append(limits.depth)
    assert seen == [2, 1, 0]


@pytest.mark.parametrize(
    ("limits", "cost", "event"),
    [
        (Limits(turns=4, tokens=100, spend=1.0), Cost(3, 50, 49, 0.99), None),
        (Limits(turns=4), Cost(4), LimitEvent("turns_exceeded", 4, 4)),
        (Limits(turns=4, tokens=100), Cost(4, 90, 10), LimitEvent("turns_exceeded", 4, 4)),
        (Limits(tokens=100, spend=1.0), Cost(1, 90, 10, 2.0), LimitEvent("tokens_exceeded", 100, 100)),
        (Limits(spend=1.0, duration_seconds=1), Cost(1, 0, 0, 1.0, 5), LimitEvent("spend_exceeded", 1.0, 1.0)),
        (Limits(spend=0.1), Cost(spend=sum([0.01] * 10)), LimitEvent("spend_exceeded", sum([0.01] * 10), 0.1)),
        (Limits(duration_seconds=60), Cost(elapsed_seconds=60), LimitEvent("duration_seconds_exceeded", 60, 60)),
        (Limits(spend=1.0, tokens=100), Cost(1, 9, 9, None), None),
        (Limits(spend=1.0, tokens=10), Cost(1, 9, 9, None), LimitEvent("tokens_exceeded", 18, 10)),
        (Limits(spend=1.0), Cost(1, 9, 9, None), LimitEvent("spend_unknown", None, 1.0)),
        (Limits(), Cost(10**6, 10**9, 0, None, 10**6), None),
        (Limits(turns=0), Cost(), LimitEvent("turns_exceeded", 0, 0)),
    ],
)
def test_a_limit_is_reached_by_its_value_in_a_fixed_order(limits: Limits, cost: Cost, event: LimitEvent | None) -> None:
    assert exceeded(limits, cost) == event


def test_what_is_reached_is_said_in_a_sentence() -> None:
    assert LimitEvent("turns_exceeded", 4, 4).message == "limit reached: turns 4 of 4; resume with a higher limit"
    assert "limit of tokens" in LimitEvent("spend_unknown", None, 1.0).message


def test_spawns_are_counted() -> None:
    assert spawn_refused(Limits(spawns=2), Cost(spawns=1)) is None
    assert spawn_refused(Limits(spawns=2), Cost(spawns=2)) == LimitEvent("spawns_exceeded", 2, 2)


costs = st.builds(
    Cost,
    st.integers(0, 99),
    st.integers(0, 99),
    st.integers(0, 99),
    st.none() | st.integers(0, 99).map(float),
    st.integers(0, 99).map(float),
    st.integers(0, 99),
)


@given(costs, costs, costs)
def test_costs_add_up_in_any_order_and_the_unknown_stays_unknown(one: Cost, two: Cost, three: Cost) -> None:
    assert one.plus(two) == two.plus(one)
    assert one.plus(two).plus(three) == one.plus(two.plus(three))
    assert one.plus(Cost()) == one
    assert (one.plus(two).spend is None) == (one.spend is None or two.spend is None)


@given(
    st.dictionaries(st.sampled_from(["turns", "tokens", "spawns", "spend"]), st.integers(0, 500)),
    st.dictionaries(st.sampled_from(["turns", "tokens", "spawns", "spend"]), st.integers(0, 500)),
)
def test_no_child_has_more_than_its_parent(declared: dict[str, Value], overrides: dict[str, Value]) -> None:
    child = resolve_limits(declared, overrides, PARENT)
    for name in ("turns", "tokens", "spawns", "spend", "depth", "duration_seconds"):
        assert getattr(child, name) <= getattr(PARENT, name)
