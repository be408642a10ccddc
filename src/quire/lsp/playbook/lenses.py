"""Lines above the title and the steps of a playbook: run, test, prompt, bound, sign. None of them costs anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.formats.markdown import signature_line
from quire.formats.playbook.names import family
from quire.lsp.answers import Lens
from quire.lsp.desk import uri_of
from quire.lsp.playbook.bounds import bound_words
from quire.lsp.playbook.document_tests import tests_of
from quire.lsp.playbook.index import tree_of
from quire.lsp.playbook.layout import layout_of
from quire.source import Span
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.lsp.views import View


def lenses(view: View) -> list[Lens]:
    """Return the lenses of a document, those of the title first."""
    tree = tree_of(view)
    if tree is None:
        return []
    uri = uri_of(view.path)
    found = [*_title(view, Span(tree.title_start, tree.title_end), uri)]
    parts = {part.heading.start: part for part in layout_of(view.source).parts}
    for parent in tree.steps:
        for step in family(parent):
            part = parts.get(step.start)
            if part is not None and not step.tool and (step.has_text or step.prompt):
                found.append(Lens(part.heading, "Prompt", "quire.showPrompt", (uri, step.label)))
    return found


def _title(view: View, span: Span, uri: str) -> Iterator[Lens]:
    yield Lens(span, "Run", "quire.run", (uri,))
    count = sum(len(file.cases) for _, file in tests_of(view))
    if count:
        yield Lens(span, f"Test ({count} {pluralize('case', count)})", "quire.test", (uri,))
    bound = bound_words(view)
    if bound:
        yield Lens(span, bound, "quire.showProof", (uri,))
    is_signed = bool(signature_line(view.source.text))
    yield Lens(span, "Sign again" if is_signed else "Sign", "quire.sign", (uri,))
