"""Lines above the title and the steps of a playbook: run, test, prompt, bound, sign. None of them costs anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.formats.markdown import signature_line
from quire.formats.playbook.names import family
from quire.lsp.answers import Lens
from quire.lsp.bounds import bound_words, document_lenses
from quire.lsp.desk import uri_of
from quire.lsp.document_tests import count_cases
from quire.lsp.playbook.index import tree_of
from quire.lsp.playbook.layout import layout_of
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.views import View


def lenses(view: View) -> list[Lens]:
    """Return the lenses of a document, those of the title first."""
    tree = tree_of(view)
    if tree is None:
        return []
    uri = uri_of(view.path)
    sign = "Sign again" if signature_line(view.source.text) else "Sign"
    title = Span(tree.title_start, tree.title_end)
    found = [*document_lenses(view, title, cases=count_cases(view), bound=bound_words(view), sign=sign)]
    parts = {part.heading.start: part for part in layout_of(view).parts}
    for parent in tree.steps:
        for step in family(parent):
            part = parts.get(step.start)
            if part is not None and not step.tool and (step.has_text or step.prompt):
                found.append(Lens(part.heading, "Prompt", "quire.showPrompt", (uri, step.label)))
    return found
