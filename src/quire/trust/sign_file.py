"""Sign a file on disk: read it once, validate it, and replace it atomically with the signed one.

A file's place determines its kind, the id that a signature binds it to, and its comment syntax. Directives and
knowledge are known by their place below an `.ai` folder, `demo/deploy` for `.ai/directives/demo/deploy.md`. Playbooks
and pipelines are known by their path from the workspace's folder. Each kind is validated by its own format.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.diagnostics import Severity
from quire.errors import CannotStart, Refused, Unreadable
from quire.formats import MARKDOWN, YAML
from quire.plan.vocabulary import LOCK_FILE, MOST_LOCK_BYTES
from quire.source import (
    MAX_DOCUMENT_BYTES,
    Source,
    file_identity,
    normalise,
    read_source,
    relative_to_here,
    replace_file,
)
from quire.trust.signature_line import Syntax, digest_of
from quire.trust.signatures import Kind, Verdict, sign_text, verify_text
from quire.trust.trusted_keys import TrustedKey, TrustedKeys

if TYPE_CHECKING:
    from quire.trust.keys import SigningKey

ITEM_FOLDERS: dict[str, Kind] = {"directives": "directive", "knowledge": "knowledge"}
SYSTEM = Path(__file__).resolve().parents[1]
"""The folder of the package: the user does not own the files in it."""


class Signable(Struct, frozen=True):
    """A file that can be signed."""

    path: Path
    """The path as the user named it."""
    kind: Kind
    id: str
    syntax: Syntax
    below: PurePath
    """The path of the file in the folder of its kind."""

    @property
    def limit(self) -> int:
        """The most bytes that the file may have."""
        return MOST_LOCK_BYTES if self.kind == "lock" else MAX_DOCUMENT_BYTES

    @property
    def required(self) -> bool:
        """Return True if the item must be signed to be used; other items are verified only if they are signed."""
        return self.kind in ("directive", "knowledge")

    def verify(self, text: str, trusted: TrustedKeys) -> Verdict:
        return verify_text(text, self.kind, self.id, trusted, syntax=self.syntax, path=typed_path(self.path))


def signable(path: Path, workspace: Path) -> Signable:
    """Identify a file by its path.

    Raises `CannotStart` for a file that cannot be signed. The file itself is not read.
    """
    # Links are not followed: the place where an item is found is its name.
    whole = Path(os.path.abspath(path))  # noqa: PTH100
    if whole.name == LOCK_FILE:
        return Signable(path, "lock", LOCK_FILE, "yaml", PurePath(LOCK_FILE))
    suffix = whole.suffix.lower()
    if suffix not in (*MARKDOWN, *YAML):
        raise CannotStart(f"{path} cannot be signed: signed documents end in .md or .yaml")
    syntax: Syntax = "yaml" if suffix in YAML else "markdown"
    parts = whole.parts
    at = max((at for at, part in enumerate(parts) if part == ".ai"), default=-1)
    if at >= 0:
        kind = ITEM_FOLDERS.get(parts[at + 1]) if len(parts) > at + 2 else None
        if kind is None or (kind == "directive" and syntax == "yaml"):
            raise CannotStart(f"{path} is neither a directive nor knowledge, so it is not signed")
        below = PurePath(*parts[at + 2 :])
        return Signable(path, kind, below.with_suffix("").as_posix(), syntax, below)
    # The folder of a workspace can be reached by several paths, but a file has only one name in it.
    folder, whole = workspace.resolve(), path.parent.resolve() / path.name
    below = PurePath(whole.relative_to(folder)) if whole.is_relative_to(folder) else PurePath(whole.name)
    return Signable(path, "pipeline" if syntax == "yaml" else "playbook", below.as_posix(), syntax, below)


def typed_path(path: Path) -> str:
    """Return a path as a user would type it: relative to the current folder, if it is in there or in the `.ai` of the
    project around it; otherwise the absolute one."""
    try:
        if below := relative_to_here(path):
            return below
        here, whole = Path.cwd(), Path(os.path.abspath(path))  # noqa: PTH100
    except OSError:
        return str(path)
    at = max((at for at, part in enumerate(whole.parts) if part == ".ai"), default=0)
    return os.path.relpath(whole, here) if at and here.is_relative_to(Path(*whole.parts[:at])) else str(whole)


def refuse_system(path: Path) -> None:
    """Raise `Refused` for a file that is a part of Quire."""
    if path.resolve().is_relative_to(SYSTEM):
        raise Refused(f"{path} is a part of Quire and is never signed; copy it into your project's .ai folder first")


def issues(item: Signable, source: Source) -> list[str]:
    """Return all problems, a line each; empty for a file that may be signed. A lock is compared with its documents by
    the caller, because the documents of a workspace are not known here."""
    if item.kind == "lock":
        return []
    if item.kind == "directive":
        from quire.formats.directive.validate import issues as of_directive

        return of_directive(source, item.below)
    if item.kind == "knowledge":
        from quire.formats.directive.knowledge import knowledge_issues

        return knowledge_issues(source, item.below)
    return _errors(item, source)


def warnings(item: Signable, source: Source) -> list[str]:
    """Return warnings for the person who signs a file, a line each. The file may be signed all the same."""
    from quire.formats.invisible import invisible

    hidden = [
        f"line {source.position(finding.span.start).line}: {finding.code.id} {finding.message}"
        for finding in invisible(source)
    ]
    if item.kind != "directive":
        return hidden
    from quire.formats.directive.parse import parse
    from quire.trust.risk import assess, project_risk

    permissions = parse(source).partial.permissions
    capabilities = [grant.capability for grant in permissions.grants] if permissions else []
    acknowledged = [acknowledgement.risk for acknowledgement in permissions.acknowledged] if permissions else []
    folder = Path(os.path.abspath(item.path)).parents[len(item.below.parts) + 1]  # noqa: PTH100
    return [*hidden, *assess(capabilities, acknowledged, project_risk(folder)).messages]


def _errors(item: Signable, source: Source) -> list[str]:
    from quire import formats

    format = formats.format_of(source)
    if format != item.kind:
        return [f"it is a {format}, not a {item.kind}; a {format} is signed below .ai/{format}s, where it has a name"]
    return [
        f"line {source.position(finding.span.start).line}: {finding.code.id} {finding.message}"
        for finding in formats.check(source)
        if finding.severity is Severity.ERROR
    ]


def sign_file(item: Signable, key: SigningKey, now: datetime, digest: str = "") -> list[str]:
    """Sign the file. Return the problems that prevent it; an empty list means that the file is signed now.

    `digest` is that of the text that was agreed to; empty if the user agreed to the file itself. Raises `Refused` for a
    file that is not the user's to sign, `Unreadable` for one that cannot be read or written.
    """
    path = item.path
    refuse_system(path)
    if path.is_symlink():
        raise Refused(f"{path} is a link; sign the file that it leads to, under its own name")
    source = read_source(path, limit=item.limit)
    before, text = file_identity(path), _bytes(path).decode("utf-8")
    if normalise(text) != source.text:
        raise Unreadable(path, "was changed while it was read")
    if digest and digest_of(source.text) != digest:
        return ["it was changed after it was looked at; look at it again"]
    if problems := issues(item, source):
        return problems
    signed = sign_text(text, item.kind, item.id, key, now, syntax=item.syntax)
    data = signed.encode("utf-8")
    if len(data) > item.limit:
        return [f"with a signature it is larger than {item.limit:,} bytes"]
    # The signed text must verify as this item for the next reader.
    verdict = item.verify(normalise(signed), TrustedKeys.of([TrustedKey(key.public)]))
    if not verdict.ok:
        return [verdict.message]
    replace_file(path, data, before, "signed; sign it again")
    return []


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(path, f"cannot be read: {error.strerror or error}") from None
