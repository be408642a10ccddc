"""Functions of texts and numbers, and values as texts and texts as values: `text`, `json` and `parse`.

Another Python that replays a run computes the same values. So letters are those of Unicode 14: capitals that later
versions added to letters stay as they are; and messages do not repeat what Python's JSON reader says. A value that
shares its parts may be small in memory and huge as text: every value is measured before it is written.

Rounding looks at the number as it is written in decimal digits, and halves go away from zero: `round(2.675, 2)` is
2.68, although the nearest binary number is a little smaller.
"""

from __future__ import annotations

import json as library
import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from quire.expr.function_arguments import At, charge_list, charge_text, needs_map, needs_number, needs_text, needs_whole
from quire.expr.operators import SMALL, storable
from quire.expr.values import (
    ATOMS,
    FLAT,
    MAX_DIGITS,
    MAX_ITEMS,
    MAX_TEXT,
    NUMBERS,
    Run,
    equal,
    is_list,
    is_map,
    measure,
)
from quire.values import InvalidValue, clean, decode
from quire.wording import cut, pluralize

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
        changed = change(text)
    else:
        parts = _LATER.split(text)
        changed = "".join(part if number % 2 else change(part) for number, part in enumerate(parts))
    if len(changed) > MAX_TEXT:
        raise at.fails(f"the text has more than {MAX_TEXT:,} characters")
    return changed


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


_WIDEST = 8
_FEW = 32
"""Up to this number of items, long numbers are charged after they are written, which is faster."""

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
    return written(value, run, at, 0 if indent is None else needs_whole(indent, at, 1, 1, _WIDEST))


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
        text = clean((_encoder(indent) if indent else _one_line).encode(value))
    except (TypeError, ValueError):
        raise at.fails(f"{at.name} is given a number or a map that cannot be stored", 0) from None
    if len(text) > MAX_TEXT:
        raise at.fails(f"the text has more than {MAX_TEXT:,} characters")
    if len(text) > _SHORT + 6 * characters:
        run.charge(len(text) >> 1, at.span)
    return text


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


MOST_DECIMALS = 15

# Enough for every number that can be stored, with all of its decimals.
_EXACT = Context(prec=MAX_DIGITS + 2 * MOST_DECIMALS, rounding=ROUND_HALF_UP, Emin=-9_999, Emax=9_999)
_UNITS = {digits: Decimal(1).scaleb(-digits) for digits in range(-MOST_DECIMALS, MOST_DECIMALS + 1)}
_NUMBER = re.compile(r"[+-]?[0-9]++(\.[0-9]++)?([eE][+-]?[0-9]++)?")


def number(run: Run, at: At, value: Any, default: Any = _MISSING) -> Any:
    """Return the number that a text holds; a number as it is."""
    if type(value) in NUMBERS:
        return value
    if default is not _MISSING and not isinstance(value, str):
        return default
    text = needs_text(value, at, 0)
    run.charge(len(text) >> 4, at.span)
    text = text.strip()
    match = _NUMBER.fullmatch(text)
    if match is None:
        problem = f'"{cut(text, 40)}" is not one' if text else "the text is empty"
    elif len(text) > MAX_DIGITS:
        problem = f"this one has more than {MAX_DIGITS:,} digits"
    elif match[1] is None and match[2] is None:
        run.charge(len(text) >> 2, at.span)
        return int(text)
    elif math.isfinite(value := float(text)):
        return value
    else:
        problem = f"{cut(text, 40)} is too large"
    if default is not _MISSING:
        return default
    help = "number(text, default) gives the default instead of failing"
    raise at.fails(f"number needs a number in decimal digits: {problem}", 0, help)


def absolute(run: Run, at: At, value: Any) -> int | float:
    return abs(needs_number(value, at, 0))


def floor(run: Run, at: At, value: Any) -> int:
    return math.floor(needs_number(value, at, 0))


def ceil(run: Run, at: At, value: Any) -> int:
    return math.ceil(needs_number(value, at, 0))


