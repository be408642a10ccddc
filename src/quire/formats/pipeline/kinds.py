"""The kinds of step, with the keys that each may have, and must have."""

from __future__ import annotations

KEYS: dict[str, tuple[str, ...]] = {
    "transform": ("value", "output"),
    "tool": ("name", "args", "schema", "output"),
    "shell": ("command", "schema", "output"),
    "agent": ("prompt", "identity", "capabilities", "schema", "output"),
    "call": ("pipeline", "pass", "output"),
    "match": ("on", "cases", "default", "output"),
    "fold": ("over", "items", "init", "do", "output", "max_items"),
    "for_each": ("over", "items", "max_parallel", "max_items", "on_error", "do", "collect", "output"),
    "parallel": ("on_error", "branches", "collect", "output"),
}
"""Every kind of step of the seed with the keys of its body."""

DIALECT_KINDS: dict[str, tuple[str, ...]] = {
    "steps": ("do", "output"),
    "repeat": ("init", "do", "until", "max", "on_max", "output"),
    "fail": ("message",),
    "stop": ("value",),
}
"""The kinds that the Quire dialect adds."""

_SURVIVING = ("on_error", "default")
DIALECT_KEYS: dict[str, tuple[str, ...]] = {
    "tool": (*_SURVIVING, "timeout"),
    "shell": ("stdin", "env", "cwd", "check", "text", *_SURVIVING, "timeout"),
    "agent": ("model", "turns", "max_tokens", "temperature", *_SURVIVING, "timeout"),
    "call": (*_SURVIVING, "timeout"),
    "match": ("on_error",),
    "for_each": ("default",),
    "parallel": ("default",),
    "steps": _SURVIVING,
}
"""The keys that the Quire dialect adds to a kind, beside `when`, which every kind has there."""

NEEDED: dict[str, tuple[str, ...]] = {
    "transform": ("value",),
    "tool": ("name",),
    "shell": ("command",),
    "agent": ("prompt",),
    "call": ("pipeline",),
    "match": ("on", "cases"),
    "fold": ("init", "do", "output"),
    "for_each": ("on_error", "do", "collect"),
    "parallel": ("branches", "collect"),
    "steps": ("do",),
    "repeat": ("do", "until", "max"),
    "fail": ("message",),
    "stop": (),
}

WHY = {
    "on_error": "add on_error: continue, or abort, or retry(2): there is no default",
    "output": "add output: NAME, which names the store for the result",
    "do": "add do: and the one step that is done each time",
    "collect": 'add a step on all the results, such as collect: {transform: {value: "pipe"}}',
    "max": "say how many rounds there are at most: a loop always ends",
    "until": "an expression on acc, the result of the round, that ends the loop when it holds",
}
"""The help for a key that is missing, by the key."""

MEANT = {
    **dict.fromkeys(("if", "switch", "case", "branch", "when"), "match"),
    **dict.fromkeys(("loop", "foreach", "each", "map", "for"), "for_each"),
    **dict.fromkeys(("reduce", "while"), "fold"),
    **dict.fromkeys(("set", "assign", "expr", "let"), "transform"),
    **dict.fromkeys(("run", "bash", "sh", "exec", "command"), "shell"),
    **dict.fromkeys(("llm", "prompt", "ai", "model", "think"), "agent"),
    **dict.fromkeys(("pipeline", "include", "use"), "call"),
    **dict.fromkeys(("action", "function", "invoke"), "tool"),
}
"""Words that people write for a kind."""

MEANT_IN_DIALECT = {
    **MEANT,
    **dict.fromkeys(("loop", "while", "until", "retry"), "repeat"),
    **dict.fromkeys(("block", "group", "do", "sequence"), "steps"),
    **dict.fromkeys(("error", "raise", "throw", "abort"), "fail"),
    **dict.fromkeys(("return", "end", "exit", "finish", "done"), "stop"),
}


MORE_KEYS = {kind: (*DIALECT_KEYS.get(kind, ()), "when") for kind in (*KEYS, *DIALECT_KINDS)}
"""All keys that the Quire dialect adds to a kind."""

ALL_KINDS = {kind: (*keys, *MORE_KEYS[kind]) for kind, keys in (KEYS | DIALECT_KINDS).items()}
"""Every kind of the Quire dialect with all keys that its body may have there."""


def kinds(dialect: bool) -> dict[str, tuple[str, ...]]:
    """Return the kinds that a document may use, with their keys."""
    return ALL_KINDS if dialect else KEYS
