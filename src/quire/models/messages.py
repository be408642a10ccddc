"""A call of ours in the words of pydantic-ai, and the tool calls of its response in ours.

Services take only short names of letters, digits, `_` and `-` for tools, so a name beyond that goes by another one
on the way, the same for the same tools. Imports pydantic-ai: only `providers` imports this.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

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

from quire.engine.requests import Message, ToolUse
from quire.values import InvalidValue, Value, clean, copy, decode

if TYPE_CHECKING:
    from quire.engine.ports import ModelCall

_LONGEST_NAME = 64
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


QUOTED = 200
"""Characters of arguments that cannot be read which the model is shown again."""


class Conversation(Struct, frozen=True):
    """`known` is the name on the way of each tool that is offered or was used."""

    call: ModelCall
    known: Mapping[str, str]

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
                    # Services want the results of one reply side by side.
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
        """`schema` is what the whole reply is to be forced to, if anything."""
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
        """`cut` says that the reply hit the token limit."""
        meant = {way: name for name, way in self.known.items()}
        taken = {use.id for message in self.call.messages for use in message.uses}
        numbers: dict[str, int] = {}
        uses: list[ToolUse] = []
        for part in response.parts:
            if not isinstance(part, ToolCallPart):
                continue
            name = meant.get(part.tool_name, part.tool_name)
            # Some services count from 0 in each reply, and a result must find its one call.
            id_ = given = part.tool_call_id or "call"
            number = numbers.get(given, 2)
            while id_ in taken:
                id_, number = f"{given}_{number}", number + 1
            numbers[given] = number
            taken.add(id_)
            uses.append(ToolUse(id_, name, *_arguments(name, part.args, cut=cut)))
        return tuple(uses)


def _arguments(name: str, given: object, *, cut: bool) -> tuple[Mapping[str, Value], str]:
    """The arguments, and what is wrong with them: then there are none."""
    try:
        if given is None or given == "":
            # Without arguments, unless there was no room left for them.
            value: Value = None if cut else {}
        else:
            value = copy(decode(given) if isinstance(given, str) else _mapping(given))
    except InvalidValue as error:
        why = "are cut off by the token limit" if cut else f"are not JSON: {error}"
        return {}, f"the arguments for the tool {name} {why}{_quoted(given)}"
    if not isinstance(value, Mapping):
        why = "are cut off by the token limit" if cut else "are not a JSON object"
        return {}, f"the arguments for the tool {name} {why}{_quoted(given)}"
    return value, ""


def _quoted(given: object) -> str:
    if not isinstance(given, str) or not given:
        return ""
    text = clean(given[:QUOTED])
    return f"; they were: {text}{'…' if len(given) > QUOTED else ''}"


def _mapping(given: object) -> Mapping[str, Value]:
    if not isinstance(given, dict):
        raise InvalidValue(f"{type(given).__name__} is not an object")
    return given


def _plain(value: Mapping[str, Value]) -> dict[str, object]:
    """Dictionaries and lists all the way down, and ours no longer: libraries change what they are given."""
    plain = copy(value)
    assert isinstance(plain, dict)  # noqa: S101
    return plain


def _names_on_the_way(names: Iterable[str]) -> dict[str, str]:
    known: dict[str, str] = {}
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    # Names that can stay as they are come first: no other may take their place.
    for name in sorted(dict.fromkeys(names), key=lambda name: _fitting(name) != name):
        way = fitting = _fitting(name)
        # Counted on, not from the start: thousands of names may fit into one.
        number = numbers.get(fitting, 2)
        while way in taken:
            end = f"_{number}"
            way, number = fitting[: _LONGEST_NAME - len(end)] + end, number + 1
        numbers[fitting] = number
        taken.add(way)
        known[name] = way
    return known


def _fitting(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME] or "tool"
