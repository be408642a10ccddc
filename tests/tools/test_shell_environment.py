"""G15: what a command sees of the environment."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from quire.engine.requests import ToolRequest
from quire.errors import BadConfiguration, Denied, ToolFailed
from quire.runs.workspace_gate import open_gate
from quire.tools.arguments import PlannedCall
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.grants import default_grants, reach_of
from quire.workspace.locate import Workspace

needs_sandbox = pytest.mark.skipif(not shutil.which("bwrap"), reason="there is no bubblewrap")
both = pytest.mark.parametrize("allow", [pytest.param("shell", marks=needs_sandbox), "shell=unsandboxed"])


async def printed(folder: Path, allow: tuple[str, ...], environ: dict[str, str], **more: Value) -> str:
    environ = {"PATH": "/usr/bin:/bin", "HOME": "/home/me", "QUIRE_HOME": str(folder.parent / "home"), **environ}
    settings = load_settings(Workspace(folder), environ)
    async with open_gate(settings, default_grants(settings, allow), environ) as gate:
        return str(await gate.call(ToolRequest("1/tool", "1", "", "shell", {"command": "env", **more}), "e"))


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
    with pytest.raises(BadConfiguration, match="of your user folder"):
        load_settings(Workspace(folder), environ)
    (folder / "quire.toml").write_text("")
    with pytest.raises(BadConfiguration):
        default_grants(load_settings(Workspace(folder), environ), ("shell=env:A-B",))


@both
async def test_a_command_that_asks_by_name_gets_no_other_granted_variable(folder: Path, allow: str) -> None:
    given = {"OPENAI_API_KEY": "sk-of-the-model", "GEMINI_API_KEY": "of-another-model", "TZ": "UTC"}
    granted = (allow, "shell=env:OPENAI_API_KEY,GEMINI_API_KEY")
    said = await printed(folder, granted, given, env=["OPENAI_API_KEY", "TZ"])
    assert "OPENAI_API_KEY=[redacted:OPENAI_API_KEY]" in said
    assert "GEMINI_API_KEY" not in said
    assert "API_KEY" not in await printed(folder, granted, given, env=[])
    said = await printed(folder, granted, given)
    assert "OPENAI_API_KEY=" in said
    assert "GEMINI_API_KEY=" in said


@both
async def test_a_command_is_not_started_if_it_asks_for_what_is_not_granted(folder: Path, allow: str) -> None:
    given = {"OPENAI_API_KEY": "sk-of-the-model"}
    with pytest.raises(Denied, match=r"OPENAI_API_KEY.*--allow shell=env:OPENAI_API_KEY.*shell_env"):
        await printed(folder, (allow,), given, env=["PATH", "OPENAI_API_KEY"], command="touch started")
    with pytest.raises(ToolFailed, match=r"variable GH_TOKEN, which is not set"):
        await printed(folder, (allow, "shell=env:GH_TOKEN"), given, env=["GH_TOKEN"], command="touch started")
    with pytest.raises(ToolFailed, match=r"'A=B\\n' is not the name of a variable"):
        await printed(folder, (allow,), given, env=["A=B\n"], command="touch started")
    assert not (folder / "started").exists()


async def test_a_variable_that_is_not_granted_is_found_before_the_run(folder: Path) -> None:
    environ = {"QUIRE_HOME": str(folder.parent / "home")}
    settings = load_settings(Workspace(folder), environ)
    call = PlannedCall("", "shell", ("command", "env"), {"env": ["GH_TOKEN"]})
    async with open_gate(settings, default_grants(settings, ("shell",)), environ) as gate:
        assert "--allow shell=env:GH_TOKEN" in str(await gate.problem_with(call))
    async with open_gate(settings, default_grants(settings, ("shell=env:GH_TOKEN",)), environ) as gate:
        assert "is not set" in str(await gate.problem_with(call))
    async with open_gate(settings, default_grants(settings, ("shell=env:GH_TOKEN",)), {"GH_TOKEN": "x"}) as gate:
        assert await gate.problem_with(call) is None
