"""Split the text of an expression into tokens with positions.

One constant pattern matches all tokens. Each of its repetitions can match in one way only, so an unterminated text
costs one pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from quire.expr.errors import ExprSyntaxError
from quire.source import Span

TokenKind = Literal["number", "text", "name", "mark", "end"]

# `\s` and not only ASCII: a no-break space pasted from a web page counts as space.
_TOKEN = re.compile(
    r"""
      \s++
    | (?P<number> [0-9]++ (?: \.[0-9]++ )? )
    | (?P<name>   [A-Za-z_][A-Za-z0-9_]*+ )
    | (?P<text>   ' [^'\\]*+ (?: \\. [^'\\]*+ )* ' | " [^"\\]*+ (?: \\. [^"\\]*+ )* " )
    | (?P<mark>   -> | == | != | <= | >= | [-+*/<>()\[\]{},:.] )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t"}
_INSTEAD = {
    "=": "two values are compared with ==",
    "&": "write `and`",
    "|": "write `or`; a function is called: count(x)",
    "!": "write `not`",
    "?": "write `condition and value or other`",
    "%": "a remainder operator does not exist",
    "#": "expressions have no comments",
    "`": "texts stand in single or double quotes",
    "$": "names are written without $",
    ";": "an expression is one value; statements do not exist",
}


class Token(NamedTuple):
    """One token."""

    kind: TokenKind
    text: str
    """The text as written, quotes included, so that a quoted `'and'` is never taken for the keyword."""
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


def tokens(text: str) -> list[Token]:
    """Return all tokens, with an `end` token as the last one. Raises `ExprSyntaxError`."""
    parts: list[Token] = []
    at, length, match_at = 0, len(text), _TOKEN.match
    while at < length:
        match = match_at(text, at)
        if match is None:
            raise _unexpected(text, at)
        kind, end = match.lastgroup, match.end()
        if kind is not None:
            parts.append(Token(kind, match[0], at, end))  # type: ignore[arg-type]
        at = end
    last = parts[-1].end if parts else 0
    parts.append(Token("end", "", last, last + 1))
    return parts


def unquote(token: Token) -> str:
    """Return the value of a text token.

    `\\n` and `\\t` become line end and tab; any other escaped character stands for itself.
    """
    inside = token.text[1:-1]
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), inside) if "\\" in inside else inside


def unknown_escapes(token: Token) -> Iterator[tuple[Span, str]]:
    """Yield the backslashes of a text token that `unquote` drops, each with the character after it."""
    if token.kind == "text":
        for match in _ESCAPE.finditer(token.text, 1, len(token.text) - 1):
            if match[1] not in _ESCAPES and match[1] not in "\\'\"":
                yield Span(token.start + match.start(), token.start + match.end()), match[1]


def _unexpected(text: str, at: int) -> ExprSyntaxError:
    character = text[at]
    if character in "'\"":
        return ExprSyntaxError(f"the text that begins with {character} has no end", Span(at, at + 1))
    message = f"unknown {'operator' if character in '|&=%^~!?' else 'character'} {character!r}"
    help = _INSTEAD.get(character, "")
    if not help and character.isalpha():
        help = "names are ASCII letters, digits and _; read other keys with get(map, 'key')"
    return ExprSyntaxError(message, Span(at, at + 1), help)
