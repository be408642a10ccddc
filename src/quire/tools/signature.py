"""The JSON Schema of a Python function's arguments, read from its annotations."""

from __future__ import annotations

import collections.abc
import enum
import inspect
import types
import typing
from collections.abc import Callable
from typing import Annotated, Literal, NotRequired, Required, Union

from quire.values import Value

EFFECT_ID = "effect_id"
"""The parameter that gets the id of the effect instead of an argument."""

_SIMPLE: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable)
_MAPS = (dict, collections.abc.Mapping)


class Unsupported(TypeError):
    """An annotation that has no JSON Schema; says which parameter."""


def input_schema(function: Callable[..., object]) -> dict[str, Value]:
    """An object schema with the function's parameters; one without a default is required."""
    name = getattr(function, "__name__", "?")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise Unsupported(f"the annotations of {name} cannot be read: {error}") from None
    properties: dict[str, Value] = {}
    required: list[str] = []
    extra: Value = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == EFFECT_ID:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            extra = _schema(hints.get(parameter.name, object), name, parameter.name)
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise Unsupported(f"{name}: {parameter.name} cannot be given by name")
        properties[parameter.name] = _schema(hints.get(parameter.name, object), name, parameter.name)
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": extra}


def _schema(hint: object, function: str, parameter: str) -> dict[str, Value]:
    def below(part: object) -> dict[str, Value]:
        return _schema(part, function, parameter)

    if hint in (object, typing.Any) or isinstance(hint, str | typing.ForwardRef):
        # A forward reference that is left is the recursion of a type like `Value`: any JSON.
        return {}
    if isinstance(hint, type) and hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        # The function gets the text, not the member: a decoded copy is plain JSON.
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
    if origin in _MAPS:
        if parts and parts[0] is not str:
            raise Unsupported(f"{function}: the keys of {parameter} must be str")
        return {"type": "object", **({"additionalProperties": below(parts[1])} if parts else {})}
    if typing.is_typeddict(hint):
        return _typed_dict(hint, below)
    raise Unsupported(f"{function}: {parameter} has a type that JSON does not know: {hint!r}")


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
