"""A model call ends in a time that is known before, however its service behaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests.engine.house import EchoModel, House

from quire.engine.conversation import Message
from quire.engine.driver.drive import DriveResult
from quire.engine.driver.walker import DriveLimits
from quire.engine.ports import ModelCall, ModelReply
from quire.engine.premises import TIMEOUTS_OF_A_CALL, longest_call
from quire.engine.records import Status, Usage
from quire.engine.requests import ModelRequest, Walk
from quire.models.choose import CallSettings, ModelSettings, ProviderLimits, ProviderSettings
from quire.models.rate_limits import limited
from quire.stores.sqlite.in_memory import MemoryStore
from quire.testing.virtual_loop import VirtualLoop


class Trickling(EchoModel):
    """Sends a piece every 119 seconds, for ever; first it waits for a place for `queued` seconds."""

    def __init__(self, queued: float = 0.0, pieces: int | None = None) -> None:
        super().__init__()
        self.queued, self.pieces = queued, pieces

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        with call.untimed():
            await asyncio.sleep(self.queued)
        sent = 0
        while sent != self.pieces:
            await asyncio.sleep(119.0)
            on_delta("x")
            sent += 1
        return ModelReply("x" * sent, self.name, Usage(1, sent, 0.0))


def asking(timeout: float | None = None) -> Walk:
    reply = yield ModelRequest("1/model", "1", "", (Message("user", "a"),), timeout=timeout)
    return reply


def driven(model: EchoModel, terms: DriveLimits, timeout: float | None = None) -> tuple[DriveResult, float]:
    """Return the end of a run, and the seconds that it took on a loop whose time is a number."""
    loop = VirtualLoop()
    begun = loop.time()

    async def work() -> DriveResult:
        house = House(MemoryStore(), model)
        await house.create()
        return await house.drive(asking(timeout), terms)

    return loop.run(work()), loop.time() - begun


def failure(ended: DriveResult) -> tuple[str, str]:
    assert ended.failure is not None
    return ended.failure.kind, ended.failure.message


@pytest.mark.parametrize(
    ("terms", "own", "seconds"),
    [
        (DriveLimits(), None, 3600.0),
        (DriveLimits(timeout=10.0), None, 300.0),
        (DriveLimits(timeout=10.0), 20.0, 600.0),
    ],
)
def test_a_reply_that_trickles_for_ever_ends(terms: DriveLimits, own: float | None, seconds: float) -> None:
    ended, took = driven(Trickling(), terms, own)
    kind, message = failure(ended)
    assert kind == "timeout"
    assert f"longer than {seconds:g} s in all" in message
    assert took == pytest.approx(seconds, abs=5.0)


def test_waiting_for_a_place_is_not_time_of_the_call() -> None:
    ended, took = driven(Trickling(queued=10_000.0, pieces=30), DriveLimits())
    assert ended.status is Status.COMPLETED
    assert took > 10_000.0
    assert failure(driven(Trickling(queued=10_000.0, pieces=31), DriveLimits())[0])[0] == "timeout"


def test_a_time_out_of_the_model_itself_is_passed_on() -> None:
    class Late(EchoModel):
        async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
            raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        driven(Late(), DriveLimits())


async def test_a_limit_of_a_provider_stops_the_time_while_it_waits() -> None:
    waits: list[str] = []

    class Noted:
        def __enter__(self) -> None:
            waits.append("begins")

        def __exit__(self, *_: object) -> None:
            waits.append("ends")

    class Asked(EchoModel):
        async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
            waits.append("asked")
            return await super().complete(call, on_delta)

    settings = ModelSettings(limits={"there": ProviderLimits(at_once=1)})
    call = ModelCall("", (Message("user", "a"),), untimed=Noted)
    await limited(Asked(), "there:x", settings).complete(call, lambda piece: None)
    assert waits == ["begins", "ends", "asked"]


def test_the_longest_silence_is_that_of_any_service_and_tier() -> None:
    assert ModelSettings().longest_timeout == 120.0
    providers = {"slow": ProviderSettings("http://there", timeout=300.0), "usual": ProviderSettings("http://here")}
    assert ModelSettings(providers=providers).longest_timeout == 300.0
    tiers = {"low": CallSettings(timeout=400.0), "high": CallSettings()}
    assert ModelSettings(providers=providers, tier_settings=tiers, timeout=20.0).longest_timeout == 400.0
    assert longest_call(400.0) == 400.0 * TIMEOUTS_OF_A_CALL
