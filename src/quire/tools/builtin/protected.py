"""What no tool may write: else a document could grant itself things by changing the files that grant them.

Some places are closed for good, some open by an explicit grant. Names are compared after folding case, width and
invisible letters, because some file systems do the same when they look a name up.
"""

from __future__ import annotations

import os
import secrets
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from quire.errors import Denied

CLOSED = frozenset({"quire.toml", "pyproject.toml", ".mcp.json", ".quire", ".git", "git~1", ".venv"})
"""Closed for good, at any depth, with all that is in them."""

KEPT_OUT = frozenset({".quire", ".git", ".venv"})
"""Folders that a search does not look into unless it names them."""

_RULES = ("config", "keys", "trust")
"""In `.ai`, where risk tables and trusted keys live; closed like the others."""

_ASKING = ("prompts", "pipelines")


def fold(name: str) -> str:
    """A name as the most forgiving file system sees it."""
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name)
        name = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    return name.casefold().rstrip(" .")


@dataclass(frozen=True, slots=True)
class Protection:
    """`granted` are folders that the user opened, `asking` those that need it besides the usual ones.

    `signs` says whether the run may sign the directive of an id: whoever may sign it may also write it. `declared` is
    where the permissions of the directive that writes stand; empty where no directive does.
    """

    granted: frozenset[str] = frozenset()
    asking: frozenset[str] = frozenset()
    signs: Callable[[str], bool] = lambda directive: False
    declared: str = ""

    def require(self, parts: Sequence[str]) -> None:
        """Raises `Denied` unless a tool may write there. `parts` are the real names, links resolved."""
        if self.is_closed(parts):
            raise Denied(f"permission denied: {'/'.join(parts)} is protected; no tool may write it")
        folder = self._asking(parts)
        if folder and not self._may_sign(parts):
            raise Denied(
                f"permission denied: writing {'/'.join(parts)} needs a grant for the folder {folder}; "
                + self._advice(parts, folder)
            )

    def is_closed(self, parts: Sequence[str]) -> bool:
        folded = [fold(part) for part in parts]
        if any(part in CLOSED for part in folded):
            return True
        return any(above == ".ai" and part in _RULES for above, part in pairwise(folded))

    def read_only(self, root: Path) -> Iterator[Path]:
        """The outermost paths under a folder that may not be written and are there now. Links are not followed."""
        pending: list[tuple[str, ...]] = [()]
        while pending:
            parts = pending.pop()
            for entry in _entries(root.joinpath(*parts)):
                below = (*parts, entry.name)
                if self._may_not_write(below):
                    yield root.joinpath(*below)
                elif entry.is_dir(follow_symlinks=False):
                    pending.append(below)

    def at_the_top(self, root: Path) -> dict[str, tuple[object, ...]]:
        """What is protected right in a folder, each with what tells it from another thing of the same name.

        Also what is right in an `.ai` folder that was opened: its rules are closed all the same."""
        found: dict[str, tuple[object, ...]] = {}
        for entry in _entries(root):
            if self._may_not_write((entry.name,)):
                found[entry.name] = _identity(entry)
            elif fold(entry.name) == ".ai" and entry.is_dir(follow_symlinks=False):
                inner = [one for one in _entries(Path(entry.path)) if self._may_not_write((entry.name, one.name))]
                found |= {f"{entry.name}/{one.name}": _identity(one) for one in inner}
        return found

    def _may_not_write(self, parts: Sequence[str]) -> bool:
        return self.is_closed(parts) or bool(self._asking(parts))

    def _asking(self, parts: Sequence[str]) -> str:
        """The folder that has to be opened first, or nothing."""
        folded = [fold(part) for part in parts]
        found = ""
        if folded and folded[0] in _ASKING:
            found = folded[0]
        elif ".ai" in folded:
            found = "/".join(parts[: folded.index(".ai") + 1])
        else:
            path = "/".join(folded)
            found = next((one for one in self.asking if _within(path, one)), "")
        path = "/".join(folded)
        return "" if found and any(_within(path, one) for one in self.granted) else found

    def _advice(self, parts: Sequence[str], folder: str) -> str:
        grant = f"--allow file__write={folder}"
        if not self.declared:
            return f"grant it with {grant}, or under [tools] allow in the quire.toml of your space"
        directive = _directive(parts)
        if not directive:
            return new_run_with(grant)
        element = f"<sign><directive>{directive}</directive></sign>"
        # Who may sign what it writes needs no grant of the user's: that is the way for an author.
        return f"{new_run_with(grant)}, or write {element} into the permissions at {self.declared} and sign that again"

    def _may_sign(self, parts: Sequence[str]) -> bool:
        directive = _directive(parts)
        return bool(directive) and self.signs(directive)


def new_run_with(grant: str) -> str:
    """The advice to whom a directive was refused what its permissions cannot give: a run keeps the grants of its start,
    so going on with it does not help."""
    return f"grant it to a new run with {grant}"


def _directive(parts: Sequence[str]) -> str:
    """The id of the directive that a file of the project is; empty for any other file."""
    folded = [fold(part) for part in parts]
    if folded[:2] != [".ai", "directives"] or len(parts) < 3 or not folded[-1].endswith(".md"):
        return ""
    return "/".join(parts[2:])[: -len(".md")]


def _within(path: str, folder: str) -> bool:
    folder = "/".join(fold(part) for part in folder.split("/"))
    return path == folder or path.startswith(folder + "/")


def put_aside(root: Path, names: Iterable[str]) -> list[str]:
    """Renames what was made where nothing may be made. Not deleted: somebody else may have made it."""
    moved = []
    for name in names:
        aside = f"{name}.refused-{secrets.token_hex(4)}"
        try:
            root.joinpath(name).rename(root / aside)
        except OSError:
            continue
        moved.append(aside)
    return moved


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        # Gone, or not ours to read: then nothing that we start can write into it either.
        return []


def _identity(entry: os.DirEntry[str]) -> tuple[object, ...]:
    found = entry.stat(follow_symlinks=False)
    target = str(Path(entry.path).readlink()) if stat.S_ISLNK(found.st_mode) else ""
    return found.st_dev, found.st_ino, stat.S_IFMT(found.st_mode), target
