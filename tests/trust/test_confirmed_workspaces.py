from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from quire.errors import BadConfiguration
from quire.workspace.consent import ConfirmedWorkspaces


def test_remembers_a_folder_by_its_hash(tmp_path: Path) -> None:
    known = ConfirmedWorkspaces(tmp_path / "home" / "trust" / "workspaces.json")
    assert not known.has(tmp_path, "one")
    known.add(tmp_path, "one")
    known.add(tmp_path / "other", "two")
    assert known.has(tmp_path, "one")
    assert known.has(tmp_path / "x" / "..", "one")
    assert not known.has(tmp_path, "two")
    assert known.remove(tmp_path)
    assert not known.remove(tmp_path)
    assert not known.has(tmp_path, "one")
    assert known.has(tmp_path / "other", "two")


@pytest.mark.skipif(os.name == "nt", reason="modes are a matter of POSIX")
def test_the_file_is_the_users_alone_and_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "trust" / "workspaces.json"
    ConfirmedWorkspaces(file).add(tmp_path, "one")
    before = file.stat().st_ino
    ConfirmedWorkspaces(file).add(tmp_path, "two")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.stat().st_ino != before
    assert [path.name for path in file.parent.iterdir()] == ["workspaces.json"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 2, "workspaces": {}}', '{"version": 1, "workspaces": {"a": 1}}']
)
def test_a_damaged_file_trusts_nothing(tmp_path: Path, text: str) -> None:
    file = tmp_path / "workspaces.json"
    file.write_text(text)
    with pytest.raises(BadConfiguration, match="delete it to be asked again"):
        ConfirmedWorkspaces(file).has(tmp_path, "one")


def test_a_link_and_its_target_are_one_workspace(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    known = ConfirmedWorkspaces(tmp_path / "workspaces.json")
    known.add(tmp_path / "link", "one")
    assert known.has(real, "one")
    assert list(json.loads(known.file.read_text())["workspaces"]) == [str(real)]
