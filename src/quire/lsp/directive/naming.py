"""Rules for new names of inputs, outputs and hooks of a directive."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from quire.lsp.directive.tags import scan

if TYPE_CHECKING:
    from quire.lsp.answers import Name
    from quire.lsp.views import View

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
    if name.kind == "output" and _is_keyed(home, name.text):
        if new in _RESERVED:
            return f"<{new}> in <outputs> has a meaning of its own"
        if not _TAG.fullmatch(new):
            return "the name of this output is a tag, so it begins with a letter and has only letters, digits and _"
    if new != name.text and any(
        one.kind == name.kind and one.text == new and one.role == "declares" and not one.document
        for one in home.index.names
    ):
        return f"there is already an {name.kind} {new}" if name.kind != "hook" else f"there is already a hook {new}"
    return ""


def _is_keyed(home: View, name: str) -> bool:
    """Tell whether an output is written in the form in which its tag is its name."""
    outputs = scan(home.source.text).below("outputs")
    return outputs is not None and outputs.child(name) is not None and name not in _RESERVED
