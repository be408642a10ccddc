"""A journal that came with a clone is data: what it says its user has granted counts for nothing.

Each test is the attack, on real files: an attacker runs a document with grants of theirs, or writes into the database
by hand, and the victim goes on with the run.
"""

from __future__ import annotations

import io
import json
import os
import pty
import resource
import select
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.given import given

from quire.cli import main
from quire.stores.sqlite.statements import APPLICATION_ID, MIGRATIONS

PAGE = """# Deploy

## STEP 1: Approve

@elicit(confirm, "Deploy?")

## STEP 2: Go

@tool(quire, shell, {"command": "touch owned"})
"""
REFUSED = 6


def _little_memory() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (800_000_000, 800_000_000))


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Person:
    """Somebody with a space of their own, in a folder."""

    home: Path
    folder: Path

    def quire(self, *arguments: str) -> Done:
        """Says it as the command line does, with nobody at a terminal."""
        out, err, stdin = io.StringIO(), io.StringIO(), sys.stdin
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.chdir(self.folder)
            patch.setattr("sys.stdin", io.StringIO())
            patch.setattr("os.environ", self.environ())
            status = main(list(arguments))
        assert sys.stdin is stdin
        return Done(status, out.getvalue(), err.getvalue())

    def process(self, *arguments: str) -> Done:
        """The same in a process of its own."""
        done = subprocess.run(
            [sys.executable, "-m", "quire", *arguments],
            cwd=self.folder,
            env=self.environ(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            preexec_fn=_little_memory,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("QUIRE_")}
        return {**kept, "QUIRE_HOME": str(self.home), "COLUMNS": "200"}

    @property
    def owned(self) -> bool:
        """Whether the shell ran, or the output went where the attacker wanted it."""
        return (self.folder / "owned").exists() or (self.folder.parents[1] / "written").exists()

    def write(self, sql: str) -> None:
        connection = sqlite3.connect(self.folder / ".quire" / "quire.db")
        assert connection.execute(sql).rowcount > 0, sql
        connection.commit()
        connection.close()


def person(base: Path, name: str) -> Person:
    folder = base / name / "work"
    given({"quire.toml": "", "deploy.md": PAGE}, folder)
    return Person(base / name / "home", folder)


@pytest.fixture
def shipped(tmp_path: Path) -> tuple[Person, str]:
    """The victim, in a clone that has the attacker's store with a run that waits for an answer."""
    attacker = person(tmp_path, "attacker")
    out = str(tmp_path / "written")
    asked = attacker.quire("run", "deploy.md", "--allow", "shell=unsandboxed", "--out", out, "--json")
    assert asked.returncode == 4, asked.stderr
    victim = person(tmp_path, "victim")
    shutil.copytree(attacker.folder / ".quire", victim.folder / ".quire")
    return victim, str(json.loads(asked.stdout.splitlines()[-1])["run"])


def test_the_attack_works_for_whom_the_run_belongs_to(tmp_path: Path) -> None:
    """Else the tests below would prove nothing."""
    owner = person(tmp_path, "owner")
    assert owner.quire("run", "deploy.md", "--allow", "shell=unsandboxed", "--quiet").returncode == 4
    done = owner.process("answer", "last", "yes", "--quiet")
    assert done.returncode == 0, done.stderr
    assert owner.owned


@pytest.mark.parametrize("verb", [["answer", "last", "yes"], ["answer", "last", "yes", "--hold"], ["resume", "last"]])
def test_a_shipped_run_does_not_go_on(shipped: tuple[Person, str], verb: list[str]) -> None:
    victim, run = shipped
    if verb[0] == "resume":
        # As the attacker's store has it where they have answered themselves.
        victim.write("UPDATE questions SET state = 'answered', answer = 'yes'")
    done = victim.process(*verb)
    if "--detach" in verb:
        victim.process("resume", "last")
    assert not victim.owned
    assert done.returncode == REFUSED, done.stderr
    assert f"run {run} is not driven: it was not started by you" in done.stderr
    assert f"quire runs fork {run}" in done.stderr


def test_a_shipped_run_is_not_taken_for_one_of_mine(shipped: tuple[Person, str]) -> None:
    victim, run = shipped
    assert victim.quire("keys", "seal").returncode == 0
    done = victim.quire("answer", run, "yes")
    assert done.returncode == REFUSED and "sealed with another key than yours" in done.stderr
    assert not victim.owned


@pytest.mark.parametrize("seal", ["NULL", "''", "'0.1.0'", "'ffffffff:00'"])
def test_no_word_in_place_of_a_seal_helps(shipped: tuple[Person, str], seal: str) -> None:
    victim, _ = shipped
    victim.write(f"UPDATE pins SET seal = {seal}")
    victim.write(f"UPDATE questions SET seal = {seal}, state = 'answered', answer = 'yes'")
    done = victim.quire("resume", "last")
    assert not victim.owned
    assert done.returncode == REFUSED, done.stderr


def test_a_shipped_run_is_looked_at_and_exported(shipped: tuple[Person, str]) -> None:
    victim, run = shipped
    looked = victim.quire("runs", run)
    assert looked.returncode == 0 and "Approve" in looked.stdout + looked.stderr
    assert "is not driven" in looked.stderr and "quire answer" not in looked.stderr
    assert json.loads(victim.quire("runs", run, "--json").stdout)["sealed"] is False
    assert "1 of 1 are not sealed by you" in victim.quire("doctor").stdout
    assert not (victim.home / "keys").exists(), "who only looks makes no key"
    assert victim.quire("inbox").returncode == 0
    assert victim.quire("runs", "export", run, "-o", "run.jsonl").returncode == 0
    found = victim.quire("runs", "verify", run)
    assert found.returncode == 1 and "it was not started by you" in found.stderr
    assert json.loads(victim.quire("runs", "verify", run, "--json").stdout)["ok"] is False
    assert victim.quire("runs", "verify", "run.jsonl").returncode == 0


def test_a_fork_of_a_shipped_run_has_none_of_its_grants(shipped: tuple[Person, str]) -> None:
    victim, run = shipped
    victim.quire("fork", run, "--from", "1", "--quiet")
    done = victim.quire("answer", "last", "yes")
    assert not victim.owned
    assert done.returncode != 0 and "permission denied" in done.stderr, done.stderr


ASKED = """# Ask

## STEP 1: Approve

@elicit(confirm, "Deploy?")

## STEP 2: Go

@tool(quire, shell, {"command": "touch ../escaped; echo done > done"})
"""
UNSANDBOXED = (
    "json_set(value, '$.allow', json('[\"shell=unsandboxed\"]'), '$.grants[#]', 'rye.reach.shell.unsandboxed')"
)
WIDENED = {
    "a shell without its sandbox": (
        f"UPDATE pins SET value = {UNSANDBOXED}",
        ["answer", "last", "yes"],
        "../escaped",
    ),
    "an output elsewhere": (
        "UPDATE pins SET value = json_set(value, '$.out', '../elsewhere.md')",
        ["answer", "last", "yes"],
        "../elsewhere.md",
    ),
    "an answer": (
        "UPDATE pins SET value = json_set(value, '$.answers', json('{\"1\": \"yes\"}'))",
        ["resume", "last"],
        "done",
    ),
    "nobody is asked": (
        "UPDATE pins SET value = json_set(value, '$.unattended', json('true'))",
        ["resume", "last"],
        "done",
    ),
    "another command": (
        "UPDATE blobs SET body = replace(body, 'echo done > done', 'echo done > other')",
        ["answer", "last", "yes"],
        "other",
    ),
    "an answer in the inbox": (
        "UPDATE questions SET state = 'answered', answer = 'yes'",
        ["resume", "last"],
        "done",
    ),
}
"""What is written into the store, what its user then says, and the file that shows what came of it."""


@pytest.mark.parametrize("change", WIDENED)
def test_a_run_of_mine_whose_authority_was_widened_does_not_go_on(tmp_path: Path, change: str) -> None:
    sql, verb, gain = WIDENED[change]
    mine = person(tmp_path, "me")
    (mine.folder / "deploy.md").write_text(ASKED)
    assert mine.quire("run", "deploy.md", "--json", "--allow", "shell").returncode == 4
    mine.write(sql)
    done = mine.quire(*verb)
    assert not (mine.folder / gain).exists()
    assert done.returncode != 0 and ("is not driven" in done.stderr or "it was changed" in done.stderr), done.stderr
    assert mine.quire("runs", "verify", "last").returncode == 1


def test_a_run_of_mine_goes_on_in_its_sandbox(tmp_path: Path) -> None:
    """Else the test above would prove nothing."""
    mine = person(tmp_path, "me")
    (mine.folder / "deploy.md").write_text(ASKED)
    assert mine.quire("run", "deploy.md", "--json", "--allow", "shell").returncode == 4
    assert mine.quire("runs", "verify", "last").returncode == 0
    assert mine.quire("answer", "last", "yes").returncode == 0
    assert (mine.folder / "done").exists() and not (mine.folder / "../escaped").exists()


def in_terminal(me: Person, *arguments: str, answer: str) -> tuple[int, str]:
    """Runs a command on a terminal of its own, types an answer when it asks, and gives back what was to be seen."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(me.folder)
        os.execve(sys.executable, [sys.executable, "-m", "quire", *arguments], me.environ())
    seen, typed = b"", False
    while True:
        ready, _, _ = select.select([terminal], [], [], 60)
        try:
            piece = os.read(terminal, 65_536) if ready else b""
        except OSError:
            piece = b""
        if not piece:
            break
        seen += piece
        if not typed and b"[no]: " in seen:
            os.write(terminal, answer.encode() + b"\n")
            typed = True
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen.decode("utf-8", "replace")


@pytest.fixture
def old(tmp_path: Path) -> Person:
    """A person with a store of Quire 0.1.0: its tables had no seals, no names and no replies over HTTP."""
    me = person(tmp_path, "me")
    assert me.quire("run", "deploy.md", "--allow", "shell=unsandboxed", "--quiet").returncode == 4
    store = me.folder / ".quire" / "quire.db"
    later = store.rename(store.with_name("later.db"))
    connection = sqlite3.connect(store)
    for statement in (sql for migration in MIGRATIONS[:3] for sql in migration):
        connection.execute(statement)
    connection.execute("ATTACH ? AS later", (str(later),))
    for (table,) in connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'").fetchall():
        columns = ", ".join(row[1] for row in connection.execute(f"PRAGMA main.table_info({table})"))
        connection.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM later.{table}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 3")
    connection.commit()
    connection.close()
    return me


def test_a_store_of_0_1_0_is_sealed_by_the_word_of_its_user(old: Person) -> None:
    status, seen = in_terminal(old, "answer", "last", "yes", answer="yes")
    assert "may use shell=unsandboxed" in seen and "Is this run yours?" in seen
    assert status == 0, seen
    assert old.owned
    assert old.quire("runs", "verify", "last").returncode == 0


def test_a_store_of_0_1_0_stays_closed_without_that_word(old: Person) -> None:
    status, seen = in_terminal(old, "answer", "last", "yes", answer="no")
    assert status == REFUSED, seen
    unattended = old.quire("answer", "last", "yes")
    assert unattended.returncode == REFUSED and "quire runs seal" in unattended.stderr
    assert old.quire("runs", "seal", "--all").returncode == REFUSED
    assert not old.owned


def test_a_store_of_0_1_0_is_sealed_unattended_by_a_command(old: Person) -> None:
    sealed = old.quire("runs", "seal", "--all", "--yes", "--json")
    assert sealed.returncode == 0 and len(json.loads(sealed.stdout)["sealed"]) == 1
    assert old.quire("answer", "last", "yes", "--quiet").returncode == 0
    assert old.owned
    assert json.loads(old.quire("runs", "seal", "--all", "--yes", "--json").stdout)["sealed"] == []


def recursive_view(database: sqlite3.Connection) -> None:
    """A list of runs without an end, with all columns that a query may ask for."""
    names = [str(row[1]) for row in database.execute("PRAGMA table_info(runs)")]
    columns = ", ".join(f"was.{name}" for name in names if name != "n")
    database.executescript(
        "ALTER TABLE runs RENAME TO was; CREATE VIEW runs AS WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 "
        f"FROM x) SELECT x.n, {columns} FROM x, was;"
    )


HOSTILE: dict[str, Callable[[sqlite3.Connection], object]] = {
    "a recursive view": recursive_view,
    "a trigger": lambda database: database.executescript(
        f"CREATE TRIGGER t AFTER INSERT ON pins BEGIN UPDATE pins SET value = {UNSANDBOXED} WHERE run = NEW.run; END;"
    ),
    "a computed column": lambda database: database.executescript(
        "ALTER TABLE runs RENAME COLUMN title TO was; "
        "ALTER TABLE runs ADD COLUMN title AS (CAST(zeroblob(900000000) AS TEXT));"
    ),
    "an index that computes": lambda database: database.executescript(
        "DELETE FROM runs; DROP INDEX runs_by_age; "
        "CREATE INDEX runs_by_age ON runs (id, length(hex(zeroblob(450000000))));"
    ),
}


@pytest.mark.parametrize("bomb", HOSTILE)
def test_a_database_with_programs_in_it_is_not_opened(tmp_path: Path, bomb: str) -> None:
    """In a process of its own: what computes for ever, or takes all memory, must not do so here."""
    me = person(tmp_path, "me")
    (me.folder / "deploy.md").write_text(ASKED)
    assert me.quire("run", "deploy.md", "--quiet", "--allow", "shell").returncode == 4
    connection = sqlite3.connect(me.folder / ".quire" / "quire.db")
    HOSTILE[bomb](connection)
    connection.commit()
    connection.close()
    started = me.process("run", "deploy.md", "--quiet", "--allow", "shell")
    answered = me.process("answer", "last", "yes")
    assert not (me.folder / "../escaped").exists()
    for done in (started, answered, me.quire("runs"), me.quire("inbox")):
        assert done.returncode == 2 and "no Quire has made" in done.stderr, done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE runs SET status = 'nothing'",
        "UPDATE runs SET created_at = 'never'",
        "UPDATE pins SET value = '['",
        "UPDATE pins SET value = '[1]'",
        "UPDATE pins SET value = x'00ff'",
        "UPDATE journal SET events = '[[1]]'",
        "UPDATE journal SET events = 7",
        "UPDATE runs SET ended_by = '{'",
        "UPDATE questions SET options = '7'",
    ],
)
def test_a_row_of_any_shape_is_a_clear_error(tmp_path: Path, change: str) -> None:
    me = person(tmp_path, "me")
    assert me.quire("run", "deploy.md", "--quiet", "--allow", "shell").returncode == 4
    me.write(change)
    for verb in (["runs"], ["runs", "last"], ["answer", "last", "yes"]):
        done = me.quire(*verb)
        assert "Traceback" not in done.stderr, done.stderr
    assert not me.owned and done.returncode != 0
