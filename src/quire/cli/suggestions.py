"""Suggest the verb or the input that the user probably meant."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence

from quire.display.text import pasted

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
"""Verbs of other tools, and the command to suggest for each."""
_DOCUMENT = (".md", ".markdown", ".yaml", ".yml")
_EXTRA = re.compile(r"got unexpected extra arguments? \((.*)\)", re.IGNORECASE | re.DOTALL)
_PAIR = re.compile(r"[A-Za-z_]\w*+=")


def verb(name: str, known: Sequence[str]) -> str:
    """Return the command that a word that is not a verb probably means; empty if nothing is close."""
    if name.lower() in MEANT:
        return MEANT[name.lower()]
    if name.lower().endswith(_DOCUMENT) or os.path.isfile(name):  # noqa: PTH113  # a long name is not an exception
        return f"quire run {pasted(name)}"
    # `nearest` does not find a short verb with two letters swapped.
    swapped = [one for one in known if sorted(one) == sorted(name.lower())]
    close = swapped or difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.65)
    return close[0] if close else ""


def argument(message: str, command: str, options: Sequence[str]) -> str:
    """Return the correct form of a surplus argument: `NAME=VALUE` is an input. Empty for any other argument."""
    extra = _EXTRA.match(message)
    if extra is None or "-i" not in options or not _PAIR.match(extra[1]):
        return ""
    # click joins several arguments by spaces, so only a single one is certain to be complete.
    first = extra[1].split(" ", 1)[0] if message.lower().startswith("got unexpected extra arguments") else extra[1]
    return f"{command} … -i {pasted(first)}"
