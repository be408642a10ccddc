"""Decide whether a name in a test file can be changed to another one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quire.lsp.answers import Name
    from quire.lsp.views import View


def name_problem(view: View, name: Name, new: str) -> str:
    """Return why a name must not become another one; empty if it may. A name of the document is judged by the rules of
    the document, and has to be there."""
    from quire.formats.test.fields import HIDDEN
    from quire.formats.test.parse import LONGEST_NAME

    if name.kind == "case":
        if not new.strip() or len(new) > LONGEST_NAME or HIDDEN.search(new):
            return f"the name of a case is one line of at most {LONGEST_NAME} characters"
        if _needs_quotes(view, name, new):
            return f"{new} needs quotes in YAML here: put the name in quotes first"
        others = {one.text for one in view.index.names if one.kind == "case" and one.text != name.text}
        return f"there is a case {new} already" if new in others else ""
    if not name.document:
        return ""
    document = view.folder.view(name.document)
    if document is None:
        return "the document of the test cannot be read"
    declared = next(
        (one for one in document.index.names if (one.kind, one.text, one.scope) == (name.kind, name.text, name.scope)),
        None,
    )
    if declared is None:
        return f"{Path(name.document).name} has no {name.kind} {name.text}"
    if not declared.renames:
        return f"{name.text} cannot be renamed: it follows from the order of the steps"
    from quire.lsp.languages import function

    judge = function(document.format, "naming", "name_problem")
    return str(judge(document, declared, new) or "") if judge else ""


def _needs_quotes(view: View, name: Name, new: str) -> bool:
    """Tell whether a new name cannot stand where the old one stands without quotes."""
    before = view.source.text[name.span.start - 1 : name.span.start]
    if before in ("'", '"'):
        return before in new or "\\" in new
    return new[0] in "!&*-?{}[],#|>@`\"'%" or ": " in new or " #" in new or new.endswith(":") or new != new.strip()
