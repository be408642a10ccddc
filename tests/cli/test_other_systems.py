"""Verbs that only look work on a system without the calls of POSIX, such as Windows (newcomer M9).

A real one is not here: a process of its own loses what Windows does not have before Quire is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.directive_project import write_directives

from quire.os_flags import WINDOWS_VERBS

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
import select, quire.os_flags
def no_pipes(*arguments):
    raise OSError("an operation was attempted on something that is not a socket")
select.select = no_pipes
quire.os_flags.IS_WINDOWS = True
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
        (["new", "playbook", "fresh"], "fresh.playbook.md"),
        (["grammar", "playbook"], "## STEP"),
        (["docs"], "guides/checking"),
        (["doctor"], "on Windows only check, show, test, new, grammar, lsp, docs work: use WSL for all else"),
        (["eval", "1 + 1"], "2"),
    ],
)
def test_looking_needs_no_posix(project: Path, arguments: list[str], words: str) -> None:
    command = [sys.executable, "-c", WITHOUT, *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, timeout=120)
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    assert (done.returncode, words in done.stdout + done.stderr) == (0, True), done.stdout + done.stderr


@pytest.mark.parametrize("verb", ["run", "runs", "resume", "answer", "serve", "mcp", "lock", "sign", "trust", "model"])
def test_other_verbs_say_that_they_do_not_work_on_windows(project: Path, verb: str) -> None:
    command = [sys.executable, "-c", WITHOUT, verb, "page.playbook.md"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, timeout=120)
    assert done.stderr == f"quire: quire {verb} is not supported on Windows yet: use WSL\n"
    assert (done.returncode, done.stdout) == (2, "")


def test_the_readme_names_the_same_verbs() -> None:
    readme = " ".join((Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").split())
    *most, last = (f"`{verb}`" for verb in WINDOWS_VERBS)
    assert f"on Windows {', '.join(most)} and {last}." in readme


def test_an_editor_is_served_without_posix(project: Path) -> None:
    def framed(number: int | None, method: str, parameters: object) -> bytes:
        message = {"jsonrpc": "2.0", "method": method, "params": parameters} | ({"id": number} if number else {})
        body = json.dumps(message).encode()
        return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)

    uri = (project / "new.playbook.md").as_uri()
    document = {"uri": uri, "languageId": "markdown", "version": 1, "text": "# A\n\n## STEP 1: A\n\nSay {{b}}.\n"}
    sent = framed(1, "initialize", {"processId": None, "rootUri": project.as_uri(), "capabilities": {}})
    sent += framed(None, "initialized", {})
    sent += framed(None, "textDocument/didOpen", {"textDocument": document})
    sent += framed(2, "textDocument/documentSymbol", {"textDocument": {"uri": uri}})
    sent += framed(3, "shutdown", None) + framed(None, "exit", None)
    command = [sys.executable, "-c", WITHOUT, "lsp"]
    with subprocess.Popen(command, cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(sent)
        server.stdin.flush()
        written = server.stdout.read()
        assert server.wait(60) == 0
    answers = [json.loads(part.partition(b"\r\n\r\n")[2]) for part in written.split(b"Content-Length: ")[1:]]
    assert {answer["id"] for answer in answers if "result" in answer} >= {1, 2, 3}
    assert next(answer for answer in answers if answer.get("id") == 2)["result"][0]["name"]


def test_file_tools_stay_refused_without_no_follow(project: Path) -> None:
    program = """
import os, sys
del os.O_NOFOLLOW
from pathlib import Path
from quire.errors import ToolFailed
from quire.tools.builtin.paths import Places
try:
    with Places(Path.cwd()).locate("page.playbook.md"):
        print("opened")
except ToolFailed as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=project, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("the file tools need a system that"), done.stderr
