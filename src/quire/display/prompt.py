"""The messages sent to a model at a step, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.engine.conversation import Message
    from quire.engine.requests import ModelRequest


def prompt_text(request: ModelRequest) -> str:
    """Return the messages, each under a line that names its role."""
    messages = [("system", request.system)] if request.system else []
    messages += [(message.role, _content(message)) for message in request.messages]
    return "\n\n".join(f"--- {role} ---\n{content}" for role, content in messages) + "\n"


def prompt_data(request: ModelRequest) -> dict[str, Value]:
    data: dict[str, Value] = {
        "system": request.system,
        "messages": [_message(message) for message in request.messages],
        "closing": request.closing,
    }
    if request.schema is not None:
        data["schema"] = request.schema
    if request.tools:
        data["tools"] = [tool.name for tool in request.tools]
    return data


def _content(message: Message) -> str:
    """Return the content with the tool calls of the model."""
    calls = [f"[calls {use.name} {encode(dict(use.arguments))}]" for use in message.uses]
    return "\n".join(filter(None, [message.content, *calls]))


def _message(message: Message) -> Value:
    data: dict[str, Value] = {"role": message.role, "content": message.content}
    if message.uses:
        data["calls"] = [{"id": use.id, "name": use.name, "arguments": dict(use.arguments)} for use in message.uses]
    if message.answers:
        data["answers"] = message.answers
    return data
