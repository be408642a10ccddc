"""Tools of a server that are held to their pins: with `[trust] locked` a tool that has changed since it was locked
cannot be called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.analysis.lock.file import FILE_NAME, NOT_ASKED, LockedTool
from quire.engine.premises import TOOL_SECONDS
from quire.library.tool_pins import pin_of
from quire.tools.registry import Timed

if TYPE_CHECKING:
    from quire.tools.registry import Answer, Connection, ToolSpec
    from quire.values import Value


class PinnedConnection:
    """A `Connection` whose tools have to be those of a lock. A tool without a pin was not there when it was locked; one
    that was never asked about has nothing to be compared with."""

    def __init__(self, name: str, inner: Connection, pins: Mapping[str, LockedTool]) -> None:
        self._name = name
        self._inner = inner
        self._pins = pins

    def tool_id(self, tool: str) -> str:
        return self._inner.tool_id(tool)

    def known(self, tool: str) -> ToolSpec | None:
        found = self._inner.known(tool)
        return self._held(found) if found else None

    async def tools(self, *, refresh: bool = False) -> Mapping[str, ToolSpec]:
        found = await self._inner.tools(refresh=refresh)
        return {name: self._held(spec) for name, spec in found.items()}

    async def call(self, tool: ToolSpec, arguments: dict[str, Value], effect_id: str) -> Value | Answer:
        return await self._inner.call(tool, arguments, effect_id)

    def longest(self, tool: ToolSpec, arguments: Mapping[str, Value]) -> float | None:
        return self._inner.longest(tool, arguments) if isinstance(self._inner, Timed) else TOOL_SECONDS.of("mcp")

    async def prompt(self, name: str) -> str:
        return await self._inner.prompt(name)

    async def close(self) -> None:
        await self._inner.close()

    def keep(self) -> None:
        self._inner.keep()  # type: ignore[attr-defined]  # it is one to an MCP server

    def _held(self, spec: ToolSpec) -> ToolSpec:
        key = f"{self._name}/{spec.name}"
        pin = self._pins.get(key)
        if pin is not None and (pin.digest == NOT_ASKED or pin.digest == pin_of(spec).digest):
            return spec
        what = "was not there when it was locked" if pin is None else "is not the tool that was locked (LK107)"
        return replace(spec, changed=f"{key} {what}: look at it, then run quire lock, which writes {FILE_NAME} again")
