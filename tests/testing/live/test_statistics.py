"""The numbers of measurements: against values of scipy and statsmodels, and by properties."""

from __future__ import annotations

import random
import statistics as plain
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.testing.live.statistics import (
    WHOLE,
    Agreement,
    Comparison,
    Interval,
    Tally,
    compared,
    design_effect,
    excluded,
    kappa,
    kappa_error,
    mcnemar,
    pass_all,
    percentile,
    rate_excluded,
    rate_interval,
    rows_to_decide,
    wilson,
)

_counts = st.integers(1, 500).flatmap(lambda tried: st.tuples(st.integers(0, tried), st.just(tried)))
_rows = st.lists(_counts.map(lambda pair: Tally(*pair)), min_size=1, max_size=12)
_cells = st.integers(0, 60)


@pytest.mark.parametrize(
    ("passed", "tried", "low", "high"),
    [
        (0, 10, 0.0, 0.2775327999),
        (10, 10, 0.7224672001, 1.0),
        (7, 10, 0.3967781475, 0.8922087326),
        (18, 20, 0.6989663548, 0.9721335188),
        (1, 3, 0.0614919447, 0.7923403992),
        (181, 200, 0.8563983884, 0.9383368973),
        (5, 5000, 0.0004272135, 0.0023389531),
    ],
)
def test_wilson(passed: int, tried: int, low: float, high: float) -> None:
    """`statsmodels.stats.proportion.proportion_confint(method="wilson")`."""
    found = wilson(passed, tried)
    assert [found.low, found.high] == pytest.approx([low, high], abs=1e-9)


@given(_counts)
def test_an_interval_holds_its_rate_and_is_symmetric(counts: tuple[int, int]) -> None:
    passed, tried = counts
    found, mirrored = wilson(passed, tried), wilson(tried - passed, tried)
    assert 0 <= found.low <= passed / tried <= found.high <= 1
    assert found.low == pytest.approx(1 - mirrored.high) and found.high == pytest.approx(1 - mirrored.low)
    wider = wilson(passed / 2, tried / 2)
    assert wider.low <= found.low + 1e-12 and wider.high >= found.high - 1e-12


def test_nothing_tried_says_nothing() -> None:
    assert wilson(0, 0) == rate_interval([]) == WHOLE
    assert not excluded(0, 0, 0.5)
    assert pass_all([], 1) is None and percentile([], 0.5) is None
    assert compared([(Tally(0, 0), Tally(1, 1))]).rows == 0


@pytest.mark.parametrize(
    ("rows", "effect"),
    [
        ([Tally(3, 5)], 1.0),
        ([Tally(1, 1), Tally(0, 1)], 1.0),
        ([Tally(5, 5), Tally(5, 5)], 1.0),
        ([Tally(5, 5), Tally(0, 5), Tally(5, 5), Tally(0, 5)], 5.0),
        ([Tally(2, 4), Tally(2, 4), Tally(2, 4)], 1.0),
        ([Tally(4, 4), Tally(3, 4), Tally(1, 4), Tally(2, 4)], 1.7777777778),
    ],
    ids=["one row", "no repeats", "no failure", "rows that always do the same", "rows like coins", "between"],
)
def test_design_effect(rows: list[Tally], effect: float) -> None:
    assert design_effect(rows) == pytest.approx(effect)


def test_repeats_of_rows_count_for_less_than_rows() -> None:
    same = [Tally(5, 5)] * 8 + [Tally(0, 5)] * 2
    assert rate_interval(same) == wilson(8, 10)
    assert rate_interval([Tally(4, 5)] * 10) == wilson(40, 50)
    assert not rate_excluded(same, 0.95) and excluded(40, 50, 0.95)


def test_intervals_of_repeated_rows_cover_the_rate() -> None:
    """Rows that differ much, so that the plain interval of all tries would cover the rate in three of four runs."""
    chance = random.Random(5)
    runs = [
        [_tries(chance, chance.betavariate(0.8, 0.2), 5) for _ in range(40)]  # the mean of the rows is 0.8
        for _ in range(400)
    ]
    covered = sum(0.8 in rate_interval(rows) for rows in runs) / len(runs)
    assert 0.91 <= covered <= 0.98
    assert sum(0.8 in wilson(sum(row.passed for row in rows), 200) for rows in runs) / len(runs) < 0.85


def _tries(chance: random.Random, rate: float, tried: int) -> Tally:
    return Tally(sum(chance.random() < rate for _ in range(tried)), tried)


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.99])
def test_looking_after_each_try_seldom_excludes_the_true_rate(rate: float) -> None:
    chance = random.Random(7)
    wrong = sum(_is_ever_excluded(chance, rate, rate, 300) for _ in range(300)) / 300
    assert wrong <= 0.05


