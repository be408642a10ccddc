"""Prompt caches: which calls ask for one, what it costs, and how it is turned off."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pydantic_ai", reason='needs the extra "llm"')

from tests.models.dialects import Anthropic, named, sending
from tests.models.test_call_settings import Place
from tests.models.test_call_settings import place as place

from quire.cli import main
from quire.engine.conversation import Message, Offered
from quire.engine.ports import ModelCall, Priced
from quire.models.choose import ModelSettings, Price
from quire.models.open import open_model
from quire.models.prices import ModelRate, rate_of

if TYPE_CHECKING:
    from tests.models.conftest import Behaviour, Stub

CLAUDE, GPT = "anthropic:claude-sonnet-5-5", "openai-chat:gpt-5.4-mini"
TOOL = Offered("look", "Look.", {"type": "object", "properties": {}})
CALL = ModelCall("Be brief.", (Message("user", "Hi."),), tools=(TOOL,), cache="shared")


@pytest.fixture(autouse=True)
def keys(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC", "OPENAI"):
        monkeypatch.setenv(f"{name}_API_KEY", "x")
        monkeypatch.setenv(f"{name}_BASE_URL", stub.url)


def claude(**usage: int) -> Behaviour:
    """A reply of Claude whose tokens are counted so."""
    dialect = Anthropic()
    begun = json.loads(dialect.opening((7, 3))[0].partition("data: ")[2])
    begun["message"]["usage"] = {"input_tokens": 100, "output_tokens": 1, **usage}
    return sending(named(begun), *dialect.text("fine"), *dialect.closing("end_turn", (100, 10)))


async def sent(stub: Stub, spec: str, call: ModelCall, **settings: Any) -> dict[str, Any]:
    await open_model(spec, ModelSettings(**settings)).complete(call, lambda piece: None)
    return stub.requests[-1]


async def test_a_shared_beginning_is_cached(stub: Stub) -> None:
    stub.behaviours = [claude()]
    request = await sent(stub, CLAUDE, CALL)
    assert request["system"][-1]["cache_control"]["type"] == "ephemeral"
    assert request["tools"][-1]["cache_control"]["type"] == "ephemeral"
    stub.behaviours = [stub.say("fine")]
    assert (await sent(stub, GPT, CALL))["prompt_cache_key"] == "shared"


@pytest.mark.parametrize(
    ("call", "settings"),
    [
        pytest.param(replace(CALL, cache=""), {}, id="a call of its own"),
        pytest.param(CALL, {"cache": False}, id="turned off"),
        pytest.param(CALL, {"prices": {CLAUDE: Price(1, 1), GPT: Price(1, 1)}}, id="own prices"),
    ],
)
async def test_nothing_else_is_cached(stub: Stub, call: ModelCall, settings: dict[str, Any]) -> None:
    stub.behaviours = [claude()]
    assert "cache_control" not in json.dumps(await sent(stub, CLAUDE, call, **settings))
    stub.behaviours = [stub.say("fine")]
    assert "prompt_cache_key" not in await sent(stub, GPT, call, **settings)


async def test_a_compatible_service_gets_no_key_of_a_cache(stub: Stub) -> None:
    stub.behaviours = [stub.say("fine")]
    assert "prompt_cache_key" not in await sent(stub, stub.spec, CALL)


async def test_cached_tokens_are_counted_at_their_price(stub: Stub) -> None:
    model = open_model(CLAUDE, ModelSettings())
    costs = []
    for usage in ({}, {"cache_creation_input_tokens": 1000}, {"cache_read_input_tokens": 1000}):
        stub.behaviours = [claude(**usage)]
        reply = await model.complete(CALL, lambda piece: None)
        costs.append(reply.usage.cost or 0.0)
        assert reply.usage.input_tokens == 100 + sum(usage.values())
        assert isinstance(model, Priced)
    plain, written, read = costs
    per_token = plain_rate().picodollars()[0] / 1e12
    assert (written - plain) / 1000 == pytest.approx(1.25 * per_token)
    assert (read - plain) / 1000 < per_token


def plain_rate(*, cache: bool = False) -> ModelRate:
    rate = rate_of(CLAUDE, ModelSettings(cache=cache), datetime.now(UTC).date())
    assert isinstance(rate, ModelRate)
    return rate


def test_the_bound_takes_the_price_of_writing_a_cache() -> None:
    assert plain_rate(cache=True).input == plain_rate().input * 5 / 4
    model, without = open_model(CLAUDE, ModelSettings()), open_model(CLAUDE, ModelSettings(cache=False))
    assert isinstance(model, Priced)
    assert isinstance(without, Priced)
    most, least = model.estimate(CALL), without.estimate(CALL)
    assert most is not None
    assert least is not None
    assert most > least
    assert model.estimate(replace(CALL, cache="")) == least


LOOP = """pipeline: p
dialect: quire
steps:
- agent: {prompt: hello}
- for_each:
    over: "['a', 'b']"
    max_parallel: 1
    on_error: abort
    do: {agent: {prompt: "say {item}"}}
    collect: {transform: {value: pipe}}
- agent: {prompt: look, identity: seer}
"""


def test_items_and_agents_with_tools_share_a_beginning(place: Place) -> None:
    (place.work / "p.yaml").write_text(LOOP)
    seer = '[agents.seer]\ntools = ["file__glob"]\n'
    (place.home / "quire.toml").write_text(seer)
    assert main(["run", "p.yaml", "--model", GPT, "--allow", "file__glob"]) == 0
    alone, first, second, tools = (request.get("prompt_cache_key") for request in place.stub.requests)
    assert alone is None
    assert first == second != tools
    assert {len(str(key)) for key in (first, tools)} == {32}
    (place.home / "quire.toml").write_text(f"{seer}[models]\ncache = false\n")
    place.stub.requests.clear()
    assert main(["run", "p.yaml", "--model", GPT, "--allow", "file__glob"]) == 0
    assert not any("prompt_cache_key" in request for request in place.stub.requests)
