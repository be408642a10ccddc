"""One explored run: walk a document with drawn answers, and hold it to the promises that hold for every run."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, assert_never

from msgspec import Struct, field

from quire.engine.records import Status
from quire.engine.requests import Boundary, Failure, HumanRequest, Load, Meter, ModelRequest, Offer, ToolRequest
from quire.errors import Denied, QuireError, StepFailed
from quire.runs.usage_seen import input_sizes
from quire.testing.pure_answers import Performance, WalkEnd, WalkLimits
from quire.testing.pure_walk import run_pure
from quire.trust.capabilities import Grants, canonical
from quire.values import clean, copy

if TYPE_CHECKING:
    from quire.analysis.proof import Proof
    from quire.testing.exploration.draw import Draw
    from quire.testing.pure_answers import Performed
    from quire.testing.pure_start import PureStart
    from quire.values import Value

MAX_EFFECTS = 2_000
PURE_WORK = 3_000_000
SIMPLE = "x"

Results: TypeAlias = "Mapping[str, Sequence[Value]]"
"""Examples of the results of tools, by id."""
NO_RESULTS: Results = {}


class Given(Struct):
    """Everything from outside that a run was given: its inputs, and the answer to each request by path."""

    inputs: Mapping[str, Value]
    answers: dict[str, Performance] = field(default_factory=dict)
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
    """Answers requests as `given` says, and draws all others. Without a draw they get the simplest answer."""

    def __init__(self, given: Given, draw: Draw | None, results: Results) -> None:
        """`results` are examples of what tools return."""
        self.given = given
        self._draw = draw
        self._results = results

    def __call__(self, request: Performed) -> Performance | None:
        known = self.given.answers.get(request.path)
        if known is None:
            known = self._answer(request)
            if known is not None and not isinstance(request, Offer | Load | Boundary):
                self.given.answers[request.path] = known
                self.given.ways[request.path] = _named(request)
        return known

    def _answer(self, request: Performed) -> Performance | None:
        match request:
            case ModelRequest():
                return self._reply(request)
            case ToolRequest():
                _require(request)
                return self._result(request)
            case HumanRequest():
                answer = self._draw.answer(request) if self._draw else _simplest(request)
                return Performance(clean(answer))
            case Load(scheme="run"):
                return Performance("run")
            case Load():
                return Performance(None)
            case Offer():
                return Performance([])
            case Boundary():
                return None
            case _:
                assert_never(request)

    def _reply(self, request: ModelRequest) -> Performance:
        if self._draw is None:
            return Performance({"text": SIMPLE, "model": "drawn", "finish_reason": "stop"})
        if self._draw.fails():
            return Performance(failure=Failure("overloaded", "the model is overloaded"))
        text, calls = self._draw.reply(request)
        if not text.strip() and not calls:
            return Performance(failure=Failure("empty", "the model answered nothing"))
        value: dict[str, Value] = {"text": clean(text), "model": "drawn", "finish_reason": "stop"}
        if calls:
            earlier = sum(len(message.uses) for message in request.messages)
            value["uses"] = [[f"call_{earlier + at}", name, copy(args)] for at, (name, args) in enumerate(calls, 1)]
        return Performance(value, Meter(10, 10, 0.0))

    def _result(self, request: ToolRequest) -> Performance:
        known = self._results.get(canonical(request.tool), ())
        if self._draw is None:
            return Performance(copy(known[0]) if known else SIMPLE)
        if self._draw.fails():
            return Performance(failure=Failure("tool", "the tool failed"))
        if known and not self._draw.seldom():
            return Performance(copy(self._draw.like(self._draw.one_of(known))))
        return Performance(copy(self._draw.anything()))


def walk(
    start: PureStart, given: Given, draw: Draw | None, results: Results = NO_RESULTS
) -> tuple[WalkEnd | None, Broken | None]:
    """Walk once. An exception that is not one of Quire's own is a broken promise."""
    limits = WalkLimits(pure_work=PURE_WORK, max_effects=MAX_EFFECTS)
    try:
        end = run_pure(start.begin, DrawnAnswers(given, draw, results), limits=limits, listen=lambda said: None)
    except QuireError:
        return None, None  # it could not be started so
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
        return None, Broken("traceback", f"{type(error).__name__}: {error} ({place})")
    if end.failure is not None and end.failure.kind == "limit" and "effects" in end.failure.message:
        return end, Broken("ends", f"the run asks for more than {MAX_EFFECTS:,} things")
    return end, None


