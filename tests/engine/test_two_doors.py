"""A question that somebody is looking at stands in the inbox as well: the first answer counts, whoever gives it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.engine.house import House

from quire.engine.driver import drive as driving
from quire.engine.driver.drive import DriveResult
from quire.engine.records import Batch, Lease, Question, Status, WriteResult
from quire.engine.requests import Fan, HumanRequest, ToolRequest, Walk
from quire.errors import RunState, StepFailed, ToolFailed
from quire.runs.adapters import GivenAnswers
from quire.stores import open_store

PATIENCE = 10.0
ASK = HumanRequest("1/ask", "1", "Sure", "confirm", "Sure?")


class Thinker:
    """Somebody at a terminal. What they think of a question is for the test to say."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.mind: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.problems: list[str] = []
        self.told: list[tuple[str, str]] = []
        self.stopped = 0

    def is_here(self, question: Question) -> bool:
        return True

    def overtaken(self, question: Question, value: str) -> None:
        self.told.append((question.path, value))

    async def ask(self, question: Question, problem: str) -> str | None:
        self.problems.append(problem)
        self.asked.set()
        try:
            if problem and self.problems[0] == "":
                await asyncio.Event().wait()  # was wrong, and has to think again, for ever
            return await asyncio.shield(self.mind)
        except asyncio.CancelledError:
            self.stopped += 1
            raise


def asking() -> Walk:
    answer: str = yield ASK
    return answer


@pytest.fixture
async def thinker(house: House, monkeypatch: pytest.MonkeyPatch) -> Thinker:
    monkeypatch.setattr(driving, "CANCEL_POLL_SECONDS", 0.001)
    house.people = thinker = Thinker()  # type: ignore[assignment]
    return thinker


async def begun(house: House, thinker: Thinker, walk: Walk) -> asyncio.Task[DriveResult]:
    task = asyncio.create_task(house.drive(walk))
    await asyncio.wait_for(thinker.asked.wait(), PATIENCE)
    return task


async def test_an_answer_from_elsewhere_is_taken(house: House, thinker: Thinker, tmp_path: Path) -> None:
    task = await begun(house, thinker, asking())
    other = open_store(tmp_path / "quire.db", durability="process", now=house.clock.now)  # as another process has it
    (question,) = await other.questions()
    assert (question.run, question.path, question.prompt) == (house.run, "1/ask", "Sure?")
    assert await house.status() is Status.RUNNING
    await other.answer(house.run, question.path, question.hash, "no")
    ended = await asyncio.wait_for(task, PATIENCE)
    assert (ended.status, ended.result) == (Status.COMPLETED, "no")
    assert (thinker.stopped, thinker.told) == (1, [("1/ask", "no")])
    assert [record.value for record in await house.store.effects(house.run)] == ["no"]
    assert (await other.questions(), await other.answers(house.run)) == ([], [])
    await other.close()


async def test_an_answer_that_is_given_here_closes_the_question(house: House, thinker: Thinker) -> None:
    task = await begun(house, thinker, asking())
    (question,) = await house.store.questions()
    thinker.mind.set_result("yes")
    ended = await asyncio.wait_for(task, PATIENCE)
    assert (ended.status, ended.result, thinker.told) == (Status.COMPLETED, "yes", [])
    assert (await house.store.questions(), await house.store.answers(house.run)) == ([], [])
    with pytest.raises(RunState):
        await house.store.answer(house.run, question.path, question.hash, "no")
    assert house.types().count("question") == 1


async def test_of_two_at_once_the_store_says_which_came_first(
    house: House, thinker: Thinker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driving, "CANCEL_POLL_SECONDS", 3600.0)  # nobody looks up in between
    task = await begun(house, thinker, asking())
    await house.answer("1/ask", "no")
    thinker.mind.set_result("yes")
    ended = await asyncio.wait_for(task, PATIENCE)
    assert (ended.result, thinker.told) == ("no", [("1/ask", "no")])
    assert [record.value for record in await house.store.effects(house.run)] == ["no"]


async def test_who_leaves_leaves_it_in_the_inbox(house: House, thinker: Thinker) -> None:
    task = await begun(house, thinker, asking())
    thinker.mind.set_result(None)
    assert (await asyncio.wait_for(task, PATIENCE)).status is Status.AWAITING_INPUT
    assert house.types().count("question") == 1
    await house.answer("1/ask", "yes")
    ended = await house.drive(asking())
    assert (ended.status, ended.result, thinker.problems) == (Status.COMPLETED, "yes", [""])


