"""Limits of a provider among processes: each gate here is one of a process of its own, on a file and on PostgreSQL."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.processes import started
from tests.stores.postgres_server import shared_server

from quire.models import shared_gate
from quire.models.choose import ModelSettings, ProviderLimits
from quire.models.rate_limits import limited
from quire.models.shared_gate import SharedGate

Join = Callable[[ProviderLimits], SharedGate]


@pytest.fixture(params=["file", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return str(tmp_path / "user" / "limits.db")
    server = shared_server()
    return server.url(schema=server.new_schema())


@pytest.fixture
def join(place: str) -> Iterator[Join]:
    """Returns a gate as another process has it."""
    gates: list[SharedGate] = []

    def make(limits: ProviderLimits) -> SharedGate:
        gates.append(SharedGate(place, "user openai", "openai", limits))
        return gates[-1]

    yield make
    for gate in gates:
        gate._held = ()
        if gate._renewal is not None:
            gate._renewal.cancel()
        gate._thread.shutdown()


async def enters(gate: SharedGate, seconds: float = 0.5, tokens: float = 1.0) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await gate.enter("run", tokens)
    except TimeoutError:
        return False
    return True


async def test_processes_share_the_places(join: Join) -> None:
    one, two = join(ProviderLimits(at_once=2)), join(ProviderLimits(at_once=2))
    assert await enters(one) and await enters(two)
    assert not await enters(one) and not await enters(two)
    one.leave(0)
    assert await enters(two, 2.0)


async def test_processes_share_the_calls_of_a_minute(join: Join) -> None:
    gates = [join(ProviderLimits(calls_per_minute=20)) for _ in range(3)]
    begun = time.monotonic()
    entered = [await enters(gate, 0.2) for gate in gates for _ in range(10)]
    assert 20 <= sum(entered) <= 21 + (time.monotonic() - begun) / 3
    assert await enters(gates[0], 4.0), "a third of a call is new each second"


async def test_tokens_that_are_not_used_come_back_to_all(join: Join) -> None:
    one, two = join(ProviderLimits(tokens_per_minute=600)), join(ProviderLimits(tokens_per_minute=600))
    assert await enters(one, tokens=600)
    assert not await enters(two, tokens=300)
    one.leave(500)
    assert await enters(two, 1.5, tokens=300)
    two.leave(-900)
    two._thread.submit(int).result()
    assert not await enters(one, 0.5, tokens=1), "more than the estimate was used"


async def test_a_call_of_more_than_a_minute_begins_when_the_amount_is_whole(join: Join) -> None:
    gate = join(ProviderLimits(tokens_per_minute=100))
    assert await enters(gate, tokens=5_000)
    gate.leave(4_990)
    assert await enters(join(ProviderLimits(tokens_per_minute=100)), tokens=80)


async def test_a_call_that_is_cancelled_keeps_nothing(join: Join) -> None:
    one, two = join(ProviderLimits(at_once=1, calls_per_minute=1_000)), join(ProviderLimits(at_once=1))
    for _ in range(20):
        calls = [asyncio.create_task(one.enter("run", 1.0)) for _ in range(3)]
        await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
    assert await enters(two, 1.5)


async def test_a_place_is_kept_while_its_process_lives(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_gate, "LEASE_SECONDS", 0.9)
    monkeypatch.setattr(shared_gate, "RENEW_SECONDS", 0.3)
    one, two = join(ProviderLimits(at_once=1)), join(ProviderLimits(at_once=1))
    assert await enters(one)
    assert not await enters(two, 2.5)
    assert one._renewal is not None
    one._renewal.cancel()  # as if the process were killed
    assert await enters(two, 2.5)


async def test_no_other_user_reads_the_file(tmp_path: Path) -> None:
    gate = SharedGate(str(tmp_path / "limits.db"), "user openai", "openai", ProviderLimits(calls_per_minute=60))
    assert await enters(gate)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


async def test_without_an_answer_the_gate_of_the_process_counts(tmp_path: Path) -> None:
    file = tmp_path / "limits.db"
    gate = SharedGate(str(file), "user openai", "openai", ProviderLimits(at_once=1))
    await gate.enter("run", 1.0)
    gate.leave(0)
    told: list[str] = []
    other = sqlite3.connect(file, isolation_level=None)
    await asyncio.to_thread(gate._thread.submit(int).result)
    other.execute("BEGIN IMMEDIATE")
    begun = time.monotonic()
    for _ in range(3):
        await gate.enter("run", 1.0, told.append)
    assert time.monotonic() - begun < 2.0
    assert told == ["the shared limits of openai do not answer: other processes are not counted"]
    other.execute("ROLLBACK")
    for _ in range(3):
        gate._thread.submit(int).result()
    assert other.execute("SELECT places FROM quire_gates").fetchall() == [("{}",)], "no late place is kept"


async def test_a_long_wait_is_told(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_gate, "PATIENCE", 0.1)
    assert await enters(join(ProviderLimits(at_once=1)))
    told: list[str] = []
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(join(ProviderLimits(at_once=1)).enter("run", 1.0, told.append), 0.5)
    assert told == ["waiting for openai, which other processes use too"]


def test_nothing_is_loaded_without_limits() -> None:
    code = (
        "import sys; from quire.models.choose import *; from quire.models.rate_limits import limited;"
        "limited(None, 'openai:x', ModelSettings(limits={'other': ProviderLimits(1)}, shared='x.db'));"
        "print('quire.models.shared_gate' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


CALLS = """
import asyncio, sys, time
from quire.models.choose import ProviderLimits
from quire.models.shared_gate import SharedGate

