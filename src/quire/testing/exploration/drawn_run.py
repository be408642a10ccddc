"""One explored run: drive a document with drawn answers, and hold it to the promises that hold for every run."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from msgspec import Struct, field
from msgspec.structs import replace

from quire.engine.conversation import ToolUse
from quire.engine.driver.drive import DriveResult
from quire.engine.ports import ModelReply
from quire.engine.progress import Progress
from quire.engine.records import Status, Usage
from quire.engine.requests import Failure, ToolRequest
from quire.errors import CannotStart, JournalMismatch, ModelFailed, QuireError, Refused, ToolFailed
from quire.formats.test.syntax import Case, Setting
from quire.runs.adapters import Models
from quire.runs.earlier_runs import input_sizes
from quire.source import NOWHERE
from quire.testing.case_run import START, CaseRun, CaseRuntime
from quire.testing.virtual_loop import Stuck
from quire.trust.capabilities import Grants, canonical
from quire.values import clean, copy

if TYPE_CHECKING:
    from quire.analysis.proof import Proof
    from quire.engine.conversation import Offered
    from quire.engine.driver.replay import Replay
    from quire.engine.ports import EffectClass, ModelCall, People, Tools
    from quire.engine.records import Question
    from quire.engine.requests import Load
    from quire.library.texts import ItemLoader
    from quire.plan.nodes import Plan
    from quire.runs.pins import PinnedState
    from quire.testing.case_run import Bench, PreparedStart
    from quire.testing.exploration.draw import Draw
    from quire.values import Value

MAX_EFFECTS = 2_000
PURE_WORK = 3_000_000
SIMPLE = "x"

Results: TypeAlias = "Mapping[str, Sequence[Value]]"
"""Examples of the results of tools, by id."""
NO_RESULTS: Results = {}


class DrawnAnswer(Struct):
    """The answer to a request: a reply as its record has it, a result, or the words of a person; or a failure."""

    value: Value = None
    failure: Failure | None = None


class Given(Struct):
    """Everything from outside that a run was given: its inputs, and the answer to each request by path."""

    inputs: Mapping[str, Value]
    answers: dict[str, DrawnAnswer] = field(default_factory=dict)
    ways: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The kind of each request (`model`, `tool`, `ask`) and the way to its step, or the name of the tool."""


class Broken(Struct, frozen=True):
    """A promise that a run broke."""

    promise: str
    """Its name: `traceback`, `ends`, `bounds`, `envelope`, `replay`, `always`."""
    message: str


class Promises(Struct, frozen=True):
    """The proof and the envelope of a document, known before it runs."""

    proof: Proof
    envelope: Grants | None
    """The capabilities that it may need; None if they are not known."""


