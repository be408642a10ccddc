"""`quire doctor --check`: a model and servers that really answer, or do not."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from quire.cli.doctor import command
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.locate import find_workspace

Invoke = Callable[..., Result]


def live(invoke: Invoke) -> dict[str, dict[str, str]]:
    """The findings by what they are about; the last one of each."""
    return {row["what"]: row for row in json.loads(invoke(command, "--check", "--json").stdout)}


def test_a_model_is_asked_for_one_token(invoke: Invoke, workspace: Path) -> None:
    (workspace / "replies.json").write_text(
        '[{"reply": "ok", "usage": {"input_tokens": 3, "output_tokens": 1, "cost": 0.01}}]'
    )
    (workspace / "quire.toml").write_text(f'[models]\ndefault = "script:{workspace}/replies.json"\n')
    row = live(invoke)[f"model script:{workspace}/replies.json"]
    assert row["state"] == "ok" and row["detail"].endswith("4 tokens, $0.0100")


def test_a_model_that_fails_is_a_problem(invoke: Invoke, workspace: Path) -> None:
    (workspace / "replies.json").write_text("[]")
    (workspace / "quire.toml").write_text(f'[models]\ndefault = "script:{workspace}/replies.json"\n')
    assert live(invoke)[f"model script:{workspace}/replies.json"]["state"] == "problem"
    assert invoke(command, "--check").exit_code == 1


@pytest.mark.parametrize("agreed", [True, False])
def test_servers_are_started_only_after_an_agreement(invoke: Invoke, workspace: Path, agreed: bool) -> None:
    servers = {
        "time": {"command": sys.executable, "args": ["-m", "mcp_server_time"]},
        "gone": {"command": sys.executable, "args": ["-c", "raise SystemExit(3)"]},
    }
    (workspace / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    if agreed:
        confirm(load_settings(find_workspace(workspace)))
    rows = live(invoke)
    if agreed:
        assert rows["mcp server time"]["detail"].endswith("with 2 tools")
        assert rows["mcp server gone"]["state"] == "problem"
    else:
        assert "quire trust workspace" in rows["check"]["detail"]
        assert not any(what.startswith("model ") for what in rows)
