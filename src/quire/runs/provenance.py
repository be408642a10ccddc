"""Trace where the values that a step reads come from: an input, an earlier step, or a person who set them at a stop.
And where the permissions of a directive are written, for a refusal.

None of this is stored. A replay writes all values again in the same order, and a listener records them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, assert_never

from msgspec import Struct, field

from quire.engine.progress import Progress
from quire.engine.requests import BREAK
from quire.errors import QuireError
from quire.plan.nodes import (
    Arguments,
    Plan,
    Reference,
    Step,
    Template,
    Think,
    UseTool,
    ValueSlot,
)
from quire.plan.pipeline_work import (
    Agent,
    Block,
    Call,
    Fail,
    Fold,
    ForEach,
    Formula,
    Invoke,
    Literal,
    Parallel,
    Repeat,
    Select,
    Stop,
    Transform,
)
from quire.plan.templates import template
from quire.plan.thread import Thread
from quire.source import Source
from quire.values import Value

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord, Event
    from quire.runs.view import RunView
    from quire.values import Value
    from quire.workspace.settings import Settings

PIPE = "pipe"
_LOOPS = frozenset({"item", "acc", "errors"})


class ValueSource(Struct, frozen=True):
    """A value that a step reads."""

    name: str
    value: Value
    source: str
    """The writer of the value, in words."""
    path: str = ""
    """The step that wrote it, if a step did."""


class ProvenanceProgress(Progress):
    """Progress that also records all written values, and how many there were when each step began."""

    writes: list[ValueSource] = field(default_factory=list)
    begun: dict[str, int] = field(default_factory=dict)
    stops: dict[str, Mapping[str, Value]] = field(default_factory=dict)

    def listening_to(self, effects: Iterable[EffectRecord]) -> ProvenanceProgress:
        for record in effects:
            if record.kind == "break" and isinstance(record.value, Mapping):
                self.stops[record.path.removesuffix(BREAK)] = record.value
        return self

    def apply(self, event: Event) -> None:
        # Explicit, since a slotted dataclass is a class of its own and `super()` does not find it.
        Progress.apply(self, event)
        step = self.steps.get(event.path)
        if step is None:
            return
        match event.type:
            case "step_started":
                self.begun.setdefault(event.path, len(self.writes))
            case "named" if step.status == "running":
                name = str(event.live["name"])
                self.writes.append(ValueSource(name, event.live["value"], f"step {step.label}", event.path))
            case "step_completed" | "step_skipped":
                if event.type == "step_completed":
                    written = event.live.get("output")
                    names = [PIPE, *([step.store] if step.store else [])]
                    self.writes += [ValueSource(name, written, f"step {step.label}", event.path) for name in names]
                for name, value in self.stops.get(event.path, {}).items():
                    self.writes.append(ValueSource(name, value, f"set at the end of step {step.label}", event.path))


def origins(view: RunView, path: str) -> list[ValueSource]:
    """Return the values that the step at a path of the plan reads, with their origins. Empty unless the progress of the
    view is `ProvenanceProgress`."""
    progress, plan = view.replay.progress, view.document.runnable()
    if not isinstance(progress, ProvenanceProgress):
        return []
    if plan.format == "directive":
        return _of_turn(view, path)
    step = next((one for at, one in plan.steps() if at == path), None)
    if step is None:
        return []
    top = path.partition("/")[0] if plan.format == "pipeline" else path
    known = progress.writes[: progress.begun.get(top, len(progress.writes))]
    if plan.format == "pipeline":
        return [_in_pipeline(view, name, known) for name in dict.fromkeys(_reads(step, frozenset()))]
    references = {one.name: one for one in _references(step)}
    return [_in_playbook(view, plan, one, known) for one in references.values()]


def _in_playbook(view: RunView, plan: Plan, wanted: Reference, known: list[ValueSource]) -> ValueSource:
    """Look a name up as the scope of a playbook does: inputs, then kept results, then the default in the document."""
    declared = next((one for one in plan.inputs if one.name == wanted.name), None)
    last = next((one for one in reversed(known) if one.name == wanted.name), None)
    if last is not None and (declared is None or last.source.startswith("set ")):
        return last
    if wanted.name in view.pins.inputs:
        value = view.pins.inputs[wanted.name]
        is_default = declared is not None and declared.default == value
        return ValueSource(wanted.name, value, "input, as it is by default" if is_default else "input")
    if wanted.default is not None:
        return ValueSource(wanted.name, wanted.default, "written at the place itself")
    return ValueSource(wanted.name, None, "no step: the text stays as it is written")


def _in_pipeline(view: RunView, name: str, known: list[ValueSource]) -> ValueSource:
    last = next((one for one in reversed(known) if one.name == name), None)
    if last is not None:
        return last
    if name in view.pins.inputs:
        return ValueSource(name, view.pins.inputs[name], "input")
    return ValueSource(name, None, "nothing comes in" if name == PIPE else "no step")


def _of_turn(view: RunView, path: str) -> list[ValueSource]:
    """Return the inputs of the thread for its first turn; for later turns, the results of the calls that the turn
    before made."""
    head, _, number = path.rpartition("[")
    number = number.removesuffix("]")
    if number == "1" and view.thread is not None and path.startswith(f"{view.thread.path}/turn"):
        return [ValueSource(name, value, "input") for name, value in view.thread.composed.inputs.items()]
    before = view.replay.progress.steps.get(f"{head}[{int(number) - 1}]") if number.isdecimal() else None
    if before is None:
        return []
    return [
        ValueSource(call.name or call.tool, call.result, f"{before.label}, tool {at}", before.path)
        for at, call in sorted(before.calls.items())
        if call.result is not None
    ]


def _references(step: Step) -> Iterator[Reference]:
    if step.ask:
        for text in (step.ask.prompt, *step.ask.options, *([step.ask.default] if step.ask.default else [])):
            yield from text.references()
    match step.plain_work:
        case Think(prompt=prompt, preamble=preamble):
            if preamble is not None and preamble.scheme == "variable":
                yield Reference(preamble.where, None, "")
            elif preamble is not None and preamble.scheme == "file":
                yield from template(preamble.where).references()
            yield from prompt.references()
        case UseTool(arguments=arguments):
            yield from _in_arguments(arguments)
        case Thread() | None:
            pass
        case work:
            assert_never(work)
    for case in step.match.cases if step.match else ():
        if case.test:
            yield Reference(case.test.variable, None, "")


def _in_arguments(arguments: Arguments) -> Iterator[Reference]:
    match arguments:
        case Template():
            yield from arguments.references()
        case ValueSlot(reference=reference):
            yield reference
        case tuple():
            for part in arguments:
                yield from _in_arguments(part)
        case dict():
            for part in arguments.values():
                yield from _in_arguments(part)


def _reads(step: Step, bound: frozenset[str]) -> Iterator[str]:
    """Yield the stores that a step of a pipeline reads, including the steps inside it; `pipe` stands for the incoming
    value."""
    inside: list[tuple[Step, frozenset[str]]] = []
    if step.guard is not None:
        for around in (step.guard.when, step.guard.default):
            yield from _formula(around, bound) if around is not None else ()
    match step.work:
        case Transform(value=value):
            yield from _formula(value, bound)
        case Invoke(arguments=arguments):
            for _, one in arguments:
                yield from _formula(one, bound)
        case Agent(prompt=prompt):
            for reference in prompt.references():
                if reference.default is None:
                    yield from _store(tuple(reference.name.split(".")), bound)
        case Call(passes=passes):
            for _, formula in passes:
                yield from _formula(formula, bound)
        case Select(on=on, default=default):
            yield from _formula(on, bound)
            if isinstance(default, Formula):
                yield from _formula(default, bound)
            inside = [(part, bound) for _, part in step.work.parts()]
            for call in step.calls():
                for _, formula in call.passes:
                    yield from _formula(formula, bound)
        case Fold(source=source, init=init, do=do):
            yield from _formula(init, bound)
            yield from _formula(source, bound)
            inside = [(do, bound | _LOOPS | {PIPE})]
        case ForEach(source=source, do=do, collect=collect):
            yield from _formula(source, bound)
            inside = [(do, bound | _LOOPS), (collect, bound | _LOOPS | {PIPE})]
        case Parallel(branches=branches, collect=collect):
            names = frozenset(name for name, _ in branches)
            inside = [*((branch, bound) for _, branch in branches), (collect, bound | names | _LOOPS | {PIPE})]
        case Block():
            inside = [(part, bound) for _, part in step.work.parts()]
        case Repeat(init=init, do=do, until=until):
            if init is not None:
                yield from _formula(init, bound)
            names = bound | _LOOPS | {"round"}
            yield from _formula(until, names)
            inside = [(do, names)]
        case Fail(message=message):
            yield from _formula(message, bound)
        case Stop(value=result):
            yield from _formula(result, bound)
        case None | Think() | UseTool() | Thread():
            pass  # a pipeline has none of these
        case _:
            assert_never(step.work)
    for part, seen in inside:
        yield from _reads(part, seen)


def _formula(what: Formula | Literal | None, bound: frozenset[str]) -> Iterator[str]:
    if what is None:
        yield from _store((PIPE,), bound)
    elif isinstance(what, Formula):
        for read in what.compiled.reads():
            yield from _store(read.path, bound)


def _store(path: tuple[str, ...], bound: frozenset[str]) -> Iterator[str]:
    if path[0] == "ctx":
        yield from path[1:2]
    elif path[0] not in bound and path[0] not in ("item", "acc"):
        yield path[0]


def permissions_of(view: RunView, settings: Settings) -> str:
    """Return `FILE:LINE` of the first permission of the thread of a run, with the file as a person would type it, or
    its id if the file is gone; empty for other formats."""
    if view.thread is None or view.bundle is None or not view.thread.composed.capabilities:
        return ""
    from quire.library.spaces import Spaces
    from quire.trust.sign_file import typed_path

    granted = view.thread.composed.capabilities[0]
    text = view.bundle.directives.get(granted.origin_id, "")
    line = Source.of(text, "").position(granted.span.start).line
    try:
        item = Spaces(settings).find("directive", granted.origin_id)
    except QuireError:
        item = None
    return f"{typed_path(item.path) if item else granted.origin_id}:{line}"
