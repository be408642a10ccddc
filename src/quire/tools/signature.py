"""The JSON Schema of a Python function's arguments, read from its annotations.

Plain JSON types are read here, so that their schemas stay what recorded requests have; all others by pydantic.
"""

from __future__ import annotations

import collections.abc
import enum
import inspect
import re
import types
import typing
from collections.abc import Callable
from typing import Annotated, Literal, NotRequired, Required, Union

from quire.tools.annotations import NotAType, constrained, hints_of, schema_of
from quire.values import Value

EFFECT_ID = "effect_id"
"""The parameter that gets the id of the effect instead of an argument."""

_SIMPLE: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable)
_MAPS = (dict, collections.abc.Mapping)


class Unsupported(TypeError):
    """An annotation that has no JSON Schema; says which parameter."""


def input_schema(function: Callable[..., object]) -> dict[str, Value]:
    """An object schema with the function's parameters; one without a default is required. Raises `Unsupported`."""
    name = getattr(function, "__name__", "?")
    try:
        hints = hints_of(function)
        parameters = list(inspect.signature(function).parameters.values())
    except (NameError, TypeError, AttributeError, ValueError) as error:
        raise Unsupported(f"the annotations of {name} cannot be read: {error}") from None
    if parameters and parameters[0].name in ("self", "cls") and "." in getattr(function, "__qualname__", ""):
        raise Unsupported(
            f"{name} is a method: make it a function, or a tool of one object with quire.tool(THING.{name})"
        )
    definitions: dict[str, Value] = {}
    properties: dict[str, Value] = {}
    required: list[str] = []
    extra: Value = False
    for parameter in parameters:
        if parameter.name == EFFECT_ID:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            extra = _schema(hints.get(parameter.name, object), name, parameter.name, definitions)
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise Unsupported(f"{name}: {parameter.name} cannot be given by name")
        properties[parameter.name] = _schema(hints.get(parameter.name, object), name, parameter.name, definitions)
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    schema: dict[str, Value] = {"type": "object", "properties": properties, "required": list(required)}
    schema["additionalProperties"] = extra
    return {**schema, "$defs": definitions} if definitions else schema


def _schema(hint: object, function: str, parameter: str, definitions: dict[str, Value]) -> dict[str, Value]:
    """`definitions` gets those that the schema refers to."""

    def below(part: object) -> dict[str, Value]:
        return _schema(part, function, parameter, definitions)

    if constrained(hint):
        return _by_pydantic(hint, function, parameter, definitions)
    if hint in (object, typing.Any) or isinstance(hint, str | typing.ForwardRef):
        # A forward reference that is left is the recursion of a type like `Value`: any JSON.
        return {}
    if isinstance(hint, type) and hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    origin, parts = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is Annotated:
        described = next((part for part in parts[1:] if isinstance(part, str)), None)
        return {**below(parts[0]), **({"description": described} if described else {})}
    if origin is Literal:
        return {"enum": list(parts)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [below(part) for part in parts]}
    if origin in _LISTS:
        return {"type": "array", **({"items": below(parts[0])} if parts else {})}
    if origin in _MAPS and (not parts or parts[0] is str):
        return {"type": "object", **({"additionalProperties": below(parts[1])} if parts else {})}
    if typing.is_typeddict(hint):
        return _typed_dict(hint, below)
    return _by_pydantic(hint, function, parameter, definitions)


def _by_pydantic(hint: object, function: str, parameter: str, definitions: dict[str, Value]) -> dict[str, Value]:
    try:
        schema, refers_to = schema_of(hint)
    except NotAType as error:
        shown = getattr(hint, "__name__", None) or repr(hint)
        inner = re.search(r"<class '(?:[^']*\.)?([^'.]+)'>", str(error))
        cause = f", because of {inner[1]}" if inner and inner[1] != shown else ""
        known = "a type that pydantic knows can be: str, date, a dataclass, a BaseModel"
        raise Unsupported(
            f"{function}: the type {shown} of {parameter} cannot be given as JSON{cause}; {known}"
        ) from None
    for name, definition in refers_to.items():
        if definitions.setdefault(name, definition) != definition:
            raise Unsupported(f"{function}: two of its types have the name {name}")
    return schema


def _typed_dict(hint: object, below: Callable[[object], dict[str, Value]]) -> dict[str, Value]:
    hints = typing.get_type_hints(hint, include_extras=True)
    needed = getattr(hint, "__required_keys__", frozenset(hints))
    properties: dict[str, Value] = {}
    required: list[str] = []
    for key, part in hints.items():
        # Under `from __future__ import annotations` the class itself does not see these two.
        marker = typing.get_origin(part)
        marked = marker in (NotRequired, Required)
        properties[key] = below(typing.get_args(part)[0] if marked else part)
        if marker is Required or (key in needed and not marked):
            required.append(key)
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
