"""A gate with nothing but the built-in tools, in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.engine.requests import ToolRequest
from quire.runs.workspace_gate import open_gate
from quire.tools.gate import Gate
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.grants import default_grants
from quire.workspace.locate import Workspace


class House:
    """`folder` is the workspace; the user's space lies beside it."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "work"
        self.folder.mkdir()
        self.environ = {"QUIRE_HOME": str(tmp_path / "space"), "PATH": "/usr/local/bin:/usr/bin:/bin"}

    def gate(self, *allow: str) -> Gate:
        settings = load_settings(Workspace(self.folder), self.environ)
        return open_gate(settings, default_grants(settings, allow), self.environ)

    async def call(self, tool: str, *allow: str, **arguments: Value) -> Value:
        return await self.gate(*allow).call(ToolRequest("1/tool", "1", "", tool, arguments), "effect")

    def write(self, path: str, text: str | bytes = "") -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)
