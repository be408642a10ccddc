"""The lock of a workspace on disk: `quire.lock` in its folder, read whole and replaced whole."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from quire.analysis.lock.file import FILE_NAME, Lock, is_signed
from quire.analysis.lock.read import MOST_BYTES, MOST_FACTS, LockReading, read_lock
from quire.errors import CannotStart, Unreadable
from quire.source import Source, read_source, relative_to_here, written_beside

if TYPE_CHECKING:
    from quire.trust.signatures import Verification
    from quire.workspace.locate import Workspace
    from quire.workspace.settings import Settings


def lock_path(workspace: Workspace) -> Path:
    return workspace.folder / FILE_NAME


def load_lock(path: Path, named: Collection[str] | None = None) -> LockReading | None:
    """Return the lock in a file; None if there is no file. `named` are the documents whose entries are needed, if these
    are not all. Raises `Unreadable` for one that is not a text."""
    if not path.exists() and not path.is_symlink():
        return None
    return read_lock(read_source(Path(relative_to_here(path) or path), limit=MOST_BYTES), named)


def load_old_lock(path: Path) -> LockReading:
    """Return the lock of a file that the user names. An empty file is an empty lock: the first pull request with a lock
    has nothing to compare with. Raises `Unreadable`."""
    try:
        found = load_lock(path)
    except Unreadable as error:
        if error.kind != "empty":
            raise
        return LockReading(Source.of("", str(path)), Lock())
    if found is None:
        raise Unreadable(path, "does not exist")
    return found


def require_lock(reading: LockReading) -> Lock:
    """Return the lock. Raises `CannotStart` with the first problem and its line if it cannot be read."""
    if reading.lock is not None:
        return reading.lock
    first = reading.diagnostics[0]
    line = reading.source.position(first.span.start).line
    raise CannotStart(f"{reading.source.name}:{line}: {first.code.id} {first.message}; {first.help}")


def save_lock(path: Path, lock: Lock) -> bool:
    """Write the lock, unless the file already says the same; return whether it was written. Raises `CannotStart`."""
    from quire.analysis.lock.write import written

    text = written(lock)
    if len(text.encode()) > MOST_BYTES or text.count("\n") > MOST_FACTS:
        raise CannotStart(
            f"{path} would be larger than a lock can be ({MOST_FACTS:,} lines, {MOST_BYTES:,} bytes): "
            f"lock parts of the workspace, each in a folder with a quire.toml of its own"
        )
    try:
        if path.is_file() and not path.is_symlink() and _unsigned(path.read_bytes()) == text.encode():
            return False  # a signature of it still holds
        mode = path.stat().st_mode & 0o777 if path.is_file() else 0o644
        with written_beside(path, text.encode(), mode) as new:
            new.replace(path)
    except OSError as error:
        raise CannotStart(f"{path} cannot be written: {error.strerror or error}") from None
    return True


def _unsigned(stored: bytes) -> bytes:
    line, _, rest = stored.partition(b"\n")
    return rest if is_signed(line.decode("utf-8", "replace")) else stored


def signature_problem(text: str, settings: Settings) -> tuple[Verification, str]:
    """Return the verdict on the signature of a lock, with the sentence about it; `OK` for a lock without one, because
    no lock has to be signed."""
    from quire.trust.signatures import Verification, verify_text
    from quire.trust.trusted_keys import TrustedKeys

    if not is_signed(text):
        return Verification.OK, ""
    verdict = verify_text(text, "lock", FILE_NAME, TrustedKeys.load(settings), syntax="yaml")
    return verdict.outcome, verdict.message
