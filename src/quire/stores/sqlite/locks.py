"""One operating-system lock for each run that is being driven.

The kernel drops the lock when its process dies, however it dies, so a dead owner is noticed at once, without time-outs.
The lock only shows which owner is alive; the epoch keeps a stale owner from writing.

A lock belongs to an open file, not to a name. Lock files are removed when they are dropped, so after locking, a process
has to check that the name still leads to its file: the owner may have removed it between opening and locking. A child
that is forked without exec would inherit the lock; files opened by Python are closed on exec.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

from quire.patterns import late_pattern
from quire.source import try_lock
from quire.values import sha256

_PLAIN = late_pattern(r"[a-z0-9][a-z0-9_-]{0,99}")
_TRIES = 50

if sys.platform == "win32":
    import msvcrt

    def _has_owner(file: int) -> bool:
        """Tell whether another process holds the lock. Windows has no shared locks here, so two readers that look at
        the same moment can take each other for the owner."""
        if not try_lock(file):
            return True
        os.lseek(file, 0, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)
        return False

else:

    def _has_owner(file: int) -> bool:
        """Tell whether another process holds the lock. Uses a shared lock, so that readers do not take each other for
        the owner."""
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(file, fcntl.LOCK_UN)
        return False


class OwnerLocks:
    """The locks that this store holds, and a check of the locks of others."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, int] = {}

    def take(self, run: str) -> bool:
        """Take the lock of a run; return False if any process holds it, this one included."""
        if run in self._files:
            return False
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(run)
        for _ in range(_TRIES):
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            if try_lock(file):
                if _leads_to(path, file):
                    self._files[run] = file
                    return True
                os.close(file)
                continue
            owned = _has_owner(file)
            os.close(file)
            if owned:
                return False
            # A reader was just looking: it holds its shared lock for microseconds.
            time.sleep(0.001)
        return False

    def drop(self, run: str) -> None:
        file = self._files.pop(run, None)
        if file is None:
            return
        path = self._path(run)
        # If the folder was emptied, the name may lead to another owner's lock by now: that file stays.
        ours = _leads_to(path, file)
        if sys.platform == "win32":
            os.close(file)
            if ours:
                with contextlib.suppress(OSError):
                    path.unlink()
        else:
            if ours:
                with contextlib.suppress(OSError):
                    path.unlink()
            os.close(file)

    def evict(self, run: str) -> None:
        """Remove the lock file of another process, so that the next owner creates a new file of the same name."""
        if run not in self._files:
            with contextlib.suppress(OSError):
                self._path(run).unlink()

    def drop_all(self) -> None:
        for run in tuple(self._files):
            self.drop(run)

    def alive(self, run: str) -> bool:
        """Tell whether a living process holds the run."""
        if run in self._files:
            return True
        try:
            file = os.open(self._path(run), os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
        except FileNotFoundError:
            return False
        except OSError:
            # A file of another account that cannot be opened: assume that its owner is alive.
            return True
        try:
            return _has_owner(file)
        finally:
            os.close(file)

    def _path(self, run: str) -> Path:
        name = run if _PLAIN.fullmatch(run) else sha256(run.encode("utf-8", "replace"))
        return self._folder / f"{name}.lock"


def _leads_to(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False
