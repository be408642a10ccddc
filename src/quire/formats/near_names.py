"""Fixes for misspelled names: safe ones only if one letter is wrong and exactly one known name is near.

`did you mean` may guess; a safe fix may not. Names that differ in a digit (`draft1`, `draft2`), or in the plural of the
author's own words (`item`, `items`), are often two different things.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.diagnostics import Fix, replacing

if TYPE_CHECKING:
    from quire.source import Span

_SHORTEST, _LONGEST = 3, 60
_NEAR = 0.75
_SEPARATORS = str.maketrans("-", "_", " ")


def word_fix(written: str, known: Collection[str], span: Span) -> Fix | None:
    """Return the edit that replaces a misspelled word of a format; None if there is no certain one."""
    if not _SHORTEST <= len(written) <= _LONGEST:
        return None
    meant: dict[str, list[str]] = {}
    for name in known:
        if len(name) <= _LONGEST:
            meant.setdefault(_folded(name), []).append(name)
    folded = _folded(written)
    near = [folded] if folded in meant else _near_names(folded, meant)
    if len(near) != 1 or len(meant[near[0]]) != 1 or _digits(folded) != _digits(near[0]):
        return None
    return replacing(span, written, meant[near[0]][0]) if _one_slip(folded, near[0]) else None


def _near_names(name: str, known: Collection[str]) -> list[str]:
    import difflib  # Only a wrong document needs it.

    return difflib.get_close_matches(name, list(known), n=2, cutoff=_NEAR)


def name_fix(written: str, known: Collection[str], span: Span) -> Fix | None:
    """Do the same for names that the author has chosen: a plural is not a misspelling."""
    fix = word_fix(written, known, span)
    is_plural = fix and any({f"{edit.old}s", f"{edit.new}s"} & {edit.old, edit.new} for edit in fix.edits)
    return None if is_plural else fix


def name_guess(written: str, known: Collection[str], span: Span) -> Fix | None:
    """Return the edit of `name_fix`; if that is not certain, but a single known name is near, an unsafe one."""
    if fix := name_fix(written, known, span):
        return fix
    if not _SHORTEST <= len(written) <= _LONGEST:
        return None
    near = _near_names(written, [name for name in known if len(name) <= _LONGEST])
    if len(near) != 1 or _digits(written) != _digits(near[0]):
        return None
    return replace(replacing(span, written, near[0]), safe=False)


def _folded(name: str) -> str:
    return name.lower().translate(_SEPARATORS)


def _digits(name: str) -> str:
    return "".join(sign for sign in name if sign.isdigit())


def _one_slip(written: str, meant: str) -> bool:
    """Tell whether one letter is missing, added or wrong, or two neighbours are swapped."""
    start = 0
    while start < min(len(written), len(meant)) and written[start] == meant[start]:
        start += 1
    left, right = written[start:], meant[start:]
    return (
        left == right
        or left[1:] == right
        or left == right[1:]
        or left[1:] == right[1:]
        or (left[:2] == right[:2][::-1] and left[2:] == right[2:])
    )
