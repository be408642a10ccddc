"""Explain a step: the values it read and their origins (an input, an earlier step, or a person who set them at a stop),
its requests, their results, and the cost.

None of this is stored. A replay writes all values again in the same order, and a listener records them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self, assert_never

from msgspec import Struct, field

from quire.engine.progress import Progress, place_in_plan
from quire.engine.records import total_cost
from quire.engine.requests import BREAK, Boundary, Effect, ModelRequest
from quire.errors import CannotStart, QuireError, RunState
from quire.plan.descriptions import step_name
from quire.plan.nodes import Arguments, Plan, Reference, Step, Template, Think, UseTool, ValueSlot
from quire.plan.templates import key_references, template
from quire.plan.thread import Thread
from quire.plan.vocabulary import JOINT, last_label, typed_way
from quire.runs.step_reads import ERRORS, PIPE, reads_at, writer_inside
from quire.source import Source
from quire.values import Value
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.engine.progress import StepView
    from quire.engine.records import EffectRecord, Event
    from quire.runs.outcome import RunView
    from quire.runs.runtime import Runtime
    from quire.values import Value
    from quire.workspace.settings import Settings


class Performed(Struct, frozen=True):
    """One effect of a step: the request exactly as it was made, and its record; None if there is none yet."""

    request: Effect
    record: EffectRecord | None

    @property
    def path(self) -> str:
        return self.request.path


class Why(Struct, frozen=True):
    """The explanation of a step."""

    run: str
    path: str
    label: str
    way: str
    """The way to a step of a called document; otherwise the label."""
    title: str
    status: str
    message: str
    values: Sequence[ValueSource]
    told: Sequence[str]
    """The labels of the earlier steps whose results were sent to the model with the prompt."""
    performed: Sequence[Performed]

    @property
    def elapsed(self) -> float:
        return sum(record.elapsed for record in self._records)

    @property
    def input_tokens(self) -> int:
        return sum(record.usage.input_tokens for record in self._records if record.usage)

    @property
    def output_tokens(self) -> int:
        return sum(record.usage.output_tokens for record in self._records if record.usage)

    @property
    def cost(self) -> float | None:
        """The cost of all calls; None if the price of one is not known."""
        return total_cost(self._records)

    @property
    def _records(self) -> list[EffectRecord]:
        return [effect.record for effect in self.performed if effect.record]


async def traced(runtime: Runtime, run: str) -> RunView:
    """Return the view of a run whose progress knows the origin of each value."""
    row = await runtime.row(run)
    effects = await runtime.store.effects(run)
    questions = await runtime.store.questions(run)
    return await runtime.view_of(row, effects, questions, lambda plan: ProvenanceProgress.of(plan).knowing(effects))


def why(view: RunView, named: str) -> Why:
    """Explain a step by its label, or anything by its path: an item of a list, one effect. Raises `CannotStart`, and
    `RunState` if the run has not reached it."""
    if JOINT in (way := typed_way(named)) and (explained := _in_callee(view, way)):
        return explained
    return why_at(view, _find(view, named.strip()), named)


def why_at(view: RunView, path: str, named: str = "") -> Why:
    """Explain the step, the item or the effect at a path, and nothing else that has the path as its name. Raises
    `RunState` if the run has not reached it."""
    step = view.replay.progress.steps.get(path)
    planned = path if step else place_in_plan(path)
    around = step or view.replay.progress.step_of(path)
    performed = _performed(view, path)
    inner = None
    if step is None and view.row.format == "pipeline":  # a step in a loop or in parallel items
        inner = dict(view.document.runnable().steps()).get(planned)
    # No event reports that a step there was reached if it asks for nothing.
    reached = inner is not None and planned == path and around is not None and around.status == "completed"
    if step is None and not performed and not reached:
        raise RunState(f"run {view.row.id} has not come to {named or path}")
    way = _way(performed, step, around)
    return Why(
        view.row.id,
        path,
        inner.label if inner else around.label if around else "",
        inner.label if inner and JOINT not in way else way,
        step_name(inner) if inner else around.title if around else "",
        (step or around).status if around else "",
        (f"survived: {step.survived}" if step.survived else step.message) if step else "",
        origins(view, planned),
        _told(view, performed),
        performed,
    )


def _way(performed: Sequence[Performed], step: StepView | None, around: StepView | None) -> str:
    """Return the way of the effects below, if all of them belong to one step of a called document; otherwise that of
    the step."""
    ways = {effect.request.label for effect in performed}
    if step is None and len(ways) == 1 and JOINT in (only := ways.pop()):
        return only
    return around.way if around else ""


def _in_callee(view: RunView, way: str) -> Why | None:
    """Explain a step of a called document by its requests in all items of a list. None if it has made none."""
    records = {record.path: record for record in view.effects}
    performed = [
        Performed(request, records.get(path))
        for path, request in view.replay.asked.items()
        if request.label == way and (path in records or not isinstance(request, Boundary))
    ]
    around = view.replay.progress.step_of(performed[0].path) if performed else None
    if not performed or (around is not None and around.way == way):
        return None
    parts = [effect.path.split("/") for effect in performed]
    shared = [same[0] for same in zip(*parts, strict=False) if len(set(same)) == 1]
    path = "/".join(shared[:-1] if len(shared) == len(min(parts, key=len)) else shared)
    status, message = _status(performed)
    return Why(view.row.id, path, last_label(way), way, "", status, message, (), _told(view, performed), performed)


def _status(performed: Sequence[Performed]) -> tuple[str, str]:
    failures = [effect.record.failure.message for effect in performed if effect.record and effect.record.failure]
    if any(effect.record is None for effect in performed):
        return "running", ""
    return ("failed", failures[-1]) if failures else ("completed", "")


def _performed(view: RunView, path: str) -> list[Performed]:
    records = {record.path: record for record in view.effects}
    requests = view.replay.asked
    below = [at for at in requests if f"{at}/".startswith(f"{path}/")]
    if not below:
        # A step inside a loop occurs once in the plan, and once for each item in the journal.
        below = [at for at in requests if f"{place_in_plan(at)}/".startswith(f"{path}/")]
    return [
        Performed(requests[at], records.get(at))
        for at in below
        if at in records or not isinstance(requests[at], Boundary)
    ]


def _told(view: RunView, performed: Sequence[Performed]) -> list[str]:
    """Return the labels of the earlier steps whose results were sent. They are searched in the sent text, which may
    have been cut."""
    first = performed[0].request if performed else None
    if view.row.format != "playbook" or not isinstance(first, ModelRequest):
        return []
    system = first.system
    return [
        step.label
        for step in view.replay.progress.steps.values()
        if f"[Step {step.label}: {step.title}" in system or f"[Step {step.label}]" in system
    ]


def _find(view: RunView, named: str) -> str:
    steps = view.replay.progress.steps
    way = typed_way(named).lower()
    labelled = [path for path, step in steps.items() if way in (step.way.lower(), step.label.lower())]
    if not labelled and named.isdecimal():
        labelled = [path for path, step in steps.items() if step.label == f"turn {named}"]
    whole = view.document.runnable()
    # The one step of a thread has no name for users.
    plan = [] if whole.thread else [(path, step.label) for path, step in whole.steps()]
    labelled = labelled or [path for path, label in plan if label.lower() == named.lower() and path not in steps]
    if len(labelled) > 1 and named not in labelled:
        raise CannotStart(f"several steps are called {named}: say which by its path ({', '.join(labelled)})")
    if labelled:
        return labelled[0]
    requests = view.replay.asked
    if named in steps or any(f"{at}/".startswith(f"{named}/") for at in requests):
        return named
    if any(path == named for path, _ in plan):
        return named
    labels = list(dict.fromkeys([*(step.label for step in steps.values()), *(label for _, label in plan)]))
    ways = dict.fromkeys(request.label for request in requests.values() if JOINT in request.label)
    close = nearest(typed_way(named), [*labels, *ways, *requests])
    hint = did_you_mean(close, f"there are {', '.join([*labels, *ways][:20])}")
    raise CannotStart(f"run {view.row.id} has no step {named}: {hint}")


class ValueSource(Struct, frozen=True):
    """A value that a step reads."""

    name: str
    value: Value
    source: str
    """The writer of the value, in words."""
    path: str = ""
    """The step that wrote it, if a step did."""
    many: bool = False
    """True in a loop or in parallel items, where each round or item has its own value; then `value` is None."""


class ProvenanceProgress(Progress):
    """Progress that also records all written values, and how many there were when each step began."""

    writes: list[ValueSource] = field(default_factory=list)
    begun: dict[str, tuple[list[ValueSource], int]] = field(default_factory=dict)
    """By the path of a step: the list of writes when it began, and how many there were. A failed attempt is followed by
    another list."""
    stops: dict[str, Mapping[str, Value]] = field(default_factory=dict)

    def knowing(self, effects: Iterable[EffectRecord]) -> Self:
        """Note the values that people set at stops."""
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
        """Return the values written before the step at a path began; everything if it has not begun."""
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
    step = dict(plan.steps()).get(path)
    if step is None:
        return []
    if plan.format == "pipeline":
        view_around = progress.step_of(path)
        around = view_around.path if view_around else path
        sources = progress.before(around)
        return [_in_pipeline(view, plan, name, path, around, sources) for name in reads_at(plan, path)]
    sources = progress.before(path)
    references = {reference.name: reference for reference in step_references(step)}
    return [_in_playbook(view, plan, reference, sources) for reference in references.values()]


def _in_playbook(view: RunView, plan: Plan, reference: Reference, sources: list[ValueSource]) -> ValueSource:
    """Look a name up as the scope of a playbook does: inputs, then kept results, then the default in the document."""
    declared = next((own for own in plan.inputs if own.name == reference.name), None)
    last = next((source for source in reversed(sources) if source.name == reference.name), None)
    if last is not None and (declared is None or last.source.startswith("set ")):
        return last
    if reference.name in view.pins.inputs:
        value = view.pins.inputs[reference.name]
        is_default = declared is not None and declared.default == value
        return ValueSource(reference.name, value, "input, as it is by default" if is_default else "input")
    if reference.default is not None:
        return ValueSource(reference.name, reference.default, "written at the place itself")
    return ValueSource(reference.name, None, "no step: the text stays as it is written")


def _in_pipeline(
    view: RunView, plan: Plan, name: str, path: str, around: str, sources: list[ValueSource]
) -> ValueSource:
    """Look a name up for the step at a path. `around` is the step that emits events, at the path or above it."""
    inside = writer_inside(plan, name, path, around)
    if inside is not None:
        at, writer = inside
        return ValueSource(name, None, f"step {writer.label}, in each round or item", at, many=True)
    last = next((source for source in reversed(sources) if source.name == name), None)
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


def step_references(step: Step) -> Iterator[Reference]:
    """Yield the references of a step of a playbook: in its question, its prompt, its arguments and its conditions."""
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
    from quire.library.items import Spaces
    from quire.trust.sign_file import typed_path

    granted = view.thread.composed.capabilities[0]
    text = view.bundle.directives.get(granted.origin_id, "")
    line = Source.of(text, "").position(granted.span.start).line
    try:
        item = Spaces(settings).find("directive", granted.origin_id)
    except QuireError:
        item = None
    return f"{typed_path(item.path) if item else granted.origin_id}:{line}"
