from __future__ import annotations

from pathlib import Path

import pytest
from tests.given import given

from quire.errors import BadConfiguration
from quire.models.choose import ProviderSettings
from quire.units import Size
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.locate import find_workspace
from quire.workspace.settings import (
    AgentSettings,
    ClusterSettings,
    PipelineEntry,
    RunSettings,
    ServerMark,
    Settings,
    SpawnSettings,
)

EVERYTHING = """
[models]
default = "anthropic:some"
timeout = "30s"
[models.tiers]
low = "openai:small"
[models.providers.mine]
base_url = "http://localhost:1/v1"
api_key_env = "MINE_KEY"
timeout = "10m"
[tools]
allow = ["shell"]
modules = ["my_tools"]
[runs]
expiry = "7d"
on_uncertain = "ask"
durability = "process"
context_budget = 4000
[prompts]
folders = ["more"]
[knowledge]
folders = ["facts"]
[trust]
mode = "warn"
documents = true
[store]
url = "sqlite:///x.db"
[agents.default]
model = "low"
system = "Be short."
tools = ["file__write"]
[safety.spawn]
max_pipeline_fan_out_depth = 0
max_pipeline_spawns = 7
[pipelines.entries.daily]
path = "flows/daily.yaml"
description = "every day"
enabled = false
[cluster]
temporal = "localhost:7233"
namespace = "n"
task_queue = "q"
"""


def load(tmp_path: Path, workspace: str = "", user: str = "", mcp: str | None = None) -> Settings:
    folder, home = tmp_path / "work", tmp_path / "home"
    given({"work/quire.toml": workspace, "home/quire.toml": user}, tmp_path)
    if mcp is not None:
        (folder / ".mcp.json").write_text(mcp)
    return load_settings(find_workspace(folder), {"QUIRE_HOME": str(home)})


