"""The gate ends every call of a tool after a time that is known before, whatever the tool does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from quire.engine.premises import GRACE_SECONDS, LONGEST_PYTHON, PYTHON_SECONDS, TOOL_SECONDS
from quire.engine.requests import ToolRequest
from quire.errors import ToolFailed
from quire.library.item_tools.connection import ItemsConnection
from quire.runs.connections import LaunchConnection
from quire.testing.virtual_loop import VirtualLoop
from quire.tools.builtin import SPECS
from quire.tools.builtin.connection import BuiltInConnection
from quire.tools.gate import Gate
from quire.tools.mcp import McpConnection
from quire.tools.python import PythonConnection, PythonTool
from quire.tools.registry import Connections, Timed, ToolSpec
from quire.trust.capabilities import Grants
from quire.trust.secrets import Redactor
from quire.values import Value

SPEC = ToolSpec("mcp/there/wait", "wait", "", {"type": "object"}, "read")


class Endless:
    """A tool that never answers."""

    def tool_id(self, tool: str) -> str:
        return f"mcp/there/{tool}"

    def known(self, tool: str) -> ToolSpec | None:
        return SPEC

    async def tools(self, *, refresh: bool = False) -> Mapping[str, ToolSpec]:
        return {"wait": SPEC}

    async def call(self, tool: ToolSpec, arguments: dict[str, Value], effect_id: str) -> Value:
        await asyncio.get_running_loop().create_future()
        return None

    async def prompt(self, name: str) -> str:
        return ""

    async def close(self) -> None:
        pass


class Timely(Endless):
    def longest(self, tool: ToolSpec, arguments: Mapping[str, Value]) -> float | None:
        return 77.0


@pytest.mark.parametrize(("connection", "seconds"), [(Timely(), 77.0), (Endless(), LONGEST_PYTHON)])
def test_a_tool_that_never_answers_is_ended(connection: Endless, seconds: float) -> None:
    loop = VirtualLoop()
    begun = loop.time()
    gate = Gate(Connections({"there": connection}), Grants.of(("rye.*",)), Redactor({}))

    async def call() -> None:
        await gate.call(ToolRequest("1", "1", "there", "wait", {}), "id")

    with pytest.raises(ToolFailed, match=rf"took longer than {seconds:g} s"):
        loop.run(call())
    assert loop.time() - begun == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("tool", "arguments", "seconds"),
    [
        ("shell", {}, 60.0),
        ("shell", {"timeout": 600}, 600.0),
        ("http__get", {}, 30.0),
        ("http__send", {"timeout": 120}, 120.0),
        ("file__read", {}, 300.0),
        ("file__grep", {}, 300.0),
    ],
)
def test_built_in_tools_end_a_minute_after_their_own_limit(
    tmp_path: Path, tool: str, arguments: Mapping[str, Value], seconds: float
) -> None:
    connection = BuiltInConnection(tmp_path, Grants(), {})
    assert connection.longest(SPECS[tool], arguments) == seconds + GRACE_SECONDS


def test_no_call_takes_longer_than_its_premise() -> None:
    connection = BuiltInConnection(Path(), Grants(), {})
    for name, spec in SPECS.items():
        kind = {"shell": "shell", "http__get": "http", "http__send": "http"}.get(name, "files")
        most = getattr(TOOL_SECONDS, kind)
        assert connection.longest(spec, {}) <= most
        assert connection.longest(spec, {"timeout": 600 if kind == "shell" else 120}) <= most


def test_a_function_without_a_limit_has_a_day() -> None:
    assert PythonTool("a", print, "read").seconds == PYTHON_SECONDS
    assert PythonTool("a", print, "read", None).seconds == LONGEST_PYTHON
    assert TOOL_SECONDS.of("python", PythonTool("a", print, "read").seconds) == TOOL_SECONDS.python


@pytest.mark.parametrize(
    "kind", [BuiltInConnection, McpConnection, PythonConnection, ItemsConnection, LaunchConnection]
)
def test_every_connection_says_how_long_its_calls_may_take(kind: type[object]) -> None:
    assert issubclass(kind, Timed)
