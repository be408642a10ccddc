from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.given import given

from quire.cli import trust


@pytest.fixture(autouse=True)
def workspace(workspace: Path) -> Path:
    return given({".mcp.json": {"mcpServers": {"time": {"command": "run-time"}}}}, workspace)


def run(*arguments: str, input: str | None = None) -> Result:
    return CliRunner().invoke(trust.trust_command, ["workspace", *arguments], input=input)


LINE = "start run-time as the MCP server time\n"


def test_unattended_it_shows_and_refuses() -> None:
    result = run()
    assert (result.exit_code, result.stdout) == (6, LINE)
    assert "quire trust workspace --yes" in result.stderr
    assert run().exit_code == 6


def test_yes_show_revoke() -> None:
    assert run("--show").exit_code == 0
    assert run().exit_code == 6, "looking is not agreeing"
    assert run("--yes").exit_code == 0
    again = run()
    assert (again.exit_code, again.stdout) == (0, LINE)
    assert "you agreed" in again.stderr
    assert run("--revoke").exit_code == 0
    assert run().exit_code == 6


def test_a_change_asks_again(workspace: Path) -> None:
    run("--yes")
    (workspace / ".mcp.json").write_text('{"mcpServers": {"time": {"command": "rm"}}}')
    assert run().exit_code == 6


@pytest.mark.parametrize(("answer", "code"), [(True, 0), (False, 6)])
def test_on_a_terminal_it_asks(monkeypatch: pytest.MonkeyPatch, answer: bool, code: int) -> None:
    """How it is asked is tried on a terminal, in `test_terminal.py`."""
    asked: list[str] = []

    def yes_or_no(prompt: str) -> bool:
        asked.append(prompt)
        return answer

    class Terminal:
        @staticmethod
        def isatty() -> bool:
            return True

    class Streams:
        stdin = stderr = Terminal

    monkeypatch.setattr(trust, "sys", Streams)
    monkeypatch.setattr("quire.cli.terminal.yes_or_no", yes_or_no)
    assert run().exit_code == code
    assert asked == ["Do you trust this workspace with all of that? yes or no [no]: "]
    monkeypatch.undo()


def test_json_is_all_of_stdout() -> None:
    result = run("--json")
    assert result.exit_code == 6
    data = json.loads(result.stdout)
    assert (data["trusted"], data["requests"]) == (False, [LINE.strip()])
    result = run("--yes", "--json")
    assert (result.exit_code, json.loads(result.stdout)["trusted"]) == (0, True)


def test_nothing_asked_for_needs_nothing(workspace: Path, tmp_path: Path) -> None:
    (workspace / ".mcp.json").write_text("{}")
    result = run()
    assert (result.exit_code, result.stdout) == (0, "")
    assert "asks for nothing" in result.stderr
    assert run("--yes").exit_code == 0
    assert not (tmp_path / "home").exists()


def test_flags_that_exclude_each_other() -> None:
    assert run("--yes", "--revoke").exit_code == 2
