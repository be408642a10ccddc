"""Read a lock that people, other machines and other versions may have written."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.analysis.lock.file import Lock, is_signed
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
