"""The JSON Schema of a Python function's arguments, and the conversion of arguments and results.

Schemas are read from annotations. Plain JSON types are handled here, so that their schemas stay the same as in recorded
requests; all other types by pydantic. pydantic takes a tenth of a second to import and needs an extra, so it is
imported for the first annotation that needs it.
"""

from __future__ import annotations

import collections.abc
import enum
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Required, Union

from quire import values
from quire.errors import ToolFailed
from quire.installed import add_extra
from quire.values import InvalidValue, Value

if TYPE_CHECKING:
    from pydantic import TypeAdapter


MOST_PROBLEMS = 20
_AS_THEY_ARE = (str, bool, type(None), object, Any)


class NotAType(TypeError):
    """An annotation that pydantic cannot handle; the text says why."""


def schema_of(hint: object) -> tuple[dict[str, Value], dict[str, Value]]:
    """Return the JSON Schema of a type, and the definitions that it refers to. Raises `NotAType`."""
    adapter = _adapter(hint)
    try:
        schema: dict[str, Value] = adapter.json_schema(ref_template="#/$defs/{model}")
    except Exception as error:
        # Schemas of a user's own types are made by the user's code.
        raise NotAType(_one_line(error)) from None
    definitions = schema.pop("$defs", {})
    return schema, dict(definitions) if isinstance(definitions, Mapping) else {}


def converted(function: Callable[..., object], arguments: Mapping[str, Value], tool: str) -> dict[str, object]:
    """Convert the arguments to the types of the function. Raises `ToolFailed` with all that do not fit."""
    hints = hints_of(function)
    values: dict[str, object] = {}
    problems: list[str] = []
    for name, value in arguments.items():
        try:
            values[name] = _made(hints.get(name, object), value)
        except ValueError as error:
            problems += _problems(name, error)
    if problems:
        listed = "\n".join(f"  {problem}" for problem in problems[:MOST_PROBLEMS])
        raise ToolFailed(f"{tool} does not take these arguments:\n{listed}", kind="arguments")
    return values


def as_value(result: object) -> object:
    """Convert a result to JSON if it is not: models, dataclasses, enums, dates, paths and the like. A type that
    pydantic does not know is left as it is, for the gate to refuse."""
    try:
        values.encode(result)  # type: ignore[arg-type]
        return result
    except InvalidValue:
        if find_spec("pydantic_core") is None:
            return result
    from pydantic_core import to_jsonable_python

    try:
        made: object = to_jsonable_python(result, by_alias=True)
    except Exception:
        return result
    return made


def hints_of(function: Callable[..., object]) -> dict[str, object]:
    return typing.get_type_hints(function, include_extras=True)


def _made(hint: object, value: Value) -> object:
    if hint in _AS_THEY_ARE or isinstance(hint, str | typing.ForwardRef):
        return value
    if hint is int:
        return int(value) if isinstance(value, float) and value.is_integer() else value
    if hint is float:
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
    try:
        adapter = _adapter(_kept_as_list(hint))
    except NotAType:
        # It has a schema, so the value fits: it is a type like `Value`, which is any JSON.
        return value
    return adapter.validate_python(value)


def _kept_as_list(hint: object) -> object:
    """Replace `Iterable` by a list: pydantic makes a one-time iterator of it, but functions have always received
    lists."""
    if typing.get_origin(hint) is collections.abc.Iterable:
        return list[typing.get_args(hint)[0]]  # type: ignore[misc]
    return list if hint is collections.abc.Iterable else hint


def _adapter(hint: object) -> TypeAdapter[object]:
    if find_spec("pydantic") is None:
        raise NotAType(f"it needs pydantic: {add_extra('llm')}")
    from pydantic import TypeAdapter

    try:
        adapter: TypeAdapter[object] = TypeAdapter(hint)  # type: ignore[arg-type]
    except Exception as error:
        raise NotAType(_one_line(error)) from None
    if not adapter.pydantic_complete:
        raise NotAType("it refers to a type by a name that is not known there")
    return adapter


def _problems(name: str, error: ValueError) -> list[str]:
    """Return each place with its problem, in the form of the schema check."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return [f"{name}: {_one_line(error)}"]
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    return [f"{'.'.join(map(str, (name, *problem['loc'])))}: {problem['msg']}" for problem in errors]


def _one_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0].strip() if lines else type(error).__name__


def constrained(hint: object) -> bool:
    """Tell whether `Annotated` adds more to a type than a description."""
    if typing.get_origin(hint) is Annotated:
        inner, *more = typing.get_args(hint)
        return any(not isinstance(extra, str) for extra in more) or constrained(inner)
    return any(constrained(part) for part in typing.get_args(hint) if not isinstance(part, str | int))


EFFECT_ID = "effect_id"
"""The parameter that gets the id of the effect instead of an argument."""

_SIMPLE: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable)
_MAPS = (dict, collections.abc.Mapping)


class Unsupported(TypeError):
    """An annotation without a JSON Schema; the text names the parameter."""


def input_schema(function: Callable[..., object]) -> dict[str, Value]:
    """Return an object schema of the function's parameters; those without a default are required. Raises
    `Unsupported`."""
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
    """Return the schema of one parameter; `definitions` receives those that it refers to."""

    def below(part: object) -> dict[str, Value]:
        return _schema(part, function, parameter, definitions)

    if constrained(hint):
        return _by_pydantic(hint, function, parameter, definitions)
    if hint in (object, typing.Any) or isinstance(hint, str | typing.ForwardRef):
        # A remaining forward reference is the recursion of a type like `Value`: any JSON.
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
        fitting = "a type that pydantic knows can be: str, date, a dataclass, a BaseModel"
        raise Unsupported(
            f"{function}: the type {shown} of {parameter} cannot be given as JSON{cause}; {fitting}"
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
