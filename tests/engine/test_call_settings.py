"""Settings of a model call: they reach the model, and change the hash of a request only where they are set."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.house import EchoModel, House
from tests.engine.test_pipeline import output, walk
from tests.engine.thread.crew import directive
from tests.plan.test_bounds import playbook

from quire.engine.conversation import Message
from quire.engine.driver.walker import DriveLimits
from quire.engine.interpreter.callees import Profile
from quire.engine.interpreter.playbook.interpret import interpret
from quire.engine.interpreter.thread.compose import Bundle
from quire.engine.interpreter.thread.loop import interpret_directive
from quire.engine.interpreter.thread.setup import ParentContext, set_up
from quire.engine.ports import ModelCall
from quire.engine.premises import REPLY_TOKENS, SHORT_REPLY_TOKENS, smallest
from quire.engine.request_hashes import request_hash
from quire.engine.requests import Bounds, ModelRequest, Walk
from quire.models.choose import CallSettings
from quire.models.wrappers import with_settings
from quire.plan.thread import THREAD_PATH
from quire.runs.pins import misshapen_pin, pinned_profiles, read_profiles
from quire.trust.capabilities import Grants
from quire.values import Value
from quire.workspace.settings import AgentSettings


def request(**settings: float | int | str) -> ModelRequest:
    messages = (Message("user", "Hello?"),)
    return ModelRequest("1/model", "1", "Be brief.", messages, model="house:small", identity="default", **settings)  # type: ignore[arg-type]


def test_the_hash_of_a_request_without_settings_is_that_of_older_versions() -> None:
    assert request_hash(request()) == "9f268b1bbb872eb5956cb3f740fb96edca8728638c95c6de01d7c3c8c4005e3d"


@pytest.mark.parametrize(
    ("settings", "counts"),
    [
        ({"temperature": 0.0}, True),
        ({"max_tokens": 5}, True),
        ({"reasoning": "low"}, True),
        ({"timeout": 5.0}, False),
    ],
)
def test_a_setting_counts_where_the_reply_depends_on_it(settings: dict[str, float], counts: bool) -> None:
    assert (request_hash(request(**settings)) != request_hash(request())) is counts


async def test_the_settings_of_a_profile_reach_the_model(house: House) -> None:
    profile = Profile(temperature=0.3, max_tokens=70, reasoning="low", timeout=9.0)
    ended = await house.drive(walk("pipeline: p\nsteps:\n- agent: {prompt: a}", profiles={"default": profile}))
    assert output(ended) == "reply to a"
    (call,) = house.model.calls
    assert (call.temperature, call.max_tokens, call.reasoning, call.timeout) == (0.3, 70, "low", 9.0)
    assert call.run == house.run


async def test_the_settings_of_a_tier_reach_the_model_of_a_thread(house: House) -> None:
    settings: dict[str, Value] = {"temperature": 0.3, "max_tokens": 70, "reasoning": "low", "timeout": 9.0}
    bundle = Bundle("main", {"main": directive("main")}, settings=settings)
    await house.drive(interpret_directive(set_up(bundle, {}, THREAD_PATH, above=ParentContext(Grants.of(("rye.*",))))))
    call = house.model.calls[0]
    assert (call.temperature, call.max_tokens, call.reasoning, call.timeout) == (0.3, 70, "low", 9.0)


async def test_the_smallest_limit_of_a_reply_counts(house: House) -> None:
    def asking() -> Walk:
        yield ModelRequest("1/model", "1", "", (Message("user", "a"),), max_tokens=70, bounds=Bounds(tokens=30))
        yield ModelRequest("2/model", "2", "", (Message("user", "b"),), max_tokens=20, bounds=Bounds(tokens=30))
        return ""

    await house.drive(asking())
    assert [call.max_tokens for call in house.model.calls] == [30, 20]
    assert smallest(None, None) is None


@pytest.mark.parametrize(
    ("usual", "settings", "sent"),
    [
        (700, {}, 700),
        (700, {"max_tokens": 9000}, 9000),
        (700, {"max_tokens": 20}, 20),
        (700, {"reasoning": "high"}, 700 + 16_384),
        (700, {"reasoning": "none"}, 700),
        (700, {"max_tokens": 20, "reasoning": "high"}, 20),
        (700, {"bounds": Bounds(tokens=30)}, 30),
        (700, {"bounds": Bounds(tokens=9000)}, 700),
        (700, {"bounds": Bounds()}, 700),
        (None, {"bounds": Bounds()}, None),
        (None, {}, None),
        (None, {"bounds": Bounds(tokens=9000)}, SHORT_REPLY_TOKENS),
        (REPLY_TOKENS, {}, 16_384),
        (REPLY_TOKENS, {"bounds": Bounds(tokens=9000)}, SHORT_REPLY_TOKENS),
    ],
)
async def test_every_call_says_how_long_its_reply_may_be(
    house: House, usual: int | None, settings: dict[str, Any], sent: int | None
) -> None:
    def asking() -> Walk:
        yield ModelRequest("1/model", "1", "", (Message("user", "a"),), **settings)
        return ""

    await house.drive(asking(), DriveLimits(reply_tokens=usual))
    (call,) = house.model.calls
    assert call.max_tokens == sent
    assert call.usual_tokens is ("max_tokens" not in settings)


async def test_the_longest_reply_is_sent_in_every_format(house: House) -> None:
    terms = DriveLimits(reply_tokens=700)
    await house.drive(walk("pipeline: p\nsteps:\n- agent: {prompt: a}"), terms)
    house.run = "run-2"
    await house.create()
    bundle = Bundle("main", {"main": directive("main")})
    thread = set_up(bundle, {}, THREAD_PATH, above=ParentContext(Grants.of(("rye.*",))))
    await house.drive(interpret_directive(thread), terms)
    house.run = "run-3"
    await house.create()
    await house.drive(interpret(playbook("## STEP 1: Say\n\nSay it.\n"), {"a": "x"}), terms)
    assert len(house.model.calls) >= 3
    assert {call.max_tokens for call in house.model.calls} == {700}


@pytest.mark.parametrize(
    ("tier", "call", "sent"),
    [
        (CallSettings(max_tokens=9000), {"max_tokens": 700, "usual_tokens": True}, 9000),
        (CallSettings(max_tokens=9000), {"max_tokens": 700, "usual_tokens": True, "left_tokens": 80}, 80),
        (CallSettings(max_tokens=9000), {"max_tokens": 700}, 700),
        (CallSettings(max_tokens=20), {"max_tokens": 700}, 20),
        (CallSettings(reasoning="low"), {"max_tokens": 700, "usual_tokens": True}, 2748),
        (CallSettings(reasoning="low"), {"max_tokens": 700, "usual_tokens": True, "left_tokens": 80}, 80),
        (CallSettings(reasoning="low"), {"max_tokens": 700, "usual_tokens": True, "reasoning": "none"}, 700),
        (CallSettings(reasoning="low"), {"max_tokens": 700}, 700),
    ],
)
async def test_the_longest_reply_of_a_tier_holds_instead_of_the_usual(
    tier: CallSettings, call: dict[str, Any], sent: int
) -> None:
    model = EchoModel()
    await with_settings(model, tier).complete(ModelCall("", (Message("user", "a"),), **call), lambda piece: None)
    assert model.calls[0].max_tokens == sent


def test_profiles_are_pinned_with_their_settings() -> None:
    settings = CallSettings(temperature=0.0, max_tokens=9, at_once=2)
    agents = {"default": AgentSettings(), "x": AgentSettings("m", "s", ("t",), 3, settings)}
    pinned = pinned_profiles(agents)
    assert read_profiles(pinned) == {
        "default": Profile(),
        "x": Profile("m", "s", ("t",), 3, temperature=0.0, max_tokens=9),
    }


def test_profiles_of_older_runs_are_read() -> None:
    assert read_profiles({"a": ["m", "s", ["t"]], "b": ["m", "s", [], 7]}) == {
        "a": Profile("m", "s", ("t",), stops_repetition=False),
        "b": Profile("m", "s", (), 7),
    }


@pytest.mark.parametrize(
    "settings",
    [{"temperature": "hot"}, {"max_tokens": -1}, {"reasoning": 3}, {"unknown": 1}, "text", {"timeout": True}],
)
def test_pinned_settings_have_a_shape(settings: Value) -> None:
    needed: dict[str, Value] = {"document": "", "folder": None, "model": "", "inputs": {}}
    assert misshapen_pin({**needed, "profiles": {"x": ["", "", [], None, {}]}}) == ""
    assert misshapen_pin({**needed, "profiles": {"x": ["", "", [], None, settings]}}) == "profiles"
