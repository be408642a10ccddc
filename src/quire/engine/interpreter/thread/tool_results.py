"""The result of one tool call: the text for the model, and the effects and cost for the thread's accounting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict, cast

from quire.engine.ports import LONGEST_ERROR
from quire.errors import Refused, StepFailed
from quire.values import Value, encode
from quire.wording import cut_off

if TYPE_CHECKING:
    from quire.engine.requests import Steps, Walk

LONGEST_RESULT = 60_000
"""Characters of a result that the model gets."""


class ToolResult(TypedDict):
    """The result of one tool call."""

    content: str
    """The text for the model."""
    tool: str
    kind: str
    """Empty for a call that succeeded."""
    message: str
    """The error as plain text."""
    paths: list[str]
    """The effects that the call performed."""
    cost: Mapping[str, Value] | None
    """Usage of a child thread."""
    ended: Mapping[str, Value]
    """How the child thread ended."""
    outside: bool
    """True if the result contains content from outside."""


def succeeded(tool: str, result: Value, paths: list[str] | None = None) -> ToolResult:
    return _result(tool, cut_off(encode(result), LONGEST_RESULT), paths)


def failed(tool: str, error: StepFailed, paths: list[str] | None = None) -> ToolResult:
    message = cut_off(error.message, LONGEST_ERROR)
    return _result(tool, encode({"error": message}), paths, error.kind, message)


def _result(tool: str, content: str, paths: list[str] | None, kind: str = "", message: str = "") -> ToolResult:
    return ToolResult(
        content=content, tool=tool, kind=kind, message=message, paths=paths or [], cost=None, ended={}, outside=False
    )


def finished_walk(result: ToolResult) -> Walk:
    """Return a walk that ends at once with this result."""
    yield from ()
    return cast("Value", result)


def as_tool_result(tool: str, steps: Steps, paths: list[str] | None = None) -> Walk:
    """Run one call as a branch of its own: an error is told to the model, not thrown."""
    try:
        result = yield from steps
    except StepFailed as error:
        return cast("Value", failed(tool, error, paths))
    except Refused as error:
        return cast("Value", failed(tool, StepFailed(str(error), kind="denied"), paths))
    return cast("Value", succeeded(tool, result, paths))
