"""Limits of providers: how many calls run side by side and per minute, whose turn it is, and what a wait is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from quire.engine.conversation import Message
from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import Usage
from quire.errors import ModelFailed
from quire.models import rate_limits
from quire.models.choose import CallSettings, ModelSettings, ProviderLimits
from quire.models.open import open_model
from quire.models.rate_limits import Bucket, Gate, limited, provider_of
from quire.models.retry import Retrying

if TYPE_CHECKING:
    from tests.models.conftest import Exchange, Stub


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gates of this process are those of one test."""
    monkeypatch.setattr(rate_limits, "_gates", {})


class Seconds:
    """The time of an event loop that does not sleep: it jumps to the next timer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(loop, "time", lambda: self.now)
        select = loop._selector.select  # type: ignore[attr-defined]

        def jump(timeout: float | None) -> object:
            self.now += timeout or 0.0
            return select(0 if timeout is not None else None)

        monkeypatch.setattr(loop._selector, "select", jump)  # type: ignore[attr-defined]
        monkeypatch.setattr(rate_limits, "time", SimpleNamespace(monotonic=lambda: self.now))


@pytest.fixture
async def seconds(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    return Seconds(asyncio.get_running_loop(), monkeypatch)


class Slow:
    """A model that takes a second for each call, and counts those that run side by side."""

    name = "slow"

    def __init__(self, seconds: float = 1.0, usage: Usage | None = None) -> None:
        self.seconds = seconds
        self.usage = usage or Usage(10, 10, 0.0)
        self.live = self.most = 0
        self.begun: list[tuple[str, str]] = []

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        self.begun.append((call.run, call.messages[0].content))
        self.live += 1
        self.most = max(self.most, self.live)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.live -= 1
        return ModelReply("x", self.name, self.usage)


def call(text: str = "", run: str = "r", **more: object) -> ModelCall:
    return ModelCall("", (Message("user", text),), run=run, **more)  # type: ignore[arg-type]


def ask(model: object, *calls: ModelCall) -> list[asyncio.Task[ModelReply]]:
    return [asyncio.create_task(model.complete(one, lambda piece: None)) for one in calls]  # type: ignore[attr-defined]


async def test_as_many_as_may_run_side_by_side(seconds: Seconds) -> None:
    slow = Slow()
    model = limited(slow, "p:m", ModelSettings(limits={"p": ProviderLimits(at_once=3)}))
    await asyncio.gather(*ask(model, *(call() for _ in range(10))))
    assert (slow.most, len(slow.begun)) == (3, 10)
    assert 4.0 <= seconds.now < 4.1


async def test_runs_take_turns_and_the_calls_of_one_go_in_order(seconds: Seconds) -> None:
    slow = Slow()
    model = limited(slow, "p:m", ModelSettings(limits={"p": ProviderLimits(at_once=1)}))
    await asyncio.gather(*ask(model, *(call(str(n), "big") for n in range(5)), call("0", "small"), call("1", "small")))
    order = " ".join(f"{run}{text}" for run, text in slow.begun)
    assert order == "big0 big1 small0 big2 small1 big3 big4"


async def test_two_models_of_one_provider_share_its_limits(seconds: Seconds) -> None:
    config = ModelSettings(limits={"openai": ProviderLimits(at_once=2)})
    slow = Slow()
    models = [limited(slow, spec, config) for spec in ("openai:a", "openai:b", "openai-responses:a", "openai-chat:a")]
    await asyncio.gather(*(one for model in models for one in ask(model, call(), call())))
    assert slow.most == 2
    other = limited(Slow(), "anthropic:x", config)
    assert isinstance(other, Slow), "no limit, no cost"


@pytest.mark.parametrize(
    ("spec", "provider"),
    [
        ("openai-responses:x", "openai"),
        ("gateway/openai:x", "openai"),
        ("https://host:8000/v1#m", "host:8000"),
        ("house:a:b", "house"),
    ],
)
def test_the_provider_of_a_model(spec: str, provider: str) -> None:
    assert provider_of(spec) == provider


async def test_calls_a_minute(seconds: Seconds) -> None:
    """All of a minute's calls at once, then one each second."""
    slow = Slow(0.0)
    model = limited(slow, "p:m", ModelSettings(limits={"p": ProviderLimits(calls_per_minute=60)}))
    await asyncio.gather(*ask(model, *(call() for _ in range(60))))
    assert seconds.now < 0.1
    await asyncio.gather(*ask(model, *(call() for _ in range(30))))
    assert 29.9 < seconds.now < 30.1


