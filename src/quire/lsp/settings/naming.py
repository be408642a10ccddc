"""Decide whether an agent or a tier of `quire.toml` can get another name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quire.lsp.answers import Name
    from quire.lsp.views import View

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def name_problem(view: View, name: Name, new: str) -> str:
    """Return why a name must not become another one; empty if it may."""
    if not _BARE.fullmatch(new):
        return f"{new} would need quotes: use letters, digits, _ and -"
    taken = {one.text for one in view.index.names if one.kind == name.kind and one.role == "declares"}
    return f"there is a {'tier' if name.kind == 'model' else name.kind} {new} already" if new in taken else ""
