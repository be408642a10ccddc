"""`[budgets]`: what a run may cost before it starts, and the words when a day has no money left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.cli.conftest import Said
from tests.given import given
from tests.runs.test_launched_budgets import PricedScript

from quire.cli import main
from quire.errors import LimitReached
from quire.library.document import load
from quire.runs.adapters import Models
from quire.runs.drives import Given
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.workspace.configuration import load_settings
from quire.workspace.locate import find_workspace
from quire.workspace.settings import BudgetSettings

TWO = "# Two\n\n## STEP 1: One\n\nSay it.\n\n## STEP 2: Two\n\nSay it again.\n"
USAGE = {"input_tokens": 1, "output_tokens": 1, "cost": 0.25}
REPLIES = [{"reply": "hello", "usage": USAGE}, {"reply": "again", "usage": USAGE}]
RUN = ("run", "two.md", "--script", "replies.json", "-q")


def budgets(text: str) -> None:
    home = Path(os.environ["QUIRE_HOME"])
    home.mkdir(exist_ok=True)
    (home / "quire.toml").write_text(f"[budgets]\n{text}\n")


@pytest.fixture(autouse=True)
def documents(workspace: Path) -> None:
    given({"two.md": TWO, "replies.json": REPLIES})


def test_a_day_has_its_money(said: Said) -> None:
    budgets("day = 1.00")
    assert main([*RUN, "--budget", "0.60"]) == 0
    said()
    assert main([*RUN, "--budget", "0.60"]) == 5
    out, err = said()
    assert out == "" and "not started: [budgets] day = $1 has no room" in err
    assert "cost or set aside $0.50, and this one may cost $0.60" in err
    assert main([*RUN, "--budget", "0.50"]) == 0
    assert main(["runs", "fork", "last", "--from", "2", "--budget", "0.10"]) == 5
    assert main(["list"]) == 0
    said()
    assert main(["runs", "--json"]) == 0
    assert said()[0].count('"id"') == 2


def test_a_key_may_be_used_again_once_there_is_money(said: Said) -> None:
    budgets("day = 0.55")
    assert main([*RUN, "--budget", "0.60", "--id", "mine"]) == 5
    assert "not started" in said()[1]
    budgets("day = 0.65")
    assert main([*RUN, "--budget", "0.60", "--id", "mine"]) == 0
    said()
    assert main([*RUN, "--budget", "0.60", "--id", "mine"]) == 0, "the run of then, which needs no money"


def test_a_run_that_names_no_budget_has_that_of_the_settings(said: Said) -> None:
    budgets("run = 0.25")
    assert main([*RUN]) == 5
    assert "budget of $0.25 is used up" in said()[1]
    assert main([*RUN, "--budget", "0.5"]) == 0


def test_a_run_that_continues_needs_money_again(said: Said) -> None:
    budgets("day = 1.00")
    assert main([*RUN, "--budget", "0.25"]) == 5
    said()
    assert main(["resume", "last", "--script", "replies.json", "--budget", "1.01"]) == 5
    assert (
        "not continued: [budgets] day = $1 has no room: runs of this period have cost or set aside $0.25" in said()[1]
    )
    assert main(["resume", "last", "--script", "replies.json", "--budget", "1"]) == 0
    assert main([*RUN, "--budget", "0.51"]) == 5
    assert "have cost or set aside $0.50" in said()[1]


def test_a_month_counts_too(said: Said) -> None:
    budgets("month = 0.4")
    assert main([*RUN, "--budget", "0.5"]) == 5
    assert "[budgets] month = $0.4 has no room" in said()[1]


def test_a_model_without_a_price_is_refused(said: Said) -> None:
    budgets('day = 1\n[models.providers.house]\nbase_url = "http://127.0.0.1:9/v1"')
    assert main(["run", "two.md", "--model", "house:small"]) == 2
    err = said()[1]
    assert "the price of house:small is not known" in err and "without [budgets]" in err


async def test_a_model_of_this_machine_costs_nothing(workspace: Path) -> None:
    budgets("day = 0")
    runtime = Runtime.open(workspace)
    try:
        assert await runtime.start(load("two.md"), {}, RunOptions(model="ollama:none"))
    finally:
        await runtime.close()


async def test_a_cost_that_is_not_known_beforehand_is_refused(workspace: Path) -> None:
    budgets("day = 1")
    runtime = Runtime.open(workspace, model=PricedScript(["a", "b"]))
    try:
        with pytest.raises(LimitReached, match=r"is not known, and \[budgets\] day has to hold: name a budget"):
            await runtime.start(load("two.md"), {}, RunOptions())
        await runtime.start(load("two.md"), {}, RunOptions(budget=0.5))
        assert len(await runtime.store.list()) == 1
    finally:
        await runtime.close()


async def test_the_day_of_a_trigger_has_its_money_whoever_starts_or_continues_its_runs(workspace: Path) -> None:
    budgets('[triggers.daily]\nrun = "two.md"\nevery = "1h"\nday_budget = 1')
    runtime = Runtime.open(workspace, model=PricedScript(["a", "b"]))
    try:
        run = await runtime.start(load("two.md"), {}, RunOptions(budget=0.5, source="trigger:daily"))
        with pytest.raises(LimitReached, match="the day_budget of trigger:daily = \\$1 has no room"):
            await runtime.start(load("two.md"), {}, RunOptions(budget=0.75, source="trigger:daily"))
        await runtime.start(load("two.md"), {}, RunOptions(budget=0.75))
        with pytest.raises(LimitReached, match="not continued: the day_budget of trigger:daily"):
            await runtime.drive(run, given=Given(budget=1.25))
    finally:
        await runtime.close()


def test_a_workspace_only_lowers_them(workspace: Path) -> None:
    budgets("run = 1\nday = 5")
    (workspace / "quire.toml").write_text("[budgets]\nrun = 2\nday = 3\nmonth = 4\n")
    assert load_settings(find_workspace(workspace)).budgets == BudgetSettings(1.0, 3.0, 4.0)


@pytest.mark.parametrize("url", ["", "postgresql://user@host/db"])
def test_the_limits_of_a_provider_are_shared_beside_the_settings_or_the_runs(workspace: Path, url: str) -> None:
    store = f'[store]\nurl = "{url}"\n' if url else ""
    limits = '[models.limits.house]\nat_once = 1\n[models.providers.house]\nbase_url = "http://127.0.0.1:9/v1"'
    budgets(f"{store}{limits}")
    settings = load_settings(find_workspace(workspace))
    model = Models(settings, os.environ).open("house:small")
    _, shared = model._model._gates  # type: ignore[attr-defined]
    assert shared._place == (url or str(settings.user / "limits.db"))
