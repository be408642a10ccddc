"""Changes that the user can choose in a playbook: allow a finding, declare an input, add an arm, write a test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from quire.diagnostics import Edit, Severity
from quire.formats.markdown import signature_line
from quire.formats.playbook.codes import lints, reader
from quire.lsp.answers import Action, change, insertion
from quire.lsp.document_tests import test_action
from quire.lsp.playbook.completion import free_label
from quire.lsp.playbook.index import KnownNames, tree_of
from quire.lsp.playbook.layout import Layout, Part, layout_of
from quire.source import NOWHERE, Span, line_end
from quire.testing.coverage.decisions import decision_id

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.formats.playbook.syntax import Playbook
    from quire.lsp.document_view import View


def case_actions(view: View, span: Span) -> Iterator[Action]:
    """Yield the action for the heading or the marker that the cursor is on."""
    target = _target(view, span.start)
    if target is None or view.plan is None:
        return
    label, arm = target
    place = next((path for path, step in view.plan.steps() if step.label == label), "")
    if arm is None:
        action = test_action(view, decision_id("steps", place), f"Write a test for step {label}")
    else:
        action = test_action(view, decision_id("arms", place, "arm", str(arm + 1)), "Write a test for this branch")
    if action is not None:
        yield action


def _target(view: View, offset: int) -> tuple[str, int | None] | None:
    """Return the step at an offset and the number of its arm; None where there is neither a heading nor a marker."""
    part = layout_of(view).part_at(offset)
    tree = view.reading.playbook
    if part is None or tree is None:
        return None
    step = next((step for step in tree.steps if step.start == part.top.heading.start), None)
    if step is None:
        return None
    if part.parent is None and part.heading.holds(offset):
        return step.label, None
    line = view.source.position(offset).line
    for number, arm in enumerate(step.arms):
        starts = [arm.start, *(inner.start for inner in arm.steps)]
        if any(view.source.position(start).line == line for start in starts):
            return step.label, number
    return None


REASON = "say why this is right here"
"""Stands in a comment until the user writes a reason."""
_COMMENTS = "AL"


def actions(view: View, span: Span, findings: Sequence[Diagnostic]) -> list[Action]:
    """Return the changes for a selection and the findings that it touches."""
    tree = tree_of(view)
    if tree is None:
        return []
    return [
        *_declare(view, tree, span),
        *_add_else(view, tree, span),
        *case_actions(view, span),
        *_allow(view, findings),
    ]


def _allow(view: View, findings: Sequence[Diagnostic]) -> Iterator[Action]:
    """Yield a comment for each finding that may be hidden. Errors may not, and neither may findings about comments."""
    offered: set[tuple[str, int]] = set()
    for finding in findings:
        if finding.severity is Severity.ERROR or finding.code.id.startswith(_COMMENTS):
            continue
        at, text = _comment(view, finding)
        if (finding.code.id, at) not in offered:
            offered.add((finding.code.id, at))
            title = f"Allow {finding.code.id} because …"
            yield change(view.path, title, insertion(at, text), codes=(finding.code.id,))


def _comment(view: View, finding: Diagnostic) -> tuple[int, str]:
    """Return where the comment belongs, and its line: above a line of a list, else before the title."""
    layout, source = layout_of(view), view.source
    at = finding.span.start
    section = layout.section_at(at)
    where = ""
    if finding.span != NOWHERE:
        if section is not None and section.kind in ("inputs", "artifacts") and at > section.heading.end:
            line = source.line_span(source.position(at).line)
            return line.start, f'<!-- quire: allow {finding.code.id} because "{REASON}" -->\n'
        part = layout.part_at(at)
        where = f" in step {part.label}" if part is not None else ""
    top = len(signature_line(source.text))
    top += 1 if top else 0
    return top, f'<!-- quire: allow {finding.code.id}{where} because "{REASON}" -->\n'


def _declare(view: View, tree: Playbook, span: Span) -> Iterator[Action]:
    """Yield the declaration of a name that nothing sets."""
    name = view.index.at(span.start)
    if name is None or name.kind != "input" or name.document or KnownNames(tree).is_known(name.text):
        return
    if not name.text[0].isalpha():
        return
    edit = input_edit(view, tree, f"- `{name.text}` (string)")
    if edit is not None:
        codes = (lints.UNRESOLVED.id, reader.UNDECLARED_VARIABLE.id)
        yield change(view.path, f"Declare the input {name.text}", edit, codes=codes)


def input_edit(view: View, tree: Playbook, line: str) -> Edit | None:
    """Return the edit that adds a line to the inputs, with the section if there is none."""
    layout, text = layout_of(view), view.source.text
    section = next((section for section in layout.sections if section.kind == "inputs"), None)
    if section is None:
        starts = [part.start for part in layout.parts[:1]]
        starts += [section.start for section in layout.sections if section.kind != "system"]
        return insertion(min(starts), f"## INPUTS\n\n{line}\n\n") if starts else None
    inside = [input for input in tree.inputs if section.start <= input.start < section.end]
    at = inside[-1].end if inside else section.heading.end
    end = line_end(text, at)
    return insertion(end, f"\n{line}" if inside else f"\n\n{line}")


def _add_else(view: View, tree: Playbook, span: Span) -> Iterator[Action]:
    """Yield the arm that a step lacks, where the cursor is in its branches."""
    layout = layout_of(view)
    part = layout.part_at(span.start)
    top = part.top if part else None
    step = next((step for step in tree.steps if top is not None and step.start == top.heading.start), None)
    if top is None or step is None or not step.arms or any(arm.condition is None for arm in step.arms):
        return
    if top.branches is None or not top.branches.holds(span.start):
        return
    at = _end_of_branches(layout, top, step.arms[-1].start)
    label = free_label(layout, top)
    lines = f"```else```\n\n### STEP {label}: Otherwise\n\nSay what to do otherwise.\n\n"
    before = view.source.text[:at]
    lead = "" if before.endswith("\n\n") else "\n" if before.endswith("\n") else "\n\n"
    yield change(view.path, "Add an else branch", insertion(at, lead + lines), kind="refactor.rewrite")


def _end_of_branches(layout: Layout, step: Part, after: int) -> int:
    """Return where a new last arm belongs: before the `endif`, or at the end of the step."""
    for marker in layout.markers:
        if marker.step is step and marker.word == "endif" and marker.line.start() > after:
            return marker.line.start()
    return step.end
