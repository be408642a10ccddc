"""Pipelines that a thread launches and waits for: runs of their own (seeds L1, ruling 21 of pipelines)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.runs.test_across_formats import DOUBLE, PIPELINES, House, use

from quire.engine.driver.drive import DriveResult
from quire.engine.ports import Model, ModelCall, ModelReply
from quire.engine.records import Question, RunRow, Status, Usage
from quire.errors import Parked
from quire.library.document import load
from quire.models.scripted import ScriptedModel
from quire.runs.launch import Launcher, Launching
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.trust.capabilities import Grants

ASKS = "pipeline: asks\nsteps:\n- tool: {name: ask, args: {prompt: 'Well?'}, output: a}\n"
TWO = "pipeline: two\nsteps:\n- agent: {prompt: say one}\n- agent: {prompt: say two}\n"
BREAKS = "pipeline: breaks\nsteps:\n- transform: {value: '1 / 0'}\n"
DONE = use("directive_return", greeting="done")


class Died(BaseException):
    """The process ends here."""


class Script(ScriptedModel):
    """Agents of pipelines get their own replies. The process dies, or waits, at the prompt `stops_at`; `turn 2` is the
    second call of the thread."""

    stops_at = ""
    waits = False
    turns = 0
    refusals = 0
    """How often the service of the agents asks for a wait of so many `seconds`."""
    seconds = 0.0

    def __init__(self, replies: list[Any]) -> None:
        super().__init__(replies)
        self.said: list[str] = []
        self.stopped = asyncio.Event()

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        asked = call.messages[-1].content
        is_agent = asked.startswith("say")
        self.turns += not is_agent
        if self.stops_at == (asked if is_agent else f"turn {self.turns}"):
            self.stopped.set()
            if not self.waits:
                raise Died
            await asyncio.Event().wait()
        if not is_agent:
            return await super().complete(call, on_delta)
        self.said.append(asked)
        if self.said.count(asked) <= self.refusals:
            wait = Parked("later", transient=True)
            wait.wake_at, wait.reason = time.time() + self.seconds, "tests ask for it"
            raise wait
        return ModelReply("ok", self.name, Usage())


class Person:
    by = "tests"

    async def ask(self, question: Question, problem: str) -> str | None:
        return "fine"


class Place(House):
    """A workspace whose only directive is driven by several processes, one after the other."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        for name, text in (("double", DOUBLE), ("asks", ASKS), ("two", TWO), ("breaks", BREAKS)):
            self.write(f"pipelines/{name}.yaml", text)
        self.file = self.directive(PIPELINES)
        self.run_id = ""
        self.rows: list[RunRow] = []

    @asynccontextmanager
    async def opened(self, model: Model | None = None) -> AsyncIterator[Runtime]:
        async with super().opened(model) as runtime:
            try:
                yield runtime
            finally:
                rows = await runtime.store.list()
                self.rows = sorted(rows, key=lambda row: (row.id != self.run_id, row.created_at))

    async def go(
        self,
        script: list[Any],
        work: Callable[[Runtime], Any] = lambda runtime: None,
        options: RunOptions | None = None,
        *,
        people: Person | None = None,
        **how: Any,
    ) -> tuple[DriveResult, Script]:
        model = Script(script)
        for name, value in how.items():
            setattr(model, name, value)
        async with self.opened(model) as runtime:
            if not self.run_id:
                self.run_id = await runtime.start(load(self.file), {"who": "Bo"}, options or RunOptions())
            beside = work(runtime)
            ended = await runtime.drive(self.run_id, listen=self.events.append, people=people)
            if beside is not None:
                await beside
        return ended, model


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "work")


async def test_each_launch_has_a_run(place: Place) -> None:
    await place.go([use("run_pipeline", name="double", input={"n": 5}), use("pipeline__two"), DONE])
    ids = [one["data"]["run_id"] for one in place.told()]
    assert [row.id for row in place.rows[1:]] == ids and len(set(ids)) == 2
    assert [row.status for row in place.rows] == [Status.COMPLETED] * 3


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (use("run_pipeline", name="nothing"), "pipeline 'nothing' is not registered"),
        (use("run_pipeline", name="double", inputs={"n": 1}), "has no argument 'inputs': did you mean input?"),
        (use("run_pipeline_async", name="double", inputs={"n": 1}), "has no argument 'inputs': did you mean input?"),
        (use("run_pipeline", name="double", input=[1]), "input"),
    ],
)
async def test_what_is_refused_spawns_nothing_and_has_no_run(place: Place, call: Any, said: str) -> None:
    await place.go([call, DONE])
    (told,) = place.told()
    assert said in json.dumps(told) and "run_id" not in json.dumps(told)
    assert len(place.rows) == 1


async def test_a_run_that_fails_has_its_own_id(place: Place) -> None:
    await place.go([use("pipeline__breaks"), DONE])
    (told,) = place.told()
    assert told["status"] == "error" and told["data"]["run_id"] == place.rows[1].id
    assert [row.status for row in place.rows] == [Status.COMPLETED, Status.FAILED]


async def test_a_launcher_waits_for_a_service_with_its_run(place: Place) -> None:
    await place.go([use("run_pipeline", name="two"), DONE], refusals=2)
    (told,) = place.told()
    assert told["status"] == "ok"
    assert [row.status for row in place.rows] == [Status.COMPLETED] * 2


