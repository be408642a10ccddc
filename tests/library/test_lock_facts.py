"""The facts of real documents: every example is locked, read again and found unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.analysis.lock.compare import amount_of, compare
from quire.analysis.lock.file import written
from quire.analysis.lock.read import read_lock
from quire.library.collect import collect
from quire.library.lock_facts import LockFacts
from quire.source import Source
from quire.workspace.locate import Workspace

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path for path in (ROOT / "examples").iterdir() if path.is_dir())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_workspace_is_locked_read_and_unchanged(folder: Path) -> None:
    facts = LockFacts.with_lock(Workspace(folder, folder / "quire.toml"), None)
    documents = list(facts.documents(one.path for one in collect([str(folder)])[0]))
    lock = facts.lock(documents)
    assert len(lock.documents) == sum(one.plan is not None for one in documents)
    found = read_lock(Source.of(written(lock), "quire.lock"))
    assert found.diagnostics == () and found.lock is not None
    assert compare(found.lock, lock) == compare(lock, found.lock) == ()
    bounds = [(name, text) for one in lock.documents.values() for name, text in one.most.items()]
    assert [one for one in bounds if one[1] != "unpriced" and amount_of(*one) is None] == []


def test_a_file_outside_of_the_workspace_has_no_key(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    facts = LockFacts(Workspace(work))
    (tmp_path / "a.playbook.md").write_text("# A\n\n## STEP 1: A\n\nx\n")
    assert facts.key_of(tmp_path / "a.playbook.md") is None
    assert list(facts.documents([tmp_path / "a.playbook.md", work / "gone.playbook.md"])) == []
    (work / "b.playbook.md").symlink_to(tmp_path / "a.playbook.md")
    assert [one.key for one in facts.documents([work / "b.playbook.md"])] == ["b.playbook.md"]
