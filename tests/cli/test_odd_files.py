"""Pipes and devices in the place of files: what waits for a writer, or never ends, is refused at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.warm import run_quire

PAGE = "# T\n\n## INPUTS\n\n- `x` (string)\n\n## STEP 1: A\n\nSay {{x}}.\n"
SCRIPT = "- reply: done\n"
SECONDS = 60


@pytest.fixture
def page(workspace: Path) -> Path:
    (workspace / "t.playbook.md").write_text(PAGE)
    (workspace / "s.yaml").write_text(SCRIPT)
    os.mkfifo(workspace / "fifo")
    return workspace


def quire(*words: str, stdin: int = subprocess.DEVNULL, shares: tuple[int, ...] = ()) -> tuple[int, str]:
    if stdin == subprocess.DEVNULL and not shares:
        warm = run_quire(words, cwd=Path.cwd(), env=os.environ, timeout=SECONDS)
        return warm.returncode, warm.stderr + warm.stdout
    line = [sys.executable, "-m", "quire", *words]
    done = subprocess.run(
        line, stdin=stdin, capture_output=True, text=True, timeout=SECONDS, check=False, pass_fds=shares
    )
    return done.returncode, done.stderr + done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "t.playbook.md", "-i", "x=@fifo"], "-i x=@fifo: fifo cannot be read: it is not a regular file"),
        (["run", "t.playbook.md", "-i", "x=@/dev/zero"], "/dev/zero cannot be read: it is not a regular file"),
        (["run", "t.playbook.md", "--inputs", "fifo"], "fifo cannot be read: it is not a regular file"),
        (["run", "t.playbook.md", "-i", "x=1", "--script", "fifo"], "fifo cannot be read: it is not a regular file"),
        (["eval", "1", "--context", "@fifo"], "--context @fifo cannot be read: it is not a regular file"),
    ],
)
def test_named_on_the_command_line(page: Path, words: list[str], said: str) -> None:
    code, told = quire(*words)
    assert (code, said in told) == (2, True), told


@pytest.mark.parametrize("name", ["quire.toml", ".mcp.json", "pyproject.toml", "../home/quire.toml"])
def test_settings(page: Path, name: str) -> None:
    file = page / name
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    code, told = quire("run", "t.playbook.md", "-i", "x=1", "--script", "s.yaml")
    if name == "pyproject.toml":
        # Beside a quire.toml it is not read, and without one it is not taken for settings.
        assert code == 0, told
        (page / "quire.toml").unlink()
        assert quire("run", "t.playbook.md", "-i", "x=1", "--script", "s.yaml")[0] == 0
    else:
        assert code == 2, told
        assert f"{Path(name).name}: cannot be read: it is not a regular file" in told


def test_a_pipe_of_the_shell_is_read(page: Path) -> None:
    read, write = os.pipe()
    os.write(write, b"what a process wrote")
    os.close(write)
    words = ["run", "t.playbook.md", "-i", f"x=@/dev/fd/{read}", "--script", "s.yaml"]
    assert quire(*words, shares=(read,))[0] == 0
    os.close(read)
    code, told = quire("runs", "last", "--prompt", "1")
    assert (code, "Say what a process wrote." in told) == (0, True), told


def test_nothing_is_empty(page: Path) -> None:
    code, told = quire("run", "t.playbook.md", "-i", "x=@/dev/null", "--script", "s.yaml")
    assert (code, "missing input x" in told) == (2, True), told


def test_stdin_without_an_end(page: Path) -> None:
    with Path("/dev/zero").open("rb") as zero:
        code, told = quire("run", "t.playbook.md", "-i", "x=@-", "--script", "s.yaml", stdin=zero.fileno())
    assert (code, "larger than 100,000,000 bytes" in told) == (2, True), told