async def test_tokens_a_minute_are_estimated_and_corrected(seconds: Seconds) -> None:
    slow = Slow(0.0, Usage(500, 1500, 0.0))
    model = limited(slow, "p:m", ModelSettings(limits={"p": ProviderLimits(tokens_per_minute=6000)}))
    for expected in (0.0, 0.0, 1.01, 21.01):
        await asyncio.gather(*ask(model, call("x" * 300, max_tokens=2000)))
        assert seconds.now == pytest.approx(expected, abs=0.01), (
            "2,101 are reserved, 2,000 used; 100 a second come back"
        )


async def test_a_call_of_more_than_a_minute_goes_when_the_bucket_is_full(seconds: Seconds) -> None:
    slow = Slow(0.0, Usage(12_000, 0, 0.0))
    model = limited(slow, "p:m", ModelSettings(limits={"p": ProviderLimits(tokens_per_minute=6000)}))
    await asyncio.gather(*ask(model, call("x" * 100_000)))
    assert seconds.now < 0.1
    await asyncio.gather(*ask(model, call("x", max_tokens=99)))
    assert 60.9 < seconds.now < 61.2, "the debt of 6,000 comes first"


async def test_who_waits_can_be_cancelled_and_holds_nothing(seconds: Seconds) -> None:
    slow = Slow()
    model = limited(slow, "p:m", ModelSettings(limits={"p": ProviderLimits(at_once=1)}))
    first, second, third = ask(model, call("1"), call("2"), call("3"))
    await asyncio.sleep(0.5)
    second.cancel()
    first.cancel()
    await third
    assert [text for _, text in slow.begun] == ["1", "3"]
    assert slow.live == 0
    await asyncio.gather(*ask(model, call("4")))


async def test_a_place_that_was_given_to_a_cancelled_call_goes_to_the_next(seconds: Seconds) -> None:
    """The place is given and the task cancelled in the same turn of the event loop."""
    gate = Gate("p", ProviderLimits(at_once=1))
    await gate.enter("r", 0)
    waiting = [asyncio.create_task(gate.enter("r", 0)) for _ in range(2)]
    await asyncio.sleep(0)
    gate.leave(0)
    waiting[0].cancel()
    await waiting[1]
    with pytest.raises(asyncio.CancelledError):
        await waiting[0]


async def test_a_failed_call_gives_its_place_back(seconds: Seconds) -> None:
    class Failing(Slow):
        async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
            raise ModelFailed("no", kind="server")

    model = limited(Failing(), "p:m", ModelSettings(limits={"p": ProviderLimits(at_once=1, tokens_per_minute=6000)}))
    for task in ask(model, call(), call(), call()):
        with pytest.raises(ModelFailed):
            await task
    assert seconds.now < 0.1


async def test_limits_of_the_user_the_workspace_the_tier_and_the_agent_all_hold(seconds: Seconds) -> None:
    config = ModelSettings(
        tiers={"cheap": "p:m"},
        tier_settings={"cheap": CallSettings(at_once=3)},
        limits={"p": ProviderLimits(at_once=5)},
        folder="/a",
        folder_limits={"p": ProviderLimits(at_once=4)},
        agent_limits={"calm": 2},
    )
    for identity, spec, most in (("", "p:other", 4), ("", "p:m", 3), ("calm", "p:m", 2)):
        slow = Slow()
        await asyncio.gather(*ask(limited(slow, spec, config), *(call(identity=identity) for _ in range(9))))
        assert slow.most == most


async def test_a_workspace_shares_the_limits_of_the_user_with_others(seconds: Seconds) -> None:
    slow, mine = Slow(), {"p": ProviderLimits(at_once=2)}
    configs = [ModelSettings(limits=mine, folder=name, folder_limits={"p": ProviderLimits(9)}) for name in ("/a", "/b")]
    await asyncio.gather(*(one for config in configs for one in ask(limited(slow, "p:m", config), call(), call())))
    assert slow.most == 2


async def test_a_wait_is_told_once(seconds: Seconds) -> None:
    told: list[str] = []
    model = limited(Slow(5.0), "p:m", ModelSettings(limits={"p": ProviderLimits(1, 600)}))
    await asyncio.gather(*ask(model, *(call(on_wait=told.append) for _ in range(4))))
    assert told == ["waiting for p: 1 at once, 600 calls a minute"]
    assert seconds.now == pytest.approx(20.0)


