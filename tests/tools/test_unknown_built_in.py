"""A name at `quire` that no built-in tool has is said to be none; one that there is stays shut without a grant."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.cli import main
from quire.engine.requests import ToolRequest
from quire.errors import BadInputs, Denied, ToolFailed
from quire.runs.workspace_gate import open_gate
from quire.tools.gate import Gate
from quire.trust.capabilities import Grants
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace

READ = "rye.execute.tool.rye.file-system.read"
PAGE = """# Page

## STEP 1: Use

@tool(quire, {tool}, {{"path": "a.txt"}})
"""


def gate_of(folder: Path, *granted: str) -> Gate:
    (folder / "a.txt").write_text("text", encoding="utf-8")
    environ = {"QUIRE_HOME": str(folder / "home")}
    return open_gate(load_settings(Workspace(folder), environ), Grants.of(granted), environ)


def call(tool: str, connection: str = "quire") -> ToolRequest:
    return ToolRequest("1/tool", "1", connection, tool, {"path": "a.txt"})


@pytest.mark.parametrize(
    ("tool", "hint"),
    [("file__raed", 'did you mean "file__read"?'), ("nothing", "there are: ask, file__edit"), ("", "there are: ask")],
)
@pytest.mark.parametrize("granted", [(), ("rye.*",)])
async def test_a_tool_that_is_not_there(tmp_path: Path, granted: tuple[str, ...], tool: str, hint: str) -> None:
    async with gate_of(tmp_path, *granted) as gate:
        with pytest.raises(ToolFailed) as failed:
            await gate.call(call(tool), "e")
    assert failed.value.kind == "unknown_tool"
    assert f'unknown tool "{tool}" at quire; {hint}' in failed.value.message


@pytest.mark.parametrize("tool", ["file__write", "shell", "rye/bash", "http__get"])
async def test_a_tool_that_is_there_needs_leave(tmp_path: Path, tool: str) -> None:
    async with gate_of(tmp_path, READ) as gate:
        with pytest.raises(Denied, match="permission denied"):
            await gate.call(call(tool), "e")


@pytest.mark.parametrize(("connection", "tool"), [("python", "nothing"), ("", "python/nothing")])
async def test_elsewhere_leave_comes_first(tmp_path: Path, connection: str, tool: str) -> None:
    async with gate_of(tmp_path) as gate:
        with pytest.raises(Denied, match="python/nothing needs the capability"):
            await gate.call(call(tool, connection), "e")


@pytest.mark.parametrize("tool", ["file__read", "rye/file-system/read", "rye/file-system/fs_read"])
async def test_every_name_of_a_tool_means_it(tmp_path: Path, tool: str) -> None:
    async with gate_of(tmp_path, READ) as gate:
        assert "text" in str(await gate.call(call(tool), "e"))
    async with gate_of(tmp_path) as gate:
        with pytest.raises(Denied, match=r"rye\.execute\.tool\.rye\.file-system\.read"):
            await gate.call(call(tool), "e")


async def test_what_somebody_else_found_is_listed_too(tmp_path: Path) -> None:
    async with gate_of(tmp_path) as gate:
        with pytest.raises(Denied):
            await gate.require([("quire", "shell")])
        with pytest.raises(BadInputs) as wrong:
            await gate.require([("quire", "shell")], ["one more"])
    assert wrong.value.problems[0] == "one more"
    assert "shell (rye/bash) needs the capability" in wrong.value.problems[1]


@pytest.mark.parametrize(
    ("tool", "hint"),
    [
        ("gret", 'did you mean "greet"?'),
        ("mor", 'did you mean "more"?'),
        ("file__raed", 'did you mean "file__read"?'),
        ("xyzzy", "there are: ask, deep/more, file__edit"),
    ],
)
def test_a_playbook_hears_of_documents_as_well(
    tmp_path: Path, here: Path, capsys: pytest.CaptureFixture[str], tool: str, hint: str
) -> None:
    (tmp_path / "playbooks" / "deep").mkdir(parents=True)
    for name in ("playbooks/greet", "playbooks/deep/more"):
        (tmp_path / f"{name}.playbook.md").write_text("# G\n\n## STEP 1: x\n\nSay hi.\n")
    (tmp_path / "page.md").write_text(PAGE.format(tool=tool))
    assert main(["run", "page.md"]) == 2
    assert capsys.readouterr().err.startswith(f'quire: unknown built-in tool and no document "{tool}"; {hint}')
