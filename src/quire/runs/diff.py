"""Compare two runs step by step: steps that are the same, that differ, and that only one of them has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quire.engine.requests import Boundary, HumanRequest, Load, Meter, ModelRequest, ToolRequest
from quire.runs.why import Performed, Why, origins, why
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.runs.outcome import RunView

State = Literal["same", "changed", "only in A", "only in B"]


class Change(Struct, frozen=True):
    """One difference between two runs."""

    what: str
    """One word: input, prompt, reply, arguments, result, question, answer, status, output, cost."""
    where: str
    """The path of an effect, or the name of a value."""
    a: Value
    b: Value


class StepDiff(Struct, frozen=True):
    path: str
    label: str
    title: str
    state: State
    changes: Sequence[Change] = ()
    spent: tuple[Meter | None, Meter | None] = (None, None)
    """Time, tokens and cost of the step in each run; None where it has not begun."""


class RunDiff(Struct, frozen=True):
    """All differences between two runs."""

    about: Sequence[Change]
    """Differences of the runs as a whole: documents, models, inputs, statuses."""
    steps: Sequence[StepDiff]

    @property
    def same(self) -> bool:
        return not self.about and all(step.state == "same" for step in self.steps)


def diff(a: RunView, b: RunView) -> RunDiff:
    """Compare two views made by `quire.runs.why.traced`. Steps are matched by their path in the document."""
    return RunDiff(list(_about(a, b)), [_step(a, b, path) for path in _paths(a, b)])


def _about(a: RunView, b: RunView) -> Iterator[Change]:
    for what, of_a, of_b in (
        ("document", a.pins.document, b.pins.document),
        ("model", a.pins.model, b.pins.model),
        ("status", str(a.row.status), str(b.row.status)),
    ):
        if of_a != of_b:
            yield Change(what, "", of_a, of_b)
    for name in dict.fromkeys((*a.pins.inputs, *b.pins.inputs)):
        if a.pins.inputs.get(name) != b.pins.inputs.get(name):
            yield Change("input", name, a.pins.inputs.get(name), b.pins.inputs.get(name))


def _paths(a: RunView, b: RunView) -> list[str]:
    """Return the paths of all steps in the order of the first run. A step that only the second run has follows the step
    before it."""
    ordered = list(a.replay.progress.steps)
    at = 0
    for path in b.replay.progress.steps:
        if path in ordered:
            at = ordered.index(path) + 1
        else:
            ordered.insert(at, path)
            at += 1
    return ordered


def _begun(view: RunView, path: str) -> Why | None:
    step = view.replay.progress.steps.get(path)
    if step is None or step.status in ("pending", "skipped"):
        return None
    return why(view, path)


def _step(a: RunView, b: RunView, path: str) -> StepDiff:
    view = a.replay.progress.steps.get(path) or b.replay.progress.steps[path]
    of_a, of_b = _begun(a, path), _begun(b, path)
    if of_a is None or of_b is None:
        state: State = "same" if of_a is of_b else "only in B" if of_a is None else "only in A"
        return StepDiff(path, view.label, view.title, state, (), (_spent_by(of_a), _spent_by(of_b)))
    everything = [*_values(a, b, path), *_effects(of_a, of_b), *_outcome(a, b, path)]
    changes = [change for change in everything if not _is_inside(a, change.where, path)]
    if (of_a.cost, of_a.input_tokens, of_a.output_tokens) != (of_b.cost, of_b.input_tokens, of_b.output_tokens):
        changes.append(Change("cost", path, _spent(of_a), _spent(of_b)))
    spent = (_spent_by(of_a), _spent_by(of_b))
    return StepDiff(path, view.label, view.title, "changed" if everything or changes else "same", changes, spent)


def _is_inside(view: RunView, where: str, path: str) -> bool:
    """Tell whether a change is that of an effect of a step inside of a block, which has a line of its own."""
    if view.row.format != "pipeline" or not where.startswith(f"{path}/"):
        return False
    inner = view.replay.progress.step_of(where)
    return inner is not None and inner.path != path and not inner.thread


def _values(a: RunView, b: RunView, path: str) -> Iterator[Change]:
    read_a = {origin.name: origin.value for origin in origins(a, path)}
    read_b = {origin.name: origin.value for origin in origins(b, path)}
    for name in dict.fromkeys((*read_a, *read_b)):
        if read_a.get(name) != read_b.get(name):
            yield Change("input", name, read_a.get(name), read_b.get(name))


def _effects(a: Why, b: Why) -> Iterator[Change]:
    of_a, of_b = ({effect.path: effect for effect in side.performed} for side in (a, b))
    for path in dict.fromkeys((*of_a, *of_b)):
        before, after = of_a.get(path), of_b.get(path)
        if before is not None and after is not None:
            request, result = _words(before)
            if before.request.content() != after.request.content():
                yield Change(request, path, asked_of(before), asked_of(after))
            if _answer(before) != _answer(after):
                yield Change(result, path, answered_by(before), answered_by(after))
        elif before is not None:
            yield Change(_words(before)[1], path, answered_by(before), None)
        elif after is not None:
            yield Change(_words(after)[1], path, None, answered_by(after))


def _outcome(a: RunView, b: RunView, path: str) -> Iterator[Change]:
    view, other = a.replay.progress.steps[path], b.replay.progress.steps[path]
    if view.status != other.status:
        yield Change("status", path, view.status, other.status)
    if view.output != other.output:
        yield Change("output", path, view.output, other.output)


def _words(effect: Performed) -> tuple[str, str]:
    """Return one word for the request and one for its result."""
    match effect.request:
        case ModelRequest():
            return "prompt", "reply"
        case ToolRequest():
            return "arguments", "result"
        case HumanRequest():
            return "question", "answer"
        case Load():
            return "source", "text"
        case Boundary():
            return "stop", "values set"
    return "request", "result"


def asked_of(effect: Performed) -> Value:
    """Return the request in the form that people read."""
    match effect.request:
        case ModelRequest(system=system, messages=messages):
            return "\n\n".join([*([system] if system else []), *(message.content for message in messages)])
        case HumanRequest(prompt=prompt):
            return prompt
        case ToolRequest(arguments=arguments):
            return dict(arguments)
    return effect.request.content()


def answered_by(effect: Performed) -> Value:
    """Return the result in the form that people read; a failure is its message and kind."""
    record = effect.record
    if record is None:
        return None
    if record.failure is not None:
        return f"{record.failure.message} ({record.failure.kind})"
    if isinstance(effect.request, ModelRequest) and isinstance(record.value, dict):
        uses = record.value.get("uses")
        text = str(record.value.get("text", ""))
        return f"{text}\n{encode(uses)}".strip() if uses else text
    return record.value


def _answer(effect: Performed) -> Value:
    """Return the part of a result that is compared. The model that gave it does not count."""
    return None if effect.record is None else [effect.record.state, answered_by(effect)]


def _spent_by(step: Why | None) -> Meter | None:
    return None if step is None else Meter(step.input_tokens, step.output_tokens, step.cost, step.elapsed)


def _spent(step: Why) -> Value:
    return {"cost": step.cost, "input_tokens": step.input_tokens, "output_tokens": step.output_tokens}
