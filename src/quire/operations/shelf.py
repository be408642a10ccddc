"""The documents of the workspace: read anew when their files change, broken ones included; and the file that the
document of a run was read from."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.display.diagnostics import finding_data
from quire.errors import BadDocument, QuireError
from quire.library.check import DocumentCheck
from quire.library.collect import collect, document_at
from quire.library.document import Document, load
from quire.library.document_state import DocumentState, DocumentStates, trusted_keys
from quire.library.lookup import document_of, file_of, is_name
from quire.operations.problems import Problem
from quire.source import Source, read_source, real_path, relative_to_here
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.engine.records import RunRow
    from quire.operations.document_cases import DocumentTests
    from quire.runs.runtime import Runtime
    from quire.trust.trusted_keys import TrustedKeys

Stamp = tuple[int, int]
MOST_REMEMBERED = 50_000


class Shelf:
    """All documents below the workspace's folder. Requests may ask it from several threads."""

    def __init__(self, runtime: Runtime) -> None:
        self._settings = runtime.settings
        self._folder = runtime.settings.workspace.folder
        self._real = real_path(self._folder)
        self._known: dict[str, tuple[Stamp, DocumentState]] = {}
        self._stamp: tuple[tuple[str, Stamp], ...] = ()
        self._keys: TrustedKeys | str | None = None
        self._reading = threading.Lock()
        self._runs: dict[str, str] = {}

    @functools.cached_property
    def tests(self) -> DocumentTests:
        """The tests of the documents; their code is loaded when they are first asked for."""
        from quire.operations.document_cases import DocumentTests

        return DocumentTests(self._folder)

    def stamp(self) -> tuple[tuple[str, Stamp], ...]:
        """Return a value that changes when a document is added, removed or written."""
        return tuple((id, stamp) for id, _, stamp in self._files())

    def all(self) -> list[DocumentState]:
        """Return all documents. One that names no other is read again only when its own file changes; the rest when
        any file does."""
        with self._reading:
            files = list(self._files())
            stamp = tuple((id, written) for id, _, written in files)
            keys = trusted_keys(self._settings)
            if stamp != self._stamp or keys != self._keys:
                before = self._known if keys == self._keys else {}
                look = DocumentStates(self._settings, keys)
                self._known = {
                    id: (written, _unchanged(before, id, written) or look.at(id, path)) for id, path, written in files
                }
                self._stamp, self._keys = stamp, keys
            return [shelved for _, shelved in self._known.values()]

    def one(self, id: str) -> DocumentState:
        """Return one document as its file is now. Raises `Problem` for an id that is not in the list."""
        path = document_at(self._folder, id)
        if path is None:
            close = nearest(id, [other for other, _, _ in self._files()])
            raise Problem.of("no-such-document", f"unknown document {id}", help=did_you_mean(close))
        return DocumentStates(self._settings, trusted_keys(self._settings)).at(id, path)

    def meant(self, name: str) -> Document:
        """Return the document to run, by its id or by a name as `quire run` takes it. Raises what `one` and `to_run`
        raise, and `CannotStart` for a name of several documents."""
        if document_at(self._folder, name) is None and is_name(name) and file_of(name, self._folder):
            return document_of(name, self._folder)
        return to_run(self.one(name))

    def checked(self, text: str, path: str) -> tuple[Source, tuple[Diagnostic, ...]]:
        """Return all findings about a text, as `quire check` would print them. Raises `Problem` for a path that is not
        below the workspace."""
        if path.startswith("/") or any(part in ("", ".", "..") for part in path.split("/")):
            raise Problem.of("unfit-body", f"{path} is not a path of a document in the workspace")
        source = Source.of(text, str(self._folder / path))
        return source, DocumentCheck().of(source)

    def id_of(self, row: RunRow) -> str:
        """Return the id of the document that a run was started with; empty for one outside of the workspace. A run
        keeps the path as the user typed it, and the folder that it led to."""
        if len(self._runs) > MOST_REMEMBERED:
            self._runs.clear()
        if row.id not in self._runs:
            folder = row.pins.get("folder")
            place = Path(str(folder), Path(row.document).name) if folder else self._real / row.document
            inside = place.is_relative_to(self._real)
            self._runs[row.id] = place.relative_to(self._real).as_posix() if inside else ""
        return self._runs[row.id]

    def _files(self) -> Iterator[tuple[str, Path, Stamp]]:
        """Yield all documents, sorted by id."""
        files, _ = collect([str(self._folder)])
        start = len(str(self._folder)) + 1
        for id, path in sorted((str(file.path)[start:].replace(os.sep, "/"), file.path) for file in files):
            try:
                stat = path.stat()
            except OSError:
                continue
            yield id, path, (stat.st_mtime_ns, stat.st_size)


def _unchanged(before: Mapping[str, tuple[Stamp, DocumentState]], id: str, stamp: Stamp) -> DocumentState | None:
    written, state = before.get(id, (None, None))
    return state if state and written == stamp and state.alone else None


def to_run(state: DocumentState) -> Document:
    """Return a document under the name that its runs keep. Raises `BadDocument` for a file that cannot be read, and a
    `Problem` with the findings for a document with errors."""
    if state.document is None or state.source is None:
        raise BadDocument(state.error or f"{state.id} is knowledge: directives read it, nothing runs it")
    if state.document.plan is None:
        findings = [finding_data(state.source, finding, state.id) for finding in state.findings]
        raise Problem.of("bad-document", f"{state.id} cannot run: it has errors", more={"diagnostics": findings})
    return load(relative_to_here(state.path) or state.path)


class PinnedFile(Struct, frozen=True):
    """A document of the workspace. `id` is its path in the workspace."""

    id: str
    path: Path
    sha256: str
    """The hash of the text that the run has."""

    def text(self) -> str | None:
        """Return the text as it is now; None if the file is gone or not a document."""
        files, _ = collect([str(self.path)]) if self.path.is_file() else ((), ())
        try:
            return read_source(self.path).text if files else None
        except (QuireError, OSError):
            return None

    def changed(self) -> bool:
        """Return True if the file exists and has another text."""
        try:
            stat = self.path.stat()
        except OSError:
            return False
        now = _hash_of(self.path, stat.st_mtime_ns, stat.st_size)
        return bool(now) and now != self.sha256


@functools.lru_cache(maxsize=500)
def _hash_of(path: Path, written: int, size: int) -> str:
    """Return the hash of a text. The time and the size make the cache forget a file that was written."""
    try:
        return read_source(path).sha256
    except (QuireError, OSError):
        return ""


def pinned_file(folder: Path, row: RunRow) -> PinnedFile | None:
    """Return the file of a run's document; None if it was not one of this workspace."""
    beside = row.pins.get("folder")
    place = Path(str(beside)) / Path(row.document).name if beside else Path(row.document)
    path = (folder / place).resolve()
    root = folder.resolve()
    if not path.is_relative_to(root):
        return None
    return PinnedFile(path.relative_to(root).as_posix(), path, str(row.pins.get("document", "")))
