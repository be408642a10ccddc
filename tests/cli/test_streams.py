"""What a run tells on stdout when that is full, closed, or of another encoding; and stdin that is closed."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.given import given

from quire.cli import BROKEN_PIPE
from quire.tools.python import PythonConnection

TWO = "# Two\n\n## STEP 1: First\n\nFirst.\n\n## STEP 2: Second\n\nSecond.\n"
ASKING = '# Ask\n\n## STEP 1: Only\n\n@elicit(input, "What?")\n'
CODE = "import sys; from quire.cli import main; sys.exit(main(sys.argv[1:]))"
RUN = "run page.md --script replies.json --json"


def shell(arguments: str, redirection: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {arguments} {redirection}', sys.executable, CODE],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def put(text: str, *replies: object) -> None:
    given({"page.md": text, "replies.json": replies})


def status() -> object:
    return json.loads(shell("runs last --json").stdout)["status"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_json_lines_are_utf_8_in_any_locale(workspace: Path, encoding: str) -> None:
    put(TWO, "héllo ☃", "the 😀 end")
    done = shell(RUN, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout.splitlines()[-1])["output"] == "the 😀 end"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_events_that_find_no_room_pause_the_run_and_say_why(workspace: Path) -> None:
    put(TWO, "one", "two")
    done = shell(RUN, "> /dev/full")
    assert done.returncode == 3
    assert "stdout could not be written (No space left on device)" in done.stderr
    assert "Ctrl-C" not in done.stderr and "Traceback" not in done.stderr and "quire resume" in done.stderr
    assert status() == "paused"


def test_events_that_nobody_reads_pause_the_run_and_say_why(workspace: Path) -> None:
    put(TWO, "one", "two")
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        done = subprocess.run(
            [sys.executable, "-c", CODE, *RUN.split()], stdout=gone, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == BROKEN_PIPE
    assert "Broken pipe" in done.stderr and "Ctrl-C" not in done.stderr
    assert status() == "paused"


@pytest.mark.parametrize("arguments", [RUN, RUN.removesuffix(" --json")])
def test_a_closed_stdout_is_no_failure_but_is_told_where_the_output_is(workspace: Path, arguments: str) -> None:
    put(TWO, "one", "two")
    done = shell(arguments, ">&-")
    assert done.returncode == 0 and "stdout is closed: quire runs " in done.stderr
    assert status() == "completed"


def test_a_closed_stdin_is_no_empty_answer(workspace: Path) -> None:
    put(ASKING)
    assert shell("run page.md", "< /dev/null").returncode == 4
    done = shell("answer last -", "<&-")
    assert (done.returncode, done.stderr) == (2, "quire: the answer: stdin is closed\n")
    assert status() == "awaiting_input"


@pytest.mark.parametrize("option", ["-i a=@-", "--inputs -"])
def test_a_closed_stdin_is_no_empty_input(workspace: Path, option: str) -> None:
    put("# In\n\n## INPUTS\n- `a` (string)\n\n## STEP 1: W\n\n{{a}}\n", "x")
    done = shell(f"run page.md --script replies.json {option}", "<&-")
    assert done.returncode == 2 and "stdin is closed" in done.stderr


TOOLS = """
import os, sys, subprocess, threading
import quire

print("while it is loaded")
early = sys.stdout


@quire.tool(effect="read")
def loud() -> str:
    print("by print")
    early.write("by a stream that it held on to\\n")
    subprocess.run([sys.executable, "-c", "print('by a program')"], check=True)
    os.write(1, b"by the number\\n")
    thread = threading.Thread(target=print, args=("by a thread",))
    thread.start()
    thread.join()
    return "quiet"


@quire.tool(effect="read")
async def later() -> str:
    print("by a coroutine")
    return "as well"
"""
CALLS = "# T\n\n## STEP 1: A\n\n@tool(python, loud, {})\n\n## STEP 2: B\n\n@tool(python, later, {})\n"
NOISE = [
    "while it is loaded",
    "by print",
    "by a stream that it held on to",
    "by a program",
    "by the number",
    "by a thread",
    "by a coroutine",
]


@pytest.mark.parametrize("options", ["", " --json", " --quiet"])
def test_what_tools_print_is_talk(workspace: Path, options: str) -> None:
    given({"loud_tools.py": TOOLS, "quire.toml": '[tools]\nmodules = ["loud_tools"]\n', "page.md": CALLS})
    assert shell("trust workspace --yes").returncode == 0
    done = shell(f"run page.md{options}")
    assert done.returncode == 0, done.stderr
    assert [line for line in NOISE if line not in done.stderr] == []
    if "json" in options:
        assert [json.loads(line) for line in done.stdout.splitlines()][-1]["output"] == "as well"
    else:
        assert done.stdout == "as well\n"


def test_a_module_that_prints_while_it_is_loaded_says_so_on_stderr(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("chatty_when_loaded.py").write_text('print("while it is loaded")\n')
    asyncio.run(PythonConnection(["chatty_when_loaded"], workspace).tools())
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "while it is loaded\n")
