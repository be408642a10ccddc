"""The file that was probably meant where there is none of a name."""

from __future__ import annotations

import os
from pathlib import Path

from quire.errors import Unreadable
from quire.wording import nearest

_DOCUMENT = (".md", ".markdown", ".yaml", ".yml")


def near_file(wanted: Path) -> str:
    """The file beside a missing one whose name is nearest; empty where there is none."""
    try:
        names = [one.name for one in wanted.parent.iterdir() if not one.name.startswith(".")]
    except (OSError, ValueError):
        return ""
    # `tagline` and `tagline.md` mean tagline.playbook.md.
    begun = [name for name in names if name.startswith(f"{wanted.name.split('.')[0]}.") and name.endswith(_DOCUMENT)]
    close = nearest(wanted.name, names) or (begun[0] if len(begun) == 1 else None)
    return str(wanted.parent / close) if close else ""


def with_near_file(error: Unreadable) -> Unreadable:
    """The same error, with the name that was probably meant where there is no such file."""
    near = "" if os.path.lexists(error.path) else near_file(error.path)
    return Unreadable(error.path, f"{error.reason}; did you mean {near}?") if near else error
