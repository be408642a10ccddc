"""`people` objects that programs write: what their `ask` may be and may return."""

from __future__ import annotations

import asyncio
import gc
import logging
from pathlib import Path
from typing import Any

import pytest

import quire
from quire.engine.records import Question
from quire.errors import CannotStart
from quire.runs.runtime import Runtime

ASKS = '# Ask\n\n## STEP 1: Ask\n\n@elicit({kind}, "Go on?")\n'
SIDE_BY_SIDE = """pipeline: ask
steps:
  - for_each:
      items: [1, 2, 3]
      on_error: continue
      do: {tool: {name: ask, args: {type: confirm, prompt: "Go on?"}}}
      collect: {transform: {value: pipe}}
"""


pytestmark = pytest.mark.usefixtures("workspace")


class Returning:
    def __init__(self, given: object) -> None:
        self._given: Any = given

    async def ask(self, question: Question, problem: str) -> str | None:
        return self._given


class Plain:
    def ask(self, question: Question, problem: str) -> str:
        return "no"


@pytest.mark.parametrize(
    ("kind", "given", "kept"),
    [("input", 5, "5"), ("input", 1.5, "1.5"), ("confirm", True, "yes"), ("confirm", False, "no")],
)
async def test_numbers_and_truth_values_are_answers(kind: str, given: object, kept: str) -> None:
    result = await quire.run(ASKS.format(kind=kind), people=Returning(given))
    assert (result.status, result.named["__elicit_step_1"]) == (quire.Status.COMPLETED, kept)


async def test_a_plain_function_may_answer() -> None:
    people: Any = Plain()
    result = await quire.run(ASKS.format(kind="confirm"), people=people)
    assert result.named["__elicit_step_1"] == "no"


@pytest.mark.parametrize("given", [["yes"], object, True])
async def test_what_cannot_be_an_answer_fails_the_step(given: object) -> None:
    result = await quire.run(ASKS.format(kind="input"), people=Returning(given))
    assert result.status is quire.Status.FAILED
    assert result.error.startswith(f"people.ask returned {given!r}: return a text, or None")


async def test_people_without_ask_are_refused_before_anything_runs(workspace: Path) -> None:
    people: Any = object()
    with pytest.raises(CannotStart, match=r"people is an object with `async def ask\(question, problem\)`"):
        await quire.run(ASKS.format(kind="input"), people=people)
    envelope = await quire.launch(SIDE_BY_SIDE, inline=True, people=people)
    assert envelope["status"] == "error" and "people is an object with" in envelope["data"]["error"]
    assert not (workspace / ".quire").exists()


class Raising:
    """Raises for the second question, while the first is being thought about."""

    def __init__(self) -> None:
        self._asked = 0

    async def ask(self, question: Question, problem: str) -> str | None:
        self._asked += 1
        if self._asked == 2:
            raise ZeroDivisionError("no answer")
        await asyncio.Event().wait()
        return None


def test_an_ask_that_raises_leaves_no_task_behind(caplog: pytest.LogCaptureFixture) -> None:
    """On a loop that is closed at once: a task that is left over would be destroyed while it is pending."""
    loop = asyncio.new_event_loop()

    async def run() -> None:
        with pytest.raises(ZeroDivisionError):
            await quire.run(SIDE_BY_SIDE, people=Raising())
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with caplog.at_level(logging.ERROR, "asyncio"):
        loop.run_until_complete(run())
        loop.close()
        gc.collect()
    assert not caplog.records


class Thinking:
    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def ask(self, question: Question, problem: str) -> str | None:
        self.asked.set()
        await asyncio.Event().wait()
        return None


@pytest.mark.parametrize("document", [ASKS.format(kind="input"), SIDE_BY_SIDE])
def test_a_run_that_is_stopped_while_it_asks_leaves_no_task_behind(
    document: str, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.new_event_loop()

    async def run() -> None:
        people = Thinking()
        running = asyncio.ensure_future(waited_for(quire.run(document, people=people)))
        await people.asked.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with caplog.at_level(logging.ERROR, "asyncio"):
        loop.run_until_complete(run())
        loop.close()
        gc.collect()
    assert not caplog.records


def test_a_run_that_breaks_as_its_caller_goes_away_is_not_complained_of(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.new_event_loop()

    async def run() -> None:
        running = quire.run(SIDE_BY_SIDE, people=Raising())
        waiting = asyncio.ensure_future(waited_for(running))
        await asyncio.sleep(0)
        assert running._task is not None
        running._task.add_done_callback(lambda done: waiting.cancel())
        with pytest.raises(asyncio.CancelledError):
            await waiting

    with caplog.at_level(logging.ERROR, "asyncio"):
        loop.run_until_complete(run())
        loop.close()
        gc.collect()
    assert not caplog.records


async def waited_for(running: quire.Running) -> quire.Result:
    return await running


class Ann(Returning):
    by = "ann\x1b[2J"


@pytest.mark.parametrize(
    ("people", "by"), [(Returning("x"), "python"), (Ann("x"), "ann[2J")], ids=["a program", "somebody it names"]
)
async def test_answers_are_recorded_as_those_of_the_program(people: Any, by: str) -> None:
    result = await quire.run(ASKS.format(kind="input"), people=people)
    runtime = Runtime.open()
    try:
        assert [record.by for record in await runtime.store.effects(result.run)] == [by]
    finally:
        await runtime.close()


async def test_a_question_of_a_callee_says_the_way(workspace: Path) -> None:
    (workspace / "pipelines").mkdir()
    (workspace / "pipelines/ask.yaml").write_text(SIDE_BY_SIDE)
    seen: list[tuple[str, str]] = []

    class Looking:
        async def ask(self, question: Question, problem: str) -> str | None:
            seen.append((question.label, question.way))
            return "yes"

    result = await quire.run("pipeline: p\nsteps:\n- call: {pipeline: ask}\n", people=Looking())
    assert result.status is quire.Status.COMPLETED
    assert seen == [("1.do", "1 › 1.do")] * 3
    given = await quire.run("pipeline: p\nsteps:\n- call: {pipeline: ask}\n", answers={"1>1.do": "no"})
    assert given.value == ["no", "no", "no"]
