"""Runs that threads launch spend the money of their launcher, and no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.runs.test_across_formats import PIPELINES, House, use

from quire.engine.driver.drive import DriveResult
from quire.engine.ports import Model, ModelCall, ModelReply, Store
from quire.engine.records import RunRow, Status, Usage
from quire.errors import LimitReached
from quire.library.document import load
from quire.models.scripted import ScriptedModel
from quire.runs.drives import Given
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime

MOST = 0.1
MANY = "pipeline: many\nsteps:\n" + "".join(f"- agent: {{prompt: say {n}}}\n" for n in range(9))
ONE = "pipeline: one\nsteps:\n- agent: {prompt: say}\n"


class PricedScript(ScriptedModel):
    """Each call costs `MOST`, which is known before; `paid` is all that was ever charged."""

    paid = 0.0
    price: float | None = MOST

    def estimate(self, call: ModelCall) -> float | None:
        return self.price

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        self.paid += MOST
        return await super().complete(call, on_delta)


class Died(BaseException):
    """The process ends here."""


class Turns(PricedScript):
    """Replies of a thread, each after the runs that it has launched rest; agents of pipelines get their own."""

    dies_at = ""
    """The process dies at the call with this prompt, or with this number among those of the thread."""
    store: Store | None = None
    turn = 0

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        asked = call.messages[-1].content
        if asked.startswith("say"):
            if asked == self.dies_at:
                raise Died
            self.paid += MOST
            return ModelReply("ok", self.name, Usage(1, 1, MOST))
        self.turn += 1
        while self.store is not None and any(
            one.id.startswith("L") and one.status in (Status.PENDING, Status.RUNNING) for one in await self.store.list()
        ):
            await asyncio.sleep(0)
        if self.dies_at == str(self.turn):
            raise Died
        return await super().complete(call, on_delta)


class Place(House):
    @asynccontextmanager
    async def opened(self, model: Model | None = None) -> AsyncIterator[Runtime]:
        async with super().opened(model) as runtime:
            if isinstance(model, Turns):
                model.store = runtime.store
            yield runtime

    async def resumed(self, model: PricedScript, **given: Any) -> tuple[DriveResult, list[RunRow]]:
        """Goes on with the launcher, as another process would."""
        async with self.opened(model) as runtime:
            run = next(row.id for row in await runtime.store.list() if not row.id.startswith("L"))
            ended = await runtime.drive(run, given=Given(**given))
            rows = await runtime.store.list()
        return ended, sorted(rows, key=lambda row: row.id.startswith("L"))

    async def go(self, model: PricedScript, options: RunOptions, limits: str = "") -> tuple[DriveResult, list[RunRow]]:
        """Runs a directive on a script, and returns its end and all runs, the launcher first."""
        file = self.directive(PIPELINES, limits)
        async with self.opened(model) as runtime:
            run = await runtime.start(load(file), {"who": "Bo"}, options)
            ended = await runtime.drive(run, listen=self.events.append)
            rows = await runtime.store.list()
        return ended, sorted(rows, key=lambda row: row.id != run)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "work")


def launching(tool: str, definition: str) -> PricedScript:
    usage = {"usage": {"input_tokens": 1, "output_tokens": 1, "cost": MOST}}
    given = {"definition": definition} if "inline" in tool else {"name": "many"}
    return PricedScript([{**use(tool, **given), **usage}, {"default": "fine", **usage}])


@pytest.mark.parametrize("tool", ["run_pipeline_inline", "run_pipeline_inline_async", "run_pipeline_async"])
@pytest.mark.parametrize(
    ("options", "limits"), [(RunOptions(budget=0.55), ""), (RunOptions(), "<limits spend='0.55' />")]
)
async def test_what_is_launched_stays_within_the_money_of_its_launcher(
    place: Place, tool: str, options: RunOptions, limits: str
) -> None:
    place.write("pipelines/many.yaml", MANY)
    model = launching(tool, MANY)
    _, (launcher, launched) = await place.go(model, options, limits)
    assert launched.status is Status.FAILED
    assert model.paid <= 0.55 + 1e-9
    assert (launched.cost or 0.0) >= MOST - 1e-9
    if "async" not in tool:
        assert (launcher.cost or 0.0) >= (launched.cost or 0.0) + MOST - 1e-9
    assert (launcher.cost or 0.0) <= 0.55 + 1e-9


async def test_the_money_of_what_is_launched_is_set_aside_once(place: Place) -> None:
    place.write("quire.toml", "[budgets]\nday = 0.55\n")
    model = launching("run_pipeline_inline", ONE)
    _, (_, launched) = await place.go(model, RunOptions(budget=0.55))
    assert launched.status is Status.COMPLETED
    with pytest.raises(LimitReached, match="not started"):
        await place.go(model, RunOptions(budget=0.55))


async def test_what_is_not_needed_comes_back(place: Place) -> None:
    model = launching("run_pipeline_inline", ONE)
    _, (launcher, launched) = await place.go(model, RunOptions(budget=0.55))
    assert launched.status is Status.COMPLETED
    assert launched.pins["budget"] == pytest.approx(0.45)
    assert launcher.cost == pytest.approx(model.paid)
    assert model.paid == pytest.approx(5 * MOST, abs=2 * MOST)


async def test_without_money_nothing_is_launched(place: Place) -> None:
    model = launching("run_pipeline_inline", ONE)
    _, rows = await place.go(model, RunOptions(budget=0.1))
    assert len(rows) == 1
    assert "nothing is left of the budget" in str(place.told()[0])


async def test_a_price_that_is_not_known_does_not_stop_a_thread(place: Place) -> None:
    model = launching("run_pipeline_inline", ONE)
    model.price = None
    _, (_, launched) = await place.go(model, RunOptions())
    assert launched.status is Status.COMPLETED
    assert launched.pins["budget"] is None


FREE = "pipeline: many\nsteps:\n- transform: {value: '1'}\n"
ASKING = "pipeline: many\nsteps:\n- agent: {prompt: say}\n- tool: {name: ask, args: {prompt: Well?}}\n"
BREAKS = "pipeline: many\nsteps:\n- agent: {prompt: say}\n- transform: {value: '1 / 0'}\n"
SPEND = "<limits spend='1' turns='30' />"
PAID = {"usage": {"input_tokens": 1, "output_tokens": 1, "cost": MOST}}
DONE = {**use("directive_return", greeting="hi"), **PAID}


def turns(*tools: str, definition: str = FREE, last: list[Any] | None = None) -> Turns:
    """A thread that calls these tools, one a turn, says something, and returns."""
    given = [{"definition": definition} if "inline" in tool else {"name": "many"} for tool in tools]
    calls = [{**use(tool, **arguments), **PAID} for tool, arguments in zip(tools, given, strict=True)]
    return Turns([*calls, {"reply": "hm", **PAID}, *(last or [DONE])])


@pytest.mark.parametrize("tool", ["run_pipeline_async", "run_pipeline_inline_async", "run_pipeline_inline"])
@pytest.mark.parametrize(("options", "limits"), [(RunOptions(), SPEND), (RunOptions(budget=1), "")])
async def test_a_launch_costs_what_the_run_has_spent(place: Place, tool: str, options: RunOptions, limits: str) -> None:
    """seeds M1: each launch without waiting took half of what was left of `spend` for good, and reported it as cost."""
    place.write("pipelines/many.yaml", FREE)
    ended, (launcher, *launched) = await place.go(turns(*[tool] * 4), options, limits)
    assert (ended.status, len(launched)) == (Status.COMPLETED, 4), ended.failure
    assert launcher.cost == pytest.approx(6 * MOST)


@pytest.mark.parametrize("text", [ONE.replace("one", "many"), BREAKS])
async def test_a_run_counts_in_its_launcher_with_its_letter(place: Place, text: str) -> None:
    place.write("pipelines/many.yaml", text)
    model = turns("run_pipeline_async", "run_pipeline_async")
    _, (launcher, *launched) = await place.go(model, RunOptions(), SPEND)
    assert [one.cost for one in launched] == [pytest.approx(MOST)] * 2
    assert launcher.cost == pytest.approx(model.paid) == pytest.approx(6 * MOST)


async def test_a_run_that_outlives_its_launcher_is_not_counted_there(place: Place) -> None:
    place.write("pipelines/many.yaml", ASKING)
    ended, (launcher, launched) = await place.go(turns("run_pipeline_async"), RunOptions(), SPEND)
    assert (ended.status, launched.status) == (Status.COMPLETED, Status.AWAITING_INPUT)
    assert launcher.cost == pytest.approx(3 * MOST)


async def test_what_a_run_may_still_spend_is_held_back_after_a_crash_too(place: Place) -> None:
    place.write("pipelines/many.yaml", ASKING)
    model = turns("run_pipeline_async")
    model.dies_at = "2"
    with pytest.raises(Died):
        await place.go(model, RunOptions(), SPEND)
    ended, (launcher, launched) = await place.resumed(turns(last=[{"reply": "more", **PAID}] * 9))
    assert ended.failure is not None and launched.pins["budget"] == pytest.approx(0.45)
    assert (launcher.cost or 0.0) + float(launched.pins["budget"]) <= 1 + 1e-9  # type: ignore[arg-type]


async def test_a_turn_that_is_done_again_counts_a_run_once(place: Place) -> None:
    place.write("pipelines/many.yaml", ONE.replace("one", "many"))
    model = turns("run_pipeline_async")
    ended, (launcher, _) = await place.go(model, RunOptions(), "<limits spend='1' turns='2' />")
    assert ended.failure is not None and ended.failure.kind == "turns_exceeded"
    assert launcher.cost == pytest.approx(3 * MOST)
    ended, (launcher, _) = await place.resumed(Turns([DONE]), limits={"turns": 9})
    assert ended.status is Status.COMPLETED
    assert launcher.cost == pytest.approx(4 * MOST)


async def test_a_crash_in_the_middle_of_a_launch_costs_nothing_more(place: Place) -> None:
    place.write("pipelines/many.yaml", MANY)
    model = turns("run_pipeline_inline", definition=MANY)
    model.dies_at = "say 3"
    with pytest.raises(Died):
        await place.go(model, RunOptions(), "<limits spend='2' />")
    ended, (launcher, launched) = await place.resumed(turns())
    assert (ended.status, launched.status) == (Status.COMPLETED, Status.COMPLETED)
    assert launcher.cost == pytest.approx(3 * MOST + (launched.cost or 0.0))