def test_threads_with_event_loops_of_their_own_share_a_gate() -> None:
    config = ModelSettings(limits={"p": ProviderLimits(at_once=2, calls_per_minute=1_000_000)})
    slow = Slow(0.005)
    done: list[int] = []

    async def several() -> None:
        await asyncio.gather(*ask(limited(slow, "p:m", config), *(call(run=str(n % 2)) for n in range(20))))
        done.append(1)

    threads = [threading.Thread(target=asyncio.run, args=(several(),)) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    assert (len(done), len(slow.begun), slow.live) == (4, 80, 0)
    assert slow.most <= 2


def test_an_event_loop_that_ends_leaves_the_gate_to_others() -> None:
    config = ModelSettings(limits={"p": ProviderLimits(at_once=1, calls_per_minute=100_000)})
    slow = Slow(0.0)

    async def given_up() -> None:
        ask(limited(Slow(60.0), "p:m", config), call(), call())
        await asyncio.sleep(0.01)

    asyncio.run(given_up())
    asyncio.run(limited(slow, "p:m", config).complete(call(), lambda piece: None))
    assert len(slow.begun) == 1


def test_limits_that_change_while_a_process_runs() -> None:
    gate = rate_limits.gate_of("k", "p", ProviderLimits(at_once=1))
    assert rate_limits.gate_of("k", "p", ProviderLimits(at_once=2)) is gate
    assert gate.limits.at_once == 2


def test_a_bucket_is_never_more_than_full() -> None:
    bucket = Bucket(60, 0.0)
    bucket.use(60)
    assert bucket.lacks(1, 0.0) == pytest.approx(1.0)
    assert bucket.lacks(60, 3600.0) == 0.0
    bucket.use(60)
    assert bucket.lacks(60, 3600.0) == pytest.approx(60.0)


FAN = """pipeline: p
steps:
- for_each:
    over: "[1, 2, 3, 4]"
    max_parallel: 4
    on_error: abort
    do:
      for_each:
        over: "[1, 2, 3, 4]"
        max_parallel: 4
        on_error: abort
        do: {agent: {prompt: hello}}
        collect: {transform: {value: pipe}}
    collect: {transform: {value: pipe}}
"""


@pytest.fixture
def counted(stub: Stub) -> Iterator[list[int]]:
    """How many requests the service had at once, at each of them."""
    pytest.importorskip("pydantic_ai", reason='needs the extra "llm"')
    lock, live, seen = threading.Lock(), [0], list[int]()
    together = threading.Event()

    def behave(exchange: Exchange) -> None:
        with lock:
            live[0] += 1
            seen.append(live[0])
        together.wait(0.02)
        with lock:
            live[0] -= 1
        stub.say("fine")(exchange)

    stub.behaviours = [behave]
    yield seen


@pytest.mark.parametrize(("table", "most"), [("", 16), ("[models.limits.house]\nat_once = 2\n", 2)])
def test_a_fan_of_fans_keeps_to_the_limit_of_a_real_service(
    stub: Stub,
    counted: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    table: str,
    most: int,
) -> None:
    from quire.cli import main

    monkeypatch.setattr(rate_limits, "PATIENCE", 0.0)

    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    house = f'[models]\ndefault = "house:m"\n[models.providers.house]\nbase_url = "{stub.url}"\n'
    (home / "quire.toml").write_text(house + table)
    (work / "p.yaml").write_text(FAN)
    monkeypatch.setenv("QUIRE_HOME", str(home))
    monkeypatch.chdir(work)
    assert main(["run", "p.yaml"]) == 0
    assert ("waiting for house: 2 at once" in capsys.readouterr().err) is (most == 2)
    assert len(counted) == 16
    assert max(counted) == 2 if most == 2 else max(counted) > 2


def config_of(stub: Stub, **limit: int) -> ModelSettings:
    pytest.importorskip("pydantic_ai", reason='needs the extra "llm"')
    return ModelSettings(limits={stub.url.removeprefix("http://").removesuffix("/v1"): ProviderLimits(**limit)})


async def test_a_provider_that_asks_to_wait_holds_no_place(stub: Stub) -> None:
    stub.behaviours = [stub.refuse(429, headers={"Retry-After": "7"}), stub.say("meanwhile"), stub.say("at last")]
    model = open_model(stub.spec, config_of(stub, at_once=1), {})
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        meanwhile = await model.complete(call(run="other"), lambda piece: None)
        assert meanwhile.text == "meanwhile"

    assert isinstance(model, Retrying)
    model._sleep = sleep
    async with asyncio.timeout(30):
        assert (await model.complete(call(), lambda piece: None)).text == "at last"
    assert waits == [7.0]


async def test_a_wait_is_not_part_of_the_time_of_a_call(stub: Stub) -> None:
    def slow(exchange: Exchange) -> None:
        threading.Event().wait(0.6)
        stub.say("first")(exchange)

    stub.behaviours = [slow, stub.say("second")]
    model = open_model(stub.spec, config_of(stub, at_once=1), {})
    first, second = ask(model, call(timeout=30.0), call(timeout=0.3))
    assert ((await first).text, (await second).text) == ("first", "second")
    assert len(stub.requests) == 2, "the second was not tried again"
