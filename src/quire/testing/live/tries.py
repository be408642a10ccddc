"""Tries of live tests: one run of a case, for one row, on one model; the scores that many of them make, and the report.

The report is written as JSON, and read again as a baseline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import combinations
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct, field

from quire.errors import CannotStart, Unreadable
from quire.source import read_source
from quire.testing.live.statistics import (
    Comparison,
    Interval,
    Tally,
    compared,
    pass_all,
    percentile,
    rate_excluded,
    rate_interval,
    rows_to_decide,
)

if TYPE_CHECKING:
    from quire.values import Value

Ending = Literal["passed", "failed", "lost"]
"""A lost try says nothing about the model, because the service failed or the budget was used up. It is not counted."""


class Status(StrEnum):
    """The standing of a case on a model."""

    VERIFIED = "verified"
    """Enough tries passed."""
    FLAKY = "flaky"
    """Not enough passed, and the same row passed at one time and failed at another."""
    FAILING = "failing"
    STALE = "stale"
    """It was measured with another document or another test."""
    UNVERIFIED = "unverified"
    """No try of it was counted: none was made, or all were lost."""


class Attempt(Struct, frozen=True):
    """A try that is planned."""

    case: str
    """The name of the case, after that of its file."""
    row: str
    """The label of the row; empty for a case without rows."""
    model: str
    repeat: int
    """From 0."""


class Try(Struct, frozen=True):
    """A try that was made."""

    attempt: Attempt
    ending: Ending
    problems: tuple[str, ...] = ()
    seconds: float = 0.0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    """Of the models under test, without judges."""
    judge_cost: float | None = 0.0
    verdict: str = ""
    """`pass`, `fail` or `no verdict`; empty without a judge."""
    advice: str = ""
    """The reason of a judge that may not fail the case."""


class Score(Struct, frozen=True):
    """All tries of one case on one model."""

    case: str
    model: str
    status: Status
    passes: float
    """The share that has to pass."""
    rows: Mapping[str, Tally]
    passed: int
    tried: int
    lost: int
    interval: Interval
    pass_all: float | None
    """pass^n, for the number of repeats."""
    repeats: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    seconds_half: float | None
    """p50 of the tries that count."""
    seconds_most: float | None
    """p95."""
    stopped: int = 0
    """Tries that were not made, because the tries before them decided."""
    advice: tuple[int, int, int] = (0, 0, 0)
    """Verdicts of a judge that may not fail the case: pass, fail, none."""
    problems: tuple[str, ...] = ()
    """Some of the reasons of failures, the most frequent first."""

    @property
    def rate(self) -> float:
        return self.passed / self.tried if self.tried else 0.0

    @property
    def complete(self) -> bool:
        """Tell whether all tries were made, or the others were left out because the result was decided."""
        return not self.stopped or (self.passes < 1 and rate_excluded(list(self.rows.values()), self.passes))

    @property
    def undecided(self) -> bool:
        """Tell whether the interval holds the share that has to pass, so that more tries could turn the result."""
        return self.tried > 0 and self.passes < 1 and self.passes in self.interval


class Pair(Struct, frozen=True):
    """Two models, or a model and a baseline, on the same rows."""

    first: str
    second: str
    comparison: Comparison


_MOST_PROBLEMS = 5


def score(
    case: str, model: str, tries: Sequence[Try], *, passes: float | None, repeats: int, planned: int | None = None
) -> Score:
    """Return the score of a case on a model. Without `passes` every try has to pass."""
    counted = [made for made in tries if made.ending != "lost"]
    rows = tallies(counted)
    share = 1.0 if passes is None else passes
    verdicts = [made.verdict for made in counted if made.advice or made.verdict]
    advised = [made for made in counted if made.advice]
    seconds = [made.seconds for made in counted]
    lost = len(tries) - len(counted)
    often = Counter(problem for made in tries for problem in made.problems).most_common(_MOST_PROBLEMS)
    return Score(
        case,
        model,
        _status(rows, share),
        share,
        rows,
        sum(row.passed for row in rows.values()),
        sum(row.tried for row in rows.values()),
        lost,
        rate_interval(list(rows.values())),
        pass_all(list(rows.values()), repeats),
        repeats,
        sum(made.input_tokens for made in tries),
        sum(made.output_tokens for made in tries),
        total_cost(cost for made in tries for cost in (made.cost, made.judge_cost)),
        percentile(seconds, 0.5),
        percentile(seconds, 0.95),
        max(0, (len(tries) if planned is None else planned) - len(tries)),
        (verdicts.count("pass"), verdicts.count("fail"), verdicts.count("no verdict")) if advised else (0, 0, 0),
        tuple(f"{problem} ({count} times)" if count > 1 else problem for problem, count in often),
    )


def tallies(tries: Iterable[Try]) -> dict[str, Tally]:
    """Return how often each row passed, by its label, in the order of the tries."""
    counts: dict[str, list[int]] = {}
    for made in tries:
        if made.ending != "lost":
            count = counts.setdefault(made.attempt.row, [0, 0])
            count[0] += made.ending == "passed"
            count[1] += 1
    return {row: Tally(passed, tried) for row, (passed, tried) in counts.items()}


def decided(tries: Sequence[Try], passes: float | None) -> bool:
    """Tell whether the tries exclude the share that has to pass, so that further ones are not worth their price.

    Without a share, all tries are made: the first failure decides, but says little about the model.
    """
    return passes is not None and rate_excluded(list(tallies(tries).values()), passes)


def pairs(scores: Sequence[Score]) -> list[Pair]:
    """Compare every two models by the rows that both were tried on, over all cases."""
    models = list(dict.fromkeys(score.model for score in scores))
    return [pair_of(first, second, scores, scores) for first, second in combinations(models, 2)]


def pair_of(first: str, second: str, mine: Sequence[Score], others: Sequence[Score], label: str = "") -> Pair:
    """Compare a model of some scores with a model of others. `label` is the name of the first one, if it differs."""
    left, right = _rows_of(first, mine), _rows_of(second, others)
    both = [(left[key], right[key]) for key in left if key in right]
    return Pair(label or first, second, compared(both))


def total_cost(costs: Iterable[float | None]) -> float | None:
    """Return the sum; None if one of the costs is not known."""
    listed = list(costs)
    return None if any(cost is None for cost in listed) else fsum(cost for cost in listed if cost is not None)


def _rows_of(model: str, scores: Sequence[Score]) -> dict[tuple[str, str], Tally]:
    return {(score.case, row): tally for score in scores if score.model == model for row, tally in score.rows.items()}


def _status(rows: Mapping[str, Tally], share: float) -> Status:
    passed, tried = sum(row.passed for row in rows.values()), sum(row.tried for row in rows.values())
    if not tried:
        return Status.UNVERIFIED
    if passed >= share * tried - 1e-9:
        return Status.VERIFIED
    return Status.FLAKY if any(0 < row.passed < row.tried for row in rows.values()) else Status.FAILING


FORMAT = 1
_LARGEST = 20_000_000
_FAILING = (Status.FAILING, Status.FLAKY, Status.UNVERIFIED)


class JudgeNote(Struct, frozen=True):
    """A judge of a live test, and whether it may fail a case."""

    judge: str
    model: str
    gates: bool
    reason: str


class Skipped(Struct, frozen=True):
    """A case that was not tried."""

    case: str
    reason: str


class LiveReport(Struct, frozen=True):
    """Everything that a live test found. A case is named after its file: `tests/board.test.yaml: rows`."""

    models: tuple[str, ...]
    scores: tuple[Score, ...]
    pairs: tuple[Pair, ...] = ()
    baseline: tuple[Pair, ...] = ()
    """Each model against itself in an earlier report."""
    judges: tuple[JudgeNote, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    given_up: Mapping[str, str] = field(default_factory=dict)
    """Models that could not be used, with the reason."""
    planned: int = 0
    made: int = 0
    spent: float = 0.0
    unpriced: int = 0
    """Calls whose price is not known."""
    budget: float | None = None
    budget_reached: bool = False
    interrupted: bool = False
    format: int = FORMAT

    @property
    def failed(self) -> bool:
        return any(score.status in _FAILING for score in self.scores)

    @property
    def exit_code(self) -> int:
        """5 if the budget was reached, 1 if a case fails on a model, else 0."""
        return 5 if self.budget_reached else int(self.failed)

    def as_value(self) -> dict[str, Value]:
        """Return the report as JSON, which `read_report` reads again."""
        value: dict[str, Value] = msgspec.to_builtins(self)
        value["scores"] = [{**msgspec.to_builtins(score), "undecided": score.undecided} for score in self.scores]
        for name in ("pairs", "baseline"):
            value[name] = [_with_words(pair) for pair in getattr(self, name)]
        return value


def read_report(path: Path) -> LiveReport:
    """Read an earlier report, as `--format json` printed it. Raises `CannotStart`."""
    try:
        report = msgspec.json.decode(read_source(path, limit=_LARGEST).text.encode(), type=LiveReport)
    except Unreadable:
        raise
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise CannotStart(f"{path} is not a report of `quire test --live --format json`: {error}") from None
    if report.format != FORMAT:
        raise CannotStart(f"{path} is a report of another version of Quire")
    return report


def with_baseline(scores: Sequence[Score], earlier: LiveReport) -> tuple[Pair, ...]:
    """Compare each model with itself in an earlier report, or with the only model that the report has."""
    result = []
    for model in dict.fromkeys(score.model for score in scores):
        before = model if model in earlier.models else earlier.models[0] if len(earlier.models) == 1 else None
        if before is not None:
            result.append(pair_of(before, model, earlier.scores, scores, f"{before} (baseline)"))
    return tuple(result)


def _with_words(pair: Pair) -> Value:
    value: dict[str, Value] = msgspec.to_builtins(pair)
    more = None if pair.comparison.decided else rows_to_decide(pair.comparison)
    return {
        **value,
        "p": pair.comparison.p,
        "decided": pair.comparison.decided,
        "more_rows": more.rows if more else None,
        "more_rows_for": more.difference if more else None,
    }
