"""How a call of a tool went, as the model is told and as the loop counts it."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, TypedDict, cast

from quire.engine.requests import Request, Walk
from quire.errors import Refused, StepFailed
from quire.values import Value, encode

LONGEST_RESULT = 60_000
"""Characters of a result that the model gets."""


class Told(TypedDict):
    """`content` is for the model. `kind` is empty for a call that went well.

    `paths` are the effects that it took, `cost` what a child thread used, `ended` how that one ended.
    """

    content: str
    tool: str
    kind: str
    paths: list[str]
    cost: Mapping[str, Value] | None
    ended: Mapping[str, Value]


def went_well(tool: str, result: Value, paths: list[str] | None = None) -> Told:
    content = encode(result)
    if len(content) > LONGEST_RESULT:
        content = f"{content[:LONGEST_RESULT]}\n[cut: {len(content):,} characters in all]"
    return Told(content=content, tool=tool, kind="", paths=paths or [], cost=None, ended={})


def failed(tool: str, error: StepFailed, paths: list[str] | None = None) -> Told:
    content = encode({"error": error.message})
    return Told(content=content, tool=tool, kind=error.kind, paths=paths or [], cost=None, ended={})


def at_once(told: Told) -> Walk:
    """A walk that is over before it begins."""
    yield from ()
    return cast("Value", told)


def guarded(tool: str, steps: Generator[Request, Any, Any], paths: list[str] | None = None) -> Walk:
    """One call as a branch of its own: what goes wrong is told to the model, not thrown."""
    try:
        result = yield from steps
    except StepFailed as error:
        return cast("Value", failed(tool, error, paths))
    except Refused as error:
        return cast("Value", failed(tool, StepFailed(str(error), kind="denied"), paths))
    return cast("Value", went_well(tool, result, paths))
