"""The registry of tools: connections and specs, in one shape for all kinds of tools.

A connection is the first name in `@tool(CONNECTION, TOOL, …)`: an MCP server, `python` for functions, or `quire` for
the built-in tools. Names without a connection are resolved in `quire.tools.tool_names`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct

from quire.errors import Denied, ToolFailed
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.engine.ports import EffectClass
    from quire.values import Value


class ToolSpec(Struct, frozen=True):
    """A tool as the gate sees it."""

    id: str
    """The canonical id."""
    name: str
    description: str
    schema: Mapping[str, Value]
    """The schema of the arguments."""
    effect: EffectClass
    problem: str = ""
    """The reason why the tool cannot be used, if it is known before its schema is checked."""
    changed: str = ""
    """Says that the tool is not the one that was locked; then it is refused under any grants."""
    output: object = None
    """The schema of the results as a server has sent it; None if there is none."""


class Answer(Struct, frozen=True):
    """A result that exists as text and as data: the gate takes the one that the request wants."""

    text: Value
    data: Value


class Connection(Protocol):
    """A place with tools. All methods raise `ToolFailed`, a call also `Denied`, and nothing else."""

    def tool_id(self, tool: str) -> str:
        """Return the canonical id that a tool of this name has, whether or not it exists."""
        ...

    def known(self, tool: str) -> ToolSpec | None:
        """Return the spec of a tool if it is known without starting anything."""
        ...

    async def tools(self, *, refresh: bool = False) -> Mapping[str, ToolSpec]: ...

    async def call(self, tool: ToolSpec, arguments: dict[str, Value], effect_id: str) -> Value | Answer: ...

    async def prompt(self, name: str) -> str: ...

    async def close(self) -> None: ...


@runtime_checkable
class Describing(Protocol):
    """A connection that describes its tools to a model in other words than it checks them by."""

    def offered(self, spec: ToolSpec) -> ToolSpec: ...


@runtime_checkable
class Foreseeing(Protocol):
    """A connection that knows of some calls, before the run, that they would be refused or fail."""

    def foreseen(self, tool: ToolSpec, arguments: Mapping[str, Value]) -> ToolFailed | Denied | None:
        """Return the reason why a call with these arguments, and perhaps others, would fail. Starts nothing."""
        ...


@runtime_checkable
class Timed(Protocol):
    """A connection that says how long its calls may take."""

    def longest(self, tool: ToolSpec, arguments: Mapping[str, Value]) -> float | None:
        """Return the seconds after which the gate ends the call; None for a call that waits for another run."""
        ...


class Connections:
    """The connections of a run by name. `disabled` are servers that the workspace has configured but disabled."""

    def __init__(self, connections: Mapping[str, Connection], disabled: Sequence[str] = ()) -> None:
        self._connections = dict(connections)
        self.disabled = tuple(disabled)

    def names(self) -> list[str]:
        return list(self._connections)

    def with_others(self, connections: Mapping[str, Connection]) -> Connections:
        """Return a registry with some connections replaced. Only one of the two must be closed."""
        return Connections({**self._connections, **connections}, self.disabled)

    def has(self, name: str) -> bool:
        return name in self._connections

    def connection(self, name: str) -> Connection:
        connection = self._connections.get(name)
        if connection is None and name in self.disabled:
            raise ToolFailed(is_disabled(name), kind="unknown_tool")
        if connection is None:
            raise ToolFailed(unknown("connection", name, self._connections), kind="unknown_tool")
        return connection

    def known(self, connection: str, tool: str) -> ToolSpec | None:
        place = self._connections.get(connection)
        return place.known(tool) if place else None

    async def spec(self, connection: str, tool: str) -> ToolSpec:
        """Return the spec of a tool. Asks the connection again before it raises `ToolFailed`, because servers may add
        tools."""
        place = self.connection(connection)
        specs = await place.tools()
        if tool not in specs:
            specs = await place.tools(refresh=True)
        if tool not in specs:
            raise ToolFailed(unknown("tool", tool, specs, f" at {connection}"), kind="unknown_tool")
        return specs[tool]

    async def close(self) -> None:
        """Close all connections at the same time: a server that does not end by itself takes seconds."""
        if len(self._connections) > 1:
            import asyncio

            await asyncio.gather(*(connection.close() for connection in self._connections.values()))
            return
        for connection in self._connections.values():
            await connection.close()


def is_disabled(server: str) -> str:
    return f'the MCP server "{server}" is disabled in .mcp.json; take "disabled" out there to use it'


def unknown(what: str, name: str, names: Mapping[str, object], where: str = "") -> str:
    """Return the message about an unknown name."""
    others = f"there are: {', '.join(sorted(names)[:20])}" if names else "none exist"
    hint = did_you_mean(nearest(name, names), others, form='"{}"')
    return f'unknown {what} "{name}"{where}; {hint}'
