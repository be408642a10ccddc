"""A tool call as a document has it, before the run: its arguments as far as the document alone says them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from quire.diagnostics import nearest
from quire.errors import ToolFailed
from quire.plan.nodes import Arguments, Formula, Hole, Invoke, Literal, Template, UseTool
from quire.tools.builtin.specs import SPECS
from quire.tools.registry import ToolSpec
from quire.trust.capabilities import canonical
from quire.values import Value


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """`names` are those of the arguments, None where only the run knows them. `literal` holds all of them where nothing
    is computed, else None."""

    connection: str
    tool: str
    names: tuple[str, ...] | None = None
    literal: Mapping[str, Value] | None = None

    @classmethod
    def of_tool(cls, work: UseTool) -> PlannedCall:
        arguments = work.arguments
        if not isinstance(arguments, dict):
            return cls(work.connection, work.tool)
        literal = {name: value for name, value in arguments.items() if _is_literal(value)}
        whole = {name: _value(value) for name, value in literal.items()} if len(literal) == len(arguments) else None
        return cls(work.connection, work.tool, tuple(arguments), whole)

    @classmethod
    def of_invoke(cls, work: Invoke) -> PlannedCall:
        literal = {name: one.value for name, one in work.arguments if isinstance(one, Literal)}
        whole = literal if not any(isinstance(one, Formula) for _, one in work.arguments) else None
        return cls("", work.tool, tuple(name for name, _ in work.arguments), whole)

    def wrong_names(self, spec: ToolSpec) -> list[str]:
        """What is wrong whatever the computed values come to be."""
        if self.names is None:
            return []
        properties = cast("Mapping[str, Value]", spec.schema.get("properties", {}))
        required = cast("list[str]", spec.schema.get("required", []))
        problems = [f"{name} is missing" for name in required if name not in self.names]
        if spec.schema.get("additionalProperties") is False:
            for name in self.names:
                if name not in properties:
                    close = nearest(name, properties)
                    problems.append(f"there is no argument {name}" + (f"; did you mean {close}?" if close else ""))
        return problems


class PlannedBuiltIns:
    """The built-in tools as far as their descriptions go, for a gate that makes no calls."""

    def tool_id(self, tool: str) -> str:
        return canonical(tool)

    def known(self, tool: str) -> ToolSpec | None:
        return SPECS.get(tool)

    async def tools(self, *, refresh: bool = False) -> Mapping[str, ToolSpec]:
        return SPECS

    async def call(self, tool: ToolSpec, arguments: dict[str, Value], effect_id: str) -> Value:
        raise ToolFailed(f"{tool.name} is not called before the run starts")

    async def prompt(self, name: str) -> str:
        raise ToolFailed("built-in tools have no prompts")

    async def close(self) -> None:
        pass


def _is_literal(value: Arguments) -> bool:
    match value:
        case Hole():
            return False
        case Template():
            return next(value.references(), None) is None
        case tuple():
            return all(_is_literal(part) for part in value)
        case dict():
            return all(_is_literal(part) for part in value.values())
    return True


def _value(value: Arguments) -> Value:
    match value:
        case Template():
            return "".join(str(part) for part in value.parts)
        case tuple():
            return [_value(part) for part in value]
        case dict():
            return {name: _value(part) for name, part in value.items()}
        case Hole():
            return None
    return value
