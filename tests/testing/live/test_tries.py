"""Scores of tries: counts, statuses, what is lost, and comparisons of models."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from quire.testing.live.statistics import Tally, wilson
from quire.testing.live.tries import Attempt, Ending, Status, Try, decided, pair_of, pairs, score, tallies


def _try(ending: Ending, row: str = "", model: str = "a", repeat: int = 0, **rest: object) -> Try:
    return Try(Attempt("case", row, model, repeat), ending, **rest)  # type: ignore[arg-type]


def _tries(*rows: str, model: str = "a") -> list[Try]:
    """`"ppf"` is a row that passed twice and failed once; `l` is a lost try."""
    endings: dict[str, Ending] = {"p": "passed", "f": "failed", "l": "lost"}
    return [
        _try(endings[letter], f"row {place}", model, repeat)
        for place, row in enumerate(rows, 1)
        for repeat, letter in enumerate(row)
    ]


@pytest.mark.parametrize(
    ("rows", "passes", "status"),
    [
        (["ppp", "ppp"], None, Status.VERIFIED),
        (["ppp", "ppf"], None, Status.FLAKY),
        (["ppp", "fff"], None, Status.FAILING),
        (["fff"], None, Status.FAILING),
        (["lll"], None, Status.UNVERIFIED),
        ([], None, Status.UNVERIFIED),
        (["ppl"], None, Status.VERIFIED),
        (["pppp", "pppf"], 0.875, Status.VERIFIED),
        (["pppp", "pppf"], 0.9, Status.FLAKY),
        (["p"] * 9 + ["f"], 0.9, Status.VERIFIED),
        (["p"] * 8 + ["f"] * 2, 0.9, Status.FAILING),
        (["f"], 0.0, Status.VERIFIED),
    ],
)
def test_status(rows: list[str], passes: float | None, status: Status) -> None:
    assert score("case", "a", _tries(*rows), passes=passes, repeats=3).status is status


def test_a_score() -> None:
    tries = [
        replace(
            one,
            seconds=float(place),
            input_tokens=10,
            output_tokens=2,
            cost=0.01,
            problems=("no",) * (one.ending == "failed"),
        )
        for place, one in enumerate(_tries("pp", "pf", "pl", "ff"))
    ]
    found = score("case", "a", tries, passes=0.5, repeats=2, planned=10)
    assert (found.passed, found.tried, found.lost, found.stopped) == (4, 7, 1, 2)
    assert found.rows == {"row 1": Tally(2, 2), "row 2": Tally(1, 2), "row 3": Tally(1, 1), "row 4": Tally(0, 2)}
    assert found.pass_all == pytest.approx(1 / 3)  # of the three rows with two tries
    assert [found.input_tokens, found.output_tokens, found.cost] == pytest.approx([80, 16, 0.08])
    assert [found.seconds_half, found.seconds_most] == pytest.approx([3.0, 6.7])  # the lost try is left out
    assert found.problems == ("no (3 times)",)
    assert found.undecided and found.rate == pytest.approx(4 / 7)
    assert not score("case", "a", tries, passes=None, repeats=2).undecided


def test_a_price_that_is_not_known_stays_so() -> None:
    known, unknown = _try("passed", cost=0.1, judge_cost=0.2), _try("passed", cost=None)
    assert score("case", "a", [known], passes=None, repeats=1).cost == pytest.approx(0.3)
    assert score("case", "a", [known, unknown], passes=None, repeats=1).cost is None


def test_advice_is_counted_apart() -> None:
    tries = [
        _try("passed", verdict="pass", advice="kind"),
        _try("passed", verdict="fail", advice="curt"),
        _try("passed", verdict="no verdict", advice="no JSON"),
    ]
    assert score("case", "a", tries, passes=None, repeats=1).advice == (1, 1, 1)
    gating = [_try("failed", verdict="fail")]
    assert score("case", "a", gating, passes=None, repeats=1).advice == (0, 0, 0)


def test_stopping_early() -> None:
    assert decided(_tries("f", "f", "f"), 0.9)
    assert not decided(_tries("p", "p", "p"), 0.9)
    assert decided(_tries(*["p"] * 80), 0.9)
    assert not decided(_tries("f", "f", "f"), None)
    assert not decided(_tries("l", "l", "l"), 0.9)


def test_models_are_compared_by_the_rows_that_both_have() -> None:
    scores = [
        score("case", "a", _tries("p", "p", "p", "l"), passes=None, repeats=1),
        score("case", "b", _tries("f", "f", "p", "p", model="b"), passes=None, repeats=1),
        score("other", "a", _tries("p"), passes=None, repeats=1),
        score("other", "b", _tries("p", model="b"), passes=None, repeats=1),
    ]
    (pair,) = pairs(scores)
    assert (pair.first, pair.second) == ("a", "b")
    assert (pair.comparison.rows, pair.comparison.first_only, pair.comparison.second_only) == (4, 2, 0)
    earlier = pair_of("a", "a", scores[1:2], scores, "a (baseline)")
    assert (earlier.first, earlier.comparison.rows) == ("a (baseline)", 0)
    assert len(pairs([replace(scores[0], model=name) for name in "abc"])) == 3


def test_tallies_keep_the_order_of_rows() -> None:
    assert list(tallies(_tries("p", "lp", "f"))) == ["row 1", "row 2", "row 3"]
    assert tallies([]) == {}
    assert wilson(1, 2) == score("case", "a", _tries("p", "f"), passes=None, repeats=1).interval
