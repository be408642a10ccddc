"""`did you mean` with a limit: likeness is dear to compute, and a hostile document has thousands of long names."""

from __future__ import annotations

from collections.abc import Collection

from quire.diagnostics import nearest

_LONGEST = 60
_COMPARISONS = 5_000


class Suggestions:
    """One reading's worth of them; when that is used up, nothing is suggested any more."""

    def __init__(self) -> None:
        self._left = _COMPARISONS

    def nearest(self, name: str, known: Collection[str]) -> str | None:
        self._left -= len(known)
        if self._left < 0 or len(name) > _LONGEST:
            return None
        return nearest(name, [one for one in known if len(one) <= _LONGEST])


def nearest_word(word: str, known: tuple[str, ...]) -> str | None:
    """For the few words of the format itself."""
    return nearest(word, known) if len(word) <= _LONGEST else None
