"""A tool call in a document, before the run: its arguments as far as the document alone determines them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from msgspec import Struct, field

from quire.errors import Denied, ToolFailed
from quire.plain_schema import plainly_fits
from quire.plan.built_in_tools import FETCH, SEND, SHELL, STATE
from quire.plan.nodes import (
    Arguments,
    Template,
    UseTool,
    ValueSlot,
)
from quire.plan.pipeline_work import (
    Formula,
    Invoke,
    Literal,
)
from quire.plan.templates import key_references
from quire.tools.builtin import SPECS
from quire.trust.capabilities import canonical
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.tools.registry import Foreseeing, ToolSpec
    from quire.values import Value


class PlannedCall(Struct, frozen=True):
    """A tool call as written in a document."""

    connection: str
    tool: str
    names: tuple[str, ...] | None = None
    """The names of the arguments; None if only the run knows them."""
    literal: Mapping[str, Value] = field(default_factory=dict)
    """The arguments whose values are in the document."""
    complete: bool = False
    """True if `literal` has all arguments."""

    @classmethod
    def of_tool(cls, work: UseTool) -> PlannedCall:
        arguments = work.arguments
        if not isinstance(arguments, dict) or key_references(arguments):
            return cls(work.connection, work.tool)
        literal = {name: _value(value) for name, value in arguments.items() if _is_literal(value)}
        return cls(work.connection, work.tool, tuple(arguments), literal, len(literal) == len(arguments))

    @classmethod
    def of_invoke(cls, work: Invoke) -> PlannedCall:
        literal = {name: one.value for name, one in work.arguments if isinstance(one, Literal)}
        complete = not any(isinstance(one, Formula) for _, one in work.arguments)
        return cls("", work.tool, tuple(name for name, _ in work.arguments), literal, complete)

    def wrong_names(self, spec: ToolSpec) -> list[str]:
        """Return the problems with the names of the arguments, which do not depend on computed values."""
        if self.names is None:
            return []
        properties = cast("Mapping[str, Value]", spec.schema.get("properties", {}))
        required = cast("list[str]", spec.schema.get("required", []))
        problems = [f"{name} is missing" for name in required if name not in self.names]
        if spec.schema.get("additionalProperties") is False:
            for name in self.names:
                if name not in properties:
                    problems.append(f"there is no argument {name}" + did_you_mean(nearest(name, properties), lead="; "))
        return problems

    def wrong_values(self, spec: ToolSpec) -> list[str]:
        """Return the problems with single arguments in the document. Only for built-in tools, whose schemas have no
        rules across arguments."""
        properties = cast("Mapping[str, Value]", spec.schema.get("properties", {}))
        known = ((name, value, properties[name]) for name, value in self.literal.items() if name in properties)
        found = ((name, _wrong(schema, value)) for name, value, schema in known if not plainly_fits(schema, value))
        return [f"{name}: {problem}" for name, problem in found if problem]


class PlannedBuiltIns:
    """The descriptions of the built-in tools, for a gate that makes no calls.

    `connect` returns the connection that would be called on this machine; without it another machine makes the calls.
    """

    def __init__(self, connect: Callable[[], Foreseeing] | None = None) -> None:
        self._connect = connect

    def tool_id(self, tool: str) -> str:
        return canonical(tool)

    def known(self, tool: str) -> ToolSpec | None:
        return SPECS.get(tool)

    async def tools(self, *, refresh: bool = False) -> Mapping[str, ToolSpec]:
        return SPECS

    def foreseen(self, tool: ToolSpec, arguments: Mapping[str, Value]) -> ToolFailed | Denied | None:
        if self._connect is None or tool.id not in (FETCH, SEND, SHELL, *STATE):
            return None
        return self._connect().foreseen(tool, arguments)

    async def call(self, tool: ToolSpec, arguments: dict[str, Value], effect_id: str) -> Value:
        raise ToolFailed(f"{tool.name} is not called before the run starts")

    async def prompt(self, name: str) -> str:
        raise ToolFailed("built-in tools have no prompts")

    async def close(self) -> None:
        pass


def _is_literal(value: Arguments) -> bool:
    match value:
        case ValueSlot():
            return False
        case Template():
            return next(value.references(), None) is None
        case tuple():
            return all(_is_literal(part) for part in value)
        case dict():
            return not key_references(value) and all(_is_literal(part) for part in value.values())
    return True


def _wrong(schema: Value, value: Value) -> str:
    import jsonschema_rs

    error = next(iter(jsonschema_rs.validator_for(cast("dict[str, object]", schema)).iter_errors(value)), None)
    return error.message if error else ""


def _value(value: Arguments) -> Value:
    match value:
        case Template():
            return "".join(str(part) for part in value.parts)
        case tuple():
            return [_value(part) for part in value]
        case dict():
            return {name: _value(part) for name, part in value.items()}
        case ValueSlot():
            return None
    return value
