"""Anthropic, Gemini and OpenAI Responses that cut, hang, refuse, truncate and lie, through their real clients."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pydantic_ai", reason='needs the extra "llm"')

from tests.models.dialects import DIALECTS, Dialect, data, named, sending

from quire.engine.conversation import Message, Offered, ToolUse
from quire.engine.ports import ModelCall, ModelReply
from quire.errors import ModelFailed
from quire.models import providers
from quire.models.choose import ModelSettings
from quire.models.http_limits import Limits
from quire.models.open import open_model
from quire.models.retry import Retrying

if TYPE_CHECKING:
    from tests.models.conftest import Behaviour, Exchange, Stub

SECRET = "sk-never-to-be-seen-0123456789"
WEATHER = Offered("weather", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
CALL = ModelCall("Be brief.", (Message("user", "Hi."),))
CALLING = ModelCall("Be brief.", (Message("user", "Hi."),), tools=(WEATHER,))
ROME = '{"city": "Rome"}'


@dataclass
class Service:
    """One provider on the loopback service, asked with waits that take no time."""

    dialect: Dialect
    stub: Stub
    waits: list[float]
    pieces: list[str]
    seconds: float = 60.0

    async def ask(self, *behaviours: Behaviour, call: ModelCall = CALL) -> ModelReply:
        self.stub.behaviours = list(behaviours)
        model = open_model(self.dialect.spec, ModelSettings(timeout=self.seconds))
        assert isinstance(model, Retrying)

        async def wait(seconds: float) -> None:
            self.waits.append(seconds)

        return await Retrying(model._model, sleep=wait).complete(call, self.pieces.append)

    async def fails(self, *behaviours: Behaviour, call: ModelCall = CALL) -> ModelFailed:
        with pytest.raises(ModelFailed) as caught:
            await self.ask(*behaviours, call=call)
        error = caught.value
        assert error.message.startswith(self.dialect.spec)
        assert "\n" not in error.message
        assert SECRET not in error.message
        assert (error.__cause__, error.__context__) == (None, None)
        return error


@pytest.fixture(params=DIALECTS)
def service(request: pytest.FixtureRequest, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Service:
    return served(DIALECTS[request.param], stub, monkeypatch)


def served(dialect: Dialect, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setenv(dialect.key, SECRET)
    monkeypatch.setenv(dialect.address, stub.url.removesuffix("/v1"))
    return Service(dialect, stub, [], [])


async def test_it_streams_and_counts(service: Service) -> None:
    reply = await service.ask(service.dialect.say("Good ", "day"))
    assert (service.pieces, reply.text, reply.finish_reason) == (["Good ", "day"], "Good day", "stop")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (7, 3)
    assert reply.usage.cost


BROKEN: dict[str, Callable[[Dialect], Behaviour]] = {
    "at once": lambda dialect: lambda exchange: exchange.drop(),
    "before its first event": lambda dialect: sending(),
    "closed before its text": lambda dialect: dialect.cut(),
    "dropped before its text": lambda dialect: dialect.cut(drop=True),
}


@pytest.mark.parametrize("how", BROKEN)
async def test_a_stream_that_breaks_before_its_text_is_tried_again(service: Service, how: str) -> None:
    reply = await service.ask(BROKEN[how](service.dialect), service.dialect.say("there"))
    assert (reply.text, service.waits, service.pieces) == ("there", [1.0], ["there"])


@pytest.mark.parametrize("drop", [False, True])
async def test_a_stream_that_breaks_in_its_text_is_not_shown_twice(service: Service, drop: bool) -> None:
    error = await service.fails(service.dialect.cut("Once ", "upon", drop=drop), service.dialect.say("never"))
    assert (error.kind, error.transient, service.pieces, service.waits) == ("connection", True, ["Once ", "upon"], [])


@pytest.mark.parametrize("begun", [False, True])
async def test_a_service_that_says_nothing_times_out(service: Service, begun: bool) -> None:
    def silent(exchange: Exchange) -> None:
        exchange.begin()
        exchange.chunk(service.dialect.opening((7, 1))[0])
        service.stub.release.wait(5)

    service.seconds = 0.05
    error = await service.fails(silent if begun else service.stub.hang)
    assert (error.kind, service.waits) == ("timeout", [1.0, 2.0, 4.0, 8.0])
    assert "the timeout is 0.05 s ([models] timeout in quire.toml)" in error.message


STATUSES: dict[int, tuple[str, str]] = {
    400: ("refused", "the provider rejected the request (HTTP 400): its words"),
    401: ("auth", "the provider refused the key (HTTP 401): check that it is right"),
    403: ("auth", "the provider refused the key (HTTP 403): check that it is right"),
    404: ("unknown_model", "the provider does not know this model (HTTP 404) (or the base_url is wrong)"),
    408: ("timeout", "the provider did not get the request in time (HTTP 408)"),
    429: ("rate_limit", "too many requests (HTTP 429)"),
    500: ("server", "the provider failed (HTTP 500): its words"),
    503: ("server", "the provider failed (HTTP 503): its words"),
    529: ("server", "the provider failed (HTTP 529): its words"),
}


@pytest.mark.parametrize("status", STATUSES)
async def test_statuses(service: Service, status: int) -> None:
    kind, said = STATUSES[status]
    body = service.dialect.error(status, f"its words {SECRET}")
    error = await service.fails(service.stub.refuse(status, body))
    assert (error.kind, said in error.message) == (kind, True), error.message
    passes = status in (408, 429) or status >= 500
    assert service.waits == ([1.0, 2.0, 4.0, 8.0] if passes else [])


async def test_a_page_of_a_proxy_is_a_failure_of_the_server(service: Service) -> None:
    page = service.stub.refuse(502, "<html>bad gateway</html>", {"Content-Type": "text/html"})
    assert (await service.ask(page, service.dialect.say("there"))).delays == (1.0,)


async def test_a_wait_that_is_asked_for(service: Service) -> None:
    busy = service.stub.refuse(429, service.dialect.error(429, "slow down"), {"Retry-After": "7"})
    assert (await service.ask(busy, service.dialect.say("there"))).delays == (7.0,)
    busy = service.stub.refuse(429, service.dialect.error(429, "slow down"), {"Retry-After": "3600"})
    error = await service.fails(busy)
    assert "it asks to wait 3600 s, and no call waits longer than 60 s" in error.message


async def test_a_reply_cut_by_length_is_kept_and_said(service: Service) -> None:
    """G8, by each provider's word for it: the engine warns by this reason."""
    reply = await service.ask(service.dialect.say("half a sent", end="length"))
    assert (reply.text, reply.finish_reason) == ("half a sent", "length")
    error = await service.fails(service.dialect.say(end="length"))
    assert (error.kind, error.message.endswith("answered nothing before the token limit")) == ("empty", True)


