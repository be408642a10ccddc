"""Fields of operations: types with their bounds, the base of all inputs, and the JSON Schemas that are made of them.

A schema is checked by jsonschema-rs, which lists everything that is wrong with a value, each with its place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias, TypeVar

import jsonschema_rs
import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from quire.engine.records import Status
from quire.operations.problems import Problem
from quire.values import encode

if TYPE_CHECKING:
    from quire.values import Value

Schema: TypeAlias = Mapping[str, "Value"]
Object: TypeAlias = dict[str, Any]


def words(*names: str) -> Meta:
    """Return the bound of a text that is one of these words. The schema keeps their order."""
    return Meta(extra_json_schema={"enum": list(names)})


Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=1000)]
Text: TypeAlias = Annotated[str, Meta(max_length=1_000_000)]
Names: TypeAlias = Annotated[tuple[Name, ...], Meta(max_length=1000)]
Seq: TypeAlias = Annotated[int, Meta(ge=0, le=10**15)]
Limit: TypeAlias = Annotated[int, Meta(ge=1, le=500, description="The most items to return.")]
Budget: TypeAlias = Annotated[Any, Meta(extra_json_schema={"type": ["number", "null"], "minimum": 0})]
"""A number as it was given, because runs keep it, or null."""
State: TypeAlias = Annotated[str, words(*map(str, Status))]
Format: TypeAlias = Annotated[str, words("playbook", "directive", "pipeline")]
Unattended: TypeAlias = Annotated[Any, Meta(extra_json_schema={"enum": [True, False, "yes"]})]
After: TypeAlias = Annotated[Name, Meta(description="The `next` of the page before.")]


class Input(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of an operation. A subclass states `frozen=True` and `kw_only=True` again: msgspec does not inherit
    the second, and mypy wants the first."""


class OfRun(Input, frozen=True, kw_only=True):
    run: str


class OfStep(OfRun, frozen=True, kw_only=True):
    path: str


class RunChanges(Input, frozen=True, kw_only=True):
    """The options of a run that a fork can change. Descriptions are the help of `quire run`."""

    model: Annotated[Name, Meta(description="The model, as PROVIDER:NAME.")] | None = None
    budget: Annotated[Budget, Meta(description="Never spend more than this.")] = UNSET
    limits: Object = field(default_factory=dict)
    answers: Annotated[dict[str, str], Meta(description="Answer a step's question beforehand.")] = field(
        default_factory=dict
    )
    unattended: Unattended = False
    force: Annotated[bool, Meta(description="Start despite near misses that `quire check` finds.")] = False


class RunOptions(RunChanges, frozen=True, kw_only=True):
    """The options of a new run, in the request that starts it and in the one that forecasts it."""

    inputs: Object = field(default_factory=dict)
    breakpoints: Annotated[Names, Meta(description="Pause after a step.")] = ()
    allow: Annotated[Names, Meta(description="Grant a tool to this run.")] | UnsetType = UNSET
    reuse: Annotated[Name, Meta(description="Reuse replies from an earlier run for identical calls.")] = ""
    detach: bool = False


class File(Struct, frozen=True):
    """An answer that is not JSON: a file with its media type, and the headers under which HTTP sends it."""

    data: bytes
    media: str
    headers: Mapping[str, str] = {}


Item = TypeVar("Item")


class Page(Struct, Generic[Item]):
    """One page of a list."""

    items: list[Item]
    next: str | None | UnsetType = UNSET


def page_of(item: Any) -> Any:
    """Return the type of one page of a `shape`."""
    return Page[item]


def shape(**members: Any) -> Any:
    """Return the type of an object with these members, and others, for a result that is described once."""
    return msgspec.defstruct("Shape", list(members.items()))


def needs(*names: str) -> Schema:
    """Return the schema of an object that has these members, and others."""
    return {"type": "object", "required": list(names)}


Given = TypeVar("Given", bound=Input)
Answer: TypeAlias = "Callable[[Any, Given], Awaitable[Any]]"


class Work(Struct, Generic[Given], frozen=True):
    """The coroutine of an operation with its summary and the types of what it takes and returns."""

    summary: str
    input: type[Given]
    result: Any
    run: Answer[Given]

    def read(self, values: Mapping[str, Value]) -> Given:
        """Return checked values as the input. Raises `Problem` for a number that is too large to be one."""
        try:
            return msgspec.convert(values, self.input)
        except msgspec.ValidationError as error:
            raise Problem.of("unfit-body", str(error)) from None


def operation(summary: str, given: type[Given], result: object) -> Callable[[Answer[Given]], Work[Given]]:
    """Make a coroutine the work of the operation of its name. `result` is a type, or a schema, of the JSON that it
    returns."""
    return lambda run: Work(summary, given, result, run)


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type: without references, needed members first."""
    if isinstance(kind, Mapping):
        return dict(kind)
    (schema,), parts = msgspec.json.schema_components([kind], ref_template="{name}")
    return _plain(schema, parts)


def _plain(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with `X or null` as one schema of two types, so that an error says what is wrong with X."""
    schema = {name: value for name, value in schema.items() if name != "title" and (name != "default" or value)}
    branches = schema.pop("anyOf", [{"$ref": schema.pop("$ref")}] if "$ref" in schema else [])
    values = [branch for branch in branches if branch != {"type": "null"}]
    if len(values) == 1:
        value = parts[values[0]["$ref"]] if "$ref" in values[0] else values[0]
        schema |= _plain(value, parts)
        if len(branches) == 2 and "type" in schema:
            schema["type"] = [schema["type"], "null"]
            schema |= {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    elif branches:
        schema["anyOf"] = [_plain(branch, parts) for branch in branches]
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            schema[name] = _plain(schema[name], parts)
    if "properties" in schema:
        needed = schema.get("required", ())
        members = sorted(schema["properties"].items(), key=lambda member: member[0] not in needed)
        schema["properties"] = {name: _plain(member, parts) for name, member in members}
    return schema


def errors_of(schema: Schema, value: Value) -> list[tuple[str, str]]:
    """Return everything that is wrong with a value: where, as a JSON Pointer, and what."""
    return [
        ("".join(f"/{part}" for part in error.instance_path), error.message)
        for error in _validator(encode(schema)).iter_errors(value)
    ]


@lru_cache(maxsize=200)
def _validator(schema: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(schema)
