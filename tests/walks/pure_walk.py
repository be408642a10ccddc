"""Drive the walk of an interpreter by hand: without an event loop, a store or a journal.

The explorers of soundness walk a document some ten thousand times, in worlds that answer at will. `run_pure` takes each
answer from a function (`answers.py`).

Requests are answered as a driver answers them: limits of threads refuse a call, an answer has to fit its question,
spawned children are joined with a limit in time, children of a fan have slots. Time is a number that grows by the
`elapsed` of each answer, for each branch by itself. Children of a fan run one after the other, in their order.

Nothing is written and nothing is recorded, so a small walk takes some tens of microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, assert_never

from tests.walks.answers import NO_LIMITS, NO_METER, Failed, Performed, WalkEnd

from quire.engine.interpreter.playbook.steps import WrongAnswer, checked_answer
from quire.engine.premises import PureWork, exhausted
from quire.engine.records import Status, call_limit
from quire.engine.requests import (
    Boundary,
    Effect,
    Emit,
    Failure,
    Fan,
    Halt,
    HumanRequest,
    Join,
    Load,
    Meter,
    Metering,
    ModelRequest,
    Offer,
    Outcome,
    Spawn,
    ToolRequest,
    WorkCheck,
)
from quire.errors import CannotStart, LimitReached, Refused, StepFailed
from quire.values import clean

if TYPE_CHECKING:
    from tests.walks.answers import Answers, Begin, Listen, WalkLimits

    from quire.engine.requests import Request, Walk
    from quire.values import Value

_NOTHING_SET: Mapping[str, Value] = {}
WITHIN = "/within"
"""The end of the path of a child that has a limit in time, and is stopped when that is over."""


def run_pure(
    begin: Begin, answers: Answers, *, limits: WalkLimits = NO_LIMITS, listen: Listen | None = None
) -> WalkEnd:
    """Walk to the end, or until every branch rests."""
    end = WalkEnd(Status.COMPLETED)
    work = PureWork()
    walking = _Walking(answers, end, limits, end.events.append if listen is None else listen)
    branch = _Branch(0.0)
    try:
        end.result = walking.follow(begin(work), branch)
    except _Rests:
        end.status = _resting(end.open)
    except StepFailed as error:
        end.status, end.failure = Status.FAILED, Failed(error.kind, error.message, error.path, error.label)
    except LimitReached as error:
        end.status, end.failure = Status.FAILED, Failed(error.kind, str(error), error.path, error.label)
    except (CannotStart, Refused) as error:
        # A walk fails its steps with `StepFailed`: these come from setting up a thread.
        kind = "denied" if isinstance(error, Refused) else "cannot_start"
        end.status, end.failure, end.started = Status.FAILED, Failed(kind, str(error)), False
    end.seconds = branch.now
    return end


def _resting(open: list[Performed]) -> Status:
    """Return the status of a run that waits for these requests."""
    if any(isinstance(request, HumanRequest) for request in open):
        return Status.AWAITING_INPUT
    if any(isinstance(request, Boundary) for request in open):
        return Status.PAUSED
    return Status.INTERRUPTED


class _Rests(Exception):
    """A branch waits for an answer."""


class _TimeUp(Exception):
    """The time of a branch is over."""


class _Branch:
    """One branch: its time, and the moment at which it is cut off."""

    __slots__ = ("deadline", "now", "pauses")

    def __init__(self, now: float, deadline: float = math.inf, *, pauses: bool = False) -> None:
        self.now = now
        self.deadline = deadline
        self.pauses = pauses
        """True for a spawned child, which may wait until its parent has come as far."""

    def move_to(self, moment: float) -> None:
        if moment > self.deadline and not self.pauses:
            raise _TimeUp
        self.now = moment


class _Child:
    """A spawned child. Before each effect of another branch it goes on up to the time of that branch."""

    __slots__ = ("branch", "end", "has_ended", "moves", "moving", "open", "state")

    def __init__(self, moves: Generator[None, None, Value], branch: _Branch) -> None:
        self.moves = moves
        self.branch = branch
        self.moving = False
        self.has_ended = False
        """True also for a child that can only wait."""
        self.state: Value = None
        self.end = math.inf
        self.open: list[Performed] = []


class _Walking:
    """The branches of one walk."""

    def __init__(self, answers: Answers, end: WalkEnd, limits: WalkLimits, listen: Listen) -> None:
        self._answers = answers
        self._end = end
        self._asked = end.asked
        self._limits = limits
        self._listen = listen
        self._children: dict[str, _Child] = {}
        self._model_calls = 0

    def follow(self, walk: Walk, branch: _Branch) -> Value:
        moves = self._moves(walk, branch)
        try:
            while True:
                next(moves)
        except StopIteration as stop:
            result: Value = stop.value
            return result

    def _moves(self, walk: Walk, branch: _Branch) -> Generator[None, None, Value]:
        """Walk to the end. A branch that pauses yields when its time has passed, before the walk gets the answer."""
        answer: Any = None
        error: StepFailed | LimitReached | None = None
        listen, stops = self._listen, bool(self._limits.breakpoints)
        try:
            while True:
                request = walk.send(answer) if error is None else walk.throw(error)
                answer = error = None
                kind = type(request)
                if kind is Emit:
                    listen(request)  # type: ignore[arg-type]  # mypy does not narrow by `type`
                elif kind is Boundary and not stops:
                    answer = _NOTHING_SET
                else:
                    try:
                        answer = self._answer(request, branch)
                    except (StepFailed, LimitReached) as failed:
                        error = failed
                    if branch.pauses:
                        yield
        except StopIteration as stop:
            result: Value = stop.value
            return result
        finally:
            walk.close()

    def _answer(self, request: Request, branch: _Branch) -> Any:
        match request:
            case ModelRequest() | ToolRequest() | HumanRequest() | Load() | Offer():
                return self._perform(request, branch)
            case Boundary():
                stops = request.stops_at(self._limits.breakpoints)
                return self._perform(request, branch) if stops else _NOTHING_SET
            case Emit():
                return self._listen(request)
            case Fan():
                return self._fan(request, branch)
            case Metering():
                return self._metered(request)
            case WorkCheck():
                return self._check_work(request)
            case Spawn(path=path, child=walk):
                beside = _Branch(branch.now, pauses=True)
                self._children[path] = _Child(self._moves(walk, beside), beside)
                return None
            case Join():
                return self._join(request, branch)
            case Halt():
                return self._halt(request, branch)
            case _:
                assert_never(request)

    def _claim(self, request: Effect) -> None:
        if request.path in self._asked:
            raise AssertionError(f"the walk asked for {request.path} twice")
        if len(self._asked) >= self._limits.max_effects:
            raise LimitReached(f"the walk takes more than {self._limits.max_effects:,} effects")
        self._asked[request.path] = request

    def _perform(self, request: Performed, branch: _Branch) -> Value:
        if self._children:
            self._run_children(branch.now)
        self._claim(request)
        if (refusal := self._refused(request)) is not None:
            raise refusal.raised(request.path)
        try:
            done = self._answers(request)
        except (StepFailed, Refused) as error:
            raise Failure.of(error).raised(request.path) from None
        if done is None:
            self._end.open.append(request)
            raise _Rests
        if done.meter is not NO_METER:
            self._end.meters[request.path] = done.meter
            branch.move_to(branch.now + done.meter.elapsed)
        if done.failure is not None:
            raise done.failure.raised(request.path)
        if isinstance(request, HumanRequest):
            return self._fitting(request, str(done.value))
        if isinstance(request, ModelRequest):
            _check_reply(done.value, request.path)
        return done.value

    def _refused(self, request: Performed) -> Failure | None:
        """Return why a call must not be made: a limit of its thread. Raises `LimitReached` at a limit of the run."""
        if isinstance(request, ModelRequest):
            if request.bounds is not None and request.bounds.reached is not None:
                return Failure(*request.bounds.reached)
            most = self._limits.max_model_calls
            if most is not None and self._model_calls >= most:
                raise call_limit(most, request.path, request.label)
            self._model_calls += 1
        elif isinstance(request, Load) and request.refuse is not None:
            return Failure(*request.refuse)
        return None

    def _fitting(self, request: HumanRequest, answer: str) -> str:
        """Return the answer as it is kept. With one that does not fit, the question waits."""
        try:
            return clean(checked_answer(request.kind, request.options, answer))
        except WrongAnswer as wrong:
            message = f'the answer "{clean(answer)}" does not fit, the question waits ({wrong})'
            self._listen(Emit("warning", request.path, request.label, {"message": message}))
            self._end.open.append(request)
            raise _Rests from None

    def _fan(self, fan: Fan, branch: _Branch) -> list[Outcome]:
        """Run the children of a fan. After a failure that ends it, only those that already have a slot still run."""
        outcomes: list[Outcome] = []
        failures: list[tuple[float, int, StepFailed]] = []
        slots: list[float] = []
        limit, most, last = max(1, fan.limit), math.inf, branch.now
        rests = time_up = False
        open_before = len(self._end.open)
        for number, walk in enumerate(fan.children):
            child = _Branch(heappop(slots) if len(slots) >= limit else branch.now, branch.deadline)
            try:
                outcomes.append(Outcome(self.follow(walk, child)))
            except StepFailed as error:
                if fan.stop_on_first_failure:
                    failures.append((child.now, number, error))
                    most = min(most, (number // limit + 1) * limit)
                else:
                    outcomes.append(Outcome(failure=error))
            except _Rests:
                rests = True
            except _TimeUp:
                time_up = True
            heappush(slots, child.now)
            last = max(last, child.now)
            if number + 1 >= most:
                break
        if failures:
            moment, number, first = min(failures, key=lambda one: one[:2])
            first.also += tuple(error.path for _, other, error in failures if other != number)
            del self._end.open[open_before:]
            branch.move_to(moment)
            raise first
        if time_up:
            raise _TimeUp
        if rests:
            raise _Rests
        branch.move_to(last)
        return outcomes

    def _run_children(self, until: float) -> None:
        for child in list(self._children.values()):
            self._run_child(child, until)

    def _run_child(self, child: _Child, until: float) -> None:
        """Let a child go on until it has ended, can only wait, or has an effect that ends after a moment."""
        if child.moving or child.has_ended:
            return
        open_before = len(self._end.open)
        child.moving = True
        try:
            while child.branch.now <= until:
                next(child.moves)
        except StopIteration as stop:
            child.state, child.end = {"state": "done", "value": stop.value}, child.branch.now
        except StepFailed as error:
            failure = Failure.of(error)
            child.state = {"state": "failed", "kind": failure.kind, "message": failure.message}
            child.end = child.branch.now
        except (_Rests, _TimeUp):
            child.open = self._end.open[open_before:]
        else:
            return  # it goes on later
        finally:
            child.moving = False
        child.has_ended = True

    def _join(self, join: Join, branch: _Branch) -> Value:
        """Wait for children, and let as much time pass."""
        self._claim(join)
        deadline = math.inf if join.seconds is None else branch.now + join.seconds
        states: list[Value] = []
        moment = branch.now
        for path in join.children:
            child = self._children.get(path)
            if child is None:
                states.append({"state": "stopped"})
                continue
            if path.endswith(WITHIN):
                child.branch.deadline = min(deadline, branch.deadline)  # it is stopped there
            self._run_child(child, min(deadline, branch.deadline))
            if child.end <= deadline and child.state is not None:
                states.append(child.state)
                moment = max(moment, child.end)
            elif deadline > branch.deadline:
                raise _TimeUp
            elif deadline == math.inf:
                raise _Rests
            else:
                states.append({"state": "running"})
                moment = deadline
        branch.move_to(moment)
        return states

    def _halt(self, halt: Halt, branch: _Branch) -> Value:
        """Stop the children that have not ended by now."""
        self._run_children(branch.now)
        self._claim(halt)
        for path in halt.children:
            child = self._children.get(path)
            if child is not None and child.end > branch.now:
                child.moves.close()
                child.state, child.end, child.has_ended = {"state": "stopped"}, branch.now, True
                self._end.open[:] = [one for one in self._end.open if one not in child.open]
        return list(halt.children)

    def _metered(self, asked: Metering) -> list[Meter]:
        """Return the usage of these effects, and the totals below paths; an unknown price is not counted there."""
        meters = self._end.meters
        found = [meters.get(path, NO_METER) for path in asked.paths]
        for path in asked.below:
            below = [meter for at, meter in meters.items() if at.startswith(f"{path}/")]
            found.append(
                Meter(
                    sum(meter.input_tokens for meter in below),
                    sum(meter.output_tokens for meter in below),
                    sum(meter.cost or 0.0 for meter in below),
                    sum(meter.elapsed for meter in below),
                )
            )
        return [*found, NO_METER] if asked.superseded else found  # a pure walk is never resumed

    def _check_work(self, request: WorkCheck) -> None:
        limit = self._limits.pure_work
        if request.work.used > limit:
            raise StepFailed(exhausted(limit, request.label, request.path), kind="pure_work", path=request.path)
        request.work.allow()


def _check_reply(value: Value, path: str) -> None:
    """Raise `StepFailed` for a reply without text and tool calls, as the driver does."""
    if isinstance(value, Mapping) and not str(value["text"]).strip() and not value.get("uses"):
        raise StepFailed(f"{value.get('model', 'the model')} answered nothing", kind="empty", path=path)
