"""How a call of a tool went, as the model is told and as the loop counts it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict, cast

from quire.errors import Refused, StepFailed
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.engine.requests import Steps, Walk

LONGEST_RESULT = 60_000
"""Characters of a result that the model gets."""

LONGEST_ERROR = 8_000
"""The same of what went wrong: a message may quote what the model has written, however long that is."""


class Told(TypedDict):
    """`content` is for the model. `kind` is empty for a call that went well.

    `message` is what went wrong, as plain text. `paths` are the effects that it took, `cost` what a child thread used,
    `ended` how that one ended. `outside` is true where content from outside has gone into it.
    """

    content: str
    tool: str
    kind: str
    message: str
    paths: list[str]
    cost: Mapping[str, Value] | None
    ended: Mapping[str, Value]
    outside: bool


def went_well(tool: str, result: Value, paths: list[str] | None = None) -> Told:
    content = encode(result)
    if len(content) > LONGEST_RESULT:
        content = f"{content[:LONGEST_RESULT]}\n[cut: {len(content):,} characters in all]"
    return Told(content=content, tool=tool, kind="", message="", paths=paths or [], cost=None, ended={}, outside=False)


def failed(tool: str, error: StepFailed, paths: list[str] | None = None) -> Told:
    message = error.message
    if len(message) > LONGEST_ERROR:
        message = f"{message[:LONGEST_ERROR]}\n[cut: {len(message):,} characters in all]"
    content = encode({"error": message})
    return Told(
        content=content,
        tool=tool,
        kind=error.kind,
        message=message,
        paths=paths or [],
        cost=None,
        ended={},
        outside=False,
    )


def at_once(told: Told) -> Walk:
    """A walk that is over before it begins."""
    yield from ()
    return cast("Value", told)


def guarded(tool: str, steps: Steps, paths: list[str] | None = None) -> Walk:
    """One call as a branch of its own: what goes wrong is told to the model, not thrown."""
    try:
        result = yield from steps
    except StepFailed as error:
        return cast("Value", failed(tool, error, paths))
    except Refused as error:
        return cast("Value", failed(tool, StepFailed(str(error), kind="denied"), paths))
    return cast("Value", went_well(tool, result, paths))
