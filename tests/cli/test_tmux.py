"""`quire run` in tmux: real pastes, arrow keys, wide letters, a window that changes its size, and job control."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from rich.cells import cell_len
from tests.processes import PATIENCE, wait_until

from quire.cli import main

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None or shutil.which("bash") is None, reason="there is no tmux, or no bash"
)

TITLE = "A rather long title 日本語の長い題名 that a narrow window has no room for at all"
ASKING = """# Ask

## STEP 1: Text

@elicit(input, "What is it about?")

## STEP 2: Way

@elicit(select, "Which way?", "ship it", "rework", "日本語")

## STEP 3: Sure

@elicit(confirm, "Sure?")

## STEP 4: Write

Write <{{__elicit_step_1}}> <{{__elicit_step_2}}> <{{__elicit_step_3}}>.
"""


class Tmux:
    """A bash in a window of a tmux server of its own."""

    def __init__(self, folder: Path) -> None:
        self._socket = f"quire-{uuid.uuid4().hex[:8]}"
        self._folder = folder
        environ = {"PS1": "SHELL> ", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "QUIRE_HOME": os.environ["QUIRE_HOME"]}
        names = [part for name, value in environ.items() for part in ("-e", f"{name}={value}")]
        size = ["-x", "100", "-y", "30", "-c", str(folder)]
        self.call("new-session", "-d", *size, *names, "bash", "--norc", "--noprofile", "-i")
        self.call("set-option", "-g", "status", "off")

    def call(self, *arguments: str) -> str:
        command = ["tmux", "-u", "-L", self._socket, "-f", os.devnull, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout

    def screen(self) -> str:
        return self.call("capture-pane", "-p")

    def all_lines(self) -> str:
        """With what has left the screen; lines that the terminal has wrapped are one."""
        return self.call("capture-pane", "-p", "-J", "-S", "-")

    def wait_for(self, text: str, times: int = 1) -> None:
        wait_until(lambda: self.screen().count(text) >= times, lambda: f"{text!r} did not come:\n{self.screen()}")

    def press(self, *keys: str) -> None:
        self.call("send-keys", *keys)

    def paste(self, text: str) -> None:
        file = self._folder / "pasted.txt"
        file.write_text(text)
        self.call("load-buffer", str(file))
        self.call("paste-buffer", "-p")

    def resize(self, columns: int) -> None:
        self.call("resize-window", "-x", str(columns), "-y", "30")

    def quire(self, *arguments: str) -> None:
        self.press("-l", shlex.join([sys.executable, "-m", "quire", *arguments]))
        self.press("Enter")


@pytest.fixture
def tmux(workspace: Path) -> Iterator[Tmux]:
    window = Tmux(workspace)
    try:
        window.wait_for("SHELL>")
        yield window
    finally:
        socket = Path(window.call("display-message", "-p", "#{socket_path}").strip())
        window.call("kill-server")
        socket.unlink(missing_ok=True)


def test_answers_are_typed_pasted_and_chosen(tmux: Tmux, workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """G2 and its neighbours: nothing that a person does at a prompt lands in an answer."""
    (workspace / "ask.playbook.md").write_text(ASKING)
    (workspace / "replies.json").write_text('["the end"]')
    tmux.quire("run", "ask.playbook.md", "--script", "replies.json")
    tmux.wait_for("answer: ")
    tmux.paste("first line\nzweite Zeile\n日本の行")
    tmux.wait_for("日本の行")
    tmux.press("Left", "Left", "語")
    tmux.wait_for("日本語の行")
    tmux.press("Enter")
    tmux.wait_for("an option: ")
    tmux.press("Down", "Up")
    tmux.resize(40)
    tmux.wait_for("an option: 日本語")
    tmux.press("Enter")
    tmux.wait_for("yes or no: ")
    tmux.press("C-z")
    tmux.wait_for("Stopped")
    tmux.press("fg", "Enter")
    tmux.wait_for("yes or no: ")
    tmux.press("y", "x", "Left", "Right", "BSpace", "e", "s", "Enter")
    tmux.wait_for("the end\n")
    assert main(["runs", "last", "--prompt", "4"]) == 0
    assert "Write <first line\nzweite Zeile\n日本語の行> <日本語> <yes>." in capsys.readouterr().out


def is_painted(tmux: Tmux, columns: int) -> bool:
    """Whether the line of step 2 is whole, or cut where the window ends: its last column is never painted."""
    lines = [line for line in tmux.screen().splitlines() if line.startswith("○ 2 ")]
    return any(
        line.endswith(TITLE) or (line[-1] == "…" and cell_len(line) in (columns - 1, columns - 2)) for line in lines
    )


def test_the_picture_is_there_once_whatever_the_size(tmux: Tmux, workspace: Path) -> None:
    """A narrower window wraps the picture; nothing above it is lost, and after Ctrl-Z nothing below it."""
    (workspace / "slow.md").write_text(f"# Slow\n\n## STEP 1: {TITLE}\n\nGo.\n\n## STEP 2: {TITLE}\n\nGo.\n")
    (workspace / "replies.json").write_text('[{"reply": "x", "delay_ms": 600000}]')
    tmux.press("-l", "clear; seq 40; ")
    tmux.quire("run", "slow.md", "--script", "replies.json")
    tmux.wait_for("Ctrl-C pauses")
    for columns in (60, 36, 50, 90):
        tmux.resize(columns)
        wait_until(partial(is_painted, tmux, columns), tmux.screen)
        shown = tmux.all_lines()
        assert shown.count("Ctrl-C") == 1 and shown.count("○ 2 ") == 1, shown
        assert re.search(r"39\n40\nmodel:\s+script:", shown), shown
    tmux.press("C-z")
    tmux.wait_for("Stopped")
    tmux.press("fg", "Enter")
    tmux.wait_for("Ctrl-C pauses", 2)
    assert "Stopped" in tmux.screen() and "SHELL> fg" in tmux.screen()
    tmux.press("C-c")
    tmux.wait_for("Ctrl-C again")
    tmux.press("C-c")
    tmux.wait_for("quire resume")