def test_everything_has_a_default(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text("{}")
    settings = load_settings(find_workspace(tmp_path), {"QUIRE_HOME": str(tmp_path / "nowhere")})
    assert settings.runs == RunSettings(30 * 86_400.0, "rerun", "power", None)
    assert settings.spawn == SpawnSettings(5, 100)
    assert settings.trust.mode == "require"
    assert (settings.models.default, settings.store_url, settings.agents) == (None, None, {})
    assert settings.models.timeout == 120.0
    assert settings.files == (tmp_path / ".mcp.json",)


def test_every_key(tmp_path: Path) -> None:
    """Some of them hold only once the user has agreed."""
    confirm(load(tmp_path, EVERYTHING))
    settings = load(tmp_path, EVERYTHING)
    assert settings.models.default == "anthropic:some"
    assert settings.models.tiers == {"low": "openai:small"}
    assert settings.models.providers == {"mine": ProviderSettings("http://localhost:1/v1", "MINE_KEY", 600.0)}
    assert settings.models.timeout == 30.0
    assert (settings.tools.allow, settings.tools.modules) == (("shell",), ("my_tools",))
    assert settings.runs == RunSettings(7 * 86_400.0, "ask", "process", 4000)
    assert settings.prompt_folders == (tmp_path / "work" / "more",)
    assert settings.knowledge_folders == (tmp_path / "work" / "facts",)
    assert (settings.trust.mode, settings.trust.documents) == ("warn", True)
    assert settings.store_url == "sqlite:///x.db"
    assert settings.agents == {"default": AgentSettings("low", "Be short.", ("file__write",))}
    assert settings.spawn == SpawnSettings(0, 7, is_set=True)
    assert settings.pipelines == {"daily": PipelineEntry("flows/daily.yaml", "every day", False)}
    assert settings.cluster == ClusterSettings("localhost:7233", "n", "q")


def test_pyproject_holds_the_same_keys(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.quire.runs]\nexpiry = "30m"\n')
    environ = {"QUIRE_HOME": str(tmp_path / "home")}
    assert load_settings(find_workspace(tmp_path), environ).runs.expiry == 1800
    (tmp_path / "pyproject.toml").write_text('[tool.quire.runs]\nexpire = "30m"\n')
    with pytest.raises(BadConfiguration, match=r'\[tool.quire.runs\] expire is not a setting; did you mean "expiry"'):
        load_settings(find_workspace(tmp_path), environ)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[run]\n", '"run" is not a setting; did you mean "runs"?'),
        ("zebra = 1", '"zebra" is not a setting; known are: agents, assume, budgets'),
        ('[runs]\nexpiry = "soon"', '[runs] expiry must be a time like "30s", "30m", "24h" or "7d", not \'soon\''),
        ('[runs]\nexpiry = "0h"', "[runs] expiry must be a time"),
        ("[runs]\nexpiry = 24", "[runs] expiry must be a time"),
        ("[runs]\ncontext_budget = true", "[runs] context_budget must be a whole number"),
        ("[runs]\ncontext_budget = -1", "[runs] context_budget must be a whole number"),
        ('[runs]\ndurability = "none"', '[runs] durability must be "power" or "process"'),
        ('[tools]\nallow = "shell"', "[tools] allow must be a list of texts"),
        ('[tools]\nallow = ["a", 1]', "[tools] allow must be a list of texts"),
        ("[models]\ntiers = 1", "[models] tiers must be a table"),
        ("[models]\ntimeout = 30", '[models] timeout must be a time like "30s", "30m", "24h" or "7d", not 30'),
        ('[models]\ntimeout = "0s"', "[models] timeout must be a time"),
        ('[models]\ntimeuot = "30s"', '[models] timeuot is not a setting; did you mean "timeout"?'),
        ('[models.providers.x]\nbase_url = "u"\ntimeout = "soon"', "[models.providers.x] timeout must be a time"),
        ("[models.tiers]\nlow = 1", "[models.tiers] low must be text"),
        ('[models.providers.x]\napi_key_env = "A"', "[models.providers.x] needs a base_url"),
        ('[models.providers.x]\nbase_url = "u"\nkey = "A"', "[models.providers.x] key is not a setting"),
        ("[agents]\nx = 1", "[agents] x must be a table"),
        ("[pipelines.entries.k]\nenabled = true", "[pipelines.entries.k] needs a path"),
        ("[safety.spawn]\nmax = 1", "[safety.spawn] max is not a setting"),
        ("[trust]\ndocuments = 1", "[trust] documents must be true or false"),
        ("a = ", "is not TOML"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_key(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(BadConfiguration) as wrong:
        load(tmp_path, text)
    assert problem in str(wrong.value)
    assert str(wrong.value).startswith(str(tmp_path / "work" / "quire.toml"))


def test_all_problems_of_all_files_at_once(tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration) as wrong:
        load(tmp_path, "[run]\n[storage]\n", "[models]\ndefault = 1\n", '{"mcpServers": {"python": {"command": "x"}}}')
    lines = str(wrong.value).splitlines()
    assert len(lines) == 4
    assert {line.partition(":")[0].rpartition("/")[2] for line in lines} == {"quire.toml", ".mcp.json"}


def test_the_users_settings_lie_under_those_of_the_workspace(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        '[models]\ndefault = "theirs"\n[models.tiers]\nlow = "theirs"\n[runs]\nexpiry = "1h"\n[tools]\nallow = ["a"]\n'
        '[models.providers.p]\nbase_url = "http://theirs"\n[agents.x]\nmodel = "theirs"\n',
        '[models]\ndefault = "mine"\n[models.tiers]\nlow = "mine"\nhigh = "mine"\n[runs]\non_uncertain = "fail"\n'
        '[tools]\nallow = ["b"]\n[models.providers.p]\nbase_url = "http://mine"\napi_key_env = "MINE"\n'
        '[prompts]\nfolders = ["own"]\n[agents.x]\nsystem = "mine"\n[agents.y]\nmodel = "mine"\n',
    )
    assert settings.models.default == "theirs"
    assert settings.models.tiers == {"low": "theirs", "high": "mine"}
    assert settings.runs == RunSettings(3600.0, "fail")
    assert (settings.tools.allow, settings.granted) == (("a",), ("b",))
    assert settings.prompt_folders == (tmp_path / "home" / "own",)
    # A provider comes whole from one file: the user's key must not go to the workspace's address.
    assert settings.models.providers["p"] == ProviderSettings("http://theirs", None)
    assert settings.agents == {"x": AgentSettings("theirs"), "y": AgentSettings("mine")}


def test_modules_of_the_users_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration, match="modules are read from a workspace"):
        load(tmp_path, "", '[tools]\nmodules = ["m"]\n')


def test_sizes_are_assumed_by_both_files(tmp_path: Path) -> None:
    settings = load(tmp_path, '[assume]\nreaders = 20\n"|ctx.parts|" = "3 K"', '[assume]\nreaders = 1\ndoc = "40 KB"')
    assert settings.assume == {"readers": Size(20), "|ctx.parts|": Size(3000), "doc": Size(40_960, is_text=True)}


@pytest.mark.parametrize("value", ["-1", '"many"', "1.5", "true", "[]", '"40 TB"', "{}"])
def test_an_assumed_size_is_a_number_or_a_size(tmp_path: Path, value: str) -> None:
    with pytest.raises(BadConfiguration, match=r'\[assume\] x must be a whole number or a size like "40 KB", not'):
        load(tmp_path, f"[assume]\nx = {value}")


def test_marks_of_servers_are_the_users_own(tmp_path: Path) -> None:
    mark = '[servers.tickets]\nat = "npx tickets"\ntrusted = true\nprivate = true\n'
    settings = load(tmp_path, "", mark)
    assert settings.marks == {"tickets": ServerMark("npx tickets", trusted=True, private=True)}
    with pytest.raises(BadConfiguration, match=r"\[servers\] is read from the quire.toml of your user folder"):
        load(tmp_path, mark)


def test_a_name_alone_is_not_trusted(tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration, match=r"\[servers.tickets\] trusted needs at"):
        load(tmp_path, "", "[servers.tickets]\ntrusted = true\n")
    assert load(tmp_path, "", "[servers.tickets]\nprivate = true\n").marks["tickets"].private


def test_private_files_of_both_files_count(tmp_path: Path) -> None:
    settings = load(tmp_path, '[privacy]\nfiles = ["a/*"]', '[privacy]\nfiles = ["b/*"]')
    assert settings.private_files == ("b/*", "a/*")
