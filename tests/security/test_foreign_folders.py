"""Folders that belong to somebody else, or lead somewhere else, are not a workspace and not a store."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.given import given

from quire.cli import main
from quire.errors import Refused, StoreError
from quire.stores import open_store
from quire.workspace.locate import find_workspace

STRANGER = 54321
PLAYBOOK = "# Hello\n\n## STEP 1: Say\n\nSay hello.\n"
SCRIPT = '["hello"]'

as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file to another account"
)


@pytest.fixture
def shared(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder above that of the user, as `/tmp` is."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    mine = tmp_path / "shared" / "mine"
    given({"hello.playbook.md": PLAYBOOK, "script.json": SCRIPT}, mine)
    monkeypatch.chdir(mine)
    return mine.parent


def plant(folder: Path, marker: str) -> Path:
    path = folder / marker
    if marker in (".ai", ".git", ".quire"):
        path.mkdir()
    else:
        path.write_text("[tool.quire]\n" if marker == "pyproject.toml" else "{}" if "json" in marker else "")
    os.chown(path, STRANGER, STRANGER)
    return path


@as_root
@pytest.mark.parametrize("marker", ["quire.toml", "pyproject.toml", ".ai", ".mcp.json", ".git"])
def test_the_marker_of_another_account_is_refused(
    shared: Path, marker: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = plant(shared, marker)
    status = main(["run", "hello.playbook.md", "--script", "script.json"])
    assert not (shared / ".quire").exists(), "the folder above became the workspace"
    assert status == 6
    out, err = capsys.readouterr()
    assert f"{path} belongs to the account with the number {STRANGER}, not to you" in err
    assert f'safe_folders = ["{shared}"]' in err and "quire.toml" in err
    assert out == ""


@as_root
def test_a_foreign_file_in_a_folder_of_ones_own_is_refused(shared: Path) -> None:
    (shared / ".git").mkdir()
    plant(shared, "quire.toml")
    with pytest.raises(Refused, match=r"quire\.toml belongs to"):
        find_workspace(Path.cwd())


@as_root
def test_a_store_of_another_account_is_refused(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = plant(shared / "mine", ".quire")
    store.chmod(0o777)
    status = main(["run", "hello.playbook.md", "--script", "script.json"])
    assert list(store.iterdir()) == [], "the run is in a folder of another account"
    assert (status, main(["runs"])) == (6, 6)
    assert ".quire belongs to the account" in capsys.readouterr().err


@as_root
@pytest.mark.parametrize("safe", ["{shared}", "*"])
def test_the_user_can_say_that_a_folder_is_safe(
    shared: Path, tmp_path: Path, safe: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(shared, "quire.toml")
    (tmp_path / "home").mkdir()
    own = tmp_path / "home" / "quire.toml"
    own.write_text('[trust]\nsafe_folders = ["/somewhere/else"]\n')
    assert main(["runs"]) == 6
    own.write_text(f'[trust]\nsafe_folders = ["{safe.format(shared=shared)}"]\n')
    assert main(["runs"]) == 0


@as_root
def test_a_workspace_cannot_say_that_it_is_safe(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shared / "mine" / "quire.toml").write_text('[trust]\nsafe_folders = ["*"]\n')
    assert main(["runs"]) == 2
    assert "safe_folders is read from the quire.toml of your user folder" in capsys.readouterr().err


@as_root
def test_under_sudo_the_callers_folders_are_ones_own(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(shared, "quire.toml")
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    assert find_workspace(Path.cwd()).folder == shared
    monkeypatch.setenv("SUDO_UID", str(STRANGER + 1))
    with pytest.raises(Refused):
        find_workspace(Path.cwd())


ANOTHER = """
import os, sys
from quire.cli import main
main(["run", "warm.playbook.md", "--script", "script.json"])  # imports all that it needs, as long as it may read it
os.setgroups([])
os.setgid({stranger})
os.setuid({stranger})
os.chdir({mine!r})
sys.exit(main(["run", "hello.playbook.md", "--script", "script.json"]))
"""


@as_root
def test_another_account_for_real(shared: Path, tmp_path: Path) -> None:
    """A process that really is another account, below a marker of ours."""
    (shared / "quire.toml").write_text("")
    warm = tmp_path / "warm"
    warm.mkdir()
    (warm / "quire.toml").write_text("[assume]\nreaders = 1_000\n")  # a plain file is read without `tomllib`
    (warm / "warm.playbook.md").write_text(PLAYBOOK)
    (warm / "script.json").write_text(SCRIPT)
    shared.chmod(0o777)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o001 == 0:
            folder.chmod(folder.stat().st_mode | 0o011)
    os.chown(shared / "mine", STRANGER, STRANGER)
    code = ANOTHER.format(stranger=STRANGER, mine=str(shared / "mine"))
    line = [sys.executable, "-P", "-c", code]
    done = subprocess.run(line, cwd=warm, capture_output=True, text=True, check=False)
    assert not (shared / ".quire").exists()
    assert done.returncode == 6, done.stderr
    assert "belongs to the account root, not to you" in done.stderr


def test_a_linked_store_writes_nothing_elsewhere(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir()
    (shared / "mine" / ".quire").symlink_to(target)
    for verb in (["run", "hello.playbook.md", "--script", "script.json"], ["runs"], ["inbox"]):
        status = main(verb)
        assert list(target.iterdir()) == []
        assert status == 2 and ".quire is a link, not a folder: remove it" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["quire.db", "quire.db-wal", "locks"])
def test_nor_does_a_link_in_it(shared: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (shared / "mine" / ".quire").mkdir()
    target = tmp_path / "elsewhere"
    if name == "locks":
        target.mkdir()
    (shared / "mine" / ".quire" / name).symlink_to(target)
    status = main(["run", "hello.playbook.md", "--script", "script.json"])
    assert not target.exists() or (name == "locks" and list(target.iterdir()) == [])
    assert status == 2 and f"{name} is a link" in capsys.readouterr().err


def modes(folder: Path) -> dict[str, int]:
    found = {"": stat.S_IMODE(folder.stat().st_mode)}
    return found | {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}


def test_the_store_is_for_this_account_alone(shared: Path) -> None:
    before = os.umask(0)
    try:
        assert main(["run", "hello.playbook.md", "-q", "--script", "script.json"]) == 0
    finally:
        os.umask(before)
    found = modes(shared / "mine" / ".quire")
    assert found.pop("") == 0o700 and found.pop("locks") == 0o700
    assert set(found) >= {"quire.db", ".gitignore"} and set(found.values()) == {0o600}, found


async def test_what_was_left_open_is_closed(shared: Path) -> None:
    folder = shared / "mine" / ".quire"
    folder.mkdir(mode=0o755)
    for name in ("quire.db", ".gitignore"):
        (folder / name).touch()
        (folder / name).chmod(0o644)
    folder.chmod(0o755)
    store = open_store(folder / "quire.db", durability="process")
    try:
        await store.list(limit=1)
        found = modes(folder)
    finally:
        await store.close()
    assert found.pop("") == 0o700
    assert {"quire.db", "quire.db-wal", "quire.db-shm"} <= set(found) and set(found.values()) == {0o600}, found


async def test_a_store_that_was_put_elsewhere_keeps_its_modes(tmp_path: Path) -> None:
    shared = tmp_path / "team"
    shared.mkdir(mode=0o755)
    store = open_store(shared / "runs.db", durability="process")
    try:
        await store.list(limit=1)
    finally:
        await store.close()
    assert stat.S_IMODE(shared.stat().st_mode) == 0o755


async def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / ".quire").write_text("")
    with pytest.raises(StoreError, match="is a file, not a folder"):
        await open_store(tmp_path / ".quire" / "quire.db", durability="process").list(limit=1)
