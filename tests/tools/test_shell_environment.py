"""G15: what a command sees of the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.engine.requests import ToolRequest
from quire.errors import BadConfiguration
from quire.runs.gate import open_gate
from quire.workspace.configuration import load_settings
from quire.workspace.grants import default_grants, reach_of
from quire.workspace.locate import Workspace


async def printed(folder: Path, allow: tuple[str, ...], environ: dict[str, str]) -> str:
    environ = {"PATH": "/usr/bin:/bin", "HOME": "/home/me", "QUIRE_HOME": str(folder.parent / "home"), **environ}
    settings = load_settings(Workspace(folder), environ)
    async with open_gate(settings, default_grants(settings, allow), environ) as gate:
        return str(await gate.call(ToolRequest("1/tool", "1", "", "shell", {"command": "env"}), "e"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    return work


async def test_without_a_sandbox_a_command_has_the_users_home_and_environment(folder: Path) -> None:
    given = {"EDITOR": "vi", "OPENAI_API_KEY": "sk-not-for-commands"}
    said = await printed(folder, ("shell=unsandboxed",), given)
    assert "HOME=/home/me" in said
    assert "EDITOR=vi" in said
    assert "OPENAI_API_KEY" not in said


async def test_a_variable_that_is_granted_by_name_is_there_and_redacted(folder: Path) -> None:
    said = await printed(
        folder, ("shell=unsandboxed", "shell=env:OPENAI_API_KEY,HOME"), {"OPENAI_API_KEY": "sk-granted-by-name"}
    )
    assert "OPENAI_API_KEY=" in said
    assert "sk-granted-by-name" not in said
    assert "HOME=/home/me" in said


def test_only_the_user_grants_variables(folder: Path) -> None:
    home = folder.parent / "home"
    environ = {"QUIRE_HOME": str(home)}
    home.mkdir()
    (home / "quire.toml").write_text('[tools]\nshell_env = ["GH_TOKEN"]\n')
    (folder / "quire.toml").write_text('[tools]\nallow = ["shell=env:SECRET"]\n')
    settings = load_settings(Workspace(folder), environ)
    assert reach_of(default_grants(settings, ("shell=env:A,B_1",))).variables == {"GH_TOKEN", "A", "B_1"}
    (folder / "quire.toml").write_text('[tools]\nshell_env = ["SECRET"]\n')
    with pytest.raises(BadConfiguration, match="of your own space"):
        load_settings(Workspace(folder), environ)
    (folder / "quire.toml").write_text("")
    with pytest.raises(BadConfiguration):
        default_grants(load_settings(Workspace(folder), environ), ("shell=env:A-B",))
