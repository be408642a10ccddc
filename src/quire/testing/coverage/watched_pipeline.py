"""A pipeline whose steps and expressions tell what they do.

Every kind of work has a watched kind: the same fields, and the place of its step. Their runner is registered beside
those of the interpreter and runs the same code, so a watched plan makes the same requests as the plan itself. Nothing
of this is loaded in a run that is not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, get_args

from msgspec import Struct, defstruct
from msgspec.structs import replace

import quire.engine.interpreter.pipeline.interpret  # noqa: F401  registers the runners of all kinds
from quire.engine.interpreter.pipeline.agent import narrowed_tools
from quire.engine.interpreter.pipeline.steps import RUNNERS
from quire.errors import StepFailed
from quire.expr import compile, python_text
from quire.patterns import late_pattern
from quire.plan.nodes import Plan, Step
from quire.plan.nodes import Sequence as Steps
from quire.plan.parts import with_formulas, with_inner
from quire.plan.pipeline_work import (
    Agent,
    Fold,
    ForEach,
    Formula,
    Invoke,
    Literal,
    OnError,
    Parallel,
    PipelineWork,
    Repeat,
    Select,
)
from quire.testing.coverage.decisions import way_of_answer
from quire.testing.coverage.pipeline_decisions import MANY, boolean_parts
from quire.testing.coverage.taken import FilePipeline
from quire.testing.coverage.watched_document import WatchedDocument
from quire.values import InvalidValue

if TYPE_CHECKING:
    from quire.engine.interpreter.pipeline.steps import PipelineScope
    from quire.engine.pure_work import PureWork
    from quire.engine.records import EffectRecord
    from quire.engine.requests import Fan, HumanRequest, Join, ModelRequest, ToolRequest, Walk
    from quire.expr.limits import Closure, Run
    from quire.expr.syntax import Node
    from quire.runs.pins import PinnedRun
    from quire.values import Value

_TRY = late_pattern(r"/try\[(\d+)\]")


class _Watch(Struct):
    """A step of a watched plan."""

    place: str
    step: Step
    """As it is in the plan itself."""
    owner: WatchedPipeline
    held: int = 0
    """How often the `until` of a loop has held."""


_WATCHED: dict[type, type] = {}
_PLAIN: dict[type, type] = {}


def _run(step: Step, work: Any, path: str, frame: PipelineScope) -> Walk:
    """Run the work of a watched step at a path, once for each attempt."""
    watch: _Watch = work.watch
    run = RUNNERS[_PLAIN[type(work)]]
    held = watch.held
    watch.owner.attempt_began(watch, path, frame)
    try:
        value = yield from run(step, work, path, frame)
    except StepFailed as error:
        if error.kind == "repeat" and error.path == path:
            watch.owner.take("fans", watch.place, "ended", "max")
        watch.owner.attempt_failed(watch, path)
        raise
    if isinstance(work, Repeat):
        watch.owner.take("fans", watch.place, "ended", "until" if watch.held > held else "max")
    watch.owner.attempt_succeeded(watch, path)
    return value


for _kind in get_args(PipelineWork):
    _watched = defstruct(f"Watched{_kind.__name__}", [("watch", object, None)], bases=(_kind,), frozen=True)
    _WATCHED[_kind], _PLAIN[_watched] = _watched, _kind
    RUNNERS[_watched] = _run


class WatchedPipeline(WatchedDocument):
    """A pipeline: its steps, expressions and requests show its decisions."""

    def __init__(self, plan: Plan, parts: Sequence[FilePipeline] = ()) -> None:
        """`parts` are the pipelines of a file of several, the document itself first."""
        super().__init__()
        self._begun: dict[str, _Watch] = {}
        self._tries: dict[str, int] = {}
        own, *others = parts or (FilePipeline("", "", plan),)
        self._plan = self._watched(own)
        self._others = {one.name: self._watched(one) for one in others}

    def _watched(self, part: FilePipeline) -> Plan:
        steps = tuple(self._step(f"{part.prefix}{step.position}", step) for step in part.plan.body.steps)
        return replace(part.plan, body=Steps(steps))

    def begin(self, records: Iterable[EffectRecord] = ()) -> None:
        super().begin(records)
        self._begun.clear()
        self._tries.clear()

    def walk(self, run: PinnedRun, work: PureWork) -> Walk:
        documents = {**run.setting.documents, **self._others}
        return replace(run.with_plan(self._plan), setting=replace(run.setting, documents=documents)).walk(work)

    def _step(self, path: str, step: Step) -> Step:
        watch = _Watch(path, step, self)
        inner = with_inner(step, path, self._step)
        own = with_formulas(inner, lambda role, formula: self._formula(watch, role, formula))
        kind = _WATCHED[type(own.work)]
        return replace(own, work=kind(**_fields(own.work), watch=watch))

    def _formula(self, watch: _Watch, role: str, formula: Formula) -> Formula:
        """Compile an expression so that its boolean parts, and its value if it decides something, are told."""
        expression = formula.compiled.expression
        numbers = {id(node): number for number, node in enumerate(boolean_parts(expression, role), 1)}
        decide = self._decider(watch, role)
        if not numbers and decide is None:
            return formula

        def around(node: Node, code: Closure) -> Closure:
            number = numbers.get(id(node))
            if number is not None:
                code = self._noted(code, watch.place, f"{role}[{number}]")
            return _told(code, decide) if decide is not None and node is expression.root else code

        return replace(formula, compiled=compile(expression, around))

    def _noted(self, code: Closure, place: str, choice: str) -> Closure:
        def note(run: Run) -> Any:
            value = code(run)
            self.take("conditions", place, choice, "true" if value else "false")
            return value

        return note

    def _decider(self, watch: _Watch, role: str) -> Callable[[Value], None] | None:
        work = watch.step.work
        match role, work:
            case "on", Select():
                return lambda value: self._label(watch.place, work, value)
            case "source", ForEach() | Fold():
                return lambda value: self._items(watch.place, work, value)
            case "until", Repeat():
                return lambda value: setattr(watch, "held", watch.held + bool(value))
        return None

    def _label(self, place: str, work: Select, value: Value) -> None:
        try:
            label = python_text(value)
        except InvalidValue:
            return
        names = [name for name, _ in work.cases]
        otherwise = "none" if work.default is None else "default"
        self.take("arms", place, "match", str(names.index(label) + 1) if label in names else otherwise)

    def _items(self, place: str, work: ForEach | Fold, value: Value) -> None:
        if not isinstance(value, list | tuple):
            return
        if isinstance(work, ForEach) and work.max_items is not None and len(value) > work.max_items:
            return  # the step fails before its first item
        self.take("fans", place, "items", MANY if len(value) > 1 else str(len(value)))

    def attempt_began(self, watch: _Watch, path: str, frame: PipelineScope) -> None:
        self._begun[path] = watch
        for again in _TRY.finditer(path):
            above = path[: again.start()]
            self._tries[above] = max(self._tries.get(above, 0), int(again[1]))
        self.take("steps", watch.place)
        work = watch.step.work
        if isinstance(work, ForEach | Fold) and work.source is None:
            self._items(watch.place, work, frame.pipe)

    def attempt_succeeded(self, watch: _Watch, path: str) -> None:
        if self._policy(watch) == "retry" and _attempt(path) > 1:
            self.take("errors", watch.place, "on_error", "again")

    def attempt_failed(self, watch: _Watch, path: str) -> None:
        guard = watch.step.guard
        if guard is not None and guard.on_error is not None:
            self._fails(watch.place, "on_error", guard.on_error, _attempt(path))

    def _policy(self, watch: _Watch) -> str:
        guard = watch.step.guard
        return guard.on_error.policy if guard is not None and guard.on_error is not None else ""

    def _fails(self, place: str, choice: str, on_error: OnError, attempt: int) -> None:
        if on_error.policy == "continue":
            self.take("errors", place, choice, "dropped")
        elif on_error.policy == "retry" and attempt > on_error.times:
            self.take("errors", place, choice, "used_up")

    def child_ended(self, fan: Fan, number: int, *, failed: bool) -> None:
        """Note the end of an item or a branch, after all its attempts."""
        watch = self._begun.get(fan.path)
        match watch.step.work if watch else None:
            case ForEach(on_error=on_error):
                child = f"{fan.path}/for_each[{number}]"
            case Parallel(on_error=on_error, branches=branches):
                child = f"{fan.path}/parallel[{branches[number][0]}]"
            case _:
                return
        place, attempts = cast("_Watch", watch).place, self._tries.get(child, 1)
        if failed:
            self._fails(place, "items_on_error", on_error, attempts)
        elif attempts > 1 and on_error.policy == "retry":
            self.take("errors", place, "items_on_error", "again")

    def joined(self, request: Join, states: Sequence[Mapping[str, Value]]) -> None:
        """Note that the time of a step was over. The work itself was stopped, so it has not told its failure."""
        path = request.path.removesuffix("/join")
        watch = self._begun.get(path)
        if watch is not None and any(state.get("state") != "done" for state in states):
            self.attempt_failed(watch, path)

    def answered(self, request: HumanRequest, answer: str) -> None:
        watch = self._begun.get(request.path.removesuffix("/ask"))
        if watch is None or not isinstance(watch.step.work, Invoke):
            return
        given = dict(watch.step.work.arguments)
        kind = request.kind if isinstance(given.get("type"), Literal | None) else "input"
        by, listed = self.author_of(request.path), isinstance(given.get("options"), Literal)
        self.taken.update(way_of_answer(watch.place, answer, by, kind, request.options, listed))

    def asked(self, request: ModelRequest) -> None:
        path, again, _ = request.path.partition("/model/repair[")
        if not again:
            path = request.path.removesuffix("/model").partition("/turn[")[0]
        watch = self._begun.get(path)
        if watch is not None:
            self.prompts[request.path] = watch.place
            if again:
                self.take("errors", watch.place, "reply", "repaired")

    def called(self, request: ToolRequest) -> None:
        """Note which grants of an agent its call has used."""
        watch = self._begun.get(request.path.rpartition("/turn[")[0])
        work = watch.step.work if watch else None
        if watch is not None and isinstance(work, Agent):
            for number, tool in enumerate(work.tools or (), 1):
                if narrowed_tools((tool,), (request.tool,)):
                    self.take("grants", watch.place, f"tool[{number}]", "used")


def _told(code: Closure, decide: Callable[[Value], None]) -> Closure:
    def tell(run: Run) -> Any:
        value = code(run)
        decide(value)
        return value

    return tell


def _fields(work: Any) -> dict[str, Any]:
    return {name: getattr(work, name) for name in work.__struct_fields__}


def _attempt(path: str) -> int:
    """Return the number of the attempt that a path ends in; 1 if it ends in none."""
    found = list(_TRY.finditer(path))
    return int(found[-1][1]) if found and found[-1].end() == len(path) else 1
