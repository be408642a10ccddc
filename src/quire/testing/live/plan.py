"""Plan a live test: its cases, rows, models and judges, and its highest cost, which the user sees before it starts.

Nothing is asked or spent here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.diagnostics import Severity
from quire.errors import CannotStart, NoModel
from quire.formats.test.parse import parse
from quire.formats.test.syntax import Live, Rows
from quire.models.choose import Choice, members_of
from quire.models.rate_limits import provider_of
from quire.source import MAX_TEST_BYTES, read_source, real_path
from quire.testing.case_rows import CaseRow, expand, file_within, read_rows
from quire.testing.discovery import EVERYTHING, Selection, open_document
from quire.testing.live.calibration import Standing, standing_of, stored_calibration
from quire.testing.live.judges import Judge, load_judge
from quire.testing.live.receipts import structure_hash
from quire.testing.live.schedule import AT_ONCE, Terms, require_price
from quire.testing.live.trial import RealTools, grades_something
from quire.testing.live.tries import Skipped, total_cost
from quire.values import fingerprint

if TYPE_CHECKING:
    from quire.engine.ports import Model
    from quire.formats.test.syntax import Case, TestFile
    from quire.plan.pipeline_work import Formula
    from quire.runs.adapters import Models
    from quire.source import Source
    from quire.testing.case_run import Bench
    from quire.testing.discovery import TestTarget


class CaseForecast(Struct, frozen=True):
    """The most that one try of a case on a model may do, and the price of one that was seen earlier."""

    case: str
    model: str
    calls: int | None = None
    """Calls of the model at most; None if there is no bound."""
    cost: float | None = None
    """In dollars at most; None if that is not known."""
    why: str = ""
    """Why the cost is not known."""
    seen: float | None = None
    judge_cost: float | None = 0.0
    """Of the judge at most; None if that is not known."""
    judge_calls: int = 0


class Announcement(Struct, frozen=True):
    """A live test that is not started yet."""

    rows: int
    models: tuple[str, ...]
    repeats: tuple[int, int]
    """The fewest and the most repeats of a case."""
    tries: int
    calls: int | None
    """Calls of models at most, without those of judges; None if there is no bound."""
    judge_calls: int
    bound: float | None
    """Dollars at most, judges included; None if that is not known."""
    why: str
    """Why the bound is not known."""
    seen: float | None
    """Dollars, if each try costs the same as last time; None if some were never seen."""
    budget: float | None = None


def announce(
    terms: Sequence[Terms], models: Sequence[str], forecasts: Sequence[CaseForecast], budget: float | None
) -> Announcement:
    """Add up the bounds of all tries of a live test."""
    often = {term.case: len(term.rows) * term.repeats for term in terms}
    counted = [(forecast, often[forecast.case]) for forecast in forecasts]
    calls = [None if forecast.calls is None else forecast.calls * count for forecast, count in counted]
    costs = [(total_cost((forecast.cost, forecast.judge_cost)), count) for forecast, count in counted]
    bound = total_cost(None if cost is None else cost * count for cost, count in costs)
    cost_seen = total_cost(None if forecast.seen is None else forecast.seen * count for forecast, count in counted)
    unknown = [forecast.why for forecast in forecasts if forecast.why and forecast.cost is None]
    repeats = [term.repeats for term in terms]
    return Announcement(
        sum(len(term.rows) for term in terms),
        tuple(models),
        (min(repeats, default=0), max(repeats, default=0)),
        sum(often.values()) * len(models),
        None if None in calls else sum(count for count in calls if count is not None),
        sum(forecast.judge_calls * count for forecast, count in counted),
        bound,
        unknown[0] if bound is None and unknown else "",
        cost_seen,
        budget,
    )


MOST_TRIES = 100_000
MOST_REPEATS = 1_000


class LiveOptions(Struct, frozen=True):
    """The options of a live test, as the command line gives them."""

    targets: tuple[TestTarget, ...]
    selection: Selection = EVERYTHING
    models: tuple[str, ...] = ()
    """Names of models or tiers; without any, the model that `quire run` would use."""
    repeat: int | None = None
    """Replaces the `repeat` of all cases."""
    budget: float | None = None
    each: Path | None = None
    """A file of rows that replaces those of all cases."""
    baseline: Path | None = None
    judge_model: str = ""
    at_once: int = AT_ONCE
    real_tools: bool = False
    """True if the user lets cases with `tools: real` use the tools of the workspace."""


class LiveCase(Struct, frozen=True):
    """A case that is going to be tried."""

    key: str
    """The file in its workspace, and the name: `tests/board.test.yaml: rows`. A baseline knows the case by it."""
    file: str
    """The test, relative to its workspace."""
    case: Case
    rows: Mapping[str, CaseRow]
    """By label; one with an empty label for a case without rows."""
    bench: Bench
    live: Live
    repeats: int
    always: tuple[Formula, ...] = ()
    judge: Judge | None = None
    seat: JudgeSeat | None = None
    """The judge with its model; None before models are opened."""

    @property
    def terms(self) -> Terms:
        return Terms(self.key, tuple(self.rows), self.repeats, self.live.passes)

    @property
    def test_hash(self) -> str:
        """Depends on the case, its rows and its judge, and not on other cases of the file."""
        rows = {label: structure_hash(row.row) for label, row in self.rows.items()}
        judge = self.judge.hash if self.judge else None
        return fingerprint([structure_hash(self.case), rows, judge, structure_hash(self.always)])


class LivePlan(Struct, frozen=True):
    """A live test that is ready to run."""

    options: LiveOptions
    cases: tuple[LiveCase, ...]
    models: Mapping[str, Model]
    """The models under test by name, opened."""
    seats: tuple[JudgeSeat, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    real: Mapping[Path, RealTools] = {}
    """The user's settings for cases with real tools, by the folder of their workspace."""


