"""Find the references in a prompt: `{path}` is a reference, `{{path}}` its escaped form, and other braces are text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from quire.expr import RESERVED
from quire.plan.nodes import Reference, Template
from quire.source import Span

_PATH = r"[A-Za-z_][A-Za-z0-9_]*+(?:\.[A-Za-z_][A-Za-z0-9_]*+)*"
_REFERENCE = re.compile(rf"\{{\{{({_PATH})\}}\}}|\{{({_PATH})\}}")
_ATTEMPT = re.compile(r"\{[^{}\n]{0,200}\}")
_FOREIGN = re.compile(
    rf"\{{\{{({_PATH})\}}\}}|\$\{{({_PATH})\}}|\{{input:([A-Za-z_][A-Za-z0-9_]*+)\}}"
    rf"|\{{(?!ctx\.)(?i:ctx|context|inputs?|stores?|steps|state|vars|outputs?)\.({_PATH})\}}"
)
_ROOT = re.compile(r"\b(?:ctx\.[A-Za-z_]|(?:pipe|item|acc)\b)")


class PromptReference(Struct, frozen=True):
    path: tuple[str, ...]
    span: Span


def references(text: str) -> Iterator[PromptReference]:
    """Yield everything that may be a reference.

    Whether a bare root is the name of a store is known only when the step runs.
    """
    for match in _REFERENCE.finditer(text):
        if match[2]:
            yield PromptReference(tuple(match[2].split(".")), Span(*match.span()))


def attempts(text: str) -> Iterator[Span]:
    """Yield braces with an expression, or with a path and spaces around it: they look like references but are text."""
    # The inner braces of an escape begin one character later.
    taken = {match.start() + shift for match in _REFERENCE.finditer(text) for shift in (0, 1)}
    for match in _ATTEMPT.finditer(text):
        if match.start() not in taken and '"' not in match[0] and _ROOT.search(match[0]):
            yield Span(*match.span())


def foreign(text: str) -> Iterator[tuple[Span, str]]:
    """Yield references in the syntax of other formats, each with the path that is meant.

    Such references are `{{ctx.x}}`, `${ctx.x}`, `{input:x}` and `{inputs.x}`.
    """
    for match in _FOREIGN.finditer(text):
        doubled, dollar, *named = match.groups()
        yield Span(*match.span()), doubled or dollar or f"ctx.{named[0] or named[1]}"


def template(text: str) -> Template:
    """Parse a prompt into a template.

    Whether a bare root is the name of a store, and so whether double braces around it are an escape, is known only when
    the step runs. So such an escape becomes a reference whose default is the text that it would otherwise stand for.
    """
    parts: list[str | Reference] = []
    plain: list[str] = []
    at = 0
    for match in _REFERENCE.finditer(text):
        plain.append(text[at : match.start()])
        at = match.end()
        escaped, path = match[1], match[2]
        if path:
            _flush(plain, parts)
            parts.append(Reference(path, None, match[0]))
        elif escaped.partition(".")[0] in RESERVED:
            plain.append(f"{{{escaped}}}")
        else:
            _flush(plain, parts)
            parts.append(Reference(escaped, f"{{{escaped}}}", match[0]))
    plain.append(text[at:])
    _flush(plain, parts)
    return Template(tuple(parts))


def _flush(plain: list[str], parts: list[str | Reference]) -> None:
    text = "".join(plain)
    if text:
        parts.append(text)
    plain.clear()
