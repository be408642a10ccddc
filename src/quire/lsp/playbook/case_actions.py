"""Offer to write a case of a test for the arm or the step at the cursor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from quire.diagnostics import Edit
from quire.errors import QuireError
from quire.lsp.answers import Action, FileEdit
from quire.lsp.playbook.layout import layout_of
from quire.lsp.playbook.outline import arm_words
from quire.patterns import late_pattern
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.views import View
    from quire.testing.drafts import Draft

LARGEST = 60_000
"""Characters of a document for which a case is drafted while the cursor moves."""
_CASES = late_pattern(r"^cases:[ \t]*+(?:#[^\n]*+)?\n", re.MULTILINE)
_NEXT_KEY = late_pattern(r"^(?![ \t#\n-])", re.MULTILINE)
_ITEM = late_pattern(r"^([ \t]*+)- ", re.MULTILINE)


def case_actions(view: View, span: Span) -> Iterator[Action]:
    """Yield the action for the heading or the marker that the cursor is on."""
    target = _target(view, span.start)
    document = view.document
    if target is None or document is None or document.plan is None or len(view.source.text) > LARGEST:
        return
    from quire.library.input_schema import input_schema
    from quire.lsp.playbook.arm_cases import draft_case
    from quire.testing.discovery import own_test

    label, arm, words = target
    existing = view.folder.view(own_test(view.path))
    taken = existing.source.text if existing is not None else ""
    name = words
    number = 2
    while name in taken:
        name, number = f"{words} ({number})", number + 1
    try:
        draft = draft_case(document.plan, input_schema(document), label, arm, name)
    except QuireError:
        return
    change = _added(view, existing, draft)
    if change is not None:
        what = "this arm" if arm is not None else f"step {label}"
        yield Action(f"Write a test for {what}", "refactor", (change,))


def _target(view: View, offset: int) -> tuple[str, int | None, str] | None:
    """Return the step at an offset, the number of its arm, and a name for the case; None where there is neither a
    heading nor a marker."""
    part = layout_of(view.source).part_at(offset)
    tree = view.reading.playbook
    if part is None or tree is None:
        return None
    step = next((one for one in tree.steps if one.start == part.top.heading.start), None)
    if step is None:
        return None
    if part.parent is None and part.heading.start <= offset <= part.heading.end:
        return step.label, None, f"step {step.label} runs"
    line = view.source.position(offset).line
    for number, arm in enumerate(step.arms):
        starts = [arm.start, *(one.start for one in arm.steps)]
        if any(view.source.position(one).line == line for one in starts):
            return step.label, number, f"step {step.label}, {arm_words(arm)}".replace('"', "'")
    return None


def _added(view: View, existing: View | None, draft: Draft) -> FileEdit | None:
    """Return the edit that makes the test file, or adds a case to it; None for a file that is written otherwise."""
    from quire.testing.discovery import own_test
    from quire.testing.scaffold_text import case_text, file_text

    path = own_test(view.path)
    if existing is None:
        edit = Edit(Span(0, 0), "", file_text(Path(view.path).name, [draft]))
        return FileEdit(path, (edit,), creates=True)
    text = existing.source.text
    cases = _CASES.search(text)
    if not cases:
        return None
    after = _NEXT_KEY.search(text, cases.end())
    end = after.start() if after and after.start() < len(text) else len(text)
    block = text[cases.end() : end]
    at = cases.end() + len(block.rstrip())
    item = _ITEM.search(block)
    new = _indented(case_text(draft), item[1] if item else "  ").rstrip("\n")
    return FileEdit(path, (Edit(Span(at, at), "", ("\n" if block.strip() else "") + new),))


def _indented(text: str, indent: str) -> str:
    """Return the lines of a case with another indentation than two spaces."""
    return "".join(indent + line.removeprefix("  ") for line in text.splitlines(keepends=True))
