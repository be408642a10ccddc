"""The items of a fan-out, one by one: their states, their texts and their failures.

A replay reports the end of every item; `Recorded` keeps what `Progress` only counts. The values of parallel items are
not stored: they are computed from the variables of the run at that step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct, field

from quire.engine.premises import PureWork
from quire.engine.records import add_costs
from quire.engine.requests import Boundary, ToolRequest
from quire.errors import CannotStart
from quire.expr import EvalError
from quire.plan.pipeline_work import Fold, ForEach, Formula, Parallel, Repeat
from quire.plan.pipeline_work import Literal as Written
from quire.runs.step_reads import PIPE
from quire.runs.why import ProvenanceProgress

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord, Event
    from quire.runs.outcome import RunView
    from quire.runs.run_tree import RunTree
    from quire.values import Value

_ENDS = ("completed", "failed", "skipped")
State = Literal["done", "failed", "waiting", "running", "pending"]
Work: TypeAlias = ForEach | Fold | Parallel | Repeat


class Recorded(ProvenanceProgress):
    """Progress that also keeps the end of each parallel item, by the path of its step."""

    ended: dict[str, dict[str, tuple[State, str]]] = field(default_factory=dict)
    """For each item, by its number or its name: its state, and the message of its failure."""

    def apply(self, event: Event) -> None:
        ProvenanceProgress.apply(self, event)
        if event.type == "fan_started":
            self.ended[event.path] = {}
        elif event.type == "fan_item":
            which = str(event.data.get("name", event.data.get("index", "")))
            fan = self.ended.get(event.path)
            fan = self.ended.get(event.path.rpartition("/")[0]) if fan is None else fan
            if fan is not None:
                state: State = "failed" if event.data.get("state") == "failed" else "done"
                fan[which] = state, str(event.data.get("message", ""))


class Item(Struct, gc=False):
    """One item of a list, branch of a `parallel`, or round of a loop."""

    index: int
    name: str
    """The name of a branch, or the number of a round in words; empty for an item of a list."""
    path: str
    state: State = "pending"
    message: str = ""
    value: Value = None
    """The item itself, if it could be computed."""
    elapsed: float = 0.0
    cost: float | None = 0.0
    effects: int = 0


def explain(tree: RunTree, view: RunView) -> None:
    """Add to the tree of a run the facts that only a replay has: states of steps that only compute, the ends of items,
    the names of tools, and the values of items."""
    progress = view.replay.progress
    for path, request in view.replay.asked.items():
        match request:
            case Boundary():
                tree.computed[path.rpartition("/")[0]] = "completed"
            case ToolRequest() if path in tree.nodes:
                tree.nodes[path].tool = request.tool
    tree.computed |= {path: step.status for path, step in progress.steps.items() if step.status in _ENDS}
    if isinstance(progress, Recorded):
        for path, ends in progress.ended.items():
            for key, (state, message) in ends.items():
                item = next((at for at in _item_paths(path, key) if at in tree.nodes), None)
                if item is not None:
                    tree.end_item(item, state, message)
    add_values(tree, view)


def _item_paths(path: str, key: str) -> Iterator[str]:
    yield from (f"{path}/{word}[{key}]" for word in ("for_each", "fold", "parallel"))
    if key.isdecimal():  # rounds are counted from 1 in paths
        yield f"{path}/repeat[{int(key) + 1}]"


def add_values(tree: RunTree, view: RunView) -> None:
    """Add the values that the fans of the document go through, as far as they can be computed."""
    for path, step in view.document.runnable().steps():
        if isinstance(step.work, ForEach | Fold) and path not in tree.values and path in tree.nodes:
            values = _values(view, step.work, path)
            tree.values.update({path: values} if values else {})


def fan_items(view: RunView, path: str) -> list[Item]:
    """Return the parallel items of a step; of a loop, the rounds that it has begun. Raises `CannotStart` if the step
    does not go through items."""
    step = dict(view.document.runnable().steps()).get(path)
    if step is None or not isinstance(step.work, ForEach | Fold | Parallel | Repeat):
        raise CannotStart(f"step {path} of run {view.row.id} does not go through items")
    items = _items(view, step.work, path)
    role = f"{path}/{next(iter(step.work.binds))}["
    by_key = {item.path.removeprefix(role).removesuffix("]"): item for item in items}
    _add_effects(by_key, view.effects, role)
    progress = view.replay.progress
    if isinstance(progress, Recorded):
        for number, (state, message) in progress.ended.get(path, {}).items():
            # Rounds are counted from 1 in paths, like everything that people read in them.
            key = str(int(number) + 1) if isinstance(step.work, Repeat) else number
            if key in by_key:
                by_key[key].state, by_key[key].message = state, message
    for question in view.questions:
        key = _key(question.path, role)
        if key in by_key:
            by_key[key].state = "waiting"
    return items


def _items(view: RunView, work: Work, path: str) -> list[Item]:
    if isinstance(work, Parallel):
        return [Item(at, name, f"{path}/parallel[{name}]") for at, (name, _) in enumerate(work.branches)]
    if isinstance(work, Repeat):
        return _rounds(view, work, path)
    role = next(iter(work.binds))
    fan = view.replay.progress.steps[path].fan if path in view.replay.progress.steps else None
    values = _values(view, work, path)
    total = fan.total if fan else len(values)
    return [Item(at, "", f"{path}/{role}[{at}]", value=values[at] if at < len(values) else None) for at in range(total)]


def _rounds(view: RunView, work: Repeat, path: str) -> list[Item]:
    """Return the rounds that have begun. How many will follow is not known: `max` is only the most."""
    step = view.replay.progress.steps.get(path)
    fan = step.fan if step else None
    if step is None or fan is None:
        return []
    goes_on = step.status != "completed" and fan.done < work.max
    items = [Item(at, f"round {at + 1}", f"{path}/repeat[{at + 1}]") for at in range(fan.done + goes_on)]
    if goes_on:
        items[-1].state = "failed" if step.status == "failed" else "running"
        items[-1].message = step.message
    return items


def _values(view: RunView, work: ForEach | Fold, path: str) -> Sequence[Value]:
    """Return the values that the step goes through; nothing if they cannot be computed, as inside of another item."""
    progress = view.replay.progress
    if not isinstance(progress, ProvenanceProgress) or path not in progress.begun:
        return ()
    stores, pipe = _before(view, progress, path)
    values: Value = pipe
    if isinstance(work.source, Written):
        values = work.source.value
    elif isinstance(work.source, Formula):
        try:
            values = work.source.compiled.evaluate({"ctx": stores, "pipe": pipe}, stores, PureWork())
        except EvalError:
            return ()
    return values if isinstance(values, list | tuple) else ()


def _before(view: RunView, progress: ProvenanceProgress, path: str) -> tuple[Mapping[str, Value], Value]:
    """Return the stores and the incoming value of a top-level step when it began."""
    stores, pipe = dict(view.pins.inputs), None
    for write in progress.before(path):
        if write.name == PIPE:
            pipe = write.value
        else:
            stores[write.name] = write.value
    return stores, pipe


def _add_effects(items: Mapping[str, Item], effects: Iterable[EffectRecord], role: str) -> None:
    for record in effects:
        item = items.get(_key(record.path, role))
        if item is None:
            continue
        item.state = "running"
        item.effects += 1
        item.elapsed += record.elapsed
        if record.usage:
            item.cost = add_costs(item.cost, record.usage.cost)


def _key(path: str, role: str) -> str:
    """Return the number or the name of the item that a path belongs to; empty if it belongs to none."""
    if not path.startswith(role):
        return ""
    rest = path[len(role) :]
    # A branch may have a bracket in its name, so the end of the segment is looked for.
    end = rest.find("]/")
    return rest[:end] if end >= 0 else rest.removesuffix("]")
