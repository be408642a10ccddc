"""The tree of a run: its steps and effects as rows below each other, with times, costs and states.

A row is a prefix of a journal path. Each effect adds its time, tokens and cost to all prefixes of its path, so an event
changes as many rows as the path has parts. The same rules are in `server/page/app/tree_model.js`; the table
`tests/server/tree_cases.json` tests both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from quire.engine.progress import place_in_plan
from quire.engine.records import Status, Usage
from quire.patterns import late_pattern
from quire.plan.nodes import UseTool
from quire.plan.pipeline_work import Block, Call, Select

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord, Event
    from quire.plan.nodes import Plan, Step
    from quire.values import Value

State = Literal["pending", "running", "waits", "done", "failed", "stopped", "skipped"]

PASSED = frozenset(["call", "thread", "steps", "do", "match", "for_each", "parallel", "within", "start", "end"])
"""Parts of a path that are not rows: the rows below them move up."""
RAW = frozenset(["offer", "load", "join", "leave", "halt", "abort", "spent", "terms", "break"])
"""Kinds of effects that are not rows. They count for the row above."""
LEAVES = frozenset({"call", "tool", "ask", "try", "retry", "repair"})
"""Kinds of rows that become part of the row above if they are alone in it."""
ITEMS = frozenset({"for_each", "fold", "parallel", "repeat"})
KINDS = {name: name for name in ("turn", "tool", "try", "retry", "repair", "case", "match", "hook", "ask")}
KINDS |= {"return": "tool", "model": "call"} | dict.fromkeys(ITEMS, "item")
OPENS = frozenset({"delta", "reading", "retry", "queued", "agent_called", "tool_called"})
"""Events of work that is under way."""
MOST_ITEMS = 20
"""Items that stand below their step; more of them are grouped by their state."""
GROUPS: Mapping[State, str] = {"failed": "failed", "running": "running", "waits": "running", "stopped": "running"}
MOST_PARTS = 400

_NEVER = float("inf")
_NUMBER = late_pattern(r"\[?(\d{1,9})\]?$", re.ASCII)

_STATES: Mapping[str, State] = {
    "pending": "pending",
    "running": "running",
    "intent": "running",
    "awaiting_input": "waits",
    "completed": "done",
    "ok": "done",
    "failed": "failed",
    "skipped": "skipped",
}


def state_of(status: str, run: Status, *, asks: bool = False, failed: bool = False) -> State:
    """Return the state of a step or an effect. `status` is the last word about it: that of a step or of a record. In a
    run that nothing drives, work under way has stopped; `failed` says that the last effect of it has failed."""
    if asks and run not in (Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.EXPIRED):
        return "waits"
    state = _STATES.get(status, "stopped")
    if state == "waits":
        return state_of("running", run, failed=failed) if run is not Status.AWAITING_INPUT else state
    if state == "running" and run is not Status.RUNNING:
        return "done" if run is Status.COMPLETED else "failed" if failed else "stopped"
    return state


class Document(Struct, frozen=True):
    """A document whose steps have paths that begin with `prefix`."""

    plan: Plan
    prefix: str = ""


class Node(Struct):
    """A row. Its numbers are those of all effects at its path and below."""

    path: str
    kind: str
    above: Node | None
    document: Document | None = None
    below: list[Node] = field(default_factory=list)
    start: float | None = None
    end: float = 0.0
    effects: int = 0
    failed: int = 0
    cost: float = 0.0
    unpriced: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    status: str = ""
    status_at: float = 0.0
    open: int = 0
    """Effects under way, questions included."""
    asks: int = 0
    last: float = 0.0
    """The end of the last effect, and whether it failed."""
    last_failed: bool = False
    waits: list[tuple[float, float]] = field(default_factory=list)
    message: str = ""
    tool: str = ""
    by: str = ""

    def lineage(self) -> Iterator[Node]:
        """Yield the row and all rows above it."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.above

    @property
    def number(self) -> int:
        match = _NUMBER.search(self.path)
        return int(match[1]) if match else -1

    @property
    def part(self) -> str:
        return self.path.rpartition("/")[2]

    def place(self) -> tuple[str, int]:
        """Return the kind of place among the rows of one parent, and the number there: rows of a kind are sorted by
        their numbers, kinds by their first start."""
        path = self.path[len(self.above.path) :] if self.above else self.path
        match = _NUMBER.search(path)
        return (path[: match.start()], int(match[1])) if match else (path, 0)


