"""Stores that cannot be used, and runs that somebody else drives: a line that says why, exit 2, and nothing is lost."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from tests.chaos.documents import STORIES, Story
from tests.chaos.sight import look
from tests.chaos.stable import Exit, Stable
from tests.chaos.workspace import Place, make_place

from quire.engine.records import Status

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks after its processes in the way of Linux")

PLAYBOOK = STORIES[0]
RUN = ["run", PLAYBOOK.document, "--script", PLAYBOOK.script_file, "-q"]
REFUSED, WAITING = 2, 4
NOBODY = 65_534
SLOW = Story(
    "slow",
    "slow.yaml",
    {"slow.yaml": "pipeline: slow\nsteps:\n- tool: {name: note, args: {site: a}}\n- agent: {prompt: go}\n"},
    [{"contains": "go", "reply": "gone", "delay_ms": 1_500}],
    titles=("slow",),
)


@pytest.fixture
def waiting(tmp_path: Path, stable: Stable) -> Place:
    """A run that waits for its first answer."""
    place = make_place(tmp_path / "place", PLAYBOOK)
    assert at(stable, place, RUN).code == WAITING
    return place


def at(stable: Stable, place: Place, words: list[str], **how: int) -> Exit:
    user = how.get("user")
    return stable.run(words, place.folder, {**place.environ, "CHAOS_LIFE": "0"}, user=user)


def refused(exit: Exit, *words: str) -> None:
    assert exit.code == REFUSED, exit.err
    (line,) = exit.err.splitlines()
    assert line.startswith("quire: ")
    for word in words:
        assert word in line, line
    assert exit.out == ""


def goes_on(stable: Stable, place: Place) -> None:
    assert at(stable, place, ["answer", "last", "yes", "-q"]).code == WAITING
    done = at(stable, place, ["answer", "last", "yes", "-q"])
    assert (done.code, done.out) == (0, "Tea was made and served.\n"), done.err
    performed = (place.folder / place.story.ledger).read_text().splitlines()
    assert len(performed) == len(set(performed)) == 3


def test_a_database_of_a_newer_version(waiting: Place, stable: Stable) -> None:
    before = _version(waiting, 99)
    for words in (RUN, ["resume", "last"], ["answer", "last", "yes"], ["runs"], ["inbox"]):
        refused(at(stable, waiting, words), "was written by a newer Quire (schema 99", "upgrade Quire")
    _version(waiting, before)
    goes_on(stable, waiting)


def _version(place: Place, version: int) -> int:
    connection = sqlite3.connect(place.database)
    before: int = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    return before


def test_a_read_only_disk(waiting: Place, stable: Stable) -> None:
    folder = str(waiting.database.parent)
    kept = waiting.folder.parent / "kept"
    shutil.move(folder, kept)
    Path(folder).mkdir()
    _mount("--bind", str(kept), folder)
    try:
        _mount("-o", "remount,bind,ro", folder)
        for words in (RUN, ["resume", "last"], ["answer", "last", "yes"]):
            refused(at(stable, waiting, words), str(waiting.database), "cannot be opened", "can be written")
        _is_seen(stable, waiting)
        doctor = at(stable, waiting, ["doctor"])
        assert (doctor.code, "quire.db may not be written, so nothing can run here" in doctor.out) == (1, True)
        _mount("-o", "remount,bind,rw", folder)
        goes_on(stable, waiting)
    finally:
        subprocess.run(["umount", folder], check=True)


def _is_seen(stable: Stable, place: Place) -> None:
    for words in (["runs"], ["inbox"], ["runs", "last"]):
        seen = at(stable, place, words)
        assert seen.code == 0, seen.err
        assert "Tea" in seen.out


@pytest.mark.parametrize("log", [False, True], ids=["all in the database", "with a log"])
def test_a_full_disk_can_be_read(waiting: Place, stable: Stable, log: bool) -> None:
    folder, kept = waiting.database.parent, waiting.folder.parent / "kept"
    shutil.move(folder, kept)
    folder.mkdir()
    _mount("-t", "tmpfs", "-o", "size=3000000", "tmpfs", str(folder))
    try:
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        if log:
            # A process that is killed leaves what it wrote in the log, for the next one to take over.
            write = "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None)"
            write += "; c.execute('INSERT INTO letters (recipient, run, text, at) VALUES (?, ?, ?, 1)', "
            write += "('cli', 'r', 'Tea from the log')); os._exit(0)"
            subprocess.run([sys.executable, "-c", write, str(waiting.database)], check=True)
            waiting.database.with_name("quire.db-shm").unlink()
        with (folder / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(b"x" * 4_096)
        refused(at(stable, waiting, ["resume", "last"]), "no room left on the disk of")
        _is_seen(stable, waiting)
        assert ("Tea from the log" in at(stable, waiting, ["inbox"]).out) == log
        (folder / "filler").unlink()
        goes_on(stable, waiting)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _mount(*words: str) -> None:
    done = subprocess.run(["mount", *words], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")


def test_no_permission(stable: Stable) -> None:
    with tempfile.TemporaryDirectory(prefix="quire-chaos-") as name:
        place = make_place(Path(name) / "place", PLAYBOOK)
        assert at(stable, place, RUN).code == WAITING
        shut, user = (0o700, NOBODY) if os.getuid() == 0 else (0o000, None)
        for folder in (Path(name), place.folder.parent):
            folder.chmod(0o755)
        home = place.folder.parent / "home"
        if user is not None:
            # It is their own space, they trust the workspace, and only the folder of the database is shut.
            with (home / "quire.toml").open("a") as settings:
                settings.write(f"\n[trust]\nsafe_folders = [{str(place.folder)!r}]\n")
            _give(home, user)
        place.database.parent.chmod(shut)
        try:
            how = {} if user is None else {"user": user}
            for words in (RUN, ["resume", "last"], ["answer", "last", "yes"]):
                refused(at(stable, place, words, **how), str(place.database.parent), "permi")
        finally:
            place.database.parent.chmod(0o755)
            _give(home, os.getuid())
        goes_on(stable, place)


def _give(home: Path, user: int) -> None:
    for file in (home, *home.rglob("*")):
        os.chown(file, user, user)


def test_two_processes_drive_one_run(tmp_path: Path, stable: Stable) -> None:
    place = make_place(tmp_path / "place", SLOW)
    environ = {**place.environ, "CHAOS_LIFE": "0"}
    with Stable(tmp_path / "other") as other:
        other.start(["run", SLOW.document, "--script", SLOW.script_file, "-q"], place.folder, environ)
        deadline = time.monotonic() + 30
        while not ((seen := look(place, tmp_path / "look").main) and seen.results()):
            assert time.monotonic() < deadline
        refused(stable.run(["resume", seen.row.id], place.folder, environ), "is being driven by another process")
        first = other.finish()
    assert (first.code, first.out) == (0, "gone\n"), first.err
    (run,) = look(place, tmp_path / "look").runs
    assert run.row.status is Status.COMPLETED
    assert len((place.folder / place.story.ledger).read_text().splitlines()) == 1
