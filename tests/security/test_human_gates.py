"""security N4: a question that asks for a yes is answered by a person, not by the model of an MCP client."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import select
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from tests.given import given
from tests.warm import run_quire

from quire.runs.runtime import Runtime
from quire.workspace.locate import account_name

DELETE = """
pipeline: delete
dialect: quire
steps:
  - tool: {name: ask, args: {prompt: "Really delete *production*?", type: confirm}, output: go}
  - tool: {name: file__write, args: {path: "DELETED", content: "gone"}, when: "go == 'yes'"}
"""


@pytest.fixture
def workspace(workspace: Path) -> Path:
    return given({"pipelines/delete.yaml": DELETE}, workspace)


async def _attack(folder: Path, *options: str) -> str:
    """A client without forms launches the document, and tries what a model would try. Returns the waiting run."""
    command = [sys.executable, "-P", "-m", "quire", "mcp", *options]
    server = StdioServerParameters(command=command[0], args=command[1:], cwd=str(folder), env=dict(os.environ))
    async with Client(stdio_client(server)) as client:
        result = await client.call_tool("pipeline__delete", {})
        assert isinstance(result.structured_content, dict)
        run = str(result.structured_content["data"]["run_id"])
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert ("pipeline_answer" in tools) is ("--answers" in options)
        for tool, more in (
            ("pipeline_answer", {"answer": "yes"}),
            ("pipeline_answer", {"answer": "yes", "step": "1"}),
            ("pipeline_resume", {"answer": "yes"}),
            ("pipeline_resume", {"answers": {"1": "yes"}}),
            ("run_pipeline", {"answers": {"1": "yes"}, "name": "delete"}),
            ("run_pipeline", {"unattended": True, "name": "delete"}),
        ):
            arguments: dict[str, Any] = {**({"run_id": run} if tool != "run_pipeline" else {}), **more}
            try:
                answer = await client.call_tool(tool, arguments)
            except MCPError as error:
                assert "unknown tool pipeline_answer" in str(error)
            else:
                assert answer.is_error, (tool, more, answer)
    return run


def _answer_on_a_terminal(folder: Path, run: str, typed: str | None) -> tuple[int, str]:
    """Start `quire answer RUN yes` on a terminal of its own and type; None types the word that is asked for."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.environ["TERM"] = "dumb"
        os.execv(sys.executable, [sys.executable, "-P", "-m", "quire", "answer", run, "yes"])
    said, answered, deadline = "", False, time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            said += os.read(terminal, 65536).decode()
        except OSError:
            break
        if not answered and (asked := re.search(r"type ([a-z]{6}): ", said)):
            answered = True
            os.write(terminal, f"{asked[1] if typed is None else typed}\n".encode())
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), said


@pytest.mark.parametrize("options", [[], ["--answers"]], ids=["by default", "--answers"])
async def test_a_model_over_mcp_does_not_say_yes(workspace: Path, options: list[str]) -> None:
    run = await _attack(workspace, *options)
    for words in (["yes"], ["no"], ["1", "yes"], ["yes", "--hold"], ["yes", "--detach"]):
        done = await asyncio.to_thread(run_quire, ["answer", run, *words], cwd=workspace, env=dict(os.environ))
        assert done.returncode == 6, done.stderr
        assert "was started over MCP" in done.stderr and "answered on a terminal" in done.stderr
    assert not (workspace / "DELETED").exists()
    code, said = await asyncio.to_thread(_answer_on_a_terminal, workspace, run, "yes")
    assert code == 6 and "nothing was answered" in said
    assert not (workspace / "DELETED").exists()
    code, said = await asyncio.to_thread(_answer_on_a_terminal, workspace, run, None)
    assert code == 0, said
    assert "Really delete *production*?" in said and "The answer will be: yes" in said
    assert (workspace / "DELETED").read_text() == "gone"
    runtime = Runtime.open(workspace)
    assert [one.by for one in await runtime.store.effects(run) if one.kind == "ask"] == [f"{account_name()} (terminal)"]
    await runtime.close()


async def test_a_run_that_such_a_run_launched_is_held_to_the_same(workspace: Path) -> None:
    """The launched run replies to a run, whose client is the one of MCP."""
    runtime = Runtime.open(workspace)
    from quire.library.document import load
    from quire.runs.options import RunOptions

    document = load(workspace / "pipelines" / "delete.yaml")
    outer = await runtime.start(document, {}, RunOptions(reply_to="mcp:client"))
    inner = await runtime.start(document, {}, RunOptions(reply_to=outer))
    own = await runtime.start(document, {}, RunOptions())
    for run in (inner, own):
        await runtime.drive(run)
    await runtime.close()
    for run, code in ((inner, 6), (own, 0)):
        done = await asyncio.to_thread(run_quire, ["answer", run, "yes"], cwd=workspace, env=dict(os.environ))
        assert done.returncode == code, done.stderr
