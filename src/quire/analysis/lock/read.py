"""Read a lock that people, other machines and other versions may have written.

LK0xx and LK1xx: findings about `quire.lock`, and about documents that differ from it. Ids are never reused.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.analysis.lock.file import Lock, is_signed
from quire.diagnostics import Code, Severity, make
from quire.plan.vocabulary import MOST_LOCK_BYTES

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.source import Source


MOST_BYTES = MOST_LOCK_BYTES
LONGEST = 4_000
"""Characters of one fact."""
MOST_FACTS = 100_000
"""Facts of a whole lock."""
MOST_NAMED = 20
"""Documents whose entries are read alone. For more of them the whole lock is read."""


class LockReading(Struct, frozen=True):
    """A lock and where its facts are; None if something is wrong with it."""

    source: Source
    lock: Lock | None
    diagnostics: tuple[Diagnostic, ...] = ()


def read_lock(source: Source, named: Collection[str] | None = None) -> LockReading:
    """Read the text of a lock. Nothing of one that is wrong counts. With `named`, which are paths of a few documents,
    the lock has their entries only, and the others are not looked into."""
    from quire.analysis.lock.plain_read import excerpt, read_plain

    text = source.text
    if source.size <= MOST_BYTES:
        unsigned = text.partition("\n")[2] if is_signed(text) else text
        if named is not None and len(named) <= MOST_NAMED:
            files = tuple(f"{one}#" for one in named)
            part = excerpt(unsigned, lambda key: key in named or key.startswith(files))
            plain = read_plain(part) if part is not None else None
            if plain is not None:
                return LockReading(source, plain)
        plain = read_plain(unsigned)
        if plain is not None:
            return LockReading(source, plain)
    from quire.analysis.lock.strict_read import read_strictly

    return read_strictly(source)


_error = partial(make, Severity.ERROR)

BAD_LOCK = _error(
    "LK001",
    "bad-lock",
    "The lock is not as `quire lock` writes it.",
    "It was edited by hand, or two branches were merged line by line. Half of a lock is not read: missing entries\n"
    "would count as authority that was never agreed to. Write it again, and review the difference.",
    "documents: {a.yaml: {plan: sha256:9f3c, may: everything}}",
    "documents:\n  a.yaml:\n    plan: sha256:9f3c…",
)
OTHER_VERSION = _error(
    "LK002",
    "lock-version",
    "The lock has a version that this Quire does not read.",
    "A newer Quire has written it, or it is not a lock. Use that Quire, or write the lock again with this one.",
    "quire: 7",
    "quire: 1",
)
TAMPERED = _error(
    "LK003",
    "lock-tampered",
    "The lock is signed, and was changed after that, or its signature is damaged.",
    "A signature vouches for the authority and the bounds as they were. Write the lock again, review the difference,\n"
    "and sign it again.",
    "# rye:signed:…   # and a line below that was edited later",
    "$ quire lock && quire sign --lock",
)
NO_LOCK = _error(
    "LK101",
    "no-lock",
    "The workspace has no lock, or the document is not in it.",
    "The permissions of a document are not reviewed until it is in the lock.",
    "$ quire check --locked   # no quire.lock",
    "$ quire lock && git add quire.lock",
)
STALE = _error(
    "LK102",
    "stale-lock",
    "The document has changed since it was locked, without more authority.",
    "Comments, layout and titles do not count, so this is another prompt, another step or a smaller bound. The lock\n"
    "is written again with the change, so that a review sees both. A stale lock never stops a run.",
    "prompt: Write a long report.   # locked as: Write a report.",
    "$ quire lock",
)
WIDER = _error(
    "LK103",
    "envelope-wider",
    "The document may do something that it could not do when it was locked.",
    "A new tool, host, path or command, another model, a server or a variable. The message has an example of it. If\n"
    "it is meant, write the lock again: the line that is added is the one to review.",
    "- tool: {name: tickets__delete}   # locked: tickets__create",
    "$ quire lock   # after a review",
)
HIGHER = _error(
    "LK104",
    "bound-higher",
    "The document can cost more than when it was locked: calls, questions, tokens, money or time.",
    "Formulas are compared by their coefficients. One that is higher for some sizes and lower for others counts as\n"
    "higher.",
    "max_items: 200   # locked: 20",
    "max_items: 20",
)
GATE_GONE = _error(
    "LK105",
    "gate-gone",
    "A question stood before an effect when the document was locked, and does not any more.",
    "Or it is another question now, or it shows other values, or its default is the yes now: then the effect happens\n"
    "although no person answers.",
    "- tool: {name: tickets__create}   # locked: after step 2, which asks",
    "- tool: {name: ask, args: {prompt: Create it?}}\n- tool: {name: tickets__create}",
)
NEW_FLOW = _error(
    "LK106",
    "new-flow",
    "Text from outside, or private text, reaches a place that it did not reach when the document was locked.",
    "The path is in the message, step by step.",
    "- shell: {command: !expr \"['sh', '-c', page]\"}   # page is from http__get",
    "- shell: {command: [wc, -w], stdin: !expr page}",
)
TOOL_CHANGED = _error(
    "LK107",
    "tool-changed",
    "A tool is not the one that was locked: its schemas or its hints have changed.",
    "A server may give a tool another meaning under the same name. Look at the tool, then lock it again.",
    "tickets/create: sha256:11ab…   # the server has another one now",
    "$ quire lock   # after a look at the tool",
)
DEARER = _error(
    "LK108",
    "price-higher",
    "A model costs more than when the document was locked.",
    "The bounds on money in the lock were made with the old price.",
    "anthropic:claude-sonnet-4-5: 3 15 200000   # 5 25 now",
    "$ quire lock",
)

CODES: tuple[Code, ...] = (
    BAD_LOCK,
    OTHER_VERSION,
    TAMPERED,
    NO_LOCK,
    STALE,
    WIDER,
    HIGHER,
    GATE_GONE,
    NEW_FLOW,
    TOOL_CHANGED,
    DEARER,
)