class RunTree:
    """The rows of one run. `plan` and `documents` name the steps; without them rows have their numbers."""

    def __init__(self, plan: Plan | None = None, documents: Mapping[str, Plan] | None = None) -> None:
        self.root = Node("", "run", None, Document(plan) if plan else None)
        self.nodes: dict[str, Node] = {}
        self.leaves: dict[str, tuple[Node, EffectRecord]] = {}
        self.opened: dict[str, tuple[Node, float, bool]] = {}
        self.stops: list[tuple[float, float]] = []
        """The times in which the run rested."""
        self.computed: dict[str, str] = {}
        """The states of steps in a replay: of those without an effect, and of ends that are not written yet."""
        self.values: dict[str, Sequence[Value]] = {}
        """The items of fans, by the path of the step."""
        self._documents = documents or {}
        self._steps: dict[int, Mapping[str, Step]] = {}
        self._asked: dict[str, float] = {}
        self._stopped: float | None = None
        self._last = 0.0

    def node(self, path: str) -> Node:
        """Return the row of a path: that of the nearest prefix that is one."""
        node = self.nodes.get(path)
        if node is not None:
            return node
        above, _, part = path.rpartition("/")
        if path.count("/") >= MOST_PARTS:  # of a journal that others wrote
            above, part = "", path
        if (part in PASSED and above) or part == "thread":
            return self.node(above) if above else self.root
        parent = self.node(above) if above else self.root
        word = part.partition("[")[0]
        kind = "step" if part.isascii() and part.isdecimal() else KINDS.get(word, "other")
        if kind in ("item", "try", "turn") and word == part:
            kind = "other"
        if kind in ("retry", "repair") and parent.kind == "call" and parent.above:
            parent = parent.above
        node = self.nodes[path] = Node(path, kind, parent, self._document(parent, path))
        parent.below.append(node)
        return node

    def _document(self, above: Node, path: str) -> Document | None:
        part = path[len(above.path) :].lstrip("/").partition("/")[0]
        if part not in ("call", "match"):
            return above.document
        callee = self.callee(above)
        return Document(callee, f"{above.path}/{part}/") if callee else None

    def step(self, node: Node) -> Step | None:
        """Return the step of the plan that a row is about; None if it is not known."""
        document = node.document
        if document is None or node is self.root:
            return None
        steps = self._steps.get(id(document.plan))
        if steps is None:
            steps = self._steps[id(document.plan)] = dict(document.plan.steps())
        return steps.get(place_in_plan(node.path[len(document.prefix) :]))

    def callee(self, node: Node) -> Plan | None:
        """Return the plan of the document that a step calls, if there is only one that it can be."""
        step = self.step(node)
        if step is None:
            return None
        names = {call.document for call in step.calls()}
        if isinstance(step.work, UseTool):
            names = {step.work.tool}
        return self._documents.get(next(iter(names))) if len(names) == 1 else None

    def add(self, record: EffectRecord) -> None:
        """Add an effect, or replace what an earlier record at its path has added."""
        path, raw, start, end = record.path, record.kind in RAW, record.at, record.ended_at
        node = self.node(path) if not raw else self.node(path.rpartition("/")[0]) if "/" in path else self.root
        self._close(path, end)
        if path in self.leaves:
            self._count(*self.leaves[path], -1)
        if record.kind == "ask" and path in self._asked:
            start = self._asked[path]
            for at in node.lineage():
                at.waits.append((start, end))
        self.leaves[path] = node, record
        self._count(node, record, 1)
        if record.state == "intent":
            self._open(path, start)
        if raw:
            return
        node.message, node.by = record.failure.message if record.failure else "", record.by
        for at in node.lineage():
            at.start = start if at.start is None else min(at.start, start)
            at.end = max(at.end, end)
            if end >= at.last and record.state != "intent":
                at.last, at.last_failed = end, record.state == "failed"
            if at.status == "failed" and end > at.status_at + 1e-6:
                at.status = "running"

    def _count(self, leaf: Node, record: EffectRecord, by: int) -> None:
        usage = record.usage or Usage()
        for node in leaf.lineage():
            node.effects += by
            node.failed += by * (record.state == "failed")
            node.tokens_in += by * usage.input_tokens
            node.tokens_out += by * usage.output_tokens
            node.cost += by * (usage.cost or 0.0)
            node.unpriced += by * (usage.cost is None)

    def _open(self, path: str, at: float, *, asks: bool = False) -> None:
        if path in self.opened:
            return
        node = self.node(path)
        self.opened[path] = (node, at, asks)
        for above in node.lineage():
            above.open += 1
            above.asks += asks
            above.start = above.start if above.start is not None else at or None

    def _close(self, path: str, at: float) -> None:
        node, _, asks = self.opened.pop(path, (None, 0.0, False))
        for above in node.lineage() if node else ():
            above.open -= 1
            above.asks -= asks
            above.end = max(above.end, at)

    def _close_all(self, at: float, *, asks: bool) -> None:
        for path in [path for path, (_, _, open) in self.opened.items() if open is asks]:
            self._close(path, at)

    def begin(self, path: str, asked_at: float | None = None) -> None:
        """Note an effect under way that no event tells of: a question, or what has begun after the last event."""
        if asked_at is not None:
            self._asked.setdefault(path, asked_at)
        self._open(path, self._last if asked_at is None else asked_at, asks=asked_at is not None)

    def apply(self, event: Event, *, effects: bool = True) -> None:
        """Change the rows of one event. Without `effects` those are left to `add`, and open questions to `begin`."""
        path, at, data = event.path, 0.0 if event.replayed else event.at, event.data
        match event.type:
            case "effect" if effects and event.record is not None:
                self.add(event.record)
            case "step_started" | "step_completed" | "step_skipped" | "step_failed":
                node = self.node(path)
                node.status, node.status_at = event.type.removeprefix("step_").replace("started", "running"), at
                node.message = str(data.get("message", "")) if event.type == "step_failed" else ""
                if node.status == "running" and at and node.start is None:
                    node.start = at
                elif at and node.start is not None and node.status != "skipped":
                    node.end = max(node.end, at)
            case "thread_ended":
                for turn in self.node(path).below:
                    if turn.kind == "turn" and turn.status == "running":
                        turn.status = "completed" if data.get("success") else "failed"
            case "question":
                self._asked[path] = at
                if effects:
                    self._open(path, at, asks=True)
            case "fan_item":
                self.end_item(event, event.at)
            case "run_paused" | "run_failed" | "run_cancelled":
                self._stopped = at
                if event.type != "run_paused":  # questions are withdrawn
                    self._close_all(at, asks=True)
            case "run_forked":
                self._stopped = self._last or at
            case "run_started" | "run_resumed":
                since = self._last if self._stopped is None else self._stopped
                if since:
                    self.stops.append((since, at))
                self._stopped = None
                self._close_all(0.0, asks=False)
            case "agent_told" | "tool_told":
                self._close(path, at)
            case kind if kind in OPENS and effects and not event.replayed:
                self._open(path, at)
        if event.type in ("agent_called", "tool_called"):
            self.node(path).tool = str(data.get("tool", ""))
        self._last = at or self._last

    def end_item(self, event: Event, at: float) -> None:
        """Note how an item has ended: the path of the event is that of the item, or of the step with its number."""
        path, data = event.path, event.data
        if self.node(path).kind != "item":
            index = data.get("index")
            parts = [f"parallel[{data.get('name')}]", f"for_each[{index}]", f"fold[{index}]"]
            parts += [f"repeat[{index + 1}]"] if isinstance(index, int) else []
            path = next((item for part in parts if (item := f"{path}/{part}") in self.nodes), "")
        if path:
            node = self.node(path)
            node.status = "failed" if data.get("state") == "failed" else "completed"
            node.message, node.status_at = str(data.get("message", "")), at or node.end

    def fail(self, path: str, message: str) -> None:
        """Note where the run has failed; a step that only computes leaves no record of it."""
        node = self.node(path)
        node.message = node.message or message
        if not node.effects:
            node.status = "failed"
            for at in node.lineage():
                at.last_failed = True

    def state(self, node: Node, run: Status) -> State:
        """Return the state of a row in a run of this status."""
        if node.kind == "step" and not node.status and not node.effects and not node.open:
            return self._pure_state(node, run)
        status = self.computed.get(node.path, node.status) if node.status == "running" else node.status
        status = "running" if node.open and status != "failed" else status
        status = status or ("failed" if node.last_failed else "completed" if node.effects else "pending")
        return state_of(status, run, asks=node.asks > 0, failed=node.last_failed)

    def _pure_state(self, node: Node, run: Status) -> State:
        """Return the state of a step that nothing was recorded of: steps that only compute leave no effect. It is done
        if a later one has begun, or all around it is done."""
        above = node.above or self.root
        if node.path in self.computed:
            return state_of(self.computed[node.path], run)
        if any(other.number > node.number and (other.effects or other.status) for other in above.below):
            return "done"
        if above is not self.root and above.effects and self.state(above, run) == "done":
            return "done"
        return "done" if run is Status.COMPLETED and above is self.root else "pending"

    def rows_below(self, node: Node) -> list[Node]:
        """Return the rows of a parent in their order, with the steps of the document that have not begun."""
        for path in self._planned(node):
            self.node(path)
        below = node.below
        if any(child.kind == "try" for child in below):
            # Events of the steps of a block name the step at its place, whichever attempt it is.
            below = [child for child in below if child.effects or child.open or child.kind == "try"]
        if len(below) < 2:
            return list(below)
        places = [child.place() for child in below]
        first: dict[str, float] = {}
        for child, (word, _) in zip(below, places, strict=True):
            start = _NEVER if child.start is None else child.start
            first[word] = min(first.get(word, _NEVER), start)
        keys = [(first[word], number) for word, number in places]
        return [below[at] for at in sorted(range(len(below)), key=keys.__getitem__)]

    def _planned(self, node: Node) -> Iterator[str]:
        """Yield the paths of the steps that the document has below a row."""
        if node is self.root:
            plan = node.document.plan if node.document else None
            yield from (str(step.position) for step in plan.body.steps) if plan and not plan.thread else ()
            return
        if not (node.effects or node.open or node.status == "running"):
            return
        if any(child.kind == "try" for child in node.below):
            return
        step, prefix = self.step(node), f"{node.path}/"
        above = self.step(node.above) if node.above and node.kind in ("case", "match") else None
        chosen: Iterable[Step] = ()
        if above is not None and node.kind == "case" and above.match and 0 < node.number <= len(above.match.cases):
            chosen = above.match.cases[node.number - 1].body.steps
        elif above is not None and isinstance(above.work, Select) and 0 < node.number <= len(above.work.targets()):
            target = above.work.targets()[node.number - 1]
            chosen = target.body.steps if isinstance(target, Block) else ()
        elif step is not None and isinstance(step.work, Block):
            chosen, prefix = step.work.body.steps, f"{node.path}/steps/"
        elif step is not None and isinstance(step.work, Call | UseTool) and (callee := self.callee(node)):
            chosen, prefix = (() if callee.thread else callee.body.steps), f"{node.path}/call/"
        yield from (f"{prefix}{inner.position}" for inner in chosen)

    def folded(self, node: Node) -> tuple[Node, list[Node]]:
        """Return the row that stands for a row with a single effect, and the rows below: an effect that is alone is
        part of the row above it."""
        below = self.rows_below(node)
        while len(below) == 1 and below[0].kind in LEAVES and node is not self.root:
            node = below[0]
            below = self.rows_below(node)
        return node, below

    def times(self, node: Node, now: float, run: Status) -> tuple[float, float]:
        """Return the seconds that a row took without the waits in it, and those waits. Stopped work ends with the
        last event."""
        if node.start is None:
            return 0.0, 0.0
        end = max(node.end, node.start, self._last if node.open else 0.0)
        if node.asks or (run is Status.RUNNING and (node.open or node.status == "running")):
            end = now
        waits = [*node.waits, *self.stops]
        waits += [(at, now) for opened, at, asks in self.opened.values() if asks and node in opened.lineage()]
        waited = _together(waits, node.start, end)
        return max(0.0, end - node.start - waited), waited


def _together(spans: Iterable[tuple[float, float]], start: float, end: float) -> float:
    """Return the seconds between two times that the spans cover together."""
    total, last = 0.0, start
    for since, until in sorted(spans):
        since, until = max(since, last), min(until, end)
        if until > since:
            total, last = total + until - since, until
    return total
