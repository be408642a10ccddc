"""One lock of the operating system for each run that is being driven.

The kernel drops it when its process dies, however it dies, so a dead owner is seen at once and nobody has to
guess by time-outs. The lock only says who is alive; what keeps a stale owner from writing is the epoch.

A lock belongs to an open file, not to a name. Files are removed when they are let go, so whoever locks one has
to look whether the name still leads to it: between opening and locking the owner may have removed it. A child
that is forked without exec would inherit the lock; files opened by Python are closed on exec.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
import time
from pathlib import Path

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
_TRIES = 50

if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: int) -> bool:
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _has_owner(file: int) -> bool:
        """There are no shared locks here, so two readers that look at the same moment can take each other for it."""
        if not _try_lock(file):
            return True
        os.lseek(file, 0, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)
        return False

else:
    import fcntl

    def _try_lock(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _has_owner(file: int) -> bool:
        """Looks with a shared lock, so that readers do not take each other for the owner."""
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(file, fcntl.LOCK_UN)
        return False


class OwnerLocks:
    """The locks that this store holds, and a look at those of others."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, int] = {}

    def take(self, run: str) -> bool:
        """False when somebody holds it, be it this very process."""
        if run in self._files:
            return False
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(run)
        for _ in range(_TRIES):
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            if _try_lock(file):
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
        # The name may lead to another owner's lock by now, if somebody emptied the folder: that one stays.
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
        """Makes the lock of another one's no obstacle: the next who takes it makes a file of the same name."""
        if run not in self._files:
            with contextlib.suppress(OSError):
                self._path(run).unlink()

    def drop_all(self) -> None:
        for run in tuple(self._files):
            self.drop(run)

    def alive(self, run: str) -> bool:
        """Whether some living process holds the run."""
        if run in self._files:
            return True
        try:
            file = os.open(self._path(run), os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
        except FileNotFoundError:
            return False
        except OSError:
            # Somebody else's file that we may not even look at: not ours to call dead.
            return True
        try:
            return _has_owner(file)
        finally:
            os.close(file)

    def _path(self, run: str) -> Path:
        name = run if _PLAIN.fullmatch(run) else hashlib.sha256(run.encode("utf-8", "replace")).hexdigest()
        return self._folder / f"{name}.lock"


def _leads_to(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False
