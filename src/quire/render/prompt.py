"""What a model is told at a step, for people and for machines."""

from __future__ import annotations

from quire.engine.requests import ModelRequest
from quire.values import Value


def prompt_text(request: ModelRequest) -> str:
    """Message by message, each under a line that names its role."""
    messages = [("system", request.system)] if request.system else []
    messages += [(message.role, message.content) for message in request.messages]
    return "\n\n".join(f"--- {role} ---\n{content}" for role, content in messages) + "\n"


def prompt_data(request: ModelRequest) -> dict[str, Value]:
    data: dict[str, Value] = {
        "system": request.system,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "closing": request.closing,
    }
    if request.schema is not None:
        data["schema"] = request.schema
    if request.tools:
        data["tools"] = [tool.name for tool in request.tools]
    return data
