"""Files that are replaced whole, and paths as people type them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quire.source import relative_to_here, written_beside


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("old")
    with written_beside(file, b"new") as new:
        assert (file.read_text(), new.read_text(), new.parent) == ("old", "new", tmp_path)
        assert new.stat().st_mode & 0o777 == 0o600
        new.replace(file)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("a.json", "new")]


def test_nothing_is_left_of_a_file_that_is_not_moved(tmp_path: Path) -> None:
    file = tmp_path / ("n" * 250)
    with pytest.raises(ValueError, match="changed"), written_beside(file, b"new"):
        raise ValueError("changed")
    with pytest.raises(FileNotFoundError), written_beside(tmp_path / "missing" / "a", b"new"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_wider_mode_is_that_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    with written_beside(tmp_path / "a", b"", 0o666) as new:
        assert new.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_path_below_the_current_folder_is_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    assert relative_to_here(tmp_path / "link" / ".." / "link" / "a.md") == os.path.join("link", "a.md")  # noqa: PTH118
    assert relative_to_here(f"{tmp_path}/a.md") == "a.md"
    assert relative_to_here(tmp_path.parent / "a.md") is None
