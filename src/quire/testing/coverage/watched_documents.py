"""Documents whose runs are watched: the decisions that one run takes, and the moments at which they show.

The interpreter of playbooks reads the condition of an arm when it tests it, and its body when it has chosen it: so arms
tell when they are read. Every kind of work of a pipeline has a watched kind with the same fields, whose runner runs the
same code. Of a directive only the outermost thread counts: a thread that it starts is a directive with its own file.
Nothing of this is loaded in a run that is not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, get_args

from msgspec import Struct, defstruct
from msgspec.structs import asdict, replace

import quire.engine.interpreter.pipeline.interpret  # noqa: F401  registers the runners of all kinds
from quire.engine.interpreter.pipeline.agent import narrowed_tools
from quire.engine.interpreter.pipeline.steps import RUNNERS
from quire.engine.interpreter.thread.compose import BundleResolver, facts_before_start, read_chain
from quire.engine.interpreter.thread.hooks import condition_holds, is_composed
from quire.engine.interpreter.thread.loop import interpret_directive
from quire.engine.thread_progress import thread_of
from quire.errors import StepFailed
from quire.expr import compile, python_text
from quire.patterns import late_pattern
from quire.plan.built_in_tools import ASK
from quire.plan.nodes import Case, Comparison, Match, Plan, Step, walk
from quire.plan.nodes import Sequence as Steps
from quire.plan.parts import with_formulas, with_inner, with_steps
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
from quire.plan.thread import THREAD_PATH, Hook
from quire.testing.coverage.decisions import Kind, asks, condition_parts, counted_limits, decision_id, way_of_answer
from quire.testing.coverage.pipeline_decisions import MANY, boolean_parts
from quire.testing.coverage.taken import FilePipeline
from quire.trust.capabilities import Grants, Primary
from quire.values import InvalidValue

if TYPE_CHECKING:
    from quire.engine.interpreter.pipeline.steps import PipelineScope
    from quire.engine.interpreter.thread.compose import Bundle
    from quire.engine.interpreter.thread.setup import Setup
    from quire.engine.premises import PureWork
    from quire.engine.records import EffectRecord
    from quire.engine.requests import Emit, Fan, HumanRequest, Join, Load, ModelRequest, Recorded, ToolRequest, Walk
    from quire.expr.syntax import Node
    from quire.expr.values import Closure, Run
    from quire.plan.thread import Thread
    from quire.runs.pins import PinnedRun
    from quire.values import Value


class WatchedDocument:
    """A document whose runs are watched, one after the other.

    A format overrides `walk`, and those of the other methods that show its decisions; by themselves they do nothing.
    """

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.records: Mapping[str, EffectRecord] = {}
        """The records of the run by path; empty for a walk without a journal."""
        self.prompts: dict[str, str] = {}
        """The places of the steps that made model calls, by the paths of the calls, where a path does not say it."""

    def begin(self, records: Iterable[EffectRecord] = ()) -> None:
        """Forget the run before."""
        self.taken = set()
        self.prompts = {}
        self.records = {record.path: record for record in records}

    def take(self, kind: Kind, place: str, choice: str = "", way: str = "") -> None:
        self.taken.add(decision_id(kind, place, choice, way))

    def author_of(self, path: str) -> str:
        """Return the author of an answer; empty if it is not known."""
        record = self.records.get(path)
        return record.by if record is not None else ""

    def walk(self, run: PinnedRun, work: PureWork) -> Walk:
        """Return the walk of a run from its start, on the watched plan."""
        raise NotImplementedError

    def emitted(self, event: Emit) -> None:
        """Note an event."""

    def asked(self, request: ModelRequest) -> None:
        """Note a call of the model, whether it was answered or failed."""

    def called(self, request: ToolRequest) -> None:
        """Note a call of a tool that was allowed."""

    def answered(self, request: HumanRequest, answer: str) -> None:
        """Note a question that was answered."""

    def loaded(self, request: Load) -> None:
        """Note a text that was loaded."""

    def joined(self, request: Join, states: Sequence[Mapping[str, Value]]) -> None:
        """Note how children were found that ran beside."""

    def failed(self, request: Recorded, error: StepFailed) -> None:
        """Note an effect that failed."""

    def child_ended(self, fan: Fan, number: int, *, failed: bool) -> None:
        """Note the end of one child of a fan."""


# No value has the empty name, so it reads as empty text and this condition never holds.
_NEVER = Comparison("", "!=", "")


class _WatchedCase:
    """An arm that tells when its condition is read, and when its body is."""

    def __init__(self, case: Case, tested: Callable[[], None], chosen: Callable[[], None]) -> None:
        self._case = case
        self._tested = tested
        self._chosen = chosen

    @property
    def test(self) -> Comparison | None:
        self._tested()
        return self._case.test

    @property
    def body(self) -> Steps:
        self._chosen()
        return self._case.body


class WatchedPlaybook(WatchedDocument):
    """A playbook: its arms, its events and its questions show its decisions."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._steps = dict(walk(plan.body))

    def walk(self, run: PinnedRun, work: PureWork) -> Walk:
        # The run has pinned the models of the steps, so the plan is that of the run.
        return run.with_plan(replace(run.plan, body=with_steps(run.plan.body, "", self._step))).walk(work)

    def emitted(self, event: Emit) -> None:
        if event.path in self._steps:
            if event.type == "step_started":
                self.take("steps", event.path)
            elif event.type == "step_skipped":
                # It has begun, to test its conditions; none of them held.
                self.taken.discard(decision_id("steps", event.path))

    def answered(self, request: HumanRequest, answer: str) -> None:
        path = request.path.removesuffix("/ask")
        step = self._steps.get(path)
        if step is not None and step.ask is not None:
            by, listed = self.author_of(request.path), bool(step.ask.options)
            self.taken.update(way_of_answer(path, answer, by, request.kind, request.options, listed))

    def _step(self, path: str, step: Step) -> Step:
        return step if step.match is None else replace(step, match=self._match(step.match, path))

    def _match(self, match: Match, path: str) -> Match:
        """Watch the arms. Reading the condition of one arm means that those before it did not hold; a last arm that
        never holds stands for a missing `else`."""
        take = self.take
        cases = []
        for number, case in enumerate(match.cases, 1):
            body = with_steps(case.body, f"{path}/case[{number}]/", self._step)

            def tested(before: int = number - 1) -> None:
                if before:
                    take("conditions", path, f"if[{before}]", "false")

            def chosen(here: int = number, decides: bool = case.test is not None) -> None:
                take("arms", path, "arm", str(here))
                if decides:
                    take("conditions", path, f"if[{here}]", "true")

            cases.append(_WatchedCase(Case(case.test, body), tested, chosen))

        def none_held() -> None:
            take("arms", path, "arm", "none")
            take("conditions", path, f"if[{len(match.cases)}]", "false")

        cases.append(_WatchedCase(Case(_NEVER, Steps(())), none_held, lambda: None))
        return replace(match, cases=cast("tuple[Case, ...]", tuple(cases)))


