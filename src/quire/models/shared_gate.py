"""Limits of a provider that several processes share: amounts per minute, and leased places for calls side by side.

The queue of a process stays in `rate_limits`; only its first call asks here. A row of a small database holds one limit:
in a file of the user, which may be lost, or beside the runs in PostgreSQL. One thread asks it, so that no event loop
waits for a lock or a server. Places of a dead process become free by themselves, because leases have to be renewed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from quire.models.choose import ProviderLimits

LEASE_SECONDS, RENEW_SECONDS, LOOK_SECONDS, PATIENCE = 30.0, 10.0, 0.2, 2.0
"""For how long a place is leased, how often leases are renewed, how often a process that waits looks again, and when
its run is told."""
ANSWER_SECONDS, AWAY_SECONDS = 1.0, 30.0
"""Seconds that the database has to answer, and for which it is not asked again otherwise."""
_CLOSE = 1e-6
_TABLE = """
    CREATE {} IF NOT EXISTS quire_gates (key TEXT PRIMARY KEY, calls DOUBLE PRECISION NOT NULL,
        tokens DOUBLE PRECISION NOT NULL, at DOUBLE PRECISION NOT NULL, places TEXT NOT NULL)
"""
# A new row was full at time 0.
_NEW = "INSERT INTO quire_gates VALUES (?, 0, 0, 0, '{}') ON CONFLICT (key) DO NOTHING"
_WRITE = "UPDATE quire_gates SET calls = ?, tokens = ?, at = ?, places = ? WHERE key = ?"
_READ = "SELECT calls, tokens, at, places, {} FROM quire_gates WHERE key = ?{}"
_SQLITE = "BEGIN IMMEDIATE", _READ.format("(julianday('now') - 2440587.5) * 86400", "")
_POSTGRES = "BEGIN", _READ.format("extract(epoch FROM clock_timestamp())::float8", " FOR UPDATE")


class SharedGate:
    """The limits under one key of a database, for calls that have passed the gate of this process. `key` names the
    account, `name` the provider for people."""

    def __init__(self, place: str, key: str, name: str, limits: ProviderLimits) -> None:
        self._place, self._key, self._name, self._limits = place, key, name, limits
        self._on_server = "://" in place
        self._connection: Any = None
        self._thread = ThreadPoolExecutor(1, "quire limits")
        """Asks the database, and finishes its work before the process ends."""
        self._held: tuple[str, ...] = ()
        """The places of this process."""
        self._renewal: threading.Timer | None = None
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._away_until = 0.0
        """The time until which the database is not asked, because it did not answer."""

    async def enter(self, run: str, tokens: float, on_wait: Callable[[str], None] | None = None) -> None:
        """Wait until a call fits; one call of this process asks at a time. If the database does not answer in a second,
        other processes are not counted for a while."""
        loop, tell = asyncio.get_running_loop(), on_wait or str
        telling = loop.call_later(PATIENCE, tell, f"waiting for {self._name}, which other processes use too")
        try:
            async with self._turns.setdefault(loop, asyncio.Lock()):
                while seconds := await self._ask(tokens, tell):  # noqa: ASYNC110  # other processes send no event
                    await asyncio.sleep(min(seconds, LOOK_SECONDS))
        finally:
            telling.cancel()

    def leave(self, unused: float) -> None:
        self._thread.submit(self._change, 0, -unused, places=-1)

    async def _ask(self, tokens: float, tell: Callable[[str], object]) -> float:
        """Return 0 if a call may begin, else the seconds until it is worth asking again."""
        if time.monotonic() < self._away_until:
            return 0.0
        asked = self._thread.submit(self._change, 1, tokens, places=1)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await asyncio.wrap_future(asked)
        except BaseException as error:
            asked.add_done_callback(lambda late: self._undo(late, tokens))
            if not isinstance(error, Exception):
                raise
            if not self._away_until:
                tell(f"the shared limits of {self._name} do not answer: other processes are not counted")
            self._away_until = time.monotonic() + AWAY_SECONDS
            return 0.0

    def _undo(self, late: Future[float], tokens: float) -> None:
        """Give back a call that was admitted after its run had stopped waiting."""
        if not late.cancelled() and not late.exception() and not late.result():
            self._thread.submit(self._change, -1, -tokens, places=-1)

    def _change(self, calls: int, tokens: float, *, places: int) -> float:
        """Use a call with a place, give one back, or with 0 for all only renew the leases of the places held here.
        Return the seconds to wait if the limits have no room; then nothing is changed."""
        limits, before = self._limits, self._held
        held = self._held = before[: len(before) + min(places, 0)]
        begin, read = _POSTGRES if self._on_server else _SQLITE
        try:
            self._do(begin)
            self._do(_NEW, self._key)
            *left, at, leases, now = self._do(read, self._key).fetchone()
            most = limits.calls_per_minute or 0, limits.tokens_per_minute or 0
            left = [min(top, level + max(0.0, now - at) * top / 60) for top, level in zip(most, left, strict=True)]
            lacks = [calls - left[0], min(tokens, most[1]) - left[1]]
            waits = [missing * 60 / top for missing, top in zip(lacks, most, strict=True) if top]
            leased = json.loads(leases).items()
            leased = {place: until for place, until in leased if until > now and place not in before}
            is_full = limits.at_once is not None and len(leased) + len(held) >= limits.at_once
            seconds: float = max([LOOK_SECONDS if is_full else 0.0, *waits])
            if places > 0 and seconds > _CLOSE:
                self._do("ROLLBACK")
                return seconds
            if places > 0 and limits.at_once is not None:
                held = (*held, secrets.token_hex(6))
            leased |= dict.fromkeys(held, now + LEASE_SECONDS)
            left = [level - use if top else 0.0 for level, use, top in zip(left, (calls, tokens), most, strict=True)]
            self._do(_WRITE, *left, now, json.dumps(leased), self._key)
            self._do("COMMIT")
            self._held = held
        except Exception:
            connection, self._connection = self._connection, None
            with contextlib.suppress(Exception):
                connection.close()
            raise
        finally:
            if not places:
                self._renewal = None
            if self._held and self._renewal is None:
                self._renewal = threading.Timer(RENEW_SECONDS, self._thread.submit, [self._change, 0, 0], {"places": 0})
                self._renewal.daemon = True
                self._renewal.start()
        return 0.0

    def _do(self, sql: str, *parameters: object) -> Any:
        if self._connection is None:
            self._connection = self._open()
        return self._connection.execute(sql.replace("?", "%s") if self._on_server else sql, parameters)

    def _open(self) -> Any:
        if self._on_server:
            import psycopg

            connection = psycopg.connect(self._place, autocommit=True, connect_timeout=2, tcp_user_timeout=2000)
            connection.execute("SET lock_timeout = 1000")
            with contextlib.suppress(psycopg.errors.UniqueViolation):  # another process is just making it
                connection.execute(_TABLE.format("UNLOGGED TABLE"))
            return connection
        import sqlite3

        Path(self._place).parent.mkdir(parents=True, exist_ok=True)
        Path(self._place).touch(mode=0o600)  # else all users of the machine could read it, and its journal
        file = sqlite3.connect(self._place, timeout=1.0, isolation_level=None)
        file.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; {_TABLE.format('TABLE')}")
        return file


shared_gate = cache(SharedGate)
"""The gate of this process for a place, a key, a name and limits."""