def broken_promise(start: PureStart, given: Given, end: WalkEnd, promises: Promises) -> Broken | None:
    """Return the first promise that a walk broke; None if it kept all."""
    return _beyond_bounds(end, promises.proof, start.inputs) or _outside(end, promises) or _differs(start, given, end)


def _beyond_bounds(end: WalkEnd, proof: Proof, inputs: Mapping[str, Value]) -> Broken | None:
    """Compare what a walk did with what was proven for inputs of these sizes."""
    sizes = input_sizes(inputs)
    for kind, seen in _counted(end).items():
        bound, name = proof.bound(kind), kind.replace("_", " ")
        most = bound.most.with_sizes(sizes).as_number
        if most is not None and seen > most:
            return Broken("bounds", f"{seen} {name} were made, and at most {most} are possible by its bounds")
        if seen < bound.least and end.status is Status.COMPLETED:
            return Broken("bounds", f"{seen} {name} were made, and its bounds say that there are {bound.least} or more")
    return None


def _counted(end: WalkEnd) -> dict[str, int]:
    asked = end.asked.values()
    return {
        # A call that a limit of its thread refused was not made.
        "model_calls": sum(isinstance(one, ModelRequest) and not (one.bounds and one.bounds.reached) for one in asked),
        "tool_calls": sum(isinstance(one, ToolRequest) for one in asked),
        "questions": sum(isinstance(one, HumanRequest) for one in asked),
    }


def _outside(end: WalkEnd, promises: Promises) -> Broken | None:
    if promises.envelope is None:
        return None
    for request in end.asked.values():
        if isinstance(request, ToolRequest) and request.grants is None:
            needed = _capability(request)
            if needed and not promises.envelope.covers(needed):
                return Broken("envelope", f"{request.tool} was called, which needs {needed}, outside of its envelope")
    return None


def _capability(request: ToolRequest) -> str:
    from quire.library.capability_words import Words

    found = Words({request.connection: None} if request.connection else {}).tool(request.connection, request.tool)
    return found[0] if found else ""


def _differs(start: PureStart, given: Given, end: WalkEnd) -> Broken | None:
    """Walk again with the same answers, as a resume would after a crash."""
    again, broken = walk(start, given, None)
    if broken is not None or again is None:
        return Broken("replay", "a second walk with the same answers fails")
    same = (end.status, end.result, list(end.asked)) == (again.status, again.result, list(again.asked))
    return None if same else Broken("replay", "a second walk with the same answers comes to another end")


def _require(request: ToolRequest) -> None:
    """Refuse a call that the thread's permissions do not cover, as the gate does. Raises `StepFailed`."""
    if request.grants is None or request.connection not in ("", "quire"):
        return
    try:
        Grants.of(request.grants).require("execute", "tool", canonical(request.tool))
    except Denied as error:
        raise StepFailed(str(error), kind="denied") from None


def _named(request: Performed) -> tuple[str, str]:
    if isinstance(request, ToolRequest):
        return "tool", f"{request.connection}/{request.tool}" if request.connection else request.tool
    return ("model" if isinstance(request, ModelRequest) else "ask"), request.label


def _simplest(request: HumanRequest) -> str:
    if request.kind == "confirm":
        return "yes"
    return request.options[0] if request.options else SIMPLE
