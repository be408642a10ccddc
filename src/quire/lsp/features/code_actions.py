"""Offer changes at a place: the fixes of findings, and what the format can write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from quire.diagnostics import fix_of
from quire.lsp import wire
from quire.lsp.answers import Action, FileEdit
from quire.lsp.desk import uri_of
from quire.lsp.features.request_places import ask, view_in, workspace_edit

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic, Edit
    from quire.lsp.session import Session
    from quire.lsp.views import View


FIX_ALL: Final = "source.fixAll.quire"
MOST_FINDINGS: Final = 50
"""Findings of a range that changes are offered for. Each change lists the findings that it mends, so a range of
thousands would fill the memory."""


def code_actions(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    view = view_in(session, params)
    if view is None:
        return None
    context = params.get("context")
    wanted = context.get("only") if isinstance(context, Mapping) else None
    span = view.text.span(params.get("range"))
    touched = [one for one in view.findings if one.span.start <= span.end and span.start <= one.span.end][
        :MOST_FINDINGS
    ]
    actions = [*_fixes(view, touched), *(ask(view, "actions", "actions", span, tuple(touched)) or [])]
    if (everything := fix_all(view)) is not None:
        actions.append(everything)
    return [
        written
        for one in actions
        if _is_wanted(one.kind, wanted) and (written := _written(session, view, one, touched)) is not None
    ]


def _fixes(view: View, findings: list[Diagnostic]) -> list[Action]:
    """Return the fixes of findings. One that may change the meaning says so."""
    found: dict[Action, None] = {}
    for one in findings:
        fix = fix_of(view.source, one)
        if fix is not None:
            title = fix.title[:1].upper() + fix.title[1:] + ("" if fix.safe else " (may change the meaning)")
            edits = (FileEdit(view.path, fix.edits),)
            found[Action(title, "quickfix", edits, (one.code.id,), preferred=fix.safe)] = None
    return list(found)


def fix_all(view: View) -> Action | None:
    """Return the change that makes all safe fixes at once; None if there are none. Of fixes that touch each other the
    first one is made: the others are offered again after it."""
    edits: list[Edit] = []
    last = -1
    fixes = [fix for one in view.findings if (fix := fix_of(view.source, one)) is not None and fix.safe]
    for fix in sorted(fixes, key=lambda fix: fix.edits[0].span.start):
        if all(edit.span.start >= last for edit in fix.edits):
            edits += fix.edits
            last = max(edit.span.end for edit in fix.edits)
    if not edits:
        return None
    return Action("Fix all that is certain", FIX_ALL, (FileEdit(view.path, tuple(edits)),))


def _is_wanted(kind: str, wanted: object) -> bool:
    """Tell whether the editor asks for a kind. Without a wish, changes of the whole document are left out."""
    if not isinstance(wanted, list) or not wanted:
        return kind != FIX_ALL
    return any(isinstance(one, str) and (kind == one or kind.startswith(f"{one}.")) for one in wanted)


def _written(session: Session, view: View, one: Action, touched: list[Diagnostic]) -> dict[str, Any] | None:
    edit = workspace_edit(session, one.edits, creates=True)
    if edit is None or (one.command and not session.client.can("workspace.applyEdit")):
        return None
    command = {"title": one.title, "command": one.command, "arguments": [uri_of(view.path), *one.arguments]}
    fixed = [found for found in touched if found.code.id in one.codes]
    return {
        "title": one.title,
        "kind": one.kind,
        **({"command": command} if one.command else {"edit": edit}),
        **({"diagnostics": [wire.diagnostic(view.text, found, session.desk) for found in fixed]} if fixed else {}),
        **({"isPreferred": True} if one.preferred else {}),
    }