@pytest.mark.parametrize("said", [(), ("I will",)])
async def test_a_refusal_is_not_a_reply(service: Service, said: tuple[str, ...]) -> None:
    error = await service.fails(service.dialect.say(*said, end="filter"))
    assert (error.kind, error.transient) == ("refused", False)
    assert "content filter stopped the reply" in error.message


async def test_an_empty_reply(service: Service) -> None:
    assert (await service.fails(service.dialect.say())).kind == "empty"


async def test_calls_of_tools(service: Service) -> None:
    """One id for two calls, and a tool that nobody offered: the engine has to be able to answer each."""
    behaviour = service.dialect.use(("a", "weather", ROME), ("a", "weather", "{}"), ("b", "nope", "{}"), text="So.")
    reply = await service.ask(behaviour, call=CALLING)
    uses = (ToolUse("a", "weather", {"city": "Rome"}), ToolUse("a_2", "weather", {}), ToolUse("b", "nope", {}))
    assert (reply.text, reply.uses) == ("So.", uses)


async def test_a_call_where_no_tools_are_offered_is_not_a_reply(service: Service) -> None:
    error = await service.fails(service.dialect.use(("a", "weather", ROME)))
    assert (error.kind, error.message) == (
        "empty",
        f"{service.dialect.spec} only called the tool weather, and was offered no tools",
    )