async def test_who_is_stopped_at_once_leaves_it_in_the_inbox(house: House, thinker: Thinker) -> None:
    task = await begun(house, thinker, asking())
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await house.status() is Status.PAUSED
    await house.answer("1/ask", "yes")
    assert (await house.drive(asking())).result == "yes"


async def test_a_wrong_answer_here_does_not_count(house: House, thinker: Thinker) -> None:
    task = await begun(house, thinker, asking())
    thinker.mind.set_result("perhaps")
    while len(thinker.problems) < 2:
        await asyncio.sleep(0)
    await house.answer("1/ask", "yes")
    assert (await asyncio.wait_for(task, PATIENCE)).result == "yes"


async def test_the_process_dies_after_the_answer_and_before_its_effect(house: House, thinker: Thinker) -> None:
    """The answer is in the store and not in the journal: the next drive takes it, and asks nobody again."""

    class Dead(Exception):
        pass

    task = await begun(house, thinker, asking())
    write = house.store.write

    async def dying(lease: Lease, batch: Batch) -> WriteResult:
        if batch.effects:
            raise Dead
        return await write(lease, batch)

    house.store.write = dying  # type: ignore[method-assign]
    thinker.mind.set_result("yes")
    with pytest.raises(Dead):
        await asyncio.wait_for(task, PATIENCE)
    house.store.write = write  # type: ignore[method-assign]
    assert [answer.value for answer in await house.store.answers(house.run)] == ["yes"]
    assert (await house.drive(asking())).result == "yes"
    assert len(thinker.problems) == 1


async def test_a_question_of_a_branch_that_is_stopped_is_taken_back(house: House, thinker: Thinker) -> None:
    house.tools.gate = asyncio.Event()

    def fails(request: ToolRequest) -> None:
        raise ToolFailed("broken")

    house.tools.act = fails

    def breaking() -> Walk:
        yield ToolRequest("1/fan[2]/tool", "1", "c", "t", {})
        return None

    def both() -> Walk:
        try:
            yield Fan("1/fan", iter([asking(), breaking()]), 2, stop_on_first_failure=True)
        except StepFailed:
            answer: str = yield HumanRequest("2/ask", "2", "Then", "confirm", "And then?")
            return answer
        return "nothing failed"

    task = await begun(house, thinker, both())
    assert [question.path for question in await house.store.questions()] == ["1/ask"]
    house.tools.gate.set()
    while len(thinker.problems) < 2:
        await asyncio.sleep(0)
    assert [question.path for question in await house.store.questions()] == ["2/ask"]
    with pytest.raises(RunState, match="taken back"):
        await house.store.answer(house.run, "1/ask", "", "yes")
    thinker.mind.set_result("yes")
    ended = await asyncio.wait_for(task, PATIENCE)
    assert (ended.status, ended.result, thinker.stopped) == (Status.COMPLETED, "yes", 1)


async def test_several_are_open_at_once_and_each_is_answered_somewhere(house: House, thinker: Thinker) -> None:
    def one(number: int) -> Walk:
        answer: str = yield HumanRequest(f"1/fan[{number}]/ask", "1", "Sure", "confirm", f"Sure of {number}?")
        return answer

    def three() -> Walk:
        outcomes = yield Fan("1/fan", (one(number) for number in range(3)), 3)
        return [outcome.value for outcome in outcomes]

    task = await begun(house, thinker, three())
    while len(await house.store.questions()) < 3:
        await asyncio.sleep(0)
    await house.answer("1/fan[1]/ask", "no")
    while not thinker.told:
        await asyncio.sleep(0)
    thinker.mind.set_result("yes")
    ended = await asyncio.wait_for(task, PATIENCE)
    assert (ended.result, thinker.told) == (["yes", "no", "yes"], [("1/fan[1]/ask", "no")])


@pytest.mark.parametrize(
    ("given", "put"), [({"1": "yes"}, False), ({"1/ask": "n"}, False), ({"1": "perhaps"}, True), ({"2": "yes"}, True)]
)
async def test_answers_that_came_with_the_run_are_not_put_to_anybody(
    house: House, thinker: Thinker, given: dict[str, str], put: bool
) -> None:
    thinker.mind.set_result("yes")
    house.people = GivenAnswers(given, thinker)  # type: ignore[assignment]
    ended = await house.drive(asking())
    assert ended.status is Status.COMPLETED
    assert ("question" in house.types()) is put
    assert bool(thinker.problems) is put