async def test_a_ticker_continues_a_launched_run_that_waits_for_a_service(place: Place) -> None:
    def beat(runtime: Runtime) -> None:
        runtime.store.process = "p"

    await place.go([use("run_pipeline", name="two"), DONE], beat, refusals=1, seconds=60.0)
    (told,) = place.told()
    assert told == {"status": "started", "data": {"run_id": place.rows[1].id}}
    assert (place.rows[1].status, place.rows[1].parked) == (Status.PAUSED, "tests ask for it")


async def test_the_person_who_is_there_is_asked(place: Place) -> None:
    await place.go([use("pipeline__asks"), DONE], people=Person())
    (told,) = place.told()
    assert (told["status"], told["data"]["output"]) == ("ok", "fine")


async def test_with_nobody_there_the_question_waits_and_the_result_comes_by_letter(place: Place) -> None:
    with pytest.raises(Died):
        await place.go([use("pipeline__asks")], stops_at="turn 2")
    assert place.told()[0]["status"] == "started"
    async with place.opened(Script([])) as runtime:
        (waiting,) = [row for row in await runtime.store.list() if row.status is Status.AWAITING_INPUT]
        await runtime.answer(waiting.id, None, "late")
        await runtime.drive(waiting.id)
    ended, model = await place.go(["hm", DONE])
    assert ended.status is Status.COMPLETED, ended.failure
    said = [message.content for message in model.calls[-1].messages if message.role == "user"]
    assert any(one.startswith("[pipeline]") and one.endswith('"late"') for one in said)


async def test_a_run_that_waits_leaves_its_launcher_half_of_the_money(place: Place) -> None:
    await place.go([use("pipeline__asks"), use("pipeline__double", n=1), "hm", DONE])
    assert [one["status"] for one in place.told()] == ["started", "ok"]
    assert [row.pins["budget"] for row in place.rows[1:]] == [1.0, 0.5]


async def test_unattended_goes_for_the_launched_run_too(place: Place) -> None:
    await place.go([use("pipeline__asks"), DONE], options=RunOptions(unattended=True))
    assert place.told()[0]["status"] == "ok"


async def test_a_limit_of_calls_goes_for_the_launched_run_too(place: Place) -> None:
    ended, model = await place.go([use("pipeline__two"), "hm", DONE], options=RunOptions(limits={"calls": 1}))
    assert (ended.failure and ended.failure.kind, model.said) == ("too_many_calls", [])
    (told,) = place.told()
    assert told["status"] == "error" and "two makes at least 2 model calls, and a run may make 1" in str(told["data"])


async def test_a_run_that_is_waited_for_sends_no_letter_if_it_is_resumed_by_itself(place: Place) -> None:
    """Its launcher takes the result when it is resumed; with a letter it would be told twice."""
    with pytest.raises(Died):
        await place.go([use("pipeline__two")], stops_at="say two")
    async with place.opened(Script([])) as runtime:
        assert (await runtime.drive(place.rows[1].id)).status is Status.COMPLETED
        assert await runtime.store.letters() == []
    ended, _ = await place.go([DONE])
    assert ended.status is Status.COMPLETED, ended.failure
    assert [envelope["status"] for envelope in place.told()] == ["ok"]


async def test_a_run_that_is_not_waited_for_sends_its_letter_even_if_its_launcher_died_in_the_call(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*call: object, **options: object) -> None:
        raise Died

    monkeypatch.setattr(Launching, "go_on", die)
    with pytest.raises(Died):
        await place.go([use("run_pipeline_async", name="two")])
    async with place.opened(Script([])) as runtime:
        await runtime.drive(place.rows[1].id)
        assert [letter.run for letter in await runtime.store.letters(place.run_id)] == [place.rows[1].id]


async def test_a_crash_in_the_middle_launches_nothing_twice(place: Place) -> None:
    """Law 11: the id of the run derives from its launcher and the path."""
    with pytest.raises(Died):
        await place.go([use("pipeline__two")], stops_at="say two")
    before = [row.id for row in place.rows]
    ended, model = await place.go([DONE])
    assert ended.status is Status.COMPLETED, ended.failure
    assert ([row.id for row in place.rows], model.said) == (before, ["say two"])
    assert place.told()[-1]["data"]["run_id"] == before[1]


async def test_a_launched_run_that_has_failed_is_not_resumed_by_its_launcher(place: Place) -> None:
    """After a crash between the end of the run and its record."""
    launcher = Launcher("other", "default", Grants.of(("rye.execute.pipeline.*",)), run_id="Lfailed")
    async with place.opened(Script([])) as runtime:
        launching = Launching(runtime, lambda: ())
        first = await launching.launch("run_pipeline", {"name": "breaks"}, launcher)
        epoch = (await runtime.row("Lfailed")).epoch
        assert await launching.launch("run_pipeline", {"name": "breaks"}, launcher) == first
        assert first.status == "error" and (await runtime.row("Lfailed")).epoch == epoch


async def test_a_cancelled_launcher_leaves_a_run_that_can_go_on(place: Place) -> None:
    def cancel(runtime: Runtime) -> asyncio.Task[None]:
        async def soon() -> None:
            model: Any = runtime.models.given
            await model.stopped.wait()
            await runtime.store.request_cancel(place.run_id)

        return asyncio.create_task(soon())

    ended, _ = await place.go([use("pipeline__two")], cancel, stops_at="say two", waits=True)
    assert ended.status is Status.CANCELLED
    assert place.rows[1].status is Status.PAUSED
    ended, model = await place.go([DONE])
    assert (ended.status, [row.status for row in place.rows]) == (Status.COMPLETED, [Status.COMPLETED] * 2)
    assert model.said == ["say two"]
