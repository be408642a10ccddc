"""The simulator's loop: time that nobody waits for, and servers that are waited for."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest
from tests.simulator.loop import GRACE, START, ServerLoop, Stuck, VirtualClock, run


def test_an_hour_takes_no_time() -> None:
    loop = ServerLoop()
    clock = VirtualClock(loop)

    async def main() -> float:
        await clock.sleep(3600)
        return clock.now()

    began = time.monotonic()
    assert run(loop, main()) == pytest.approx(START + 3600)
    assert time.monotonic() - began < 5


def test_waiting_for_nothing_and_polling_for_ever_are_noticed() -> None:
    async def polls() -> None:
        while True:
            await asyncio.sleep(1000)

    for main in (asyncio.Event().wait, polls):
        with pytest.raises(Stuck):
            run(ServerLoop(), main())


def test_time_stands_still_while_somebody_waits_for_a_file() -> None:
    """And nobody overtakes by being faster: who began to wait first goes on first."""
    order: list[tuple[str, float]] = []
    pairs = {name: socket.socketpair() for name in ("slow", "fast")}

    def answer() -> None:
        pairs["fast"][1].send(b"x")
        time.sleep(GRACE / 5)
        pairs["slow"][1].send(b"x")

    async def wait(loop: ServerLoop, name: str) -> None:
        answered = asyncio.Event()
        loop.add_reader(pairs[name][0], answered.set)
        await answered.wait()
        loop.remove_reader(pairs[name][0])
        order.append((name, loop.time()))

    async def sleeper(loop: ServerLoop) -> None:
        await asyncio.sleep(3600)
        order.append(("sleeper", loop.time()))

    async def main(loop: ServerLoop) -> None:
        thread = threading.Thread(target=answer)
        thread.start()
        await asyncio.gather(sleeper(loop), wait(loop, "slow"), wait(loop, "fast"))
        thread.join()

    loop = ServerLoop()
    run(loop, main(loop))
    assert order == [("slow", START), ("fast", START), ("sleeper", START + 3600)]
    for pair in pairs.values():
        for one in pair:
            one.close()


def test_a_server_that_never_answers_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.simulator.loop.PATIENCE", 0.01)
    near, far = socket.socketpair()

    async def main(loop: ServerLoop) -> None:
        loop.add_reader(near, lambda: None)
        await asyncio.Event().wait()

    loop = ServerLoop()
    with near, far, pytest.raises(Stuck, match="has not answered"):
        run(loop, main(loop))
