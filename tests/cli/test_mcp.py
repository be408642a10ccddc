"""`quire mcp` before it serves: what it refuses to start with. The server itself is tested in tests/mcp_server."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from tests.warm import running_quire

from quire.cli.serve import mcp_command

Invoke = Callable[..., Result]


def test_a_workspace_that_nobody_confirmed_is_not_served(invoke: Invoke, workspace: Path) -> None:
    (workspace / ".mcp.json").write_text('{"mcpServers": {"x": {"command": "some-program"}}}')
    result = invoke(mcp_command)
    assert result.exit_code == 6
    assert "some-program" in result.stderr and "quire trust workspace" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "token", "said"),
    [
        (["missing.playbook.md"], "", "missing.playbook.md"),
        (["broken.yaml"], "", "cannot run"),
        (["--model", "x:y", "--script", "z"], "", "exclude each other"),
        (["--http", "--host", "0.0.0.0"], "", "only this machine"),
        (["--http"], "short", "QUIRE_MCP_TOKEN"),
        (["--http", "--port", "70000"], "", "70000"),
        (["--allow", "shel"], "", "--allow shel: no tool or capability of that name exists; did you mean shell?"),
        (["--allow", "nope", "--allow", "never"], "", "--allow never: no tool"),
        (["--allow", ""], "", "--allow is empty"),
        (["--model", ""], "", "--model is empty"),
        (["--script", " "], "", "--script is empty"),
    ],
)
def test_what_it_does_not_start_with(
    invoke: Invoke, workspace: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], token: str, said: str
) -> None:
    (workspace / "broken.yaml").write_text("pipeline: x\nsteps: 5\n")
    monkeypatch.setenv("QUIRE_MCP_TOKEN", token)
    result = invoke(mcp_command, *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("token", ["", "a-token-of-the-user"])
def test_the_url_and_the_token_are_said_on_stderr(workspace: Path, token: str) -> None:
    environ = {**os.environ, "QUIRE_MCP_TOKEN": token}
    (stdout, out), (stderr, err) = os.pipe(), os.pipe()
    with (
        os.fdopen(stdout) as said,
        os.fdopen(stderr) as told,
        running_quire(["mcp", "--http"], cwd=workspace, env=environ, stdout=out, stderr=err) as process,
    ):
        os.close(out)
        os.close(err)
        first = told.readline()
        assert "at http://127.0.0.1:" in first
        if not token:
            assert "Authorization: Bearer " in told.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert token == "" or token not in told.read()
        assert said.read() == ""
