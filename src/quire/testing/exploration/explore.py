"""Explore a document: many drawn runs, and the first broken promise of each kind made small, with a case to paste."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct
from msgspec.structs import replace

from quire.diagnostics import Diagnostic
from quire.engine.records import Status
from quire.errors import QuireError
from quire.formats.test import codes
from quire.formats.test.parse import parse
from quire.formats.test.syntax import Case
from quire.library.foresight import Foresight
from quire.library.interface import input_schema
from quire.source import MAX_TEST_BYTES, NOWHERE, Source, read_source, relative_to_here
from quire.testing.case_results import FileResult, Problem
from quire.testing.case_run import CaseRun
from quire.testing.discovery import open_document
from quire.testing.expectations import Judging, always
from quire.testing.exploration.draw import Draw
from quire.testing.exploration.drawn_run import (
    PURE_WORK,
    SIMPLE,
    Broken,
    DrawnAnswer,
    Given,
    Promises,
    Results,
    broken_promise,
    simple_reply,
    walk,
)
from quire.testing.observation import Observation
from quire.testing.snapshots import as_text
from quire.trust.capabilities import Grants, canonical

if TYPE_CHECKING:
    from quire.analysis.proof import Proof
    from quire.diagnostics import Code
    from quire.engine.requests import Failure
    from quire.formats.test.syntax import Setting, TestFile
    from quire.plan.pipeline_work import Formula
    from quire.source import Span
    from quire.testing.case_run import Bench, PreparedStart
    from quire.testing.exploration.drawn_run import DrawnRun
    from quire.values import Value


def written_case(given: Given, broken: Broken, seed: int) -> str:
    """Return a case with the inputs, replies, results and answers of a run. Its expectation is for the author."""
    model: list[Value] = []
    tools: dict[str, list[Value]] = {}
    answers: dict[str, Value] = {}
    for path, performed in given.answers.items():
        kind, name = given.ways.get(path, ("", ""))
        match kind:
            case "model":
                model.append({"path": path, **_said(performed)})
            case "tool":
                failure, value = performed.failure, performed.value
                tools.setdefault(name, []).append({"raises": _failure(failure)} if failure else {"returns": value})
            case "ask":
                answers[path] = performed.value
    parts: dict[str, Value] = {
        "inputs": dict(given.inputs),
        "model": model,
        "tools": {name: {"sequence": calls} for name, calls in tools.items()},
        "answers": answers,
    }
    filled = {name: part for name, part in parts.items() if part}
    return as_text([{"name": f"explored {seed}: {broken.promise}", **filled, "expect": "todo"}])


def _said(performed: DrawnAnswer) -> dict[str, Value]:
    if performed.failure is not None:
        return {"error": _failure(performed.failure)}
    value = performed.value if isinstance(performed.value, Mapping) else {}
    uses = value.get("uses")
    if isinstance(uses, list):
        calls: list[Value] = [{"name": use[1], "input": use[2]} for use in uses if isinstance(use, list)]
        return {"tool_calls": calls}
    return {"reply": str(value.get("text", ""))}


def _failure(failure: Failure) -> Value:
    return {"kind": failure.kind, "message": failure.message}


MOST_TRIES_TO_START = 50
MOST_SHRINKS = 400


class Counterexample(Struct, frozen=True):
    """A run that broke a promise, made as small as it could be."""

    broken: Broken
    seed: int
    case: str
    """As YAML, to paste into the test file."""


class Exploration(Struct, frozen=True):
    """The result of exploring one document."""

    runs: int
    ends: Mapping[str, int]
    """How many runs came to each status."""
    counterexamples: tuple[Counterexample, ...] = ()
    skipped: str = ""
    """Why nothing was explored; empty if it was."""


def explore(bench: Bench, file: TestFile, count: int, seed: int) -> Exploration:
    """Walk a document `count` times with drawn answers. The cases of its test are examples of inputs and results."""
    explorer = _Explorer.of(bench, seed, file)
    if explorer is None:
        return Exploration(0, {}, (), "no drawn inputs start the document")
    ends: dict[str, int] = {}
    counterexamples: dict[str, Counterexample] = {}
    for number in range(seed, seed + count):
        given, run, broken = explorer.try_once(number)
        if run is not None:
            ends[str(run.ended.status)] = ends.get(str(run.ended.status), 0) + 1
        if broken is not None and broken.promise not in counterexamples:
            counterexamples[broken.promise] = explorer.counterexample(given, broken, number)
    return Exploration(count, ends, tuple(counterexamples.values()))


class _Explorer(Struct):
    """A document that can be started, with everything that is known about it."""

    bench: Bench
    start: PreparedStart
    schema: Mapping[str, Value]
    proof: Proof
    envelope: Grants | None
    formulas: tuple[Formula, ...]
    examples: tuple[Mapping[str, Value], ...]
    results: Results

    @classmethod
    def of(cls, bench: Bench, seed: int, file: TestFile) -> _Explorer | None:
        schema, settings = input_schema(bench.document), [case.setting for case in file.cases]
        examples = tuple(setting.inputs for setting in settings if setting.inputs)
        for number in range(MOST_TRIES_TO_START):
            base = settings[number % len(settings)]
            inputs = base.inputs if number < len(settings) else Draw(seed + number).inputs(schema, examples)
            setting = replace(base, inputs=inputs, model=None, cassette=None)
            try:
                start = CaseRun(bench, Case("explored", NOWHERE, setting, None)).prepare()
            except QuireError:
                continue
            if start is not None:
                foresight = Foresight(bench.settings)
                plan = bench.document.runnable()
                envelope = foresight.envelope(plan, bench.document.name)
                proof = foresight.proof(plan, bench.document.name)
                grants = None if envelope.unknown else Grants.of(envelope.capabilities)
                runs = replace(bench.settings.runs, pure_work=PURE_WORK)
                bench = replace(bench, settings=replace(bench.settings, runs=runs))
                return cls(bench, start, schema, proof, grants, file.always, examples, _results(settings))
        return None

    def try_once(self, seed: int) -> tuple[Given, DrawnRun | None, Broken | None]:
        draw = Draw(seed)
        given = Given(draw.inputs(self.schema, self.examples))
        return given, *self._walk(given, draw)

    def _walk(self, given: Given, draw: Draw | None) -> tuple[DrawnRun | None, Broken | None]:
        inputs = self._complete(given.inputs)
        if inputs is None:
            return None, None
        run, broken = walk(self.bench, self.start, inputs, given, draw, self.results)
        if run is None or broken is not None:
            return run, broken
        promises = Promises(self.proof, self.envelope)
        return run, broken_promise(run, promises) or self._property(inputs, run)

    def _property(self, inputs: Mapping[str, Value], run: DrawnRun) -> Broken | None:
        """Return the property of the test file that does not hold at the end of a completed run."""
        result = run.ended.result
        if not self.formulas or run.ended.status is not Status.COMPLETED or not isinstance(result, Mapping):
            return None
        named, stores, outputs = (result.get(name) for name in ("named", "stores", "outputs"))
        observation = Observation(
            "completed",
            0,
            result.get("output"),
            inputs=inputs,
            named=named if isinstance(named, Mapping) else {},  # type: ignore[arg-type]
            stores=stores if isinstance(stores, Mapping) else {},
            outputs=outputs if isinstance(outputs, Mapping) else {},
        )
        wrong = always(self.formulas, Judging(observation, NOWHERE, {}))
        return Broken("always", wrong[0].finding.message) if wrong else None

    def _complete(self, inputs: Mapping[str, Value]) -> Mapping[str, Value] | None:
        """Return the inputs as a run pins them; None if they are refused."""
        from quire.engine.inputs import run_inputs

        plan, pinned = self.start.run.plan, self.start.run.pins.inputs
        try:
            return {**pinned, **inputs} if plan.thread else run_inputs(plan, inputs)
        except QuireError:
            return None

    def counterexample(self, given: Given, broken: Broken, seed: int) -> Counterexample:
        """Make a run that broke a promise small: simpler inputs and answers, as long as it breaks the same."""
        tries = 0
        for inputs in _simpler_inputs(given.inputs):
            tries += 1
            smaller = Given(inputs, dict(given.answers), dict(given.ways))
            if tries < MOST_SHRINKS and self._still(smaller, broken):
                given = smaller
        for path in list(given.answers):
            tries += 1
            simple = _simpler_answer(given, path)
            smaller = Given(given.inputs, {**given.answers, path: simple}, dict(given.ways))
            if tries < MOST_SHRINKS and self._still(smaller, broken):
                given = smaller
        return Counterexample(broken, seed, written_case(given, broken, seed))

    def _still(self, given: Given, broken: Broken) -> bool:
        _, again = self._walk(given, None)
        return again is not None and again.promise == broken.promise


def _results(settings: Sequence[Setting]) -> dict[str, list[Value]]:
    """Return the results that the cases script, by tool."""
    results: dict[str, list[Value]] = {}
    for name, script in (named for setting in settings for named in setting.tools.items()):
        for part in (script, *script.sequence, *(inner for _, inner in script.when)):
            if part.returns is not UNSET:
                results.setdefault(canonical(name), []).append(part.returns)
    return results


def _simpler_inputs(inputs: Mapping[str, Value]) -> list[dict[str, Value]]:
    """Return the inputs with one of them made simple, for each of them."""
    return [{**inputs, name: _simple(value)} for name, value in inputs.items() if value != _simple(value)]


def _simple(value: Value) -> Value:
    match value:
        case bool():
            return False
        case int() | float():
            return 0
        case str():
            return SIMPLE
        case list() | tuple():
            return []
        case Mapping():
            return {}
    return value


def _simpler_answer(given: Given, path: str) -> DrawnAnswer:
    kind = given.ways.get(path, ("tool", ""))[0]
    if kind == "model":
        return simple_reply()
    return given.answers[path] if kind == "ask" else DrawnAnswer(SIMPLE)


_CODES: dict[str, Code] = {"bounds": codes.BOUND_BROKEN, "envelope": codes.OUTSIDE_ENVELOPE, "always": codes.ALWAYS}
_MEANINGS = {
    "traceback": "it raised an exception: this is a mistake of Quire, please report it",
    "ends": "it did not come to an end",
    "replay": "it does not replay: this is a mistake of Quire, please report it",
}


class DocumentExploration(Struct, frozen=True):
    """The exploration of the document of one test file."""

    source: Source
    """Of the test file."""
    document: str
    seed: int
    exploration: Exploration
    where: Span

    def failure(self) -> FileResult | None:
        """Return the broken promises as the result of a file; None if there are none."""
        if not self.exploration.counterexamples:
            return None
        problems = tuple(self._problem(counterexample) for counterexample in self.exploration.counterexamples)
        return FileResult(self.source.name, self.source, self.document, problems=problems)

    def _problem(self, counterexample: Counterexample) -> Problem:
        broken = counterexample.broken
        meaning = _MEANINGS.get(broken.promise, "")
        message = f"exploring {self.document}: {meaning}{': ' if meaning else ''}{broken.message}"
        help = f"the same again: quire test --explore 1 --seed {counterexample.seed}; or paste this case"
        code = _CODES.get(broken.promise, codes.COUNTEREXAMPLE)
        return Problem(Diagnostic(code, message, self.where, "", help), counterexample.case)


def explore_file(path: str, count: int, seed: int) -> DocumentExploration | None:
    """Explore the document of a test file; None for a file that cannot be used. Running it reports why."""
    try:
        reading = parse(read_source(Path(path), limit=MAX_TEST_BYTES))
        if reading.file is None:
            return None
        bench = open_document(reading.source, reading.file)
        exploration = explore(bench, reading.file, count, seed)
    except QuireError:
        return None
    name = relative_to_here(bench.document.name) or bench.document.name
    return DocumentExploration(reading.source, name, seed, exploration, reading.file.cases[0].span)
