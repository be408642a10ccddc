"""A workspace with signed documents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from tests.given import given

from quire.engine.ports import Model
from quire.runs.runtime import Runtime
from quire.stores import open_store
from quire.trust.keys import SigningKey
from quire.trust.sign_file import sign_file, signable
from quire.trust.trusted_keys import keep
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace

NOW = datetime(2026, 1, 2, tzinfo=UTC)


class SignedWorkspace:
    """A workspace whose user has a key. The user's space lies beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {"QUIRE_HOME": str(folder.parent / "home")}
        (folder / ".ai").mkdir(parents=True)
        self.settings = load_settings(Workspace(folder), self.environ)
        self.key = SigningKey.generate("default")
        keep(self.settings, self.key, NOW)

    def write(self, name: str, text: str, *, sign: bool = False) -> Path:
        file = given({name: text}, self.folder) / name
        if sign:
            self.sign(file)
        return file

    def sign(self, file: Path) -> None:
        assert sign_file(signable(file, self.folder), self.key, NOW) == []

    @asynccontextmanager
    async def opened(self, model: Model | None = None) -> AsyncIterator[Runtime]:
        """Open the workspace as another process would."""
        store = open_store(self.folder / ".quire" / "quire.db", durability="process")
        settings = load_settings(Workspace(self.folder), self.environ)
        runtime = Runtime(settings, store, environ=self.environ, model=model)
        try:
            yield runtime
        finally:
            await runtime.close()
