"""The words of the format that more than one room knows."""

from __future__ import annotations

import re
from typing import Final

OPAQUE: Final = ("template", "example", "raw")
PRIMARIES: Final = ("execute", "fetch", "sign")
ITEM_TYPES: Final = ("tool", "directive", "knowledge", "pipeline", "playbook")
EVERYTHING: Final = "rye.*"
TIERS: Final = ("safe", "write", "elevated", "unrestricted")
PARAMETER_TYPES: Final = ("string", "integer", "number", "boolean", "array", "object", "list", "dict")
POSITIONS: Final = ("system", "before", "after")
CONTEXT: Final = (*POSITIONS, "suppress")
OPERATORS: Final = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "contains", "regex", "exists")
EVENTS: Final = (
    "thread_started",
    "after_step",
    "error",
    "limit",
    "directive_return",
    "after_complete",
    "build_system_prompt",
    "thread_continued",
    "context_limit_reached",
    "resolve_extends",
)
UNSENT: Final = EVENTS[7:]
"""Events that other engines have: known, and set off by nothing here."""

CONTROL: Final = "rye/agent/threads/internal/control"
DECISIONS: Final = ("retry", "fail", "abort", "continue", "escalate", "suspend", "skip")
"""What a control action can decide."""

INTEGER_LIMITS: Final = ("turns", "tokens", "spawns", "depth")
LIMITS: Final = (*INTEGER_LIMITS, "duration_seconds", "spend", "spend_currency")
LARGEST_LIMIT: Final = 10**15
CURRENCY: Final = "USD"
LIMIT_ALIASES: Final = {"max_turns": "turns", "max_tokens": "tokens"}

_INTEGER = re.compile(r"[+-]?\d{1,400}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def number(text: str) -> int | float | None:
    """The number that a text is, or None; infinities and the like are none."""
    text = text.strip()
    if len(text) > 400:
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if abs(value) != float("inf") else None


def number_or_text(text: str) -> int | float | str:
    value = number(text)
    return text if value is None else value
