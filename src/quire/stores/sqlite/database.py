"""One SQLite file: opening it, holding a transaction, explaining its errors, and reading it where nothing may be
written.

One connection does everything. In WAL mode readers never wait for a writer of another process. Within this process no
transaction is left open while something else runs, because none of them spans an `await`.

A file of an older schema is migrated by the first write, after a copy was made beside it. Until then it is read from a
private copy that is migrated instead, so that looking changes nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from quire.errors import StoreError, StoreFull, StoreGone, StoreLocked
from quire.os_flags import CLOSES, NO_LINK
from quire.stores.sqlite.statements import MIGRATIONS, migrate

if TYPE_CHECKING:
    from quire.stores.sqlite.archive import OlderCopy

_CODES = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_FULL)
_INDEX = (sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_WRITE)
_ERRNOS = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT)

Rows = list[tuple[Any, ...]]

_FOLDER = ".quire"
_SIDES = ("", "-wal", "-shm", "-journal")


def only_writing_fails(error: BaseException | None) -> bool:
    """Tell whether reading may still work despite this error."""
    if isinstance(error, OSError):
        return error.errno in _ERRNOS
    code: int = getattr(error, "sqlite_errorcode", -1)
    return code in _INDEX or (code >= 0 and code & 0xFF in _CODES)


def read_anyway(path: Path, sql: str, parameters: Sequence[Any], seconds: float) -> Rows | None:
    """Return the rows of a query of a file that cannot be opened for writing, or None if no way of opening works.

    SQLite keeps an index of its log in a file beside the database, and creates that file even to read. Without
    permission to write, or without disk space, other ways are tried, one for each case. The file is opened again each
    time, because it may become writable again.
    """
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
    """Open read-only. Works if the index exists already because another process has the database open."""
    return _connect(path, "mode=ro", seconds)


def _unchanging(path: Path, log: Path, seconds: float) -> sqlite3.Connection:
    """Open without index and without log. Only allowed without a log, that is, if no process has the database
    open."""
    if log.exists():
        raise FileExistsError(errno.EEXIST, "the log would not be read")
    return _connect(path, "mode=ro&immutable=1", seconds)


def _alone(path: Path, log: Path, seconds: float) -> sqlite3.Connection:
    """Open with the index in memory. Needs permission to write, but no disk space."""
    connection = _connect(path, "mode=rw", seconds)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    return connection


def _connect(path: Path, how: str, seconds: float) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=seconds, isolation_level=None)


Durability: TypeAlias = Literal["power", "process"]
"""The failure that a finished write survives: loss of power, or only the death of the process (much faster)."""

LOG_PAGES = 100
"""The number of pages after which the log is written over from its beginning, with durability "power". Syncing a
growing file costs twice as much as syncing one that does not grow, so a short log pays off: with SQLite's own 1,000 a
journaled step costs a third more. Without syncs nothing is gained."""

Parameters: TypeAlias = Sequence[Any]

_KINDS = {sqlite3.SQLITE_BUSY: StoreLocked, sqlite3.SQLITE_LOCKED: StoreLocked, sqlite3.SQLITE_FULL: StoreFull}
_MEANINGS = {
    sqlite3.SQLITE_BUSY: "{path} is locked by another process: try again when it has finished",
    sqlite3.SQLITE_LOCKED: "{path} is locked by another process: try again when it has finished",
    sqlite3.SQLITE_FULL: "no room left on the disk of {path}: free some and try again (nothing was half written)",
    sqlite3.SQLITE_READONLY: "{path} is read-only: make the file and its folder writable",
    sqlite3.SQLITE_PERM: "{path} may not be used by this account: check the permissions of the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "{path} cannot be opened: check that its folder exists and can be written",
    sqlite3.SQLITE_CORRUPT: "{path} is damaged: restore it from a copy, or move it away to start with a new one",
    sqlite3.SQLITE_NOTADB: "{path} is not a database: restore it from a copy, or move it away to start with a new one",
    sqlite3.SQLITE_IOERR: "{path} cannot be read or written: check the disk and its quota ({detail})",
    sqlite3.SQLITE_CONSTRAINT: "{path} refuses a row that contradicts what it holds ({detail})",
}


def explain(error: sqlite3.Error | OSError, path: Path) -> StoreError:
    """Return the failure as one line that names the file and says what to do."""
    if isinstance(error, OSError):
        where = error.filename or path
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return StoreFull(_MEANINGS[sqlite3.SQLITE_FULL].format(path=where))
        if error.errno in (errno.EACCES, errno.EPERM):
            return StoreError(_MEANINGS[sqlite3.SQLITE_PERM].format(path=where))
        if error.errno == errno.EROFS:
            return StoreError(_MEANINGS[sqlite3.SQLITE_READONLY].format(path=where))
        return StoreError(f"{where} cannot be used for the store: {error.strerror or error}")
    code: int = getattr(error, "sqlite_errorcode", -1)
    if code == sqlite3.SQLITE_IOERR_SHMSIZE:
        code = sqlite3.SQLITE_FULL  # the index of the log could not grow
    if isinstance(error, sqlite3.OperationalError) and "Could not decode to UTF-8" in str(error):
        code = sqlite3.SQLITE_CORRUPT  # Quire writes no other texts
    meaning = _MEANINGS.get(code & 0xFF, "{path} cannot be used: {detail}") if code >= 0 else "{path}: {detail}"
    name: str = getattr(error, "sqlite_errorname", "")
    kind = _KINDS.get(code & 0xFF, StoreError) if code >= 0 else StoreError
    return kind(meaning.format(path=path, detail=f"{name}: {error}" if name else error))


class Database:
    """A SQLite file that is opened when first needed. Belongs to the thread that opens it."""

    def __init__(self, path: Path, *, durability: Durability, busy_timeout: float, read_only: bool = False) -> None:
        self.path = path
        self._durability = durability
        self._busy_timeout = busy_timeout
        self._read_only = read_only
        self._connection: sqlite3.Connection | None = None
        self._file = (0, 0)
        """Device and number of the file that is open."""
        self.older: OlderCopy | None = None
        self._closed = False

    def exists(self) -> bool:
        if self._connection is not None:
            return True
        try:
            _require_folder(self.path.parent)
            return self.path.exists()
        except OSError as error:
            # A folder that this account may not search.
            raise explain(error, self.path) from error

    def is_current(self) -> bool:
        """Tell whether the file exists and has the schema of now."""
        return self.exists() and (self._connection is not None or not _is_older(self.path))

    def connection(self) -> sqlite3.Connection:
        if self._connection is None:
            if self._closed:
                raise StoreError(f"{self.path} has been closed")
            try:
                self._connection = self._open()
                self._file = _identity(self.path)
            except (sqlite3.Error, OSError) as error:
                raise explain(error, self.path) from error
        elif _identity(self.path) != self._file:
            # SQLite would continue with a file that no longer has a name: everything written to it would be lost.
            raise StoreGone(f"{self.path} was removed or replaced while it was in use: start Quire again")
        return self._connection

    # The rows of sqlite3 are untyped; `quire.stores.row_decoder` gives them their types.
    def rows(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query. A missing file has no rows, and reading does not create it.

        If the file cannot be opened for writing, it is read without.
        """
        if not self.exists():
            return []
        try:
            connection = self._copy_of_older() or self.connection()
            try:
                return connection.execute(sql, parameters).fetchall()
            except sqlite3.Error as error:
                raise explain(error, self.path) from error
        except StoreError as failure:
            if only_writing_fails(failure.__cause__) and not self._read_only:
                rows = read_anyway(self.path, sql, parameters, self._busy_timeout)
                if rows is not None:
                    return rows
            raise

    @contextmanager
    def to_copy(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection through which the file can be copied, with any schema."""
        if self._connection is not None or not _is_older(self.path):
            yield self.connection()
            return
        try:
            with closing(self._open_file()) as connection:
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise explain(error, self.path) from error

    def _copy_of_older(self) -> sqlite3.Connection | None:
        """Return a migrated copy of a file of an older schema, as it is now; None if the file can be read itself."""
        if self._connection is not None or self._read_only or self._closed or not _is_older(self.path):
            return None
        if self.older is None:
            from quire.stores.sqlite.archive import OlderCopy

            self.older = OlderCopy(self)
        return self.older.connection()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit everything in the block or nothing. The write lock is taken first, so that values read inside stay
        true until the end."""
        connection = self.connection()
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        except BaseException as error:
            self._undo(connection)
            if isinstance(error, sqlite3.Error):
                raise explain(error, self.path) from error
            raise

    def close(self) -> None:
        self._closed = True
        if self.older is not None:
            self.older.drop()
        if self._connection is not None:
            connection, self._connection = self._connection, None
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _undo(self, connection: sqlite3.Connection) -> None:
        if not connection.in_transaction:
            return
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:
            # Closing rolls back as well; the next use opens the file again.
            self._connection = None
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _open(self) -> sqlite3.Connection:
        return self._open_to_read() if self._read_only else self._open_to_write()

    def _open_to_read(self) -> sqlite3.Connection:
        """Open the file without creating or changing anything, the files beside it included. A file that an older Quire
        has written cannot be read so."""
        connection = self._open_file()
        try:
            connection.execute("PRAGMA query_only = ON")
            migrate(connection, self.path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_file(self) -> sqlite3.Connection:
        _require_folder(self.path.parent)
        _require_file(self.path)
        if not stat.S_ISREG(os.lstat(self.path).st_mode):
            raise StoreError(f"{self.path} is not a file")
        # The index is not made anew: without it SQLite reads the log into memory.
        log = self.path.with_name(f"{self.path.name}-wal")
        how = "mode=ro&readonly_shm=1" if log.exists() else "mode=ro&immutable=1"
        connection = _connect(self.path, how, self._busy_timeout)
        connection.execute("PRAGMA trusted_schema = OFF")
        return connection

    def _open_to_write(self) -> sqlite3.Connection:
        _prepare_folder(self.path)
        connection = sqlite3.connect(self.path, timeout=self._busy_timeout, isolation_level=None)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            self._use_wal(connection)
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._durability == 'power' else 'NORMAL'}")
            if self._durability == "power":
                connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
                # This only matters on macOS: there a plain fsync leaves the data in the drive's cache.
                connection.execute("PRAGMA fullfsync = ON")
            migrate(connection, self.path, keep=self._keep)
        except BaseException:
            connection.close()
            raise
        return connection

    def _keep(self, version: int) -> None:
        from quire.stores.sqlite.archive import keep_older

        keep_older(self.path, version)

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """Switch to WAL mode, with retries: two processes that switch a new file at the same moment get "locked"
        without SQLite's own waiting."""
        if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
            return
        deadline = time.monotonic() + self._busy_timeout
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL").fetchone()
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.002)


