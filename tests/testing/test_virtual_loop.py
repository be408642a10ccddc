"""Time that is a number: it takes no time, takes the same turns again, and notices programs that get nowhere."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from quire.testing import virtual_loop
from quire.testing.virtual_loop import LONGEST, Stuck, VirtualClock, VirtualLoop
from quire.tools.blocking import in_thread

YEAR_2026 = 1_790_000_000.25


def test_an_hour_takes_no_time() -> None:
    loop = VirtualLoop(YEAR_2026)
    clock = VirtualClock(loop)

    async def main() -> float:
        await clock.sleep(3600)
        return clock.now()

    began = time.monotonic()
    assert loop.run(main()) == pytest.approx(YEAR_2026 + 3600, abs=1e-5)
    assert time.monotonic() - began < 5


def test_the_shorter_sleep_ends_first_and_ties_keep_their_order() -> None:
    order: list[str] = []

    async def one(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        order.append(name)

    async def main() -> None:
        await asyncio.gather(one("late", 0.3), one("early", 0.2), one("later", 0.3))

    VirtualLoop(YEAR_2026).run(main())
    assert order == ["early", "late", "later"]


async def _waits() -> None:
    await asyncio.Event().wait()


async def _sleeps_long() -> None:
    await asyncio.sleep(LONGEST + 1)


async def _polls() -> None:
    while True:
        await asyncio.sleep(0.5)


async def _spins() -> None:
    while True:
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (_waits, "nothing is under way"),
        (_sleeps_long, "in 3.456e\\+07 seconds"),
        (_polls, "in 1000 turns"),
        (_spins, "in 1000 turns"),
    ],
)
def test_a_program_that_gets_nowhere_is_noticed(
    program: Callable[[], Coroutine[Any, Any, None]], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(virtual_loop, "MOST_TURNS", 1000)
    loop = VirtualLoop()
    with pytest.raises(Stuck, match=message):
        loop.run(program())
    # The next program finds a loop without tasks and timers, and all of its own turns.
    assert loop.run(_returns(asyncio.all_tasks)) == {None}
    assert loop.lost == []


async def _returns(tasks: Callable[[], set[asyncio.Task[Any]]]) -> set[None]:
    for _ in range(600):
        await asyncio.sleep(0)
    return {None for task in tasks() if task is asyncio.current_task()} if len(tasks()) == 1 else set()


def test_a_run_leaves_neither_tasks_nor_timers_behind() -> None:
    loop, fired = VirtualLoop(), list[str]()

    async def beside() -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            fired.append("stopped")
            raise

    async def main(kept: list[asyncio.Task[None]]) -> None:
        kept.append(asyncio.create_task(beside()))
        loop.call_later(5, fired.append, "late")
        await asyncio.sleep(1)

    loop.run(main([]))
    assert fired == ["stopped"]
    assert loop.time() == 1
    loop.run(asyncio.sleep(100))
    assert fired == ["stopped"]


def test_a_task_that_does_not_stop_is_given_up() -> None:
    loop = VirtualLoop()

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()

    async def main() -> None:
        kept.append(asyncio.create_task(stubborn()))
        await asyncio.sleep(1)

    kept: list[asyncio.Task[None]] = []
    loop.run(main())
    assert [type(error) for error in loop.lost] == [Stuck]


def test_exceptions_that_no_task_receives_are_kept() -> None:
    loop = VirtualLoop()

    async def main() -> None:
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(1)

    loop.run(main())
    assert [type(error) for error in loop.lost] == [ZeroDivisionError]


def test_time_is_advanced_by_hand() -> None:
    loop = VirtualLoop(100.0)
    loop.advance(48 * 3600)
    assert loop.time() == 100.0 + 48 * 3600
    loop.set_time(5.0)
    assert loop.time() == 5.0
    for wrong in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="advanced"):
            loop.advance(wrong)

    async def main() -> list[float]:
        due = asyncio.create_task(asyncio.sleep(10))
        await asyncio.sleep(0)
        loop.advance(2 * LONGEST)
        await due
        with pytest.raises(RuntimeError, match="running"):
            loop.set_time(0.0)
        return [loop.time()]

    assert loop.run(main()) == [5.0 + 2 * LONGEST]


def test_blocking_work_is_done_in_its_turn() -> None:
    def thread() -> int:
        return threading.get_ident()

    async def main() -> list[object]:
        found: list[object] = [await asyncio.to_thread(thread), await in_thread(thread, seconds=0.0)]
        for call in (asyncio.to_thread(lambda: 1 / 0), in_thread(lambda: 1 / 0)):
            with pytest.raises(ZeroDivisionError):
                await call
        return found

    assert VirtualLoop().run(main()) == [threading.get_ident()] * 2


def test_there_is_no_network_and_no_process() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with pytest.raises(OSError, match="no network"):
            await asyncio.open_connection("quire.invalid", 80)
        with socket.socket() as ours:
            ours.setblocking(False)
            with pytest.raises(NotImplementedError):
                await loop.sock_recv(ours, 1)
            with pytest.raises(NotImplementedError):
                loop.add_reader(ours, print)
        with pytest.raises(NotImplementedError):
            await asyncio.create_subprocess_exec("true")

    VirtualLoop().run(main())


def test_the_same_program_takes_the_same_turns() -> None:
    def order(loop: VirtualLoop) -> list[int]:
        done: list[int] = []

        async def one(number: int) -> None:
            await asyncio.sleep((number * 7919) % 13 / 10)
            done.append(number)

        async def main() -> None:
            await asyncio.gather(*map(one, range(50)))

        loop.set_time(0.0)
        loop.run(main())
        return done

    loop = VirtualLoop()
    assert order(loop) == order(loop) == order(VirtualLoop())
