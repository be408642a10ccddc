"""JSON of the tree of a run: rows as columns, the first ones opened towards what failed, waits or runs."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from quire.plan.descriptions import condition_in_words, step_name
from quire.plan.nodes import UseTool
from quire.plan.pipeline_work import Block, Call, Invoke, Select
from quire.runs.run_tree import GROUPS, MOST_ITEMS, Node
from quire.values import encode
from quire.wording import cut

if TYPE_CHECKING:
    from quire.engine.records import RunRow
    from quire.plan.nodes import Step
    from quire.runs.run_tree import RunTree, State
    from quire.values import Value

MOST_ROWS = 400
"""Rows of the first answer."""
BUCKETS = 64
LONGEST = 200
_COLUMNS = "path parent kind label title hint state from took waited cost in out effects failed children buckets"
COLUMNS = tuple(_COLUMNS.split(" "))
ATTENTION = ("failed", "running", "waits", "stopped")
_WORDS = {"call": "Reply", "tool": "Call", "ask": "Question", "other": "", "item": "Item", "turn": "Turn"}


class TreeRows:
    """The rows of one answer. `now` is the end of what is under way; `elsewhere` says that another process drives."""

    def __init__(self, tree: RunTree, run: RunRow, now: float, *, elsewhere: bool = False) -> None:
        self.tree = tree
        self.run = run
        self.now = now
        self.elsewhere = elsewhere
        starts = [tree.root.start] if tree.root.start else []
        self.start = min([run.created_at, *starts])
        self._below: dict[str, list[Node]] = {}
        self.columns: dict[str, list[Value]] = {name: [] for name in COLUMNS}

    def below(self, row: Node) -> list[Node]:
        """Return the rows of a parent; more than 20 items as groups, each of which is a row as well."""
        if row.kind == "group":
            return row.below
        if row.path not in self._below:
            self._below[row.path] = self._grouped(row)
        return self._below[row.path]

    def _grouped(self, row: Node) -> list[Node]:
        _, below = self.tree.folded(row)
        items = [child for child in below if child.kind == "item"]
        if len(items) <= MOST_ITEMS:
            return below
        groups: dict[str, list[Node]] = {"failed": [], "running": [], "completed": []}
        for item in items:
            groups[GROUPS.get(self.state(item), "completed")].append(item)
        grouped = [group_of(row, status, several) for status, several in groups.items() if several]
        return [*grouped, *(child for child in below if child.kind != "item")]

    def state(self, row: Node) -> State:
        return self.tree.state(row, self.run.status)

    def first(self, limit: int = MOST_ROWS, after: int = 0) -> tuple[int, bool]:
        """Add the rows of the top, and below them as many as there is room for: first what needs attention. Return the
        number of top rows, and whether more follow."""
        top = self.below(self.tree.root)
        page = top[after : after + limit]
        opened: dict[str, list[Node]] = {}
        room, number = limit - len(page), 0
        waiting: list[tuple[bool, int, int, Node]] = []

        def wait(rows: Sequence[Node], depth: int) -> None:
            nonlocal number
            for row in rows:
                number += 1
                calm = row.kind == "group" or not (row.failed or self.state(row) in ATTENTION)
                heapq.heappush(waiting, (calm, depth, number, row))

        wait(page, 0)
        while waiting and room > 0:
            _, depth, _, row = heapq.heappop(waiting)
            below = self.below(row)
            if below and len(below) <= room and not row.path.endswith("#done"):
                opened[row.path] = below
                room -= len(below)
                wait(below, depth + 1)
        pending = [(row, -1) for row in reversed(page)]
        while pending:
            row, parent = pending.pop()
            self.add(row, parent)
            at = len(self.columns["path"]) - 1
            pending += [(child, at) for child in reversed(opened.get(row.path, []))]
        return len(top), after + limit < len(top)

    def page(self, under: str, state: str, order: str, after: int, limit: int) -> tuple[int, bool] | None:
        """Add one page of the rows below another one; None if there is no such row."""
        path, _, group = under.partition("#")
        node = self.tree.nodes.get(path)
        if node is None:
            return None
        rows = self.below(node)
        if group:
            rows = next((row.below for row in rows if row.path == under), [])
        rows = [row for row in rows if not state or self.state(row) == state]
        if order == "slowest":
            rows.sort(key=lambda row: -self._times(row)[0])
        elif order == "first":
            rows.sort(key=lambda row: row.start is None or row.start)
        for row in rows[after : after + limit]:
            self.add(row, -1)
        return len(rows), after + limit < len(rows)

    def add(self, row: Node, parent: int) -> None:
        """Add one row to the columns."""
        state, (took, waited) = self.state(row), self._times(row)
        leaf, below = self.tree.folded(row)
        items = [node for node in below if node.kind == "item"]
        label, title, hint = self._words(row, leaf, items, state)
        values: tuple[Value, ...] = (
            row.path,
            parent,
            row.kind,
            label,
            title,
            hint,
            state,
            None if row.start is None else round(row.start - self.start, 4),
            round(took, 4),
            round(waited, 4),
            None if row.unpriced else round(row.cost, 10),
            row.tokens_in,
            row.tokens_out,
            row.effects,
            row.failed,
            len(self.below(row)),
            self._buckets(items) if len(items) > MOST_ITEMS and row.kind != "group" else None,
        )
        for name, value in zip(COLUMNS, values, strict=True):
            self.columns[name].append(value)

    def _times(self, row: Node) -> tuple[float, float]:
        return self.tree.times(row, self.now, self.run.status)

    def _buckets(self, items: Sequence[Node]) -> list[Value]:
        """Return how many items are done and failed, in at most 64 parts of the list."""
        size = min(BUCKETS, len(items))
        buckets = [[0, 0] for _ in range(size)]
        for at, item in enumerate(items):
            state = self.state(item)
            if state in ("done", "failed"):
                buckets[at * size // len(items)][state == "failed"] += 1
        return [*buckets]

    def _words(self, row: Node, leaf: Node, items: Sequence[Node], state: State) -> tuple[str, str, str]:
        """Return the name of a row, its number or label in the document, and a few words about it."""
        if row.kind == "group":
            message = next((item.message for item in items if item.message), "") if state == "failed" else ""
            return f"{row.path.rpartition('#')[2].capitalize()} {len(items):,}", "", _line(message)
        step = self.tree.step(row) if row.kind == "step" else None
        label = step_name(step) if step else self._label(row)
        title = step.label if step else str(row.number) if row.kind in ("step", "turn") else ""
        return label, title, _line(self._hint(row, leaf, step, items, state))

    def _label(self, row: Node) -> str:
        number, part = row.number, row.part
        above = self.tree.step(row.above) if row.above else None
        match row.kind:
            case "item" if part.startswith("parallel["):
                return part.removeprefix("parallel[").removesuffix("]")
            case "item":
                return f"Round {number}" if part.startswith("repeat") else f"Item {number + 1}"
            case "tool":
                return self.tree.folded(row)[0].tool or row.tool or (f"Call {number + 1}" if number >= 0 else "Call")
            case "hook":
                return f"Hook on {part.partition('[')[2].partition(']')[0]}"
            case "case" if above and above.match and 0 < number <= len(above.match.cases):
                test = above.match.cases[number - 1].test
                return f"If {condition_in_words(test)}" if test else "Else"
            case "match" if above and isinstance(above.work, Select):
                cases = above.work.cases
                return f"Case {cases[number - 1][0]}" if 0 < number <= len(cases) else "Default"
            case "step" | "turn" | "case" | "match" | "try" | "retry" | "repair":
                return f"{row.kind.capitalize()} {number}"
        return _WORDS.get(row.kind) or part

    def _hint(self, row: Node, leaf: Node, step: Step | None, items: Sequence[Node], state: State) -> str:
        if state == "stopped" and leaf.open and not leaf.asks:
            return "stopped, reply not kept"
        if state == "running" and self.elsewhere and not leaf.below:
            return "written in another process"
        if row.kind == "item" and row.above is not None:
            values = self.tree.values.get(row.above.path, ())
            if 0 <= row.number < len(values):
                message = leaf.message or row.message if state == "failed" else ""
                return " · ".join(filter(None, [cut(item_text(values[row.number]), LONGEST // 2), message]))
        if len(items) > 1:
            failed = sum(self.state(item) == "failed" for item in items)
            rounds = items[0].part.startswith("repeat")
            return f"{len(items):,} {'rounds' if rounds else 'items'}" + (f" · {failed:,} failed" if failed else "")
        message = leaf.message or row.message
        if state == "failed" and message:
            return message
        if leaf.kind == "ask" or leaf.part == "ask" or leaf.part.startswith("ask["):
            return (
                f"answered by {leaf.by}" if leaf.by else "waits for an answer" if state == "waits" else "asks a person"
            )
        if leaf.by:
            return f"reused from {leaf.by}"
        if step is not None and isinstance(step.work, Call):
            return step.work.document if step.capture else ""
        if step is not None and isinstance(step.work, Invoke | UseTool):
            return step.work.tool if step_name(step) != step.work.tool else ""
        if step is not None and isinstance(step.work, Block):
            return ""
        if leaf is not row and leaf.kind == "tool" and row.kind != "tool":
            return leaf.tool
        return "model" if leaf.kind == "call" else ""


def group_of(row: Node, status: str, items: list[Node]) -> Node:
    """Return the row of the items of a fan in one state."""
    starts = [item.start for item in items if item.start is not None]
    name = "done" if status == "completed" else status
    group = Node(f"{row.path}#{name}", "group", row, below=items, start=min(starts, default=None), status=status)
    group.end = max(item.end for item in items)
    for number in ("effects", "failed", "cost", "unpriced", "tokens_in", "tokens_out", "open", "asks"):
        setattr(group, number, sum(getattr(item, number) for item in items))
    return group


def _line(text: str) -> str:
    return cut(text.partition("\n")[0], LONGEST)


def item_text(value: Value) -> str:
    """Return an item as people know it: a text itself, or the values of an object."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, Mapping):
        return " · ".join(item_text(part) for part in value.values() if part not in (None, "", [], {}))
    return encode(value)