def _is_older(path: Path) -> bool:
    """Tell whether the header of a file names an older schema; the log beside it may have a newer one."""
    try:
        with path.open("rb") as file:
            return 0 < int.from_bytes(file.read(64)[60:], "big") < len(MIGRATIONS)
    except OSError:
        return False  # opening it says why


def _identity(path: Path) -> tuple[int, int]:
    """Return device and number of a file; zeros if it does not exist."""
    try:
        file = path.stat()
    except OSError:
        return (0, 0)
    return (file.st_dev, file.st_ino)


def _require_folder(folder: Path) -> None:
    """Raise `StoreError` if `.quire` is a link or not a folder. A cloned repository can contain it as a link to any
    place that the user may write."""
    if folder.name != _FOLDER:
        return
    try:
        mode = os.lstat(folder).st_mode
    except OSError:
        return
    if not stat.S_ISDIR(mode):
        kind = "a link" if stat.S_ISLNK(mode) else "a file"
        raise StoreError(f"{folder} is {kind}, not a folder: remove it, so that runs are kept in a folder of their own")


def _prepare_folder(database: Path) -> None:
    """Create the folder of a database.

    A folder named `.quire` is kept out of version control and closed to other accounts; permissions that an older
    version left open are tightened.
    """
    folder = database.parent
    _require_folder(folder)
    made = not folder.exists()
    if folder.name != _FOLDER:
        folder.mkdir(parents=True, exist_ok=True)
        if made:
            _ignore(folder, 0o666)
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    _ignore(folder, 0o600)
    _tighten(folder, 0o700)
    _require_file(database)
    with contextlib.suppress(FileExistsError, PermissionError):
        os.close(os.open(database, os.O_CREAT | os.O_EXCL | os.O_RDWR | CLOSES, 0o600))
    # SQLite gives the files beside a database the mode of the database.
    for side in _SIDES:
        _tighten(folder / f"{database.name}{side}", 0o600)
    _tighten(folder / ".gitignore", 0o600)


def _tighten(path: Path, mode: int) -> None:
    """Remove the permissions of other accounts on a file. Errors are ignored, so a file that belongs to another account
    stays as it is."""
    with contextlib.suppress(OSError, NotImplementedError):
        file = os.lstat(path)
        if file.st_mode & 0o077 and not stat.S_ISLNK(file.st_mode):
            os.chmod(path, stat.S_IMODE(file.st_mode) & mode)  # noqa: PTH101


def _require_file(database: Path) -> None:
    for name in (*(database.name + side for side in _SIDES), "locks"):
        path = database.with_name(name)
        if path.is_symlink():
            raise StoreError(f"{path} is a link: remove it, so that runs are kept in the folder {_FOLDER} itself")


def _ignore(folder: Path, mode: int) -> None:
    with contextlib.suppress(OSError):
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | NO_LINK
        with os.fdopen(os.open(folder / ".gitignore", flags, mode), "w", encoding="utf-8") as file:
            file.write("*\n")