async def main(place, seconds, at_once, calls):
    limits = ProviderLimits(int(at_once) or None, int(calls) or None)
    gate, count, ends = SharedGate(place, "user openai", "openai", limits), 0, time.monotonic() + float(seconds)
    while time.monotonic() < ends:
        try:
            async with asyncio.timeout(ends - time.monotonic()):
                await gate.enter("run", 1.0)
        except TimeoutError:
            break
        count += 1
        print("in", flush=True)
        if at_once != "0":
            await asyncio.sleep(float(seconds))
        gate.leave(0)
    print(count, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
def test_three_processes_stay_below_the_calls_of_a_minute(place: str) -> None:
    """A full minute at first, and one and a half more in 90 seconds."""
    command = [sys.executable, "-c", CALLS, place, "90", "0", "60"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    counts = [int(process.communicate(timeout=120)[0].split()[-1]) for process in processes]
    assert 140 <= sum(counts) <= 150, counts


@pytest.mark.slow
async def test_the_place_of_a_killed_process_is_free_after_half_a_minute(place: str, join: Join) -> None:
    with started([sys.executable, "-c", CALLS, place, "50", "1", "0"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"in\n"
        process.kill()
    killed = time.monotonic()
    assert await enters(join(ProviderLimits(at_once=1)), 40.0)
    assert 25.0 < time.monotonic() - killed < 32.0


@pytest.mark.slow
async def test_a_shared_limit_costs_little(place: str, join: Join) -> None:
    """At most a hundredth of a call of 200 ms, in time of the processor."""
    gate = join(ProviderLimits(100, 10_000_000, 10_000_000))
    await gate.enter("run", 1.0)
    used = time.process_time()
    for _ in range(300):
        await gate.enter("run", 1.0)
        gate.leave(0)
    gate._thread.submit(int).result()
    assert (time.process_time() - used) / 300 < 0.002


async def test_the_models_of_a_workspace_name_the_database(place: str) -> None:
    limits = {"openai": ProviderLimits(at_once=1)}
    model = limited(object(), "openai:x", ModelSettings(limits=limits, shared=place))  # type: ignore[arg-type]
    assert [type(gate).__name__ for gate in model._gates] == ["Gate", "SharedGate"]  # type: ignore[attr-defined]
