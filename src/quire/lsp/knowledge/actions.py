"""Offer changes in a knowledge file: add missing fields, follow the place of the file, allow a finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from quire.diagnostics import Edit, Severity
from quire.formats.directive.codes import knowledge as codes
from quire.formats.directive.knowledge import REQUIRED
from quire.lsp.answers import Action, FileEdit
from quire.lsp.directive.item_words import id_of
from quire.lsp.knowledge.metadata import metadata
from quire.source import Span

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.lsp.views import View


def actions(view: View, span: Span, findings: Sequence[Diagnostic]) -> list[Action]:
    return list(dict.fromkeys(_actions(view, findings)))


def _actions(view: View, findings: Sequence[Diagnostic]) -> Iterator[Action]:
    for found in findings:
        if found.code is codes.FIELD and (edit := _missing(view)) is not None:
            yield _action(view, "Add the fields that signing requires", edit, found)
        elif found.code is codes.PLACE and (edit := _place(view, found)) is not None:
            yield _action(view, f"Write {edit.new or 'no category'}, as the place of the file is", edit, found)
    for found in findings:
        if found.severity is not Severity.ERROR and not found.code.id.startswith("AL"):
            part = metadata(view).part
            if part is not None:
                at = view.source.line_span(view.source.position(found.span.start).line).start
                at = max(at, part.start)
                comment = f'# quire: allow {found.code.id} because "say why"\n'
                yield _action(view, f"Allow {found.code.id} because …", Edit(Span(at, at), "", comment), found)


def _missing(view: View) -> Edit | None:
    found = metadata(view)
    if found.part is None:
        return None
    texts = {
        "name": f"name: {PurePath(view.path).stem}",
        "title": f"title: {PurePath(view.path).stem.replace('-', ' ').replace('_', ' ').capitalize()}",
        "version": 'version: "1.0.0"',
        "entry_type": "entry_type: reference",
    }
    given = {one.key for one in found.entries if one.values}
    lines = [texts[name] for name in REQUIRED if name not in given and not _has_key(view, name)]
    return Edit(Span(found.part.start, found.part.start), "", "".join(f"{one}\n" for one in lines)) if lines else None


def _has_key(view: View, name: str) -> bool:
    return any(one.key == name for one in metadata(view).entries)


def _place(view: View, found: Diagnostic) -> Edit | None:
    own = id_of(view.path)
    for entry in metadata(view).entries:
        for text, span in entry.values:
            if entry.key in ("name", "category") and found.span.start <= span.start <= found.span.end:
                new = PurePath(own).name if entry.key == "name" else own.rpartition("/")[0]
                return Edit(span, text, new)
    return None


def _action(view: View, title: str, edit: Edit, found: Diagnostic) -> Action:
    return Action(title, "quickfix", (FileEdit(view.path, (edit,)),), (found.code.id,))