def test_looking_finds_a_wrong_rate() -> None:
    chance = random.Random(7)
    assert all(_is_ever_excluded(chance, 0.5, 0.9, 100) for _ in range(50))
    assert all(_is_ever_excluded(chance, 1.0, 0.9, 100) for _ in range(5))


def _is_ever_excluded(chance: random.Random, true: float, rate: float, most: int) -> bool:
    passed = 0
    for tried in range(1, most + 1):
        passed += chance.random() < true
        if excluded(passed, tried, rate):
            return True
    return False


def test_a_rate_of_one_or_zero_is_excluded_by_one_try() -> None:
    assert excluded(9, 10, 1.0) and not excluded(10, 10, 1.0)
    assert excluded(1, 10, 0.0) and not excluded(0, 10, 0.0)


@pytest.mark.parametrize(
    ("rows", "times", "expected"),
    [
        ([Tally(5, 5), Tally(4, 5)], 5, 0.5),
        ([Tally(5, 5), Tally(4, 5)], 1, 0.9),
        ([Tally(3, 4)], 2, 0.5),  # 3 of the 6 pairs
        ([Tally(3, 4), Tally(1, 1)], 2, 0.5),
        ([Tally(1, 1)], 2, None),
    ],
)
def test_pass_all(rows: list[Tally], times: int, expected: float | None) -> None:
    assert pass_all(rows, times) == (None if expected is None else pytest.approx(expected))


@given(_rows)
def test_passing_more_often_is_never_more_likely(rows: list[Tally]) -> None:
    rates = [
        rate for times in range(1, 6) if (rate := pass_all([row for row in rows if row.tried >= 5], times)) is not None
    ]
    assert all(0 <= later <= earlier + 1e-12 for earlier, later in pairwise(rates))


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        (0, 0, 1.0),
        (5, 0, 0.0625),
        (6, 0, 0.03125),
        (10, 3, 0.09228515625),
        (1, 8, 0.0390625),
        (40, 25, 0.08168153394154003),
        (400, 330, 0.010605994778707762),
        (12, 12, 1.0),
        (5_000, 4_000, 5.581401567014391e-26),
    ],
)
def test_mcnemar(first: int, second: int, p: float) -> None:
    """`statsmodels.stats.contingency_tables.mcnemar(exact=True)`."""
    assert mcnemar(first, second) == mcnemar(second, first) == pytest.approx(p, rel=1e-9, abs=0)


def test_models_are_compared_by_rows() -> None:
    pairs = [(Tally(1, 1), Tally(0, 1))] * 2 + [(Tally(0, 1), Tally(1, 1))] * 9 + [(Tally(1, 1), Tally(1, 1))] * 9
    found = compared(pairs)
    assert (found.rows, found.first_only, found.second_only) == (20, 2, 9)
    assert (found.first_rate, found.second_rate, found.difference) == (0.55, 0.9, 0.35)
    assert found.p == pytest.approx(0.0654296875) and not found.decided
    assert compared(pairs * 2).decided


def test_repeats_of_a_row_are_one_comparison() -> None:
    pairs = [(Tally(1, 3), Tally(2, 6)), (Tally(3, 5), Tally(4, 5)), (Tally(5, 5), Tally(4, 5))]
    found = compared(pairs)
    assert (found.rows, found.first_only, found.second_only) == (3, 1, 1)


def test_how_many_more_rows_would_decide() -> None:
    """n = ((z₁√d + z₂√(d - δ²)) / δ)² of Connor, with 25 % differing rows and 10 points: 187 rows in all."""
    seen = Comparison(98, 7, 17, 0.7, 0.8)  # 10 points, and (24 + 1) / 100 rows differ
    more = rows_to_decide(seen)
    assert more.difference == pytest.approx(10 / 98)
    assert more.rows == 89
    assert rows_to_decide(Comparison(4, 0, 4, 0.0, 1.0)).rows == 2  # 6 to 0 has p = 0.03, 5 to 0 has 0.06
    assert rows_to_decide(Comparison(98, 12, 12, 0.7, 0.7)).difference == 0.05
    assert rows_to_decide(Comparison(98, 12, 12, 0.7, 0.7)).rows == 690
    assert rows_to_decide(Comparison(5_000, 600, 610, 0.7, 0.7)).rows == 0  # 5 points would have shown


@given(st.integers(1, 300), st.data())
def test_more_rows_are_always_some_and_never_endless(rows: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, rows))
    second = data.draw(st.integers(0, rows - first))
    more = rows_to_decide(Comparison(rows, first, second, 0.0, 0.0))
    assert (0 if abs(first - second) < 0.05 * rows else 1) <= more.rows <= 10_000
    assert more.difference >= 0.05


