"""Prices that the user has set: charged, shown, kept to by a budget, and needed before a run with a budget starts."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pydantic_ai", reason='needs the extra "llm"')

from tests.models.test_call_settings import HOUSE, PLAYBOOK, Place
from tests.models.test_call_settings import place as place

from quire.cli import main

if TYPE_CHECKING:
    from tests.models.conftest import Stub

TIER = '[models.tiers]\ncheap = "house:small"\n'
PRICE = '[models.prices."house:small"]\ninput = 100\noutput = 1000\n'
"""A call of 1,000 and 500 tokens costs $0.60."""


@pytest.fixture(autouse=True)
def counted(stub: Stub, place: Place) -> None:
    stub.behaviours = [stub.say("fine", tokens=(1000, 500))]


def test_a_price_is_charged_and_shown_everywhere(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.configure(TIER + PRICE)
    assert main(["run", "hello.playbook.md", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["cost"] == pytest.approx(1.2)
    assert main(["runs", "last"]) == 0
    assert "$1.20" in capsys.readouterr().out
    assert main(["runs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["cost"] == pytest.approx(1.2)
    assert main(["runs", "last", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["cost"] == pytest.approx(1.2)


async def test_the_page_has_the_cost_too(stub: Stub, tmp_path: Path) -> None:
    pytest.importorskip("starlette", reason='needs the extra "web"')
    from tests.server.served import served

    settings = HOUSE.format(url=stub.url) + TIER + PRICE
    async with served(tmp_path / "served", {"hello.playbook.md": PLAYBOOK}, settings=settings) as server:
        run = (await server.start("hello.playbook.md", budget=5.0))["id"]
        async with server.client() as client, asyncio.timeout(30):
            while (row := (await client.get(f"/runs/{run}")).json())["status"] != "completed":
                await asyncio.sleep(0.01)
    assert row["cost"] == pytest.approx(1.2)


@pytest.mark.parametrize(("budget", "calls"), [("0.85", 1), ("0.05", 0)])
def test_a_budget_is_kept_by_that_price(
    place: Place, budget: str, calls: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The most that a call may cost is reserved: a reply of 300 tokens is $0.30. The first one took $0.60."""
    place.configure('[models.tiers.cheap]\nmodel = "house:small"\nmax_tokens = 300\n' + PRICE)
    assert main(["run", "hello.playbook.md", "--budget", budget]) == 5
    assert len(place.stub.requests) == calls
    assert "budget" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("document", "settings", "unknown"),
    [
        ("hello.playbook.md", TIER, "house:small"),
        ("p.yaml", f"{TIER}[agents.calm]\n", "house:small"),
        ("p.yaml", f'{TIER}{PRICE}[agents.calm]\nmodel = "house:other"\n', "house:other"),
        ("p.yaml", f'{TIER}other = "house:other"\n{PRICE}[agents.calm]\nmodel = "other"\n', "house:other"),
    ],
)
def test_a_budget_without_a_price_is_refused_before_the_start(
    place: Place, document: str, settings: str, unknown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place.configure(settings)
    assert main(["run", document, "--budget", "1.00"]) == 2
    said = capsys.readouterr().err
    assert f"the price of {unknown} is not known, so a budget cannot be kept" in said
    assert "--budget none" in said
    assert f'[models.prices."{unknown}"]' in said
    assert place.stub.requests == []
    assert main(["runs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert main(["run", document, "--budget", "none"]) == 0
