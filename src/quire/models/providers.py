"""Hosted models and OpenAI-compatible services, through the `direct` layer of pydantic-ai.

Importing this module imports pydantic-ai, which takes seconds: only `open_model` does it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import Literal

import httpx2
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    UserPromptPart,
)
from pydantic_ai.models import Model as ProviderModel
from pydantic_ai.models import create_async_httpx2_client
from pydantic_ai.settings import ModelSettings as RequestSettings

from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import Usage
from quire.errors import ModelFailed
from quire.models.failures import failure_of
from quire.values import clean

CONNECT_SECONDS = 10.0
READ_SECONDS = 120.0
MAX_REPLY = 4_000_000
"""Characters; a reply beyond it is a server gone wrong."""

Price = Literal["free", "listed", "unknown"]
Build = Callable[[httpx2.AsyncClient], ProviderModel]


class HostedModel:
    """One model of one provider, without retries. Connections belong to an event loop: each loop gets a client."""

    def __init__(
        self,
        name: str,
        build: Build,
        *,
        price: Price,
        secrets: Iterable[str] = (),
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self._name = name
        self._build = build
        self._price = price
        self._secrets = tuple(secrets)
        self._read_seconds = read_seconds
        self._model = self._built()
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"HostedModel({self._name!r})"

    @property
    def name(self) -> str:
        return self._name

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        model = self._model_of_this_loop()
        text: list[str] = []
        size = 0
        response: ModelResponse | None = None
        async with aclosing(self._stream(model, call)) as pieces:
            async for piece in pieces:
                if isinstance(piece, ModelResponse):
                    response = piece
                    continue
                text.append(piece)
                on_delta(piece)
                size += len(piece)
                if size > MAX_REPLY:
                    raise ModelFailed(
                        f"{self._name}: the reply is longer than {MAX_REPLY} characters", kind="bad_reply"
                    )
        return self._reply("".join(text), response)

    def _reply(self, text: str, response: ModelResponse | None) -> ModelReply:
        finish = (response.finish_reason if response else None) or "stop"
        if finish == "content_filter":
            raise ModelFailed(f"{self._name}: the provider's content filter stopped the reply", kind="refused")
        if finish == "error":
            raise ModelFailed(f"{self._name}: the provider broke the reply off", kind="bad_reply")
        if not text.strip():
            cut = " before the token limit" if finish == "length" else ""
            raise ModelFailed(f"{self._name} answered nothing{cut}", kind="empty")
        return ModelReply(text, self._name, self._usage(response), finish)

    async def _stream(self, model: ProviderModel, call: ModelCall) -> AsyncGenerator[str | ModelResponse]:
        """The pieces of the text and, last, the whole response. Everything a library raises ends here."""
        failure: ModelFailed
        try:
            async with model_request_stream(model, _messages(call), model_settings=self._settings(call)) as stream:
                async for event in stream:
                    piece = ""
                    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                        piece = event.part.content
                    elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                        piece = event.delta.content_delta
                    if piece:
                        yield clean(piece)
                yield stream.get()
            return
        except Exception as error:
            failure = failure_of(error, self._name, self._secrets)
        # Raised out here so that the library's exception, which holds the request, is not its context.
        raise failure

    def _settings(self, call: ModelCall) -> RequestSettings:
        settings = RequestSettings()
        # A setting that the provider's library cannot take is a warning on the terminal.
        if "timeout" not in self._model.unsupported_settings:
            settings["timeout"] = self._read_seconds
        if "max_retries" not in self._model.unsupported_settings:
            settings["max_retries"] = 0
        if call.max_tokens is not None:
            settings["max_tokens"] = call.max_tokens
        return settings

    def _usage(self, response: ModelResponse | None) -> Usage:
        if response is None:
            return Usage(cost=0.0 if self._price == "free" else None)
        cost: float | None = 0.0 if self._price == "free" else None
        if self._price == "listed":
            try:
                cost = float(response.cost().total_price)
            except (LookupError, ValueError, AssertionError):
                cost = None
        return Usage(response.usage.input_tokens, response.usage.output_tokens, cost)

    def _model_of_this_loop(self) -> ProviderModel:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            self._model, self._loop = self._built(), loop
        return self._model

    def _built(self) -> ProviderModel:
        timeout = httpx2.Timeout(self._read_seconds, connect=min(CONNECT_SECONDS, self._read_seconds))
        return self._build(create_async_httpx2_client(timeout=timeout))


def _messages(call: ModelCall) -> list[ModelMessage]:
    messages: list[ModelMessage] = []
    if call.system:
        messages.append(ModelRequest(parts=[SystemPromptPart(call.system)]))
    for message in call.messages:
        if message.role == "user":
            messages.append(ModelRequest(parts=[UserPromptPart(message.content)]))
        else:
            messages.append(ModelResponse(parts=[TextPart(message.content)]))
    return messages
