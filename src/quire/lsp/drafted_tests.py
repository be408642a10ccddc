"""Write a case of a test that takes one decision of a document, such as an arm.

To find the values that lead there, the document is run with placeholders on the bench of tests, as `quire new test`
does. That takes long, so the action is a command: it drafts the case in a process of its own, and then asks the editor
to change the test.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from quire.diagnostics import Edit
from quire.errors import QuireError
from quire.lsp.answers import Action, FileEdit
from quire.patterns import late_pattern
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.views import View
    from quire.testing.drafts import Draft

WRITE_TEST = "quire.writeTest"
_CASES = late_pattern(r"^cases:[ \t]*+(?:#[^\n]*+)?\n", re.MULTILINE)
_NEXT_KEY = late_pattern(r"^(?![ \t#\n-])", re.MULTILINE)
_ITEM = late_pattern(r"^([ \t]*+)- ", re.MULTILINE)


def test_action(view: View, wanted: str, title: str) -> Action | None:
    """Return the action that writes a case for a decision, given by its id; empty for a first case. None if the
    document cannot run, or has a test that no case can be added to."""
    if view.document is None or view.document.plan is None:
        return None
    from quire.testing.discovery import own_test

    path = own_test(view.path)
    existing = view.folder.view(path)
    if existing is not None and not _CASES.search(existing.source.text):
        return None
    return Action(title, "refactor", (FileEdit(path, (), creates=True),), command=WRITE_TEST, arguments=(wanted,))


def draft_case(view: View, wanted: str) -> Draft:
    """Return a case that takes a decision. Raises `QuireError` if none was found, or if it cannot be added."""
    from quire.testing.document_under_test import bench_for
    from quire.testing.scaffold import draft_for

    found = draft_for(bench_for(view.document), wanted) if view.document is not None else None
    if found is None:
        raise QuireError("no inputs, replies and answers were found that lead there; write the case by hand")
    added_case(view, found)
    return found


def added_case(view: View, draft: Draft) -> FileEdit:
    """Return the edit that makes the test of a document, or adds a case to it. Raises `QuireError` for a test that is
    written in another way."""
    from quire.testing.discovery import own_test
    from quire.testing.drafts import case_text, file_text

    path = own_test(view.path)
    existing = view.folder.view(path)
    if existing is None:
        edit = Edit(Span(0, 0), "", file_text(Path(view.path).name, [draft]))
        return FileEdit(path, (edit,), creates=True)
    text = existing.source.text
    cases = _CASES.search(text)
    if not cases:
        raise QuireError(f"{Path(path).name} has no list of cases that a case can be added to")
    draft.name = _free_name(draft.name, existing)
    after = _NEXT_KEY.search(text, cases.end())
    end = after.start() if after and after.start() < len(text) else len(text)
    block = text[cases.end() : end]
    at = cases.end() + len(block.rstrip())
    item = _ITEM.search(block)
    new = _indented(case_text(draft), item[1] if item else "  ").rstrip("\n")
    return FileEdit(path, (Edit(Span(at, at), "", ("\n" if block.strip() else "") + new),))


def _free_name(name: str, test: View) -> str:
    file = test.reading.file if test.format == "test" else None
    taken = {case.name for case in file.cases} if file is not None else set()
    number, found = 2, name
    while found in taken:
        found, number = f"{name} ({number})", number + 1
    return found


def _indented(text: str, indent: str) -> str:
    """Return the lines of a case with another indentation than two spaces."""
    return "".join(indent + line.removeprefix("  ") for line in text.splitlines(keepends=True))
