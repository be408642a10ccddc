"""Messages fit the terminal: their lines break between words, and never in a path or a command."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.given import given

from quire.display.text import folded

WIDTHS = (40, 80, 120)
QUESTION = "Should the text about tea in site/index.md be published for all readers?"
OPTIONS = '"a first option that has no room in forty columns", "no"'
ASK = f'# Ask\n\n## STEP 1: Ask\n\n@elicit(select, "{QUESTION}", {OPTIONS})\n'
LONG = "a-folder-with-a-long-name/and-a-file-with-a-longer-name-than-forty-columns.playbook.md"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("short", ["short"]),
        (
            "set a key, or run `quire model pull smollm2`; more",
            ["set a key, or run", "  `quire model pull smollm2`; more"],
        ),
        ("to go on: quire resume 1nf-2 --limit calls=MORE", ["to go on:", "  quire resume 1nf-2 --limit calls=MORE"]),
        (
            "see what it does (quire show a.playbook.md --why)",
            ["see what it does", "  (quire show a.playbook.md --why)"],
        ),
        (f"there is {LONG} here", ["there is", f"  {LONG}", "  here"]),
        (
            "it needs mcp: /opt/my/python -m pip install 'quire-run[mcp]'",
            ["it needs mcp:", "  /opt/my/python -m pip install 'quire-run[mcp]'"],
        ),
        (
            "it needs mcp: uv pip install --python /opt/my/python 'quire-run[mcp]'",
            ["it needs mcp:", "  uv pip install --python /opt/my/python 'quire-run[mcp]'"],
        ),
        (
            "it needs mcp: uvx --with 'quire-run[mcp]' quire-run",
            ["it needs mcp:", "  uvx --with 'quire-run[mcp]' quire-run"],
        ),
        ("  indented words that are too many for a row", ["  indented words that are too many", "    for a row"]),
        ("日本語 の 長い 題名 が 狭い 窓 に 入らない", ["日本語 の 長い 題名 が 狭い 窓 に", "  入らない"]),
    ],
)
def test_a_row_breaks_between_words_and_commands(text: str, rows: list[str]) -> None:
    assert folded(text, 36).split("\n") == rows


def test_wide_enough_rows_stay_as_they_are() -> None:
    text = "ok       python:  3.11\n\n   a b"
    assert folded(text, 40) == text


Shown = Callable[..., str]


@pytest.fixture
def shown(workspace: Path, home: Path) -> Shown:
    """Print what a verb shows on a terminal with so many columns."""

    def run(columns: int, *words: str) -> str:
        own, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environ = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        command = [sys.executable, "-m", "quire", *words]
        # In a session of its own no keys can be asked for, so nothing waits for an answer.
        done = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environ, start_new_session=True
        )
        os.close(theirs)
        output = b""
        while True:
            try:
                part = os.read(own, 65536)
            except OSError:  # the end of a terminal
                break
            if not part:
                break
            output += part
        os.close(own)
        done.wait(60)
        return output.decode().replace("\r\n", "\n")

    return run


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize(
    ("words", "wholes"),
    [
        (["run", LONG], [LONG]),
        (["run", "ask.playbook.md", "--quiet"], ["site/index.md", "VALUE"]),
        (["run", "ask.playbook.md", "--brek", "1"], ["quire run --help"]),
        (["sign", "."], ["quire trust keys new"]),
        (["doctor"], ["quire trust keys new"]),
        (["trust", "list"], ["quire trust keys new"]),
        (["show", "ask.playbook.md", "--can", "execute tool shell"], ["rye.execute.tool.rye.bash", "--allow shell"]),
    ],
    ids=lambda value: " ".join(value)[:20],
)
def test_messages_fit_the_terminal(
    words: list[str], wholes: list[str], columns: int, shown: Shown, workspace: Path
) -> None:
    given({"ask.playbook.md": ASK}, workspace)
    text = shown(columns, *words)
    for whole in wholes:
        assert whole in text
    for line in text.split("\n"):
        # What is longer than a row is one path or one command.
        assert len(line) <= columns or len(line.split()) == 1 or "quire " in line or words[0] in ("runs", "doctor"), (
            line
        )
