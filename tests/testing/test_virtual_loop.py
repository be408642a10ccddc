"""Time that nobody waits for."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest
from tests.simulator.loop import GRACE, START, Stuck, VirtualClock, VirtualLoop, run


def test_an_hour_takes_no_time() -> None:
    loop = VirtualLoop()
    clock = VirtualClock(loop)

    async def main() -> float:
        await clock.sleep(3600)
        return clock.now()

    began = time.monotonic()
    assert run(loop, main()) == pytest.approx(START + 3600)
    assert time.monotonic() - began < 5


def test_who_sleeps_less_is_first_and_ties_keep_their_order() -> None:
    order: list[str] = []

    async def one(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        order.append(name)

    async def main() -> None:
        await asyncio.gather(one("late", 2.0), one("early", 1.0), one("later", 2.0))

    run(VirtualLoop(), main())
    assert order == ["early", "late", "later"]


def test_waiting_for_nothing_is_noticed() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stuck):
        run(VirtualLoop(), main())


def test_polling_for_ever_is_noticed() -> None:
    async def main() -> None:
        while True:
            await asyncio.sleep(1000)

    with pytest.raises(Stuck):
        run(VirtualLoop(), main())


def test_what_no_task_hears_of_is_kept() -> None:
    loop = VirtualLoop()

    async def main() -> None:
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(1)

    run(loop, main())
    assert [type(error) for error in loop.lost] == [ZeroDivisionError]


def test_time_stands_still_while_somebody_waits_for_a_file() -> None:
    """And nobody overtakes by being faster: who began to wait first goes on first."""
    order: list[tuple[str, float]] = []
    pairs = {name: socket.socketpair() for name in ("slow", "fast")}

    def answer() -> None:
        pairs["fast"][1].send(b"x")
        time.sleep(GRACE / 5)
        pairs["slow"][1].send(b"x")

    async def wait(loop: VirtualLoop, name: str) -> None:
        answered = asyncio.Event()
        loop.add_reader(pairs[name][0], answered.set)
        await answered.wait()
        loop.remove_reader(pairs[name][0])
        order.append((name, loop.time()))

    async def sleeper(loop: VirtualLoop) -> None:
        await asyncio.sleep(3600)
        order.append(("sleeper", loop.time()))

    async def main(loop: VirtualLoop) -> None:
        thread = threading.Thread(target=answer)
        thread.start()
        await asyncio.gather(sleeper(loop), wait(loop, "slow"), wait(loop, "fast"))
        thread.join()

    loop = VirtualLoop()
    run(loop, main(loop))
    assert order == [("slow", START), ("fast", START), ("sleeper", START + 3600)]
    for pair in pairs.values():
        for one in pair:
            one.close()


def test_a_server_that_never_answers_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.simulator.loop.PATIENCE", 0.01)
    near, far = socket.socketpair()

    async def main(loop: VirtualLoop) -> None:
        loop.add_reader(near, lambda: None)
        await asyncio.Event().wait()

    loop = VirtualLoop()
    with near, far, pytest.raises(Stuck, match="has not answered"):
        run(loop, main(loop))
