"""The actions through the gate, as a thread makes them: what create_directive does, and what it must not."""

from __future__ import annotations

import pytest
from tests.library.item_tools.shelf import Shelf, directive

from quire.engine.requests import ToolRequest
from quire.errors import Denied, ToolFailed
from quire.library.verify import VerifiedItems
from quire.runs.workspace_gate import open_gate
from quire.tools.gate import Gate
from quire.trust.capabilities import Grants
from quire.values import Value


def opened(shelf: Shelf) -> Gate:
    """With just the permissions of the built-in directive."""
    thread = VerifiedItems.of(shelf.settings).directive("rye/core/create_directive")
    assert thread
    grants = Grants.of(one.capability for one in thread.permissions)
    return open_gate(shelf.settings, grants, {"PATH": "/usr/bin:/bin"}, run="run-7")


async def call(gate: Gate, tool: str, **arguments: Value) -> dict[str, Value]:
    place, name = ("rye", tool.removeprefix("rye_")) if tool.startswith("rye_") else ("", tool)
    answer = await gate.call(ToolRequest("thread/turn[1]/tool[0]", "1", place, name, arguments), "effect-1")
    assert isinstance(answer, dict)
    return answer


async def test_a_directive_is_found_written_signed_and_read(shelf: Shelf) -> None:
    async with opened(shelf) as gate:
        found = await call(gate, "rye_fetch", query="tell_time", scope="directive")
        assert found["total"] == 0
        permissions = "<fetch><directive>*</directive></fetch>"
        text = directive("tell_time", permissions, category="clock")
        await call(gate, "rye/file-system/write", path=".ai/directives/clock/tell_time.md", content=text)
        unsigned = await call(gate, "rye_fetch", item_type="directive", item_id="tell_time")
        assert unsigned["error_type"] == "integrity"
        signed = await call(gate, "rye_sign", item_type="directive", item_id="clock/tell_time")
        assert (signed["status"], signed["run"]) == ("signed", "run-7")
        read = await call(gate, "rye_fetch", item_type="directive", item_id="tell_time")
        assert read["signature"] == "ok"


async def test_no_more_than_the_run_may_do(shelf: Shelf) -> None:
    async with opened(shelf) as gate:
        strong = directive("own_all", "*<acknowledge risk='unrestricted'>x</acknowledge>")
        await call(gate, "rye/file-system/write", path=".ai/directives/demo/own_all.md", content=strong)
        with pytest.raises(Denied, match="may do what this run may not"):
            await call(gate, "rye_sign", item_type="directive", item_id="demo/own_all")
        denied: list[tuple[str, dict[str, Value]]] = [
            ("rye/file-system/write", {"path": ".ai/knowledge/demo/k.md", "content": "x"}),
            ("rye/file-system/write", {"path": ".ai/config/capability_risk.yaml", "content": "x"}),
            ("rye/file-system/edit_lines", {"path": "a", "changes": [{"line_id": "a", "new_content": ""}]}),
            ("rye/bash", {"command": "id"}),
            ("rye_fetch", {"item_type": "knowledge", "item_id": "Identity"}),
            ("rye_fetch", {"query": "who", "scope": "knowledge"}),
            ("rye_sign", {"item_type": "knowledge", "item_id": "demo/none"}),
            ("rye_execute", {"item_type": "directive", "item_id": "rye/agent/core/base"}),
        ]
        for tool, arguments in denied:
            with pytest.raises(Denied):
                await call(gate, tool, **arguments)


async def test_arguments_are_held_to_the_schema(shelf: Shelf) -> None:
    async with opened(shelf) as gate:
        wrong: list[dict[str, Value]] = [
            {"item_type": "widget", "item_id": "a"},
            {"item_id": "a", "destination": "system"},
            {"item_id": "a", "limit": 0},
            {"path": "/etc/passwd"},
        ]
        for arguments in wrong:
            with pytest.raises(ToolFailed, match="does not take these arguments"):
                await call(gate, "rye_fetch", **arguments)
