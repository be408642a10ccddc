"""Lines above a directive: run it, test it, look at its prompt and its bound, sign it, ask what it may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.answers import Lens
from quire.lsp.desk import uri_of
from quire.lsp.directive.tags import scan
from quire.lsp.directive.tested_cases import count_cases
from quire.source import Span
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.lsp.views import View


def lenses(view: View) -> list[Lens]:
    from quire.lsp.directive.prompt_words import bound_words
    from quire.lsp.directive.signature_state import signature_words

    scanned = scan(view.source.text)
    root = scanned.root
    if root is None or not root.finished:
        return []
    uri = uri_of(view.path)
    head = _title(view)
    cases = count_cases(view)
    found = [
        Lens(head, "▶ Run", "quire.run", (uri,)),
        Lens(head, f"Test ({cases} {pluralize('case', cases)})" if cases else "Test (none yet)", "quire.test", (uri,)),
        Lens(head, "Prompt", "quire.showPrompt", (uri, "")),
    ]
    if bound := bound_words(view):
        found.append(Lens(head, bound, "quire.showProof", (uri,)))
    state = signature_words(view)
    found.append(Lens(head, f"Sign ({state})", "quire.sign", (uri,)))
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
