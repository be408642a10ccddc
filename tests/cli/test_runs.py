"""The list of runs, and one run from every side."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from tests.warm import start_quire

from quire.cli.runs import command, follow_run
from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import Batch, Event, RunUpdate, Status, Usage
from quire.library.document import load
from quire.models.scripted import ScriptedModel
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime

Invoke = Callable[..., Result]
MakeRun = Callable[..., str]

TWO_STEPS = """# Tea

## INPUTS

- `kind` (string): Which tea

## STEP 1: Choose

Choose a pot for {{kind}}.

@output(pot)

## STEP 2: Brew

Brew {{kind}} in {{pot}}.
"""

ASKS = """# Ask

## STEP 1: Think

Think.

## STEP 2: Choose

@elicit(select, "Which one?", "a", "b")

## STEP 3: Write

Write about {{__elicit_step_2}}.
"""

REPLIES = [
    {"reply": "the blue pot", "usage": {"input_tokens": 1200, "output_tokens": 30, "cost": 0.0042}},
    {"reply": "brewed", "usage": {"input_tokens": 10, "output_tokens": 3, "cost": 0.001}},
]


def done(make_run: MakeRun) -> str:
    return make_run(TWO_STEPS, REPLIES, {"kind": "green"})


def test_no_runs_is_said_on_stderr_and_makes_no_store(invoke: Invoke, workspace: Path) -> None:
    result = invoke(command)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no runs yet" in result.stderr
    assert not (workspace / ".quire").exists()


def test_the_list_is_aligned_newest_first(invoke: Invoke, make_run: MakeRun) -> None:
    first = done(make_run)
    second = make_run(ASKS, ["hm"])
    lines = invoke(command).stdout.splitlines()
    assert lines[0].split() == ["RUN", "STATUS", "SUBJECT", "STEP", "AGE", "TOKENS", "COST", "TITLE", "INPUTS"]
    rows = {line.split()[0]: line for line in lines[1:]}
    assert set(rows) == {first, second}
    assert "completed" in rows[first] and "1,210+33" in rows[first] and "$0.0052" in rows[first]
    assert "awaiting input" in rows[second]
    assert {line.rindex("Tea" if first in line else "Ask") for line in lines[1:]} == {lines[0].index("TITLE")}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--status", "completed"), ["Tea"]),
        (("--status", "awaiting_input"), ["Ask"]),
        (("--status", "failed"), []),
        (("--limit", "1"), ["Ask"]),
    ],
)
def test_the_list_is_narrowed(
    invoke: Invoke,
    make_run: MakeRun,
    arguments: tuple[str, ...],
    expected: list[str],
) -> None:
    done(make_run)
    make_run(ASKS, ["hm"])
    found = json.loads(invoke(command, *arguments, "--json").stdout)
    assert [row["title"] for row in found] == expected


def test_one_run_on_a_page(invoke: Invoke, make_run: MakeRun) -> None:
    run = done(make_run)
    result = invoke(command, run[:8])
    page = result.stdout
    assert result.exit_code == 0
    for part in ("Tea", run, "completed", "page.playbook.md", "script", "$0.0052", "green", "the blue pot", "brewed"):
        assert part in page
    steps = [line.split() for line in page.splitlines() if line.startswith(("  1", "  2"))]
    assert [(step[0], step[1], step[2], step[3]) for step in steps] == [
        ("1", "completed", "Choose", "1,200+30"),
        ("2", "completed", "Brew", "10+3"),
    ]


def test_a_failed_run_says_where_and_why(invoke: Invoke, make_run: MakeRun) -> None:
    make_run(TWO_STEPS, ["pot", {"error": "out of tea"}], {"kind": "green"})
    result = invoke(command, "last")
    assert "failed at step 2" in result.stdout
    assert "step 2: out of tea" in result.stdout
    assert "quire resume" in result.stderr
    assert invoke(command, "last", "--output").exit_code == 2


def test_a_waiting_run_shows_its_question(invoke: Invoke, make_run: MakeRun) -> None:
    run = make_run(ASKS, ["hm"])
    result = invoke(command, "last")
    assert "step 2 (select): Which one?" in result.stdout
    assert "options: a | b" in result.stdout
    assert f"quire answer {run}" in result.stderr


def test_long_outputs_are_cut_on_the_page_but_not_with_output(invoke: Invoke, make_run: MakeRun) -> None:
    text = "\n".join(f"line {number}" for number in range(40))
    run = make_run("# T\n\n## STEP 1: A\n\nGo.\n", [text])
    page = invoke(command, run).stdout
    assert "line 11" in page and "line 12" not in page and f"28 more lines: quire runs {run} --output" in page
    assert invoke(command, run, "--output").stdout == text + "\n"


def test_everything_as_json(invoke: Invoke, make_run: MakeRun) -> None:
    run = done(make_run)
    found = json.loads(invoke(command, run, "--json").stdout)
    assert found["id"] == run
    assert found["inputs"] == {"kind": "green"}
    assert found["named"] == {"pot": "the blue pot"}
    assert found["output"] == "brewed"
    assert [(step["label"], step["status"], step["output"]) for step in found["steps"]] == [
        ("1", "completed", "the blue pot"),
        ("2", "completed", "brewed"),
    ]
    assert [(effect["path"], effect["kind"], effect["state"]) for effect in found["effects"]] == [
        ("1/model", "model", "ok"),
        ("2/model", "model", "ok"),
    ]
    assert found["effects"][0]["usage"] == {"input_tokens": 1200, "output_tokens": 30, "cost": 0.0042}


def test_the_state_has_exactly_the_keys_of_the_format(invoke: Invoke, make_run: MakeRun) -> None:
    run = make_run(ASKS, ["hm"])
    state = json.loads(invoke(command, "last", "--state").stdout)
    assert state == {
        "execution_id": run,
        "playbook_id": "page.playbook.md",
        "model_id": "script",
        "system_prompt": "",
        "input_values": {},
        "step_outputs": {"1": "hm"},
        "named_outputs": {},
        "breakpoints": {},
        "status": "awaiting_input",
        "paused_at_step": 2,
    }


def test_the_journal(invoke: Invoke, make_run: MakeRun) -> None:
    run = done(make_run)
    lines = invoke(command, run, "--journal").stdout.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["PATH", "KIND", "STATE"],
        ["1/model", "model", "ok"],
        ["2/model", "model", "ok"],
    ]
    requests = [effect["request"] for effect in json.loads(invoke(command, run, "--journal", "--json").stdout)]
    assert [line.split()[3] for line in lines[1:]] == [request[:12] for request in requests]


def test_the_prompt_that_was_sent_is_the_one_shown(invoke: Invoke, workspace: Path) -> None:
    model = ScriptedModel(["the blue pot", "brewed"])
    Path("page.playbook.md").write_text(TWO_STEPS)

    async def run_it() -> None:
        runtime = Runtime.open(workspace, model=model)
        await runtime.drive(await runtime.start(load("page.playbook.md"), {"kind": "green"}, RunOptions()))
        await runtime.close()

    asyncio.run(run_it())
    result = invoke(command, "last", "--prompt", "2", "--json")
    sent = model.calls[1]
    assert json.loads(result.stdout) == {
        "system": sent.system,
        "messages": [{"role": "user", "content": sent.messages[0].content}],
        "closing": None,
    }
    assert result.stderr == ""


def test_the_prompt_of_a_step_that_has_not_run_uses_what_is_recorded(invoke: Invoke, make_run: MakeRun) -> None:
    make_run(ASKS, ["a real reply"])
    result = invoke(command, "last", "--prompt", "3")
    assert "a real reply" in result.stdout and "[output of step 1]" not in result.stdout
    assert "Write about a." in result.stdout
    assert "has not asked its model" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [("--journal",), ("--follow",), ("last", "--state", "--output"), ("last", "--limit", "2"), ("--status", "asleep")],
)
def test_wrong_usage(invoke: Invoke, arguments: tuple[str, ...]) -> None:
    assert invoke(command, *arguments).exit_code == 2


def test_no_such_run(invoke: Invoke, make_run: MakeRun) -> None:
    done(make_run)
    result = invoke(command, "zzzz")
    assert result.exit_code == 2 and "unknown run zzzz" in result.stderr


HOSTILE = "\x1b[2J\x9b31m\u202eevil\x07"


@pytest.mark.parametrize("arguments", [(), ("last",), ("last", "--journal"), ("last", "--follow")])
def test_no_control_character_of_a_document_reaches_a_page(
    invoke: Invoke, make_run: MakeRun, arguments: tuple[str, ...]
) -> None:
    step = f"## STEP 1: A{HOSTILE}\n\nGo.\n\n@output(kept)\n\n"
    page = f'# T{HOSTILE}\n\n{step}## STEP 2: B\n\n@elicit(input, "Q{HOSTILE}")\n'
    make_run(page, [f"reply{HOSTILE}"])
    result = invoke(command, *arguments)
    assert result.exit_code == 0
    assert not set(result.output) & set("\x1b\x9b\u202e\x07")


def test_following_a_run_that_rests_prints_what_happened(invoke: Invoke, make_run: MakeRun) -> None:
    run = done(make_run)
    lines = invoke(command, run, "--follow").stdout.splitlines()
    assert lines[0].endswith("run started") and lines[1].endswith("step 1: started Choose")
    assert lines[-1].endswith("run completed")
    events = [json.loads(line) for line in invoke(command, run, "--follow", "--json").stdout.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert len(events) == len(lines)


class GatedModel:
    """Waits for the test before each reply."""

    name = "gated"

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.go = asyncio.Event()

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        self.asked.set()
        await self.go.wait()
        return ModelReply("fine", self.name, Usage())


async def test_following_shows_events_of_another_driver_as_they_come(workspace: Path) -> None:
    Path("page.playbook.md").write_text("# T\n\n## STEP 1: A\n\nGo.\n")
    model = GatedModel()
    driver, reader = Runtime.open(workspace, model=model), Runtime.open(workspace)
    run = await driver.start(load("page.playbook.md"), {}, RunOptions())
    driving = asyncio.create_task(driver.drive(run))
    await model.asked.wait()
    seen: list[Event] = []
    looks: list[int] = []

    async def pause(seconds: float) -> None:
        looks.append(len(seen))
        if len(looks) == 2:
            model.go.set()
            await driving

    row = await follow_run(reader, run, seen.append, pause)
    assert row.status is Status.COMPLETED
    assert len(looks) == 2 and looks[0] < len(seen)
    assert [event.seq for event in seen] == sorted({event.seq for event in seen})
    assert seen[-1].type == "run_completed"
    await driver.close()
    await reader.close()


async def test_following_ends_when_the_owner_is_gone(workspace: Path) -> None:
    Path("page.playbook.md").write_text("# T\n\n## STEP 1: A\n\nGo.\n")
    runtime = Runtime.open(workspace, model=GatedModel())
    run = await runtime.start(load("page.playbook.md"), {}, RunOptions())
    lease = await runtime.store.acquire(run)
    await runtime.store.write(lease, Batch(update=RunUpdate(status=Status.RUNNING)))
    await runtime.store.release(lease)

    async def pause(seconds: float) -> None:
        return None

    row = await asyncio.wait_for(follow_run(runtime, run, lambda event: None, pause), 10)
    assert row.status is Status.INTERRUPTED
    await runtime.close()


async def test_following_a_run_that_is_being_started_does_not_say_that_nobody_drives_it(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """§4: `run --detach` advises `--follow`, and a process takes a while to start."""
    Path("page.playbook.md").write_text("# T\n\n## STEP 1: A\n\nGo.\n")
    runtime = Runtime.open(workspace, model=ScriptedModel(["x"]))
    run = await runtime.start(load("page.playbook.md"), {}, RunOptions())
    waits: list[float] = []
    said: list[str] = []

    async def pause(seconds: float) -> None:
        waits.append(seconds)
        said.append(capsys.readouterr().err)
        if sum(waits) > 15:
            await runtime.drive(run)

    row = await follow_run(runtime, run, lambda event: None, pause)
    assert row.status is Status.COMPLETED
    told = [sum(waits[: at + 1]) for at, text in enumerate(said) if "has not begun" in text]
    assert len(told) == 1 and told[0] > 5
    await runtime.close()


def on_a_terminal(arguments: list[str], folder: Path, **environ: str) -> str:
    """What a terminal is sent by a command line."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    process = start_quire(arguments, cwd=folder, env={**plain, "TERM": "xterm", **environ}, stdout=theirs)
    os.close(theirs)
    sent = b""
    with contextlib.suppress(OSError):
        while piece := os.read(ours, 4096):
            sent += piece
    os.close(ours)
    assert process.wait() == 0
    return sent.decode()


