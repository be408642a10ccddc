"""The names in a test file that belong to its document: which kind of thing each key and each value means.

All features ask the same table, so a name that is completed is also shown, found and renamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

Role: TypeAlias = Literal[
    "input", "model step", "person step", "step", "tool", "argument", "named", "store", "output", "hook", "limit",
    "config", "case", "document", "file", "rows", "rubric", "grant", "tag", "answer", "input value", "made value",
]  # fmt: skip

ITEM = "-"
_ANY = "*"
_WORLDS: Final = (("cases", ITEM), ("defaults",))

_KEYS: Final[Mapping[tuple[str, ...], Role]] = {
    ("inputs",): "input",
    ("model",): "model step",
    ("tools",): "tool",
    ("answers",): "person step",
    ("answer",): "person step",
    ("limits",): "limit",
    ("config",): "config",
    ("resume", "set"): "input",
    ("fork", "set"): "input",
    ("expect", "steps"): "step",
    ("expect", "prompts"): "model step",
    ("expect", "asked"): "person step",
    ("expect", "calls"): "tool",
    ("expect", "named"): "named",
    ("expect", "stores"): "store",
    ("expect", "outputs"): "output",
    ("expect", "hooks"): "hook",
}
"""The mappings whose keys are names, by their path below a case, an act or the defaults."""

_VALUES: Final[Mapping[tuple[str, ...], Role]] = {
    ("name",): "case",
    ("model", ITEM, "step"): "model step",
    ("fork", "from"): "step",
    ("allow", ITEM): "grant",
    ("tags", ITEM): "tag",
    ("each",): "rows",
    ("cassette",): "file",
    ("live", "judge"): "rubric",
    ("live", "judge", "rubric"): "rubric",
    ("files", _ANY, "file"): "file",
    ("edit", _ANY, "file"): "file",
    ("inputs", _ANY): "input value",
    ("answers", _ANY): "answer",
    ("answers", _ANY, ITEM): "answer",
    ("answers", _ANY, "answer"): "answer",
    ("answer", _ANY): "answer",
    ("answer", _ANY, "answer"): "answer",
    ("expect", "named", _ANY): "made value",
    ("expect", "stores", _ANY): "made value",
    ("expect", "outputs", _ANY): "made value",
}
"""The values that are names, by their path."""


def below_world(path: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return a path as it is below a case, an act or the defaults; None if it is outside of them."""
    for world in _WORLDS:
        if path[: len(world)] == world:
            rest = path[len(world) :]
            return rest[2:] if rest[:2] == ("then", ITEM) else rest
    return None


def key_role(path: tuple[str, ...]) -> Role | None:
    """Return the kind of thing that the keys of the mapping at a path mean; None for keys of the format."""
    below = below_world(path)
    if below is None:
        return None
    if below[-2:] == ("tool_calls", ITEM) or not below:
        return None
    if (below[-1] == "input" and "tool_calls" in below) or (below[-1] == "args" and "when" in below):
        return "argument"
    return _KEYS.get(below)


def value_role(path: tuple[str, ...]) -> Role | None:
    """Return the kind of thing that the value at a path means; None for a plain value."""
    if path == ("document",):
        return "document"
    below = below_world(path)
    if not below:
        return None
    if below[-3:] == ("tool_calls", ITEM, "name"):
        return "tool"
    if below in _VALUES:
        return _VALUES[below]
    return next((role for known, role in _VALUES.items() if _fits(known, below)), None)


def _fits(known: tuple[str, ...], path: tuple[str, ...]) -> bool:
    return len(known) == len(path) and all(one in (_ANY, other) for one, other in zip(known, path, strict=True))
