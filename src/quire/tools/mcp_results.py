"""Results of MCP tools, as text for a playbook or a model, and as data for a pipeline.

The parts keep their order. A part that is neither text nor a link is named in its place, so that it does not seem
absent; a result that consists only of such parts is kept as the server sent it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quire import values
from quire.tools.registry import Answer
from quire.values import InvalidValue, Value

if TYPE_CHECKING:
    from mcp import types


def answer_of(result: types.CallToolResult) -> Answer:
    """Return a result as text and data. The data is the structured content, else the text decoded as a JSON object or
    list, else the text."""
    structured: Value = result.structured_content
    text: Value = text_of(result.content) if _has_text(result.content) or not result.content else ""
    if result.content and not _has_text(result.content):
        text = [part.model_dump(mode="json", by_alias=True, exclude_none=True) for part in result.content]
    if structured is not None:
        # An empty text beside structured content has no meaning.
        return Answer(text if isinstance(text, str) and text else structured, structured)
    return Answer(text, _decoded(text) if isinstance(text, str) else text)


def text_of(parts: Sequence[types.ContentBlock]) -> str:
    """Return the parts as one text, in their order."""
    return "\n".join(text for part in parts if (text := _part(part)))


def _has_text(parts: Sequence[types.ContentBlock]) -> bool:
    return any(_is_text(part) for part in parts)


def _is_text(part: types.ContentBlock) -> bool:
    return part.type in ("text", "resource_link") or (part.type == "resource" and hasattr(part.resource, "text"))


def _part(part: types.ContentBlock) -> str:
    if part.type == "text":
        return part.text
    if part.type == "resource_link":
        return f"[{part.name}]({part.uri})"
    if part.type == "resource":
        text: str | None = getattr(part.resource, "text", None)
        if text is not None:
            return text
        kind = f", {part.resource.mime_type}" if part.resource.mime_type else ""
        return f"[resource {part.resource.uri}{kind}, left out]"
    return f"[{part.type}, {part.mime_type}, left out]"


def _decoded(text: str) -> Value:
    """Decode objects and lists only: a number or a word that happens to be JSON stays text."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return values.decode(text)
    except InvalidValue:
        return text
