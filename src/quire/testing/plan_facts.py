"""Facts about the values of a pipeline that its plan alone shows: the type of a store, and lists that are not empty.

Coverage counts no decision that they rule out, and mutation makes no mutant that they make equivalent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.expr.syntax import RESERVED, Not, Path
from quire.plan.pipeline_work import Agent, Fail, Formula, Invoke, Stop
from quire.schema_types import Object, Ref

if TYPE_CHECKING:
    from quire.plan.nodes import Plan, Step
    from quire.schema_types import Field, FieldType


def declared_type(plan: Plan, formula: Formula) -> FieldType | None:
    """Return the type of a store, or of a required field of it, if every step that writes it holds it to one schema."""
    segments = _store_path(formula)
    if segments is None:
        return None
    name, *rest = segments
    if any(field.name == name for field in plan.declared or ()):
        return None
    schemas = {_schema_of(step) for _, step in plan.steps() if step.capture is not None and step.capture.name == name}
    schema = schemas.pop() if len(schemas) == 1 else None
    type: FieldType | None = Ref(schema) if schema is not None else None
    for segment in rest:
        fields = _resolved(plan, type)
        type = next((field.type for field in fields if field.name == segment and field.required), None)
    return type


def is_never_empty(plan: Plan, path: str, formula: Formula) -> bool:
    """Tell whether a list has items where a step reads it: a step before it ends the run, or fails, if it is empty."""
    segments = _store_path(formula)
    if segments is None:
        return False
    place, _, _ = path.rpartition("/")
    filled = False
    for other, step in plan.steps():
        if other == path:
            return filled
        if step.capture is not None and step.capture.name == segments[0]:
            filled = False
        elif other.rpartition("/")[0] == place and _ends_without(step, segments):
            filled = True
    return False


def _ends_without(step: Step, segments: tuple[str, ...]) -> bool:
    """Tell whether a step is a `fail` or `stop` whose condition is that a value is empty."""
    guard = step.guard
    if not isinstance(step.work, Fail | Stop) or guard is None or guard.when is None or guard.goes_on:
        return False
    root = guard.when.compiled.expression.root
    return isinstance(root, Not) and root.times == 1 and _segments(root.operand) == segments


def _store_path(formula: Formula) -> tuple[str, ...] | None:
    return _segments(formula.compiled.expression.root)


def _segments(node: object) -> tuple[str, ...] | None:
    """Return a path that begins with a store; None for every other expression."""
    if not isinstance(node, Path):
        return None
    segments = node.segments[1:] if node.segments[0] == "ctx" else node.segments
    return segments if segments and segments[0] not in RESERVED else None


def _schema_of(step: Step) -> str | None:
    """Return the schema that the value of a step always fits; None if there is none, or a default takes its place."""
    if not isinstance(step.work, Agent | Invoke) or (step.guard is not None and step.guard.goes_on):
        return None
    return step.work.schema


def _resolved(plan: Plan, type: FieldType | None) -> tuple[Field, ...]:
    match type:
        case Ref(schema=name):
            return plan.schemas[name].fields if name in plan.schemas else ()
        case Object(fields=fields):
            return fields
    return ()
