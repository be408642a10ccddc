"""A request with a key starts one run, however often and through which door it is sent."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.given import given

import quire
from quire.cli import main
from quire.errors import CannotStart, KeyReused

HELLO = "pipeline: hello\nsteps:\n- transform: {value: \"'hi ' + ctx.name\"}\n"
ASK = '# Ask\n\n## STEP 1: Decide\n\n@elicit(confirm, "Publish?")\n'

pytestmark = pytest.mark.usefixtures("workspace")


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    whole = [sys.executable, "-P", "-m", "quire", *arguments]
    return subprocess.run(whole, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)


def runs() -> list[str]:
    listed = command("runs", "--json")
    return [row["id"] for row in json.loads(listed.stdout)]


def test_the_same_command_is_one_run_and_prints_its_output_again() -> None:
    given({"hello.yaml": HELLO})
    first = command("run", "hello.yaml", "-i", "name=a", "--id", "day-1")
    again = command("run", "hello.yaml", "-i", "name=a", "--id", "day-1")
    assert (first.returncode, first.stdout) == (again.returncode, again.stdout) == (0, "hi a\n")
    other = command("run", "hello.yaml", "-i", "name=b", "--id", "day-1")
    assert other.returncode == 2
    assert f"the key day-1 was used for another request: it has started run {runs()[0]}" in other.stderr
    assert command("run", "hello.yaml", "-i", "name=b", "--id", "day 1").returncode == 2
    assert len(runs()) == 1


def test_many_processes_at_once_start_one_run() -> None:
    given({"hello.yaml": HELLO})
    whole = [sys.executable, "-P", "-m", "quire", "run", "hello.yaml", "-i", "name=a", "--id", "k", "--quiet"]
    processes = [subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert len(runs()) == 1
    assert "hi a\n" in outputs


def test_a_run_that_waits_is_shown_and_its_end_is_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    given({"ask.playbook.md": ASK})
    assert [main(["run", "ask.playbook.md", "--id", "k", "--quiet"]) for _ in range(2)] == [4, 4]
    assert main(["answer", "last", "yes", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["run", "ask.playbook.md", "--id", "k", "--quiet"]) == 0
    assert capsys.readouterr().out == "yes\n"
    # An edit of the file is not another request.
    given({"ask.playbook.md": ASK.replace("Publish?", "Really?")})
    assert main(["run", "ask.playbook.md", "--id", "k", "--quiet"]) == 0
    assert main(["run", "ask.playbook.md", "--id", "k", "--quiet", "--break", "1"]) == 2


def test_a_run_left_between_its_start_and_its_drive_continues() -> None:
    given({"hello.yaml": HELLO})

    async def start() -> str:
        return await quire.run(Path("hello.yaml"), inputs={"name": "a"}, id="k").start()

    run = asyncio.run(start())
    done = command("run", "hello.yaml", "-i", "name=a", "--id", "k", "--quiet")
    assert (done.returncode, done.stdout, runs()) == (0, "hi a\n", [run])


async def test_python_has_the_earlier_result() -> None:
    given({"hello.yaml": HELLO})
    first = await quire.run("hello.yaml", inputs={"name": "a"}, id="k")
    again = await quire.run("hello.yaml", inputs={"name": "a"}, id="k")
    assert (again.run, again.value, again.status) == (first.run, "hi a", "completed")
    with pytest.raises(KeyReused, match="another request"):
        await quire.run("hello.yaml", inputs={"name": "b"}, id="k")
    with pytest.raises(CannotStart, match="1 to 200 characters"):
        quire.run("hello.yaml", id="ü")
    text = await quire.run(HELLO, inputs={"name": "a"}, id="t")
    with pytest.raises(KeyReused):
        await quire.run(HELLO.replace("hi", "ho"), inputs={"name": "a"}, id="t")
    assert text.run != first.run


def test_a_claim_in_a_clone_names_no_result_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given({"hello.yaml": HELLO})
    assert command("run", "hello.yaml", "-i", "name=a", "--id", "k").returncode == 0
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path / "another user"))
    forged = command("run", "hello.yaml", "-i", "name=a", "--id", "k")
    assert (forged.returncode, forged.stdout) == (6, "")
    assert "it was not started by you" in forged.stderr


def test_the_run_of_a_key_was_removed() -> None:
    given({"hello.yaml": HELLO})
    assert command("run", "hello.yaml", "-i", "name=a", "--id", "k").returncode == 0
    (run,) = runs()
    assert command("runs", "prune", "--older-than", "0s").returncode == 0
    gone = command("run", "hello.yaml", "-i", "name=a", "--id", "k")
    assert (gone.returncode, gone.stdout) == (2, "")
    assert f"the key k has started run {run}, which was removed: use another key" in gone.stderr
