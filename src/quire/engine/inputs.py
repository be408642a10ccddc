"""Check and convert the inputs of a run before anything runs: complete, and of the right type.

`run_inputs` handles those of any plan; `complete_inputs` those of a playbook, whose values are text. `resolve_inputs`
handles the inputs of a directive: values often come from a command line or from a model, so a number, a boolean, a list
or an object may be given as its text. Values without a usable declaration (a directive without inputs, an unknown type)
are passed on unchanged.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.errors import BadInputs
from quire.patterns import late_pattern
from quire.values import InvalidValue, Value, clean, decode, text_or_json
from quire.wording import cut, did_you_mean, nearest

if TYPE_CHECKING:
    from quire.plan.nodes import Input, Plan
    from quire.plan.thread import Parameter

_NUMBER = late_pattern(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_LINE_END = late_pattern(r"\r\n|\r|\n")
_BOOLEANS = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False)


def run_inputs(plan: Plan, given: Mapping[str, Value], *, one_line: bool = True) -> Mapping[str, Value]:
    """Return the inputs as a run gets them, by the rules of the plan's format. Raises `BadInputs`. `one_line` is as in
    `complete_inputs`."""
    if plan.thread:
        return resolve_inputs(plan.thread.inputs, given)
    if plan.format == "playbook":
        return complete_inputs(plan, given, one_line=one_line)
    from quire.engine.declared_inputs import complete_declared

    return complete_declared(plan, given)


def kept_inputs(plan: Plan, values: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return the inputs of an earlier run that a plan still has; all of them if it takes any."""
    if plan.infers_inputs or (plan.thread and not plan.inputs):
        return values
    names = {own.name for own in plan.declared or plan.inputs}
    return {name: value for name, value in values.items() if name in names}


def complete_inputs(plan: Plan, given: Mapping[str, Value], *, one_line: bool = True) -> dict[str, str]:
    """Return every declared input with its value or default. Raises `BadInputs` with all problems at once.

    A `string` given by a person or a program is one line. With `one_line` false, as for a value that another document
    computed, it may have several.
    """
    declared = {own.name: own for own in plan.inputs}
    listed = f": the document declares {', '.join(declared) or 'none'}"
    problems = {name: unknown_name("input", name, declared, listed) for name in given if name not in declared}
    values: dict[str, str] = {}
    for name, own in declared.items():
        if _is_missing(own, given):
            problems[name] = f"missing input {describe(own)}"
            continue
        try:
            values[name] = input_value(own, given.get(name), one_line=one_line)
        except ValueError as error:
            problems[name] = f"input {name}: {error}"
    if problems:
        raise BadInputs(list(problems.values()), problems)
    return values


def input_value(declared: Input, value: Value, *, one_line: bool = True) -> str:
    """Return the value of one input as the run gets it; blank text becomes the default.

    Raises ValueError that says what would be right.
    """
    text = text_of_input(value)
    if text.strip():
        return checked_input(declared, text, one_line=one_line)
    if declared.default is None and declared.required:
        raise ValueError("it is required, and has no default")
    default = clean(text) if declared.default is None else declared.default
    if declared.type == "boolean" and default.strip().lower() in _BOOLEANS:
        return checked_input(declared, default)  # the same as if it were given
    return default


def missing_inputs(plan: Plan, given: Mapping[str, Value]) -> list[Input]:
    """Return the required inputs that were not given, in document order, so that a terminal can ask for them."""
    return [own for own in plan.inputs if _is_missing(own, given)]


def _is_missing(declared: Input, given: Mapping[str, Value]) -> bool:
    return declared.is_needed and not text_of_input(given.get(declared.name)).strip()


def checked_input(declared: Input, text: str, *, one_line: bool = True) -> str:
    """Return the value as the run gets it. Raises ValueError that says what would be right."""
    match declared.type:
        case "number":
            if not is_number(text.strip()):
                raise ValueError(f"{_quoted(text)} is not a number")
            return text.strip()
        case "boolean":
            if text.strip().lower() not in _BOOLEANS:
                raise ValueError(f"{_quoted(text)} is not true or false")
            return "true" if _BOOLEANS[text.strip().lower()] else "false"
        case "enum" if declared.options:
            if text.strip() not in declared.options:
                hint = did_you_mean(nearest(text.strip(), declared.options), lead=" (")
                raise ValueError(f"{_quoted(text)} is not one of {', '.join(declared.options)}{hint}")
            return text.strip()
        case "string" if one_line:
            # The line end of a file or of `echo` is not part of the value.
            text = text.rstrip("\r\n")
            if breaks := len(_LINE_END.findall(text)):
                raise ValueError(f"a string is one line, and this has {breaks + 1}; a text input takes several")
    return clean(text)


def is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def describe(declared: Input) -> str:
    kind = f"one of {', '.join(declared.options)}" if declared.options else declared.type
    return f"{declared.name} ({kind})" + (f": {declared.description}" if declared.description else "")


