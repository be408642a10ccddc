"""A project, a user's space with a key, and the connection of the three actions under chosen grants."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from msgspec.structs import replace
from tests.directives import directive as directive_text

from quire.library.item_tools.connection import ACTIONS, ItemsConnection
from quire.tools.arguments import Arguments
from quire.trust.capabilities import Grants
from quire.trust.keys import SigningKey
from quire.trust.sign_file import sign_file, signable
from quire.trust.trusted_keys import keep
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace
from quire.workspace.settings import Settings, TrustMode, TrustSettings

NOW = datetime(2026, 1, 2, tzinfo=UTC)


class Shelf:
    def __init__(self, folder: Path, *, key: bool = True) -> None:
        self.project, self.user = folder / "project", folder / "user"
        self.project.mkdir()
        self.settings: Settings = load_settings(Workspace(self.project), {"QUIRE_HOME": str(self.user)})
        self.key = SigningKey.generate("default")
        self.mode: TrustMode = "require"
        if key:
            keep(self.settings, self.key, NOW)

    def put(self, path: str, text: str, *, sign: bool = True) -> Path:
        """`user:.ai/…` for a file of the user's space, else one of the project."""
        home = self.user if path.startswith("user:") else self.project
        file = home / path.removeprefix("user:")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        if sign:
            assert sign_file(signable(file, self.project), self.key, NOW) == []
        return file

    async def call(self, action: str, grants: str = "rye.*", /, **arguments: Value) -> dict[str, Value]:
        """As the gate calls it: what the schema refuses fails the test. Grants are separated by spaces."""
        spec = ACTIONS[action]
        assert Arguments().problems(spec, arguments) == []
        settings = replace(self.settings, trust=TrustSettings(self.mode))
        connection = ItemsConnection(settings, Grants.of(grants.split()), run_id="run-1", now=lambda: NOW)
        answer = await connection.call(spec, dict(arguments), "effect-1")
        assert isinstance(answer, Mapping)
        return cast("dict[str, Value]", answer)


def knowledge(name: str, category: str = "demo", body: str = "BODY") -> str:
    head = f"name: {name}\ntitle: About {name}\nentry_type: reference\ncategory: {category}\nversion: 1.0.0"
    return f"```yaml\n{head}\n```\n\n{body}\n"


def directive(
    name: str,
    permissions: str = "<fetch><knowledge>*</knowledge></fetch>",
    *,
    extends: str = "",
    inputs: str = "",
    **more: str,
) -> str:
    parent = f' extends="{extends}"' if extends else ""
    return directive_text(name, permissions, description=f"Does {name}", extends=parent, more=inputs, **more)
