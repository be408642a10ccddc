"""Owner locks: who is alive, and what happens to the files."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from quire.stores.sqlite.writer import OwnerLocks


def test_taken_once_and_let_go(tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    one, two = OwnerLocks(folder), OwnerLocks(folder)
    assert not one.alive("r1")
    assert one.take("r1")
    assert one.alive("r1") and two.alive("r1")
    assert not two.take("r1") and not one.take("r1")
    assert two.take("r2")
    one.drop("r1")
    assert not one.alive("r1") and not two.alive("r1")
    assert two.take("r1")
    two.drop_all()
    assert list(folder.iterdir()) == []


def test_dropping_what_is_not_held_is_nothing(tmp_path: Path) -> None:
    one, two = OwnerLocks(tmp_path), OwnerLocks(tmp_path)
    assert one.take("r1")
    two.drop("r1")
    assert two.alive("r1")
    one.drop("r1")


@pytest.mark.parametrize("run", ["../../etc/passwd", "A" * 300, "Ünïcode", "", ".", "a/b", "con\x00"])
def test_any_id_is_a_file_in_the_folder(tmp_path: Path, run: str) -> None:
    folder = tmp_path / "locks"
    locks = OwnerLocks(folder)
    assert locks.take(run)
    assert OwnerLocks(folder).alive(run)
    assert [path.parent for path in tmp_path.rglob("*.lock")] == [folder]
    locks.drop(run)


def test_ids_that_differ_in_case_only_are_two_runs(tmp_path: Path) -> None:
    locks = OwnerLocks(tmp_path)
    assert locks.take("run") and locks.take("RUN")
    assert len({path.name.lower() for path in tmp_path.iterdir()}) == 2
    locks.drop_all()


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be removed there")
def test_a_file_that_was_removed_meanwhile_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner removes its file between a rival's opening and locking: the rival must not hold a nameless lock."""
    owner, rival = OwnerLocks(tmp_path), OwnerLocks(tmp_path)
    assert owner.take("r1")
    really_open, opened = os.open, 0

    def open_then_lose(path: Path, flags: int, mode: int = 0o777) -> int:
        nonlocal opened
        file = really_open(path, flags, mode)
        opened += 1
        if opened == 1:
            owner.drop("r1")
        return file

    monkeypatch.setattr("quire.stores.sqlite.writer.os.open", open_then_lose)
    assert rival.take("r1")
    assert opened == 2
    monkeypatch.undo()
    assert OwnerLocks(tmp_path).alive("r1")
    rival.drop_all()


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be removed there")
def test_the_lock_of_a_new_owner_is_not_removed_by_the_old_one(tmp_path: Path) -> None:
    old, new = OwnerLocks(tmp_path), OwnerLocks(tmp_path)
    assert old.take("r1")
    (tmp_path / "r1.lock").unlink()
    assert new.take("r1")
    old.drop("r1")
    assert OwnerLocks(tmp_path).alive("r1")
    new.drop_all()


def test_readers_do_not_get_in_the_way_of_an_owner(tmp_path: Path) -> None:
    stop = threading.Event()
    owner, reader = OwnerLocks(tmp_path), OwnerLocks(tmp_path)
    (tmp_path / "r1.lock").touch()

    def look() -> None:
        while not stop.is_set():
            reader.alive("r1")

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(200):
            assert owner.take("r1")
            owner.drop("r1")
    finally:
        stop.set()
        thread.join()