class DrawnAnswers:
    """The model, the tools, the people and the texts of an explored run.

    Requests are answered as `given` says, and all others are drawn. Without a draw they get the simplest answer.
    """

    name = "drawn"

    def __init__(self, given: Given, draw: Draw | None, results: Results) -> None:
        """`results` are examples of results of tools."""
        self.given = given
        self.seen: dict[str, str] = {}
        """The kind of each request by path."""
        self.calls: list[ToolRequest] = []
        self.stop: Callable[[], None] = lambda: None
        """Ends the process of the run, when it has made too many requests."""
        self._draw = draw
        self._results = results

    def _answer(self, path: str, kind: str, name: str, answer: Callable[[], DrawnAnswer]) -> DrawnAnswer:
        if len(self.seen) >= MAX_EFFECTS:
            self.stop()
        self.seen[path] = kind
        if path not in self.given.answers:
            self.given.answers[path] = answer()
            self.given.ways[path] = kind, name
        return self.given.answers[path]

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        answer = self._answer(call.path, "model", call.label, lambda: self._reply(call))
        if answer.failure is not None:
            raise ModelFailed(answer.failure.message, kind=answer.failure.kind)
        value = cast("Mapping[str, Value]", answer.value)
        uses = tuple(ToolUse(*use) for use in cast("list[tuple[str, str, dict[str, Value]]]", value.get("uses", [])))
        return ModelReply(str(value["text"]), self.name, Usage(10, 10, 0.0), "stop", uses=uses)

    def _reply(self, call: ModelCall) -> DrawnAnswer:
        if self._draw is None:
            return simple_reply()
        if self._draw.fails():
            return DrawnAnswer(failure=Failure("overloaded", "the model is overloaded"))
        text, calls = self._draw.reply(call)
        if not text.strip() and not calls:
            return DrawnAnswer(failure=Failure("empty", "the model answered nothing"))
        value: dict[str, Value] = {"text": clean(text)}
        if calls:
            earlier = sum(len(message.uses) for message in call.messages)
            value["uses"] = [[f"call_{earlier + at}", name, copy(args)] for at, (name, args) in enumerate(calls, 1)]
        return DrawnAnswer(value)

    def effect_class(self, request: ToolRequest) -> EffectClass:
        return "read"

    async def call(self, request: ToolRequest, effect_id: str) -> Value:
        self.calls.append(request)
        if request.grants is not None and request.connection in ("", "quire"):
            Grants.of(request.grants).require("execute", "tool", canonical(request.tool))
        name = f"{request.connection}/{request.tool}" if request.connection else request.tool
        answer = self._answer(request.path, "tool", name, lambda: self._result(request))
        if answer.failure is not None:
            raise ToolFailed(answer.failure.message, kind=answer.failure.kind)
        return answer.value

    def _result(self, request: ToolRequest) -> DrawnAnswer:
        examples = self._results.get(canonical(request.tool), ())
        if self._draw is None:
            return DrawnAnswer(copy(examples[0]) if examples else SIMPLE)
        if self._draw.fails():
            return DrawnAnswer(failure=Failure("tool", "the tool failed"))
        if examples and not self._draw.seldom():
            return DrawnAnswer(copy(self._draw.like(self._draw.one_of(examples))))
        return DrawnAnswer(copy(self._draw.anything()))

    async def offers(self, names: Sequence[str]) -> Sequence[Offered]:
        return ()

    async def offers_under(self, grants: Sequence[str]) -> Sequence[Offered]:
        return ()

    async def prompt(self, server: str, name: str) -> str:
        return ""

    async def load(self, request: Load) -> str | None:
        return None

    async def ask(self, question: Question, problem: str) -> str | None:
        if problem:
            return None
        answer = self._answer(question.path, "ask", question.way, lambda: DrawnAnswer(clean(self._words(question))))
        return str(answer.value)

    def _words(self, question: Question) -> str:
        if self._draw is not None:
            return self._draw.answer(question)
        if question.kind == "confirm":
            return "yes"
        return question.options[0] if question.options else SIMPLE


def simple_reply() -> DrawnAnswer:
    return DrawnAnswer({"text": SIMPLE})


class _DrawnRuntime(CaseRuntime):
    """A runtime whose model, tools and texts are drawn."""

    answers: DrawnAnswers

    def gate(self, plans: Sequence[Plan], grants: Grants, run: str = "") -> Tools:
        return self.answers

    def loader(self, run: str, pins: PinnedState, gate: Tools) -> ItemLoader:
        return cast("ItemLoader", self.answers)


