from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.given import given

from quire.errors import Untrusted
from quire.trust.capabilities import capability
from quire.workspace.configuration import load_settings
from quire.workspace.consent import changes, confirm, is_trusted, requests, require_trusted, revoke
from quire.workspace.grants import default_grants
from quire.workspace.locate import Workspace
from quire.workspace.settings import Settings

TOML = """
[tools]
allow = ["shell"]
modules = ["my_tools"]
[models.providers.p]
base_url = "http://there"
api_key_env = "P_KEY"
[agents.a]
model = "m"
[trust]
mode = "warn"
[store]
url = "sqlite:///x.db"
[cluster]
temporal = "there:7233"
"""
SERVERS = {"time": {"command": "run-time", "args": ["--zone", "${ZONE}"]}, "web": {"url": "https://h/mcp"}}

Load = Callable[[], Settings]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    return given({"quire.toml": TOML, "my_tools.py": "x = 1\n", ".mcp.json": {"mcpServers": SERVERS}}, folder)


@pytest.fixture
def load(folder: Path, tmp_path: Path) -> Load:
    return lambda: load_settings(Workspace(folder), {"QUIRE_HOME": str(tmp_path / "home")})


def test_everything_is_shown(load: Load) -> None:
    assert requests(load()) == (
        "start run-time --zone ${ZONE} as the MCP server time, given ZONE",
        "connect to https://h/mcp as the MCP server web",
        "use the tools shell",
        "import the Python module my_tools (1 file)",
        "send prompts of the provider p to http://there, with the key in P_KEY",
        "define the agent a: {'model': 'm'}",
        "set [trust] mode = warn",
        "set [store] url = sqlite:///x.db",
        "set [cluster] temporal = there:7233",
    )


def test_confirmed_once_until_revoked(load: Load) -> None:
    assert not is_trusted(load())
    with pytest.raises(Untrusted, match=r"start run-time(.|\n)*quire trust workspace"):
        require_trusted(load())
    confirm(load())
    assert is_trusted(load())
    require_trusted(load())
    assert revoke(load())
    assert not is_trusted(load())
    assert not revoke(load())


def edit(name: str, old: str, new: str) -> Callable[[Path], object]:
    def change(folder: Path) -> object:
        text = (folder / name).read_text()
        assert old in text
        return (folder / name).write_text(text.replace(old, new))

    return change


@pytest.mark.parametrize(
    "change",
    [
        edit(".mcp.json", "--zone", "--zones"),
        edit(".mcp.json", "https://h/mcp", "https://evil/mcp"),
        edit(".mcp.json", '"command"', '"cwd": "sub", "command"'),
        edit(".mcp.json", '"command"', '"env": {"A": "b"}, "command"'),
        edit("quire.toml", '"shell"', '"shell", "http__get"'),
        edit("quire.toml", "http://there", "http://elsewhere"),
        edit("quire.toml", "P_KEY", "OTHER_KEY"),
        edit("quire.toml", 'model = "m"', 'model = "n"'),
        edit("quire.toml", "there:7233", "elsewhere:7233"),
        edit("quire.toml", "[store]", '[prompts]\nfolders = ["../.."]\n[store]'),
        edit("my_tools.py", "x = 1", "x = 2"),
        lambda folder: (folder / "my_tools.so").write_bytes(b"comes before the source on import"),
    ],
)
def test_any_change_asks_again(folder: Path, load: Load, change: Callable[[Path], object]) -> None:
    confirm(load())
    change(folder)
    assert not is_trusted(load())


@pytest.mark.parametrize(
    "change",
    [
        edit("quire.toml", "[tools]", '[runs]\nexpiry = "1h"\n[prompts]\nfolders = ["more"]\n[tools]'),
        edit(".mcp.json", '"url": "https://h/mcp"', '"timeout": 5, "url": "https://h/mcp"'),
        lambda folder: (folder / "other.py").write_text("no module that is named"),
    ],
)
def test_what_asks_for_nothing_asks_nobody(folder: Path, load: Load, change: Callable[[Path], object]) -> None:
    confirm(load())
    change(folder)
    assert is_trusted(load())