@pytest.mark.parametrize("name", ["anthropic", "responses"])
@pytest.mark.parametrize(("arguments", "why"), [('{"city": ', "not JSON"), ("[1]", "not a JSON object"), ("17", "not")])
async def test_arguments_that_are_not_an_object_are_told_to_the_model(
    name: str, arguments: str, why: str, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served(DIALECTS[name], stub, monkeypatch)
    reply = await service.ask(service.dialect.use(("a", "weather", arguments)), call=CALLING)
    assert reply.uses[0].arguments == {}
    assert f"the arguments for the tool weather are {why}" in reply.uses[0].problem


async def test_usage_that_is_missing_or_wrong_has_no_price(service: Service) -> None:
    """Never zero, and nothing of it on the terminal."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for category, pattern in providers.UNSAID:
            warnings.filterwarnings("ignore", category=category, message=pattern)
        reply = await service.ask(service.dialect.say("x", tokens=(-5, -3)))
        assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cost) == (0, 0, None)
    assert [str(one.message) for one in said if "usage" in str(one.message)] == []
    if service.dialect.spec.startswith("anthropic:"):
        error = await service.fails(service.dialect.say("x", tokens=None))
        assert error.message.endswith("the reply could not be read: it does not follow the protocol of the provider")
        return
    assert (await service.ask(service.dialect.say("x", tokens=None))).usage.cost is None


@pytest.mark.parametrize(("kind", "body"), [("text/html", "<html>log in</html>"), ("application/json", '{"ok": true}')])
async def test_an_answer_that_is_not_a_stream(service: Service, kind: str, body: str) -> None:
    error = await service.fails(service.stub.refuse(200, body, {"Content-Type": kind}))
    assert (error.kind, service.waits) == ("bad_reply", [])
    assert f"it is not a stream of events but {kind} (is the base_url right?)" in error.message


async def test_events_under_another_type_are_read(service: Service) -> None:
    def behave(exchange: Exchange) -> None:
        dialect = service.dialect
        chunks = [*dialect.opening((7, 1)), *dialect.text("fine"), *dialect.closing(dialect.ends["stop"], (7, 3))]
        exchange.error(200, "".join(chunks), {"Content-Type": "text/plain"})

    assert (await service.ask(behave)).text == "fine"


@pytest.mark.parametrize("event", ["{this is not json", '{"candidates": 7, "type": "message_start", "message": 7}'])
async def test_events_that_cannot_be_read(service: Service, event: str) -> None:
    opening = service.dialect.opening((7, 1))[0].partition("data:")[0]
    error = await service.fails(sending(f"{opening}data: {event}\n\n"))
    assert error.kind in ("bad_reply", "connection"), error.message
    assert "object has no attribute" not in error.message
    assert "errors.pydantic.dev" not in error.message


async def test_a_line_without_an_end(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "REPLY_LIMITS", Limits(line=10_000, body=10_000, stream=20_000))
    error = await service.fails(sending("data: " + "x" * 20_000))
    assert (error.kind, "sent a line of more than 10,000 bytes" in error.message) == ("bad_reply", True)


async def test_a_stream_without_an_end(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "REPLY_LIMITS", Limits(line=10_000, body=10_000, stream=20_000))
    error = await service.fails(service.dialect.say(*["x" * 1000] * 30))
    assert (error.kind, "sent more than 20,000 bytes" in error.message) == ("bad_reply", True)


async def test_text_without_an_end(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "MAX_REPLY_CHARACTERS", 50)
    error = await service.fails(service.dialect.say(*["x" * 10] * 9))
    assert (error.kind, "the reply is longer than 50 characters" in error.message) == ("bad_reply", True)


async def test_anthropic_is_overloaded_within_a_stream(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    service = served(DIALECTS["anthropic"], stub, monkeypatch)
    overloaded = named(service.dialect.error(529, "Overloaded"))
    opening = service.dialect.opening((7, 1))
    assert (await service.ask(sending(*opening, overloaded), service.dialect.say("there"))).delays == (1.0,)
    text = service.dialect.text("Once")[:2]
    error = await service.fails(sending(*opening, *text, overloaded))
    assert (error.kind, error.transient) == ("server", True)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Your credit balance is too low to access the Anthropic API.", "quota"),
        ("prompt is too long: 208310 tokens > 200000 maximum", "too_long"),
    ],
)
async def test_anthropic_says_why_it_rejects(
    message: str, kind: str, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served(DIALECTS["anthropic"], stub, monkeypatch)
    body: dict[str, object] = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    error = await service.fails(stub.refuse(400, body))
    assert (error.kind, service.waits) == (kind, [])


@pytest.fixture
def gemini(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Service:
    return served(DIALECTS["gemini"], stub, monkeypatch)


def detailed(status: int, name: str, **detail: str) -> dict[str, object]:
    return {"error": {"code": status, "message": "no", "status": name, "details": [detail]}}


async def test_gemini_asks_for_a_wait_in_its_details(gemini: Service) -> None:
    kind = "type.googleapis.com/google.rpc.RetryInfo"
    busy = detailed(429, "RESOURCE_EXHAUSTED", **{"@type": kind, "retryDelay": "9.5s"})
    assert (await gemini.ask(gemini.stub.refuse(429, busy), gemini.dialect.say("there"))).delays == (9.5,)
    odd = detailed(429, "RESOURCE_EXHAUSTED", **{"@type": kind, "retryDelay": "soon"})
    assert (await gemini.ask(gemini.stub.refuse(429, odd), gemini.dialect.say("there"))).delays == (1.0,)


async def test_gemini_calls_a_wrong_key_a_bad_request(gemini: Service) -> None:
    kind = "type.googleapis.com/google.rpc.ErrorInfo"
    body = detailed(400, "INVALID_ARGUMENT", **{"@type": kind, "reason": "API_KEY_INVALID"})
    assert (await gemini.fails(gemini.stub.refuse(400, body))).kind == "auth"


async def test_gemini_blocks_a_prompt(gemini: Service) -> None:
    error = await gemini.fails(sending(data({"promptFeedback": {"blockReason": "SAFETY"}})))
    assert (error.kind, gemini.waits) == ("refused", [])


async def test_gemini_cannot_read_its_own_call(gemini: Service) -> None:
    error = await gemini.fails(gemini.dialect.say(end="MALFORMED_FUNCTION_CALL"), call=CALLING)
    assert (error.kind, error.message) == (
        "bad_reply",
        "google:gemini-flash-latest: the provider broke the reply off (MALFORMED_FUNCTION_CALL)",
    )


@pytest.mark.parametrize("arguments", [[1], "x", 17])
async def test_gemini_gives_a_call_what_is_not_an_object(gemini: Service, arguments: object) -> None:
    """Its library refuses the whole reply, so that there is nothing to tell to the model."""
    error = await gemini.fails(gemini.dialect.use(("a", "weather", json.dumps(arguments))), call=CALLING)
    assert error.message.endswith("functionCall.args: Input should be a valid dictionary")