def nearest(run: Run, at: At, value: Any, decimals: Any = 0) -> int | float:
    """Return the nearest number with `decimals` decimals; a whole number for 0."""
    number = needs_number(value, at, 0)
    digits = needs_whole(decimals, at, 1, -MOST_DECIMALS, MOST_DECIMALS) if decimals != 0 else 0
    if isinstance(number, int):
        if digits >= 0:
            return number
        unit = 10**-digits
        rounded = (abs(number) + unit // 2) // unit * unit
        return storable(rounded if number > 0 else -rounded, run, at.span)
    if digits == 0:
        # The difference between a number and its whole part is exact.
        below = math.floor(abs(number))
        above = below + (abs(number) - below >= 0.5)
        return above if number > 0 else -above
    quantized = _quantized(number, digits)
    return storable(float(quantized), run, at.span) + 0.0 if digits > 0 else int(quantized)


def decimals(value: int | float, digits: int) -> str:
    """Return a number with `digits` decimals as text. Zero has no sign."""
    if isinstance(value, int):
        return f"{value}.{'0' * digits}" if digits else str(value)
    rounded = _quantized(value, digits)
    return format(abs(rounded) if rounded == 0 else rounded, "f")


def _quantized(value: float, digits: int) -> Decimal:
    return _EXACT.quantize(Decimal(repr(value)), _UNITS[digits])


_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*+)\}|[{}]")
_PLACE_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*+(?:\.[A-Za-z_][A-Za-z0-9_-]*+)*")
_REMEMBERED = 1_000
"""Templates up to this length are remembered in their parsed form."""


class WrongTemplate(ValueError):
    """A text that cannot be filled in. The message says why."""


class Template(NamedTuple):
    """A text with places for values.

    A place is `{}` or `{name}`, where the name may be a path with dots into maps; nothing else is computed in a place.
    """

    parts: tuple[str | tuple[str, ...], ...]
    """Texts, and places as the keys of a path. A place without a name has none."""
    places: int
    named: bool

    def mismatch(self, values: int) -> str:
        """Say how the places differ from the number of values; empty if they fit."""
        if self.named:
            return "" if values == 1 else f"a text with {{names}} takes one map, not {values} values"
        if self.places == values:
            return ""
        places = f"{self.places} {pluralize('place', self.places)}"
        return f"the text has {places} for {values} {pluralize('value', values)}"


def template_of(text: str) -> Template:
    """Split a text into its parts. Raises `WrongTemplate`."""
    return _known_template(text) if len(text) <= _REMEMBERED else _split_template(text)


def _split_template(text: str) -> Template:
    parts: list[str | tuple[str, ...]] = []
    at = 0
    for match in _PLACE.finditer(text):
        parts.append(text[at : match.start()])
        at = match.end()
        mark, name = match[0], match[1]
        if name is None:
            if len(mark) == 1:
                raise WrongTemplate(f"a {mark} stands alone: to write one, double it")
            parts.append(mark[0])
        elif not name:
            parts.append(())
        elif _PLACE_PATH.fullmatch(name):
            parts.append(tuple(name.split(".")))
        else:
            raise WrongTemplate(f"{cut(mark, 30)} is not a place: write {{}} or {{name}}, and {{{{ for a brace")
    parts.append(text[at:])
    places = [part for part in parts if not isinstance(part, str)]
    if places and not all(places) and any(places):
        raise WrongTemplate("places with and without a name cannot be mixed")
    return Template(tuple(part for part in parts if part != ""), len(places), any(places))


_known_template = lru_cache(256)(_split_template)


def fill(run: Run, at: At, source: Any, *values: Any) -> str:
    """`format`: fill in the places of a text, or write a number with decimals."""
    if not isinstance(source, str):
        return _with_decimals(run, at, source, values)
    charge_text(len(source), run, at)
    try:
        template = template_of(source)
    except WrongTemplate as error:
        raise at.fails(str(error), 0) from None
    if problem := template.mismatch(len(values)):
        raise at.fails(problem, 0)
    run.charge(2 * len(template.parts), at.span)
    following = iter(values)
    pieces: list[str] = []
    room = MAX_TEXT
    for part in template.parts:
        if isinstance(part, str):
            piece = part
        else:
            piece = text(run, at, _member(values[0], part, at) if part else next(following))
        pieces.append(piece)
        room -= len(piece)
        if room < 0:
            raise at.fails(f"the text has more than {MAX_TEXT:,} characters")
    run.charge((MAX_TEXT - room) >> 4, at.span)
    return "".join(pieces)


def _with_decimals(run: Run, at: At, value: Any, values: tuple[Any, ...]) -> str:
    if type(value) not in NUMBERS:
        raise at.wants("a text or a number", value, 0)
    if len(values) != 1:
        raise at.fails("format takes a number and how many decimals it is to have")
    digits = needs_whole(values[0], at, 1, 0, MOST_DECIMALS)
    if isinstance(value, int):
        charge_digits([value], run, at)
    return decimals(value, digits)


def _member(values: object, keys: tuple[str, ...], at: At) -> Any:
    value: Any = needs_map(values, at, 1)
    for key in keys:
        if not is_map(value) or key not in value:
            raise at.fails(f"there is no {'.'.join(keys)} for the place {{{'.'.join(keys)}}}", 1)
        value = value[key]
    return value
