"""`format`: values in the places of a text.

A place is `{}` or `{name}`, where the name may be a path with dots into maps; nothing else is computed in a place.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from quire.expr.arguments import At, charge_text, needs_map, needs_whole
from quire.expr.text_functions import MOST_DECIMALS, charge_digits, decimals
from quire.expr.text_functions import text as text_of
from quire.expr.values import MAX_TEXT, NUMBERS, Run, is_map
from quire.wording import cut, pluralize

_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*+)\}|[{}]")
_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*+(?:\.[A-Za-z_][A-Za-z0-9_-]*+)*")
_SHORT = 1_000
"""Templates up to this length are remembered in their parsed form."""


class WrongTemplate(ValueError):
    """A text that cannot be filled in. The message says why."""


class Template(NamedTuple):
    """A text with places for values."""

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
    return _remembered(text) if len(text) <= _SHORT else _split(text)


def _split(text: str) -> Template:
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
        elif _PATH.fullmatch(name):
            parts.append(tuple(name.split(".")))
        else:
            raise WrongTemplate(f"{cut(mark, 30)} is not a place: write {{}} or {{name}}, and {{{{ for a brace")
    parts.append(text[at:])
    places = [part for part in parts if not isinstance(part, str)]
    if places and not all(places) and any(places):
        raise WrongTemplate("places with and without a name cannot be mixed")
    return Template(tuple(part for part in parts if part != ""), len(places), any(places))


_remembered = lru_cache(256)(_split)


def fill(run: Run, at: At, text: Any, *values: Any) -> str:
    """Fill in the places of a text, or write a number with decimals."""
    if not isinstance(text, str):
        return _number(run, at, text, values)
    charge_text(len(text), run, at)
    try:
        template = template_of(text)
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
            piece = text_of(run, at, _member(values[0], part, at) if part else next(following))
        pieces.append(piece)
        room -= len(piece)
        if room < 0:
            raise at.fails(f"the text has more than {MAX_TEXT:,} characters")
    run.charge((MAX_TEXT - room) >> 4, at.span)
    return "".join(pieces)


def _number(run: Run, at: At, value: Any, values: tuple[Any, ...]) -> str:
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