def live_plan(options: LiveOptions, environ: Mapping[str, str] = os.environ) -> LivePlan:
    """Read the tests, open the models and the judges. Raises `CannotStart`, also if no case has live terms."""
    listed, skipped = live_cases(options)
    if not listed:
        reasons = "; ".join(f"{case.case}: {case.reason}" for case in skipped[:3])
        raise CannotStart(
            f"no case has live terms{f' ({reasons})' if reasons else ''}: write `live: {{pass: 0.9}}` in a case"
        )
    models = user_models(listed[0].bench.settings.workspace.folder, environ)
    opened = open_models(models, options.models)
    seats = JudgeSeats(models, options.judge_model, tuple(opened))
    cases = tuple(replace(case, seat=seats.seat(case.judge)) if case.judge is not None else case for case in listed)
    tries = sum(len(case.rows) * case.repeats for case in cases) * len(opened)
    if tries > MOST_TRIES:
        raise CannotStart(f"{tries:,} tries are more than {MOST_TRIES:,}")
    if options.budget is not None:
        for spec, model in (*opened.items(), *((seat.spec, seat.model) for seat in seats.taken)):
            require_price(model, spec)
    folders = {case.bench.settings.workspace.folder for case in cases if case.live.tools == "real"}
    real = {folder: real_tools_of(folder, environ) for folder in folders}
    return LivePlan(options, cases, opened, seats.taken, tuple(skipped), real)


def live_cases(options: LiveOptions) -> tuple[list[LiveCase], list[Skipped]]:
    """Return the wanted cases that have live terms, and those that cannot be tried. Raises `CannotStart`."""
    cases: list[LiveCase] = []
    skipped: list[Skipped] = []
    for target in options.targets:
        source, file = read_test(target.path)
        selection = options.selection.of(target, source, file)
        chosen = [
            case for case in file.cases if case.live is not None and selection.wants(case, case.name, target.path)
        ]
        if not chosen:
            continue
        bench = open_document(source, file)
        for case in chosen:
            reason = _unfit(case, file.always, real_tools=options.real_tools)
            if reason:
                skipped.append(Skipped(f"{target.path}: {case.name}", reason))
            else:
                cases.append(_live_case(target.path, case, file, bench, options))
    return cases, skipped


def read_test(path: str) -> tuple[Source, TestFile]:
    """Read a test file. Raises `CannotStart` with its first mistake."""
    reading = parse(read_source(Path(path), limit=MAX_TEST_BYTES))
    wrong = next((diagnostic for diagnostic in reading.diagnostics if diagnostic.severity is Severity.ERROR), None)
    if reading.file is None or wrong is not None:
        at = reading.source.position(wrong.span.start).line if wrong else 1
        raise CannotStart(f"{path}:{at}: {wrong.message if wrong else 'it has mistakes'}; `quire test` shows them all")
    return reading.source, reading.file


def user_models(folder: Path, environ: Mapping[str, str]) -> Models:
    """Return the models of the user: those of a case's own settings are not opened."""
    from quire.runs.adapters import Models
    from quire.runs.stored import settings_of

    return Models(settings_of(folder, environ), environ)


def real_tools_of(folder: Path, environ: Mapping[str, str]) -> RealTools:
    """Return the user's settings for real tools. Raises `Untrusted` if the user has not agreed to the workspace."""
    from quire.runs.stored import settings_of
    from quire.workspace.consent import require_trusted

    settings = settings_of(folder, environ)
    require_trusted(settings)
    return RealTools(settings, environ)


def open_models(models: Models, names: Sequence[str]) -> dict[str, Model]:
    """Open the models under test, each once, by the names of the models behind tiers. Raises `CannotStart`."""
    choices = [models.choose(name) for name in names] or [models.choose(None)]
    opened = {choice.spec: models.open(choice.spec, choice.settings) for choice in choices}
    if not opened or "" in opened:
        raise NoModel("no model is configured: name one with --model")
    if len(opened) < len(choices):
        raise CannotStart("two names mean the same model: a model is not compared with itself")
    return opened


