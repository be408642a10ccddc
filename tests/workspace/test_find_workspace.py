from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest
from tests.given import given

from quire.errors import CannotStart
from quire.workspace.locate import current_folder, find_workspace, user_space


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("quire.toml", ""),
        ("pyproject.toml", "[project]\nname = 'x'\n[tool.quire.runs]\nexpiry = '1h'\n"),
        (".mcp.json", "{}"),
        (".git", "gitdir: elsewhere"),
        (".ai", None),
        (".git", None),
    ],
)
def test_markers(tmp_path: Path, name: str, text: str | None) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    marker = tmp_path / name
    if text is None:
        marker.mkdir()
    else:
        marker.write_text(text)
    assert find_workspace(deep).folder == tmp_path
    assert find_workspace(deep).marker == marker


def test_the_nearest_wins_and_a_file_stands_for_its_folder(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    given({"quire.toml": "", "inner/.mcp.json": "{}"}, tmp_path)
    document = inner / "x.playbook.md"
    document.touch()
    assert find_workspace(document).folder == inner


@pytest.mark.parametrize("text", ["[project]\n", "[tool.quirex]\n", "# [tool.quire]\n"])
def test_a_pyproject_of_somebody_else_marks_nothing(tmp_path: Path, text: str) -> None:
    # tmp_path may itself lie inside of a workspace, so a marker above keeps the search in here.
    (tmp_path / "quire.toml").touch()
    inner = tmp_path / "inner"
    given({"pyproject.toml": text, ".ai": "a file, not a folder"}, inner)
    assert find_workspace(inner).folder == tmp_path


def test_user_space_can_be_moved(tmp_path: Path) -> None:
    assert user_space({"QUIRE_HOME": str(tmp_path)}) == tmp_path
    assert user_space({}).name == "quire"


@pytest.mark.parametrize("name", ["none", "none/deeper", "loop", "a\0b"])
def test_a_place_that_is_not_there_is_no_workspace(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(CannotStart, match="cannot be the workspace: "):
        find_workspace(tmp_path / name)
    assert [one.name for one in tmp_path.iterdir()] == ["loop"]


def test_the_current_folder_may_be_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    assert current_folder() == gone
    gone.rmdir()
    with pytest.raises(CannotStart, match="the current folder does not exist any more"):
        current_folder()


@pytest.mark.parametrize("configured", [None, "", " ", "/etc/mine", "relative"])
def test_user_space_is_where_platformdirs_has_it(configured: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUIRE_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    if configured is not None:
        monkeypatch.setenv("XDG_CONFIG_HOME", configured)
    assert user_space() == platformdirs.user_config_path("quire", appauthor=False)
