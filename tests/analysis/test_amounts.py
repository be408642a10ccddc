"""Formulas of sizes: one spelling of each, and sums, products and maxima that forget nothing."""

from __future__ import annotations

from typing import get_args

import pytest

from quire.analysis.amounts import MOST_TERMS, NOTHING, ONE, Amount, Reason, endless, number, size, total
from quire.analysis.costs import SPAN, Cost, side_by_side
from quire.analysis.expressions import _EVALUATORS
from quire.expr.syntax import Node

A, B = size("|a|"), size("|b|")


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (A.plus(B).plus(number(3)), "|a| + |b| + 3"),
        (number(3).plus(B).plus(A), "|a| + |b| + 3"),
        (total([number(1), B, number(2), A]), "|a| + |b| + 3"),
        (total([A, A], 5), "2·|a| + 5"),
        (A.times(B).times(number(2)), "2·|a|·|b|"),
        (A.plus(number(2)).either(A.times(number(3))), "3·|a| + 2"),
        (A.times(number(5)).plus(number(3)).divided(2), "3·|a| + 2"),
        (A.times(B).plus(number(4)).with_sizes({"|a|": 0}), "4"),
    ],
)
def test_formulas_are_written_in_one_way(found: Amount, text: str) -> None:
    assert str(found) == text
    assert found == total([found]) == found.plus(NOTHING) == NOTHING.plus(found) == found.times(ONE)


@pytest.mark.parametrize(
    ("found", "count"),
    [
        (number(2).plus(number(3)), 5),
        (number(2).times(number(3)), 6),
        (number(2).either(number(3)), 3),
        (A.times(NOTHING), 0),
        (A.times(B).with_sizes({"|a|": 0}), 0),
        (A.plus(number(1)).with_sizes({"|a|": 4}), 5),
        (A, None),
        (endless(Reason("no limit")), None),
    ],
)
def test_a_formula_without_sizes_is_a_number(found: Amount, count: int | None) -> None:
    assert found.as_number == count


def test_infinity_stays_and_keeps_its_reasons() -> None:
    one, other = Reason("one"), Reason("other")
    assert endless(one).plus(A).reasons == (one,)
    assert A.either(endless(one)).times(endless(other)).reasons == (one, other)
    assert total([A, endless(one), endless(other), endless(one)]).reasons == (one, other)
    assert endless(one).times(NOTHING) == NOTHING


def test_a_formula_with_too_many_parts_is_given_up() -> None:
    parts = [size(f"|{at}|") for at in range(MOST_TERMS + 1)]
    assert total(parts[:-1]).is_endless is False
    assert total(parts).is_endless


def test_numbers_and_formulas_of_a_cost_add_up_to_one_amount() -> None:
    cost = Cost()
    cost.count("calls", 2)
    cost.spend("calls", A.plus(number(3)))
    assert str(cost.amount("calls")) == "|a| + 5"
    assert str(cost.times(B, 0).amount("calls")) == "|a|·|b| + 5·|b|"
    cost.drop("calls")
    assert cost.is_nothing


def test_of_ways_side_by_side_the_longest_counts() -> None:
    short, long = Cost(), Cost()
    short.take(5)
    short.spend(SPAN, A)
    long.take(7)
    assert str(side_by_side([short, long]).amount(SPAN)) == "|a| + 7"
    assert str(side_by_side([short, long]).amount("work")) == "12"


def test_every_kind_of_expression_is_evaluated() -> None:
    assert set(_EVALUATORS) == set(get_args(Node))
