"""Time that nobody waits for."""

from __future__ import annotations

import asyncio
import time

import pytest

from quire.testing.simulator.loop import START, Stuck, VirtualClock, VirtualLoop, run


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
