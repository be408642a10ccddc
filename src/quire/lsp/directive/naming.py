"""Rules for new names in a directive, and the edits by which it follows its own place and moved items.

The category is the folder that a directive or a knowledge file lies in. A permission for all items of a folder follows
when all of them move together.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.diagnostics import Edit
from quire.lsp.directive.grants import permissions
from quire.lsp.directive.item_words import KINDS, entries, id_of
from quire.lsp.directive.tags import scan

if TYPE_CHECKING:
    from quire.lsp.answers import Name
    from quire.lsp.document_view import View
    from quire.source import Span


_NAME = re.compile(r"\w+")
_TAG = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOOK = re.compile(r"[^\s\"'<>&${}]+")
_RESERVED = ("output", "success", "failure")


def name_problem(view: View, name: Name, new: str) -> str:
    """Return why a new name is not allowed; empty if it is fine."""
    if name.kind == "hook":
        if not _HOOK.fullmatch(new):
            return "the id of a hook has no spaces, quotes, braces and signs of XML"
    elif name.kind in ("input", "output"):
        if not _NAME.fullmatch(new):
            return f"the name of an {name.kind} has only letters, digits and _"
    else:
        return "" if new.strip() else "a name is not empty"
    home = view.folder.view(name.document) if name.document else view
    if home is None or home.format != "directive":
        return ""
    outputs = scan(home.source.text).below("outputs")
    is_tag = outputs is not None and outputs.child(name.text) is not None and name.text not in _RESERVED
    if name.kind == "output" and is_tag:
        if new in _RESERVED:
            return f"<{new}> in <outputs> has a meaning of its own"
        if not _TAG.fullmatch(new):
            return "the name of this output is a tag, so it begins with a letter and has only letters, digits and _"
    if new != name.text and any(
        other.kind == name.kind and other.text == new and other.role == "declares" and not other.document
        for other in home.index.names
    ):
        return f"there is already an {name.kind} {new}" if name.kind != "hook" else f"there is already a hook {new}"
    return ""


def moved(view: View, new: str) -> list[Edit]:
    """Return the edit of the category. One that did not fit the old place stays as it is."""
    tag = scan(view.source.text).below("metadata", "category")
    return followed_category(view.path, new, *tag.text) if tag is not None and tag.closing is not None else []


def followed_category(old: str, new: str, text: str, span: Span) -> list[Edit]:
    before, after = (id_of(path).rpartition("/")[0] for path in (old, new))
    return [Edit(span, text, after)] if text.strip("/") == before != after and id_of(new) else []


def followed(view: View, moves: Mapping[str, str]) -> list[Edit]:
    """Return the edits of permissions such as `team/*`, if everything that they cover moves to one other folder. A
    folder that holds other items already is left alone, because the permission would cover these too."""
    edits: list[Edit] = []
    for _, span, tag in permissions(view):
        text = span.of(view.source.text)
        folder = text[:-2]
        if tag.tag not in KINDS or text[-2:] not in ("/*", ".*") or any(sign in folder for sign in "*?["):
            continue
        new = _new_folder(view, tag.tag, folder.replace(".", "/"), moves)
        if new:
            written = new.replace("/", text[-2]) if "/" not in folder else new
            edits.append(Edit(span, text, f"{written}{text[-2:]}"))
    return edits


def _new_folder(view: View, item_type: str, folder: str, moves: Mapping[str, str]) -> str:
    """Return the folder that all items of another one move to; empty if they do not move together."""
    ids = {item_id: os.path.abspath(entry.path) for item_id, entry in entries(view.folder, item_type).items()}  # noqa: PTH100
    inside = [item_id for item_id in ids if item_id.startswith(f"{folder}/")]
    targets = set()
    for item_id in inside:
        new, rest = id_of(moves.get(ids[item_id], "")), item_id[len(folder) :]
        targets.add(new.removesuffix(rest) if new.endswith(rest) else "")
    if len(targets) != 1:
        return ""
    (target,) = targets
    others = any(item_id.startswith(f"{target}/") and item_id not in inside for item_id in ids)
    return "" if others or target == folder else target
