"""Connections to one PostgreSQL database: address, text encoding, retries and error messages.

One connection is the owner's: it holds the locks of the runs that this store drives and carries their writes, so being
alive and being able to write are the same thing. The other connections are for reading and for short transactions about
runs that another process may drive.

Work is a function of a connection that may be called again. When a connection breaks, the outcome of a transaction
under way is unknown: the second call gets `again=True` and has to find out. No message contains a password, or text of
the address that might be part of one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal, TypeAlias, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from quire.errors import StoreError, StoreFull
from quire.stores.postgres.statements import (
    HAS_TABLES,
    MIGRATIONS,
    Connection,
    PostgresStatements,
    checked_version,
    migrate,
)

_AWAY = ("08", "57")
"""The classes of codes for a broken connection and for a server that is stopping, starting or was told to interrupt."""

_AGAIN = frozenset({"25P03", "25P04", "40001", "40P01", "53300"})
"""Codes after which a retry helps: the server gave up a transaction or has too many connections, and nothing was
written."""

_REFUSED = (
    ("password authentication failed", "{place} refuses the user or the password: check both, or set PGPASSWORD"),
    ("no password supplied", "{place} wants a password: give it in the URL, in PGPASSWORD or in ~/.pgpass"),
    (
        "no pg_hba.conf entry",
        "{place} refuses connections from here: ask its administrator to allow this host and user",
    ),
    ('role "', "{place} does not know this user: create the role, or name another one in the URL"),
    ('database "', "{place} does not exist: create the database, or name another one in the URL"),
    ("permission denied for database", "{place} may not be used by this user: grant CONNECT on the database"),
)

_MEANINGS = {
    "23": "{place} refuses a row that contradicts what it holds ({code})",
    "25006": "{place} is read-only: name the server that takes writes, not a copy of it",
    "42501": "{place} does not let this user do that: grant it CREATE on the schema and all rights on Quire's tables",
    "53100": "no room left on the disk of {place}: free some and try again (nothing was half written)",
    "53300": "{place} has no connection left: close some, or raise max_connections",
    "53": "{place} has run out of memory or of something else ({code}): nothing was half written, try again",
    "3F000": "{place} has no schema to put tables into: create the one that search_path names",
    "42P01": "{place} has lost tables of Quire: restore them from a copy",
}


def is_away(error: psycopg.Error) -> bool:
    """Tell whether the same work may succeed later on another connection. A refusal stays a refusal however often it is
    retried. While a connection is being made, errors have only a text, later ones have codes."""
    code = error.sqlstate
    if code is not None:
        return code.startswith(_AWAY) or code in _AGAIN
    return isinstance(error, psycopg.OperationalError) and _refusal(error) is None


def explain(error: psycopg.Error, place: str) -> StoreError:
    """Return the failure as one line that names the database and says what to do."""
    if (refusal := _refusal(error)) is not None:
        return StoreError(refusal.format(place=place))
    code = error.sqlstate
    if code is None and not isinstance(error, psycopg.OperationalError):
        return StoreError(f"{place} cannot be used: {_said(error)}")
    if code is None or code.startswith(_AWAY):
        return StoreError(f"{place} does not answer: check that the server runs and can be reached ({_said(error)})")
    meaning = _MEANINGS.get(code) or _MEANINGS.get(code[:2]) or "{place} cannot do that ({code}: {said})"
    kind = StoreFull if code == "53100" else StoreError
    return kind(meaning.format(place=place, code=code, said=_said(error)))


def _refusal(error: psycopg.Error) -> str | None:
    if error.sqlstate is not None or not isinstance(error, psycopg.OperationalError):
        return None
    text = str(error)
    if "FATAL" not in text and "fe_sendauth" not in text:
        return None
    return next((meaning for words, meaning in _REFUSED if words in text), None)


def _said(error: psycopg.Error) -> str:
    """Return the end of the first line. The part before it names hosts and sockets, which the message already
    contains."""
    lines = str(error).strip().splitlines()
    last = lines[0].rpartition("failed: ")[2] if lines else type(error).__name__
    return last.removeprefix("FATAL:").strip()


_MARK, _ZERO = "\ufdd1", "\ufdd0"
_MARKED = re.compile(f"{_MARK}([{_MARK}{_ZERO}])")
_MARK_BYTES = _MARK.encode()


class _TextDumper(Dumper):
    """Write NUL, the one character that PostgreSQL's text cannot hold, as two Unicode noncharacters. Sends no type with
    a text, like psycopg's own dumper: the statement knows the type of each parameter."""

    def dump(self, obj: str) -> Buffer:
        if "\x00" in obj or _MARK in obj:
            obj = obj.replace(_MARK, _MARK + _MARK).replace("\x00", _MARK + _ZERO)
        return obj.encode()


