"""Words that all messages share: suggestions for misspelled names, cut texts, plurals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import chain, count

LONGEST_SLIP = 200
"""Longer texts are not compared: no name is that long, and comparing takes time."""

LONGEST_QUOTED = 60
"""The longest name in a document that is compared or quoted whole."""

MOST_CHOICES = 200
"""Most known names with which a name is compared while a document is read."""


def nearest(name: str, candidates: Iterable[str], cutoff: float = 0.75) -> str | None:
    """Return the known name that `name` is probably a misspelling of, if one is close enough."""
    if len(name) > LONGEST_SLIP:
        return None
    names = tuple(candidates)
    return _remembered(name, names, cutoff) if len(names) <= MOST_CHOICES else _nearest(name, names, cutoff)


def _nearest(name: str, candidates: tuple[str, ...], cutoff: float) -> str | None:
    import difflib  # Only a wrong document needs it.

    matches = difflib.get_close_matches(name, candidates, n=1, cutoff=cutoff)
    return matches[0] if matches else None


_remembered = lru_cache(maxsize=256)(_nearest)
"""Comparing is slow, and an editor asks the same again after every key."""


def nearest_word(word: str, words: tuple[str, ...]) -> str | None:
    """Return the nearest of the few words of a format itself, if one is close enough."""
    return nearest(word, words) if len(word) <= LONGEST_QUOTED else None


class Suggestions:
    """Suggests names while one document is read, within a budget.

    Comparing is slow, and a hostile document has thousands of long names. When the budget is used up, nothing more is
    suggested.
    """

    def __init__(self, names: int = 50, choices: int = MOST_CHOICES, comparisons: int = 10_000) -> None:
        """`names` is the number of names that are looked up, `choices` the most known names to compare one with."""
        self._names = names
        self._choices = choices
        self._comparisons = comparisons

    @classmethod
    def wide(cls) -> Suggestions:
        """Return one that limits the comparisons alone, for documents with many names of their own."""
        return cls(5_000, 5_000, 5_000)

    @property
    def are_left(self) -> bool:
        return self._names > 0

    def allow(self, choices: int) -> bool:
        """Tell whether a name may still be compared with `choices` known ones, so that others need not be collected."""
        return self.are_left and choices <= min(self._choices, self._comparisons)

    def nearest(self, name: str, candidates: Collection[str]) -> str | None:
        if len(name) > LONGEST_QUOTED or not self.allow(len(candidates)):
            return None
        self._names -= 1
        self._comparisons -= len(candidates)
        return nearest(name, [candidate for candidate in candidates if len(candidate) <= LONGEST_QUOTED])


def did_you_mean(name: str | None, otherwise: str = "", *, lead: str = "", form: str = "{}") -> str:
    """Ask whether a name was meant, or return the other text if there is none.

    `lead` joins the question to a sentence: `"; "`, or `" ("` for one in brackets. `form` is how a name is written.
    """
    if not name:
        return otherwise
    return f"{lead}did you mean {form.format(name)}?{')' if lead == ' (' else ''}"


def cut(text: str, most: int, kept: int | None = None) -> str:
    """Return a text of at most `most` characters as it is, a longer one with an ellipsis after the first ones.

    `kept` is how many of these stay, one less than `most` unless it is given.
    """
    return text if len(text) <= most else f"{text[: most - 1 if kept is None else kept]}…"


def quoted(text: str) -> str:
    """Return a text of a document in double quotes, cut if it is long."""
    return f'"{cut(text, LONGEST_QUOTED, LONGEST_QUOTED - 3)}"'


def cut_line(line: str, most: int) -> str:
    """Return a line of at most `most` characters; a longer one with an ellipsis right behind a word."""
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def cut_off(text: str, most: int) -> str:
    """Return a long text without its end, and with a line that says how long it was."""
    return text if len(text) <= most else f"{text[:most]}\n[cut: {len(text):,} characters in all]"


def first_of(names: Sequence[str], most: int) -> list[str]:
    """Return the first names, with an ellipsis in place of the others."""
    return [*names[:most], "…"] if len(names) > most else [*names]


def listed(names: Sequence[str], most: int) -> str:
    """Return the first names in a row, and the number of the others."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def pluralize(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def counted(count: int, noun: str) -> str:
    return f"{count} {pluralize(noun, count)}"


def free_name(name: str, taken: Collection[str], form: str) -> str:
    """Return a name that is not taken: itself, or with a number from 2 on, as a form such as `{}_{}` writes it."""
    return next(free for free in chain((name,), (form.format(name, at) for at in count(2))) if free not in taken)
