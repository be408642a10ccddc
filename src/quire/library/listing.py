"""List the documents of a workspace, of the user folder and of Quire itself, broken ones included.

Files are only read: nothing is imported, started or asked, even if the workspace wants it and the user has agreed. A
file behind a link that leads out of the workspace is not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from msgspec import Struct
from msgspec.structs import replace

from quire.errors import CannotStart, QuireError
from quire.formats import format_of
from quire.library.check import DocumentCheck, FileFindings
from quire.library.collect import collect
from quire.library.document import Document, read
from quire.library.interface import input_schema
from quire.library.items import SPACES, Entry, ItemType, SpaceName
from quire.library.library import KINDS, Library
from quire.library.registered import shelf_entries
from quire.source import read_source, real_path, relative_to_here

if TYPE_CHECKING:
    from quire.library.registered import Registered
    from quire.values import Value
    from quire.workspace.settings import Settings


class ListedInput(Struct, frozen=True):
    """An input of a document, with its JSON Schema."""

    name: str
    required: bool
    schema: Mapping[str, Value]


class ListedDocument(FileFindings, frozen=True):
    """A document that can be run, or could be if it had no errors."""

    name: str
    """The name that `quire run` accepts; the path, if the document has no name."""
    space: SpaceName
    path: Path
    format: str = ""
    """Empty for a file that cannot be read."""
    title: str = ""
    description: str = ""
    inputs: tuple[ListedInput, ...] = ()

    def has(self, words: Iterable[str]) -> bool:
        """Tell whether all words occur in its name, title, description or path."""
        text = "\n".join((self.name, self.title, self.description, str(self.path))).casefold()
        return all(word.casefold() in text for word in words)


def listed_documents(settings: Settings) -> list[ListedDocument]:
    """Return all documents: those of the workspace first, then the user's own, then those that come with Quire."""
    return list(_Listing(settings).documents())


class _Listing:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._library = Library(settings).snapshot()
        self._check = DocumentCheck(imports=False)
        self._home = real_path(settings.workspace.folder)

    def documents(self) -> Iterator[ListedDocument]:
        """Yield the documents. A name in two spaces is written with its space."""
        entries: dict[SpaceName, list[Entry]] = {space: [] for space in SPACES}
        for kind in KINDS:
            for space in SPACES:
                entries[space] += self._entries(kind, space)
        for shelved in shelf_entries(self._settings).values():
            entries["user"] += shelved
        spaces_of: dict[str, set[str]] = {}
        for entry in (entry for several in entries.values() for entry in several):
            spaces_of.setdefault(entry.id, set()).add(entry.space)
        for space, several in entries.items():
            named: dict[Path, list[Entry]] = {}
            for entry in several:
                short = entry.id if len(spaces_of[entry.id]) == 1 else f"{space}:{entry.id}"
                named.setdefault(real_path(entry.path), []).append(replace(entry, id=short))
            yield from self._here(named) if space == "project" else self._elsewhere(named)

    def _entries(self, kind: ItemType, space: SpaceName) -> list[Entry]:
        if kind == "pipeline":
            pipelines = self._library.registry().pipelines if space == "project" else {}
            return [Entry(name, kind, space, Path(pipeline.source.name)) for name, pipeline in pipelines.items()]
        try:
            return self._library.spaces.entries(kind, space)
        except QuireError:
            return []  # a folder behind a link that leads out of its space: a run says so

    def _here(self, named: Mapping[Path, list[Entry]]) -> Iterator[ListedDocument]:
        """Yield the documents of the workspace, also those without a name."""
        files, _ = collect([str(self._settings.workspace.folder)])
        pipelines = self._library.registry().pipelines
        for path in sorted(file.path for file in files):
            real = real_path(path)
            if not real.is_relative_to(self._home):
                yield self._unread(path, "is a link that leads out of the workspace: it is not read")
                continue
            entries = named.get(real) or [Entry(_typed(path), "playbook", "project", path)]
            for entry in entries:
                yield from self._listed(entry.id, "project", path, pipelines.get(entry.id.removeprefix("project:")))

    def _elsewhere(self, named: Mapping[Path, list[Entry]]) -> Iterator[ListedDocument]:
        shelved = self._library.shelf.registry().pipelines
        for entries in named.values():
            for entry in entries:
                pipeline = shelved.get(entry.id.rpartition(":")[2]) if entry.type == "pipeline" else None
                yield from self._listed(entry.id, entry.space, entry.path, pipeline)

    def _listed(self, name: str, space: SpaceName, path: Path, pipeline: Registered | None) -> Iterator[ListedDocument]:
        """Read one document; nothing for knowledge, which does not run."""
        try:
            source = read_source(path)
            if (format := format_of(source)) == "knowledge":
                return
            document = pipeline.document if pipeline is not None else read(source)
        except (CannotStart, OSError) as error:
            yield self._unread(path, str(error).removeprefix(f"{path} "), name, space)
            return
        try:
            findings = self._check.of(source)
        except QuireError:
            findings = document.diagnostics  # the settings of the workspace are broken, or an item that it names
        plan = document.plan
        title, description = (plan.title, plan.description) if plan else ("", "")
        inputs = _inputs(document) if plan else ()
        yield ListedDocument(name, space, path, format, title or path.name, description, inputs, findings=findings)

    def _unread(self, path: Path, error: str, name: str = "", space: SpaceName = "project") -> ListedDocument:
        return ListedDocument(name or _typed(path), space, path, title=path.name, error=error)


def _typed(path: Path) -> str:
    return relative_to_here(path) or str(path)


def _inputs(document: Document) -> tuple[ListedInput, ...]:
    schema = input_schema(document)
    required = cast("list[str]", schema.get("required", []))
    properties = cast("Mapping[str, Mapping[str, Value]]", schema["properties"])
    return tuple(ListedInput(name, name in required, schema) for name, schema in properties.items())
