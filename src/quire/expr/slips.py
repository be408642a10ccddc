"""Find mistakes in valid expressions: escapes that drop their backslash, and keys that are written twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.expr.errors import REPEATED_KEY, UNKNOWN_ESCAPE
from quire.expr.syntax import Expression, MapOf, walk
from quire.expr.tokens import tokens, unknown_escapes

if TYPE_CHECKING:
    from quire.diagnostics import Code
    from quire.source import Span


class Slip(Struct, frozen=True):
    """One mistake."""

    code: Code
    message: str
    span: Span
    """Position in the text of the expression."""
    help: str


def slips(expression: Expression) -> Iterator[Slip]:
    """Yield the mistakes of an expression."""
    if "\\" in expression.text:
        for token in tokens(expression.text):
            for span, character in unknown_escapes(token):
                message = f"\\{character} is read as {character}: the backslash is dropped"
                yield Slip(UNKNOWN_ESCAPE, message, span, f"write \\\\{character} to keep the backslash")
    for node, _ in walk(expression.root):
        if isinstance(node, MapOf):
            yield from _repeated(node)


def _repeated(node: MapOf) -> Iterator[Slip]:
    last = {key: at for at, (key, _) in enumerate(node.entries)}
    for at, (key, value) in enumerate(node.entries):
        if last[key] != at:
            message = f"the key {key} is here twice: the last value counts"
            yield Slip(REPEATED_KEY, message, value.span, "leave this value out, or give it another key")
