"""Convert a call into messages of pydantic-ai, and the tool calls of its response back.

Services accept only short tool names of letters, digits, `_` and `-`, so any other name is replaced in transit, always
by the same name for the same tools. Imports pydantic-ai: only `providers` imports this.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from msgspec import Struct
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from quire.engine.conversation import Message, ToolUse
from quire.values import InvalidValue, Value, clean, copy, decode

if TYPE_CHECKING:
    from quire.engine.ports import ModelCall

_LONGEST_NAME = 64
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


QUOTED = 200
"""Characters of unreadable arguments that are shown to the model again."""


class Conversation(Struct, frozen=True):
    """A call and the transit names of its tools."""

    call: ModelCall
    known: Mapping[str, str]
    """The name in transit of each tool that is offered or was used."""

    @classmethod
    def of(cls, call: ModelCall) -> Conversation:
        names = [tool.name for tool in call.tools]
        names += [use.name for message in call.messages for use in message.uses]
        return cls(call, _names_on_the_way(names))

    def messages(self) -> list[ModelMessage]:
        messages: list[ModelMessage] = []
        if self.call.system:
            messages.append(ModelRequest(parts=[SystemPromptPart(self.call.system)]))
        used: dict[str, str] = {}
        results: list[ToolReturnPart] | None = None
        for message in self.call.messages:
            if message.role == "tool":
                part = ToolReturnPart(used[message.answers], message.content, message.answers)
                if results is None:
                    # Services want the results of one reply together in one request.
                    results = []
                    messages.append(ModelRequest(parts=results))
                results.append(part)
                continue
            results = None
            if message.role == "user":
                messages.append(ModelRequest(parts=[UserPromptPart(message.content)]))
            else:
                messages.append(ModelResponse(parts=self._said(message)))
                used.update((use.id, self.known[use.name]) for use in message.uses)
        return messages

    def _said(self, message: Message) -> list[ModelResponsePart]:
        parts: list[ModelResponsePart] = []
        if message.content or not message.uses:
            parts.append(TextPart(message.content))
        for use in message.uses:
            parts.append(ToolCallPart(self.known[use.name], _plain(use.arguments), use.id))
        return parts

    def parameters(self, schema: Mapping[str, Value] | None) -> ModelRequestParameters:
        """Return the request parameters. `schema`, if given, is the schema that the whole reply is forced into."""
        tools = [
            ToolDefinition(
                name=self.known[tool.name],
                parameters_json_schema=_plain({"type": "object", **tool.schema}),
                description=tool.description or None,
            )
            for tool in self.call.tools
        ]
        if schema is None:
            return ModelRequestParameters(function_tools=tools)
        output = OutputObjectDefinition(_plain(schema), name="reply")
        return ModelRequestParameters(function_tools=tools, output_mode="native", output_object=output)

    def uses(self, response: ModelResponse, *, cut: bool) -> tuple[ToolUse, ...]:
        """Return the tool calls of a response. `cut` says that the reply reached the token limit."""
        meant = {way: name for name, way in self.known.items()}
        taken = {use.id for message in self.call.messages for use in message.uses}
        numbers: dict[str, int] = {}
        uses: list[ToolUse] = []
        for part in response.parts:
            if not isinstance(part, ToolCallPart):
                continue
            name = meant.get(part.tool_name, part.tool_name)
            # Some services count ids from 0 in each reply, but a result must belong to exactly one call.
            id_ = base = part.tool_call_id or "call"
            number = numbers.get(base, 2)
            while id_ in taken:
                id_, number = f"{base}_{number}", number + 1
            numbers[base] = number
            taken.add(id_)
            uses.append(ToolUse(id_, name, *_arguments(name, part.args, cut=cut)))
        return tuple(uses)


def _arguments(name: str, raw: object, *, cut: bool) -> tuple[Mapping[str, Value], str]:
    """Return the arguments, and the mistake in them: with a mistake, the arguments are empty."""
    try:
        if raw is None or raw == "":
            # A call without arguments, unless they were cut off.
            value: Value = None if cut else {}
        else:
            value = copy(decode(raw) if isinstance(raw, str) else cast("Value", raw))
    except InvalidValue as error:
        why = "are cut off by the token limit" if cut else f"are not JSON: {error}"
        return {}, f"the arguments for the tool {name} {why}{_quoted(raw)}"
    if not isinstance(value, Mapping):
        why = "are cut off by the token limit" if cut else "are not a JSON object"
        return {}, f"the arguments for the tool {name} {why}{_quoted(raw)}"
    return value, ""


def _quoted(raw: object) -> str:
    if not isinstance(raw, str) or not raw:
        return ""
    text = clean(raw[:QUOTED])
    return f"; they were: {text}{'…' if len(raw) > QUOTED else ''}"


def _plain(value: Mapping[str, Value]) -> dict[str, object]:
    """Return a copy made of plain dictionaries and lists: libraries change the values that they are given."""
    plain = copy(value)
    assert isinstance(plain, dict)  # noqa: S101
    return plain


def _names_on_the_way(names: Iterable[str]) -> dict[str, str]:
    ways: dict[str, str] = {}
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    # Names that can stay unchanged come first, so that no other name takes their place.
    for name in sorted(dict.fromkeys(names), key=lambda name: _fitting(name) != name):
        way = fitting = _fitting(name)
        # The count continues instead of starting again: thousands of names may be shortened to the same one.
        number = numbers.get(fitting, 2)
        while way in taken:
            end = f"_{number}"
            way, number = fitting[: _LONGEST_NAME - len(end)] + end, number + 1
        numbers[fitting] = number
        taken.add(way)
        ways[name] = way
    return ways


def _fitting(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME] or "tool"
