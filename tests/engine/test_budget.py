"""A budget is never exceeded where prices are known: by fans, calls that are stopped or fail, and crashes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator

import pytest
from tests.engine.house import EchoModel, House
from tests.engine.test_pipeline import walk

from quire.engine.conversation import Message
from quire.engine.driver.model_calls import lost_calls
from quire.engine.driver.walker import DriveLimits
from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import EffectRecord, Status, Usage
from quire.engine.requests import Fan, ModelRequest, Walk
from quire.errors import ModelFailed
from quire.values import Value

MOST = 0.1


class Died(BaseException):
    """The process ends here: nothing is written any more."""


class PricedModel(EchoModel):
    """Costs at most `MOST` a call. `paid` is what the provider has charged, whoever learns of it."""

    def __init__(self) -> None:
        super().__init__()
        self.paid = 0.0
        self.charge: Callable[[str], float] = lambda asked: MOST
        self.before: Callable[[str], None] = lambda asked: None
        self.turns = 1

    def estimate(self, call: ModelCall) -> float:
        return MOST

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        asked = call.messages[-1].content
        cost = self.charge(asked)
        self.paid += cost
        self.cost = cost
        self.calls.append(call)
        for _ in range(self.turns):
            await asyncio.sleep(0)
        self.before(asked)
        on_delta("a part")
        reply = self.replies.get(asked)
        if isinstance(reply, Exception):
            raise reply
        return ModelReply("a part", self.name, Usage(10, 5, cost))


@pytest.fixture
def model(house: House) -> PricedModel:
    house.model = PricedModel()
    return house.model


def think(path: str, text: str = "x") -> ModelRequest:
    return ModelRequest(f"{path}/model", path, "", (Message("user", text),))


def fan(count: int, limit: int, *, stop: bool = False) -> Walk:
    def item(number: int) -> Walk:
        return (yield think(f"1/for_each[{number}]", f"q{number}"))

    def items() -> Iterator[Walk]:
        return (item(number) for number in range(count))

    yield Fan("1", items(), limit, stop)
    return "done"


def row(*texts: str) -> Walk:
    for number, text in enumerate(texts):
        yield think(f"{number}", text)
    return "done"


async def spent(house: House) -> float:
    found = await house.store.get(house.run)
    assert found is not None
    return found.cost or 0.0


@pytest.mark.parametrize("limit", [1, 8, 50])
async def test_a_fan_of_fifty_spends_no_more_than_the_budget(house: House, model: PricedModel, limit: int) -> None:
    ended = await house.drive(fan(50, limit), DriveLimits(budget=1.05))
    assert ended.failure is not None
    assert ended.failure.kind == "limit"
    assert len(model.calls) == 10
    assert model.paid <= 1.05
    assert await spent(house) == pytest.approx(model.paid)


async def test_cheap_calls_leave_room_for_more(house: House, model: PricedModel) -> None:
    model.charge = lambda asked: 0.01
    ended = await house.drive(fan(50, 50), DriveLimits(budget=0.6))
    assert ended.status is Status.COMPLETED
    assert len(model.calls) == 50


@pytest.mark.parametrize("seed", range(12))
async def test_crashes_in_the_middle_of_calls_never_spend_more(house: House, model: PricedModel, seed: int) -> None:
    chance = random.Random(seed)
    model.charge = lambda asked: chance.choice([0.0, MOST / 3, MOST])

    def die(asked: str) -> None:
        model.turns = chance.randrange(4)
        if chance.random() < 0.15:
            raise Died

    model.before = die
    for _ in range(60):
        try:
            ended = await house.drive(fan(50, chance.choice([1, 8, 50])), DriveLimits(budget=2.0))
        except Died:
            continue
        if ended.status is Status.COMPLETED or ended.failure is not None:
            break
    assert model.paid <= 2.0 + 1e-9
    assert await spent(house) >= model.paid - 1e-9


async def test_a_call_at_a_crash_counts_once_with_what_was_set_aside(house: House, model: PricedModel) -> None:
    def die(asked: str) -> None:
        raise Died

    model.before = die
    with pytest.raises(Died):
        await house.drive(row("a"), DriveLimits(budget=1.0))
    assert await spent(house) == 0.0
    (intent,) = await house.store.effects(house.run)
    assert (intent.kind, intent.state, intent.value) == ("model", "intent", {"reserved": MOST})
    for _ in range(3):
        with pytest.raises(Died):
            await house.drive(row("a"), DriveLimits(budget=1.0))
    assert await spent(house) == pytest.approx(3 * MOST)
    model.before = lambda asked: None
    assert (await house.drive(row("a"), DriveLimits(budget=1.0))).status is Status.COMPLETED
    assert await spent(house) == pytest.approx(5 * MOST)
    told = [str(event.data["message"]) for event in house.events if event.type == "warning"]
    assert told[-1] == (
        "1 model call was under way when the run was interrupted: the amount set aside for it counts as spent ($0.1000)"
    )
    (record,) = await house.store.effects(house.run)
    assert (record.state, record.usage) == ("ok", Usage(10, 5, MOST))


async def test_calls_that_a_fan_stops_are_spent(house: House, model: PricedModel) -> None:
    model.replies["q0"] = ModelFailed("no", kind="server")
    model.turns = 3
    ended = await house.drive(fan(5, 5, stop=True), DriveLimits(budget=1.0))
    assert ended.status is Status.FAILED
    assert len(model.calls) == 5
    assert await spent(house) >= model.paid - 1e-9


async def test_what_a_stopped_call_may_have_cost_is_not_there_for_the_next(house: House, model: PricedModel) -> None:
    def walk() -> Walk:
        outcomes = yield Fan("0", iter([fan(4, 4, stop=True)]))
        yield think("2", "after")
        return len(outcomes)

    model.replies["q0"] = ModelFailed("no", kind="server")
    model.turns = 3
    ended = await house.drive(walk(), DriveLimits(budget=0.4))
    assert ended.failure is not None
    assert ended.failure.kind == "limit"
    assert model.paid <= 0.4 + 1e-9
    assert "after" not in model.asked()


@pytest.mark.parametrize(
    ("failure", "counts"),
    [
        (ModelFailed("broke off", kind="connection"), True),
        (ModelFailed("silent", kind="timeout"), True),
        (ModelFailed("refused", kind="refused", used=(5, 5, 0.03)), 0.03),
    ],
)
async def test_a_reply_that_breaks_off_counts(
    house: House, model: PricedModel, failure: ModelFailed, counts: bool | float
) -> None:
    model.replies["a"] = failure
    ended = await house.drive(row("a"), DriveLimits(budget=1.0))
    assert ended.status is Status.FAILED
    assert await spent(house) == pytest.approx(MOST if counts is True else counts)


async def test_a_call_that_was_refused_at_once_costs_nothing(house: House, model: PricedModel) -> None:
    def refuse(asked: str) -> None:
        raise ModelFailed("no such key", kind="auth")

    model.before = refuse
    assert (await house.drive(row("a"), DriveLimits(budget=1.0))).status is Status.FAILED
    assert await spent(house) == 0.0


async def test_without_a_budget_nothing_is_announced(house: House, model: PricedModel) -> None:
    assert (await house.drive(row("a", "b"), DriveLimits())).status is Status.COMPLETED
    assert [event.data["state"] for event in house.events if event.type == "effect"] == ["ok", "ok"]


@pytest.mark.parametrize("value", [None, {}, {"reserved": -1}, {"reserved": True}, {"reserved": 1e12}, [1], "x"])
def test_an_intent_that_others_wrote_counts_only_if_it_is_an_amount(value: Value) -> None:
    assert list(lost_calls([EffectRecord("1/model", "model", "intent", "", 0.0, value)])) == []


async def test_the_run_stops_at_the_step_of_the_refused_call(house: House, model: PricedModel) -> None:
    """real-work, small list: the step of a budget stop was that of a sibling which moved last."""
    text = (
        "pipeline: p\nsteps:\n- agent: {prompt: a}\n- parallel: {collect: {transform: {value: pipe}}, branches: {%s}}"
    )
    branches = "x: {agent: {prompt: b}}, y: {tool: {name: t}}"
    ended = await house.drive(walk(text % branches), DriveLimits(budget=MOST))
    assert (ended.failure and ended.failure.kind, ended.position) == ("limit", "2.x")


async def test_a_call_that_does_not_fit_has_a_shorter_reply(house: House, model: PricedModel) -> None:
    """Four times the usual length of a reply refuses no call that had room before."""
    model.estimate = lambda call: (call.max_tokens or 0) / 100_000  # type: ignore[method-assign]
    model.charge = lambda asked: 0.01

    def asking() -> Walk:
        for number in range(3):
            yield ModelRequest(f"{number}/model", str(number), "", (Message("user", "a"),))
        return ""

    ended = await house.drive(asking(), DriveLimits(budget=0.17, reply_tokens=16_384))
    assert ended.status is Status.COMPLETED
    assert [call.max_tokens for call in model.calls] == [16_384, 4096, 4096]