def test_planned_rows_decide_as_often_as_promised() -> None:
    chance = random.Random(3)
    decided = 0
    more = rows_to_decide(Comparison(100, 8, 18, 0.8, 0.9)).rows
    for _ in range(200):
        pairs = [
            (Tally(int(draw < 0.08 or draw >= 0.26), 1), Tally(int(draw >= 0.08), 1))
            for draw in _draws(chance, 100 + more)
        ]
        decided += compared(pairs).decided
    assert 0.7 <= decided / 200 <= 0.9


def _draws(chance: random.Random, count: int) -> list[float]:
    return [chance.random() for _ in range(count)]


@pytest.mark.parametrize(
    ("cells", "value", "error"),
    [
        ((20, 5, 10, 15), 0.4, 0.1269960629),
        ((45, 2, 3, 50), 0.8997594226, 0.0436845404),
        ((90, 4, 1, 5), 0.6408045977, 0.1477764593),
        ((30, 0, 0, 30), 1.0, 0.0),
        ((1, 20, 25, 4), -0.7885532591, 0.0909141418),
        ((61, 7, 9, 23), 0.6261682243, 0.0845448986),
    ],
)
def test_kappa(cells: tuple[int, int, int, int], value: float, error: float) -> None:
    """`statsmodels.stats.inter_rater.cohens_kappa`."""
    agreement = Agreement(*cells)
    found = kappa(agreement)
    assert found is not None
    assert found.value == pytest.approx(value, abs=1e-9)
    assert kappa_error(agreement) == pytest.approx(error, abs=1e-9)
    assert found.interval.low <= max(-1.0, value - 1.959 * error) and found.interval.high >= min(
        1.0, value + 1.959 * error
    )


def test_a_judge_without_a_mistake_is_not_certain() -> None:
    few, many = kappa(Agreement(5, 0, 0, 5)), kappa(Agreement(50, 0, 0, 50))
    assert few is not None and few.value == 1 and few.interval.low == pytest.approx(2 * 0.7224672001 - 1)
    assert many is not None and many.interval.low > 0.9
    one_label = kappa(Agreement(49, 0, 0, 1))
    assert one_label is not None and one_label.value == 1 and one_label.interval.low < 0
    assert kappa(Agreement(50, 0, 0, 0)) is None
    assert kappa(Agreement(0, 0, 0, 0)) is None


@given(_cells, _cells, _cells, _cells)
def test_kappa_of_any_table(both: int, judge: int, person: int, neither: int) -> None:
    found, other = kappa(Agreement(both, judge, person, neither)), kappa(Agreement(neither, person, judge, both))
    if found is None or other is None:
        assert found is other is None
        return
    assert -1 <= found.interval.low <= found.value + 1e-12 and found.value - 1e-12 <= found.interval.high <= 1
    assert found.value == pytest.approx(other.value)


def test_rates_of_a_judge() -> None:
    agreement = Agreement(both_pass=45, only_judge=2, only_person=5, both_fail=8)
    assert (agreement.count, agreement.true_pass_rate, agreement.true_fail_rate) == (60, 0.9, 0.8)
    assert agreement.base_rate == pytest.approx(50 / 60) and agreement.observed == pytest.approx(53 / 60)
    assert Agreement(3, 0, 0, 0).true_fail_rate is None
    assert Agreement(0, 0, 0, 3).true_pass_rate is None


@pytest.mark.parametrize(
    ("values", "half", "most"),
    [([3, 1, 2], 2.0, 2.9), ([5], 5.0, 5.0), ([1, 2], 1.5, 1.95), ([0.3, 0.1, 0.9, 0.4, 0.7, 0.2], 0.35, 0.85)],
)
def test_percentiles(values: list[float], half: float, most: float) -> None:
    """`numpy.percentile`."""
    assert [percentile(values, 0.5), percentile(values, 0.95)] == pytest.approx([half, most])


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=30))
def test_percentiles_of_any_values(values: list[float]) -> None:
    assert percentile(values, 0.5) == pytest.approx(plain.median(values))
    assert percentile(values, 0.95) == pytest.approx(plain.quantiles(values, n=20, method="inclusive")[-1])
    assert (percentile(values, 0), percentile(values, 1)) == (min(values), max(values))


def test_ends_belong_to_an_interval() -> None:
    assert 0.2 in Interval(0.2, 0.4) and 0.4 in Interval(0.2, 0.4) and 0.41 not in Interval(0.2, 0.4)
