"""The table of operations: each entry has its coroutine, and the types that doors are made from."""

from __future__ import annotations

import re
from typing import Annotated

import click
import msgspec
import pytest
from msgspec import UNSET, Meta, UnsetType

from quire.cli import run
from quire.errors import BadInputs
from quire.operations import OPERATIONS, Operation
from quire.operations.field_types import Budget, Format, Input, Name, RunOptions, Work, errors_of, schema_of
from quire.operations.host import Caller

NAMES = [operation.name for operation in OPERATIONS]
every = pytest.mark.parametrize("operation", OPERATIONS, ids=NAMES)


def test_names_endpoints_and_tools_are_there_once() -> None:
    for column in (NAMES, [one.http for one in OPERATIONS if one.http], [one.mcp for one in OPERATIONS if one.mcp]):
        assert len(column) == len(set(column))
    assert all(one.http or one.mcp for one in OPERATIONS)


@every
def test_an_entry_has_its_coroutine_and_its_types(operation: Operation) -> None:
    work = operation.work
    assert isinstance(work, Work) and work.run.__name__ == operation.name
    assert re.fullmatch(r"\S.*\.", work.summary)
    schema = schema_of(work.input)
    assert set(re.findall(r"\{(\w+)", operation.http)) <= set(schema["properties"])
    assert schema["additionalProperties"] is False
    assert issubclass(work.input, Input) and work.input.__struct_config__.frozen
    for found in (schema, {} if work.result is None else schema_of(work.result)):
        assert not re.search(r'"\$ref"|"anyOf"', str(found)), "an error in it would not say what is wrong"


@every
def test_what_a_query_takes_is_explained(operation: Operation) -> None:
    method, _, path = operation.http.partition(" ")
    if method in ("GET", "DELETE") or operation.mcp:
        members = schema_of(operation.work.input)["properties"].items()
        assert [name for name, one in members if f"{{{name}" not in path and "description" not in one] == []


class Asked(Input, frozen=True, kw_only=True):
    name: Name | None = None
    budget: Budget = UNSET
    limit: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    format: Format | None = None
    document: Name


def test_a_schema_says_what_is_wrong_with_a_value_that_may_be_null() -> None:
    schema = schema_of(Asked)
    assert schema["properties"]["name"] == {"type": ["string", "null"], "minLength": 1, "maxLength": 1000}
    assert next(iter(schema["properties"])) == "document" and schema["required"] == ["document"]
    assert errors_of(schema, {"document": "a", "name": None, "budget": None, "format": None}) == []
    assert sorted(errors_of(schema, {"document": "a", "budget": -1, "name": "", "limit": 0, "odd": 1})) == [
        ("", "Additional properties are not allowed ('odd' was unexpected)"),
        ("/budget", "-1 is less than the minimum of 0"),
        ("/limit", "0 is less than the minimum of 1"),
        ("/name", '"" is shorter than 1 character'),
    ]


def test_a_value_that_is_not_given_differs_from_null() -> None:
    for values, budget in (({}, UNSET), ({"budget": None}, None), ({"budget": 2}, 2)):
        assert msgspec.convert({"document": "a", **values}, Asked).budget is budget


OPTIONS = {"answers": "answers", "breakpoints": "breaks"}
"""Fields whose option has another name."""


def test_a_field_is_described_as_the_option_of_the_command_line() -> None:
    options = {one.name: one for one in run.command.params if isinstance(one, click.Option)}
    members = schema_of(RunOptions)["properties"].items()
    described = {name: one["description"] for name, one in members if "description" in one}
    assert len(described) == 7
    assert described == {name: options[OPTIONS.get(name, name)].help for name in described}


def test_a_caller_grants_what_its_door_was_opened_with_and_no_more() -> None:
    caller = Caller("serve", "web", allow=("http__get",), model="a:b", budget=1.5)
    assert caller.options(RunOptions()).allow == ("http__get",)
    assert caller.options(RunOptions(allow=())).allow == ()
    assert (caller.options(RunOptions()).budget, caller.options(RunOptions(budget=None)).budget) == (1.5, None)
    assert caller.options(RunOptions(model="c:d")).model == "c:d"
    with pytest.raises(BadInputs, match="shell is granted in a terminal only: quire serve --allow shell"):
        caller.options(RunOptions(allow=("http__get", "shell")))
    with pytest.raises(AttributeError):
        caller.allow = ("shell",)  # type: ignore[misc]
    assert Caller().person is False, "a door says so if its answers come from people"
