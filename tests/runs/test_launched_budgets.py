"""Runs that threads launch spend the money of their launcher, and no more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.runs.test_across_formats import PIPELINES, House, use

from quire.engine.driver.drive import DriveResult
from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import RunRow, Status
from quire.library.document import load
from quire.models.scripted import ScriptedModel
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.stores import open_store
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace

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


class Place(House):
    async def go(self, model: PricedScript, options: RunOptions, limits: str = "") -> tuple[DriveResult, list[RunRow]]:
        """Runs a directive on a script, and returns its end and all runs, the launcher first."""
        file = self.directive(PIPELINES, limits)
        store = open_store(self.folder / ".quire" / "quire.db", durability="process")
        settings = load_settings(Workspace(self.folder), self.environ)
        runtime = Runtime(settings, store, environ=self.environ, model=model)
        try:
            run = await runtime.start(load(file), {"who": "Bo"}, options)
            ended = await runtime.drive(run, listen=self.events.append)
            rows = await store.list()
        finally:
            await runtime.close()
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
    assert (launcher.cost or 0.0) >= (launched.cost or 0.0) + MOST - 1e-9
    assert (launcher.cost or 0.0) <= 0.55 + 1e-9


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
