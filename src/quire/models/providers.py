"""Hosted models and OpenAI-compatible services, through the `direct` layer of pydantic-ai.

Importing this module imports pydantic-ai and the SDK, which takes seconds: only `open_model` does it.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypeAlias

import httpx2
from openai import AsyncOpenAI
from pydantic_ai import UsageExtractionFailedWarning
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPartDelta,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model as ProviderModel
from pydantic_ai.models import create_async_httpx2_client
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings as RequestSettings

from quire.engine.ports import ModelCall, ModelReply
from quire.engine.premises import (
    MAX_REPLY_CHARACTERS,
    REPLY_TOKENS,
    SHORT_REPLY_TOKENS,
    TIMEOUT,
    longest_reply,
    smallest,
)
from quire.engine.records import Usage
from quire.errors import ModelFailed
from quire.models.failures import Service, failure_of, refuses_request
from quire.models.http_limits import Limits, limit_responses
from quire.models.llama import forcible
from quire.models.messages import Conversation
from quire.models.price_list import listed_rate
from quire.models.prices import Unpriced, dollars
from quire.models.rate_limits import provider_of
from quire.models.retry import TransportFailed
from quire.models.tokens import call_tokens_at_most
from quire.values import Value, clean, fingerprint

if TYPE_CHECKING:
    from quire.engine.ports import Model


CONNECT_SECONDS = 10.0
SILENCES = 5
"""A service may take this many times the timeout for the next piece of a reply, while it sends signs of life."""

REPLY_SECONDS = 3600.0
EMPTY_PART = 100
"""Characters that a part counts in addition to its text: a reply may consist of nothing but parts."""

REPLY_LIMITS = Limits(line=16_000_000, body=16_000_000, stream=200_000_000)
"""A token is one line of some hundred bytes; some services send the whole of a long call as one line."""

UNSAID = (
    (UsageExtractionFailedWarning, ""),
    (UserWarning, r"[A-Z_]+ is not a valid FinishReason$"),
    (UserWarning, r"Sampling parameters \["),
)
"""Warnings of the libraries about a service's numbers and words, and about models that think and take no temperature.
They are not for the user's terminal."""

for _category, _message in UNSAID:
    warnings.filterwarnings("ignore", category=_category, message=_message)

PriceSource = Literal["free", "listed", "unknown"]
StreamEvent: TypeAlias = ModelResponseStreamEvent | ModelResponse
Build = Callable[[httpx2.AsyncClient], ProviderModel]


class SchemaRefused(ModelFailed):
    """The service rejected a request with a forced reply; without the schema it may accept it."""


class LengthRefused(ModelFailed):
    """The service rejected a request with the usual length of a reply; the model may write less than that."""


