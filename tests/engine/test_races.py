"""Things that happen at an odd moment: answers, failures, cancels and crashes that meet each other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from tests.engine.house import House, failing, until_stopping
from tests.engine.test_drive import think, use

from quire.engine.conversation import Offered, ToolUse
from quire.engine.driver.drive import Drive, DriveResult
from quire.engine.driver.replay import replay, to_perform_again
from quire.engine.driver.walker import DriveLimits
from quire.engine.ports import ModelReply
from quire.engine.progress import Progress
from quire.engine.records import Batch, Lease, Status, Usage, WriteResult
from quire.engine.requests import Emit, Fan, HumanRequest, Outcome, ToolRequest, Walk
from quire.errors import StepFailed, ToolFailed


def ask(path: str) -> HumanRequest:
    return HumanRequest(f"{path}/ask", path, "Q", "input", "well?")


def tolerant(children: Iterator[Walk], limit: int) -> Walk:
    """A fan that aborts inside of one that goes on; then a question."""

    def inner() -> Walk:
        outcomes: list[Outcome] = yield Fan("1/for_each[0]", children, limit, stop_on_first_failure=True)
        return [outcome.value for outcome in outcomes]

    outcomes: list[Outcome] = yield Fan("1", iter((inner(), working())), 1)
    yield ask("2")
    return [outcome.failure.message if outcome.failure else outcome.value for outcome in outcomes]


def working() -> Walk:
    return (yield use("1/for_each[1]", "work"))


def asking(number: int, then: Callable[[], None] = lambda: None) -> Walk:
    """Asks; the first one fails, after a while."""
    path = f"1/for_each[0]/for_each[{number}]"
    answer = yield ask(path)
    if number == 0:
        yield use(path, "look")
        then()
        raise StepFailed("no")
    return answer


def answering_at_the_first_park(house: House, *paths: str) -> None:
    park = house.store.park
    parks: list[bool] = []

    async def late(lease: Lease, batch: Batch) -> bool:
        if not parks:
            for path in paths:
                await house.answer(path, "yes")
        parks.append(await park(lease, batch))
        return parks[-1]

    house.store.park = late  # type: ignore[method-assign]


async def soon(driving: Any) -> DriveResult:
    ended = await asyncio.wait_for(driving, 10)
    assert isinstance(ended, DriveResult)
    return ended


async def test_a_branch_that_is_stopped_while_it_queues_for_its_place_leaves_nobody_moving(house: House) -> None:
    answering_at_the_first_park(house, *(f"1/for_each[0]/for_each[{number}]/ask" for number in (0, 1)))
    ended = await soon(house.drive(tolerant(iter((asking(0), asking(1))), 1)))
    assert ended.status is Status.AWAITING_INPUT
    assert [question.path for question in await house.store.questions(house.run)] == ["2/ask"]
    await house.answer("2/ask", "so be it")
    ended = await soon(house.drive(tolerant(iter((asking(0), asking(1))), 1)))
    assert ended.result == ["no", "did work"]


async def test_a_branch_that_is_stopped_in_the_moment_it_is_answered_leaves_nobody_waking(house: House) -> None:
    """Its answer is handed over after its brother failed and before the fan stops it."""
    drives: list[Drive] = []
    loop = asyncio.get_running_loop()

    def answer_the_other() -> None:
        async def take() -> None:
            await house.answer("1/for_each[0]/for_each[1]/ask", "late")
            await drives[0]._walker.resting.take_answers()

        def step() -> None:
            with pytest.raises(StopIteration):
                take().send(None)

        loop.call_soon(step)

    answering_at_the_first_park(house, "1/for_each[0]/for_each[0]/ask")
    walk = tolerant(iter((asking(0, answer_the_other), asking(1))), 8)
    ended = await soon(house.drive(walk, began=drives.append))
    assert ended.status is Status.AWAITING_INPUT
    assert [question.path for question in await house.store.questions(house.run)] == ["2/ask"]


async def test_a_question_that_is_not_asked_again_is_taken_back(house: House) -> None:
    """The first of two answers makes its attempt fail, before the second question comes up again."""

    def item(attempt: int, number: int) -> Walk:
        answer = yield ask(f"1/try[{attempt}]/for_each[{number}]")
        if attempt == 1:
            raise StepFailed("once more")
        return answer

    def walk() -> Walk:
        for attempt in (1, 2):
            try:
                fan: list[Outcome] = yield Fan(
                    f"1/try[{attempt}]", (item(attempt, number) for number in (0, 1)), 1, stop_on_first_failure=True
                )
                return [outcome.value for outcome in fan]
            except StepFailed:
                continue
        return None

    await house.drive(walk())
    await house.answer("1/try[1]/for_each[0]/ask", "a")
    assert (await soon(house.drive(walk()))).status is Status.AWAITING_INPUT
    open_now = [question.path for question in await house.store.questions(house.run)]
    assert open_now == [f"1/try[2]/for_each[{number}]/ask" for number in (0, 1)]
    for path in open_now:
        await house.answer(path, "b")
    assert (await soon(house.drive(walk()))).result == ["b", "b"]


async def test_an_answer_to_a_question_that_nobody_asks_any_more_does_not_keep_a_run_from_parking(house: House) -> None:
    def walk(first: str) -> Walk:
        yield ask(first)
        return None

    await house.drive(walk("1"))
    await house.answer("1/ask", "a")
    assert (await soon(house.drive(walk("2")))).status is Status.AWAITING_INPUT
    assert [question.path for question in await house.store.questions(house.run)] == ["2/ask"]


async def test_each_crash_of_a_tool_is_asked_about(house: House) -> None:
    def walk() -> Walk:
        return (yield use("1", "pay"))

    def die(request: ToolRequest) -> None:
        raise SystemError

    house.tools.act = die
    terms = DriveLimits(on_uncertain="ask")
    house.people.given = {"1": ["yes"]}
    for _ in range(2):
        with pytest.raises(SystemError):
            await house.drive(walk(), terms)
    assert len(house.tools.calls) == 2
    assert (await house.drive(walk(), terms)).status is Status.AWAITING_INPUT
    assert len(house.tools.calls) == 2


async def test_a_call_that_is_not_made_again_is_a_recorded_failure(house: House) -> None:
    """Else the policy that consumed it would decide anew in each drive."""

    def walk() -> Walk:
        try:
            yield use("1", "pay")
        except StepFailed as error:
            assert error.kind == "uncertain"
        return (yield ask("2"))

    def die(request: ToolRequest) -> None:
        raise SystemError

    house.tools.act = die
    with pytest.raises(SystemError):
        await house.drive(walk())
    await house.drive(walk(), DriveLimits(on_uncertain="fail"))
    (record,) = await house.store.effects(house.run)
    assert (record.state, record.failure and record.failure.kind) == ("failed", "uncertain")
    await house.answer("2/ask", "x")
    assert (await house.drive(walk(), DriveLimits(on_uncertain="rerun"))).result == "x"
    assert len(house.tools.calls) == 1


async def test_a_cancel_lets_a_writing_tool_in_a_fan_of_a_fan_finish(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.engine.driver.drive.CANCEL_POLL_SECONDS", 0.01)

    def inner() -> Walk:
        return (yield Fan("1/for_each[0]", iter((paying(),))))

    def paying() -> Walk:
        return (yield use("1/for_each[0]/for_each[0]", "pay"))

    def walk() -> Walk:
        return (yield Fan("1", iter((inner(),))))

    house.tools.gate = asyncio.Event()
    task = asyncio.create_task(house.drive(walk()))
    while not house.tools.calls:
        await asyncio.sleep(0)
    await house.store.request_cancel(house.run)
    await until_stopping()
    house.tools.gate.set()
    assert (await soon(task)).status is Status.CANCELLED
    (record,) = await house.store.effects(house.run)
    assert (record.state, record.value) == ("ok", "did pay")


async def test_a_failure_that_meets_a_cancel_is_not_replayed_to_whoever_resumes(house: House) -> None:
    def walk() -> Walk:
        return (yield think("1", "one"))["text"]

    house.model.replies["one"] = failing("down")
    house.model.gate = asyncio.Event()
    task = asyncio.create_task(house.drive(walk()))
    while not house.model.calls:
        await asyncio.sleep(0)
    await house.store.request_cancel(house.run)
    house.model.gate.set()
    assert (await soon(task)).status is Status.CANCELLED
    house.model.replies.clear()
    assert (await house.drive(walk())).result == "reply to one"


async def test_who_is_stopped_while_the_end_is_written_has_ended(house: House) -> None:
    write = house.store.write
    written = asyncio.Event()

    async def slow(lease: Lease, batch: Batch) -> WriteResult:
        result = await write(lease, batch)
        if batch.update is not None and batch.update.status is Status.COMPLETED:
            written.set()
            await asyncio.Event().wait()
        return result

    def walk() -> Walk:
        return (yield think("1", "one"))["text"]

    house.store.write = slow  # type: ignore[method-assign]
    task = asyncio.create_task(house.drive(walk()))
    await asyncio.wait_for(written.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await house.status() is Status.COMPLETED


async def test_what_was_superseded_has_been_paid_for(house: House) -> None:
    def walk() -> Walk:
        yield think("1", "one")
        raise StepFailed("that does not fit", path="1/model")

    house.model.cost = 0.2
    assert (await house.drive(walk())).status is Status.FAILED
    ended = await house.drive(walk(), DriveLimits(budget=0.1))
    assert ended.failure is not None
    assert ended.failure.kind == "limit"
    assert len(house.model.calls) == 1


async def test_what_a_model_writes_is_seen_live_as_it_is_replayed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def complete(call: object, on_delta: object) -> ModelReply:
        return ModelReply("", "m", Usage(), uses=(ToolUse("u", "t", {"half": "\ud83d"}),))

    def act(request: ToolRequest) -> None:
        raise ToolFailed("no file \udcff")

    def walk() -> Walk:
        reply = yield replace(think("1", "one"), tools=(Offered("t", "", {}),))
        try:
            yield ToolRequest("1/tool", "1", "srv", "t", reply["uses"][0][2])
        except StepFailed as error:
            yield ToolRequest("2/tool", "2", "srv", "t", {"said": error.message})
        return None

    monkeypatch.setattr(house.model, "complete", complete)
    house.tools.act = act
    first = await house.drive(walk())
    assert first.failure is not None
    assert first.failure.kind == "tool"
    second = await house.drive(walk())
    assert second.failure is not None
    assert second.failure.kind == "tool"


async def test_calls_of_tools_that_were_not_offered_are_left_out(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would make turns that no bound counts."""
    said = ["fine", ""]

    async def complete(call: object, on_delta: object) -> ModelReply:
        return ModelReply(said.pop(0), "m", Usage(), uses=(ToolUse("u", "t", {}),))

    def walk() -> Walk:
        reply = yield think("1", "one")
        assert "uses" not in reply
        yield think("2", "two")
        return None

    monkeypatch.setattr(house.model, "complete", complete)
    ended = await house.drive(walk())
    assert ended.failure is not None
    assert (ended.failure.kind, ended.failure.message) == ("empty", "m asked for a tool, and was offered none")


