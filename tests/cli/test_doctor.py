from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from quire.cli.doctor import command

MakeRun = Callable[..., str]

SECRET = "sk-very-secret-value"


@pytest.fixture(autouse=True)
def workspace(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUIRE_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    return workspace


def examine() -> tuple[int, dict[str, tuple[str, str]], str]:
    result = CliRunner().invoke(command, ["--json"])
    rows = json.loads(result.stdout)
    return result.exit_code, {row["what"]: (row["state"], row["detail"]) for row in rows}, result.stdout


def test_a_healthy_workspace(workspace: Path, tmp_path: Path) -> None:
    code, found, text = examine()
    assert code == 0
    assert found["workspace"] == ("ok", f"{workspace} (found by its quire.toml)")
    assert "user folder" in found
    assert found["settings"] == ("ok", str(workspace / "quire.toml"))
    assert found["trust"][0] == "ok"
    assert found["store"] == (
        "missing",
        f"{workspace / '.quire' / 'quire.db'} does not exist yet; the first run creates it",
    )
    assert "OPENAI_API_KEY" in found["provider keys"][1]
    assert found["embedded models"][0] == "missing"
    assert SECRET not in text
    assert sorted(path.name for path in workspace.iterdir()) == ["quire.toml"], "it writes nothing"


def test_servers_and_providers(workspace: Path) -> None:
    servers = {
        "here": {"command": sys.executable, "args": ["--key", "in-the-arguments"]},
        "gone": {"command": "no-such-command-here"},
        "key": {"command": "x", "env": {"K": "${NOT_SET_ANYWHERE}"}},
        "web": {"url": "https://user:pass@example.org/mcp?key=abc", "odd": 1},
    }
    (workspace / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (workspace / "quire.toml").write_text(
        '[models.providers.a]\nbase_url = "http://a"\napi_key_env = "NOT_SET_ANYWHERE"\n'
        '[models.providers.b]\nbase_url = "http://b"\n'
    )
    code, found, text = examine()
    assert code == 0
    assert found["mcp server here"] == ("ok", f"started by {sys.executable}")
    assert found["mcp server gone"] == ("missing", "command not found: no-such-command-here")
    assert found["mcp server key"] == ("missing", "NOT_SET_ANYWHERE is not set")
    assert found["mcp server web"] == ("ok", "at example.org")
    assert found["provider a"] == ("missing", "NOT_SET_ANYWHERE is not set")
    assert found["provider b"] == ("ok", "http://b")
    assert found["trust"] == ("missing", "6 requests wait for you: quire trust workspace")
    assert '"odd\\" is not known' in text
    for hidden in ("in-the-arguments", "pass@", "key=abc"):
        assert hidden not in text


def test_what_is_configured_of_models(workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "own"
    home.mkdir()
    monkeypatch.setenv("QUIRE_HOME", str(home))
    (home / "quire.toml").write_text(
        '[models.tiers]\nplain = "openai:x"\n[models.tiers.cheap]\nmodel = "house:small"\ntemperature = 0.2\n'
        'max_tokens = 8000\nreasoning = "low"\ntimeout = "1m"\nat_once = 2\n'
        '[agents.calm]\nmodel = "cheap"\nturns = 4\ntools = ["a", "b"]\n'
        "[models.limits.house]\nat_once = 8\ntokens_per_minute = 100000\n"
        '[models.prices."house:small"]\ninput = 0.5\noutput = 2\n'
    )
    (workspace / "quire.toml").write_text("[models.limits.house]\ncalls_per_minute = 60\n")
    found = examine()[1]
    assert found["tier plain"] == ("ok", "openai:x")
    assert found["tier cheap"][1] == (
        "house:small, temperature 0.2, replies of at most 8,000 tokens, reasoning low, timeout 60 s, 2 at once"
    )
    assert found["agent calm"] == ("ok", "cheap, 4 turns, tools a b")
    assert found["limits of house"] == ("ok", "8 calls at once, 100,000 tokens a minute")
    assert found["limits of house (of the workspace)"] == ("ok", "60 calls a minute")
    assert found["price of house:small"] == ("ok", "$0.5 in, $2 out per million tokens")


def test_one_request_waits(workspace: Path) -> None:
    (workspace / "quire.toml").write_text('[models.providers.b]\nbase_url = "http://b"\n')
    assert examine()[1]["trust"] == ("missing", "1 request waits for you: quire trust workspace")


def test_wrong_settings_are_problems(workspace: Path) -> None:
    (workspace / "quire.toml").write_text("[run]\n[storage]\n")
    result = CliRunner().invoke(command, [])
    assert result.exit_code == 1
    assert [line.split()[0] for line in result.stdout.splitlines()].count("problem") == 2
    assert 'did you mean "runs"?' in result.stdout


@pytest.mark.parametrize(
    ("statements", "state", "detail"),
    [
        (["CREATE TABLE x (y)"], "problem", "is a database of another program"),
        (["PRAGMA user_version = 9999"], "problem", "was written by a newer Quire"),
        ([], "ok", "quire.db"),
        (None, "problem", "is not a database"),
    ],
)
def test_the_store(workspace: Path, statements: list[str] | None, state: str, detail: str) -> None:
    file = workspace / ".quire" / "quire.db"
    file.parent.mkdir()
    if statements is None:
        file.write_bytes(b"no database at all, but long enough to be looked at" * 40)
    else:
        with sqlite3.connect(file) as connection:
            for statement in statements:
                connection.execute(statement)
        connection.close()
    code, found, _ = examine()
    assert found["store"][0] == state
    assert detail in found["store"][1]
    assert code == (1 if state == "problem" else 0)


@pytest.mark.parametrize(("no_color", "coloured"), [("1", False), ("", True)])
def test_colour_only_where_it_is_wanted(monkeypatch: pytest.MonkeyPatch, no_color: str, coloured: bool) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    assert ("\x1b[" in CliRunner().invoke(command, [], color=True).stdout) == coloured


def test_a_damaged_store(workspace: Path, make_run: MakeRun) -> None:
    make_run("# T\n\n## STEP 1: A\n\nGo.\n", ["ok"])
    file = workspace / ".quire" / "quire.db"
    assert examine()[1]["store"][0] == "ok"
    data = file.read_bytes()
    file.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    assert examine()[1]["store"][0] == "problem"


@pytest.mark.parametrize(("place", "detail"), [(".quire/quire.db/x", "regular file"), (".quire", "is not a folder")])
def test_something_else_where_the_store_belongs(workspace: Path, place: str, detail: str) -> None:
    (workspace / place).parent.mkdir(parents=True, exist_ok=True)
    (workspace / place).write_text("")
    code, found, _ = examine()
    assert (code, found["store"][0]) == (1, "problem")
    assert detail in found["store"][1]


def test_it_starts_nothing_and_loads_nothing_heavy(workspace: Path) -> None:
    (workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": {"command": "touch", "args": ["started"]}}}))
    code = (
        "import sys; from quire.cli.doctor import command; command(['--json'], standalone_mode=False);"
        "print([m for m in ('mcp', 'pydantic_ai', 'xllamacpp', 'asyncio') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert not (workspace / "started").exists()


def test_the_sandbox_is_found_or_missed_and_never_started(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    code, found, _ = examine()
    assert (code, found["sandbox"][0]) == (0, "missing")
    assert "commands (shell, rye/bash, shell steps of pipelines) are refused" in found["sandbox"][1]
    assert "--allow shell=unsandboxed" in found["sandbox"][1]
    started = tmp_path / "started"
    (programs / "bwrap").write_text(f"#!/bin/sh\n: > {started}\n")
    (programs / "bwrap").chmod(0o755)
    assert examine()[1]["sandbox"] == (
        "ok",
        f"bubblewrap ({programs / 'bwrap'}), for the commands of shell and rye/bash",
    )
    assert not started.exists()


def test_the_state_of_the_workspace(workspace: Path, tmp_path: Path) -> None:
    from quire.tools.builtin.state import State

    state = State.of(tmp_path / "home", workspace)
    assert examine()[1]["state"] == ("ok", f"no values are kept for state__get ({state.file})")
    assert not state.file.parent.exists(), "it writes nothing"
    state.set({"name": "last", "value": SECRET})
    code, found, text = examine()
    assert found["state"] == ("ok", f"1 value kept for state__get ({state.file})")
    assert SECRET not in text
    state.file.write_text("{")
    code, found, text = examine()
    assert code == 1 and found["state"][0] == "problem" and str(state.file) in found["state"][1]


def test_headers_for_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "quire.toml").write_text(
        '[http."a.example"]\nheaders = {Authorization = "Bearer ${OPENAI_API_KEY}", X-Version = "1"}\n'
        '[http."b.example"]\nheaders = {Authorization = "Bearer ${NOT_SET_ANYWHERE}"}\n'
    )
    _, found, text = examine()
    assert found["http a.example"] == ("ok", "your headers: Authorization, X-Version")
    assert found["http b.example"] == ("missing", "NOT_SET_ANYWHERE is not set")
    assert SECRET not in text
