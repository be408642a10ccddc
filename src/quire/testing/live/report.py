"""The result of a live test: scores, comparisons and money; written as JSON, and read again as a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from quire.errors import CannotStart, Unreadable
from quire.source import read_source
from quire.testing.live.statistics import rows_to_decide
from quire.testing.live.tries import Pair, Score, Status, pair_of

if TYPE_CHECKING:
    from quire.values import Value

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
        return any(one.status in _FAILING for one in self.scores)

    @property
    def exit_code(self) -> int:
        """5 if the budget was reached, 1 if a case fails on a model, else 0."""
        return 5 if self.budget_reached else int(self.failed)

    def as_value(self) -> dict[str, Value]:
        """Return the report as JSON, which `read_report` reads again."""
        value: dict[str, Value] = msgspec.to_builtins(self)
        value["scores"] = [{**msgspec.to_builtins(one), "undecided": one.undecided} for one in self.scores]
        for name in ("pairs", "baseline"):
            value[name] = [_with_words(one) for one in getattr(self, name)]
        return value


def read_report(path: Path) -> LiveReport:
    """Read an earlier report, as `--format json` printed it. Raises `CannotStart`."""
    try:
        found = msgspec.json.decode(read_source(path, limit=_LARGEST).text.encode(), type=LiveReport)
    except Unreadable:
        raise
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise CannotStart(f"{path} is not a report of `quire test --live --format json`: {error}") from None
    if found.format != FORMAT:
        raise CannotStart(f"{path} is a report of another version of Quire")
    return found


def with_baseline(scores: Sequence[Score], earlier: LiveReport) -> tuple[Pair, ...]:
    """Compare each model with itself in an earlier report, or with the only model that the report has."""
    found = []
    for model in dict.fromkeys(one.model for one in scores):
        before = model if model in earlier.models else earlier.models[0] if len(earlier.models) == 1 else None
        if before is not None:
            found.append(pair_of(before, model, earlier.scores, scores, f"{before} (baseline)"))
    return tuple(found)


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
