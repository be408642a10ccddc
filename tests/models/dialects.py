"""The streaming protocols of Anthropic, Gemini and OpenAI's Responses, for the loopback service to speak.

Each dialect turns the same few things (a piece of text, a call of a tool, an ending) into the chunks of its provider.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from tests.models.conftest import Behaviour, Exchange

Call = tuple[str, str, str]
"""The id, the name and the arguments (as they are written) of a call of a tool."""

Tokens = tuple[int, int] | None


class Dialect(ABC):
    """`ends` maps what an ending means to the provider's word for it."""

    spec: ClassVar[str]
    key: ClassVar[str]
    address: ClassVar[str]
    path: ClassVar[str] = ""
    ends: ClassVar[Mapping[str, str]]

    @abstractmethod
    def opening(self, tokens: Tokens) -> list[str]: ...

    @abstractmethod
    def text(self, *pieces: str) -> list[str]: ...

    @abstractmethod
    def call(self, at: int, call: Call) -> list[str]: ...

    @abstractmethod
    def closing(self, end: str, tokens: Tokens) -> list[str]: ...

    @abstractmethod
    def error(self, status: int, message: str) -> dict[str, object]: ...

    def say(self, *pieces: str, end: str = "stop", tokens: Tokens = (7, 3)) -> Behaviour:
        return sending(*self.opening(tokens), *self.text(*pieces), *self.closing(self.ends.get(end, end), tokens))

    def use(self, *calls: Call, text: str = "", end: str = "use", tokens: Tokens = (7, 3)) -> Behaviour:
        said = self.text(text) if text else []
        used = [chunk for at, call in enumerate(calls) for chunk in self.call(at + bool(text), call)]
        return sending(*self.opening(tokens), *said, *used, *self.closing(self.ends.get(end, end), tokens))

    def cut(self, *pieces: str, drop: bool = False) -> Behaviour:
        """A reply without an end: the connection breaks, or the body is closed in good order."""
        text = self.text(*pieces)[: 1 + len(pieces)] if pieces else []
        return sending(*self.opening((7, 1)), *text, drop=drop)


class Anthropic(Dialect):
    spec = "anthropic:claude-sonnet-5-5"
    key, address = "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
    ends: ClassVar[Mapping[str, str]] = {
        "stop": "end_turn",
        "use": "tool_use",
        "length": "max_tokens",
        "filter": "refusal",
    }

    def opening(self, tokens: Tokens) -> list[str]:
        message: dict[str, object] = {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-5-5",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
        }
        if tokens is not None:
            message["usage"] = {"input_tokens": tokens[0], "output_tokens": 1}
        return [named({"type": "message_start", "message": message})]

    def text(self, *pieces: str) -> list[str]:
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
        return self._block(0, {"type": "text", "text": ""}, deltas)

    def call(self, at: int, call: Call) -> list[str]:
        id_, name, arguments = call
        deltas = [
            {"type": "input_json_delta", "partial_json": arguments[start : start + 4]}
            for start in range(0, len(arguments), 4)
        ]
        return self._block(at, {"type": "tool_use", "id": id_, "name": name, "input": {}}, deltas)

    def _block(self, at: int, block: dict[str, object], deltas: list[dict[str, str]]) -> list[str]:
        inner = [named({"type": "content_block_delta", "index": at, "delta": delta}) for delta in deltas]
        begun = named({"type": "content_block_start", "index": at, "content_block": block})
        return [begun, *inner, named({"type": "content_block_stop", "index": at})]

    def closing(self, end: str, tokens: Tokens) -> list[str]:
        delta: dict[str, object] = {"type": "message_delta", "delta": {"stop_reason": end, "stop_sequence": None}}
        if tokens is not None:
            delta["usage"] = {"output_tokens": tokens[1]}
        return [named(delta), named({"type": "message_stop"})]

    def error(self, status: int, message: str) -> dict[str, object]:
        kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}
        return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": message}}