def _live_case(path: str, case: Case, file: TestFile, bench: Bench, options: LiveOptions) -> LiveCase:
    live = case.live or Live()
    repeats = options.repeat or live.repeat or 1
    if repeats > MOST_REPEATS:
        raise CannotStart(f"{path}: {case.name}: {repeats:,} repeats are more than {MOST_REPEATS:,}")
    if options.each is not None and case.rows is not None:
        listed = tuple(dict(row.values) for row in read_rows(options.each.parent, options.each.name))
        case = replace(case, rows=Rows(rows=listed, matrix=case.rows.matrix, span=case.rows.span))
    plan = bench.document.runnable()
    rows = _by_label(case.name, expand(case, bench.folder, [field.name for field in plan.inputs]))
    home = bench.settings.workspace.folder.resolve()
    inner = Path(path).resolve()
    file_name = inner.relative_to(home).as_posix() if inner.is_relative_to(home) else inner.as_posix()
    judge = load_judge(file_within(bench.folder, live.judge.rubric)) if live.judge else None
    return LiveCase(f"{file_name}: {case.name}", file_name, case, rows, bench, live, repeats, file.always, judge)


def _by_label(name: str, rows: Sequence[CaseRow]) -> dict[str, CaseRow]:
    """Return the rows by their labels: `row 3` for `rows[row 3]`. Two values of a matrix may look the same."""
    by_label: dict[str, CaseRow] = {}
    for number, row in enumerate(rows, 1):
        label = "" if row.name == name else row.name[len(name) + 1 : -1]
        by_label[f"{label} ({number})" if label in by_label else label] = row
    return by_label


def _unfit(case: Case, always: Sequence[Formula], *, real_tools: bool) -> str:
    """Return why a case cannot be tried on a real model; empty if it can."""
    live = case.live
    if case.skip is not None:
        return f"it is skipped: {case.skip}"
    if case.draft:
        return "it has no expectations yet"
    if case.crash_everywhere:
        return "it dies everywhere, which only a script can repeat"
    if live is not None and live.tools == "real":
        if not real_tools:
            return "its tools are real, which needs --allow tools on the command line"
        if case.setting.files or case.then:
            return "its tools are real, and its files and acts are not: remove one of them"
    if not grades_something(case, always):
        return "nothing decides about a try: expect something of the output, or name a judge"
    return ""


class JudgeSeat(Struct, frozen=True):
    """A judge with its model."""

    judge: Judge
    spec: str
    """The name of the model behind a tier."""
    model: Model
    standing: Standing


class JudgeSeats:
    """Opens each judge once. `tested` are the models under test: none of them may judge."""

    def __init__(self, models: Models, named: str, tested: tuple[str, ...] = ()) -> None:
        """`named` is the model that the user wants as the judge; empty for that of the file."""
        self._models = models
        self._named = named
        self._tested = tested
        self._seats: dict[str, JudgeSeat] = {}

    @property
    def taken(self) -> tuple[JudgeSeat, ...]:
        return tuple(self._seats.values())

    def seat(self, judge: Judge) -> JudgeSeat:
        """Return the seat of a judge. Raises `CannotStart`."""
        key = str(judge.path)
        if key not in self._seats:
            self._seats[key] = self._opened(judge)
        return self._seats[key]

    def _opened(self, judge: Judge) -> JudgeSeat:
        choice = self._choose(judge)
        if any(same_model(choice.spec, spec) for spec in self._tested):
            message = f"the judge {judge.name} cannot be {choice.spec}, which is under test: name another --judge-model"
            raise CannotStart(message)
        model = self._models.open(choice.spec, choice.settings)
        calibration = stored_calibration(judge.path) if judge.path else None
        return JudgeSeat(judge, choice.spec, model, standing_of(judge, choice.spec, calibration))

    def _choose(self, judge: Judge) -> Choice:
        if self._named:
            return self._models.choose(self._named)
        if not judge.model:
            raise CannotStart(f"the judge {judge.name} names no model: name one with --judge-model")
        settings = self._models.settings.models
        spec = settings.tiers.get(judge.model, judge.model)
        return self._models.choose(None, lambda: Choice(spec, "the judge", settings.settings_of(judge.model)))


def same_model(spec: str, other: str) -> bool:
    """Tell whether two names mean one model: of one account by two protocols, or one file by two paths."""
    return not {*map(_identity, members_of(spec))}.isdisjoint(map(_identity, members_of(other)))


def _identity(spec: str) -> tuple[str, str]:
    kind, _, name = spec.partition(":")
    if kind == "local":
        return kind, str(real_path(Path(name))) if "/" in name or name.endswith(".gguf") else name
    if spec.startswith(("http://", "https://")):
        return "", spec
    return provider_of(spec), name.casefold()