class _TextLoader(Loader):
    def load(self, data: Buffer) -> str:
        raw = bytes(data)
        text = raw.decode()
        if _MARK_BYTES in raw:
            return _MARKED.sub(lambda match: "\x00" if match[1] == _ZERO else _MARK, text)
        return text


def adapt_text(connection: AsyncConnection) -> None:
    connection.adapters.register_dumper(str, _TextDumper)
    connection.adapters.register_loader("text", _TextLoader)


# A broken connection is handled here. psycopg's log messages about it go to handlers that the program sets up, not to
# stderr.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

PATIENCE_SECONDS = 60.0
_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
_READERS = 4

# Settings of a session: how durable a finished commit is; when the server gives up a client that is gone (a host that
# vanished would hold its locks for hours otherwise) or an idle transaction.
_SESSION = """
    SELECT set_config('synchronous_commit', %s, FALSE), set_config('client_min_messages', 'warning', FALSE),
        set_config('idle_in_transaction_session_timeout', '20s', FALSE),
        set_config('tcp_keepalives_idle', '10', FALSE), set_config('tcp_keepalives_interval', '5', FALSE),
        set_config('tcp_keepalives_count', '3', FALSE), set_config('tcp_user_timeout', '20000', FALSE)
"""
_DEFAULTS = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}

T = TypeVar("T")
Work: TypeAlias = Callable[[Connection, bool], Awaitable[T]]
Retake: TypeAlias = Callable[[Connection], Awaitable[None]]


class Address:
    """A connection URL of libpq. `place` is the database as messages name it, without the password."""

    def __init__(self, url: str) -> None:
        try:
            parts = {key: str(value) for key, value in conninfo_to_dict(url).items() if value is not None}
        except psycopg.ProgrammingError:
            raise _bad_url() from None  # its text would repeat pieces of the URL
        host, port = parts.get("host", ""), parts.get("port", "")
        # A password with a plain @ or / in it is cut in pieces, and a piece would be taken for the host.
        if "@" in host + parts.get("dbname", "") or (port and not port.replace(",", "").isdigit()):
            raise _bad_url()
        self.conninfo = make_conninfo(url, **{key: value for key, value in _DEFAULTS.items() if key not in parts})
        where = host if host and not host.startswith("/") else "localhost"
        name = parts.get("dbname") or parts.get("user") or ""
        self.place = f"postgresql://{where}{':' + port if port else ''}/{name}"


def _bad_url() -> StoreError:
    return StoreError(
        "the URL of the store is not a PostgreSQL URL: write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, "
        "with special characters of the password as %40 (@), %2F (/), %3A (:)"
    )


