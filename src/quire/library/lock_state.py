"""Tell how one document stands to the lock of its workspace: as it was locked, changed, or allowed to do more.

Nothing is started, and no price list is loaded: the tools and prices are those of the lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quire.analysis.lock.compare import Change, compare_document
from quire.errors import QuireError
from quire.library.lock_facts import LockFacts, pinned_capability
from quire.library.lock_file import load_lock, lock_path, require_lock

if TYPE_CHECKING:
    from quire.analysis.lock.file import Lock
    from quire.workspace.locate import Workspace

Standing = Literal["none", "unreadable", "new", "equal", "stale", "wider"]
"""`none`: there is no lock. `unreadable`: it cannot be read. `new`: it has no entry of the document. `stale`: something
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
    known = [name for key in facts.tools if (name := pinned_capability(key))]
    changes: list[Change] = []
    is_new = False
    for one in facts.documents([path]):
        now = facts.facts(one)
        if now is not None:
            is_new = is_new or one.key not in lock.documents
            changes += compare_document(one.key, lock.documents.get(one.key), now, known)
    if is_new:
        return LockState("new", tuple(changes), assumed=lock.assumed)
    wider = any(change.direction == "wider" for change in changes)
    standing: Standing = "wider" if wider else "stale" if changes else "equal"
    return LockState(standing, tuple(changes), assumed=lock.assumed)
