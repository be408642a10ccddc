"""Which item a file is: its kind, the id that a signature binds it to, and how a comment is written in it.

Directives and knowledge are known by their place below an `.ai` folder, `demo/deploy` for
`.ai/directives/demo/deploy.md`. Playbooks and pipelines are known by their path from the workspace's folder.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePath

from quire.errors import CannotStart, Refused
from quire.formats import MARKDOWN, YAML
from quire.trust.signature_line import Syntax
from quire.trust.signing import Kind, Verdict, verify_text
from quire.trust.trusted import TrustedKeys

ITEM_FOLDERS: dict[str, Kind] = {"directives": "directive", "knowledge": "knowledge"}
SYSTEM = Path(__file__).resolve().parents[1]
"""The folder of the package: what is in it belongs to nobody here."""


@dataclass(frozen=True, slots=True)
class Signable:
    """`below` is the path of the file in the folder of its kind; `path` is how the user named it."""

    path: Path
    kind: Kind
    id: str
    syntax: Syntax
    below: PurePath

    @property
    def required(self) -> bool:
        """Whether it must be signed to be used; others are verified when they are signed."""
        return self.kind in ("directive", "knowledge")

    def verify(self, text: str, trusted: TrustedKeys) -> Verdict:
        return verify_text(text, self.kind, self.id, trusted, syntax=self.syntax, path=shown_path(self.path))


def signable(path: Path, workspace: Path) -> Signable:
    """Raises `CannotStart` for a file that no signature is made for. The file itself is not looked at."""
    # Links are not followed: the place at which an item is found is its name.
    whole = Path(os.path.abspath(path))  # noqa: PTH100
    suffix = whole.suffix.lower()
    if suffix not in (*MARKDOWN, *YAML):
        raise CannotStart(f"{path} is not a document that can be signed: those end in .md or .yaml")
    syntax: Syntax = "yaml" if suffix in YAML else "markdown"
    parts = whole.parts
    at = max((at for at, part in enumerate(parts) if part == ".ai"), default=-1)
    if at >= 0:
        kind = ITEM_FOLDERS.get(parts[at + 1]) if len(parts) > at + 2 else None
        if kind is None or (kind == "directive" and syntax == "yaml"):
            raise CannotStart(f"{path} is neither a directive nor knowledge, so it is not signed")
        below = PurePath(*parts[at + 2 :])
        return Signable(path, kind, below.with_suffix("").as_posix(), syntax, below)
    # The folder of a workspace can be reached in several ways, and a file has one name in it all the same.
    folder, whole = workspace.resolve(), path.parent.resolve() / path.name
    below = PurePath(whole.relative_to(folder)) if whole.is_relative_to(folder) else PurePath(whole.name)
    return Signable(path, "pipeline" if syntax == "yaml" else "playbook", below.as_posix(), syntax, below)


def shown_path(path: Path) -> str:
    """A path as people would type it where they are: from the current folder, if it is in there or in the `.ai` of the
    project around it; else the whole one."""
    try:
        # Links stay as they are: the place at which an item is found is its name.
        here, whole = Path.cwd(), Path(os.path.abspath(path))  # noqa: PTH100
    except OSError:
        return str(path)
    if whole.is_relative_to(here):
        return str(whole.relative_to(here))
    at = max((at for at, part in enumerate(whole.parts) if part == ".ai"), default=0)
    return os.path.relpath(whole, here) if at and here.is_relative_to(Path(*whole.parts[:at])) else str(whole)


def refuse_system(path: Path) -> None:
    """Raises `Refused` for a file that is a part of Quire."""
    if path.resolve().is_relative_to(SYSTEM):
        raise Refused(f"{path} is a part of Quire and is never signed; copy it into your project's .ai folder first")
