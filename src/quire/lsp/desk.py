"""The documents that an editor has open, and the workspaces around them: library, settings and foresight.

The open texts are put before the files on disk (`quire.source.OPEN_TEXTS`), so an unsaved callee counts everywhere.
Nothing is started and no module of a workspace is imported. Everything is made anew after a change, when it is first
asked for; parsed texts are remembered by the library itself.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from msgspec import Struct

from quire.errors import QuireError, Unreadable
from quire.formats import most_bytes
from quire.library.collect import documents_below
from quire.library.document import Places
from quire.library.library import Library
from quire.lsp.document_tests import TestMemory
from quire.lsp.document_text import EditorText, Encoding
from quire.lsp.document_view import SETTINGS_FILE, View
from quire.lsp.last_runs import LastRuns, ModelPrices
from quire.source import OPEN_TEXTS, Span, normalise, read_source
from quire.workspace.configuration import load_settings
from quire.workspace.locate import MARKERS, find_workspace

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.library.check import DocumentCheck, QuickFindings
    from quire.library.foresight import Foresight
    from quire.library.snapshot import Snapshot
    from quire.workspace.settings import Settings


MOST_OPEN = 2_000
"""Documents that can be open at once. More are ignored, so that a client cannot fill the memory."""


class OpenDocument(Struct):
    """A document that is open in the editor."""

    uri: str
    path: str
    text: EditorText
    version: int
    findings: tuple[Diagnostic, ...] = ()
    """The findings of the last check."""
    checked: EditorText | None = None
    """The text that was last checked. Versions are not compared: an editor may give one to two texts."""
    edited: Span | None = None
    """The text that the last change has inserted; None if the whole text is new."""
    view: View | None = None
    """The view of this version, once it was asked for."""
    format: str = ""
    """The format of the last version that was looked at; empty for a file that is not a document, and after a save."""
    quick: QuickFindings | None = None
    """The findings of the quick part of the last check."""
    thorough: tuple[Diagnostic, ...] = ()
    """The findings of the last thorough part that has ended, at their places in `proven`."""
    proven: EditorText | None = None
    """The text in which the thorough findings have their places."""


class Desk:
    """The open documents and their workspaces."""

    def __init__(self) -> None:
        self.encoding: Encoding = "utf-16"
        self.links_codes = False
        """True if the editor opens the page about a code when the code is clicked."""
        self.roots: list[Path] = []
        """The folders that the editor has open."""
        self.documents: dict[str, OpenDocument] = {}
        self.test_memory = TestMemory()
        self.last_runs = LastRuns()
        self.prices = ModelPrices()
        self._folders: dict[Path, Folder] = {}
        self._places: dict[str, Path] = {}
        self.places = Places()
        """Where documents are, for all checks until `forget_places`."""

    def open(self, uri: str, version: int, text: str) -> OpenDocument | None:
        if len(self.documents) >= MOST_OPEN and uri not in self.documents:
            return None
        path = path_of(uri, self.roots)
        self._take_back(uri)
        document = OpenDocument(uri, path, EditorText(text, self.encoding, path), version)
        self.documents[uri] = document
        self._put_before_disk(document)
        return document

    def change(self, uri: str, version: int, changes: Sequence[object]) -> OpenDocument | None:
        """Apply the changes of one notification; None for a document that is not open."""
        document = self.documents.get(uri)
        if document is None:
            return None
        document.text = document.text.edited(changes)
        document.version = version
        document.edited = _inserted(document.text, changes)
        document.view = None
        self._put_before_disk(document)
        return document

    def saved(self, uri: str) -> None:
        """Decide the format of a document anew by its text. While it is typed it stays what it was; a text that was
        saved is what a search of the folder finds in it."""
        document = self.documents.get(uri)
        if document is not None:
            document.format = ""
            document.view = None

    def close(self, uri: str) -> OpenDocument | None:
        document = self.documents.get(uri)
        self._take_back(uri)
        return document

    def forget(self) -> None:
        """Forget everything that was read of the workspaces, because a text has changed."""
        self._folders.clear()
        for document in self.documents.values():
            document.view = None

    def forget_places(self) -> None:
        """Forget in which workspace each document is, because a file that marks one may have come or gone."""
        self._places.clear()
        self.places = Places()
        self.forget()

    def move_roots(self, added: Sequence[Path], removed: Sequence[Path]) -> None:
        """Note that the editor has opened some folders and closed others."""
        self.roots[:] = [root for root in self.roots if root not in removed]
        self.roots += [root for root in added if root not in self.roots]
        self.forget_places()

    def view(self, uri: str) -> View | None:
        """Return an open document as features see it."""
        document = self.documents.get(uri)
        if document is None:
            return None
        if document.view is None:
            folder = self.folder_of(document.path)
            document.view = View(document.path, document.text, folder, document.findings, document.format)
            document.format = document.view.format
        return document.view

    def read_last_run(self, document: OpenDocument) -> None:
        """Have the last run of a document read, before it is asked for."""
        if (view := self.view(document.uri)) is not None:
            self.last_runs.want(view)

    def view_of(self, path: str) -> View | None:
        """Return a document by its path, open or not; None for a file that cannot be read."""
        document = self.at(path)
        if document is not None:
            return self.view(document.uri)
        text = read_closed(path)
        return None if text is None else View(path, EditorText(text, self.encoding, path), self.folder_of(path))

    def at(self, path: str) -> OpenDocument | None:
        """Return the open document of a path."""
        return next((document for document in self.documents.values() if document.path == path), None)

    def folder_of(self, path: str) -> Folder:
        """Return the workspace around a document."""
        place = str(Path(path).parent)
        if place not in self._places:
            self._places[place] = self._workspace(Path(place))
        root = self._places[place]
        if root not in self._folders:
            self._folders[root] = Folder(root, self)
        return self._folders[root]

    def folders(self) -> list[Folder]:
        """Return the workspaces of the folders that the editor has open, and of the open documents."""
        paths = {self.folder_of(str(root / "quire.toml")).path for root in self.roots if root.is_dir()}
        paths |= {self.folder_of(document.path).path for document in self.documents.values()}
        return [self._folders.setdefault(root, Folder(root, self)) for root in sorted(paths)]

    def is_searched(self, folder: Path) -> bool:
        """Tell whether the documents below a folder belong together: in a workspace, and in a folder that the editor
        has open, unless that is the user's whole home or disk."""
        if any(os.path.lexists(folder / name) for name in MARKERS):
            return True
        return folder in self.roots and folder not in (Path.home(), *Path.home().parents)

    def opened(self, folder: Path) -> list[str]:
        """Return the paths of the open documents of a workspace."""
        return [document.path for document in list(self.documents.values()) if self._is_document_in(document, folder)]

    def unsaved(self, folder: Path) -> list[str]:
        """Return the paths of the open documents of a workspace that are not on disk yet."""
        return [path for path in self.opened(folder) if not os.path.exists(path)]  # noqa: PTH110

    def _is_document_in(self, document: OpenDocument, folder: Path) -> bool:
        view = self.view(document.uri) if self.folder_of(document.path).path == folder else None
        return view is not None and view.format not in ("", "settings")

    def beside(self, document: OpenDocument) -> Iterator[OpenDocument]:
        """Yield the other open documents of the same workspace, whose findings may depend on this one."""
        home = self.folder_of(document.path).path
        for other in self.documents.values():
            if other is not document and self.folder_of(other.path).path == home:
                yield other

    def _workspace(self, folder: Path) -> Path:
        # The folder of a new file may not exist yet; `isdir` of a name that cannot be one is False.
        place = next((path for path in (folder, *folder.parents) if os.path.isdir(path)), folder)  # noqa: PTH112
        with contextlib.suppress(QuireError):  # a workspace of another account: its settings are not read
            workspace = find_workspace(place)
            if workspace.marker is not None:
                return workspace.folder
        return next((root for root in self.roots if folder.is_relative_to(root)), folder)

    def _put_before_disk(self, document: OpenDocument) -> None:
        OPEN_TEXTS[document.path] = document.text.source
        self.forget()

    def _take_back(self, uri: str) -> None:
        document = self.documents.pop(uri, None)
        if document is not None:
            OPEN_TEXTS.pop(document.path, None)
            self.forget()


