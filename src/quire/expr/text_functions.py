"""Functions of texts.

Letters are those of Unicode 14 on every Python: capitals that later versions added to letters stay as they are, so
that a run gives the same values when another Python replays it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from quire.expr.arguments import At, charge_list, charge_text, needs_text
from quire.expr.kinds import ATOMS, is_list, is_map
from quire.expr.limits import MAX_ITEMS, MAX_TEXT, Run, equal

# Letters whose other case came with Unicode 15 to 17.
_LATER = re.compile(
    "([\u019b\u0264\u1c89\u1c8a\ua7cb-\ua7cf\ua7d2-\ua7d5\ua7da-\ua7dc\U00010d50-\U00010d85\U00016ea0-\U00016ed3]+)"
)
_LONG = 1_000


def split(run: Run, at: At, source: Any, separator: Any = None) -> list[str]:
    text = needs_text(source, at, 0)
    if separator is not None or len(at.places) > 1:
        separator = needs_text(separator, at, 1)
        if not separator:
            raise at.fails("split needs a separator that is not empty", 1)
    run.charge(len(text) >> 4, at.span)
    parts: list[str] = text.split(separator, MAX_ITEMS)
    charge_list(len(parts), run, at)
    return parts


def trim(run: Run, at: At, source: Any) -> str:
    text = needs_text(source, at, 0)
    run.charge(len(text) >> 4, at.span)
    return text.strip()


def lower(run: Run, at: At, source: Any) -> str:
    return _cased(needs_text(source, at, 0), str.lower, run, at)


def upper(run: Run, at: At, source: Any) -> str:
    return _cased(needs_text(source, at, 0), str.upper, run, at)


def _cased(text: str, change: Callable[[str], str], run: Run, at: At) -> str:
    run.charge(len(text) >> 4, at.span)
    if text.isascii() or not _LATER.search(text):
        found = change(text)
    else:
        parts = _LATER.split(text)
        found = "".join(part if number % 2 else change(part) for number, part in enumerate(parts))
    if len(found) > MAX_TEXT:
        raise at.fails(f"the text has more than {MAX_TEXT:,} characters")
    return found


def replace(run: Run, at: At, source: Any, old: Any, new: Any) -> str:
    text, before, after = needs_text(source, at, 0), needs_text(old, at, 1), needs_text(new, at, 2)
    if not before:
        raise at.fails("replace needs a text to replace that is not empty", 1)
    run.charge(len(text) >> 4, at.span)
    charge_text(len(text) + text.count(before) * (len(after) - len(before)), run, at)
    return text.replace(before, after)


def contains(run: Run, at: At, holder: Any, part: Any) -> bool:
    """Tell whether a text has a part, a list an element, or a map a key."""
    if isinstance(holder, str):
        run.charge(len(holder) >> 5, at.span)
        return needs_text(part, at, 1) in holder
    if is_map(holder):
        return needs_text(part, at, 1) in holder
    if not is_list(holder):
        raise at.wants("a text, a list or a map", holder, 0)
    run.charge(len(holder) >> 1, at.span)
    if type(part) in ATOMS or (isinstance(part, str) and len(part) <= _LONG):
        return part in holder
    return any(equal(item, part, run, at.span) for item in holder)


def starts_with(run: Run, at: At, source: Any, beginning: Any) -> bool:
    run.charge(len(needs_text(beginning, at, 1)) >> 6, at.span)
    return needs_text(source, at, 0).startswith(beginning)


def ends_with(run: Run, at: At, source: Any, end: Any) -> bool:
    run.charge(len(needs_text(end, at, 1)) >> 6, at.span)
    return needs_text(source, at, 0).endswith(end)
