"""The workspace around open documents: its library, settings and foresight, with the editor's texts before the disk.

Nothing is started and no module of the workspace is imported. Everything is made anew after a change, when it is first
asked for; parsed texts are remembered by the library itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from quire.errors import QuireError, Unreadable

if TYPE_CHECKING:
    from quire.library.check import DocumentCheck
    from quire.library.foresight import Foresight
    from quire.library.library import Library
    from quire.library.snapshot import Snapshot
    from quire.lsp.desk import Desk
    from quire.lsp.model_prices import ModelPrices
    from quire.lsp.test_results import TestMemory
    from quire.lsp.views import View
    from quire.workspace.settings import Settings


MOST_FILES = 100_000
"""Files of a workspace that are looked at. Documents beyond are found when they are opened or called."""


class Folder:
    """One workspace as it is now."""

    def __init__(self, path: Path, desk: Desk) -> None:
        self.path = path
        self._desk = desk
        self._views: dict[str, View | None] = {}

    @cached_property
    def check(self) -> DocumentCheck:
        """The checker of all documents here."""
        from quire.library.check import DocumentCheck

        return DocumentCheck(imports=False, places=self._desk.places)

    @cached_property
    def settings(self) -> Settings | None:
        """The settings; None if they cannot be read."""
        from quire.workspace.configuration import load_settings
        from quire.workspace.locate import find_workspace

        try:
            return load_settings(find_workspace(self.path))
        except QuireError:  # wrong settings, or a workspace of another account
            return None

    @cached_property
    def snapshot(self) -> Snapshot | None:
        """The documents of the workspace, each read once; None if the settings cannot be read."""
        from quire.library.snapshot import Snapshot

        return Snapshot(self.settings, imports=False) if self.settings else None

    @cached_property
    def library(self) -> Library | None:
        from quire.library.library import Library

        return Library(self.settings) if self.settings else None

    @cached_property
    def foresight(self) -> Foresight:
        from quire.library.foresight import Foresight

        return Foresight(self.settings)

    @property
    def test_memory(self) -> TestMemory:
        """The results of the tests that were run in this session."""
        return self._desk.test_memory

    @property
    def prices(self) -> ModelPrices:
        """The prices of models, as far as they were read."""
        return self._desk.prices

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The absolute paths of all documents and tests here, with open ones that were never saved. A folder that is
        neither a workspace nor open in the editor is not searched below itself: it may be the home folder, in which
        one file was opened."""
        from quire.library.collect import documents_below

        found = map(str, documents_below(self.path, deep=self._desk.is_searched(self.path), most=MOST_FILES))
        return tuple(dict.fromkeys((*found, *self._desk.unsaved(self.path))))

    @property
    def settings_file(self) -> str:
        """The absolute path of the workspace's `quire.toml`, which need not exist."""
        from quire.lsp.views import SETTINGS_FILE

        return str(self.path / SETTINGS_FILE)

    def view(self, path: str) -> View | None:
        """Return another document, open or not; None for a file that cannot be read."""
        if path not in self._views:
            self._views[path] = self._desk.view_of(path)
        return self._views[path]

    def views(self) -> Iterator[View]:
        """Yield all documents here that can be read, and the settings."""
        for path in (*self.files, self.settings_file):
            if (view := self.view(path)) is not None:
                yield view

    def holding(self, name: str) -> Iterator[View]:
        """Yield the documents whose text holds a name: only these can use it."""
        for view in self.views():
            if name in view.source.text:
                yield view


def read_closed(path: str) -> str | None:
    """Return the text of a file that is not open; None if it cannot be read."""
    from quire.formats import most_bytes
    from quire.source import read_source

    try:
        return read_source(Path(path), limit=most_bytes(path)).text
    except (Unreadable, QuireError):
        return None
