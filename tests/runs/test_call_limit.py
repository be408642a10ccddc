"""The limit of model calls of a run: the default, a budget in its place, numbers that are named, Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.given import given
from tests.runs.test_launched_budgets import MOST, PricedScript

import quire
from quire.engine.records import Status
from quire.errors import CannotStart
from quire.library.document import load
from quire.runs.options import RunOptions
from quire.runs.outcome import exit_of
from quire.runs.runtime import Runtime
from quire.stores import open_store
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace

FAN = """pipeline: fan
steps:
- for_each: {over: ctx.rows, on_error: continue, do: {agent: {prompt: "{item}"}},
    collect: {transform: {value: "count(pipe)"}}}
"""
INPUTS: dict[str, Value] = {"rows": list(range(130))}
NAMED = "[safety.spawn]\nmax_pipeline_spawns = 100\n"


class Place:
    def __init__(self, folder: Path, settings: str = "") -> None:
        self.environ = {"QUIRE_HOME": str(folder / "home")}
        given({"home/quire.toml": settings, "fan.yaml": FAN}, folder)
        self.folder = folder

    async def run(self, options: RunOptions, price: float | None = MOST) -> tuple[int, Value, int]:
        """Return the exit code, the output and the number of calls."""
        model = PricedScript([{"default": "ok", "usage": {"input_tokens": 1, "output_tokens": 1, "cost": price}}])
        model.price = price
        store = open_store(self.folder / ".quire" / "quire.db", durability="process")
        runtime = Runtime(load_settings(Workspace(self.folder), self.environ), store, environ=self.environ, model=model)
        try:
            run = await runtime.start(load(self.folder / "fan.yaml"), INPUTS, options)
            ended = await runtime.drive(run)
        finally:
            await runtime.close()
        output = ended.result["output"] if isinstance(ended.result, dict) else None
        return exit_of(ended), output, round(model.paid / MOST)


@pytest.mark.parametrize(
    ("settings", "options", "price", "expected"),
    [
        ("", RunOptions(), MOST, (5, None, 100)),
        ("", RunOptions(budget=100), MOST, (0, 130, 130)),
        ("", RunOptions(budget=100), 0.0, (5, None, 100)),
        ("", RunOptions(budget=3), MOST, (5, None, 30)),
        ("", RunOptions(budget=100, limits={"calls": 50}), MOST, (5, None, 50)),
        ("", RunOptions(limits={"calls": "0"}), MOST, (0, 130, 130)),
        (NAMED, RunOptions(budget=100), MOST, (5, None, 100)),
        (NAMED, RunOptions(limits={"calls": None}), MOST, (0, 130, 130)),
    ],
)
async def test_the_default_gives_way_to_a_budget_where_every_model_has_a_price(
    tmp_path: Path, settings: str, options: RunOptions, price: float, expected: tuple[int, Value, int]
) -> None:
    assert await Place(tmp_path, settings).run(options, price) == expected


@pytest.mark.parametrize("calls", [-1, 1.5, "x", True, [1], 10**16])
async def test_a_wrong_limit_starts_nothing(calls: Value) -> None:
    with pytest.raises(CannotStart, match="the limit of calls is a whole number"):
        quire.run("pipeline: p\nsteps: []\n", limits={"calls": calls})


async def test_python_has_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path)
    monkeypatch.setenv("QUIRE_HOME", place.environ["QUIRE_HOME"])
    (tmp_path / "s.json").write_text('[{"default": "ok"}]')
    script = f"script:{tmp_path / 's.json'}"
    ended = await quire.run(tmp_path / "fan.yaml", inputs=INPUTS, model=script, limits={"calls": 0}, workspace=tmp_path)
    assert (ended.status, ended.value) == (Status.COMPLETED, 130)
