"""The tool `now`: in UTC or a zone, through the gate, recorded once."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from tests.tools.built_in import House

from quire.engine.requests import ToolRequest
from quire.errors import ToolFailed
from quire.library.document import load
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.runs.workspace_gate import open_gate
from quire.stores import open_store
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.grants import default_grants
from quire.workspace.locate import Workspace

AT = 1_792_137_600.75  # 2026-10-16 08:00:00 UTC, a Friday


class StandIn:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.at = AT

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds


async def told(tmp_path: Path, **arguments: Value) -> Value:
    house = House(tmp_path)
    settings = load_settings(Workspace(house.folder), house.environ)
    async with open_gate(settings, default_grants(settings), house.environ, clock=lambda: AT) as gate:
        return await gate.call(ToolRequest("1/tool", "1", "", "now", arguments), "effect")


@pytest.mark.parametrize(
    ("arguments", "iso", "date", "time"),
    [
        ({}, "2026-10-16T08:00:00Z", "2026-10-16", "08:00:00"),
        ({"zone": "UTC"}, "2026-10-16T08:00:00Z", "2026-10-16", "08:00:00"),
        ({"zone": "Europe/Berlin"}, "2026-10-16T10:00:00+02:00", "2026-10-16", "10:00:00"),
        ({"zone": "Pacific/Kiritimati"}, "2026-10-16T22:00:00+14:00", "2026-10-16", "22:00:00"),
        ({"zone": "America/Argentina/Buenos_Aires"}, "2026-10-16T05:00:00-03:00", "2026-10-16", "05:00:00"),
    ],
)
async def test_the_moment(tmp_path: Path, arguments: dict[str, Value], iso: str, date: str, time: str) -> None:
    zone = arguments.get("zone", "UTC")
    expected = {"iso": iso, "date": date, "time": time, "weekday": "Friday", "unix": int(AT), "zone": zone}
    assert await told(tmp_path, **arguments) == expected
    assert datetime.fromisoformat(iso).timestamp() == int(AT)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../../etc/passwd", "/etc/localtime", "Europe", "A" * 500, "\n"])
async def test_a_zone_that_does_not_exist(tmp_path: Path, zone: str) -> None:
    with pytest.raises(ToolFailed, match="unknown time zone"):
        await told(tmp_path, zone=zone)


async def test_the_clock_of_the_run_is_read_once_and_recorded(tmp_path: Path) -> None:
    """A program, or the simulator, gives its own clock; a resumed run sees the moment that it saw before."""
    house, clock = House(tmp_path), StandIn()
    house.write("quire.toml")
    file = house.write(
        "when.yaml",
        "pipeline: when\nsteps:\n- tool: {name: now, output: when}\n"
        "- tool: {name: file__read, args: {path: late.txt}, output: text}\n"
        "- transform: {value: \"{'when': when.iso, 'text': text}\"}\n",
    )
    settings = load_settings(Workspace(house.folder), house.environ)
    store = open_store(tmp_path / "quire.db", durability="process")
    runtime = Runtime(settings, store, environ=house.environ, clock=clock)
    try:
        run = await runtime.start(load(file), {}, RunOptions())
        assert (await runtime.drive(run)).status == "failed"
        clock.at += 86_400
        house.write("late.txt", "there")
        ended = await runtime.drive(run)
        assert ended.status == "completed"
        (record,) = [one for one in await store.effects(run) if one.path == "1/tool"]
    finally:
        await runtime.close()
    assert record.value == {
        "iso": "2026-10-16T08:00:00Z",
        "date": "2026-10-16",
        "time": "08:00:00",
        "weekday": "Friday",
        "unix": int(AT),
        "zone": "UTC",
    }
    assert isinstance(ended.result, dict)
    assert ended.result["output"] == {"when": "2026-10-16T08:00:00Z", "text": "there"}
