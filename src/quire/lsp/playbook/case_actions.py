"""Offer to write a case of a test for the arm or the step at the cursor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.lsp.drafted_tests import test_action
from quire.lsp.playbook.layout import layout_of

if TYPE_CHECKING:
    from quire.lsp.answers import Action
    from quire.lsp.views import View
    from quire.source import Span


def case_actions(view: View, span: Span) -> Iterator[Action]:
    """Yield the action for the heading or the marker that the cursor is on."""
    target = _target(view, span.start)
    plan = view.document.plan if view.document is not None else None
    if target is None or plan is None:
        return
    from quire.testing.coverage.decisions import decision_id

    label, arm = target
    place = next((path for path, step in plan.steps() if step.label == label), "")
    if arm is None:
        found = test_action(view, decision_id("steps", place), f"Write a test for step {label}")
    else:
        found = test_action(view, decision_id("arms", place, "arm", str(arm + 1)), "Write a test for this arm")
    if found is not None:
        yield found


def _target(view: View, offset: int) -> tuple[str, int | None] | None:
    """Return the step at an offset and the number of its arm; None where there is neither a heading nor a marker."""
    part = layout_of(view).part_at(offset)
    tree = view.reading.playbook
    if part is None or tree is None:
        return None
    step = next((one for one in tree.steps if one.start == part.top.heading.start), None)
    if step is None:
        return None
    if part.parent is None and part.heading.start <= offset <= part.heading.end:
        return step.label, None
    line = view.source.position(offset).line
    for number, arm in enumerate(step.arms):
        starts = [arm.start, *(one.start for one in arm.steps)]
        if any(view.source.position(one).line == line for one in starts):
            return step.label, number
    return None
