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
from quire.plan.templates import key_references, template
from quire.plan.thread import Thread
from quire.runs.step_reads import ERRORS, PIPE, reads_at, writer_inside
from quire.source import Source
from quire.values import Value

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord, Event
    from quire.engine.step_progress import StepView
    from quire.runs.view import RunView
    from quire.values import Value
    from quire.workspace.settings import Settings


class ValueSource(Struct, frozen=True):
    """A value that a step reads."""

    name: str
    value: Value
    source: str
    """The writer of the value, in words."""
    path: str = ""
    """The step that wrote it, if a step did."""
    many: bool = False
    """True inside of a loop or a fan, where each round or item has a value of its own; then `value` is None."""


class ProvenanceProgress(Progress):
    """Progress that also records all written values, and how many there were when each step began."""

    writes: list[ValueSource] = field(default_factory=list)
    begun: dict[str, tuple[list[ValueSource], int]] = field(default_factory=dict)
    """By the path of a step: the list of writes when it began, and how many there were. A failed attempt is followed by
    another list."""
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
                self.begun[event.path] = self.writes, len(self.writes)
            case "step_undone" if event.path in self.begun:
                # A failed attempt leaves no stores behind; the steps inside it keep the list that they began with.
                writes, count = self.begun[event.path]
                self.writes = writes[:count]
            case "named" if step.status == "running":
                name = str(event.live["name"])
                self.writes.append(ValueSource(name, event.live["value"], f"step {step.label}", event.path))
            case "step_completed" | "step_skipped":
                if event.type == "step_completed":
                    self._ends(step, event)
                for name, value in self.stops.get(event.path, {}).items():
                    self.writes.append(ValueSource(name, value, f"set at the end of step {step.label}", event.path))

    def before(self, path: str) -> list[ValueSource]:
        """Return what was written when the step at a path began; everything if it has not begun."""
        writes, count = self.begun.get(path, (self.writes, len(self.writes)))
        return writes[:count]

    def _ends(self, step: StepView, event: Event) -> None:
        written: dict[str, Value] = {PIPE: event.live.get("output")}
        if step.store and not event.data.get("stops"):
            written[step.store] = written[PIPE]
            written[f"{ERRORS}.{step.store}"] = event.data.get("survived")
        self.writes += [ValueSource(name, value, f"step {step.label}", event.path) for name, value in written.items()]


def origins(view: RunView, path: str) -> list[ValueSource]:
    """Return the values that the step at a path of the plan reads, with their origins. Empty unless the progress of the
    view is `ProvenanceProgress`."""
    progress, plan = view.replay.progress, view.document.runnable()
    if not isinstance(progress, ProvenanceProgress):
        return []
    if plan.thread:
        return _of_turn(view, path)
    step = next((one for at, one in plan.steps() if at == path), None)
    if step is None:
        return []
    if plan.format == "pipeline":
        told = progress.step_of(path)
        around = told.path if told else path
        known = progress.before(around)
        return [_in_pipeline(view, plan, name, path, around, known) for name in reads_at(plan, path)]
    known = progress.before(path)
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


def _in_pipeline(view: RunView, plan: Plan, name: str, path: str, around: str, known: list[ValueSource]) -> ValueSource:
    """Look a name up for the step at a path. `around` is the step that emits events, at the path or above it."""
    inside = writer_inside(plan, name, path, around)
    if inside is not None:
        at, writer = inside
        return ValueSource(name, None, f"step {writer.label}, in each round or item", at, many=True)
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
            yield from key_references(arguments)
            for part in arguments.values():
                yield from _in_arguments(part)


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
