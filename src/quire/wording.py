"""Suggest which known name was probably meant by a misspelled one."""

from __future__ import annotations

from collections.abc import Collection, Iterable

LONGEST_SLIP = 200
"""Longer texts are not compared: no name is that long, and comparing takes time."""

_LONGEST_NAME = 60
_COMPARISONS = 5_000


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that `name` is probably a misspelling of, if one is close enough."""
    import difflib  # Only a wrong document needs it.

    if len(name) > LONGEST_SLIP:
        return None
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.75)
    return matches[0] if matches else None


def nearest_word(word: str, known: tuple[str, ...]) -> str | None:
    """Return the nearest of the few words of a format itself, if one is close enough."""
    return nearest(word, known) if len(word) <= _LONGEST_NAME else None


class Suggestions:
    """Suggests names while one document is read, within a budget of comparisons.

    Comparing is slow, and a hostile document has thousands of long names. When the budget is used up, nothing more is
    suggested.
    """

    def __init__(self) -> None:
        self._left = _COMPARISONS

    def nearest(self, name: str, known: Collection[str]) -> str | None:
        self._left -= len(known)
        if self._left < 0 or len(name) > _LONGEST_NAME:
            return None
        return nearest(name, [candidate for candidate in known if len(candidate) <= _LONGEST_NAME])
