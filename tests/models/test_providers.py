"""Every way in which a service can answer, through the real client libraries."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import json
import logging
import socket
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

pytest.importorskip("pydantic_ai", reason='needs the extra "llm"')

from quire.engine.conversation import Message
from quire.engine.ports import ModelCall
from quire.errors import ModelFailed
from quire.models.choose import ModelSettings, ProviderSettings
from quire.models.failures import Service, failure_of
from quire.models.open import open_model
from quire.models.providers import UNSAID, HostedModel
from quire.models.retry import Retrying

if TYPE_CHECKING:
    from tests.models.conftest import Behaviour, Exchange, Stub

CALL = ModelCall("Be brief.", (Message("user", "Hello?"), Message("assistant", "Yes?"), Message("user", "Hi.")))
SECRET = "sk-never-to-be-seen-0123456789"


class Waits:
    """A sleep that takes no time and remembers how long it should have been."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def opened(stub: Stub, waits: Waits, *, read_seconds: float = 120.0) -> Retrying:
    model = open_model(stub.spec, ModelSettings(), {})
    assert isinstance(model, Retrying)
    hosted = model._model
    assert isinstance(hosted, HostedModel)
    hosted._read_seconds = read_seconds
    hosted._model = hosted._built()
    return Retrying(hosted, sleep=waits)


async def failed(model: Retrying, on_delta: Callable[[str], None] = lambda piece: None) -> ModelFailed:
    with pytest.raises(ModelFailed) as caught:
        await model.complete(CALL, on_delta)
    return caught.value


async def test_streams_and_counts(stub: Stub) -> None:
    stub.behaviours = [stub.say("Good", " day", "!")]
    pieces: list[str] = []
    reply = await opened(stub, Waits()).complete(CALL, pieces.append)
    assert pieces == ["Good", " day", "!"]
    assert reply.text == "Good day!"
    assert reply.model == stub.spec
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cost) == (7, 3, None)
    assert (reply.finish_reason, reply.delays) == ("stop", ())
    assert [(m["role"], m["content"]) for m in _sent(stub)] == [
        ("system", "Be brief."),
        ("user", "Hello?"),
        ("assistant", "Yes?"),
        ("user", "Hi."),
    ]
    assert stub.requests[0]["model"] == "stub-model"
    assert "response_format" not in stub.requests[0]


async def test_max_tokens_is_passed_on(stub: Stub) -> None:
    stub.behaviours = [stub.say("x")]
    await opened(stub, Waits()).complete(ModelCall("", (Message("user", "x"),), max_tokens=17), lambda piece: None)
    assert 17 in (stub.requests[0].get("max_tokens"), stub.requests[0].get("max_completion_tokens"))


async def test_the_settings_of_a_call_are_sent_as_parameters(stub: Stub) -> None:
    stub.behaviours = [stub.say("x")]
    call = ModelCall("", (Message("user", "x"),), temperature=0.25, reasoning="low")
    await opened(stub, Waits()).complete(call, lambda piece: None)
    await opened(stub, Waits()).complete(CALL, lambda piece: None)
    assert (stub.requests[0]["temperature"], stub.requests[0]["reasoning_effort"]) == (0.25, "low")
    assert not {"temperature", "reasoning_effort", "max_tokens", "max_completion_tokens"} & stub.requests[1].keys()


