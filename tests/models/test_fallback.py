"""Lists of models: which failure goes to the next, what is recorded of it, and what the lists are worth beforehand."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pydantic_ai", reason='needs the extra "llm"')

from tests.models.test_call_settings import Place
from tests.models.test_call_settings import place as place

from quire.cli import main
from quire.engine.conversation import Message
from quire.engine.ports import ModelCall
from quire.engine.premises import BACKOFF
from quire.errors import CannotStart, ModelFailed
from quire.models import fallback
from quire.models.choose import ModelSettings, Price, ProviderSettings
from quire.models.fallback import Fallback
from quire.models.open import open_model

if TYPE_CHECKING:
    from tests.models.conftest import Behaviour, Exchange, Stub

LIST = '[models.tiers]\ncheap = ["house:small", "house:large"]\n'
BOTH = "house:small > house:large"
OVERFLOW: dict[str, object] = {"error": {"message": "too long", "code": "context_length_exceeded"}}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("quire.models.open.BACKOFF", (0.001, 0.001))
    fallback._resting.clear()
    yield
    fallback._resting.clear()


def by_model(**behaviours: Behaviour) -> Behaviour:
    def behave(exchange: Exchange) -> None:
        behaviours[str(exchange.stub.requests[-1]["model"])](exchange)

    return behave


def asked(stub: Stub) -> list[object]:
    return [request["model"] for request in stub.requests]


def hang_up(exchange: Exchange) -> None:
    exchange.drop()


def half(exchange: Exchange) -> None:
    exchange.begin()
    exchange.event({"role": "assistant", "content": "half a"})
    exchange.drop()


def opened(stub: Stub, spec: str = BOTH, **settings: object) -> Fallback:
    config = ModelSettings(providers={"house": ProviderSettings(stub.url)}, **settings)  # type: ignore[arg-type]
    model = open_model(spec, config, {})
    assert isinstance(model, Fallback)
    return model


CALL = ModelCall("", (Message("user", "Hi."),))


async def ask(model: Fallback) -> tuple[str, list[tuple[str, str]]]:
    """Return the reply, and the switches without their reasons."""
    switches: list[tuple[str, str]] = []
    call = ModelCall(
        "", (Message("user", "Hi."),), on_switch=lambda told: switches.append((str(told["from"]), str(told["to"])))
    )
    reply = await model.complete(call, lambda piece: None)
    return f"{reply.model}: {reply.text}", switches


@pytest.mark.parametrize(
    ("status", "tries"),
    [pytest.param(429, 2, id="too many"), pytest.param(500, 2, id="broken"), pytest.param(529, 2, id="overloaded")],
)
async def test_a_service_that_fails_twice_is_passed_over(stub: Stub, status: int, tries: int) -> None:
    stub.behaviours = [by_model(small=stub.refuse(status), large=stub.say("fine"))]
    assert await ask(opened(stub)) == ("house:large: fine", [("house:small", "house:large")])
    assert asked(stub) == ["small"] * tries + ["large"]


async def test_a_service_that_asks_for_a_wait_is_passed_over_at_once(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.models.open.BACKOFF", BACKOFF)
    stub.behaviours = [by_model(small=stub.refuse(429, headers={"Retry-After": "45"}), large=stub.say("fine"))]
    assert await ask(opened(stub)) == ("house:large: fine", [("house:small", "house:large")])
    assert asked(stub) == ["small", "large"]


async def test_a_connection_that_breaks_before_the_text_is_passed_over(stub: Stub) -> None:
    stub.behaviours = [by_model(small=hang_up, large=stub.say("fine"))]
    assert (await ask(opened(stub)))[0] == "house:large: fine"


async def test_a_service_that_is_silent_is_passed_over(stub: Stub) -> None:
    stub.behaviours = [by_model(small=stub.hang, large=stub.say("fine"))]
    assert (await ask(opened(stub, timeout=0.1)))[0] == "house:large: fine"


async def test_a_refused_connection_is_passed_over(stub: Stub) -> None:
    stub.behaviours = [stub.say("fine")]
    gone = "http://127.0.0.1:9/v1#gone"
    reply, switches = await ask(opened(stub, f"{gone} > house:large"))
    assert (reply, switches) == ("house:large: fine", [(gone, "house:large")])


@pytest.mark.parametrize("status", [400, 401, 403, 404])
async def test_a_refused_key_or_request_is_not_passed_on(stub: Stub, status: int) -> None:
    stub.behaviours = [by_model(small=stub.refuse(status), large=stub.say("never"))]
    with pytest.raises(ModelFailed, match="house:small"):
        await opened(stub).complete(CALL, lambda piece: None)
    assert asked(stub) == ["small"]


async def test_a_reply_that_breaks_off_is_not_asked_for_again(stub: Stub) -> None:
    stub.behaviours = [by_model(small=half, large=stub.say("never"))]
    pieces: list[str] = []
    with pytest.raises(ModelFailed, match="house:small"):
        await opened(stub).complete(CALL, pieces.append)
    assert (asked(stub), pieces) == (["small"], ["half a"])


@pytest.mark.parametrize(
    ("windows", "replies"),
    [
        pytest.param({"house:small": 100, "house:large": 200}, True, id="larger"),
        pytest.param({"house:small": 100}, True, id="the next is not known"),
        pytest.param({"house:large": 200}, True, id="the first is not known"),
        pytest.param({"house:small": 200, "house:large": 200}, False, id="as large"),
        pytest.param({"house:small": 200, "house:large": 100}, False, id="smaller"),
    ],
)
async def test_a_prompt_that_is_too_long_goes_to_a_larger_model(
    stub: Stub, windows: dict[str, int], replies: bool
) -> None:
    stub.behaviours = [by_model(small=stub.refuse(400, OVERFLOW), large=stub.say("fine"))]
    model = opened(stub, windows=windows)
    if replies:
        assert (await ask(model))[0] == "house:large: fine"
    else:
        with pytest.raises(ModelFailed, match="longer than the model's context"):
            await ask(model)
    assert asked(stub) == ["small", "large"][: 1 + replies]


async def test_a_model_that_failed_rests(stub: Stub) -> None:
    stub.behaviours = [by_model(small=stub.refuse(500), large=stub.say("fine"))]
    await ask(opened(stub))
    stub.requests.clear()
    model = opened(stub)
    assert await ask(model) == ("house:large: fine", [("house:small", "house:large")])
    assert asked(stub) == ["large"], "for another run too"
    rest = min(fallback._resting.values()) - time.monotonic()
    assert fallback.REST_SECONDS - 10 < rest <= fallback.REST_SECONDS
    fallback._resting.update(dict.fromkeys(fallback._resting, time.monotonic()))
    assert (await ask(model))[1] == [("house:small", "house:large")]
    assert asked(stub)[1:] == ["small", "small", "large"]


async def test_all_models_that_rest_are_asked_all_the_same(stub: Stub) -> None:
    stub.behaviours = [stub.refuse(500)]
    with pytest.raises(ModelFailed, match="house:large"):
        await ask(opened(stub))
    stub.behaviours = [stub.say("fine")]
    assert await ask(opened(stub)) == ("house:small: fine", [])


def test_a_call_is_estimated_by_the_dearest_model(stub: Stub) -> None:
    prices = {"house:small": Price(1, 1), "house:large": Price(10, 10)}
    dearest = open_model("house:large", ModelSettings(prices=prices, providers={"house": ProviderSettings(stub.url)}))
    assert opened(stub, prices=prices).estimate(CALL) == dearest.estimate(CALL)  # type: ignore[attr-defined]
    assert opened(stub, prices={"house:small": Price(1, 1)}).estimate(CALL) is None


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("house:small > anthropic:claude-haiku-5-5", "anthropic:claude-haiku-5-5 needs a key: set ANTHROPIC_API_KEY"),
        ("house:small > ", "'' is not a model name"),
        ("house:small > cheap", "the tier cheap cannot be part of a list: name its models"),
    ],
)
def test_every_model_of_a_list_is_looked_at_before_the_start(stub: Stub, spec: str, problem: str) -> None:
    with pytest.raises(CannotStart, match=problem):
        opened(stub, spec, tiers={"cheap": "house:small"})


def events(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_switch_is_kept_and_a_replay_asks_no_model(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.configure(LIST)
    stub = place.stub
    stub.behaviours = [by_model(small=stub.refuse(500), large=stub.say("fine"))]
    assert main(["run", "hello.playbook.md", "--json"]) == 0
    told = events(capsys)
    switch, effect = (next(event for event in told if event["type"] == kind) for kind in ("model_switched", "effect"))
    assert (switch["from"], switch["to"]) == ("house:small", "house:large")
    assert "the provider failed" in str(switch["reason"])
    assert (switch["path"], switch["seq"]) == (effect["path"], int(str(effect["seq"])) - 1)
    result, requests = told[-1], len(stub.requests)
    assert main(["runs", "last", "--json"]) == 0
    view = json.loads(capsys.readouterr().out)
    assert (view["model"], view["artifact"]) == (BOTH, result["artifact"])
    assert main(["runs", "last", "--follow"]) == 0
    assert "model switched house:small: the provider failed" in capsys.readouterr().out
    assert len(stub.requests) == requests


def test_a_switch_is_a_line_for_people(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.configure(LIST)
    place.stub.behaviours = [by_model(small=place.stub.refuse(529), large=place.stub.say("fine"))]
    assert main(["run", "hello.playbook.md"]) == 0
    told = capsys.readouterr().err
    assert f"model: {BOTH}" in told
    assert "model switched: step 1: house:large is asked: house:small: the provider failed (HTTP 529)" in told


def test_the_proof_names_the_dearest(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    price = '[models.prices."house:{}"]\ninput = {}\noutput = {}\nfrom = "contract"\n'
    place.configure(LIST + price.format("small", 1, 2) + price.format("large", 30, 40))
    assert main(["show", "hello.playbook.md", "--bounds"]) == 0
    assert (
        f"house:large $30 read and $40 written per million tokens (contract, the most expensive of {BOTH})"
        in " ".join(capsys.readouterr().out.split())
    )
    place.configure(LIST + price.format("large", 30, 40))
    assert main(["show", "hello.playbook.md", "--bounds"]) == 0
    assert "house:small" in capsys.readouterr().out
    assert main(["run", "hello.playbook.md", "--budget", "1"]) == 2
    assert "the price of house:small is not known" in capsys.readouterr().err


def test_a_workspace_may_not_put_a_model_into_a_list(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.configure('[models.tiers]\ncheap = "house:small"\n')
    list_ = '[models.tiers]\ncheap = ["house:small", "{}"]\n'
    for member in ("house:large", f"{place.stub.url}#other", "local:./weights.gguf"):
        (place.work / "quire.toml").write_text(list_.format(member))
        assert main(["run", "hello.playbook.md"]) == 6, member
        assert place.stub.requests == []
    capsys.readouterr()
