"""What was probably meant: a verb, a file, an input."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from quire.diagnostics import nearest
from quire.errors import Unreadable
from quire.render.text import pasted

MEANT = {
    "help": "quire --help",
    "version": "quire --version",
    "validate": "check",
    "lint": "check",
    "init": "new",
    "create": "new",
    "start": "run",
    "exec": "run",
    "execute": "run",
    "logs": "runs",
    "history": "runs",
    "status": "runs",
    "ps": "runs",
    "stop": "cancel",
    "continue": "resume",
    "retry": "resume",
    "models": "model list",
    "login": "doctor",
}
"""Verbs that other tools have."""
_DOCUMENT = (".md", ".markdown", ".yaml", ".yml")
_EXTRA = re.compile(r"got unexpected extra arguments? \((.*)\)", re.IGNORECASE | re.DOTALL)
_PAIR = re.compile(r"[A-Za-z_]\w*+=")


def verb(name: str, known: Sequence[str]) -> str:
    """The command that was probably meant by a word that is not a verb; empty where nothing comes close."""
    if name.lower() in MEANT:
        return MEANT[name.lower()]
    if name.lower().endswith(_DOCUMENT) or os.path.isfile(name):  # noqa: PTH113  # a long name is not an exception
        return f"quire run {pasted(name)}"
    # Two letters of a short verb in the wrong order are further from it than `nearest` looks.
    swapped = [one for one in known if sorted(one) == sorted(name.lower())]
    close = swapped or difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.65)
    return close[0] if close else ""


def argument(message: str, command: str, options: Sequence[str]) -> str:
    """What an argument too many should have been: `NAME=VALUE` is an input."""
    extra = _EXTRA.match(message)
    if extra is None or "-i" not in options or not _PAIR.match(extra[1]):
        return ""
    # click joins several by spaces; only one is certain to be a whole one.
    first = extra[1].split(" ", 1)[0] if message.lower().startswith("got unexpected extra arguments") else extra[1]
    return f"{command} … -i {pasted(first)}"


def file(wanted: Path) -> str:
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
    near = "" if os.path.lexists(error.path) else file(error.path)
    return Unreadable(error.path, f"{error.reason}; did you mean {near}?") if near else error