def described(name: str, kind: str, description: str) -> str:
    """Return an input in one line, with its description if there is one."""
    about = " ".join(description.split())
    return f"{name} ({kind})" + (f": {about}" if about else "")


def unknown_name(what: str, name: str, names: Iterable[str], listed: str) -> str:
    """Say that a name is unknown, with the nearest known one, or else `listed`."""
    return f"unknown {what} {name}" + did_you_mean(nearest(name, names), listed, lead=" (")


def text_of_input(value: Value) -> str:
    """Return the value of an input as a playbook inserts it; empty for none."""
    return "" if value is None else text_or_json(value)


def _quoted(text: str) -> str:
    return f'"{cut(" ".join(text.split()), 60, 57)}"'


_INTEGER = late_pattern(r"[+-]?[0-9]{1,4000}")
_PARAMETER_NUMBER = late_pattern(r"[+-]?(?:[0-9]{1,4000}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")
_MOST_SHOWN = 60


def resolve_inputs(parameters: Sequence[Parameter], given: Mapping[str, Value]) -> dict[str, Value]:
    """Return every input that has a value, converted to its type. Raises `BadInputs` with all problems at once.

    A null is not a value; an empty text is one. Without declared inputs all given values are passed on.
    """
    if not parameters:
        return dict(given)
    names = [parameter.name for parameter in parameters]
    listed = f": the directive's inputs are {', '.join(names)}"
    problems = {name: unknown_name("parameter", name, names, listed) for name in given if name not in names}
    values: dict[str, Value] = {}
    for parameter in parameters:
        name = parameter.name
        value = given.get(name)
        whose = ""
        if value is None:
            value, whose = parameter.default, "its default "
        if value is None:
            if parameter.required:
                problems[name] = _missing(parameter)
            continue
        try:
            values[name] = converted(parameter.type, value)
        except ValueError as error:
            problems[name] = f"input {name}: {whose}{error}"
    if problems:
        raise BadInputs(list(problems.values()), problems)
    return values


def missing_parameters(parameters: Sequence[Parameter], given: Mapping[str, Value]) -> list[str]:
    """Return a line for each required input that was not given."""
    owed = (parameter for parameter in parameters if parameter.is_needed and given.get(parameter.name) is None)
    return [_missing(parameter) for parameter in owed]


def _missing(parameter: Parameter) -> str:
    return f"missing required input {described(parameter.name, parameter.type, parameter.description)}"


def converted(type: str, value: Value) -> Value:
    """Convert the value to the type.

    Raises ValueError that says what would be right. An unknown type accepts anything.
    """
    kind = kind_of(type)
    return value if kind is None else _CONVERSIONS[kind](value)


def kind_of(type: str) -> str | None:
    """Return the JSON type that a written type stands for, or None for an unknown type."""
    return _KINDS.get(type.strip().lower())


def _text(value: Value) -> Value:
    if not isinstance(value, str):
        raise ValueError(f"{shown(value)} is not a string")
    return clean(value)


def _integer(value: Value) -> Value:
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value.strip())
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"{shown(value)} is not an integer")


def _number(value: Value) -> Value:
    if isinstance(value, str) and _PARAMETER_NUMBER.fullmatch(value.strip()):
        text = value.strip()
        number = int(text) if _INTEGER.fullmatch(text) else float(text)
        if not math.isinf(number):
            return number
    elif isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise ValueError(f"{shown(value)} is not a number")


def _boolean(value: Value) -> Value:
    if isinstance(value, str) and value.strip().lower() in _BOOLEANS:
        return _BOOLEANS[value.strip().lower()]
    if isinstance(value, bool):
        return value
    raise ValueError(f"{shown(value)} is not a boolean: true or false")


def _list(value: Value) -> Value:
    items = _decoded(value)
    if isinstance(items, list | tuple):
        return items
    raise ValueError(f"{shown(value)} is not an array: as text it is written in JSON, as in [1, 2]")


def _object(value: Value) -> Value:
    fields = _decoded(value)
    if isinstance(fields, Mapping):
        return fields
    raise ValueError(f'{shown(value)} is not an object: as text it is written in JSON, as in {{"a": 1}}')


def _decoded(value: Value) -> Value:
    if not isinstance(value, str):
        return value
    try:
        return decode(value)
    except InvalidValue:
        return None


_CONVERSIONS: Mapping[str, Callable[[Value], Value]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _list,
    "object": _object,
}
_KINDS = {kind: kind for kind in _CONVERSIONS} | {
    "str": "string",
    "text": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
    "map": "object",
}


def shown(value: Value) -> str:
    """Format a value for a message: short, on one line, text in quotes."""
    text = " ".join(text_or_json(value).split())
    short = cut(text, _MOST_SHOWN)
    return f'"{short}"' if isinstance(value, str) else short
