"""Quire from Python, as its documentation shows it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.given import given

import quire
from quire.api.launches import _settling
from quire.errors import BadInputs, CannotStart, RunState, Unreadable
from quire.runs.runtime import Runtime

PLAYBOOK = """# Tea

## INPUTS

- `kind` (enum: green, black): Which

## STEP 1: Describe

Describe {{kind}} tea.

@output(verdict: enum, "good", "bad", extract:"verdict")

## STEP 2: Ask

@elicit(confirm, "Brew {{kind}}?")

## STEP 3: Close

It is {{verdict}}; the answer was {{__elicit_step_2}}.

## ARTIFACTS

type: markdown
"""


@pytest.fixture
def playbook(here: Path) -> Path:
    return given({"tea.playbook.md": PLAYBOOK}, here) / "tea.playbook.md"


def model() -> quire.ScriptedModel:
    return quire.ScriptedModel(['Fine.\n{"verdict": "good"}', "closed"])


def test_import_costs_nothing() -> None:
    heavy = "sys.modules.keys() & {'asyncio', 'click', 'rich', 'sqlite3', 'pydantic_ai', 'mcp', 'quire.api'}"
    code = f"import sys, quire; assert not {heavy}, {heavy}; quire.run; assert 'click' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_load_and_check(playbook: Path) -> None:
    document = quire.load(playbook)
    assert document.plan is not None
    assert document.plan.title == "Tea"
    assert quire.check(playbook) == quire.check(document) == ()
    with pytest.raises(Unreadable, match="does not exist"):
        quire.load(playbook.with_name("none.md"))


def test_a_wrong_document_is_a_result(playbook: Path) -> None:
    playbook.write_text("no title\n", encoding="utf-8")
    document = quire.load(playbook)
    assert document.plan is None
    assert {found.severity for found in document.errors} == {quire.Severity.ERROR}


async def test_await_a_run(playbook: Path) -> None:
    script = model()
    result = await quire.run(playbook, inputs={"kind": "green"}, model=script, answers={"2": "yes"})
    assert (result.status, result.output) == (quire.Status.COMPLETED, "closed")
    assert result.named == {"verdict": "good", "__elicit_step_2": "yes"}
    assert result.steps == {"1": "completed", "2": "completed", "3": "completed"}
    assert (result.artifact_type, result.error, result.questions) == ("markdown", "", {})
    assert [call.messages[0].content.partition("\n\nFirst do all")[0] for call in script.calls] == [
        "Describe green tea.",
        "It is good; the answer was yes.",
    ]


async def test_iterate_over_a_run(playbook: Path) -> None:
    running = quire.run(playbook, inputs={"kind": "green"}, model=model())
    types = [event.type async for event in running]
    assert types[0] == "run_started"
    assert "delta" in types
    assert "question" in types
    assert running.result is not None
    assert running.result.status is quire.Status.AWAITING_INPUT
    assert running.result.questions == {"2": "Brew green?"}


async def test_wrong_inputs_stop_it_before_anything_runs(playbook: Path) -> None:
    script = model()
    with pytest.raises(BadInputs, match="not one of green, black"):
        await quire.run(playbook, inputs={"kind": "blue"}, model=script)
    assert script.calls == []


async def test_a_workspace_that_is_not_there_is_not_made(playbook: Path) -> None:
    script, place = model(), playbook.parent / "none"
    with pytest.raises(CannotStart, match="none cannot be the workspace: it does not exist"):
        await quire.run(playbook, inputs={"kind": "green"}, model=script, workspace=place)
    told = await quire.launch("x", workspace=place)
    assert told["status"] == "error" and "none cannot be the workspace: it does not exist" in told["data"]["error"]
    assert script.calls == []
    assert not place.exists()


async def test_a_failed_run_is_a_result(playbook: Path) -> None:
    script = quire.ScriptedModel([{"error": "overloaded"}])
    result = await quire.run(playbook, inputs={"kind": "green"}, model=script)
    assert result.status is quire.Status.FAILED
    assert "overloaded" in result.error


async def test_a_run_happens_once(playbook: Path) -> None:
    script = model()
    running = quire.run(playbook, inputs={"kind": "green"}, model=script, answers={"2": "yes"})
    types = [event.type async for event in running]
    assert "run_completed" in types
    assert await running is await running is running.result
    assert len(script.calls) == 2
    with pytest.raises(RunState, match="started once"):
        [event async for event in running]


async def test_those_who_await_one_run_get_one_result(playbook: Path) -> None:
    script = model()
    running = quire.run(playbook, inputs={"kind": "green"}, model=script, answers={"2": "yes"})
    first, second = await asyncio.gather(running, running)
    assert first is second
    assert len(script.calls) == 2


async def test_a_run_that_cannot_start_fails_the_same_each_time(playbook: Path) -> None:
    running = quire.run(playbook, inputs={"kind": "blue"}, model=model())
    for _ in range(2):
        with pytest.raises(BadInputs, match="not one of green, black"):
            await running


async def test_a_run_is_awaited_while_its_events_are_read(playbook: Path) -> None:
    script = model()
    running = quire.run(playbook, inputs={"kind": "green"}, model=script, answers={"2": "yes"})
    async for event in running:
        if event.type == "step_completed":
            break
    assert (await running).status is quire.Status.COMPLETED
    assert len(script.calls) == 2


async def test_whoever_gives_up_waiting_stops_the_run(playbook: Path) -> None:
    asked = asyncio.Event()

    async def never(seconds: float) -> None:
        asked.set()
        await asyncio.Event().wait()

    script = quire.ScriptedModel([{"reply": "late", "delay_ms": 1}], sleep=never)
    running = quire.run(playbook, inputs={"kind": "green"}, model=script)
    waiting = asyncio.ensure_future(running)
    await asked.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(RunState, match="was stopped before its end: quire resume "):
        await running
    assert len(script.calls) == 1


async def test_leaving_the_iteration_stops_the_run(playbook: Path) -> None:
    running = quire.run(playbook, inputs={"kind": "green"}, model=model(), answers={"2": "no"})
    async for event in running:
        if event.type == "step_completed":
            break
    assert running.result is None


WRONG: dict[str, dict[str, object]] = {
    "input kind: not a JSON value: ": {"inputs": {"kind": float("nan")}},
    "input kind: not a JSON value: object is": {"inputs": {"kind": object()}},
    "input 1: a name is a text": {"inputs": {1: "green"}},
    "inputs are a mapping of names to values": {"inputs": ["kind"]},
    "allow is a list of names, not a text: ['shell']": {"allow": "shell"},
    "breakpoints is a list of names, not a text: ['1']": {"breakpoints": "1"},
    "allow is a list of names, and 5 is not a text": {"allow": [5]},
    "breakpoint 9: unknown step 9": {"breakpoints": ("9",)},
    "answer 9: unknown step 9": {"answers": {"9": "x"}},
    "answer 2: answer yes or no": {"answers": {"2": "perhaps"}},
    "answers are texts by the label of their step, and 2: 'yes' is not": {"answers": {2: "yes"}},
    "answers are texts by the label of their step, and '2': True is not": {"answers": {"2": True}},
    "model is a name or a model, not 5": {"model": 5},
}


@pytest.mark.parametrize("said", WRONG)
async def test_what_is_wrong_is_an_error_of_ours(playbook: Path, said: str) -> None:
    arguments: dict[str, Any] = {"inputs": {"kind": "green"}, "model": model(), **WRONG[said]}
    with pytest.raises(quire.QuireError) as raised:
        await quire.run(playbook, **arguments)
    assert str(raised.value).startswith(said)
    assert not list(playbook.parent.rglob("quire.db"))


async def test_all_wrong_inputs_are_listed(tmp_path: Path, playbook: Path) -> None:
    with pytest.raises(BadInputs) as raised:
        await quire.run(playbook, inputs={"kind": float("inf"), "more": {"a": b"x"}}, model=model())
    assert [problem.split(":")[0] for problem in raised.value.problems] == ["input kind", "input more"]


@pytest.mark.parametrize("name", ["a\0b", "a\ud83d", "a" * 5000])
def test_a_name_that_no_file_can_have(playbook: Path, name: str) -> None:
    for read in (quire.load, quire.check):
        with pytest.raises(Unreadable, match="cannot be read: "):
            read(name)


@pytest.mark.parametrize("entries", ["x", b"x", {"default": "x"}, None])
def test_a_script_is_a_list(entries: Any) -> None:
    with pytest.raises(CannotStart, match="a script is a list of entries, not "):
        quire.ScriptedModel(entries)


async def test_launch_takes_a_list_of_tools(pipelines: Path) -> None:
    wrong: Any = "shell"
    told = (await quire.launch("greet", allow=wrong, workspace=pipelines))["data"]
    assert told == {"error": "allow is a list of names, not a text: ['shell']"}


GREET = "pipeline: greet\nsteps:\n  - transform: {value: \"'Hello, ' + ctx.name\", output: said}\n"


@pytest.fixture
def pipelines(here: Path) -> Path:
    return given({"pipelines/greet.yaml": GREET}, here)


@pytest.mark.parametrize("inline", [False, True])
async def test_launch_a_pipeline(pipelines: Path, inline: bool) -> None:
    launched = await quire.launch(
        GREET if inline else "greet", input={"name": "Ann"}, inline=inline, workspace=pipelines
    )
    assert launched["status"] == "ok"
    data = launched["data"]
    assert data["output"] == "Hello, Ann" and data["named_stores"] == {"name": "Ann", "said": "Hello, Ann"}


async def test_launch_without_waiting_sends_a_letter(pipelines: Path) -> None:
    launched = await quire.launch("greet", input={"name": "Ann"}, wait=False, recipient="me", workspace=pipelines)
    assert launched["status"] == "started"
    await asyncio.gather(*_settling)
    runtime = Runtime.open(pipelines)
    (letter,) = await runtime.store.letters("me")
    await runtime.close()
    assert launched["data"] == {"run_id": letter.run} and "Hello, Ann" in letter.text


@pytest.mark.parametrize(
    ("pipeline", "inline", "expected"),
    [
        ("nobody", False, "not registered"),
        ("pipeline: [", True, "the inline definition is invalid: line 1, column "),
        ("pipeline: x\nsteps:\n  - transfrom: {value: '1'}\n", True, "line 3, column 5: "),
        ("pipeline: x\nsteps:\n  - transfrom: {value: '1'}\n", True, "(did you mean transform?)"),
        ("```yaml\npipeline: x\nsteps:\n  - tool: {name: nope}\n```", True, "does not resolve"),
        ("pipeline: x\nsteps:\n  - tool: {name: nope}\n", True, "does not resolve"),
        ("greet", False, "ctx.name"),
    ],
)
async def test_launch_tells_what_is_wrong(pipelines: Path, pipeline: str, inline: bool, expected: str) -> None:
    launched = await quire.launch(pipeline, inline=inline, workspace=pipelines)
    assert launched["status"] == "error"
    assert expected in launched["data"]["error"]


def test_a_prompt_can_complete_the_names() -> None:
    assert set(quire.__all__) <= set(dir(quire))


async def test_people_whose_answers_never_fit_are_not_asked_for_ever(playbook: Path) -> None:
    """G10: everything else has its turn between two answers, and after five of them the question waits."""

    class Undecided:
        asked = 0

        async def ask(self, question: object, problem: str) -> str | None:
            self.asked += 1
            return "maybe"

    people, turns = Undecided(), 0

    async def count() -> None:
        nonlocal turns
        while True:
            if people.asked:
                turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    running = quire.run(playbook, inputs={"kind": "green"}, model=model(), people=people)
    warnings = [str(event.data["message"]) async for event in running if event.type == "warning"]
    result = await running
    counting.cancel()
    assert (result.status, people.asked, turns >= 4) == ("awaiting_input", 5, True)
    assert "the question waits" in warnings[-1] and list(result.questions) == ["2"]
