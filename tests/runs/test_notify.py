"""`[notify]`: a real program is told of runs that wait, are complete or have failed, and no run suffers from it."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.processes import started, wait_until

from quire.cli import main
from quire.cli.doctor import command as doctor
from quire.runs import notify

TELLER = """import json, os, sys
event = json.load(sys.stdin)
event["seen"] = [os.getcwd(), os.environ.get("MINE", ""), sys.argv[2:]]
with open(sys.argv[1], "a") as file:
    file.write(json.dumps(event) + "\\n")
"""
PLAIN = "# Weekly report\n\n## STEP 1: Say\n\nSay hello.\n"
ASKING = f"{PLAIN.replace('1: Say', '2: Say')}".replace(
    "## STEP", '## STEP 1: Ask\n\n@elicit(confirm, "Publish it?")\n\n## STEP', 1
)


class Place:
    def __init__(self, base: Path) -> None:
        self.work, self.home, self.told_file = base / "work", base / "home", base / "told.jsonl"
        self.work.mkdir()
        self.home.mkdir()
        (base / "tell.py").write_text(TELLER)
        self.command = [sys.executable, str(base / "tell.py"), str(self.told_file)]
        (self.work / "plain.playbook.md").write_text(PLAIN)
        (self.work / "asking.playbook.md").write_text(ASKING)
        (self.work / "good.json").write_text('[{"default": "Hello."}]')
        (self.work / "bad.json").write_text('[{"step": "1", "error": "no"}]')
        self.configure()

    def configure(self, command: list[str] | None = None, more: str = "") -> None:
        text = f"[notify]\ncommand = {json.dumps(command or self.command)}\n{more}"
        (self.home / "quire.toml").write_text(text)

    def told(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.told_file.read_text().splitlines()] if self.told_file.exists() else []

    def types(self) -> list[str]:
        return [one["type"] for one in self.told()]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place(tmp_path)
    monkeypatch.setenv("QUIRE_HOME", str(place.home))
    monkeypatch.setenv("MINE", "as the user's")
    monkeypatch.chdir(place.work)
    return place


RUN = ["run", "plain.playbook.md", "--script"]
WAITING = ["run", "asking.playbook.md", "--script", "good.json"]


def test_the_end_of_a_run_is_told_once(place: Place) -> None:
    assert main([*RUN, "good.json"]) == 0
    (event,) = place.told()
    run = event.pop("run")
    assert len(run) == 13
    assert event.pop("timestamp").endswith("+00:00")
    assert event.pop("subject").startswith("Weekly report · 20")
    assert event == {
        "type": "run.completed",
        "summary": "Weekly report: complete",
        "title": "Weekly report",
        "status": "completed",
        "document": "plain.playbook.md",
        "workspace": str(place.work),
        "step": "1",
        "cost": 0.0,
        "seen": [str(place.home), "as the user's", []],
    }


def test_a_failure_is_told_and_so_is_the_next_one(place: Place) -> None:
    assert main([*RUN, "bad.json"]) == 3
    assert main(["resume", "last"]) == 3
    assert place.types() == ["run.failed"] * 2
    assert place.told()[0]["error"] == {"kind": "model", "message": "no"}
    assert place.told()[0]["summary"] == "Weekly report: failed at step 1 (model)"


def test_a_question_is_told_once_however_often_the_run_is_resumed(place: Place) -> None:
    assert main(WAITING) == 4
    assert main(["resume", "last"]) == 4
    assert place.types() == ["run.waiting"]
    event = place.told()[0]
    assert event["summary"] == "Weekly report: waits for an answer at step 1"
    (question,) = event["questions"]
    assert (question["step"], question["kind"], question["prompt"]) == ("1", "confirm", "Publish it?")
    assert main(["answer", "last", "yes"]) == 0
    assert place.types() == ["run.waiting", "run.completed"]


def test_a_breakpoint_is_told(place: Place) -> None:
    (place.work / "two.playbook.md").write_text(PLAIN + "\n## STEP 2: Again\n\nSay it again.\n")
    assert main(["run", "two.playbook.md", "--script", "good.json", "--break", "1"]) == 4
    (event,) = place.told()
    assert (event["type"], event["status"]) == ("run.waiting", "paused")
    assert event["summary"] == "Weekly report: paused at step 1"


def test_only_the_events_that_are_wanted(place: Place) -> None:
    place.configure(more='events = ["run.failed"]\n')
    assert main([*RUN, "good.json"]) == 0
    assert main(WAITING) == 4
    assert place.told() == []
    assert main([*RUN, "bad.json"]) == 3
    assert place.types() == ["run.failed"]


def test_a_detached_run_tells_too(place: Place) -> None:
    with started([sys.executable, "-m", "quire", *RUN, "good.json", "--detach"], cwd=place.work) as process:
        process.wait(60)
    wait_until(lambda: place.types() == ["run.completed"])


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["no-such-program-here"], "cannot be started"),
        (["./tell"], "cannot be started"),
        ([sys.executable, "-c", "import sys; sys.exit('out of paper')"], "ended with status 1: out of paper"),
        (
            [sys.executable, "-c", "import sys; sys.exit(sys.argv[1])", "key-0123456789abcdef"],
            "status 1: [redacted:TELLER_API_KEY]",
        ),
        ([sys.executable, "-c", "pass"], ""),
    ],
)
def test_a_program_that_does_not_work_is_a_warning(
    place: Place,
    command: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TELLER_API_KEY", "key-0123456789abcdef")
    (place.work / "tell").write_text("#!/bin/sh\ntouch stolen\n")
    (place.work / "tell").chmod(0o755)
    place.configure(command)
    assert main([*RUN, "good.json"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "[notify]" in line]
    assert len(lines) == (1 if said else 0)
    assert said in "".join(lines)
    assert not (place.work / "stolen").exists(), "a program of the workspace"


def test_a_program_that_hangs_is_ended_with_all_that_it_started(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(notify, "SECONDS", 0.5)
    pids = tmp_path / "pids"
    code = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(600)"
    )
    place.configure([sys.executable, "-c", code])
    before = time.monotonic()
    assert main([*RUN, "good.json"]) == 0
    assert time.monotonic() - before < 300  # the program would sleep for 600
    assert "took longer than 0.5 s and was ended" in capsys.readouterr().err
    for pid in map(int, pids.read_text().split()):
        wait_until(lambda pid=pid: not _lives(pid))  # type: ignore[misc]


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2]
    except OSError:
        return False
    return not state.startswith("Z")


def test_secrets_are_not_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANK_PASSWORD", "hunter2-hunter2-hunter2")
    (place.work / "bad.json").write_text('[{"step": "1", "error": "it said hunter2-hunter2-hunter2"}]')
    assert main([*RUN, "bad.json"]) == 3
    assert "hunter2" not in place.told_file.read_text()


def test_a_store_that_is_gone_does_not_fail_a_run(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from quire.errors import StoreError

    async def broken(*given: object) -> None:
        raise StoreError("the disk is away")

    monkeypatch.setattr(notify, "_announce", broken)
    assert main([*RUN, "good.json"]) == 0
    assert "warning: [notify]: the disk is away" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[notify]\n", "[notify] needs a command: a list with a program and its arguments"),
        ("[notify]\ncommand = []\n", "[notify] needs a command"),
        (
            '[notify]\ncommand = "notify-send done"\n',
            "[notify] command must be a list of texts, not 'notify-send done'",
        ),
        ('[notify]\ncommand = [""]\n', "[notify] command must be a list of texts"),
        ('[notify]\ncommand = ["x"]\nevents = ["run.over"]\n', "events: 'run.over' is unknown; there are run.waiting"),
        ('[notify]\ncommand = ["x"]\nshell = true\n', "[notify] shell is not a setting"),
    ],
)
def test_wrong_settings_are_one_line(place: Place, text: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    (place.home / "quire.toml").write_text(text)
    assert main([*RUN, "good.json"]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "[notify]" in line]
    assert len(lines) == 1
    assert problem in lines[0]
    assert str(place.home / "quire.toml") in lines[0]


@pytest.mark.parametrize("file", ["quire.toml", "pyproject.toml"])
def test_a_workspace_starts_no_program(place: Place, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    (place.home / "quire.toml").write_text("")
    table = "notify" if file == "quire.toml" else "tool.quire.notify"
    (place.work / file).write_text(f"[{table}]\ncommand = {json.dumps(place.command)}\n")
    assert main([*RUN, "good.json"]) == 2
    assert "[notify] is read from the quire.toml of your user folder, not from a workspace: it starts a program" in (
        capsys.readouterr().err
    )
    assert place.told() == []


def test_the_doctor_knows_the_program(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.configure(["sh", "-c", "curl https://x/secret"])
    doctor(["--json"], standalone_mode=False)
    found = {one["what"]: one for one in json.loads(capsys.readouterr().out)}
    assert found["notify"]["detail"] == "sh is told when runs wait or end"
    place.configure(["no-such-program-here"])
    doctor(["--json"], standalone_mode=False)
    found = {one["what"]: one for one in json.loads(capsys.readouterr().out)}
    assert found["notify"]["state"] == "problem"


def test_nothing_is_left_of_a_program_that_was_told(place: Place) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    assert main([*RUN, "good.json"]) == 0
    assert set(Path("/proc/self/fd").iterdir()) <= before
