"""Walks through the syntax tree of a pipeline: the steps at any depth, and the contents of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quire.formats.pipeline.language import BODY_KEYS, Key, Role
from quire.formats.pipeline.syntax import (
    HOLE,
    AgentBody,
    ExpressionText,
    MatchBody,
    Name,
    Pipeline,
    PipelineFile,
    Step,
    StepsBody,
    Target,
    Text,
)


def _with_roles(*roles: str, inner: bool | None = None) -> dict[type, tuple[Key, ...]]:
    """Return the keys of each body that have a role, and if that matters, those that count for its inner steps."""
    return {
        body: tuple(key for key in keys if key.role in roles and inner in (None, key.inner))
        for body, keys in BODY_KEYS.items()
    }


_VALUES = ("expression", "argument", "arguments", "command", "choice")
_HOLDING = _with_roles("step", "steps", "branches", "cases", "choice")
_CALLING = _with_roles("target", "cases", "choice")
_OWN_VALUES = _with_roles(*_VALUES, inner=False)
_INNER_VALUES = _with_roles(*_VALUES, inner=True)


def walk(pipeline: Pipeline) -> Iterator[tuple[str, Step]]:
    """Yield steps in the order of the text, parents first. Paths count from 1 and have `do` in place of an index."""
    for number, step in enumerate(pipeline.steps, 1):
        yield str(number), step
        if parts(step):
            yield from _below(str(number), step)


def _below(path: str, step: Step) -> Iterator[tuple[str, Step]]:
    for name, part in parts(step):
        here = f"{path}.{step.kind}.{name}"
        yield here, part
        yield from _below(here, part)


def walk_file(file: PipelineFile) -> Iterator[tuple[str, Step]]:
    """Yield the steps of all pipelines with their paths, then those that a hole replaces, with an empty path."""
    for pipeline in file.pipelines:
        yield from walk(pipeline)
    for step in file.lost:
        yield "", step
        yield from (("", part) for _, part in _below("", step))


def holes(pipeline: Pipeline) -> tuple[Step, ...]:
    """Return the steps that could not be read."""
    return tuple(step for _, step in walk(pipeline) if step.body is HOLE)


def parts(step: Step) -> tuple[tuple[str, Step], ...]:
    """Return the nested steps of a step by name. A branch may also be called `collect`."""
    keys = _HOLDING[type(step.body)]
    return tuple(part for key in keys for part in _parts(key, key.of(step.body))) if keys else ()


def _parts(key: Key, value: Any) -> Iterator[tuple[str, Step]]:
    match key.role:
        case "step":
            yield key.name, value
        case "branches":
            yield from ((name.text, branch) for name, branch in value)
        case "steps":
            yield from ((str(number), step) for number, step in enumerate(value, 1))
        case _:
            named = [(name.text, target) for name, target in value] if key.role == "cases" else [(key.name, value)]
            for name, target in named:
                if isinstance(target, StepsBody):
                    yield from ((f"{name}.{number}", step) for number, step in enumerate(target.steps, 1))


def blocks(step: Step) -> tuple[tuple[Step, ...], ...]:
    """Return the sequences of steps inside a step that share its stores: at most one of a `match` runs."""
    match step.body:
        case StepsBody(steps=steps):
            return (steps,)
        case MatchBody(cases=cases, default=default):
            choices = (*(target for _, target in cases), default)
            return tuple(choice.steps for choice in choices if isinstance(choice, StepsBody))
    return ()


def shared_parts(step: Step) -> Iterator[Step]:
    """Yield the nested steps that share the stores of a step."""
    for block in blocks(step):
        yield from block


def targets(step: Step) -> tuple[Target, ...]:
    """Return the pipelines that a step may call."""
    listed: list[Any] = []
    for key in _CALLING[type(step.body)]:
        value: Any = key.of(step.body)
        listed += [target for _, target in value] if key.role == "cases" else [value]
    return tuple(target for target in listed if isinstance(target, Target))


def all_targets(pipeline: Pipeline) -> Iterator[Target]:
    """Yield the pipelines that a pipeline may call, once for each place."""
    return (target for _, step in walk(pipeline) for target in targets(step))


def in_role(step: Step, role: Role) -> list[Any]:
    """Return the values of the keys of a step that have a role, if they are written."""
    values = (key.of(step.body) for key in BODY_KEYS[type(step.body)] if key.role == role)
    return [value for value in values if value is not None]


def own_prompts(step: Step) -> list[Text]:
    """Return the prompts that are written in a step, not in a file."""
    is_file = isinstance(step.body, AgentBody) and step.body.is_file
    return [] if is_file else in_role(step, "prompt")


def schema_of(step: Step) -> Name | None:
    """Return the schema that the result of a step must match."""
    return next(iter(in_role(step, "schema")), None)


def expressions(step: Step) -> Iterator[ExpressionText]:
    """Yield the expressions that are evaluated in the context of the step itself, not of a nested step."""
    if step.guard is not None:
        yield from (text for text in (step.guard.when, step.guard.default) if text is not None)
    yield from _values(step, _OWN_VALUES)
    for target in targets(step):
        yield from (passed.value for passed in target.passes if passed.value)


def inner_expressions(step: Step) -> Iterator[ExpressionText]:
    """Yield the expressions that are evaluated where the nested steps are: the test of a loop, the default of items."""
    return _values(step, _INNER_VALUES)


def _values(step: Step, keys: dict[type, tuple[Key, ...]]) -> Iterator[ExpressionText]:
    for key in keys[type(step.body)]:
        value: Any = key.of(step.body)
        values = [argument for _, argument in value] if key.role == "arguments" else [value]
        yield from (value for value in values if isinstance(value, ExpressionText))
