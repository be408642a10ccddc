"""A database that came with a clone: every text in it holds escapes, and a terminal gets none of them."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.given import given
from tests.warm import start_quire

from quire.errors import QuireError
from quire.runs.runtime import Runtime

EVIL = "\x1b]0;pwned\x07\x1b[31m\x9b5m\u202e\u2066\x85"
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
BOOK = """\
# A

## INPUTS

- `t` (string: x): y

## STEP 1: One

Say {{t}}

@output(o)

## STEP 2: Ask

@elicit(select, "Which?", "p", "q")
"""


class Clone:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        given({"quire.toml": "", "a.playbook.md": BOOK, "s.json": '[{"default": "ok"}]'}, self.folder)
        self._environ = {**os.environ, "QUIRE_HOME": str(folder / "home"), "NO_COLOR": "1", "TERM": "xterm"}
        for more in ((), ("--unattended",)):
            self.at_terminal("run", "a.playbook.md", "--script", "s.json", "-q", *more)
        with self.database() as database:
            rows = database.execute("SELECT id FROM runs ORDER BY n").fetchall()
        self.waiting, self.completed = (str(row[0]) for row in rows)

    def database(self) -> sqlite3.Connection:
        return sqlite3.connect(self.folder / ".quire" / "quire.db")

    def at_terminal(self, *arguments: str, **environ: str) -> str:
        """What a terminal gets of a verb: standard output and standard error."""
        ours, theirs = pty.openpty()
        environ = {**self._environ, **environ}
        process = start_quire(arguments, cwd=self.folder, env=environ, stdout=theirs, stderr=theirs)
        os.close(theirs)
        got = b""
        try:
            while piece := os.read(ours, 65_536):
                got += piece
        except OSError:
            pass  # the other end is closed
        process.wait(30)
        os.close(ours)
        return got.decode().replace("\r\n", "\n")


def _columns(database: sqlite3.Connection) -> None:
    for table, names in {
        "runs": ("title", "document", "failure_kind", "failure_message"),
        "journal": ("position", "failure_kind", "failure_message"),
        "questions": ("label", "title", "prompt", "preset"),
    }.items():
        for name in names:
            database.execute(f"UPDATE {table} SET {name} = coalesce({name}, '') || ?", (EVIL,))
    for id, events in database.execute("SELECT id, events FROM journal WHERE events IS NOT NULL").fetchall():
        database.execute("UPDATE journal SET events = ? WHERE id = ?", (_evil(events), id))


def _values(database: sqlite3.Connection) -> None:
    for id, value in database.execute("SELECT id, value FROM journal WHERE value IS NOT NULL").fetchall():
        database.execute("UPDATE journal SET value = ? WHERE id = ?", (_evil(value), id))
    for run, value in database.execute("SELECT run, value FROM pins").fetchall():
        pins = json.loads(value)
        for name in ("model", "identity", "inputs", "breakpoints", "answers", "grants", "allow", "out"):
            pins[name] = _with_escapes(pins[name])
        pins["origin"] = {"run": f"x{EVIL}", "at": f"3{EVIL}"}
        database.execute("UPDATE pins SET value = ? WHERE run = ?", (json.dumps(pins, ensure_ascii=False), run))


def _ids(database: sqlite3.Connection) -> None:
    database.execute("UPDATE runs SET id = id || ?", (EVIL,))
    database.execute("UPDATE questions SET run = run || ?", (EVIL,))
    database.execute(
        "INSERT INTO letters (recipient, run, text, at) VALUES (?, ?, ?, 1e9)", (f"me{EVIL}", f"1{EVIL}", f"x{EVIL}")
    )


def _paths(database: sqlite3.Connection) -> None:
    database.execute("UPDATE journal SET path = path || ?, kind = kind || ?", (EVIL, EVIL))
    database.execute("UPDATE questions SET path = path || ?, options = ?", (EVIL, json.dumps([f"a{EVIL}"])))
    database.execute("UPDATE runs SET ended_by = ?", (json.dumps([f"1{EVIL}"]),))


def _evil(text: str) -> str:
    return json.dumps(_with_escapes(json.loads(text)), ensure_ascii=False)


def _with_escapes(value: Any) -> Any:
    match value:
        case str():
            return value + EVIL
        case list():
            return [_with_escapes(one) for one in value]
        case dict():
            return {name: _with_escapes(one) for name, one in value.items()}
    return value


@pytest.fixture(scope="module", params=[(_columns, _ids), (_values, _paths)], ids=["rows", "values"])
def clone(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    made = Clone(tmp_path_factory.mktemp("clone"))
    planted: tuple[Callable[[sqlite3.Connection], None], ...] = request.param
    with made.database() as database:
        for plant in planted:
            plant(database)
    return made


LOOKING = [
    ("runs",),
    ("runs", "WAITING"),
    ("runs", "COMPLETED"),
    ("runs", "COMPLETED", "--output"),
    ("runs", "why", "COMPLETED", "1"),
    ("runs", "diff", "WAITING", "COMPLETED"),
    ("runs", "export", "COMPLETED"),
    ("inbox",),
    ("answer", "WAITING", "nothing"),
]


@pytest.mark.parametrize("verb", LOOKING, ids=" ".join)
def test_no_verb_sends_a_terminal_what_a_store_holds(clone: Clone, verb: tuple[str, ...]) -> None:
    known = {"WAITING": clone.waiting, "COMPLETED": clone.completed}
    said = clone.at_terminal(*(known.get(word, word) for word in verb))
    assert said and not HIDDEN.search(said), said
    assert "Traceback" not in said, said


def test_completion_offers_no_escapes(clone: Clone) -> None:
    said = clone.at_terminal(_QUIRE_COMPLETE="bash_complete", COMP_WORDS="quire runs ", COMP_CWORD="2")
    assert "last" in said and not HIDDEN.search(said), said


DAMAGE = {
    "a state": "UPDATE runs SET status = 'zzz'",
    "a time": "UPDATE runs SET created_at = 'x'",
    "a huge time": "UPDATE runs SET created_at = 1e300",
    "bytes": "UPDATE runs SET title = x'00ff'",
    "pins": "UPDATE pins SET value = '[]'",
    "pins of other types": "UPDATE pins SET value = '{\"document\": 5}'",
    "events": "UPDATE journal SET events = '{'",
    "values": "UPDATE journal SET value = '['",
    "a list of paths": "UPDATE runs SET ended_by = '5'",
    "options": "UPDATE questions SET options = '{'",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    return Clone(tmp_path_factory.mktemp("sound"))


@pytest.mark.parametrize("statement", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_row_is_said_to_be_one(sound: Clone, statement: str, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    shutil.copytree(sound.folder, folder)
    with sqlite3.connect(folder / ".quire" / "quire.db") as database:
        database.execute(statement)
    said: list[str] = []

    async def look() -> None:
        runtime = Runtime.open(folder)
        for looked in (
            runtime.store.list(),
            runtime.store.questions(),
            runtime.store.events(sound.completed),
            runtime.view(sound.completed),
            runtime.view(sound.waiting),
            runtime.drive(sound.waiting),
        ):
            try:
                await looked
            except QuireError as error:
                said.append(str(error))
        await runtime.close()

    asyncio.run(look())
    assert any("damaged" in one or "cannot be read" in one for one in said), said