def test_a_terminal_gets_outputs_without_their_control_characters(make_run: MakeRun, workspace: Path) -> None:
    make_run("# T\n\n## STEP 1: A\n\nGo.\n", [f"a{HOSTILE}\n\tb"])
    for side in (["--output"], ["--json"], ["--prompt", "1"], ["--state"]):
        assert not set(on_a_terminal(["runs", "last", *side], workspace)) & set("\x1b\x9b\u202e\x07")
    assert "\n\tb" in on_a_terminal(["runs", "last", "--output"], workspace).replace("\r\n", "\n")


def test_colour_is_for_terminals_that_want_it(make_run: MakeRun, workspace: Path, invoke: Invoke) -> None:
    done(make_run)
    assert "\x1b[32mcompleted" in on_a_terminal(["runs"], workspace)
    assert "\x1b" not in on_a_terminal(["runs"], workspace, NO_COLOR="1")
    assert "\x1b" not in on_a_terminal(["runs"], workspace, TERM="dumb")
    assert "\x1b" not in invoke(command).output


def change(workspace: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(workspace / ".quire" / "quire.db")) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize(
    ("statement", "status"),
    [
        ("UPDATE runs SET expires_at = 1", "expired"),
        ("UPDATE runs SET status = 'running', expires_at = NULL", "interrupted"),
    ],
)
def test_states_that_no_row_has_are_shown_as_such(
    invoke: Invoke, make_run: MakeRun, workspace: Path, statement: str, status: str
) -> None:
    run = make_run(ASKS, ["hm"])
    change(workspace, statement)
    assert invoke(command).stdout.splitlines()[1].split()[:2] == [run, status]
    assert f"status    {status}" in invoke(command, run).stdout
    assert [row["id"] for row in json.loads(invoke(command, "--status", status, "--json").stdout)] == [run]


def test_a_run_whose_journal_does_not_fit_still_shows_its_row(
    invoke: Invoke, make_run: MakeRun, workspace: Path
) -> None:
    run = done(make_run)
    change(workspace, "UPDATE journal SET request = 'another' WHERE path = '2/model'")
    result = invoke(command, run)
    assert result.exit_code == 3
    assert run in result.stdout and "script" in result.stdout
    assert "2/model" in result.stderr
    assert json.loads(invoke(command, run, "--json").stdout)["id"] == run
