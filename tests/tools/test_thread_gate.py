"""The gate as a thread sees it: what its grants allow of what the run may, and nothing that is denied."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.given import given

from quire.engine.requests import ToolRequest
from quire.errors import Denied
from quire.runs.workspace_gate import open_gate
from quire.tools.gate import Gate
from quire.trust.capabilities import Grants
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace

FILES = "rye.execute.tool.rye.file-system.*"
READ = "rye.execute.tool.rye.file-system.read"


def gate_of(folder: Path, granted: list[str], toml: str = "") -> Gate:
    work, home = folder / "work", folder / "home"
    given({"home/quire.toml": toml, "work/a.txt": "text"}, folder)
    environ = {"QUIRE_HOME": str(home)}
    return open_gate(load_settings(Workspace(work), environ), Grants.of(granted), environ)


def call(tool: str, *grants: str, **arguments: str) -> ToolRequest:
    return ToolRequest("thread/turn[1]/tool[0]/tool", "turn 1", "", tool, arguments, grants=grants)


@pytest.mark.parametrize(
    ("run", "thread", "allowed"),
    [
        ([FILES], [READ], True),
        ([READ], [FILES], True),
        ([FILES], [FILES], True),
        ([FILES], ["rye.execute.tool.rye.bash"], False),
        (["rye.execute.tool.rye.bash"], [FILES], False),
        ([FILES], [], False),
    ],
)
async def test_a_thread_may_what_both_allow(tmp_path: Path, run: list[str], thread: list[str], allowed: bool) -> None:
    async with gate_of(tmp_path, run) as gate:
        if allowed:
            result = await gate.call(call("rye/file-system/read", *thread, path="a.txt"), "e")
            assert "text" in str(result)
        else:
            with pytest.raises(Denied):
                await gate.call(call("rye/file-system/read", *thread, path="a.txt"), "e")


async def test_a_thread_is_offered_what_it_may_use(tmp_path: Path) -> None:
    async with gate_of(tmp_path, ["rye.*"]) as gate:
        offered = {one.name: one.id for one in await gate.offers_under([READ, "rye.fetch.knowledge.demo.*"])}
    assert offered == {
        "rye_file_system_read": "rye/file-system/read",
        "rye_fetch": "rye/fetch",
        "rye_execute": "rye/execute",
    }


async def test_what_is_denied_nobody_may_use(tmp_path: Path) -> None:
    toml = '[tools]\ndeny = ["file__read", "shell"]\n'
    async with gate_of(tmp_path, ["rye.*"], toml) as gate:
        with pytest.raises(Denied, match="deny"):
            await gate.call(call("rye/file-system/read", "rye.*", path="a.txt"), "e")
        with pytest.raises(Denied, match="deny"):
            await gate.call(ToolRequest("1/tool", "1", "quire", "file__read", {"path": "a.txt"}), "e")
        names = {one.id for one in await gate.offers_under(["rye.*"])}
        by_pattern = {one.name for one in await gate.offers(["file__*", "shell*"])}
    assert "rye/file-system/ls" in names
    assert not names & {"rye/file-system/read", "rye/bash"}
    assert "file__list" in by_pattern
    assert not by_pattern & {"file__read", "shell"}


@pytest.mark.parametrize(
    ("granted", "fields"),
    [
        (["rye.execute.tool.rye.file-system.*"], {"item_type", "item_id", "parameters"}),
        (
            ["rye.execute.tool.rye.file-system.*", "rye.execute.directive.*"],
            {"item_type", "item_id", "parameters", "dry_run", "thread", "async"},
        ),
    ],
)
async def test_a_thread_that_may_run_tools_only_is_not_told_of_threads(
    tmp_path: Path, granted: list[str], fields: set[str]
) -> None:
    """§4: small models fill in every field that there is."""
    gate = gate_of(tmp_path, ["rye.*"])
    (execute,) = [one for one in await gate.offers_under(granted) if one.id == "rye/execute"]
    properties = execute.schema["properties"]
    assert isinstance(properties, dict) and set(properties) == fields