_ACTION = late_pattern(r"/hook\[(\w+)\]\[(\d+)\](?:/action\[(\d+)\])?$")
_PRIMARIES: tuple[Primary, ...] = ("execute", "fetch", "sign")
_NOTHING = Grants.of(())


class WatchedThread(WatchedDocument):
    """A directive: its hooks, calls and limits show its decisions."""

    def __init__(self, thread: Thread) -> None:
        super().__init__()
        self._thread = thread
        self._limits = counted_limits(thread)
        self._grants = [Grants.of((permission.capability,)) for permission in thread.permissions]
        self._own: dict[tuple[str, int], int] = {}
        """The numbers of the directive's own hooks, by the event and their number at it."""
        self._asking: dict[str, int] = {}
        """The hook that asks a person, by the place of its event in the run."""

    def begin(self, records: Iterable[EffectRecord] = ()) -> None:
        super().begin(records)
        self._asking.clear()

    def walk(self, run: PinnedRun, work: PureWork) -> Walk:
        thread = run.thread(work)
        if thread is None:
            raise TypeError("the run is not that of a directive")
        return interpret_directive(self._watched(thread, run.setting.bundles[""]))

    def _watched(self, setup: Setup, bundle: Bundle) -> Setup:
        hooks, own = setup.composed.hooks, self._thread.hooks
        # The directive's own hooks stand among those of its ancestors and of the project.
        last = len(hooks) - len(own)
        first = next((at for at in range(last, -1, -1) if hooks[at : at + len(own)] == own), 0)
        numbers = {id(hook): number for number, hook in enumerate(hooks[first:], 1) if number <= len(own)}
        counts: dict[str, int] = {}
        self._own = {}
        for hook in hooks:
            at = counts.get(hook.event, 0)
            counts[hook.event] = at + 1
            if id(hook) in numbers:
                self._own[hook.event, at] = numbers[id(hook)]
        self._composed(setup, bundle)

        def watch(hook: Hook, context: Mapping[str, Value]) -> None:
            if id(hook) in numbers:
                self._conditions(numbers[id(hook)], hook, context)

        return replace(setup, watch=watch)

    def _composed(self, setup: Setup, bundle: Bundle) -> None:
        """Note the hooks that brought knowledge into the first prompt: that was done before the thread began."""
        chain = read_chain(bundle.item_id, BundleResolver(bundle))
        facts = facts_before_start(chain, setup.composed.inputs)
        for number, hook in enumerate(self._thread.hooks, 1):
            actions = [index for index, action in enumerate(hook.actions, 1) if is_composed(hook, action)]
            if not actions:
                continue
            self._conditions(number, hook, facts)
            if condition_holds(hook.condition, facts):
                for index in actions:
                    self.take("hooks", THREAD_PATH, f"hook[{number}]/action[{index}]", "done")

    def _conditions(self, number: int, hook: Hook, context: Mapping[str, Value]) -> None:
        for index, part in enumerate(condition_parts(hook.condition), 1):
            way = "true" if condition_holds(part, context) else "false"
            self.take("conditions", THREAD_PATH, f"hook[{number}]/if[{index}]", way)

    def emitted(self, event: Emit) -> None:
        if thread_of(event.path) != THREAD_PATH and event.path != THREAD_PATH:
            return
        match event.type:
            case "thread_started" if event.path == THREAD_PATH:
                self.take("steps", THREAD_PATH)
            case "hook_action":
                match = _ACTION.search(event.path)
                number = self._own.get((match[1], int(match[2]))) if match else None
                if match and number is not None:
                    index = int(match[3] or 0)
                    self.take("hooks", THREAD_PATH, f"hook[{number}]/action[{index + 1}]", "done")
                    if asks(self._thread.hooks[number - 1].actions[index]):
                        self._asking.setdefault(event.path[: match.start()], number)
            case "tool_called":
                self._use("execute", "tool", str(event.data.get("tool", "")))
            case "tool_told" if event.data.get("kind") == "denied":
                self.take("errors", THREAD_PATH, "call", "refused")

    def failed(self, request: Recorded, error: StepFailed) -> None:
        name = error.kind.removesuffix("_exceeded")
        if name != error.kind and name in self._limits and thread_of(request.path) == THREAD_PATH:
            self.take("hooks", THREAD_PATH, f"limit[{name}]", "reached")

    def called(self, request: ToolRequest) -> None:
        if thread_of(request.path) != THREAD_PATH:
            return
        for primary in _PRIMARIES:
            if request.connection == "rye" and primary == request.tool:
                item_type, item_id = (str(request.arguments.get(name, "")) for name in ("item_type", "item_id"))
                self._use(primary, item_type, item_id)
                return
        self._use("execute", "tool", request.tool)

    def loaded(self, request: Load) -> None:
        """Note the use of a directive or another document: its text is loaded when it is called."""
        if thread_of(request.path) != THREAD_PATH:
            return
        item_type, item_id = request.scheme, request.where
        if request.scheme == "document":
            item_type, _, item_id = request.where.partition(":")
        if item_type in ("directive", "pipeline", "playbook"):
            self._use("execute", item_type, item_id)
        elif item_type == "knowledge":  # an action of a hook, which may be either
            self._use("fetch", item_type, item_id)
            self._use("execute", item_type, item_id)

    def answered(self, request: HumanRequest, answer: str) -> None:
        if thread_of(request.path) != THREAD_PATH:
            return
        if request.explicit:
            self._use("execute", "tool", ASK)
            return
        number = self._asking.get(request.path.rpartition("/ask")[0])
        if number is not None:
            # At a limit, an answer that is not a number is asked for again.
            if self._thread.hooks[number - 1].event == "limit":
                answer = "no" if answer.strip().lower() in ("", "n", "no") else "more"
            self.take("answers", THREAD_PATH, f"hook[{number}]/ask", answer)

    def _use(self, primary: Primary, item_type: str, item_id: str) -> None:
        if _NOTHING.allows(primary, item_type, item_id):
            return  # it needs no grant
        for number, grant in enumerate(self._grants, 1):
            if grant.allows(primary, item_type, item_id):
                self.take("grants", THREAD_PATH, f"grant[{number}]", "used")


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
        watch.owner.attempt_ended(watch, path, failed=True)
        raise
    if isinstance(work, Repeat):
        watch.owner.take("fans", watch.place, "ended", "until" if watch.held > held else "max")
    watch.owner.attempt_ended(watch, path, failed=False)
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
        self._others = {other.name: self._watched(other) for other in others}

    def _watched(self, part: FilePipeline) -> Plan:
        return replace(part.plan, body=with_steps(part.plan.body, part.prefix, self._step))

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
        return replace(own, work=_WATCHED[type(own.work)](**asdict(cast("Struct", own.work)), watch=watch))

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

    def attempt_ended(self, watch: _Watch, path: str, *, failed: bool) -> None:
        guard = watch.step.guard
        if guard is not None and guard.on_error is not None:
            self._tried(watch.place, "on_error", guard.on_error, _attempt(path), failed)

    def _tried(self, place: str, choice: str, on_error: OnError, attempts: int, failed: bool) -> None:
        if failed and on_error.policy == "continue":
            self.take("errors", place, choice, "dropped")
        elif failed and on_error.policy == "retry" and attempts > on_error.times:
            self.take("errors", place, choice, "used_up")
        elif not failed and on_error.policy == "retry" and attempts > 1:
            self.take("errors", place, choice, "again")

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
        self._tried(cast("_Watch", watch).place, "items_on_error", on_error, self._tries.get(child, 1), failed)

    def joined(self, request: Join, states: Sequence[Mapping[str, Value]]) -> None:
        """Note that the time of a step was over. The work itself was stopped, so it has not told its failure."""
        path = request.path.removesuffix("/join")
        watch = self._begun.get(path)
        if watch is not None and any(state.get("state") != "done" for state in states):
            self.attempt_ended(watch, path, failed=True)

    def answered(self, request: HumanRequest, answer: str) -> None:
        watch = self._begun.get(request.path.removesuffix("/ask"))
        if watch is None or not isinstance(watch.step.work, Invoke):
            return
        arguments = dict(watch.step.work.arguments)
        kind = request.kind if isinstance(arguments.get("type"), Literal | None) else "input"
        by, listed = self.author_of(request.path), isinstance(arguments.get("options"), Literal)
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


def _attempt(path: str) -> int:
    """Return the number of the attempt that a path ends in; 1 if it ends in none."""
    matches = list(_TRY.finditer(path))
    return int(matches[-1][1]) if matches and matches[-1].end() == len(path) else 1


def watched(plan: Plan, parts: Sequence[FilePipeline] = ()) -> WatchedDocument:
    """Return the document of a plan, to be watched. This takes longer than watching a run of it.

    `parts` are the pipelines of a file of several, the document itself first.
    """
    if plan.thread is not None:
        return WatchedThread(plan.thread)
    return WatchedPlaybook(plan) if plan.format == "playbook" else WatchedPipeline(plan, parts)
