"""What becomes of the results and the errors of MCP servers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quire.engine.requests import ToolRequest
from quire.errors import ToolFailed
from quire.runs.workspace_gate import open_gate
from quire.tools.gate import Gate
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.grants import default_grants
from quire.workspace.locate import Workspace

pytest.importorskip("mcp")

SERVER = {"command": sys.executable, "args": [str(Path(__file__).with_name("plain_server.py"))]}
MIXED = "before\n[image, image/png, left out]\nbetween\n[resource file:///x.bin, application/pdf, left out]\nafter"
IMAGE = [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[Gate]:
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"plain": SERVER}}))
    environ = {**os.environ, "QUIRE_HOME": str(tmp_path / "home")}
    settings = load_settings(Workspace(tmp_path), environ)
    confirm(settings)
    async with open_gate(settings, default_grants(settings), environ) as opened:
        yield opened


async def call(gate: Gate, tool: str, *, as_data: bool = False) -> Value:
    return await gate.call(ToolRequest("1/tool", "1", "plain", tool, {}, form="data" if as_data else "text"), "e")


async def test_results_as_text_and_as_data(gate: Gate) -> None:
    """G7: structured content first, else JSON text is decoded where a pipeline reads it; a playbook keeps the text."""
    expected: dict[str, tuple[Value, Value]] = {
        "object": ('{"a": [1, 1.5]}', {"a": [1, 1.5]}),
        "array": (' [{"a": 1}] ', [{"a": 1}]),
        "number": ("1.10", "1.10"),
        "prose": ("{not json}", "{not json}"),
        "both": ("three apples", {"count": 3}),
        "structured": ({"count": 3}, {"count": 3}),
        "mixed": (MIXED, MIXED),
        "image": (IMAGE, IMAGE),
        "nothing": ("", ""),
    }
    found = {tool: (await call(gate, tool), await call(gate, tool, as_data=True)) for tool in expected}
    assert found == expected


async def test_errors_of_the_server_are_its_own(gate: Gate) -> None:
    """§3: its codes may be those by which the library says that the connection is gone, or that time is up."""
    for tool, said in {"overloaded": "the pool is empty", "late": "the backend gave up", "odd": "odd"}.items():
        with pytest.raises(ToolFailed) as failed:
            await call(gate, tool)
        assert (failed.value.kind, failed.value.message) == ("tool", f"MCP server plain: {said}")
    assert await call(gate, "calls") == "4", "nothing was called twice, and the server was not started again"


async def test_a_schema_without_a_type_is_that_of_an_object(gate: Gate) -> None:
    """§3: and no tool of the server is lost over it."""
    assert await call(gate, "typeless") == "1"


async def test_servers_are_not_offered_elicitation(gate: Gate) -> None:
    """§3: a server that sees none does not begin a call that needs a person."""
    assert "elicitation" not in str(await call(gate, "capabilities"))