class Gemini(Dialect):
    spec = "google:gemini-flash-latest"
    key, address = "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"
    ends: ClassVar[Mapping[str, str]] = {"stop": "STOP", "use": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY"}

    def opening(self, tokens: Tokens) -> list[str]:
        return [self._candidate([{"text": ""}])]

    def text(self, *pieces: str) -> list[str]:
        return [self._candidate([{"text": piece}]) for piece in pieces]

    def call(self, at: int, call: Call) -> list[str]:
        id_, name, arguments = call
        return [self._candidate([{"functionCall": {"id": id_, "name": name, "args": json.loads(arguments)}}])]

    def closing(self, end: str, tokens: Tokens) -> list[str]:
        return [self._candidate([{"text": ""}], end, tokens)]

    def _candidate(self, parts: list[dict[str, object]], end: str | None = None, tokens: Tokens = None) -> str:
        candidate: dict[str, object] = {"content": {"role": "model", "parts": parts}, "index": 0}
        payload: dict[str, object] = {"candidates": [candidate], "modelVersion": "gemini-flash-latest"}
        if end is not None:
            candidate["finishReason"] = end
        if tokens is not None:
            read, written = tokens
            payload["usageMetadata"] = {"promptTokenCount": read, "candidatesTokenCount": written}
        return data(payload)

    def error(self, status: int, message: str) -> dict[str, object]:
        names = {
            400: "INVALID_ARGUMENT",
            401: "UNAUTHENTICATED",
            403: "PERMISSION_DENIED",
            404: "NOT_FOUND",
            429: "RESOURCE_EXHAUSTED",
            500: "INTERNAL",
            503: "UNAVAILABLE",
        }
        return {"error": {"code": status, "message": message, "status": names.get(status, "UNKNOWN")}}


class Responses(Dialect):
    spec = "openai:gpt-6.1-terra"
    key, address = "OPENAI_API_KEY", "OPENAI_BASE_URL"
    ends: ClassVar[Mapping[str, str]] = {
        "stop": "completed",
        "use": "completed",
        "length": "max_output_tokens",
        "filter": "content_filter",
    }

    def opening(self, tokens: Tokens) -> list[str]:
        response = self._response("in_progress", None)
        return [named({"type": "response.created", "sequence_number": 0, "response": response})]

    def text(self, *pieces: str) -> list[str]:
        item: dict[str, object] = {"id": "t1", "type": "message", "role": "assistant", "content": []}
        part = {"item_id": "t1", "output_index": 0, "content_index": 0, "logprobs": []}
        begun = self._item("added", 0, {**item, "status": "in_progress"})
        deltas = [named({"type": "response.output_text.delta", **self._number(part), "delta": one}) for one in pieces]
        whole: dict[str, object] = {"type": "output_text", "text": "".join(pieces), "annotations": []}
        return [begun, *deltas, self._item("done", 0, {**item, "status": "completed", "content": [whole]})]

    def call(self, at: int, call: Call) -> list[str]:
        id_, name, arguments = call
        item: dict[str, object] = {"type": "function_call", "id": f"f{at}", "call_id": id_, "name": name}
        where = {"type": "response.function_call_arguments.delta", "item_id": f"f{at}", "output_index": at}
        deltas = [
            named({**self._number(where), "delta": arguments[start : start + 4]})
            for start in range(0, len(arguments), 4)
        ]
        done = self._item("done", at, {**item, "status": "completed", "arguments": arguments})
        return [self._item("added", at, {**item, "status": "in_progress", "arguments": ""}), *deltas, done]

    def closing(self, end: str, tokens: Tokens) -> list[str]:
        status = "completed" if end == "completed" else "incomplete"
        response = self._response(status, tokens)
        if status == "incomplete":
            response["incomplete_details"] = {"reason": end}
        return [named({"type": f"response.{status}", "sequence_number": 9, "response": response})]

    def _item(self, what: str, at: int, item: dict[str, object]) -> str:
        return named({"type": f"response.output_item.{what}", "sequence_number": 1, "output_index": at, "item": item})

    def _number(self, fields: Mapping[str, object]) -> dict[str, object]:
        return {**fields, "sequence_number": 1}

    def _response(self, status: str, tokens: Tokens) -> dict[str, object]:
        response: dict[str, object] = {
            "id": "r1",
            "object": "response",
            "created_at": 1,
            "model": "gpt-6.1-terra",
            "status": status,
            "output": [],
            "tools": [],
            "tool_choice": "auto",
            "parallel_tool_calls": True,
        }
        if tokens is not None:
            read, written = tokens
            response["usage"] = {
                "input_tokens": read,
                "output_tokens": written,
                "total_tokens": read + written,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            }
        return response

    def error(self, status: int, message: str) -> dict[str, object]:
        return {"error": {"message": message, "type": "error", "code": None}}


DIALECTS: dict[str, Dialect] = {"anthropic": Anthropic(), "gemini": Gemini(), "responses": Responses()}


def data(payload: object) -> str:
    return f"data: {json.dumps(payload)}\n\n"


def named(event: Mapping[str, object]) -> str:
    return f"event: {event['type']}\n{data(event)}"


def sending(*chunks: str, drop: bool = False) -> Behaviour:
    """A stream of events, closed in good order unless it is to be dropped."""

    def behave(exchange: Exchange) -> None:
        exchange.begin()
        for chunk in chunks:
            exchange.chunk(chunk)
        if drop:
            exchange.drop()
        else:
            exchange.wfile.write(b"0\r\n\r\n")

    return behave