def test_what_has_changed_since_the_user_agreed_is_said(folder: Path, load: Load) -> None:
    assert changes(load()) == ()
    confirm(load())
    assert changes(load()) == ()
    edit("quire.toml", "http://there", "http://elsewhere")(folder)
    (folder / "my_tools.py").write_text("x = 2\n")
    told = changes(load())
    assert [line.partition(":")[0] for line in told] == ["new", "changed", "no longer"]
    # newcomer, small things: the file that is another one, not the request that it belongs to.
    assert "http://elsewhere" in told[0] and told[1] == "changed: my_tools.py" and "http://there" in told[2]
    (load().user / "trust" / "agreed_files.json").unlink()
    assert changes(load())[1] == "changed content: import the Python module my_tools (1 file)"
    with pytest.raises(Untrusted, match="since you agreed:\n  new: send prompts of the provider p to http://elsewhere"):
        require_trusted(load())
    revoke(load())
    assert changes(load()) == ()


def test_settings_that_were_read_before_the_user_agreed_to_others_are_said_to_be_old(folder: Path, load: Load) -> None:
    """reliability M1: "no longer: set [store]" was said about a setting that was new."""
    text = (folder / "quire.toml").read_text()
    (folder / "quire.toml").write_text(text.partition("[store]")[0])
    old = load()
    confirm(old)
    (folder / "quire.toml").write_text(text)
    confirm(load())
    with pytest.raises(Untrusted, match=r"^the settings of \S+ have changed since this process read them: restart it$"):
        require_trusted(old)
    require_trusted(load())


def test_all_files_of_a_package_count(folder: Path, load: Load) -> None:
    (folder / "my_tools.py").unlink()
    given({"my_tools/deep/part.py": ""}, folder)
    assert "import the Python module my_tools (1 file)" in requests(load())
    confirm(load())
    given({"my_tools/__pycache__/part.pyc": ""}, folder)
    assert is_trusted(load())
    (folder / "my_tools" / "deep" / "part.py").write_text("import os\n")
    assert not is_trusted(load())


def test_the_same_requests_elsewhere_are_another_matter(folder: Path, load: Load, tmp_path: Path) -> None:
    confirm(load())
    folder.rename(tmp_path / "moved")
    assert not is_trusted(load_settings(Workspace(tmp_path / "moved"), {"QUIRE_HOME": str(tmp_path / "home")}))


def test_the_users_own_settings_need_no_leave(tmp_path: Path) -> None:
    home = tmp_path / "home"
    given({"quire.toml": TOML.replace('modules = ["my_tools"]', "")}, home)
    settings = load_settings(Workspace(tmp_path / "work"), {"QUIRE_HOME": str(home)})
    assert requests(settings) == ()
    assert is_trusted(settings)
    assert default_grants(settings).covers("rye.execute.tool.rye.bash")


def test_escape_codes_cannot_hide_a_line(folder: Path, load: Load) -> None:
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": {"command": "rm\x1b[2K\n\u202eok"}}}))
    assert requests(load())[0] == r"start rm\x1b[2K\n\u202eok as the MCP server a"


def tool(name: str) -> str:
    return capability("execute", "tool", name)


def test_default_grants(load: Load) -> None:
    untrusted = default_grants(load(), ["web"])
    assert not untrusted.covers(tool("mcp/time/now"))
    assert not untrusted.covers(tool("rye/bash"))
    assert untrusted.covers(tool("mcp/web/get"))
    confirm(load())
    trusted = default_grants(load())
    for name in ("mcp/time/now", "mcp/web/get", "python/anything", "rye/bash"):
        assert trusted.covers(tool(name))
    assert trusted.covers(capability("fetch", "prompt", "mcp/time/hello"))
    for name in ("mcp/other/x", "rye/web/fetch"):
        assert not trusted.covers(tool(name))


@pytest.mark.parametrize(
    ("allow", "granted"),
    [
        ("time/now", "mcp/time/now"),
        ("time__now", "mcp/time/now"),
        ("time/*", "mcp/time/anything"),
        ("mcp/time/now", "mcp/time/now"),
        ("file__write", "rye/file-system/write"),
        ("python/f", "python/f"),
    ],
)
def test_allow_takes_the_names_that_people_know(load: Load, allow: str, granted: str) -> None:
    grants = default_grants(load(), [allow])
    assert grants.covers(tool(granted))
    assert not grants.covers(tool("mcp/web/get"))
