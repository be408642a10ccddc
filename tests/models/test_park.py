"""Runs that wait for a service: parked without a record of the call, shown, woken, and continued with one call."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pydantic_ai", reason='needs the extra "llm"')

from tests.models.test_call_settings import Place
from tests.models.test_call_settings import place as place
from tests.models.test_fallback import CALL, asked, by_model
from tests.models.test_fallback import quick as quick

import quire
from quire.cli import main
from quire.display.run_views import PlainView
from quire.engine.records import RunRow, Status
from quire.errors import ModelFailed, Parked
from quire.library.document import load
from quire.models.choose import ModelSettings
from quire.models.open import open_model
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime

if TYPE_CHECKING:
    from tests.models.conftest import Stub

HOUSE_TIER = '[models.tiers]\ncheap = "house:small"\n'


def wait(seconds: float) -> dict[str, str]:
    return {"Retry-After": str(seconds)}


async def test_a_long_wait_parks_and_is_asked_for_once(stub: Stub) -> None:
    stub.behaviours = [stub.refuse(429, headers=wait(2400))]
    model = open_model(stub.spec, ModelSettings(), {})
    for _ in range(2):
        with pytest.raises(Parked) as parked:
            await model.complete(CALL, lambda piece: None)
        assert parked.value.wake_at == pytest.approx(time.time() + 2400, abs=30)
        assert parked.value.reason == f"{stub.url.split('/')[2]} asks for 40 min"
    assert len(stub.requests) == 1


async def test_a_wait_beyond_a_week_fails_the_call(stub: Stub) -> None:
    stub.behaviours = [stub.refuse(429, headers=wait(8 * 86_400))]
    with pytest.raises(ModelFailed, match="no call waits longer than 60 s") as failed:
        await open_model(stub.spec, ModelSettings(), {}).complete(CALL, lambda piece: None)
    assert not isinstance(failed.value, Parked)


async def test_a_list_parks_for_the_first_that_is_back(stub: Stub) -> None:
    first, last = stub.refuse(429, headers=wait(600)), stub.refuse(503, headers=wait(7200))
    stub.behaviours = [by_model(small=first, large=last)]
    from tests.models.test_fallback import opened

    with pytest.raises(Parked) as parked:
        await opened(stub).complete(CALL, lambda piece: None)
    assert parked.value.reason == "house asks for 10 min"
    assert asked(stub) == ["small", "large"]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Park for waits of a second."""
    monkeypatch.setattr("quire.models.open.RETRY_WAIT", 0.5)


async def parked(place: Place, document: str = "hello.playbook.md") -> RunRow:
    """Start a run in a process that does not wait for it, and return it at rest."""
    runtime = Runtime.open(place.work)
    try:
        run = await runtime.start(load(document), {}, RunOptions())
        assert (await runtime.drive(run)).status is Status.PAUSED
        row = await runtime.row(run)
        assert (row.failure, await runtime.store.due(time.time())) == (None, [])
        assert await runtime.store.due((row.wake_at or 0.0) + 1) == [run]
        return row
    finally:
        await runtime.close()