def attempts() -> Walk:
    """A fan that aborts, tried twice."""
    for attempt in (1, 2):
        path = f"1/try[{attempt}]"
        try:
            fan: list[Outcome] = yield Fan(path, (one(path, number) for number in (0, 1)), 2, True)
            return [outcome.value for outcome in fan]
        except StepFailed:
            if attempt == 2:
                yield Emit("step_failed", "1")
                raise
    return None


def one(path: str, number: int) -> Walk:
    return (yield use(f"{path}/for_each[{number}]", f"t{number}"))


async def test_a_replay_hands_the_failure_of_a_fan_to_the_walk(house: House) -> None:
    house.tools.act = lambda request: "fine" if "try[2]" in request.path else _fail()
    assert (await house.drive(attempts())).result == ["fine", "fine"]
    records = await house.store.effects(house.run)
    again = await replay(lambda work: attempts(), records, Progress({}), lambda boundary: False)
    assert again.result == ["fine", "fine"]


def _fail() -> None:
    raise ToolFailed("no")


async def test_all_that_failed_at_once_is_found_and_what_was_consumed_is_left(house: House) -> None:
    house.tools.act = lambda request: _fail()
    assert (await house.drive(attempts())).status is Status.FAILED
    records = list(await house.store.effects(house.run))
    failed = {record.path for record in records if "try[2]" in record.path}
    assert failed
    assert set(await to_perform_again(lambda work: attempts(), records)) == failed


async def test_what_a_failure_cut_off_is_not_performed_by_later_drives(house: House) -> None:
    """The first branch is in the middle of its call when the second one fails, and that failure is consumed."""

    def walk() -> Walk:
        with contextlib.suppress(StepFailed):
            yield Fan("1", iter((one("1", 0), one("1", 1))), 8, stop_on_first_failure=True)
        return (yield ask("2"))

    async def call(request: ToolRequest, effect_id: str) -> None:
        house.tools.calls.append((request.tool, {}, effect_id))
        if request.tool == "t0":
            await asyncio.Event().wait()
        raise ToolFailed("no")

    house.tools.kind = "read"
    house.tools.call = call  # type: ignore[method-assign]
    for _ in range(2):
        assert (await soon(house.drive(walk()))).status is Status.AWAITING_INPUT
    assert house.tools.names() == ["t0", "t1"]
