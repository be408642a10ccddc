"""Guess the meaning of a text that is not an expression, and suggest how to write it.

People and models who know other languages write templates, filters, methods, comprehensions and lambdas of those. Only
texts that could not be parsed come to `meant`. A suggestion is itself an expression; a guess that is not one is
dropped. `slips` finds mistakes in valid expressions: escapes that drop their backslash, and repeated keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.expr.errors import REPEATED_KEY, UNKNOWN_ESCAPE, ExprSyntaxError
from quire.expr.parse import parse
from quire.expr.syntax import Expression, MapOf, walk
from quire.expr.tokenizer import tokens, unknown_escapes
from quire.patterns import late_pattern
from quire.wording import cut

if TYPE_CHECKING:
    from quire.diagnostics import Code
    from quire.source import Span


LONGEST = 300
"""Longer texts get no suggestion."""

_PATH = r"[A-Za-z_][A-Za-z0-9_]{0,60}(?:\.[A-Za-z_][A-Za-z0-9_]{0,60}){0,10}"
_EACH = ("map", "filter", "all", "any", "find")
_KNOWN = (*_EACH, "count", "sum", "join")
_ALIKE = {
    **{name: name for name in _KNOWN},
    **dict.fromkeys(("len", "length", "size"), "count"),
    "where": "filter",
    "some": "any",
    "every": "all",
}
"""Functions of this language and of others, and their names here."""

_REFERENCE = late_pattern(rf"\$?\{{\{{?[ ]?({_PATH})[ ]?\}}?\}}")
_FILTER = late_pattern(rf" *({_PATH}) *\| *([A-Za-z_]\w*)(.*)", re.DOTALL)
_METHOD = late_pattern(rf" *({_PATH})\.([A-Za-z_]\w*) *\((.*)\) *", re.DOTALL)
_FUNCTION = late_pattern(r" *([A-Za-z_]\w*) *\((.*)\) *", re.DOTALL)
_LAMBDA = late_pattern(r"lambda (\w+) *:|\(?(\w+)\)? *=>")
_COMPREHENSION = late_pattern(rf"\[? *([^ ].*?) for (\w+) in ({_PATH})(?: if (.*?))? *\]? *", re.DOTALL)
_PYTHON_CHOICE = late_pattern(r" *([^ ].*?) if (.*?) else (.*)", re.DOTALL)
_THEN = late_pattern(r" *if (.*?) then (.*?) else (.*)", re.DOTALL)
_IF = late_pattern(r" *if *\((.*?)\) *([^)].*?) else (.*)", re.DOTALL)
_QUESTION = late_pattern(r"([^?:]+)\?([^?:]+):([^?:]+)")
_ASSIGNMENT = late_pattern(r" *([A-Za-z_]\w*) *= *([^= ].*)", re.DOTALL)
_KEY = late_pattern(rf"({_PATH})\[ *(['\"])([A-Za-z_]\w*)\2 *\]")
_WORDS = late_pattern(r"[^'\"{}\[\]()|<>=+*/]+")


def meant(text: str, *, dialect: bool = False) -> str:
    """Return a help for a text that is not an expression; empty if nothing is known. `dialect` is as for `parse`."""
    if not text.strip():
        return "an empty text is written ''"
    if len(text) > LONGEST:
        return ""
    for guess in _GUESSES:
        written = guess(text)
        if written and _parses(written, dialect):
            return f"write {written}"
    match = _LAMBDA.search(text)
    return f"a lambda is written {match[1] or match[2]} -> …" if match else _told(text)


def _parses(text: str, dialect: bool) -> bool:
    try:
        parse(text, dialect=dialect)
    except ExprSyntaxError:
        return False
    return True


def _told(text: str) -> str:
    """Return a help in words, for a text that no expression replaces."""
    assigned = _ASSIGNMENT.fullmatch(text)
    if assigned:
        return f"expressions set no variables: write {assigned[2]}, and output: {assigned[1]} beside it; == compares"
    match = _FUNCTION.fullmatch(text)
    if match and match[1] == "if":
        return "a choice is written: condition and value or other"
    if match and match[1] == "reduce":
        return "a fold step goes through a list with an accumulator"
    return ""


def _template(text: str) -> str:
    """`Hello, {ctx.name}!`, with or without quotes around it."""
    text = text.strip()
    inside = text[1:] if text[:2].lower() in ("f'", 'f"') else text
    quoted = len(inside) > 1 and inside[0] in "'\"`" and inside[-1] == inside[0]
    parts = list(_pieces(inside[1:-1] if quoted else text))
    if not any(is_path for is_path, _ in parts) or all(is_path for is_path, _ in parts):
        return ""
    return " + ".join(piece if is_path else _quoted(piece) for is_path, piece in parts)


def _pieces(text: str) -> Iterator[tuple[bool, str]]:
    at = 0
    for match in _REFERENCE.finditer(text):
        if match.start() > at:
            yield False, text[at : match.start()]
        yield True, match[1]
        at = match.end()
    if at < len(text):
        yield False, text[at:]


def _called(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.fullmatch(text)
    return _call(match[2], match[1], match[3]) if match else ""


def _function(text: str) -> str:
    """`len(ctx.rows)`, or a comprehension inside of a call."""
    match = _FUNCTION.fullmatch(text)
    if match is None:
        return ""
    if match[1] == "concat":
        return " + ".join(part.strip() for part in match[2].split(","))
    inside = _comprehension(match[2]) or match[2]
    return f"{_ALIKE[match[1]]}({inside})" if match[1] in _ALIKE else ""


def _call(name: str, source: str, rest: str) -> str:
    own_name = _ALIKE.get(name, name)
    if own_name in _EACH:
        return f"{own_name}({source}, {_lambda(rest)})"
    if own_name == "join":
        separator = re.search(r"'[^']*'|\"[^\"]*\"", rest)
        return f"join({source}, {separator[0] if separator else _quoted(', ')})"
    arguments = rest.strip().removeprefix("(").removesuffix(")").strip() if own_name not in _KNOWN else ""
    return f"{own_name}({source}, {arguments})" if arguments else f"{own_name}({source})"


def _lambda(rest: str) -> str:
    """Return the lambda in the rest of a call; empty if there is none."""
    rest = rest.strip().removeprefix("(").removesuffix(")").removeprefix("{").removesuffix("}").strip()
    if "->" in rest:
        return rest
    match = _LAMBDA.match(rest)
    if match:
        return f"{match[1] or match[2]} -> {rest[match.end() :].strip()}"
    reads = re.search(r"\b(item|it|x|r)\.\w", rest)
    return f"{reads[1]} -> {rest}" if reads else ""


def _comprehension(text: str) -> str:
    match = _COMPREHENSION.fullmatch(text)
    if match is None:
        return ""
    value, name, source, condition = match.groups()
    source = f"filter({source}, {name} -> {condition})" if condition else source
    return source if value == name else f"map({source}, {name} -> {value})"


def _choice(text: str) -> str:
    if match := _THEN.fullmatch(text) or _IF.fullmatch(text):
        return f"{match[1].strip()} and {match[2].strip()} or {match[3].strip()}"
    if match := _PYTHON_CHOICE.fullmatch(text):
        return f"{match[2].strip()} and {match[1]} or {match[3].strip()}"
    match = _QUESTION.fullmatch(text)
    return " ".join((match[1].strip(), "and", match[2].strip(), "or", match[3].strip())) if match else ""


def _words(text: str) -> str:
    """Prose without quotes."""
    words = text.strip()
    return _quoted(cut(words, 60)) if " " in words and _WORDS.fullmatch(words) else ""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


_GUESSES: tuple[Callable[[str], str], ...] = (
    _comprehension,
    _choice,
    partial(_called, _FILTER),  # ctx.rows | sum, as templates write it
    partial(_called, _METHOD),  # ctx.rows.map(…), as Python and JavaScript write it
    _function,
    lambda text: _LAMBDA.sub(r"\1\2 ->", text),  # map(ctx.rows, lambda r: r.n)
    # {acc} + item: names need no braces. Spaces keep two names apart that stand side by side.
    lambda text: " ".join(_REFERENCE.sub(r" \1 ", text).split()),
    _template,
    lambda text: _KEY.sub(r"\1.\3", text),
    _words,
)


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
            last = dict(node.entries)
            for key, value in node.entries:
                if last[key] is not value:
                    message = f"the key {key} is here twice: the last value counts"
                    yield Slip(REPEATED_KEY, message, value.span, "leave this value out, or give it another key")
