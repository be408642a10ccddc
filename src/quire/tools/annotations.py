"""Python types beyond plain JSON, by pydantic: their JSON Schemas, arguments made into them, results made from them.

pydantic takes a tenth of a second to import, and is not there without the extras that bring it: it is imported for the
first annotation that needs it.
"""

from __future__ import annotations

import collections.abc
import typing
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

from quire import values
from quire.errors import ToolFailed
from quire.values import InvalidValue, Value

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MOST_PROBLEMS = 20
_AS_THEY_ARE = (str, bool, type(None), object, Any)


class NotAType(TypeError):
    """pydantic cannot make anything of an annotation; says why."""


def schema_of(hint: object) -> tuple[dict[str, Value], dict[str, Value]]:
    """The JSON Schema of a type, and the definitions that it refers to. Raises `NotAType`."""
    adapter = _adapter(hint)
    try:
        schema: dict[str, Value] = adapter.json_schema(ref_template="#/$defs/{model}")
    except Exception as error:
        # Schemas of a user's own types are made by code of theirs.
        raise NotAType(_one_line(error)) from None
    definitions = schema.pop("$defs", {})
    return schema, dict(definitions) if isinstance(definitions, Mapping) else {}


def converted(function: Callable[..., object], arguments: Mapping[str, Value], tool: str) -> dict[str, object]:
    """The arguments as the types that the function asks for. Raises `ToolFailed` with all that do not fit."""
    hints = hints_of(function)
    given: dict[str, object] = {}
    problems: list[str] = []
    for name, value in arguments.items():
        try:
            given[name] = _made(hints.get(name, object), value)
        except ValueError as error:
            problems += _problems(name, error)
    if problems:
        listed = "\n".join(f"  {problem}" for problem in problems[:MOST_PROBLEMS])
        raise ToolFailed(f"{tool} does not take these arguments:\n{listed}", kind="arguments")
    return given


def as_value(result: object) -> object:
    """A result as JSON, where it is not: models, dataclasses, enums, dates, paths and the like. What pydantic does not
    know is left as it is, for the gate to refuse."""
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
    """pydantic makes a one-time iterator of an `Iterable`; functions have got lists."""
    if typing.get_origin(hint) is collections.abc.Iterable:
        return list[typing.get_args(hint)[0]]  # type: ignore[misc]
    return list if hint is collections.abc.Iterable else hint


def _adapter(hint: object) -> TypeAdapter[object]:
    if find_spec("pydantic") is None:
        raise NotAType("it needs pydantic: pip install 'quire[llm]'")
    from pydantic import TypeAdapter

    try:
        adapter: TypeAdapter[object] = TypeAdapter(hint)  # type: ignore[arg-type]
    except Exception as error:
        raise NotAType(_one_line(error)) from None
    if not adapter.pydantic_complete:
        raise NotAType("it refers to a type by a name that is not known there")
    return adapter


def _problems(name: str, error: ValueError) -> list[str]:
    """Each place with what is wrong there, as the check of a schema says it."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return [f"{name}: {_one_line(error)}"]
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [f"{'.'.join(map(str, (name, *one['loc'])))}: {one['msg']}" for one in found]


def _one_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0].strip() if lines else type(error).__name__


def constrained(hint: object) -> bool:
    """Whether `Annotated` says more about a type than what it is for."""
    if typing.get_origin(hint) is Annotated:
        inner, *more = typing.get_args(hint)
        return any(not isinstance(one, str) for one in more) or constrained(inner)
    return any(constrained(part) for part in typing.get_args(hint) if not isinstance(part, str | int))
