"""Lines above a pipeline and its steps: Run, Test, the bound, Sign, and the prompt of each agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.formats.pipeline.syntax import AgentBody
from quire.lsp.answers import Lens
from quire.lsp.bounds import bound_words, document_lenses
from quire.lsp.desk import uri_of
from quire.lsp.document_tests import count_cases
from quire.lsp.pipeline.tree import labelled, tree_of

if TYPE_CHECKING:
    from quire.lsp.views import View

LARGE = 60_000
"""Characters of a document above which its bound is not computed for a lens."""


def lenses(view: View) -> list[Lens]:
    tree, uri = tree_of(view), uri_of(view.path)
    found: list[Lens] = []
    for number, pipeline in enumerate(tree.file.pipelines):
        if number == 0:
            bound = bound_words(view) if tree.whole and len(view.source.text) <= LARGE else ""
            found += document_lenses(view, pipeline.span, cases=count_cases(view), bound=bound)
        if len(tree.file.pipelines) > 1:
            continue  # a prompt is shown of a document that can run by itself
        for label, step in labelled(pipeline):
            if isinstance(step.body, AgentBody):
                found.append(Lens(step.span, "Prompt", "quire.showPrompt", (uri, label)))
    return found
