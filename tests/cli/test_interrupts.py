"""Ctrl-C and SIGTERM while a server starts for a run: the process ends, and the server with it."""

from __future__ import annotations

import json
import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.warm import start_quire

from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.locate import find_workspace

pytest.importorskip("mcp")

SECONDS = 60
# Holds the FIFO open for as long as it lives, and says there when it is up and when its standard input ends.
EARLY = 'exec 3>"$0"; echo up >&3; cat >/dev/null; echo asked >&3; exec sleep 1000'
SPOKEN_TO = f"read line; {EARLY}"


class Fifo:
    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def word(self) -> str:
        """What is written next; empty when all writers are gone."""
        assert select.select([self._end], [], [], SECONDS)[0], "nothing was written"
        return os.read(self._end, 100).decode().strip()

    def close(self) -> None:
        os.close(self._end)


@pytest.fixture
def fifo(workspace: Path) -> Iterator[Fifo]:
    made = Fifo(workspace / "fifo")
    yield made
    made.close()


@pytest.mark.parametrize(
    ("server", "sent", "times"),
    [
        (EARLY, signal.SIGINT, 1),
        (EARLY, signal.SIGTERM, 1),
        (SPOKEN_TO, signal.SIGINT, 1),
        (SPOKEN_TO, signal.SIGINT, 2),
        (SPOKEN_TO, signal.SIGTERM, 2),
    ],
)
def test_a_server_that_does_not_answer_is_stopped(
    workspace: Path, fifo: Fifo, server: str, sent: signal.Signals, times: int
) -> None:
    entry = {"command": "sh", "args": ["-c", server, str(fifo.path)]}
    (workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {"slow": entry}}))
    (workspace / "t.playbook.md").write_text("# T\n\n## STEP 1: A\n\n@tool(slow, look)\n")
    confirm(load_settings(find_workspace(workspace)))
    errors = workspace.parent / "errors"
    with errors.open("wb") as file:
        running = start_quire(["run", "t.playbook.md"], cwd=workspace, env=os.environ, stderr=file.fileno())
    try:
        assert fifo.word() == "up"
        running.send_signal(sent)
        if times == 2:
            assert fifo.word() == "asked"
            running.send_signal(sent)
        code = running.wait(SECONDS)
    finally:
        running.kill()
    said = errors.read_text()
    assert code == 130
    assert said.endswith("\nnothing was started\n")
    assert [word for word in iter(fifo.word, "") if word != "asked"] == []
    assert not (workspace / ".quire" / "quire.db").exists()
