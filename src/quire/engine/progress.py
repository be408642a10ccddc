"""Progress of a run, step by step: the sum of its events. Every display reads this."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Self, cast

from msgspec import Struct, field

from quire.engine.capture import displayed_so_far
from quire.engine.records import add_costs
from quire.engine.thread_progress import (
    CallView,
    HookView,
    ThreadView,
    call_number,
    path_order,
    reply_of_turn,
    thread_of,
    threads_above,
    turn_number,
    turn_of,
)
from quire.patterns import late_pattern
from quire.plan.descriptions import step_name
from quire.plan.vocabulary import JOINT
from quire.values import Value, text_or_json

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord, Event, Status
    from quire.plan.nodes import Plan, Step


KEPT_CALLS = 100
"""Agent calls of one step that are kept, the last ones; a fan may make thousands of them."""

STREAM_TAIL = 10_000
"""Characters of an unfinished reply that are kept; displays show its end."""


class Progress(Struct):
    """The steps of a plan in document order, by path, with the progress of each.

    For a pipeline these are the top-level steps; work inside a step counts for that step. The turns of a thread are
    steps as well, below the step that runs the directive; turns of threads that run concurrently in a fan are left out.
    """

    steps: dict[str, StepView]
    named: dict[str, str] = field(default_factory=dict)
    stores: dict[str, Value] = field(default_factory=dict)
    """The values that the steps of a pipeline have stored."""
    warnings: list[tuple[str, str]] = field(default_factory=list)
    streaming: str = ""
    streaming_path: str = ""
    reading: str = ""
    """How far a model has read its prompt; empty at the end of it."""
    extracts: dict[str, str] = field(default_factory=dict)
    """The field that a step extracts from its reply, by the path of the step; steps of called documents included."""
    threads: dict[str, ThreadView] = field(default_factory=dict)
    """By path."""
    limits: Mapping[str, Value] = field(default_factory=dict)
    """The limits of the outermost thread."""
    _numbers: dict[str, int] = field(default_factory=dict)
    _before: dict[str, dict[str, Value]] = field(default_factory=dict)
    """The stores when a block or a choice began, by its path."""

    @classmethod
    def of(cls, plan: Plan) -> Self:
        progress = cls({})
        if plan.thread:
            return progress
        if plan.format == "pipeline":
            for path, step, depth in _told_steps((str(step.position), step) for step in plan.body.steps):
                store = step.capture.name if step.capture else ""
                view = StepView(path, step.label, step_name(step), depth, store=store)
                progress.steps[path] = view
                if depth:
                    progress.steps[path.rpartition("/")[0].rpartition("/")[0]].below.append(view)
            return progress
        for path, step in plan.steps():
            view = StepView(path, step.label, step_name(step), path.count("/case["))
            progress.steps[path] = view
            parent = progress.steps.get(path.rpartition("/case[")[0])
            if parent:
                parent.below.append(view)
        return progress

    def apply(self, event: Event) -> None:
        step = self.step_of(event.path)
        if event.type == "reading":
            processed, total = whole(event.live.get("processed")), whole(event.live.get("total"))
            self.reading = f"reading the prompt {processed:,}/{total:,}" if processed < total else ""
        elif event.type in ("delta", "effect"):
            self.reading = ""
        # A called document emits events of its own steps; they count for the step that calls it.
        own = step is not None and step.path == event.path
        if event.type == "step_started" and "extract" in event.live:
            self.extracts[event.path] = str(event.live["extract"])
        match event.type:
            case "step_started" if own and step:
                step.status, step.message, step.survived, step.fan = "running", "", "", None
                step.started_at = event.at or None
                if step.below:
                    self._before[step.path] = dict(self.stores)
                self.streaming = ""
                if step.thread:
                    step.label, step.way = event.label, event.way
                    step.title = str(event.data.get("title", ""))
            case "step_completed" if own and step:
                step.status = "completed"
                step.output = text_or_json(event.live.get("output", step.output or ""))
                step.displayed = text_or_json(event.live.get("displayed", step.output))
                failure = event.data.get("survived")
                step.survive(str(failure.get("message", "")) if isinstance(failure, Mapping) else "")
                self.streaming = ""
                if step.fan:
                    step.fan.close()
                if step.store and not event.data.get("stops"):
                    self.stores[step.store] = event.live.get("output")
                step.skip_the_rest()
            case "step_undone" if own and step:
                # A failed attempt leaves no stores behind.
                self.stores = dict(self._before.get(step.path, self.stores))
            # The items of a loop are counted, not the fans inside each item.
            case "fan_started" if step and not any(loop in event.path for loop in _LOOPS):
                step.fan = step.fan or FanView()
                step.fan.begin(event)
                self.streaming = ""
            case "fan_item" if step and step.fan and not any(loop in event.path for loop in _LOOPS):
                step.fan.ended(event)
            case "step_skipped" if own and step:
                step.status = "skipped"
                step.skip_the_rest()
            case "step_failed" if own and step:
                step.status, step.message = "failed", str(event.data.get("message", ""))
            case "question" if step:
                step.status = "awaiting_input"
            case "named":
                self.named[str(event.live["name"])] = str(event.live["value"])
            case "store":
                self.stores[str(event.live["name"])] = event.live["value"]
            case "warning" | "bound_broken":
                self.warnings.append((event.way, str(event.data.get("message", ""))))
            case "thread_started" | "thread_ended" | "tools_offered" | "hook_action" | "tool_called" | "tool_told":
                self._thread(event)
            case "agent_called" | "agent_told" if step:
                self._agent(step, event)
            case "delta" if step is None or step.fan is None:
                # Several replies at once would be unreadable.
                if event.path != self.streaming_path:
                    self.streaming, self.streaming_path = "", event.path
                # The kept text must include the start of the object that `extract` takes.
                held = STREAM_TAIL * (4 if event.path.rpartition("/")[0] in self.extracts else 1)
                self.streaming = (self.streaming + str(event.live.get("text", "")))[-held:]
            case "effect" if step and event.record:
                if step.status == "awaiting_input":
                    step.status = "running"
                self.add_effect(event.record)

    def shown_stream(self) -> str:
        """Return the end of the reply that the model is writing, without the object that `extract` takes from it; while
        it reads a long prompt, how far it is."""
        if self.reading:
            return self.reading
        taken = self.extracts.get(self.streaming_path.rpartition("/")[0])
        return displayed_so_far(self.streaming, taken) if taken else self.streaming

    def add_effect(self, record: EffectRecord) -> None:
        """Add the time and usage of an effect to the step that it belongs to."""
        step = self.step_of(record.path)
        if step is None:
            return
        if step.thread:
            self._reply(step, record)
        step.elapsed += record.elapsed
        if record.usage:
            step.input_tokens += record.usage.input_tokens
            step.output_tokens += record.usage.output_tokens
            step.cost = add_costs(step.cost, record.usage.cost)

    def settle(self, status: Status) -> None:
        """Record that the run has stopped with this status: steps that were running take the status of the run."""
        for step in self.steps.values():
            if step.status == "running":
                step.status = str(status)

    def step_of(self, path: str) -> StepView | None:
        """Return the step that a path belongs to: `2/case[1]/1/model` is part of `2/case[1]/1`.

        A turn that is not known yet is created.
        """
        if (step := self.steps.get(path)) is not None:
            return step
        if (turn := turn_of(path)) and turn not in self.steps:
            self._begin(turn)
        if "/try[" in path and not turn:
            path = _ATTEMPT.sub("", path)  # steps of a block are shown at their place, whichever attempt it is
        while path:
            if path in self.steps:
                return self.steps[path]
            path = path.rpartition("/")[0]
        return None

    def _begin(self, turn: str) -> None:
        depth = self.depth_of(turn)
        if depth is None:
            return
        label, above = f"turn {turn_number(turn)}", self._planned(turn)
        way = f"{above.way}{JOINT}{label}" if above else label
        self.steps[turn] = StepView(turn, label, "", depth, thread=turn.rpartition("/")[0], way=way)
        if depth:
            self.steps = dict(sorted(self.steps.items(), key=lambda item: path_order(item[0])))

    def depth_of(self, path: str) -> int | None:
        """Return the depth of a path in the document and in threads; None in a fan, whose threads are not shown."""
        above = self._planned(path)
        if above is not None and above.fan:
            return None
        return threads_above(path) + (above.depth + 1 if above else 0)

    def _planned(self, path: str) -> StepView | None:
        """Return the step of the plan that a thread runs in; None in the run of a directive."""
        while path:
            path = path.rpartition("/")[0]
            step = self.steps.get(path)
            if step is not None and not step.thread:
                return step
        return None

    def _thread(self, event: Event) -> None:
        path = event.path if event.type.startswith("thread_") else thread_of(event.path)
        thread = self.threads.setdefault(path, ThreadView(path))
        data = event.data
        match event.type:
            case "thread_started":
                thread.id, thread.depth = str(data.get("thread", "")), whole(data.get("depth"))
            case "tools_offered":
                thread.tools = tuple(str(tool) for tool in cast("list[Value]", data.get("tools") or []))
            case "thread_ended":
                thread.ended = data
                self._settle(thread)
            case "hook_action":
                if event.path not in [hook.path for hook in thread.hooks]:
                    parameters = cast("Mapping[str, Value]", data.get("params") or {})
                    hook, on, item_id = (str(data.get(name, "")) for name in ("hook", "event", "item_id"))
                    thread.hooks.append(HookView(event.path, hook, on, item_id, parameters))
            case "tool_called" | "tool_told":
                self._told(event)

    def _told(self, event: Event) -> None:
        turn = turn_of(event.path)
        step, number = self.step_of(event.path), call_number(event.path, turn)
        if step is None or not step.thread or number is None:
            return
        call = step.calls.setdefault(number, CallView())
        call.tool = str(event.data.get("tool", ""))
        if event.type == "tool_told":
            call.result, call.kind = str(event.data.get("result", "")), str(event.data.get("kind", ""))

    def _agent(self, step: StepView, event: Event) -> None:
        """Record a call of an agent. If there are many, as in a fan, only the last ones are kept."""
        data = event.data
        if event.type == "agent_called":
            number = self._numbers[event.path] = len(self._numbers) + 1
            arguments = cast("Mapping[str, Value]", data.get("arguments") or {})
            tool, text = (str(data.get(name, "")) for name in ("tool", "text"))
            step.calls[number] = CallView("", arguments, tool, path=event.path, said=text)
            step.agent_calls += 1
            step.agent_turns += event.path.endswith("/tool[0]")
            if len(step.calls) > KEPT_CALLS:
                del step.calls[next(iter(step.calls))]
        elif call := step.calls.get(self._numbers.get(event.path, 0)):
            call.result, call.kind = str(data.get("result", "")), str(data.get("kind", ""))

    def _reply(self, step: StepView, record: EffectRecord) -> None:
        reply = reply_of_turn(record, step.path)
        if reply is None:
            return
        text, calls = reply
        step.output = step.displayed = text
        for number, call in calls.items():
            view = step.calls.setdefault(number, call)
            view.name, view.arguments = call.name, call.arguments

    def _settle(self, thread: ThreadView) -> None:
        """End the running turns of a thread that has ended: no event reports that the last turn is over."""
        ended = thread.ended or {}
        for step in self.steps.values():
            if step.thread == thread.path and step.status == "running":
                step.status = "completed" if ended.get("success") else "failed"
                step.message = str(ended.get("error", ""))


def _told_steps(steps: Iterable[tuple[str, Step]], depth: int = 0) -> Iterator[tuple[str, Step, int]]:
    """Yield the steps of a pipeline that emit events, with their paths and depths: those that are in no loop and no
    fan."""
    for path, step in steps:
        yield path, step, depth
        if step.work is not None and step.work.shares_stores:
            yield from _told_steps(((f"{path}/{part}", inner) for part, inner in step.work.parts()), depth + 1)


_COLLECT = late_pattern(r"/(?:for_each|parallel)/collect\b")
_AGAIN = late_pattern(r"(?<=for_each)\[\d+\]|(?<=fold)\[\d+\]|(?<=repeat)\[\d+\]|/try\[\d+\]")
_ATTEMPT = late_pattern(r"/try\[\d+\]")
_LOOPS = ("/fold[", "/repeat[")


def place_in_plan(path: str) -> str:
    """Return the place in the plan that a path belongs to: `2/for_each[7]/try[2]/model` is `2/for_each/model`."""
    return _AGAIN.sub("", _COLLECT.sub("/collect", path))


KEPT_FAILURES = 200
"""Failed items that are kept with their messages; the others are only counted."""


class FanView(Struct):
    """Concurrent work of one step. If the step runs one fan after the other, this is the sum of them."""

    total: int = 0
    limit: int = 0
    done: int = 0
    failed: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)
    """The number or the name of each failed item, and why it failed."""
    rounds: bool = False
    """True for the rounds of a loop: one after the other, and `total` is only the most that there may be."""

    @property
    def running(self) -> int:
        """Estimate the running items as the most that have room: no event reports that an item begins."""
        return max(0, min(self.limit, self.total - self.done - self.failed))

    def begin(self, event: Event) -> None:
        self.rounds = bool(event.data.get("rounds")) and (self.rounds or not self.total)
        self.total += whole(event.data.get("total"))
        self.limit = whole(event.data.get("limit"))

    def close(self) -> None:
        """End a loop: rounds that it did not need are not missing."""
        if self.rounds:
            self.total = self.done

    def ended(self, event: Event) -> None:
        if event.data.get("state") != "failed":
            self.done += 1
            return
        self.failed += 1
        if len(self.failures) < KEPT_FAILURES:
            which = event.data.get("name", event.data.get("index", ""))
            self.failures.append((str(which), str(event.data.get("message", ""))))


class StepView(Struct):
    """Progress of one step."""

    path: str
    label: str
    title: str
    depth: int
    status: str = "pending"
    output: str | None = None
    displayed: str = ""
    message: str = ""
    survived: str = ""
    """The message of a failure that the step has survived."""
    elapsed: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    started_at: float | None = None
    below: list[StepView] = field(default_factory=list)
    store: str = ""
    """In a pipeline, the name that the value is stored under."""
    fan: FanView | None = None
    """Set once the step has begun to fan out."""
    thread: str = ""
    """Path of the thread that this step is a turn of."""
    calls: dict[int, CallView] = field(default_factory=dict)
    """The tools that the model of this step called, by number. Of the calls of agents, the last ones."""
    agent_calls: int = 0
    """The number of all calls that agents of this step made."""
    agent_turns: int = 0
    """The number of their turns with calls."""
    way: str = ""
    """The label for people, preceded by the way to the step that calls it."""

    def __post_init__(self) -> None:
        self.way = self.way or self.label

    def survive(self, message: str) -> None:
        """Record a failure that the run continues after, and that of each step below which has caused it."""
        self.survived = message
        for step in self.below:
            if message and step.status == "failed":
                step.survive(step.message)

    def skip_the_rest(self) -> None:
        """Mark the steps below that were not reached as skipped."""
        for step in self.below:
            if step.status == "pending":
                step.status = "skipped"
                step.skip_the_rest()


def whole(value: Value) -> int:
    """Return a number of an event; 0 if there is none."""
    return value if isinstance(value, int) else 0