def path_of(uri: str, roots: Sequence[Path] = ()) -> str:
    """Return the absolute path that a URI means. One that is not a file gets a place in the first open folder."""
    parts = urlsplit(uri.encode("utf-8", "replace").decode())  # a half of a character cannot be in the name of a file
    if parts.scheme == "file":
        name = unquote(parts.path)
        if os.name == "nt":
            from urllib.request import url2pathname

            name = url2pathname(parts.path)
        return os.path.abspath(name)  # noqa: PTH100
    name = unquote(parts.path).rpartition("/")[2] or "untitled"
    return str((roots[0] if roots else Path.cwd()) / name)


def uri_of(path: str) -> str:
    """Return the URI of an absolute path."""
    if os.name == "nt":
        return Path(path).as_uri()
    return "file://" + quote(path, safe="/~!$&'()*+,;=:@")


def _inserted(text: EditorText, changes: Sequence[object]) -> Span | None:
    """Return the place of the last change in the text that it has led to; None if the whole text was replaced."""
    last = changes[-1] if changes else None
    if not isinstance(last, Mapping) or not isinstance(last.get("range"), Mapping):
        return None
    start = text.offset(last["range"].get("start"))
    return Span(start, start + len(normalise(str(last.get("text", "")))))


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
        paths = map(str, documents_below(self.path, deep=self._desk.is_searched(self.path), most=MOST_FILES))
        return tuple(dict.fromkeys((*paths, *self._desk.unsaved(self.path))))

    @property
    def settings_file(self) -> str:
        """The absolute path of the workspace's `quire.toml`, which need not exist."""
        return str(self.path / SETTINGS_FILE)

    def shown(self, path: str) -> str:
        """Return a path as it is shown: from the workspace, if the file is in it."""
        return str(Path(path).relative_to(self.path)) if Path(path).is_relative_to(self.path) else path

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
    try:
        return read_source(Path(path), limit=most_bytes(path)).text
    except (Unreadable, QuireError):
        return None
