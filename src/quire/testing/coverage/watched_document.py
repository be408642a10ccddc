"""Documents whose runs are watched: the decisions that one run takes, and the moments at which they show.

The interpreter of playbooks reads the condition of an arm when it tests it, and the body of an arm when it has chosen
it. So an arm that tells when it is read sees every decision, without a second copy of the rules. Of a directive only
the outermost thread counts: a thread that it starts is a directive with a file of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from quire.engine.interpreter.thread.compose import BundleResolver, facts_before_start, read_chain
from quire.engine.interpreter.thread.hooks import condition_holds, is_composed
from quire.engine.interpreter.thread.interpret import interpret_directive
from quire.engine.thread_progress import thread_of
from quire.patterns import late_pattern
from quire.plan.built_in_tools import ASK
from quire.plan.nodes import Case, Comparison, Match, Plan, Step, walk
from quire.plan.nodes import Sequence as Steps
from quire.plan.thread import THREAD_PATH, Hook
from quire.testing.coverage.decisions import Kind, asks, condition_parts, counted_limits, decision_id, way_of_answer
from quire.trust.capabilities import Grants, Primary

if TYPE_CHECKING:
    from collections.abc import Callable

    from quire.engine.interpreter.thread.compose import Bundle
    from quire.engine.interpreter.thread.setup import Setup
    from quire.engine.pure_work import PureWork
    from quire.engine.records import EffectRecord
    from quire.engine.requests import Emit, Fan, HumanRequest, Join, Load, ModelRequest, Recorded, ToolRequest, Walk
    from quire.errors import StepFailed
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
        return run.with_plan(replace(run.plan, body=self._sequence(run.plan.body, ""))).walk(work)

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

    def _sequence(self, sequence: Steps, prefix: str) -> Steps:
        return Steps(tuple(self._step(step, f"{prefix}{step.position}") for step in sequence.steps))

    def _step(self, step: Step, path: str) -> Step:
        return step if step.match is None else replace(step, match=self._match(step.match, path))

    def _match(self, match: Match, path: str) -> Match:
        """Watch the arms. Reading the condition of one arm means that those before it did not hold; a last arm that
        never holds stands for a missing `else`."""
        take = self.take
        cases = []
        for number, case in enumerate(match.cases, 1):
            body = self._sequence(case.body, f"{path}/case[{number}]/")

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
        self._grants = [Grants.of((one.capability,)) for one in thread.permissions]
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
        hooks = setup.composed.hooks
        first = _first_own(hooks, self._thread.hooks)
        numbers = {
            id(hook): number for number, hook in enumerate(hooks[first:], 1) if number <= len(self._thread.hooks)
        }
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
                found = _ACTION.search(event.path)
                number = self._own.get((found[1], int(found[2]))) if found else None
                if found and number is not None:
                    index = int(found[3] or 0)
                    self.take("hooks", THREAD_PATH, f"hook[{number}]/action[{index + 1}]", "done")
                    if asks(self._thread.hooks[number - 1].actions[index]):
                        self._asking.setdefault(event.path[: found.start()], number)
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
        primary = next((one for one in _PRIMARIES if request.connection == "rye" and one == request.tool), None)
        if primary is None:
            self._use("execute", "tool", request.tool)
        else:
            item_type, item_id = (str(request.arguments.get(name, "")) for name in ("item_type", "item_id"))
            self._use(primary, item_type, item_id)

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
            limit = self._thread.hooks[number - 1].event == "limit"
            self.take("answers", THREAD_PATH, f"hook[{number}]/ask", _way(answer, limit))

    def _use(self, primary: Primary, item_type: str, item_id: str) -> None:
        if _NOTHING.allows(primary, item_type, item_id):
            return  # it needs no grant
        for number, grant in enumerate(self._grants, 1):
            if grant.allows(primary, item_type, item_id):
                self.take("grants", THREAD_PATH, f"grant[{number}]", "used")


def _way(answer: str, limit: bool) -> str:
    """Return the decision that an answer is. At a limit, an answer that is not a number is asked for again."""
    if not limit:
        return answer
    return "no" if answer.strip().lower() in ("", "n", "no") else "more"


def _first_own(hooks: tuple[Hook, ...], own: tuple[Hook, ...]) -> int:
    """Return where the directive's own hooks begin, among those of its ancestors and of the project."""
    last = len(hooks) - len(own)
    return next((at for at in range(last, -1, -1) if hooks[at : at + len(own)] == own), 0)
