"""`quire tools`: every tool with its id, aliases, class, tier, source and schema, and no server started for it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.cli.conftest import Said
from tests.given import given

from quire.cli import main
from quire.plan.built_in_tools import BUILT_IN_TOOLS
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.locate import find_workspace

SERVER = """import json, pathlib, sys
pathlib.Path(__file__).with_name("started").touch()
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    results = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "t", "version": "1"}},
        "tools/list": {"tools": [{"name": "create", "description": "Makes a ticket.",
                                  "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}]},
    }
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": results.get(message["method"], {})}), flush=True)
"""
PYTHON = "import quire\n\n@quire.tool\ndef words_of(text: str) -> int:\n    'Counts words.'\n    return 1\n"


@pytest.fixture
def places(workspace: Path) -> Path:
    """A workspace with a Python tool and a server."""
    entry = {"command": sys.executable, "args": ["server.py"]}
    return given(
        {
            "quire.toml": '[tools]\nmodules = ["counted_words"]\n',
            "counted_words.py": PYTHON,
            "server.py": SERVER,
            ".mcp.json": json.dumps({"mcpServers": {"tickets": entry}}),
        },
        workspace,
    )


def tools(said: Said, *options: str) -> tuple[dict[str, Any], dict[str, str]]:
    assert main(["tools", "--json", *options]) == 0
    data = json.loads(said()[0])
    return {tool["id"]: tool for tool in data["tools"]}, data["not_asked"]


def test_the_built_in_tools(workspace: Path, said: Said) -> None:
    listed, not_asked = tools(said)
    assert not_asked == {} and {tool.id for tool in BUILT_IN_TOOLS} <= set(listed)
    read, shell = listed["rye/file-system/read"], listed["rye/bash"]
    assert read["aliases"] == ["file__read", "rye/file-system/fs_read"] and listed["ask"]["aliases"] == []
    assert (read["class"], read["tier"], read["source"]) == ("read", "safe", "quire")
    assert (shell["class"], shell["tier"]) == ("write", "elevated")
    for tool in listed.values():
        jsonschema_rs.meta.validate(tool["schema"])


def test_nothing_is_imported_or_started_before_the_user_agrees(places: Path, said: Said) -> None:
    for options in ((), ("--connect",)):
        listed, not_asked = tools(said, *options)
        assert "python/words_of" not in listed and set(not_asked) == {"python", "tickets"}
        assert "quire trust workspace" in not_asked["python"]
    assert "quire trust workspace" in not_asked["tickets"] and not (places / "started").exists()


def test_a_server_is_asked_with_connect_alone(places: Path, said: Said) -> None:
    confirm(load_settings(find_workspace(places)))
    listed, not_asked = tools(said)
    assert listed["python/words_of"]["aliases"] == ["python__words_of"]
    assert listed["python/words_of"]["source"] == "python"
    assert not_asked == {"tickets": "quire tools --connect asks it"} and not (places / "started").exists()
    listed, not_asked = tools(said, "--connect")
    created = listed["mcp/tickets/create"]
    assert (created["aliases"], created["source"], created["class"]) == (["tickets__create"], "tickets", "write")
    assert list(created["schema"]["properties"]) == ["text"] and not_asked == {} and (places / "started").exists()


def test_a_table_for_people(places: Path, said: Said) -> None:
    assert main(["tools"]) == 0
    out, err = said()
    assert out.splitlines()[0].split() == ["TOOL", "CLASS", "TIER", "SOURCE", "ARGUMENTS"]
    assert ["file__write", "idempotent", "write", "quire", "path,", "content,", "files"] in map(
        str.split, out.splitlines()
    )
    assert "tickets: quire tools --connect asks it" in err
