"""Verbs that only look work on a system without the calls of POSIX, such as Windows (newcomer M9).

A real one is not here: a process of its own loses what Windows does not have before Quire is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.directive_project import write_directives

WITHOUT = """
import asyncio, concurrent.futures, os, platformdirs.unix, shutil, signal, subprocess, sys, tempfile
lost = "O_NONBLOCK O_NOFOLLOW O_CLOEXEC O_DIRECTORY O_NOCTTY fork getuid geteuid getgid getpgid getpgrp killpg setsid"
lost += " fchmod chown sched_getaffinity register_at_fork mkfifo openpty statvfs uname ttyname tcgetpgrp WNOHANG nice"
for name in lost.split():
    delattr(os, name)
for name in "SIGHUP SIGKILL SIGCONT SIGWINCH SIGTSTP SIGUSR1 SIGCHLD SIGPIPE SIGQUIT SIGALRM pthread_sigmask".split():
    delattr(signal, name)
for name in "fcntl pwd resource grp termios tty pty readline".split():
    sys.modules[name] = None
os.supports_dir_fd = set()
from quire.cli import main
sys.exit(main(sys.argv[1:]))
"""
TEST = "document: page.playbook.md\ncases:\n- name: it writes\n  model: [hello]\n  expect: {output: hello}\n"
DIRECTIVE_TEST = """document: .ai/directives/project/notes/take_note.md
cases:
- name: it notes
  inputs: {text: abc}
  model: [{tool_calls: [{name: directive_return, input: {file: notes.txt}}]}]
  expect: {outputs: {file: notes.txt}}
"""


@pytest.fixture
def project(workspace: Path) -> Path:
    write_directives(workspace)
    (workspace / "page.playbook.md").write_text("# Page\n\n## STEP 1: A\n\nSay hello.\n")
    (workspace / "page.test.yaml").write_text(TEST)
    (workspace / "note.test.yaml").write_text(DIRECTIVE_TEST)
    (workspace / "p.yaml").write_text("pipeline: p\nsteps:\n- agent: {prompt: hi}\n")
    return workspace


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "."], "in 8 files"),
        (["show", "deploy_staging"], "deploy_staging 1.0.0"),
        (["show", "p.yaml"], "asks the model: hi"),
        (["test", "."], "2 passed"),
        (["test", ".", "-j", "2"], "2 passed"),
        (["list"], "take_note"),
        (["verify", "."], "4 of 4 verified"),
    ],
)
def test_looking_needs_no_posix(project: Path, arguments: list[str], words: str) -> None:
    command = [sys.executable, "-c", WITHOUT, *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, timeout=120)
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    assert (done.returncode, words in done.stdout + done.stderr) == (0, True), done.stdout + done.stderr
