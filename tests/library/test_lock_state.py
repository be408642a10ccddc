"""How a document stands to the lock of its workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.library.lock_check import lock_path, save_lock
from quire.library.lock_facts import LockFacts
from quire.library.lock_state import lock_state
from quire.workspace.locate import find_workspace

ONE = "pipeline: p\nsteps:\n  - agent: {prompt: Hello, capabilities: {tools: []}}\n"
TWO = ONE + "  - agent: {prompt: Again, capabilities: {tools: []}}\n"
WRITES = ONE + "  - tool: {name: file__write, args: {path: reports/x.md, content: hi}}\n"


def standing(folder: Path, locked: str | None, now: str) -> tuple[str, list[str]]:
    (folder / "quire.toml").write_text("")
    workspace = find_workspace(folder)
    path = folder / "p.yaml"
    if locked is not None:
        path.write_text(locked)
        facts = LockFacts(workspace)
        save_lock(lock_path(workspace), facts.lock(facts.documents([path])))
    path.write_text(now)
    found = lock_state(workspace, path)
    return found.standing, [change.kind for change in found.changes if change.direction == "wider"]


@pytest.mark.parametrize(
    ("locked", "now", "said"),
    [
        (None, ONE, "none"),
        (ONE, ONE, "equal"),
        (ONE, ONE.replace("pipeline: p", "# A comment\npipeline: p"), "equal"),
        (ONE, ONE.replace("Hello", "Salut"), "stale"),
        (TWO, ONE, "stale"),
        (ONE, TWO, "wider"),
        (ONE, WRITES, "wider"),
    ],
    ids=["no lock", "same", "comment", "prompt", "less", "more calls", "more power"],
)
def test_standings(tmp_path: Path, locked: str | None, now: str, said: str) -> None:
    assert standing(tmp_path, locked, now)[0] == said


def test_what_is_new_is_named(tmp_path: Path) -> None:
    assert standing(tmp_path, ONE, WRITES)[1].count("may") == 1


def test_a_document_without_an_entry(tmp_path: Path) -> None:
    standing(tmp_path, ONE, ONE)
    (tmp_path / "other.yaml").write_text(TWO)
    assert lock_state(find_workspace(tmp_path), tmp_path / "other.yaml").standing == "new"


@pytest.mark.parametrize("text", ["quire: 99\n", "{", "\x00"])
def test_a_lock_that_cannot_be_read_is_said_to_be(tmp_path: Path, text: str) -> None:
    standing(tmp_path, ONE, ONE)
    (tmp_path / "quire.lock").write_text(text)
    found = lock_state(find_workspace(tmp_path), tmp_path / "p.yaml")
    assert (found.standing, found.changes) == ("unreadable", ())
    assert found.problem
