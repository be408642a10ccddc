"""Words that formats, engine and displays share: events, operators, decisions and limits of directives, how much models
think, and the names of steps of callees: the labels on the way to the step, `3 › 1`, which may be typed as `3>1`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from quire.errors import CannotStart
from quire.patterns import late_pattern

OPAQUE: Final = ("template", "example", "raw")
PRIMARIES: Final = ("execute", "fetch", "sign")
ITEM_TYPES: Final = ("tool", "directive", "knowledge", "pipeline", "playbook")
EVERYTHING: Final = "rye.*"
TIERS: Final = ("safe", "write", "elevated", "unrestricted")
PARAMETER_TYPES: Final = ("string", "integer", "number", "boolean", "array", "object", "list", "dict")
POSITIONS: Final = ("system", "before", "after")
CONTEXT: Final = (*POSITIONS, "suppress")
REASONING: Final = ("none", "minimal", "low", "medium", "high")
"""How much a model thinks before it answers; words that services know."""
OPERATORS: Final = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "contains", "regex", "exists")


class HookEvent(Struct, frozen=True):
    """An event that hooks can name."""

    sent: bool = True
    """False for events of other engines: they are known, but never sent here."""

    adds_context: bool = False
    """True if the knowledge that its hooks name goes into the prompt, before the first turn."""
    judges: bool = False
    """True if its hooks judge the outputs of a thread: one that fails to run refuses them."""


HOOK_EVENTS: Final[Mapping[str, HookEvent]] = {
    "thread_started": HookEvent(adds_context=True),
    "after_step": HookEvent(),
    "error": HookEvent(),
    "limit": HookEvent(),
    "directive_return": HookEvent(judges=True),
    "after_complete": HookEvent(),
    "build_system_prompt": HookEvent(adds_context=True),
    "thread_continued": HookEvent(sent=False),
    "context_limit_reached": HookEvent(sent=False),
    "resolve_extends": HookEvent(sent=False),
}
SENT_EVENTS: Final = tuple(name for name, event in HOOK_EVENTS.items() if event.sent)


def adds_context(event: str) -> bool:
    return event in HOOK_EVENTS and HOOK_EVENTS[event].adds_context


def judges(event: str) -> bool:
    return event in HOOK_EVENTS and HOOK_EVENTS[event].judges


THREAD_RULES = 4
"""The version of the rules that threads follow.

Under version 3 a thread with the tool that starts threads could start every directive, also if it named some. The same
knowledge could be sent at several positions. A registered pipeline that a thread launched and waited for was part of
the thread's run.

Under version 2 all calls of `directive_return` in one turn had one path, so hooks acted at the first of them only.

Under version 1 (0.1.0) an empty `<permissions>` block inherited, hooks at `directive_return` accepted what they could
not judge, and texts were filled in differently. A bundle keeps the version it was made under, so a recorded thread
replays as it ran.
"""

CONTROL: Final = "rye/agent/threads/internal/control"
"""The action with which a hook decides how the thread continues."""

Decision: TypeAlias = "Literal['retry', 'fail', 'abort', 'continue', 'escalate', 'suspend', 'skip']"
DECISIONS: Final[tuple[Decision, ...]] = ("retry", "fail", "abort", "continue", "escalate", "suspend", "skip")
"""The decisions of a control action."""

INTEGER_LIMITS: Final = ("turns", "tokens", "spawns", "depth")
LIMITS: Final = (*INTEGER_LIMITS, "duration_seconds", "spend", "spend_currency")
HOOK_COST: Final = ("turns", "tokens", "input_tokens", "output_tokens", "spend", "elapsed_seconds", "spawns")
HOOK_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "cost": HOOK_COST,
    "limits": LIMITS,
    "error": ("type", "message", "resource"),
    **dict.fromkeys(("event", "directive", "thread_id", "turn", "inputs", "outputs", "status", "success"), ()),
    **dict.fromkeys(("limit", "limit_code", "current_value", "current_max", "name", "category", "model", "chain"), ()),
}
"""Values that conditions of hooks read at some event, with the names below them; none where any name may occur."""
LARGEST_LIMIT: Final = 10**15
MAX_LEVELS: Final = 200
"""Maximum number of parts in a path: a call adds two parts, an iteration of a fold adds one."""
MAX_ITEMS: Final = 10_000
"""Maximum number of items of a `for_each` that does not set `max_items`."""
CURRENCY: Final = "USD"
LIMIT_ALIASES: Final = {"max_turns": "turns", "max_tokens": "tokens"}
CALLS: Final = "calls"
"""The limit of model calls, which is one of the whole run, in any format; the other limits are those of a thread."""

EXTENSIONS = {
    "markdown": ".md",
    "json": ".json",
    "mermaid": ".mmd",
    "chartjs": ".json",
    "html_css": ".html",
    "javascript": ".js",
    "typescript": ".ts",
    "text": ".txt",
}
"""The ending of a file with an artifact, by the type of the artifact."""

_INTEGER = late_pattern(r"[+-]?\d{1,400}", re.ASCII)
_NUMBER = late_pattern(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def number(text: str) -> int | float | None:
    """Return the number that a text spells, or None. Infinities are not numbers."""
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
    """Return the number that a text spells, or the text itself."""
    value = number(text)
    return text if value is None else value


LOCK_FILE = "quire.lock"
"""The file that says what the documents of a workspace may do; a signature of it vouches for all of that."""

MOST_LOCK_BYTES = 8_000_000

JOINT = " › "
_TYPED = late_pattern(r"\s*[›>]\s*")


def typed_way(text: str) -> str:
    """Normalize a way typed by the user to the form in which ways are shown.

    A plain label or path is returned unchanged.
    """
    return _TYPED.sub(JOINT, text.strip()) if ">" in text or "›" in text else text


def last_label(way: str) -> str:
    """Return the label of the step itself, within its own document."""
    return way.rpartition(JOINT)[2]


def first_label(way: str) -> str:
    """Return the label of the first step of the way, in the run's own document."""
    return way.partition(JOINT)[0]


def short_way(way: str) -> str:
    """Shorten a way for a message: a long one keeps only its first and last steps."""
    labels = way.split(JOINT)
    return way if len(labels) <= 8 else JOINT.join([*labels[:3], "…", *labels[-3:]])


def shell_way(way: str) -> str:
    """Return the way as the user types it in a shell, with quotes if needed."""
    return "'" + way.replace(JOINT, ">") + "'" if JOINT in way or " " in way else way


def is_named(way: str, names: Collection[str]) -> bool:
    """Tell whether one of the names refers to the step, by the way to it or by its label in its own document."""
    return way in names or last_label(way) in names


def path_named(named: str, labels: Mapping[str, str]) -> str | None:
    """Return the path of the step with that label, or that path itself; None if there is no such step. `labels` are by
    path. Raises `CannotStart` if several steps have the label."""
    named = named.strip()
    paths = [path for path, label in labels.items() if label.lower() == named.lower()]
    if len(paths) > 1:
        raise CannotStart(f"several steps are called {named}: say which by its place ({', '.join(paths)})")
    return paths[0] if paths else named if named in labels else None