@pytest.mark.parametrize(("reasoning", "sent"), [("none", None), ("high", "enabled")])
async def test_a_provider_gets_reasoning_in_its_own_words(
    stub: Stub, monkeypatch: pytest.MonkeyPatch, reasoning: str, sent: str | None
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", stub.url)
    stub.behaviours = [stub.refuse(400)]
    model = open_model("anthropic:claude-haiku-4-5", ModelSettings())
    with pytest.raises(ModelFailed):
        await model.complete(ModelCall("", (Message("user", "x"),), reasoning=reasoning), lambda piece: None)
    thinking = stub.requests[0].get("thinking")
    assert (thinking["type"] if isinstance(thinking, dict) else None) == sent


async def test_a_model_that_thinks_takes_no_temperature_and_nothing_is_printed(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
    stub.behaviours = [stub.say("x")]
    call = ModelCall("", (Message("user", "x"),), temperature=0.25)
    with warnings.catch_warnings(record=True) as printed:
        warnings.simplefilter("always")
        for category, pattern in UNSAID:
            warnings.filterwarnings("ignore", category=category, message=pattern)
        await open_model("openai-chat:o3-mini", ModelSettings()).complete(call, lambda piece: None)
    assert "temperature" not in stub.requests[0]
    assert [one for one in printed if "temperature" in str(one.message)] == []


async def test_the_timeout_of_a_call_replaces_that_of_the_model(stub: Stub) -> None:
    stub.behaviours = [stub.hang]
    call = ModelCall("", (Message("user", "x"),), timeout=0.2)
    with pytest.raises(ModelFailed, match=r"the timeout is 0\.2 s"):
        await Retrying(opened(stub, Waits())._model, backoff=()).complete(call, lambda piece: None)


async def test_a_reply_cut_by_length_is_kept(stub: Stub) -> None:
    stub.behaviours = [stub.say("half a sent", finish="length")]
    reply = await opened(stub, Waits()).complete(CALL, lambda piece: None)
    assert (reply.text, reply.finish_reason) == ("half a sent", "length")


def malformed(exchange: Exchange) -> None:
    exchange.begin()
    exchange.chunk("data: {this is not json\n\n")
    exchange.end()


def dropped_at_once(exchange: Exchange) -> None:
    exchange.drop()


def dropped_before_text(exchange: Exchange) -> None:
    exchange.begin()
    exchange.event({"role": "assistant", "content": ""})
    exchange.drop()


def ended_at_once(exchange: Exchange) -> None:
    exchange.begin()
    exchange.chunk(": keep-alive\n\n")
    exchange.wfile.write(b"0\r\n\r\n")


def closed_at_once(exchange: Exchange) -> None:
    exchange.begin()
    exchange.drop()


def ended_before_text(exchange: Exchange) -> None:
    exchange.begin()
    exchange.event({"role": "assistant", "content": ""})
    exchange.end()


@dataclass(frozen=True)
class Bad:
    behaviour: Callable[[Stub], Behaviour]
    kind: str
    transient: bool
    says: str


BAD = {
    "429": Bad(
        lambda stub: stub.refuse(429, {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}),
        "rate_limit",
        True,
        "too many",
    ),
    "quota": Bad(
        lambda stub: stub.refuse(429, {"error": {"message": "no", "code": "insufficient_quota"}}),
        "quota",
        False,
        "used up",
    ),
    "500": Bad(lambda stub: stub.refuse(500, {"error": {"message": "boom"}}), "server", True, "boom"),
    "503": Bad(lambda stub: stub.refuse(503), "server", True, "HTTP 503"),
    "401": Bad(
        lambda stub: stub.refuse(401, {"error": {"message": f"wrong key {SECRET}"}}),
        "auth",
        False,
        "wants a key (HTTP 401), and none was sent: ",
    ),
    "404": Bad(
        lambda stub: stub.refuse(404, {"error": {"message": "no such model", "code": "model_not_found"}}),
        "unknown_model",
        False,
        "know",
    ),
    "400": Bad(
        lambda stub: stub.refuse(400, {"error": {"message": f"bad field, {SECRET}"}}),
        "refused",
        False,
        "bad field, [redacted:SOME_API_KEY]",
    ),
    "empty": Bad(lambda stub: stub.say(), "empty", False, "answered nothing"),
    "blank": Bad(lambda stub: stub.say(" ", "\n"), "empty", False, "answered nothing"),
    "filtered": Bad(lambda stub: stub.say("I will", finish="content_filter"), "refused", False, "content filter"),
    "malformed": Bad(lambda stub: malformed, "bad_reply", False, "could not be read"),
    "html": Bad(
        lambda stub: stub.refuse(200, "<html>", {"Content-Type": "text/html"}), "bad_reply", False, "could not be read"
    ),
    "dropped": Bad(lambda stub: dropped_at_once, "connection", True, "connection failed"),
    "ended at once": Bad(lambda stub: ended_at_once, "connection", True, "the stream ended before its first event"),
    "closed at once": Bad(lambda stub: closed_at_once, "connection", True, "connection failed"),
    "ended before text": Bad(lambda stub: ended_before_text, "connection", True, "broke off"),
    "dropped before text": Bad(lambda stub: dropped_before_text, "connection", True, "connection failed"),
}


@pytest.mark.parametrize("name", BAD)
async def test_failures(stub: Stub, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    bad, waits = BAD[name], Waits()
    stub.behaviours = [bad.behaviour(stub)]
    error = await failed(opened(stub, waits))
    assert (error.kind, error.transient) == (bad.kind, bad.transient)
    assert bad.says in error.message
    assert "\n" not in error.message
    assert SECRET not in error.message
    assert error.__cause__ is None
    assert error.__context__ is None
    retries = [1.0, 2.0, 4.0, 8.0] if bad.transient else []
    assert waits.seconds == retries
    assert error.delays == tuple(retries)
    assert len(stub.requests) == 1 + len(retries)


async def test_nobody_listens(stub: Stub) -> None:
    waits = Waits()
    model = open_model("http://127.0.0.1:9/v1#none", ModelSettings(), {})
    assert isinstance(model, Retrying)
    error = await failed(Retrying(model._model, sleep=waits))
    assert (error.kind, error.transient, waits.seconds) == ("connection", False, [])
    assert error.message == "http://127.0.0.1:9/v1#none: the connection failed (127.0.0.1:9): Connection refused"


async def test_ollama_may_not_be_running() -> None:
    model = open_model("ollama:tiny", ModelSettings(), {"OLLAMA_HOST": "127.0.0.1:9"})
    assert isinstance(model, Retrying)
    error = await failed(Retrying(model._model, sleep=Waits()))
    assert "(127.0.0.1:9): Connection refused; is Ollama running there?" in error.message


@pytest.mark.parametrize(
    ("below", "said"),
    [
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed"), "Connection refused"),
        (ConnectionResetError(), "Connection error."),
        (OSError(f"the proxy said {SECRET}"), "the proxy said …"),
    ],
)
def test_a_failed_connection_says_why(below: OSError, said: str) -> None:
    error = ConnectionError("Connection error.")
    error.__cause__ = below
    failure = failure_of(error, "m:x", Service((SECRET,), url="https://user@host.example/v1"))
    assert failure.message == f"m:x: the connection failed (host.example): {said}"
    assert failure.transient == (not isinstance(below, ConnectionRefusedError | socket.gaierror))


@pytest.mark.parametrize(
    ("spec", "key", "said"),
    [
        ("mine:x", SECRET, "mine:x: the provider refused the key (HTTP 401): check that it is right"),
        ("open:x", "", "none was sent: name its variable as api_key_env under [models.providers.open] in quire.toml"),
        ("URL#x", "", "none was sent: an address alone gets no key, a [models.providers.NAME] in quire.toml may have"),
        ("ollama:x", "", "none was sent: set OLLAMA_API_KEY in the environment"),
    ],
)
async def test_a_key_that_was_not_sent_is_not_called_wrong(stub: Stub, spec: str, key: str, said: str) -> None:
    stub.behaviours = [stub.refuse(401, {"error": {"message": "no"}})]
    config = ModelSettings(
        providers={"mine": ProviderSettings(stub.url, "MINE_KEY"), "open": ProviderSettings(stub.url)}
    )
    environ = {"MINE_KEY": key, "OLLAMA_BASE_URL": stub.url}
    model = open_model(spec.replace("URL", stub.url), config, environ)
    assert isinstance(model, Retrying)
    error = await failed(model)
    assert error.kind == "auth"
    assert said in error.message


async def test_retry_after_is_honoured_and_recorded(stub: Stub) -> None:
    busy: dict[str, object] = {"error": {"message": "slow down"}}
    stub.behaviours = [stub.refuse(429, busy, {"Retry-After": "7"}), stub.refuse(500), stub.say("there")]
    waits, pieces, told = Waits(), list[str](), list[tuple[float, str]]()
    call = dataclasses.replace(CALL, on_retry=lambda seconds, reason: told.append((seconds, reason)))
    reply = await opened(stub, waits).complete(call, pieces.append)
    assert pieces == ["there"]
    assert waits.seconds == [7.0, 2.0] == [seconds for seconds, _ in told]
    assert "too many requests" in told[0][1]
    assert reply.delays == (7.0, 2.0)


async def test_a_wait_that_is_too_long_is_not_begun(stub: Stub) -> None:
    stub.behaviours = [stub.refuse(429, {"error": {"message": "tomorrow"}}, {"Retry-After": "3600"})]
    waits = Waits()
    error = await failed(opened(stub, waits))
    assert (error.kind, waits.seconds) == ("rate_limit", [])
    assert "it asks to wait 3600 s, and no call waits longer than 60 s" in error.message


async def test_a_stream_that_breaks_after_text_is_not_shown_twice(stub: Stub) -> None:
    def broken(exchange: Exchange) -> None:
        exchange.begin()
        exchange.event({"role": "assistant", "content": "Once"})
        exchange.event({"content": " upon"})
        exchange.drop()

    stub.behaviours = [broken, stub.say("never asked for")]
    pieces: list[str] = []
    error = await failed(opened(stub, Waits()), pieces.append)
    assert (error.kind, error.transient) == ("connection", True)
    assert "".join(pieces) == "Once upon"
    assert len(stub.requests) == 1


@pytest.mark.parametrize("said", [{"content": "part"}, {"tool_calls": [{"index": 0, "id": "a", "type": "function"}]}])
async def test_a_stream_that_just_ends_is_no_reply(stub: Stub, said: dict[str, object]) -> None:
    """A proxy that gives up ends the body in good order: only the missing reason tells that there was more to come."""

    def cut(exchange: Exchange) -> None:
        exchange.begin()
        exchange.event({"role": "assistant", "content": "Once"})
        exchange.event(said)
        exchange.end()

    stub.behaviours = [cut, stub.say("never asked for")]
    error = await failed(opened(stub, Waits()))
    assert (error.kind, error.transient) == ("connection", True)
    assert "broke off" in error.message
    assert len(stub.requests) == 1


async def test_a_service_that_never_says_why_it_ends_is_believed_when_it_has_counted(stub: Stub) -> None:
    stub.behaviours = [stub.say("all of it", finish="")]
    reply = await opened(stub, Waits()).complete(CALL, lambda piece: None)
    assert (reply.text, reply.finish_reason) == ("all of it", "stop")


async def test_a_silent_server_times_out(stub: Stub) -> None:
    stub.behaviours = [stub.hang]
    error = await failed(opened(stub, Waits(), read_seconds=0.1))
    assert (error.kind, error.transient) == ("timeout", True)


@pytest.mark.parametrize(
    ("spec", "settings", "seconds"),
    [
        ("mine:stub-model", ModelSettings(), 120.0),
        ("mine:stub-model", ModelSettings(timeout=7.0), 7.0),
        ("own:stub-model", ModelSettings(timeout=7.0), 0.1),
        ("ollama:tiny", ModelSettings(timeout=7.0), 7.0),
        ("http://127.0.0.1:9/v1#none", ModelSettings(timeout=7.0), 7.0),
        ("anthropic:claude-sonnet-5-5", ModelSettings(timeout=7.0), 7.0),
    ],
)
def test_a_timeout_is_that_of_the_provider_or_that_of_all(
    monkeypatch: pytest.MonkeyPatch, spec: str, settings: ModelSettings, seconds: float
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    url = "http://127.0.0.1:9/v1"
    settings = replace(settings, providers={"mine": ProviderSettings(url), "own": ProviderSettings(url, None, 0.1)})
    model = open_model(spec, settings, {})
    assert isinstance(model, Retrying)
    assert isinstance(model._model, HostedModel)
    assert model._model._settings(CALL)["timeout"] == seconds


async def test_a_silent_server_is_waited_for_as_long_as_the_settings_say(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = Retrying.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "backoff", (0.01,))
    stub.behaviours = [stub.hang]
    settings = ModelSettings(timeout=60.0, providers={"mine": ProviderSettings(stub.url, None, 0.2)})
    with pytest.raises(ModelFailed) as caught:
        await open_model("mine:stub-model", settings, {}).complete(CALL, lambda piece: None)
    assert caught.value.kind == "timeout"
    assert "the timeout is 0.2 s ([models] timeout in quire.toml)" in caught.value.message


async def test_a_stream_that_goes_silent_times_out(stub: Stub) -> None:
    def silent(exchange: Exchange) -> None:
        exchange.begin()
        exchange.event({"role": "assistant", "content": "Wait"})
        stub.release.wait(5)

    stub.behaviours = [silent]
    pieces: list[str] = []
    error = await failed(opened(stub, Waits(), read_seconds=0.1), pieces.append)
    assert (error.kind, pieces) == ("timeout", ["Wait"])


async def test_cancelling_ends_the_call_at_once(stub: Stub) -> None:
    started = asyncio.Event()

    def silent(exchange: Exchange) -> None:
        exchange.begin()
        exchange.event({"role": "assistant", "content": "Wait"})
        stub.release.wait(5)

    stub.behaviours = [silent]
    task = asyncio.ensure_future(opened(stub, Waits()).complete(CALL, lambda piece: started.set()))
    await asyncio.wait_for(started.wait(), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 4)


async def test_cancelling_ends_a_wait_between_tries(stub: Stub) -> None:
    stub.behaviours = [stub.refuse(500)]
    waiting = asyncio.Event()

    async def forever(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    model = Retrying(opened(stub, Waits())._model, sleep=forever)
    task = asyncio.ensure_future(model.complete(CALL, lambda piece: None))
    await asyncio.wait_for(waiting.wait(), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 4)


async def test_a_bug_in_a_display_is_not_taken_for_a_failure_of_the_model(stub: Stub) -> None:
    stub.behaviours = [stub.say("x")]

    def broken(piece: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await opened(stub, Waits()).complete(CALL, broken)


def test_a_model_outlives_an_event_loop(stub: Stub) -> None:
    stub.behaviours = [stub.say("x")]
    model = opened(stub, Waits())
    for _ in range(2):
        assert asyncio.run(model.complete(CALL, lambda piece: None)).text == "x"


async def test_foreign_keys_do_not_leave(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"X-Private: {SECRET}")
    stub.behaviours = [stub.say("x")]
    config = ModelSettings(providers={"mine": ProviderSettings(stub.url)})
    for spec in (stub.spec, "mine:stub-model"):
        await open_model(spec, config).complete(CALL, lambda piece: None)
    assert len(stub.headers) == 2
    for headers in stub.headers:
        assert SECRET not in str(headers)
        assert "authorization" not in headers


async def test_a_named_key_goes_to_its_provider_and_nowhere_else(
    stub: Stub, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    caplog.set_level(logging.DEBUG)
    config = ModelSettings(providers={"mine": ProviderSettings(stub.url, "MINE_KEY")})
    stub.behaviours = [stub.say("x")]
    model = open_model("mine:stub-model", config, {"MINE_KEY": SECRET})
    reply = await model.complete(CALL, lambda piece: None)
    assert stub.headers[0]["authorization"] == f"Bearer {SECRET}"
    assert reply.model == "mine:stub-model"
    stub.behaviours = [stub.refuse(400, {"error": {"message": f"you sent {SECRET}"}})]
    with pytest.raises(ModelFailed) as caught:
        await model.complete(CALL, lambda piece: None)
    assert isinstance(model, Retrying)
    for text in (str(caught.value), repr(caught.value), repr(model), repr(model._model), caplog.text):
        assert SECRET not in text


async def test_ollama_is_free_and_found_by_its_variable(stub: Stub) -> None:
    stub.behaviours = [stub.say("x")]
    model = open_model("ollama:tiny", ModelSettings(), {"OLLAMA_HOST": stub.url.removesuffix("/v1")})
    reply = await model.complete(CALL, lambda piece: None)
    assert (reply.model, reply.usage.cost) == ("ollama:tiny", 0.0)
    assert stub.requests[0]["model"] == "tiny"


async def test_a_listed_price_is_charged(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", stub.url)

    stub.behaviours = [stub.say("x", tokens=(1000, 1000), model="gpt-4o")]
    reply = await open_model("openai-chat:gpt-4o", ModelSettings()).complete(CALL, lambda piece: None)
    assert stub.headers[0]["authorization"] == f"Bearer {SECRET}"
    assert reply.usage.cost == pytest.approx(listed("openai", "gpt-4o"))


async def test_a_reply_of_no_use_is_charged_too(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
    stub.behaviours = [stub.say(" ", tokens=(1000, 1000), model="gpt-4o")]
    with pytest.raises(ModelFailed, match="answered nothing") as caught:
        await open_model("openai-chat:gpt-4o", ModelSettings()).complete(CALL, lambda piece: None)
    assert caught.value.used == pytest.approx((1000, 1000, listed("openai", "gpt-4o")))


def listed(provider: str, model: str) -> float:
    """The price of a thousand tokens in and a thousand out."""
    from genai_prices import Usage, calc_price

    price = float(calc_price(Usage(input_tokens=1000, output_tokens=1000), model, provider_id=provider).total_price)
    assert price > 0
    return price


HOSTED = [
    ("openai:gpt-6.1-terra", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    ("anthropic:claude-sonnet-5-5", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    ("google:gemini-flash-latest", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
]


@pytest.mark.parametrize(("status", "kind", "tries"), [(500, "server", 5), (429, "rate_limit", 5), (401, "auth", 1)])
@pytest.mark.parametrize(("spec", "key", "address"), HOSTED)
async def test_our_retries_are_the_only_ones(
    stub: Stub, monkeypatch: pytest.MonkeyPatch, spec: str, key: str, address: str, status: int, kind: str, tries: int
) -> None:
    for _, other, _ in HOSTED:
        monkeypatch.setenv(other, f"{SECRET}-{other}")
    monkeypatch.setenv(address, stub.url)
    stub.behaviours = [stub.refuse(status, {"error": {"code": status, "message": f"you sent {SECRET}-{key}"}})]
    model = open_model(spec, ModelSettings())
    assert isinstance(model, Retrying)
    error = await failed(Retrying(model._model, sleep=Waits()))
    assert (error.kind, len(stub.requests)) == (kind, tries)
    assert SECRET not in str(error)
    assert f"{SECRET}-{key}" in str(stub.headers)
    assert all(f"{SECRET}-{other}" not in str(stub.headers) for _, other, _ in HOSTED if other != key)


async def test_anthropic_streams_and_is_priced(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", stub.url)

    def behave(exchange: Exchange) -> None:
        exchange.begin()
        head = {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5", "content": []}
        usage = {"input_tokens": 1000, "output_tokens": 1}
        events: list[dict[str, object]] = [
            {"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Good "}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "day"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 1000}},
            {"type": "message_stop"},
        ]
        for event in events:
            exchange.chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n")
        exchange.wfile.write(b"0\r\n\r\n")

    stub.behaviours = [behave]
    pieces: list[str] = []
    reply = await open_model("anthropic:claude-sonnet-5-5", ModelSettings()).complete(CALL, pieces.append)
    assert (pieces, reply.text, reply.finish_reason) == (["Good ", "day"], "Good day", "length")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (1000, 1000)
    assert reply.usage.cost == pytest.approx(listed("anthropic", "claude-sonnet-5-5"))


def _sent(stub: Stub) -> list[dict[str, str]]:
    messages = stub.requests[0]["messages"]
    assert isinstance(messages, list)
    return messages
