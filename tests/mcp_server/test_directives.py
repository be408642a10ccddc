"""Directives as tools of an MCP server: signed ones, with the schema of their inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.directive_project import LEAF, call, write_directives
from tests.mcp_server.serving import Serving, envelope

from quire.mcp_server.catalogue import Catalogue
from quire.models.scripted import ScriptedModel
from quire.workspace.configuration import load_settings
from quire.workspace.locate import find_workspace


@pytest.fixture
def folder(workspace: Path) -> Path:
    write_directives(workspace)
    return workspace


def test_signed_directives_are_listed(folder: Path) -> None:
    reports: list[str] = []
    catalogue = Catalogue(load_settings(find_workspace(folder)), (), reports.append)
    before = catalogue.stamp()
    tools = catalogue.load().tools
    assert list(tools) == ["directive__base_deploy", "directive__deploy_staging", "directive__take_note"]
    deploy = tools["directive__deploy_staging"]
    assert deploy.description == "Deploy the current build to staging"
    assert deploy.schema == {
        "type": "object",
        "properties": {
            "target": {"type": "string", "description": "Where to"},
            "retries": {"type": "integer", "description": "How often", "default": 2},
        },
        "additionalProperties": False,
        "required": ["target"],
    }
    (folder / ".ai" / "directives" / "project" / "deploy" / "deploy_staging.md").write_text(LEAF)
    assert catalogue.stamp() != before
    assert "directive__deploy_staging" not in catalogue.load().tools
    assert ["is unsigned" in one for one in reports] == [True]


def test_one_name_in_two_places_needs_the_whole_id(folder: Path) -> None:
    other = folder / ".ai" / "directives" / "project" / "copies" / "take_note.md"
    other.parent.mkdir()
    text = (folder / ".ai" / "directives" / "project" / "notes" / "take_note.md").read_text()
    other.write_text(text)
    tools = Catalogue(load_settings(find_workspace(folder)), (), lambda text: None).load().tools
    assert "directive__project_notes_take_note" in tools and "directive__take_note" not in tools


async def test_a_directive_is_called(folder: Path) -> None:
    model = ScriptedModel([{"tool_calls": [call("directive_return", file="a.txt")]}])
    serving = Serving(folder, model)
    async with serving.client("auto") as client:
        result = await client.call_tool("directive__take_note", {"text": "abc"})
        assert envelope(result)["data"]["output"] == {"file": "a.txt"}
    await serving.runtime.close()
