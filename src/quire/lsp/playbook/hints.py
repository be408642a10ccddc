"""Short notes inside of the lines of a playbook: types of captures, models, where a branch leads, and the bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.formats.playbook.names import family
from quire.lsp.answers import Hint
from quire.lsp.bounds import bound_words
from quire.lsp.playbook.index import tree_of
from quire.lsp.playbook.layout import HOW_WORDS, Capture, layout_of
from quire.lsp.playbook.step_prompts import model_of_step
from quire.wording import cut_line

if TYPE_CHECKING:
    from quire.formats.playbook.syntax import Step
    from quire.lsp.views import View
    from quire.source import Span

LONGEST = 40


def hints(view: View, span: Span) -> list[Hint]:
    """Return the notes of a part of the document."""
    tree = tree_of(view)
    if tree is None:
        return []
    found: list[Hint] = []
    layout = layout_of(view)
    title = layout.scan.title
    if title is not None and tree.title and span.start <= tree.title_end <= span.end and (bound := bound_words(view)):
        found.append(Hint(tree.title_end, bound, tooltip="The most that a run asks of models and people."))
    for capture in layout.captures:
        if span.start <= capture.span.end <= span.end and not capture.name.startswith("__"):
            found += _capture(view, capture)
    ends = {marker.step.start: marker.span.end for marker in layout.markers if marker.word == "endif"}
    for parent in tree.steps:
        if parent.start > span.end:
            break
        for step in family(parent):
            found += _model(view, step, span)
        found += _arms(view, parent, ends.get(parent.start))
    return sorted((one for one in found if span.start <= one.offset <= span.end), key=lambda one: one.offset)


def _capture(view: View, capture: Capture) -> Iterator[Hint]:
    """Yield the type of a capture that has none in the text."""
    if not capture.type:
        tooltip = f"Step {capture.label} keeps {HOW_WORDS[capture.how]}."
        yield Hint(capture.span.end, f": {cut_line(capture.type_words, LONGEST)}", tooltip=tooltip)


def _model(view: View, step: Step, span: Span) -> Iterator[Hint]:
    """Yield the model that a `@model` means here."""
    if step.model and span.start <= step.model.end <= span.end:
        found = model_of_step(view, step.label, step.model.name)
        if found and found != step.model.name:
            yield Hint(step.model.end, f"→ {cut_line(found, LONGEST)}", tooltip="The model that does this step.")


def _arms(view: View, step: Step, end: int | None) -> Iterator[Hint]:
    """Yield where each arm leads, and what happens if no condition holds; `end` is the end of the last marker."""
    text = view.source.text
    for arm in step.arms:
        at = text.find("\n", arm.end)
        labels = ", ".join(one.label for one in arm.steps) or "nothing"
        yield Hint(at if at >= 0 else len(text), f"→ {cut_line(labels, LONGEST)}")
    if step.arms and end is not None and all(arm.condition for arm in step.arms):
        yield Hint(end, "otherwise no arm", tooltip="No condition holds: no sub-step runs.")
