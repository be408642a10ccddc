"""Find where in a test file an offset stands. The text may be half typed and need not be YAML.

A place is the path of keys to it, `-` for an item of a list: `cases`, `-`, `expect`, `steps`.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from msgspec import Struct

from quire.lsp.yaml_scan import KEY, CursorPlace, Scanner, bare, closing
from quire.source import Span, line_end, line_start

Kind: TypeAlias = Literal["key", "value", "text"]
"""`key`: a key is or could be here; `value`: the value of a key or an item; `text`: in a comment, inside of a text of
several lines, or after a value that is complete."""

_TOP = re.compile(rf".*\n(?={KEY.pattern})", re.DOTALL)
"""Matches all before the last key of the outermost mapping."""
_TOP_LEVEL = re.compile(r"(?<=\n)(?:[ \t]*+\n)*(?:\S|\Z)")
"""Matches in the first column if no indented line follows: no text of several lines continues there."""
_FIRST_ITEM = re.compile(r"[ \t]*+(?:#[^\n]*+)?\n(?:[ \t]*+(?:#[^\n]*+)?\n)*([ ]*)-[ \n]")
_ENDS = re.compile(r"[,{}\[\]\n]|:(?=\s|$)| #")
_REST_OF_KEY = re.compile(r"""(?!\s)["']?[^,{}\[\]:\n"']*+["']?[ \t]*:""")
_MOST_AHEAD = 5_000
"""Characters of braces that are looked at behind the cursor."""


class Place(Struct, frozen=True):
    """A place in a test file."""

    path: tuple[str, ...]
    """For a key the path of the mapping around it, for a value that of the value itself."""
    kind: Kind
    word: Span
    """The key or the value at the cursor, as far as it is typed, without quotes."""
    present: frozenset[str] = frozenset()
    """The other keys of the mapping."""
    in_flow: bool = False
    """True inside of braces or brackets."""
    tag: str = ""
    """`!expr` or `!snapshot` before the value."""


def place_at(text: str, offset: int, *, whole: bool = False) -> Place:
    """Return the place of an offset. With `whole` the word under the cursor counts up to its end."""
    end = offset
    if whole:
        match = _ENDS.search(text, offset)
        end = match.start() if match else len(text)
        while end > offset and text[end - 1] in " \t\"'":
            end -= 1
    if _TOP_LEVEL.match(text, end):
        return Place((), "key", Span(end, end), _keys_of_block(text, end))
    start, key = _start(text, end)
    scanner = Scanner(text[:end], start, key=key)
    place = scanner.place()
    kind = _kind(text, place)
    word = Span(place.start, end)
    if kind == "text":
        return Place(place.path, kind, Span(end, end))
    if kind == "value":
        return Place(place.path, kind, word, in_flow=place.flow, tag=place.tag)
    first = place.start - len(place.quote)
    if not place.flow:
        return Place(place.path, kind, word, _keys_of_block(text, first))
    last = scanner.less_indented().search(text, end, end + _MOST_AHEAD)
    rest = _REST_OF_KEY.match(text, end)
    behind = rest.end() if rest else end
    others = text[:first] + text[behind : closing(text, behind, last.start() if last else end + _MOST_AHEAD)]
    present = frozenset((*place.keys, *Scanner(others.rstrip(), start, key=key).place().keys))
    return Place(place.path, kind, word, present, in_flow=True)


def _start(text: str, end: int) -> tuple[int, str]:
    """Return from where a text is scanned up to `end`, and the key in whose value that is: lists of cases are long, so
    only the case around the place is looked at."""
    top = _TOP.match(text, 0, end)
    start = top.end() if top else 0
    key = KEY.match(text, start, end)
    first = _FIRST_ITEM.match(text, key.end(), end) if key else None
    if key is None or first is None:
        return start, ""
    mark = f"\n{first[1]}-"
    return max(text.rfind(mark + after, first.start(1) - 1, end) for after in (" ", "\n")) + 1, bare(key[1])


def _kind(text: str, place: CursorPlace) -> Kind:
    if place.mode == "comment" or place.later or place.quote in ("|", ">") or "\n" in place.text:
        return "text"
    if place.mode == "key":
        return "key"
    if place.flow or place.tag or place.text.startswith("!"):
        return "value"
    # A word that comes first in its line may become a key.
    line = line_start(text, place.start)
    return "value" if text[line : place.start - len(place.quote)].strip(" \t-") else "key"


def _keys_of_block(text: str, at: int) -> frozenset[str]:
    """Return the keys of the mapping around a key that begins at an offset, without its own line."""
    line, end = line_start(text, at), line_end(text, at)
    column = at - line
    less_indented = rf"\n(?=[ \t]{{0,{column - 1}}}[^\s#])" if column else r"(?!)"
    start = line
    if not text[line:at].strip():
        first = re.compile(f".*{less_indented}", re.DOTALL).match(text, 0, line)
        start = first.end() if first else 0
    last = re.compile(less_indented).search(text, end)
    others = text[start:line] + text[end : last.start() if last else len(text)]
    keys = re.compile(rf"\n[ \t-]{{{column}}}{KEY.pattern}").findall("\n" + others)
    return frozenset(map(bare, keys))
