"""The laws of the engine, one by one, on walks that are written out here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.house import House, failing, until_stopping

from quire.engine.conversation import Message
from quire.engine.driver.drive import Drive
from quire.engine.driver.walker import DriveLimits
from quire.engine.records import Batch, EffectRecord, RunUpdate, Status
from quire.engine.requests import Boundary, Emit, Fan, HumanRequest, Load, ModelRequest, Outcome, ToolRequest, Walk
from quire.errors import Denied, Fenced, JournalMismatch, RunBusy, StepFailed
from quire.stores import open_store


def think(path: str, text: str) -> ModelRequest:
    return ModelRequest(f"{path}/model", path, "", (Message("user", text),))


def use(path: str, tool: str) -> ToolRequest:
    return ToolRequest(f"{path}/tool", path, "srv", tool, {})


def ask(path: str, prompt: str = "well?") -> HumanRequest:
    return HumanRequest(f"{path}/ask", path, "Q", "input", prompt)


def two_thoughts() -> Walk:
    one = yield think("1", "one")
    two = yield think("2", f"two after {one['text']}")
    return two["text"]


async def test_an_answer_is_recorded_before_the_walk_sees_it(house: House) -> None:
    seen: list[list[str]] = []

    def walk() -> Walk:
        yield think("1", "one")
        seen.append(sorted(record.path for record in asyncio_effects(house)))
        return None

    await house.drive(walk())
    assert seen == [["1/model"]]


def asyncio_effects(house: House) -> list[EffectRecord]:
    """The journal as another connection sees it, in the middle of a walk."""
    coroutine = house.store.effects(house.run)
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return list(stop.value)
    raise AssertionError("reading SQLite does not wait")


async def test_a_completed_run_keeps_every_effect_once(house: House) -> None:
    ended = await house.drive(two_thoughts())
    assert (ended.status, ended.result) == (Status.COMPLETED, "reply to two after reply to one")
    assert await house.paths() == ["1/model", "2/model"]
    assert await house.status() is Status.COMPLETED


async def test_what_is_recorded_never_runs_again(house: House) -> None:
    house.model.replies["two after reply to one"] = failing("down")
    assert (await house.drive(two_thoughts())).status is Status.FAILED
    house.model.replies.clear()
    ended = await house.drive(two_thoughts())
    assert ended.result == "reply to two after reply to one"
    assert house.model.asked() == ["one", "two after reply to one", "two after reply to one"]


async def test_a_failure_that_ended_the_run_is_recorded_and_superseded(house: House) -> None:
    house.model.replies["one"] = failing("down")
    ended = await house.drive(two_thoughts())
    assert ended.failure is not None
    assert (ended.failure.kind, ended.failure.message) == ("server", "down")
    (record,) = await house.store.effects(house.run)
    assert (record.state, record.path) == ("failed", "1/model")
    house.model.replies.clear()
    assert (await house.drive(two_thoughts())).status is Status.COMPLETED


async def test_a_failure_that_the_walk_consumed_is_replayed_for_ever(house: House) -> None:
    def walk() -> Walk:
        try:
            yield think("1", "one")
            first = "fine"
        except StepFailed as error:
            first = error.message
        answer = yield ask("2")
        return f"{first}, {answer}"

    house.model.replies["one"] = failing("down")
    assert (await house.drive(walk())).status is Status.AWAITING_INPUT
    house.model.replies.clear()
    await house.answer("2/ask", "so be it")
    ended = await house.drive(walk())
    assert ended.result == "down, so be it"
    assert house.model.asked() == ["one"]


async def test_a_different_request_at_a_recorded_path_is_noticed(house: House) -> None:
    def walk(text: str) -> Walk:
        yield think("1", text)
        yield ask("2")
        return None

    await house.drive(walk("one"))
    ended = await house.drive(walk("other"))
    assert ended.failure is not None
    assert ended.failure.kind == "journal"
    assert "1/model" in ended.failure.message
    assert house.model.asked() == ["one"]
    assert "1/model" in str(JournalMismatch("1/model"))


async def test_a_path_that_is_asked_for_twice_is_a_bug(house: House) -> None:
    def walk() -> Walk:
        yield think("1", "one")
        yield think("1", "one")
        return None

    with pytest.raises(AssertionError, match="1/model twice"):
        await house.drive(walk())


async def test_a_tool_that_changes_the_world_writes_an_intent_first(house: House) -> None:
    def walk() -> Walk:
        return (yield use("1", "pay"))

    def die(request: ToolRequest) -> None:
        raise SystemError("the process dies here")

    house.tools.act = die
    with pytest.raises(SystemError):
        await house.drive(walk())
    (record,) = await house.store.effects(house.run)
    assert record.state == "intent"
    assert await house.status() is Status.INTERRUPTED

    house.tools.act = lambda request: "paid"
    assert (await house.drive(walk())).result == "paid"
    first, second = (effect_id for _, _, effect_id in house.tools.calls)
    assert first == second


@pytest.mark.parametrize("kind", ["read", "idempotent"])
async def test_a_tool_that_only_reads_needs_no_intent(house: House, kind: str) -> None:
    house.tools.kind = kind  # type: ignore[assignment]

    def walk() -> Walk:
        return (yield use("1", "look"))

    def die(request: ToolRequest) -> None:
        raise SystemError

    house.tools.act = die
    with pytest.raises(SystemError):
        await house.drive(walk())
    assert await house.paths() == []


@pytest.mark.parametrize(
    ("policy", "answer", "expected"), [("fail", "", None), ("ask", "no", None), ("ask", "yes", "paid")]
)
async def test_an_uncertain_tool_follows_its_policy(
    house: House, policy: str, answer: str, expected: str | None
) -> None:
    def walk() -> Walk:
        return (yield use("1", "pay"))

    def die(request: ToolRequest) -> None:
        raise SystemError

    house.tools.act = die
    with pytest.raises(SystemError):
        await house.drive(walk())
    house.tools.act = lambda request: "paid"
    house.people.given = {"1": [answer]}
    ended = await house.drive(walk(), DriveLimits(on_uncertain=policy))
    if expected is None:
        assert ended.failure is not None
        assert ended.failure.kind == "uncertain"
        assert house.tools.names() == ["pay"]
        # Resuming is the user's word that it may be called again.
        assert (await house.drive(walk(), DriveLimits(on_uncertain=policy))).result == "paid"
    else:
        assert ended.result == expected


async def test_a_denial_is_recorded_as_a_failure(house: House) -> None:
    def deny(request: ToolRequest) -> None:
        raise Denied("rye.execute.tool.x is missing")

    def walk() -> Walk:
        return (yield use("1", "pay"))

    house.tools.act = deny
    ended = await house.drive(walk())
    assert ended.failure is not None
    assert ended.failure.kind == "denied"


async def test_a_text_is_loaded_once(house: House) -> None:
    def walk() -> Walk:
        text = yield Load("1/prompt", "1", "library", "x")
        answer = yield ask("1")
        return f"{text}-{answer}"

    house.loader.texts["library:x"] = "first"
    await house.drive(walk())
    house.loader.texts["library:x"] = "edited"
    await house.answer("1/ask", "a")
    assert (await house.drive(walk())).result == "first-a"
    assert house.loader.loads == ["library:x"]


async def test_a_waiting_run_is_a_row_and_goes_on_in_another_process(house: House, tmp_path: Path) -> None:
    def walk() -> Walk:
        yield think("1", "one")
        return (yield ask("2", "which way?"))

    ended = await house.drive(walk())
    assert (ended.status, ended.position) == (Status.AWAITING_INPUT, "2")
    await house.store.close()
    house.store = open_store(tmp_path / "quire.db", now=house.clock.now)
    (question,) = await house.store.questions()
    assert (question.prompt, question.label) == ("which way?", "2")
    await house.answer("2/ask", "left")
    assert (await house.drive(walk())).result == "left"
    assert house.model.asked() == ["one"]
    assert await house.store.questions() == []


async def test_a_wrong_answer_is_asked_for_again(house: House) -> None:
    def walk() -> Walk:
        return (yield HumanRequest("1/ask", "1", "Q", "select", "which?", ("a", "b")))

    house.people.given = {"1": ["c", "b"]}
    assert (await house.drive(walk())).result == "b"
    assert house.people.problems == ["answer one of: a | b"]


async def test_an_expired_wait_cannot_go_on(house: House) -> None:
    def walk() -> Walk:
        return (yield ask("1"))

    await house.drive(walk(), DriveLimits(expiry=60))
    house.clock.time += 61
    assert await house.status() is Status.EXPIRED
    assert await house.store.questions() == []


async def test_a_breakpoint_pauses_after_its_step(house: House) -> None:
    def walk() -> Walk:
        yield think("1", "one")
        yield Boundary("1/break", "1")
        yield think("2", "two")
        yield Boundary("2/break", "2")
        return "end"

    ended = await house.drive(walk(), DriveLimits(breakpoints=frozenset({"1"})))
    assert (ended.status, ended.position) == (Status.PAUSED, "1")
    row = await house.store.get(house.run)
    assert row is not None
    assert row.ended_by == ("1/break",)
    assert house.model.asked() == ["one"]


async def test_stop_parks_before_the_next_effect(house: House) -> None:
    drives: list[Drive] = []
    house.model.gate = asyncio.Event()
    task = asyncio.create_task(house.drive(two_thoughts(), began=drives.append))
    while not house.model.calls:
        await asyncio.sleep(0)
    drives[0].stop()
    house.model.gate.set()
    ended = await task
    assert (ended.status, await house.paths()) == (Status.PAUSED, ["1/model"])
    house.model.gate = None
    assert (await house.drive(two_thoughts())).status is Status.COMPLETED
    assert len(house.model.calls) == 2


async def test_stop_before_the_first_step_begins_nothing(house: House) -> None:
    ended = await house.drive(two_thoughts(), began=lambda drive: drive.stop())
    assert ended.status is await house.status() is Status.PAUSED
    assert [event.type for event in house.events] == ["run_started", "run_paused"]
    assert (await house.drive(two_thoughts())).status is Status.COMPLETED


async def test_cancelling_the_task_stops_at_once_and_keeps_the_run(house: House) -> None:
    house.model.gate = asyncio.Event()
    task = asyncio.create_task(house.drive(two_thoughts()))
    while not house.model.calls:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await house.status() is Status.PAUSED
    house.model.gate = None
    assert (await house.drive(two_thoughts())).status is Status.COMPLETED


async def test_a_cancel_from_elsewhere_is_seen_with_the_next_write(house: House) -> None:
    house.model.gate = asyncio.Event()
    task = asyncio.create_task(house.drive(two_thoughts()))
    while not house.model.calls:
        await asyncio.sleep(0)
    assert await house.store.request_cancel(house.run) is False
    house.model.gate.set()
    assert (await task).status is Status.CANCELLED
    assert len(house.model.calls) == 1
    house.model.gate = None
    assert (await house.drive(two_thoughts())).status is Status.COMPLETED
    assert len(house.model.calls) == 2


async def test_a_cancel_interrupts_a_model_call(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.engine.driver.drive.CANCEL_POLL_SECONDS", 0.01)
    house.model.gate = asyncio.Event()
    task = asyncio.create_task(house.drive(two_thoughts()))
    while not house.model.calls:
        await asyncio.sleep(0)
    await house.store.request_cancel(house.run)
    assert (await asyncio.wait_for(task, 30)).status is Status.CANCELLED
    assert await house.paths() == []


async def test_a_cancel_lets_a_writing_tool_finish(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.engine.driver.drive.CANCEL_POLL_SECONDS", 0.01)

    def walk() -> Walk:
        return (yield use("1", "pay"))

    house.tools.gate = asyncio.Event()
    task = asyncio.create_task(house.drive(walk()))
    while not house.tools.calls:
        await asyncio.sleep(0)
    await house.store.request_cancel(house.run)
    await until_stopping()
    assert not task.done()
    house.tools.gate.set()
    assert (await task).status is Status.CANCELLED
    (record,) = await house.store.effects(house.run)
    assert (record.state, record.value) == ("ok", "did pay")


async def test_stopping_at_once_waits_for_no_tool(house: House) -> None:
    def walk() -> Walk:
        return (yield use("1", "pay"))

    house.tools.gate = asyncio.Event()
    task = asyncio.create_task(house.drive(walk()))
    while not house.tools.calls:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 30)
    (record,) = await house.store.effects(house.run)
    assert record.state == "intent"
    assert await house.status() is Status.PAUSED
    house.tools.gate.set()
    assert (await house.drive(walk())).result == "did pay"


async def test_two_drives_of_one_run(house: House, tmp_path: Path) -> None:
    lease = await house.store.acquire(house.run)
    other = open_store(tmp_path / "quire.db", now=house.clock.now)
    with pytest.raises(RunBusy):
        await other.acquire(house.run)
    await house.store.release(lease)
    taken = await other.acquire(house.run)
    with pytest.raises(Fenced):
        await house.store.write(lease, Batch(update=RunUpdate(position="9")))
    await other.release(taken)
    await other.close()


@pytest.mark.parametrize(("cost", "calls", "kind"), [(0.2, 1, "limit"), (0.05, 2, None), (None, 1, "limit")])
async def test_a_budget_is_checked_before_each_call(
    house: House, cost: float | None, calls: int, kind: str | None
) -> None:
    house.model.cost = cost
    ended = await house.drive(two_thoughts(), DriveLimits(budget=0.1))
    assert (ended.failure.kind if ended.failure else None) == kind
    assert len(house.model.calls) == calls
    if kind:
        assert (await house.drive(two_thoughts(), DriveLimits())).status is Status.COMPLETED
        assert len(house.model.calls) == 2


async def test_an_empty_reply_fails_the_step(house: House) -> None:
    house.model.replies["one"] = " \n"
    ended = await house.drive(two_thoughts())
    assert ended.failure is not None
    assert ended.failure.kind == "empty"


async def test_kept_events_are_numbered_once_over_all_drives(house: House) -> None:
    def walk() -> Walk:
        yield Emit("step_started", "1", "1")
        yield think("1", "one")
        yield Emit("step_completed", "1", "1")
        yield Emit("step_started", "2", "2")
        answer = yield ask("2")
        yield Emit("step_completed", "2", "2")
        return answer

    await house.drive(walk())
    await house.answer("2/ask", "x")
    await house.drive(walk())
    events = await house.store.events(house.run)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.type for event in events] == [
        *("run_started", "step_started", "effect", "step_completed", "step_started", "question"),
        *("run_resumed", "effect", "step_completed", "run_completed"),
    ]
    replayed = [event.type for event in house.events if event.replayed]
    assert replayed == ["step_started", "step_completed", "step_started"]


def items(count: int, body: str = "tool") -> Iterator[Walk]:
    def item(number: int) -> Walk:
        path = f"1/for_each[{number}]"
        if body == "tool":
            return (yield use(path, f"t{number}"))
        if body == "ask":
            return (yield ask(path))
        return (yield think(path, f"q{number}"))

    return (item(number) for number in range(count))


def fan(count: int, limit: int, stop: bool = False, body: str = "tool") -> Walk:
    outcomes: list[Outcome] = yield Fan("1", items(count, body), limit, stop)
    return [outcome.value if outcome.failure is None else f"failed: {outcome.failure.message}" for outcome in outcomes]


async def test_a_fan_keeps_the_order_and_its_limit(house: House) -> None:
    house.tools.gate = asyncio.Event()
    driving = asyncio.create_task(house.drive(fan(20, 3)))
    for _ in range(100):  # nothing ends meanwhile: as many as may be live are live
        await asyncio.sleep(0)
    assert house.tools.live == 3
    house.tools.gate.set()
    ended = await driving
    assert ended.result == [f"did t{number}" for number in range(20)]
    assert house.tools.most_live == 3


async def test_an_empty_fan_is_done_at_once(house: House) -> None:
    assert (await house.drive(fan(0, 3))).result == []


async def test_a_fan_draws_its_children_only_when_there_is_room(house: House) -> None:
    drawn: list[int] = []

    def children() -> Iterator[Walk]:
        for number, child in enumerate(items(10)):
            drawn.append(number)
            yield child

    def walk() -> Walk:
        yield Fan("1", children(), 2)
        return None

    house.tools.gate = asyncio.Event()
    task = asyncio.create_task(house.drive(walk()))
    while len(house.tools.calls) < 2:
        await asyncio.sleep(0)
    assert drawn == [0, 1]
    house.tools.gate.set()
    await task
    assert drawn == list(range(10))


async def test_failures_of_a_fan_are_outcomes(house: House) -> None:
    def act(request: ToolRequest) -> str:
        if request.tool == "t1":
            raise StepFailed("no")
        return "ok"

    house.tools.act = act
    assert (await house.drive(fan(3, 2))).result == ["ok", "failed: no", "ok"]


async def test_the_first_failure_stops_the_others_and_withdraws_their_questions(house: House) -> None:
    def mixed() -> Walk:
        def asking() -> Walk:
            return (yield ask("1/parallel[a]"))

        def breaking() -> Walk:
            yield use("1/parallel[b]", "look")
            raise StepFailed("broken", path="1/parallel[b]")

        yield Fan("1", iter((asking(), breaking())), 8, True)
        return None

    ended = await house.drive(mixed())
    assert ended.failure is not None
    assert ended.failure.message == "broken"
    assert await house.store.questions(house.run) == []


async def test_a_branch_that_asks_gives_its_slot_to_its_siblings(house: House) -> None:
    def children() -> Iterator[Walk]:
        def asking(number: int) -> Walk:
            return (yield ask(f"1/for_each[{number}]", f"q{number}"))

        def working(number: int) -> Walk:
            return (yield use(f"1/for_each[{number}]", f"t{number}"))

        return (asking(number) if number < 3 else working(number) for number in range(6))

    def walk() -> Walk:
        outcomes: list[Outcome] = yield Fan("1", children(), 1)
        return [outcome.value for outcome in outcomes]

    ended = await house.drive(walk())
    assert ended.status is Status.AWAITING_INPUT
    assert house.tools.names() == ["t3", "t4", "t5"]
    assert len(await house.store.questions(house.run)) == 3

    await house.answer("1/for_each[1]/ask", "one")
    assert (await house.drive(walk())).status is Status.AWAITING_INPUT
    await house.answer("1/for_each[0]/ask", "zero")
    await house.answer("1/for_each[2]/ask", "two")
    ended = await house.drive(walk())
    assert ended.result == ["zero", "one", "two", "did t3", "did t4", "did t5"]
    assert house.tools.names() == ["t3", "t4", "t5"]


async def test_waiting_is_legal_in_every_nesting(house: House) -> None:
    def inner(number: int) -> Walk:
        def asking(at: int) -> Walk:
            answer = yield ask(f"1/for_each[{number}]/for_each[{at}]")
            done = yield use(f"1/for_each[{number}]/for_each[{at}]", answer)
            return done

        outcomes: list[Outcome] = yield Fan(f"1/for_each[{number}]", iter((asking(0), asking(1))), 1)
        return [outcome.value for outcome in outcomes]

    def walk() -> Walk:
        outcomes: list[Outcome] = yield Fan("1", (inner(number) for number in range(3)), 1)
        return [outcome.value for outcome in outcomes]

    assert (await house.drive(walk())).status is Status.AWAITING_INPUT
    questions = await house.store.questions(house.run)
    assert len(questions) == 6
    for question in questions:
        await house.answer(question.path, question.path[2:].replace("/ask", ""))
    ended = await house.drive(walk())
    assert ended.status is Status.COMPLETED
    assert len(house.tools.calls) == 6


async def test_an_answer_that_comes_in_while_the_run_is_driven_is_taken(house: House) -> None:
    """The answer is stored between the question and the park: the run must not go to sleep on it."""
    park = house.store.park
    parks: list[bool] = []

    async def late(lease: object, batch: object) -> bool:
        if not parks:
            await house.answer("1/ask", "just in time")
        parks.append(await park(lease, batch))  # type: ignore[arg-type]
        return parks[-1]

    def walk() -> Walk:
        return (yield ask("1"))

    house.store.park = late  # type: ignore[method-assign]
    ended = await house.drive(walk())
    assert ended.result == "just in time"
    assert parks == [False]
