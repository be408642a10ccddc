"""The messages that a model would get at a step of a document, with the texts that the editor has."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from quire.errors import CannotStart

if TYPE_CHECKING:
    from quire.engine.interpreter.preview import Preview
    from quire.lsp.views import View


def preview_of(view: View, step: str) -> Preview:
    """Return what a model would get: at a step of a playbook or a pipeline, or first of all in a directive. Values that
    only a run can know have a stand-in. Raises `QuireError` for a document or a step that has no prompt."""
    from quire.runs.prompts import prompt_of_directive, prompt_of_document

    document, settings, library = view.document, view.folder.settings, view.folder.library
    if document is None or document.plan is None:
        raise CannotStart("the document has errors, so it has no prompts yet")
    if settings is None or library is None:
        raise CannotStart("the settings of the workspace cannot be read")
    if document.plan.thread:
        return prompt_of_directive(library, os.environ, document, {})
    return prompt_of_document(document, step, {}, settings)