class DrawnRun(CaseRun):
    """A run of a document from its start, with drawn answers."""

    def __init__(self, bench: Bench, start: PreparedStart, inputs: Mapping[str, Value], answers: DrawnAnswers) -> None:
        """`inputs` are complete."""
        pins = {**start.new.pins, "inputs": dict(inputs), "unattended": False, "proven": {}}
        start = replace(start, new=replace(start.new, pins=pins))
        self.inputs = inputs
        super().__init__(bench, Case("explored", NOWHERE, Setting(), None), start=start)
        self.answers = answers
        answers.stop = self.process.die
        self.ended = DriveResult(Status.INTERRUPTED)
        self.replayed: Replay | None = None

    @property
    def people(self) -> People:
        return self.answers

    def _runtime(self) -> CaseRuntime:
        runtime = self._runtime_of(_DrawnRuntime)
        runtime.models = Models(self._settings, {}, self.answers)
        runtime.answers = self.answers
        return runtime

    def explore(self) -> None:
        """Drive the run until it rests, and replay it. Raises `Stuck`, and every exception that is a mistake."""
        self._bench.loop.set_time(START)
        try:
            self._bench.loop.run(self._explore())
        finally:
            self.world.folder.remove()

    async def _explore(self) -> None:
        self._prepare()
        runtime = self._runtime()
        self._run = await self._begin(runtime)
        try:
            await self._drive(runtime)
        except (CannotStart, Refused) as error:
            self.ended = DriveResult(Status.FAILED, failure=Failure("cannot_start", str(error)))
            return
        if self._driven is not None:
            self.ended = self._driven.ended
            row, records = await runtime.row(self._run), await runtime.store.effects(self._run)
            self.replayed = await runtime.replay_of(await runtime.stored(row), row, records, Progress.of)


def walk(
    bench: Bench,
    start: PreparedStart,
    inputs: Mapping[str, Value],
    given: Given,
    draw: Draw | None,
    results: Results = NO_RESULTS,
) -> tuple[DrawnRun | None, Broken | None]:
    """Run once with complete inputs. An exception that is not one of Quire's own is a broken promise."""
    run = DrawnRun(bench, start, inputs, DrawnAnswers(given, draw, results))
    try:
        run.explore()
    except JournalMismatch as error:
        return run, Broken("replay", f"the records of the run do not fit a second walk: {error}")
    except QuireError:
        return None, None  # it could not be started so
    except Stuck as stuck:
        return run, Broken("ends", str(stuck))
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
        return None, Broken("traceback", f"{type(error).__name__}: {error} ({place})")
    if len(run.answers.seen) >= MAX_EFFECTS:
        return run, Broken("ends", f"the run asks for more than {MAX_EFFECTS:,} things")
    return run, None


def broken_promise(run: DrawnRun, promises: Promises) -> Broken | None:
    """Return the first promise that a run broke; None if it kept all."""
    return _beyond_bounds(run, promises.proof) or _outside(run, promises) or _differs(run)


def _beyond_bounds(run: DrawnRun, proof: Proof) -> Broken | None:
    """Compare the numbers of a run with the bounds proven for inputs of these sizes."""
    sizes = input_sizes(run.inputs)
    kinds = list(run.answers.seen.values())
    counted = {
        "model_calls": kinds.count("model"),
        "tool_calls": len(run.answers.calls),
        "questions": kinds.count("ask"),
    }
    for kind, count in counted.items():
        bound, name = proof.bound(kind), kind.replace("_", " ")
        most = bound.most.with_sizes(sizes).as_number
        if most is not None and count > most:
            return Broken("bounds", f"{count} {name} were made, and at most {most} are possible by its bounds")
        if count < bound.least and run.ended.status is Status.COMPLETED:
            least = f"its bounds say that there are {bound.least} or more"
            return Broken("bounds", f"{count} {name} were made, and {least}")
    return None


def _outside(run: DrawnRun, promises: Promises) -> Broken | None:
    if promises.envelope is None:
        return None
    from quire.library.capability_words import Words

    for request in run.answers.calls:
        if request.grants is None:
            words = Words({request.connection: None} if request.connection else {})
            needed = next(iter(words.tool(request.connection, request.tool)), "")
            if needed and not promises.envelope.covers(needed):
                return Broken("envelope", f"{request.tool} was called with {needed}, which no permission covers")
    return None


def _differs(run: DrawnRun) -> Broken | None:
    """Compare the end of a run with that of its replay, which a resume after a crash would be."""
    completed, replayed = run.ended.status is Status.COMPLETED, run.replayed
    if replayed is None or (replayed.finished, replayed.result) == (completed, run.ended.result):
        return None
    return Broken("replay", "a second walk with the same answers comes to another end")
