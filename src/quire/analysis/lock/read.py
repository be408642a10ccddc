"""Read a lock that people, other machines and other versions may have written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from quire.plan.vocabulary import MOST_LOCK_BYTES
from quire.trust.signature_line import claims_signature

if TYPE_CHECKING:
    from quire.analysis.lock.file import Lock
    from quire.diagnostics import Diagnostic
    from quire.source import Source

MOST_BYTES = MOST_LOCK_BYTES
LONGEST = 4_000
"""Characters of one fact."""
MOST_FACTS = 100_000
"""Facts of a whole lock."""


class LockReading(Struct, frozen=True):
    """A lock and where its facts are; None if something is wrong with it."""

    source: Source
    lock: Lock | None
    diagnostics: tuple[Diagnostic, ...] = ()


def read_lock(source: Source) -> LockReading:
    """Read the text of a lock. Nothing of one that is wrong counts."""
    from quire.analysis.lock.plain_read import read_plain

    text = source.text
    if source.size <= MOST_BYTES:
        plain = read_plain(text.partition("\n")[2] if claims_signature(text, "yaml") else text)
        if plain is not None:
            return LockReading(source, plain)
    from quire.analysis.lock.strict_read import read_strictly

    return read_strictly(source)
