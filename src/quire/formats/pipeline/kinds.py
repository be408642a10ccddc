"""The kinds of step, with the keys that each may have, and must have, as the reader and the editor look them up."""

from __future__ import annotations

from quire.formats.pipeline.language import KINDS

KEYS = {kind.name: tuple(key.name for key in kind.keys if not key.dialect) for kind in KINDS if not kind.dialect}
"""Every kind of step of the seed with the keys of its body."""

DIALECT_KINDS = {kind.name: tuple(key.name for key in kind.keys if not key.dialect) for kind in KINDS if kind.dialect}
"""The kinds that the Quire dialect adds."""

DIALECT_KEYS = {
    kind.name: tuple(key.name for key in kind.keys if key.dialect)
    for kind in KINDS
    if any(key.dialect for key in kind.keys)
}
"""The keys that the Quire dialect adds to a kind, beside `when`, which every kind has there."""

NEEDED = {kind.name: tuple(key.name for key in kind.keys if key.needed) for kind in KINDS}

WHY = {
    "on_error": "add on_error: continue, or abort, or retry(2): there is no default",
    "output": "add output: NAME, which names the store for the result",
    "do": "add do: and the one step that is done each time",
    "collect": 'add a step on all the results, such as collect: {transform: {value: "pipe"}}',
    "max": "say how many rounds there are at most: a loop always ends",
    "until": "an expression on acc, the result of the round, that ends the loop when it holds",
}
"""The help for a key that is missing, by the key."""

MEANT = {word: kind.name for kind in KINDS if not kind.dialect for word in kind.meant}
"""Words that people write for a kind."""

MEANT_IN_DIALECT = {word: kind.name for kind in KINDS for word in kind.meant}

MORE_KEYS = {kind: (*DIALECT_KEYS.get(kind, ()), "when") for kind in (*KEYS, *DIALECT_KINDS)}
"""All keys that the Quire dialect adds to a kind."""

ALL_KINDS = {kind: (*keys, *MORE_KEYS[kind]) for kind, keys in (KEYS | DIALECT_KINDS).items()}
"""Every kind of the Quire dialect with all keys that its body may have there."""


def kinds(dialect: bool) -> dict[str, tuple[str, ...]]:
    """Return the kinds that a document may use, with their keys."""
    return ALL_KINDS if dialect else KEYS
