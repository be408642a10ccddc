"""real-work M4: an MCP server is started once for a run; the look before the start leaves its session to the run."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import wait_until
from tests.server.serve_process import server
from tests.warm import run_quire

import quire
from quire.engine.records import Status
from quire.library.document import load
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.tools import mcp_session

pytest.importorskip("mcp_server_time")

WRAPPER = """
import os, runpy, sys
with open({log!r}, "a") as file:
    file.write(f"{{os.getpid()}}\\n")
sys.argv = ["mcp_server_time"]
runpy.run_module("mcp_server_time", run_name="__main__")
"""
TIME = """
pipeline: clock
steps:
  - tool: {name: time/get_current_time, args: {timezone: UTC}, output: first}
  - tool: {name: ask, args: {prompt: "Go on?"}}
  - tool: {name: time/get_current_time, args: {timezone: UTC}, output: second}
  - tool: {name: time/get_current_time, args: {timezone: UTC}, output: third}
"""


class Clock:
    """A workspace with a server that notes each of its starts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        self._log = folder / "starts.log"
        wrapper = folder / "wrapper.py"
        wrapper.write_text(WRAPPER.format(log=str(self._log)))
        self.serve({"command": sys.executable, "args": [str(wrapper)]})
        (self.folder / "clock.yaml").write_text(TIME)
        (self.folder / "quire.toml").write_text("")
        assert run_quire(["trust", "workspace", "--yes"], cwd=self.folder, env=dict(os.environ)).returncode == 0

    def serve(self, entry: dict[str, object]) -> None:
        (self.folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"time": entry}}))

    @property
    def starts(self) -> list[int]:
        return [int(line) for line in self._log.read_text().split()] if self._log.exists() else []

    def quire(self, *arguments: str, code: int) -> str:
        done = run_quire(arguments, cwd=self.folder, env=dict(os.environ))
        assert done.returncode == code, done.stderr
        return done.stdout


@pytest.fixture
def clock(tmp_path: Path, home: Path) -> Clock:
    return Clock(tmp_path)


def test_a_server_is_started_once_for_a_run_and_once_to_go_on(clock: Clock) -> None:
    clock.quire("run", "clock.yaml", code=4)
    assert len(clock.starts) == 1
    clock.quire("answer", "last", "yes", "--hold", code=0)
    assert len(clock.starts) == 1
    clock.quire("resume", "last", code=0)
    assert len(clock.starts) == 2


def test_a_run_of_the_page_starts_it_once(clock: Clock) -> None:
    with server(clock.folder, "--port", "0") as one, one.client() as client:
        row = client.post("/runs", json={"document": "clock.yaml"}, headers={"prefer": "wait=60"}).json()
        assert row["status"] == "awaiting_input", row
        assert len(clock.starts) == 1


async def test_an_inline_launch_starts_it_once(clock: Clock) -> None:
    """Its tools are looked up before its definition is checked."""
    text = "pipeline: now\nsteps:\n- tool: {name: time/get_current_time, args: {timezone: UTC}}\n"
    envelope = await quire.launch(text, inline=True, workspace=clock.folder)
    assert envelope["status"] == "ok", envelope
    assert len(clock.starts) == 1


async def test_a_server_that_no_run_takes_is_ended(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_session, "KEEP_SECONDS", 0.2)
    runtime = Runtime.open(clock.folder)
    document = load(clock.folder / "clock.yaml")
    await runtime.start(document, {}, RunOptions())
    (first,) = clock.starts
    await asyncio.to_thread(wait_until, lambda: not _is_alive(first))
    monkeypatch.setattr(mcp_session, "KEEP_SECONDS", 600)
    await runtime.start(document, {}, RunOptions())
    assert _is_alive(clock.starts[1])
    await runtime.close()
    await asyncio.to_thread(wait_until, lambda: not _is_alive(clock.starts[1]))


async def test_a_kept_server_that_has_died_is_started_again(clock: Clock) -> None:
    runtime = Runtime.open(clock.folder)
    run = await runtime.start(load(clock.folder / "clock.yaml"), {}, RunOptions())
    os.kill(clock.starts[0], 9)
    await asyncio.to_thread(wait_until, lambda: not _is_alive(clock.starts[0]))
    await asyncio.sleep(0.2)
    assert (await runtime.drive(run)).status is Status.AWAITING_INPUT
    assert len(clock.starts) == 2
    await runtime.close()


@pytest.mark.skipif(shutil.which("npx") is None, reason="no npx")
@pytest.mark.skipif("QUIRE_NPM_SERVER" not in os.environ, reason="QUIRE_NPM_SERVER names no installed server")
def test_a_server_from_npm(clock: Clock, tmp_path: Path) -> None:
    """`npm install --prefix FOLDER @modelcontextprotocol/server-everything`, and QUIRE_NPM_SERVER=FOLDER."""
    script = next(Path(os.environ["QUIRE_NPM_SERVER"]).glob("node_modules/@modelcontextprotocol/*/dist/index.js"))
    wrapper = tmp_path / "wrapper.sh"
    wrapper.write_text(f"#!/bin/sh\necho $$ >> {tmp_path / 'starts.log'}\nexec node {script}\n")
    wrapper.chmod(0o755)
    clock.serve({"command": str(wrapper), "args": []})
    (clock.folder / "echo.yaml").write_text(
        "pipeline: echo\nsteps:\n  - tool: {name: time/echo, args: {message: hello}, output: said}\n"
    )
    subprocess.run([sys.executable, "-P", "-m", "quire", "trust", "workspace", "--yes"], cwd=clock.folder, check=True)
    clock.quire("run", "echo.yaml", code=0)
    assert len(clock.starts) == 1


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
