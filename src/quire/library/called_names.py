"""The names of the documents that the steps of a plan call."""

from __future__ import annotations

from collections.abc import Iterator

from quire.plan.built_in_tools import ALIASES
from quire.plan.nodes import Plan, UseTool
from quire.plan.uses import OWN, OWN_TOOLS

_BUILT_IN = {*ALIASES, *ALIASES.values(), *OWN_TOOLS}


def is_built_in(name: str) -> bool:
    """Tell whether `@tool(quire, NAME)` is a tool of Quire's own, whatever documents exist."""
    return name in _BUILT_IN


def called(plan: Plan) -> Iterator[str]:
    for _, step in plan.steps():
        yield from (call.document for call in step.calls())
        match step.work:
            case UseTool(connection=place, tool=tool) if place == OWN and not is_built_in(tool):
                yield tool
