"""Reading a database that cannot be opened as usual, since nothing may be written where it lies.

SQLite keeps an index of its log in a file beside the database, and makes that file even to read. Without leave to
write, or without room, there are other ways, each for a case of its own.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from quire.store.schema import migrate

_CODES = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_FULL)
_INDEX = (sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_WRITE)
_ERRNOS = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT)

Rows = list[tuple[Any, ...]]


def only_writing_fails(error: BaseException | None) -> bool:
    """Whether what went wrong may be no obstacle for somebody who only reads."""
    if isinstance(error, OSError):
        return error.errno in _ERRNOS
    code: int = getattr(error, "sqlite_errorcode", -1)
    return code in _INDEX or (code >= 0 and code & 0xFF in _CODES)


def read_anyway(path: Path, sql: str, parameters: Sequence[str | int | float | None], seconds: float) -> Rows | None:
    """What a query finds; None where there is no way. Opened anew each time: a writer may come back."""
    log = path.with_name(f"{path.name}-wal")
    for way in (_read_only, _unchanging, _alone):
        try:
            with closing(way(path, log, seconds)) as connection:
                migrate(connection, path)
                return connection.execute(sql, parameters).fetchall()
        except (sqlite3.Error, OSError):
            continue
    return None


def _read_only(path: Path, log: Path, seconds: float) -> sqlite3.Connection:
    """Works where the index is there already: somebody else has the database open."""
    return _connect(path, "mode=ro", seconds)


def _unchanging(path: Path, log: Path, seconds: float) -> sqlite3.Connection:
    """Needs no index, and reads no log: so only where there is none, that is, where nobody has it open."""
    if log.exists():
        raise FileExistsError(errno.EEXIST, "the log would not be read")
    return _connect(path, "mode=ro&immutable=1", seconds)


def _alone(path: Path, log: Path, seconds: float) -> sqlite3.Connection:
    """Keeps the index in memory. Needs leave to write, but no room."""
    connection = _connect(path, "mode=rw", seconds)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    return connection


def _connect(path: Path, how: str, seconds: float) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=seconds, isolation_level=None)