class Server:
    """The connections of one store to its database, with retries while the server is away. `retake` is called with each
    new owner's connection, because the locks went with the previous one."""

    def __init__(
        self, address: Address, *, durability: Literal["power", "process"], patience: float, retake: Retake
    ) -> None:
        self.place = address.place
        self._conninfo = address.conninfo
        self._commit = "on" if durability == "power" else "off"
        self._patience = patience
        self._retake = retake
        self._name = f"quire {secrets.token_hex(6)}"
        self._owner: Connection | None = None
        self._owned_before = False
        self._idle: list[Connection] = []
        self._met = self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn = asyncio.Lock()
        self._room = asyncio.Semaphore(_READERS)

    async def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Tables of the schema before this one are read as they are."""

        async def read(connection: Connection, again: bool) -> list[tuple[Any, ...]]:
            try:
                whole = sql if self._met else PostgresStatements.of_schema_before(sql)
                cursor = await connection.execute(whole, parameters)
            except psycopg.errors.UndefinedTable:
                if self._met:
                    raise
                return []
            return await cursor.fetchall() if cursor.description else []

        return await self._patiently(self._reader, read, looks=True)

    async def is_current(self) -> bool:
        """Tell whether the tables have the schema of now. Creates those of an empty database."""
        await self.rows("SELECT 1")
        return self._met

    async def transaction(self, work: Work[T]) -> T:
        """Run the work as one transaction on a connection that holds no locks."""
        return await self._patiently(self._reader, _whole(work))

    async def as_owner(self, work: Work[T]) -> T:
        """Run the work on the owner's connection, one piece at a time. Cancelling the caller does not interrupt it
        half-way."""
        return await asyncio.shield(asyncio.ensure_future(self.as_owner_unshielded(work)))

    async def as_owner_unshielded(self, work: Work[T]) -> T:
        """Do the same without a shield, for a task that is never cancelled."""
        return await self._patiently(self._owners, work)

    async def owner_transaction(self, work: Work[T]) -> T:
        return await self.as_owner(_whole(work))

    async def close(self) -> None:
        self._closed = True
        self._same_loop()
        async with self._turn:
            owner, self._owner = self._owner, None
        for connection in (owner, *self._idle):
            if connection is not None:
                await _close(connection)
        self._idle.clear()

    async def _patiently(
        self, borrowed: Callable[[], AbstractAsyncContextManager[Connection]], work: Work[T], *, looks: bool = False
    ) -> T:
        deadline, again, tries = 0.0, False, 0
        while True:
            try:
                async with borrowed() as connection:
                    if not self._met and not (
                        looks and await checked_version(connection, self.place) == len(MIGRATIONS) - 1
                    ):
                        await migrate(connection, self.place)
                        self._met = True
                    return await work(connection, again)
            except psycopg.Error as error:
                now = time.monotonic()
                deadline = deadline or now + self._patience
                # If this server has never been reached, fail at once instead of waiting for it.
                if not self._met or not is_away(error) or now >= deadline or self._closed:
                    raise explain(error, self.place) from error
            again = True
            await asyncio.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
            tries += 1

    @asynccontextmanager
    async def _reader(self) -> AsyncIterator[Connection]:
        self._same_loop()
        async with self._room:
            connection = self._idle.pop() if self._idle else await self._connect(self._name)
            try:
                yield connection
            except psycopg.Error:
                await self._give_back(connection)
                raise
            except BaseException:
                # The state of the connection is unknown.
                await _close(connection)
                raise
            await self._give_back(connection)

    async def _give_back(self, connection: Connection) -> None:
        """Put a connection back into the pool. A broken one takes the idle ones along: they go to the same server, and
        each would fail once more."""
        if connection.closed or self._closed:
            broken, self._idle = [connection, *self._idle], []
            for lost in broken:
                await _close(lost)
        else:
            self._idle.append(connection)

    @asynccontextmanager
    async def _owners(self) -> AsyncIterator[Connection]:
        self._same_loop()
        async with self._turn:
            if self._owner is None or self._owner.closed:
                self._owner = await self._connect_owner()
            connection = self._owner
            try:
                yield connection
            except BaseException:
                if connection.closed:
                    self._owner = None
                    await _close(connection)
                raise

    async def _connect_owner(self) -> Connection:
        name = f"{self._name} owner"
        connection = await self._connect(name)
        try:
            if self._owned_before:
                await connection.execute(PostgresStatements.END_PREDECESSORS, (name,))
            await self._retake(connection)
        except BaseException:
            await _close(connection)
            raise
        self._owned_before = True
        return connection

    async def _connect(self, name: str) -> Connection:
        if self._closed:
            raise StoreError(f"{self.place} has been closed")
        connection = await AsyncConnection.connect(self._conninfo, autocommit=True, application_name=name)
        try:
            adapt_text(connection)
            await connection.execute(_SESSION, (self._commit,))
        except BaseException:
            await _close(connection)
            raise
        return connection

    def _same_loop(self) -> None:
        """Make new locks if the event loop has changed. Connections outlive an event loop; asyncio locks do not."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._turn, self._room = loop, asyncio.Lock(), asyncio.Semaphore(_READERS)


def _whole(work: Work[T]) -> Work[T]:
    async def transaction(connection: Connection, again: bool) -> T:
        async with connection.transaction():
            return await work(connection, again)

    return transaction


async def _close(connection: Connection) -> None:
    with contextlib.suppress(psycopg.Error, OSError):
        await connection.close()


_FACTS = """
    SELECT extract(epoch FROM clock_timestamp())::float8, current_setting('max_connections')::int
        - current_setting('superuser_reserved_connections')::int
        - (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend')
"""


def look(url: str) -> tuple[int, float, int, list[tuple[Any, ...]]]:
    """Return the schema of a database (0 without tables), its clock, the connections that are left, and the reports of
    processes. Changes nothing. Raises `StoreError`."""
    address = Address(url)
    try:
        with psycopg.connect(address.conninfo, autocommit=True, connect_timeout=3) as connection:
            tables = connection.execute(HAS_TABLES).fetchall()
            versions = connection.execute("SELECT version FROM quire_schema").fetchall() if tables else [(0,)]
            ((clock, left),) = connection.execute(_FACTS).fetchall()
            is_current = versions == [(len(MIGRATIONS),)]
            reports = connection.execute(PostgresStatements.PROCESSES).fetchall() if is_current else []
    except psycopg.Error as error:
        raise explain(error, address.place) from error
    return versions[0][0], clock, left, reports
