"""Values as texts and texts as values: `text`, `json` and `parse`.

A value that shares its parts may be small in memory and huge as text, so every value is measured before it is written.
Messages do not repeat what Python's JSON reader says: that changes from version to version, and a replay must not.
"""

from __future__ import annotations

import json as library
import re
from typing import Any

from quire.expr.arguments import At, charge_text, needs_text, needs_whole
from quire.expr.kinds import FLAT, is_list, is_map
from quire.expr.limits import MAX_ITEMS, MAX_TEXT, Run, measure
from quire.expr.operators import SMALL
from quire.values import InvalidValue, clean, decode
from quire.wording import cut

_WIDEST = 8
_FEW = 32
"""With so many items at most, long numbers are charged after they are written, which is faster."""

_SHORT = 1_000
_TEXTS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*"', re.DOTALL)
_MISSING: Any = object()


def _as_dict(value: object) -> object:
    if is_map(value):
        return dict(value)
    raise TypeError


def _encoder(indent: int | None) -> library.JSONEncoder:
    return library.JSONEncoder(
        ensure_ascii=False, allow_nan=False, check_circular=False, default=_as_dict, indent=indent
    )


_one_line = _encoder(None)


def text(run: Run, at: At, value: Any) -> str:
    """Return a text as it is, any other value as JSON."""
    if isinstance(value, str):
        return value
    if type(value) is int and -SMALL < value < SMALL:
        return str(value)
    return written(value, run, at)


def json(run: Run, at: At, value: Any, indent: Any = None) -> str:
    if indent is None:
        return written(value, run, at)
    return written(value, run, at, needs_whole(indent, at, 1, 1, _WIDEST))


def written(value: Any, run: Run, at: At, indent: int = 0) -> str:
    """Return the JSON of a value. Raises `EvalError` if that would be too long."""
    if type(value) in FLAT:
        items, characters = 1, len(value) if type(value) is str else 0
    else:
        items, characters, _ = measure(value, at.span)
    run.charge(3 * items + (characters >> 4), at.span)
    if items > _FEW or indent:
        charge_text(characters + charge_digits(value, run, at, indent), run, at)
    try:
        found = clean((_encoder(indent) if indent else _one_line).encode(value))
    except (TypeError, ValueError):
        raise at.fails(f"{at.name} is given a number or a map that cannot be stored", 0) from None
    if len(found) > MAX_TEXT:
        raise at.fails(f"the text has more than {MAX_TEXT:,} characters")
    if len(found) > _SHORT + 6 * characters:
        run.charge(len(found) >> 1, at.span)
    return found


def charge_digits(value: object, run: Run, at: At, indent: int = 0) -> int:
    """Charge the long numbers of a value that is already measured, before they are written.

    Returns the number of their digits, and of spaces before the lines of the value if it is indented.
    """
    characters = 0
    level: list[Any] = [value] if type(value) not in FLAT else []
    margin = indent
    while level:
        deeper: list[Any] = []
        for holder in level:
            characters += margin * len(holder)
            for part in holder.values() if is_map(holder) else holder:
                if type(part) is int:
                    if not -SMALL < part < SMALL:
                        # Writing takes longer than the number of digits says.
                        run.charge(part.bit_length() >> 1, at.span)
                        characters += part.bit_length() * 3 // 10
                elif type(part) not in FLAT and (is_list(part) or is_map(part)):
                    deeper.append(part)
        level = deeper
        margin += indent
    return characters


def parse(run: Run, at: At, source: Any, default: Any = _MISSING) -> Any:
    """Return the value of a text that is JSON."""
    if default is not _MISSING and not isinstance(source, str):
        return default
    text = needs_text(source, at, 0)
    if len(text) > MAX_TEXT:
        raise at.fails(f"{at.name} is given a text of more than {MAX_TEXT:,} characters", 0)
    run.charge(len(text) >> 2, at.span)
    # Each comma outside of the texts separates two items: too many are refused before they are built.
    if len(text) > MAX_ITEMS and text.count(",") > MAX_ITEMS and _TEXTS.sub("", text).count(",") > MAX_ITEMS:
        raise at.fails(f"the value has more than {MAX_ITEMS:,} items", 0)
    try:
        value = decode(text)
    except InvalidValue:
        if default is not _MISSING:
            return default
        shown = cut(" ".join(text[:200].split()), 40)
        what = f"what begins with {shown}" if shown else "an empty text"
        help = "parse(text, default) gives the default instead of failing"
        raise at.fails(f"{at.name} needs JSON, and {what} is not JSON", 0, help) from None
    return value
