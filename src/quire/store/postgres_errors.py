"""What the errors of a PostgreSQL server mean: whether to wait for it, and what to tell a person.

While a connection is being made there is only a text, in the words of the server or of the system; once it stands,
errors have codes. No message names a password, nor repeats text of the address that might be a piece of one.
"""

from __future__ import annotations

import psycopg

from quire.errors import StoreError

_AWAY = ("08", "57")
"""The classes of codes for a connection that broke and for a server that is stopped, started or told to interrupt."""

_AGAIN = frozenset({"25P03", "25P04", "40001", "40P01", "53300"})
"""The server gave up a transaction, or has too many connections just now: nothing was written, and later it will be."""

_REFUSED = (
    ("password authentication failed", "{place} refuses the user or the password: check both, or set PGPASSWORD"),
    ("no password supplied", "{place} wants a password: give it in the URL, in PGPASSWORD or in ~/.pgpass"),
    (
        "no pg_hba.conf entry",
        "{place} refuses connections from here: ask its administrator to allow this host and user",
    ),
    ('role "', "{place} does not know this user: create the role, or name another one in the URL"),
    ('database "', "{place} is not there: create the database, or name another one in the URL"),
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
    """Whether the same work may succeed on another connection, later. A refusal stays one however often one asks."""
    code = error.sqlstate
    if code is not None:
        return code.startswith(_AWAY) or code in _AGAIN
    return isinstance(error, psycopg.OperationalError) and _refusal(error) is None


def explain(error: psycopg.Error, place: str) -> StoreError:
    """The same failure in one line that names the database and says what to do."""
    if (refusal := _refusal(error)) is not None:
        return StoreError(refusal.format(place=place))
    code = error.sqlstate
    if code is None and not isinstance(error, psycopg.OperationalError):
        return StoreError(f"{place} cannot be used: {_said(error)}")
    if code is None or code.startswith(_AWAY):
        return StoreError(f"{place} does not answer: check that the server runs and can be reached ({_said(error)})")
    meaning = _MEANINGS.get(code) or _MEANINGS.get(code[:2]) or "{place} cannot do that ({code}: {said})"
    return StoreError(meaning.format(place=place, code=code, said=_said(error)))


def _refusal(error: psycopg.Error) -> str | None:
    if error.sqlstate is not None or not isinstance(error, psycopg.OperationalError):
        return None
    said = str(error)
    if "FATAL" not in said and "fe_sendauth" not in said:
        return None
    return next((meaning for words, meaning in _REFUSED if words in said), None)


def _said(error: psycopg.Error) -> str:
    """The end of the first line: what comes before it names hosts and sockets, which stand in the message already."""
    lines = str(error).strip().splitlines()
    last = lines[0].rpartition("failed: ")[2] if lines else type(error).__name__
    return last.removeprefix("FATAL:").strip()
