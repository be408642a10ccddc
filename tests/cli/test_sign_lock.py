"""`quire sign --lock`: a signature of the authority and the bounds of all documents."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Said

from quire.cli import main

PIPELINE = "pipeline: note\nsteps:\n  - tool: {name: file__write, args: {path: note.md, content: hello}}\n"


@pytest.fixture
def work(workspace: Path, said: Said) -> Path:
    (workspace / "pipelines").mkdir()
    (workspace / "pipelines" / "note.yaml").write_text(PIPELINE)
    assert main(["keys", "new"]) == 0
    assert main(["lock"]) == 0
    said()
    return workspace


def edit(work: Path, old: str, new: str) -> None:
    file = work / "quire.lock"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def test_a_signed_lock_is_verified_and_read(work: Path, said: Said) -> None:
    assert main(["sign", "--lock"]) == 0
    assert said()[0] == "quire.lock\n"
    assert (work / "quire.lock").read_text().startswith("# rye:signed:")
    assert main(["verify", "quire.lock"]) == 0
    assert main(["verify", "."]) == 0
    assert said()[0].count("ok\tquire.lock\n") == 2
    assert main(["check", "--locked"]) == 0


def test_a_signature_stays_while_nothing_changes(work: Path) -> None:
    assert main(["sign", "--lock"]) == 0
    text = (work / "quire.lock").read_text()
    assert main(["lock"]) == 0
    assert (work / "quire.lock").read_text() == text
    (work / "pipelines" / "note.yaml").write_text(PIPELINE.replace("hello", "bye"))
    assert main(["lock"]) == 0
    assert "rye:signed" not in (work / "quire.lock").read_text()


def test_a_lock_that_was_changed_after_that_is_found(work: Path, said: Said) -> None:
    assert main(["sign", "--lock"]) == 0
    edit(work, "path=note.md", "path=*")
    said()
    assert main(["verify", "quire.lock"]) == 6
    assert "the lock quire.lock was modified since it was signed" in said()[1]
    assert main(["check", "--locked", "--format", "concise"]) == 1
    assert "quire.lock:1:1: LK003 error: the lock quire.lock was modified since it was signed" in said()[0]


def test_runs_are_not_held_to_a_lock_that_was_changed(work: Path, said: Said) -> None:
    (work / "quire.toml").write_text("[trust]\nlocked = true\n")
    assert main(["sign", "--lock"]) == 0
    assert main(["run", "note"]) == 0
    edit(work, "path=note.md", "path=*")
    said()
    assert main(["run", "note"]) == 6
    assert "was modified since it was signed" in said()[1]


def test_a_build_without_keys_checks_the_lock(work: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert main(["sign", "--lock"]) == 0
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path / "nothing"))
    assert main(["check", "--locked"]) == 0
    assert main(["verify", "quire.lock"]) == 6
    edit(work, "path=note.md", "path=*")
    assert main(["check", "--locked"]) == 1


def test_a_lock_that_is_not_up_to_date_is_not_signed(work: Path, said: Said) -> None:
    text = (work / "quire.lock").read_text()
    (work / "pipelines" / "note.yaml").write_text(PIPELINE.replace("note.md", "other.md"))
    assert main(["sign", "--lock"]) == 1
    assert "LK103 not in the lock: may file-system.write" in said()[1]
    assert (work / "quire.lock").read_text() == text
    (work / "quire.lock").write_text("quire: 1\n")
    assert main(["sign", "--lock"]) == 1
    assert "line 1: the lock was edited by hand" in said()[1]
    (work / "quire.lock").unlink()
    assert main(["sign", "--lock"]) == 2


def test_a_signature_of_another_kind_is_not_one_of_the_lock(work: Path, said: Said) -> None:
    """A signed pipeline whose text is a lock would be as good as a lock, if its kind did not count."""
    assert main(["sign", "--lock"]) == 0
    line, _, rest = (work / "quire.lock").read_text().partition("\n")
    (work / "quire.lock").write_text(f"{line.replace('|lock:', '|pipeline:')}\n{rest}")
    assert main(["verify", "quire.lock"]) == 6
    assert main(["check", "--locked"]) == 1


def test_a_folder_is_signed_without_its_lock(work: Path) -> None:
    assert main(["sign", ".", "--yes"]) == 0
    assert "rye:signed" not in (work / "quire.lock").read_text()
