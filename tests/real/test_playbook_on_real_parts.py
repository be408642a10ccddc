"""A playbook on real parts only: MCP servers over stdio and streamable HTTP, a Python function, the embedded model."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.processes import started
from tests.warm import run_quire

from quire.models.downloads import pulled_model

SERVED = Path(__file__).parents[1] / "tools" / "served.py"
pytestmark = pytest.mark.skipif(pulled_model("smollm2") is None, reason="quire model pull smollm2 has not been run")

PLAYBOOK = """# A letter

## INPUTS

- `name` (string): To whom

## STEP 1: Time

@tool(clock, get_current_time, {"timezone": "UTC"})
@output(now: json, extract:"timezone")

## STEP 2: Header

@tool(web, header, {"name": "x-greeting"})
@output(greeting)

## STEP 3: Count

@tool(python, letters, {"word": "{{name}}"})
@output(count: number)

## STEP 4: Write

@prompt(mcp:web/hello)

Write one short sentence to {{name}}. Begin with: {{greeting}}

@output(mood: enum, "glad", "sad", extract:"mood")

## STEP 5: Send

@elicit(confirm, "Send it? The mood is {{mood}}.")
"""


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        number, port = listening.fileno(), listening.getsockname()[1]
        server = subprocess.Popen([sys.executable, str(SERVED), str(number)], pass_fds=[number])
    yield f"http://127.0.0.1:{port}/mcp"
    server.kill()
    server.wait()


@pytest.fixture
def workspace(tmp_path: Path, web: str) -> Path:
    servers = {
        "clock": {"command": sys.executable, "args": ["-m", "mcp_server_time"]},
        "web": {"type": "http", "url": web, "headers": {"x-greeting": "Dear reader"}},
    }
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (tmp_path / "quire.toml").write_text('[tools]\nmodules = ["counting"]\n')
    (tmp_path / "counting.py").write_text(
        'import quire\n\n\n@quire.tool(effect="read")\ndef letters(word: str) -> int:\n    return len(word)\n'
    )
    (tmp_path / "letter.playbook.md").write_text(PLAYBOOK)
    return tmp_path


def quire(workspace: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return run_quire(arguments, cwd=workspace, env={**environ, "QUIRE_HOME": str(workspace / "home")}, timeout=180)


RUN = ("run", "letter.playbook.md", "-i", "name=Ada", "--model", "local:smollm2")


def test_an_untrusted_workspace_starts_nothing(workspace: Path) -> None:
    refused = quire(workspace, *RUN)
    assert refused.returncode == 6, refused.stderr
    assert "mcp_server_time" in refused.stderr
    assert "quire trust workspace" in refused.stderr


def test_the_whole_way_and_an_answer_from_another_process(workspace: Path) -> None:
    assert quire(workspace, "trust", "workspace", "--yes").returncode == 0
    waiting = quire(workspace, *RUN)
    assert waiting.returncode == 4, waiting.stderr
    assert "Send it? The mood is" in waiting.stderr
    state = json.loads(quire(workspace, "runs", "last", "--state").stdout)
    assert state["status"] == "awaiting_input"
    assert state["named_outputs"]["now"] == "UTC"
    assert state["named_outputs"]["greeting"] == "Dear reader"
    assert state["named_outputs"]["count"] == "3"
    assert state["named_outputs"]["mood"] in ("glad", "sad")
    assert state["step_outputs"]["4"].rstrip().endswith("}")
    wrong = quire(workspace, "answer", "last", "perhaps")
    assert wrong.returncode == 2
    done = quire(workspace, "answer", "last", "yes")
    assert (done.returncode, done.stdout) == (0, "yes\n")


def test_an_unknown_tool_is_found_before_anything_runs(workspace: Path) -> None:
    quire(workspace, "trust", "workspace", "--yes")
    (workspace / "letter.playbook.md").write_text(PLAYBOOK.replace("get_current_time", "get_current_tim"))
    refused = quire(workspace, *RUN)
    assert refused.returncode == 2, refused.stderr
    assert "get_current_time" in refused.stderr
    assert quire(workspace, "runs", "--json").stdout.strip() == "[]"


def test_kill_9_in_the_middle_of_a_reply_loses_nothing_that_was_recorded(workspace: Path) -> None:
    quire(workspace, "trust", "workspace", "--yes")
    environ = {**os.environ, "QUIRE_HOME": str(workspace / "home")}
    command = [sys.executable, "-m", "quire", *RUN, "--json"]
    with started(command, cwd=workspace, env=environ, stdout=subprocess.PIPE, text=True) as running:
        for line in running.stdout or ():
            if json.loads(line)["type"] == "delta":
                break
    rows = json.loads(quire(workspace, "runs", "--json").stdout)
    assert [row["status"] for row in rows] == ["interrupted"]
    before = _effects(workspace)
    assert {"1/tool", "2/tool", "3/tool", "4/prompt"} <= before.keys()
    resumed = quire(workspace, "resume", "last")
    assert resumed.returncode == 4, resumed.stderr
    after = _effects(workspace)
    assert {path: after[path] for path in before} == before


def _effects(workspace: Path) -> dict[str, float]:
    run = json.loads(quire(workspace, "runs", "last", "--json").stdout)
    return {effect["path"]: effect["at"] for effect in run["effects"] if effect["state"] == "ok"}
