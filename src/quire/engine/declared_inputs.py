"""Check the inputs that a pipeline declares, and apply their defaults, before anything runs.

Values are JSON of the declared types. A text from a command line or a terminal is converted with `typed`: programs,
other documents and files of inputs give values as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import UNSET

from quire.engine.inputs import converted, described, unknown_name
from quire.errors import BadInputs
from quire.safe_regex import LONGEST_MATCHED
from quire.schema import Enum, Field, FieldType, Kind, ListOf, Schema, Simple, type_words, violations
from quire.values import InvalidValue, Value, decode, value_of
from quire.wording import cut, first_of

if TYPE_CHECKING:
    from quire.plan.nodes import Plan

_PART = 8
"""Units of pure work for one part of a value."""
_SHOWN = 20
"""Problems of one input, or names of inputs, that are listed."""
_LONGEST_KIND = 200
"""Characters of a type in a message."""


def complete_declared(plan: Plan, given: Mapping[str, Value]) -> dict[str, Value]:
    """Return every declared input that has a value or a default. Raises `BadInputs` with all problems at once.

    A null is not a value, unless the type of the input has it. A pipeline without a declaration takes anything.
    """
    if plan.declared is None:
        return dict(given)
    declared = {field.name: field for field in plan.declared}
    listed = f": the pipeline declares {', '.join(first_of(list(declared), _SHOWN)) or 'none'}"
    unknown = [name for name in given if name not in declared]
    problems = {name: f"unknown input {name}" for name in unknown}
    problems |= {name: unknown_name("input", name, declared, listed) for name in unknown[:_SHOWN]}
    values: dict[str, Value] = {}
    for name, field in declared.items():
        if not is_given(field, given):
            if field.is_needed:
                problems[name] = f"missing input {describe_field(field)}"
            elif field.default is not UNSET:
                values[name] = field.default
            continue
        values[name] = given[name]
        if problem := problem_of(plan, field, given[name]):
            problems[name] = f"input {problem}"
    if problems:
        raise BadInputs(list(problems.values()), problems)
    return values


def is_given(field: Field, given: Mapping[str, Value]) -> bool:
    if given.get(field.name) is not None:
        return True
    return field.name in given and isinstance(field.type, Enum) and None in field.type


def problem_of(plan: Plan, field: Field, value: Value) -> str:
    """Return everything that is wrong with the value of an input, with paths; empty if it fits."""

    def fields_of(name: str) -> tuple[Field, ...] | None:
        schema: Schema | None = plan.schemas.get(name)
        return schema.fields if schema else None

    problems = [
        str(violation) for violation in islice(violations((field,), {field.name: value}, fields_of), _SHOWN + 1)
    ]
    return "; ".join([*problems[:_SHOWN], "and more problems"] if len(problems) > _SHOWN else problems)


def missing_fields(plan: Plan, given: Mapping[str, Value]) -> list[Field]:
    """Return the declared inputs that a run needs and that were not given, in document order."""
    return [field for field in plan.declared or () if field.is_needed and not is_given(field, given)]


def unwritten_inputs(plan: Plan) -> dict[str, Field]:
    """Return the declared inputs by name, without those that a step may replace by a value of another type."""
    return {field.name: field for field in plan.declared or () if field.name not in plan.written}


def defaults_of(plan: Plan) -> dict[str, Value]:
    return {field.name: field.default for field in plan.declared or () if field.default is not UNSET}


def checking_work(plan: Plan, given: Mapping[str, Value]) -> int:
    """Return the units of pure work that checking the inputs takes at most."""
    parts, characters = 0, 0
    waiting: list[Value] = [given]
    while waiting:
        part = waiting.pop()
        parts += 1
        if isinstance(part, str):
            characters += min(len(part), LONGEST_MATCHED)
        elif isinstance(part, Mapping):
            waiting.extend(part.values())
        elif isinstance(part, Sequence):
            waiting.extend(part)
    return parts * _PART + (characters * plan.matching_work >> 4)


def describe_field(field: Field) -> str:
    return described(field.name, cut(type_words(field.type), _LONGEST_KIND), field.description)


def typed(type: FieldType, text: str) -> Value:
    """Convert a text to a value of a type. A text that cannot be converted is returned as it is, for the check to say
    what is wrong.

    A list of plain values is written in JSON, with one value on each line, or on one line with commas.
    """
    match type:
        case Simple(kind=Kind.STRING):
            return text
        case Simple(kind=kind):
            try:
                return converted("boolean" if kind is Kind.BOOL else "number", text)
            except ValueError:
                return text
        case Enum():
            plain, value = text.strip(), value_of(text)
            return plain if plain in type else value if value in type else text
    try:
        value = decode(text)
    except InvalidValue:
        value = text
    if not isinstance(type, ListOf) or isinstance(value, list | tuple) or not isinstance(type.of, Simple | Enum):
        return value
    parts = text.splitlines() if "\n" in text.strip() else text.split(",")
    return [typed(type.of, part.strip()) for part in parts if part.strip()]
