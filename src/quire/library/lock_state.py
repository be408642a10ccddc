"""Tell how one document stands to the lock of its workspace, and hold runs to the lock: with `[trust] locked` a
document that may do more than it was locked with is refused.

Nothing is started, and no price list is loaded: the tools and prices are those of the lock. A lock that is only out of
date stops nothing. Documents outside of the workspace, such as those on the user's shelf, are not held to its lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quire.analysis.lock.compare import Change, compare_document
from quire.analysis.lock.difference_words import told
from quire.analysis.lock.file import FILE_NAME, Lock
from quire.errors import CannotStart, QuireError, Refused
from quire.library.lock_check import load_lock, lock_path, require_lock, signature_problem
from quire.library.lock_facts import LockableDocument, LockFacts
from quire.workspace.locate import is_on_shelf

if TYPE_CHECKING:
    from quire.library.document import Document
    from quire.workspace.locate import Workspace
    from quire.workspace.settings import Settings


Standing = Literal["none", "unreadable", "new", "equal", "stale", "wider"]
"""`none`: no lock exists. `unreadable`: it cannot be read. `new`: it has no entry of the document. `stale`: something
has changed, and nothing is wider."""


class LockState(Struct, frozen=True):
    """How a document stands to the lock."""

    standing: Standing
    changes: tuple[Change, ...] = ()
    problem: str = ""
    assumed: Mapping[str, str] = {}
    """The sizes with which the lock shows its formulas."""


def lock_state(workspace: Workspace, path: Path) -> LockState:
    """Compare the document in a file with the lock. A file of several pipelines is compared as a whole."""
    try:
        reading = load_lock(lock_path(workspace))
        lock = require_lock(reading) if reading is not None else None
    except QuireError as error:
        return LockState("unreadable", problem=str(error))
    return LockState("none") if lock is None else _compared(workspace, path, lock)


def _compared(workspace: Workspace, path: Path, lock: Lock) -> LockState:
    facts = LockFacts.with_lock(workspace, lock)
    changes: list[Change] = []
    is_new = False
    for document in facts.documents([path]):
        now = facts.facts(document)
        if now is not None:
            is_new = is_new or document.key not in lock.documents
            changes += compare_document(document.key, lock.documents.get(document.key), now, facts.tools)
    if is_new:
        return LockState("new", tuple(changes), assumed=lock.assumed)
    wider = any(change.direction == "wider" for change in changes)
    standing: Standing = "wider" if wider else "stale" if changes else "equal"
    return LockState(standing, tuple(changes), assumed=lock.assumed)


_MOST_TOLD = 20


def locked_lock(settings: Settings) -> Lock:
    """Return the lock that runs are held to. Raises `Refused` if there is none that can be read."""
    try:
        reading = load_lock(lock_path(settings.workspace))
        if reading is not None:
            lock = require_lock(reading)
            _, message = signature_problem(reading.source.text, settings)
            if message:
                raise Refused(f"[trust] locked asks for a lock whose signature holds: {message}")
            return lock
    except CannotStart as error:
        raise Refused(f"[trust] locked asks for a lock, and it cannot be read: {error}") from None
    raise Refused(f"[trust] locked requires {FILE_NAME}, which does not exist: quire lock writes it, for a review")


def require_locked(settings: Settings, document: Document) -> None:
    """Raise `Refused`, with the differences, if a document may do, ask for or cost more than it was locked with."""
    if not settings.trust.locked or settings.rehearsal:
        return
    if is_on_shelf(document.name, settings.user):
        return
    lock = locked_lock(settings)
    facts = LockFacts.with_lock(settings.workspace, lock)
    path = Path(document.name)
    key, is_file = facts.key_of(path), path.is_file()
    if key is None and is_file:
        return
    if key is None or not is_file:
        raise Refused(
            f"{document.name} is not in a file, so it is not in {FILE_NAME}, and [trust] locked asks for that"
        )
    named = f"{key}#{document.declared}"
    key = named if document.declared and named in lock.documents else key
    if key not in lock.documents:
        raise Refused(f"{key} is not in {FILE_NAME}, so its permissions were never reviewed: quire lock {key}")
    now = facts.facts(LockableDocument(key, document.source, document.runnable()))
    changes = compare_document(key, lock.documents[key], now, lock.tools)
    wider = [change for change in changes if change.direction == "wider"]
    if wider:
        lines = [f"  {told(change)}" for change in wider[:_MOST_TOLD]]
        lines += [f"  and {len(wider) - _MOST_TOLD} more"] if len(wider) > _MOST_TOLD else []
        raise Refused(
            f"{key} may do or cost more than {FILE_NAME} says:\n" + "\n".join(lines) + f"\n"
            f"look at the change, then: quire lock {key}"
        )
