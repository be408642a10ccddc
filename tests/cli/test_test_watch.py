"""`quire test --watch` shows the failures that a change of a file makes, and ends with Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path
from queue import Queue
from subprocess import PIPE, Popen
from threading import Thread
from typing import IO

import pytest
from tests.processes import PATIENCE, started

DOCUMENT = "# Tea\n\n## STEP 1: Describe\n\nDescribe tea.\n"
TEST = 'cases:\n  - name: tea\n    model: {"1": x}\n    expect: {prompts: {"1": {contains: Describe tea}}}\n'

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


class Watching:
    """A process that watches, and its lines as they come."""

    def __init__(self, process: Popen[str]) -> None:
        assert process.stdout is not None and process.stderr is not None
        self.out, self.err = _lines(process.stdout), _lines(process.stderr)

    def failure(self) -> str:
        """The next head of a failure."""
        while not (line := self.out.get(timeout=PATIENCE)).startswith("FAILED"):
            pass
        return line

    def summary(self) -> str:
        """The next line about a run, without its time of the day."""
        line = self.err.get(timeout=PATIENCE)
        found = re.match(r"\d\d:\d\d:\d\d (.*) \(\d+\.\d\d s\) · watching \d+ files$", line)
        assert found, line
        return found[1]


def _lines(stream: IO[str]) -> Queue[str]:
    lines: Queue[str] = Queue()

    def read() -> None:
        for line in stream:
            lines.put(line)

    Thread(target=read, daemon=True).start()
    return lines


def test_watching(tmp_path: Path) -> None:
    (tmp_path / "quire.toml").write_text("")
    for name in ("tea", "other"):
        (tmp_path / f"{name}.playbook.md").write_text(DOCUMENT)
        (tmp_path / f"{name}.test.yaml").write_text(TEST)
    command = [sys.executable, "-m", "quire", "test", "--watch"]
    environ = {**os.environ, "QUIRE_HOME": str(tmp_path / "home"), "PYTHONUNBUFFERED": "1"}
    with started(command, cwd=tmp_path, env=environ, stdout=PIPE, stderr=PIPE, text=True) as process:
        watching = Watching(process)
        assert watching.summary() == "2 passed in 2 files"
        replaced = tmp_path / "new"
        replaced.write_text(DOCUMENT.replace("Describe tea", "Describe coffee"))
        replaced.replace(tmp_path / "tea.playbook.md")
        assert watching.failure() == "FAILED tea.test.yaml::tea\n"
        assert watching.summary() == "1 failed in 1 file"
        replaced.write_text(DOCUMENT)
        replaced.replace(tmp_path / "tea.playbook.md")
        assert watching.summary() == "1 passed in 1 file"
        (tmp_path / "third.playbook.md").write_text(DOCUMENT)
        replaced.write_text(TEST)
        replaced.replace(tmp_path / "third.test.yaml")
        assert watching.summary() == "1 passed in 1 file"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