def effects(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    capsys.readouterr()
    assert main(["runs", "last", "--journal", "--json"]) == 0
    records: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return records


def test_a_parked_run_is_shown_and_continues_with_one_call(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.configure(HOUSE_TIER)
    stub = place.stub
    stub.behaviours = [stub.say("one"), stub.refuse(429, headers=wait(2400)), stub.say("two")]
    row = asyncio.run(parked(place))
    assert (row.parked, row.position) == ("house asks for 40 min", "2")
    assert row.wake_at == pytest.approx(time.time() + 2400, abs=30)
    assert [record["path"] for record in effects(capsys)] == ["1/model"]
    words = f"until {time.strftime('%a %H:%M', time.localtime(row.wake_at))}: house asks for 40 min"
    for command in (["runs"], ["runs", "last"]):
        assert main(command) == 0
        assert words in capsys.readouterr().out
    assert main(["runs", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)[0]
    assert (listed["status"], listed["waits"], listed["wake_at"]) == ("paused", words, row.wake_at)
    assert listed["error"] is None
    assert main(["resume", "last"]) == 0
    assert len(stub.requests) == 3
    assert [record["state"] for record in effects(capsys)] == ["ok", "ok"]


def test_money_that_was_set_aside_is_given_back(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.configure(HOUSE_TIER + '[models.prices."house:small"]\ninput = 1\noutput = 1000\n')
    stub = place.stub
    stub.behaviours = [stub.refuse(429, headers=wait(2400)), stub.say("fine")]
    asyncio.run(parked(place))
    assert effects(capsys) == []
    assert main(["resume", "last", "--budget", "100"]) == 0
    assert "under way" not in capsys.readouterr().err
    assert main(["runs", "last", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cost"] == pytest.approx(2 * 0.003, abs=1e-4)


def test_branches_go_on_beside_one_that_waits(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    branches = """pipeline: p
dialect: quire
steps:
- parallel:
    on_error: abort
    branches:
      a: {agent: {prompt: hello, model: cheap}}
      b: {agent: {prompt: hello, model: wild}}
    collect: {transform: {value: pipe}}
"""
    (place.work / "fan.yaml").write_text(branches)
    place.configure(HOUSE_TIER + 'wild = "house:large"\n')
    stub = place.stub
    stub.behaviours = [by_model(small=stub.refuse(429, headers=wait(600)), large=stub.say("x"))]
    assert asyncio.run(parked(place, "fan.yaml")).parked == "house asks for 10 min"
    assert len(effects(capsys)) == 1
    assert sorted(map(str, asked(stub))) == ["large", "small"]
    stub.behaviours = [stub.say("x")]
    assert main(["resume", "last"]) == 0
    assert asked(stub)[2:] == ["small"]


def test_items_of_the_same_service_do_not_ask_it_again(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    items = """pipeline: p
steps:
- for_each:
    over: "['a', 'b', 'c']"
    max_parallel: 1
    on_error: abort
    do: {agent: {prompt: "say {item}"}}
    collect: {transform: {value: pipe}}
"""
    (place.work / "fan.yaml").write_text(items)
    place.configure(HOUSE_TIER)
    place.stub.behaviours = [place.stub.say("x"), place.stub.refuse(429, headers=wait(600))]
    asyncio.run(parked(place, "fan.yaml"))
    assert (len(effects(capsys)), len(place.stub.requests)) == (1, 2)
    place.stub.behaviours = [place.stub.say("x")]
    assert main(["resume", "last"]) == 0
    assert len(place.stub.requests) == 4


def test_a_run_does_not_expire_while_it_waits_for_a_service(place: Place) -> None:
    place.configure(HOUSE_TIER + '[runs]\nexpiry = "1h"\n')
    place.stub.behaviours = [place.stub.refuse(429, headers=wait(7200))]
    row = asyncio.run(parked(place))
    assert (row.expires_at or 0) - (row.wake_at or 0) == pytest.approx(3600)


@pytest.mark.usefixtures("short")
async def test_a_program_waits_and_continues(place: Place) -> None:
    place.configure(HOUSE_TIER)
    place.stub.behaviours = [place.stub.refuse(503, headers=wait(1)), place.stub.say("fine")]
    assert (await quire.run("hello.playbook.md")).artifact == "fine"


@pytest.mark.usefixtures("short")
def test_a_command_waits_and_continues(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.configure(HOUSE_TIER)
    stub = place.stub
    stub.behaviours = [stub.refuse(503, headers=wait(1)), stub.say("fine")]
    assert main(["run", "hello.playbook.md", "--json"]) == 0
    told = capsys.readouterr()
    assert "house asks for 1 min" in told.err
    types = [json.loads(line)["type"] for line in told.out.splitlines()]
    assert [kind for kind in types if kind.startswith("run_")] == [
        "run_started", "run_paused", "run_resumed", "run_completed",
    ]  # fmt: skip


def test_an_interrupt_ends_the_wait_and_the_run_stays_parked(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place.configure(HOUSE_TIER)
    place.stub.behaviours = [place.stub.refuse(429, headers=wait(2400))]
    monkeypatch.setattr(PlainView, "note", lambda view, line: os.kill(os.getpid(), signal.SIGINT))
    assert main(["run", "hello.playbook.md"]) == 130
    assert "quire resume" in capsys.readouterr().err
    assert main(["runs", "last", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["waits"].endswith("house asks for 40 min")
