"""Lines above a directive: run it, test it, look at its prompt and its bound, sign it, ask what it may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.answers import Lens
from quire.lsp.bounds import document_lenses
from quire.lsp.desk import uri_of
from quire.lsp.directive.tags import scan
from quire.lsp.document_tests import count_cases
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.views import View


def lenses(view: View) -> list[Lens]:
    from quire.lsp.directive.item_words import signature_words
    from quire.lsp.directive.prompt_words import bound_words

    scanned = scan(view.source.text)
    root = scanned.root
    if root is None or not root.finished:
        return []
    uri = uri_of(view.path)
    head = _title(view)
    cases = count_cases(view)
    sign = f"Sign ({signature_words(view)})"
    found = [*document_lenses(view, head, cases=cases, bound=bound_words(view), sign=sign)]
    found.append(Lens(head, "Prompt", "quire.showPrompt", (uri, "")))
    permissions = scanned.below("metadata", "permissions")
    found.append(Lens(permissions.span if permissions else head, "Can…", "quire.can", (uri,)))
    return [Lens(_first_line(view, one.span), one.title, one.command, one.arguments) for one in found]


def _title(view: View) -> Span:
    """Return the first line below the signature that is not empty."""
    from quire.formats.markdown import signature_line

    text = view.source.text
    start = len(signature_line(text))
    start += len(text[start:]) - len(text[start:].lstrip())
    return Span(start, start)


def _first_line(view: View, span: Span) -> Span:
    return view.source.line_span(view.source.position(span.start).line)
