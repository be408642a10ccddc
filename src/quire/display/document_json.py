"""JSON of documents: what `quire show --json` and the API say of one, from the same functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quire.library.document import Document
    from quire.library.library import Library
    from quire.values import Value


def outlined(
    document: Document, library: Library | None = None, environ: Mapping[str, str] | None = None
) -> dict[str, Value]:
    """Return the outline of a document that can run: what it does, its inputs and its steps.

    A directive is composed with what it extends, which needs the library; an input without a value has its name in
    brackets. Raises `CannotStart` for a directive that cannot be composed.
    """
    plan = document.runnable()
    if plan.format == "directive":
        from quire.display.outline_directive import directive_data
        from quire.library.survey import survey

        assert library is not None  # noqa: S101  # the caller has one for directives
        return directive_data(survey(library, environ or {}, document, {}))
    if plan.format == "pipeline":
        from quire.display.outline_pipeline import pipeline_data
        from quire.formats.pipeline.inputs import inferred_inputs, optional_inputs
        from quire.library.lookup import tree_of

        tree = tree_of(document)
        return pipeline_data(plan, inferred_inputs(tree), optional_inputs(tree))
    from quire.display.outline import outline_data

    return outline_data(plan)
