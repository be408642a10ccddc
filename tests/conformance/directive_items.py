"""Directive cases about spaces and the three actions."""

from __future__ import annotations

import asyncio
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from quire.errors import QuireError
from quire.library.item_tools.connection import ACTIONS, ItemsConnection
from quire.trust.capabilities import Grants
from quire.trust.keys import SigningKey
from quire.trust.trusted_keys import keep
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace
from quire.workspace.settings import Settings, TrustSettings

EVERYTHING = ["rye.*", "rye.reach.folder.%2Eai", "rye.reach.folder.user%3A%2Eai"]


def resolve(given: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        settings = house(Path(folder), given["files"])
        if given["call"]["tool"] == "sign":
            keep(settings, SigningKey.generate("default"), datetime.now(UTC))
        arguments = {name: value for name, value in given["call"].items() if name != "tool"}
        connection = ItemsConnection(settings, Grants.of(EVERYTHING))
        try:
            result: Any = asyncio.run(connection.call(ACTIONS[given["call"]["tool"]], arguments, "effect"))
        except QuireError as refusal:
            result = {"status": "error", "error": str(refusal)}
    return {**result, "failed": [one["item_id"] for one in result.get("failed", [])]}


def house(folder: Path, files: dict[str, str]) -> Settings:
    """A project and a user's space with these files; signatures are not asked for."""
    homes = {"project": folder / "project", "user": folder / "user"}
    for home in homes.values():
        (home / ".ai").mkdir(parents=True)
    for name, text in files.items():
        space, _, path = name.partition(":")
        file = homes[space] / ".ai" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    settings = load_settings(Workspace(homes["project"]), {"QUIRE_HOME": str(homes["user"])})
    return replace(settings, trust=TrustSettings("warn"))