class HostedModel:
    """One model of one provider, without retries. Connections belong to an event loop: each loop gets a client."""

    def __init__(
        self,
        name: str,
        build: Build,
        *,
        price: PriceSource,
        secrets: Iterable[str] = (),
        read_seconds: float = TIMEOUT,
        no_key: str = "",
        absent: str = "",
        effort: str = "thinking",
        caches: bool = False,
    ) -> None:
        """`no_key` is the advice if a required key is not configured, `absent` the advice if the service does not
        answer. `effort` is the name under which the library takes how much a model thinks: under `thinking` it sends
        that only to models of which it knows that they think."""
        self._name = name
        self._build = build
        self._price = price
        self._read_seconds = read_seconds
        self._effort = effort
        self._caches = caches and provider_of(name) in ("anthropic", "openai")
        self._model = self._built()
        url: object = getattr(self._model, "base_url", None)
        self._service = Service(tuple(secrets), no_key, absent, str(url or ""))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._refused_schemas: set[str] = set()
        self._writes_little = False

    def __repr__(self) -> str:
        return f"HostedModel({self._name!r})"

    @property
    def name(self) -> str:
        return self._name

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        short = replace(call, max_tokens=_short(call))
        try:
            return await self._in_form(short if self._writes_little else call, on_delta)
        except LengthRefused:
            reply = await self._in_form(short, on_delta)
        self._writes_little = True  # the length was the reason: it is not tried again
        return reply

    async def _in_form(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        schema = self._forced(call)
        try:
            return await self._complete(call, schema, on_delta)
        except SchemaRefused:
            pass
        reply = await self._complete(call, None, on_delta)
        # The schema was the reason: the same one is not tried again.
        self._refused_schemas.add(fingerprint(schema))
        return reply

    def _forced(self, call: ModelCall) -> Mapping[str, Value] | None:
        """Return the schema that the service should force the reply into, or None if it cannot.

        The caller checks the reply anyway.
        """
        able = self._model.profile.get("supports_json_schema_output", False)
        if not able or call.schema is None or not forcible(call.schema):
            return None
        return None if fingerprint(call.schema) in self._refused_schemas else call.schema

    async def _complete(
        self, call: ModelCall, schema: Mapping[str, Value] | None, on_delta: Callable[[str], None]
    ) -> ModelReply:
        model, conversation = self._model_of_this_loop(), Conversation.of(call)
        text: list[str] = []
        size = 0
        response: ModelResponse | None = None
        async with aclosing(self._stream(model, conversation, schema)) as events:
            async for event in events:
                if isinstance(event, ModelResponse):
                    response = event
                    continue
                piece, unseen = _written(event)
                if piece:
                    text.append(piece)
                    on_delta(piece)
                size += len(piece) + unseen
                if size > MAX_REPLY_CHARACTERS:
                    raise ModelFailed(
                        f"{self._name}: the reply is longer than {MAX_REPLY_CHARACTERS} characters", kind="bad_reply"
                    )
        return self._reply("".join(text), conversation, response)

    def _reply(self, text: str, conversation: Conversation, response: ModelResponse | None) -> ModelReply:
        finish = (response.finish_reason if response else None) or "stop"
        if finish not in ("content_filter", "error") and not _has_ended(response):
            raise TransportFailed(
                f"{self._name}: the reply broke off, the service did not say that it is complete", kind="connection"
            )
        usage = self._usage(response)
        # An unknown price would make the cost of the whole run unknown, for a reply that may not have cost anything.
        used = None if usage.cost is None else (usage.input_tokens, usage.output_tokens, usage.cost)
        if finish == "content_filter":
            message = f"{self._name}: the provider's content filter stopped the reply"
            raise ModelFailed(message, kind="refused", used=used)
        if finish == "error":
            stated = str(((response and response.provider_details) or {}).get("finish_reason") or "")
            why = f" ({stated[:60]})" if stated else ""
            raise ModelFailed(f"{self._name}: the provider broke the reply off{why}", kind="bad_reply", used=used)
        uses = conversation.uses(response, cut=finish == "length") if response else ()
        if not text.strip() and not uses:
            cut = " before the token limit" if finish == "length" else ""
            raise ModelFailed(f"{self._name} answered nothing{cut}", kind="empty", used=used)
        if not text.strip() and not conversation.call.tools:
            called = clean(uses[0].name)[:60]
            message = f"{self._name} only called the tool {called}, and was offered no tools"
            raise ModelFailed(message, kind="empty", used=used)
        return ModelReply(text, self._name, usage, finish, uses=uses)

    async def _stream(
        self, model: ProviderModel, conversation: Conversation, schema: Mapping[str, Value] | None
    ) -> AsyncGenerator[StreamEvent]:
        """Yield the events that the service sends and, last, the whole response.

        Every exception of a library is converted here.
        """
        messages, parameters = conversation.messages(), conversation.parameters(schema)
        settings = self._settings(conversation.call)
        failure: ModelFailed
        seconds = self._seconds(conversation.call)
        patience = _Patience(seconds * SILENCES)
        try:
            async with (
                patience,
                model_request_stream(
                    model, messages, model_settings=settings, model_request_parameters=parameters
                ) as stream,
            ):
                async for event in stream:
                    if _moves_on(event):
                        patience.renew()
                    yield event
                yield stream.get()
            return
        except Exception as error:
            failure = patience.failure(self._name) or failure_of(error, self._name, self._service, seconds)
            if schema is not None and refuses_request(error):
                failure = SchemaRefused(failure.message, kind=failure.kind)
            elif _short(conversation.call) != conversation.call.max_tokens and failure.kind in ("refused", "too_long"):
                failure = LengthRefused(failure.message, kind=failure.kind)
        # Raised outside the handler so that the library's exception, which holds the request, is not its context.
        raise failure

    def estimate(self, call: ModelCall) -> float | None:
        """Return the most that a call costs by the list price."""
        if self._price == "free":
            return 0.0
        if self._price != "listed":
            return None
        model, today = self._model, datetime.now(UTC).date()
        caches = self._caches and bool(call.cache)
        rate = listed_rate(self._name, model.model_name, model.system, self._service.url, today, caches)
        if isinstance(rate, Unpriced):
            return None
        return dollars(rate.cost(call_tokens_at_most(call), call.max_tokens or REPLY_TOKENS))

    def _seconds(self, call: ModelCall) -> float:
        return self._read_seconds if call.timeout is None else call.timeout

    def _settings(self, call: ModelCall) -> RequestSettings:
        settings = RequestSettings()
        # A setting that the provider's library does not support would print a warning on the terminal.
        if "timeout" not in self._model.unsupported_settings:
            settings["timeout"] = self._seconds(call)
        if "max_retries" not in self._model.unsupported_settings:
            settings["max_retries"] = 0
        if call.max_tokens is not None:
            settings["max_tokens"] = call.max_tokens
        if call.temperature is not None:
            settings["temperature"] = call.temperature
        if call.cache and self._caches:
            own = ("anthropic_cache_instructions", "anthropic_cache_tool_definitions")
            settings |= {**dict.fromkeys(own, True), "openai_prompt_cache_key": call.cache}  # type: ignore[typeddict-item]
        if call.reasoning:
            off = call.reasoning == "none" and self._effort == "thinking"
            settings[self._effort] = False if off else call.reasoning  # type: ignore[literal-required]
        return settings

    def _usage(self, response: ModelResponse | None) -> Usage:
        if response is None:
            return Usage(cost=0.0 if self._price == "free" else None)
        cost: float | None = 0.0 if self._price == "free" else None
        # A reply whose tokens were not counted has a price, but it is unknown.
        if self._price == "listed" and response.usage.output_tokens > 0:
            try:
                cost = float(response.cost().total_price)
            except (LookupError, ValueError, AssertionError):
                cost = None
        return Usage(max(0, response.usage.input_tokens), max(0, response.usage.output_tokens), cost)

    def _model_of_this_loop(self) -> ProviderModel:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            self._model, self._loop = self._built(), loop
        return self._model

    def _built(self) -> ProviderModel:
        timeout = httpx2.Timeout(self._read_seconds, connect=min(CONNECT_SECONDS, self._read_seconds))
        client = create_async_httpx2_client(timeout=timeout)
        limit_responses(client, REPLY_LIMITS, needs_events=True)
        return self._build(client)


class _Patience:
    """A time limit for each piece of a reply, and one for all of it: keep-alive messages alone do not extend it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._limit = asyncio.timeout(None)
        self._end = 0.0

    async def __aenter__(self) -> _Patience:
        self._end = asyncio.get_running_loop().time() + REPLY_SECONDS
        await self._limit.__aenter__()
        self.renew()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._limit.__aexit__(kind, error, trace)

    def renew(self) -> None:
        if self._limit.expired():
            return  # it is ending already
        self._limit.reschedule(min(asyncio.get_running_loop().time() + self._seconds, self._end))

    def failure(self, model: str) -> ModelFailed | None:
        """Return the failure if this limit ended the call, else None."""
        if not self._limit.expired():
            return None
        if asyncio.get_running_loop().time() >= self._end:
            return ModelFailed(f"{model}: the reply took longer than {REPLY_SECONDS:g} s", kind="timeout")
        waited = f"no piece of the reply for {self._seconds:g} s, though the connection was kept open"
        return TransportFailed(f"{model}: {waited}", kind="timeout")


def _short(call: ModelCall) -> int | None:
    """Return the tokens of a short reply; where a setting says how long it is, those of the setting."""
    usual = longest_reply(SHORT_REPLY_TOKENS, None, call.reasoning)
    return smallest(call.max_tokens, usual) if call.usual_tokens else call.max_tokens


def _moves_on(event: ModelResponseStreamEvent) -> bool:
    """Tell whether an event brings content: an empty piece is only a sign of life."""
    return not (
        isinstance(event, PartDeltaEvent)
        and (
            (isinstance(event.delta, TextPartDelta | ThinkingPartDelta) and not event.delta.content_delta)
            or (isinstance(event.delta, ToolCallPartDelta) and not event.delta.args_delta)
        )
    )


def _has_ended(response: ModelResponse | None) -> bool:
    """Tell whether the service finished its reply: it gave a finish reason, or counted its output tokens.

    For chat services the library takes a missing reason for `stop`, since some never give one; but they count tokens,
    and only at the end. For services that count from the beginning, a missing reason stays missing.
    """
    if response is None:
        return False
    reason = (response.provider_details or {}).get("finish_reason")
    return bool(reason) or (response.finish_reason is not None and response.usage.output_tokens > 0)


def _written(event: ModelResponseStreamEvent) -> tuple[str, int]:
    """Return the text that an event brings, and the number of its other characters."""
    match event:
        case PartStartEvent(part=TextPart(content=text)):
            return clean(text), 0
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return clean(text), 0
        case PartDeltaEvent(delta=ToolCallPartDelta(args_delta=str(arguments))):
            return "", len(arguments)
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(thought))):
            return "", len(thought)
        case PartStartEvent():
            return "", EMPTY_PART
    return "", 0


_HEADERS = frozenset(
    ("host", "accept", "accept-encoding", "connection", "user-agent", "content-type", "content-length", "authorization")
)
"""Headers of a request to a compatible service. The SDK reads several OPENAI_… variables by itself (key, organization,
project, extra headers), and these must not go to a service that only speaks the same protocol."""


def compatible_model(
    spec: str, name: str, base_url: str, key: str, *, free: bool, timeout: float, no_key: str = "", absent: str = ""
) -> Model:
    """Open an OpenAI-compatible service. If `key` is empty, no authorization is sent at all, and `no_key` says how to
    configure one.

    `absent` says what may be wrong if the service does not answer.
    """

    def build(client: httpx2.AsyncClient) -> OpenAIChatModel:
        client.event_hooks["request"].append(_only_ours(key))
        sdk = AsyncOpenAI(base_url=base_url, api_key=key or "none", http_client=client, max_retries=0)
        return OpenAIChatModel(name, provider=OpenAICompatibleProvider("compatible", openai_client=sdk))

    price: PriceSource = "free" if free else "unknown"
    secrets, hint = ((key,), "") if key else ((), no_key)
    return HostedModel(
        spec,
        build,
        price=price,
        secrets=secrets,
        read_seconds=timeout,
        no_key=hint,
        absent=absent,
        effort="openai_reasoning_effort",
    )


def _only_ours(key: str) -> Callable[[httpx2.Request], Awaitable[None]]:
    authorization = f"Bearer {key}" if key else None

    async def limit(request: httpx2.Request) -> None:
        for header in list(request.headers):
            if header.lower() not in _HEADERS:
                del request.headers[header]
        # The header is only removed, never added: on a redirect to another host the client has removed it already.
        if "authorization" in request.headers and request.headers["authorization"] != authorization:
            del request.headers["authorization"]

    return limit
