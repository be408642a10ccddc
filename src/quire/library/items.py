"""Find items (directives, knowledge files, pipelines and playbooks) by their ids in three spaces: the project's `.ai`
folder, then the user's, then the items that come with Quire. The first space that has an id wins.

An id is a path without its ending, `category/name`. It comes from documents and models, so it is checked before a path
is made from it. A name without a category means the only item of that name, in any space. Links are followed only
inside the folder of their type, and a found item has the id of the file that is really read: permissions are checked
for that.

Items that come with Quire are verified by hashes in the package. They carry no signature, so users do not have to trust
a key of Quire's. A file that was changed after the installation is refused like any other modified item.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from msgspec import Struct

from quire.errors import CannotStart, QuireError, Refused, Unreadable
from quire.formats import belongs_to_test
from quire.library.registered import load_playbooks
from quire.os_flags import NO_LINK, NO_WAIT
from quire.source import MAX_DOCUMENT_BYTES, normalise, open_text, unsaved_below
from quire.trust.signature_line import digest_of

if TYPE_CHECKING:
    from quire.workspace.settings import Settings


ItemType: TypeAlias = Literal["directive", "knowledge", "tool", "pipeline", "playbook"]
SpaceName: TypeAlias = Literal["project", "user", "system"]

ITEM_TYPES: tuple[ItemType, ...] = get_args(ItemType)
SPACES: tuple[SpaceName, ...] = get_args(SpaceName)
"""In the order in which an item is looked up; the first hit wins."""

FOLDERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "directive": ("directives", (".md",)),
    "knowledge": ("knowledge", (".md", ".yaml")),
}
"""The types that live in spaces: their folder, and the endings of their files."""

BUILT_IN_FOLDER = Path(__file__).resolve().parent.parent / "space"

HASHES: Mapping[str, str] = {
    "directives/rye/agent/core/base.md": "b6c47cfbe405cf826903bb6bce9b1306cb55b78a6c2f754ad086935e2812a68c",
    "directives/rye/core/create_directive.md": "30829c00175cff33eb0d3075b9cd16e680f94d28959d445ca93c90f3ba3f2568",
    "directives/rye/core/create_threaded_directive.md": "a2376ebf406db876b65921d7a7def73e7493807a91a36db6ed51f9d19044ca8c",  # noqa: E501
    "knowledge/rye/agent/core/Behavior.md": "b1f31ba46ae2f44cd79dda529e431e28db2410fd869ba283766a7ab81de04452",
    "knowledge/rye/agent/core/Identity.md": "2df8d4844b3b1094db6090829d70b58843ae63c37a64a04a142e81b439f9dfe2",
}
"""The sha256 of each built-in file, by its path in the folder. `tests/library/test_built_in.py` prints the expected
value."""

MAX_ID = 500

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PLAIN_ID = re.compile(r"\w[\w-]*(?:/\w[\w-]*)*", re.ASCII)
"""The form of nearly all ids, so that checking thousands of names is quick."""


class Entry(Struct, frozen=True):
    """An existing item. Its text has not been read, unless it is an `Item`."""

    id: str
    type: ItemType
    space: SpaceName
    path: Path

    @property
    def name(self) -> str:
        return self.id.rpartition("/")[2]


class Item(Entry, frozen=True):
    """An item with its text: `text` is normalised like every document; `stored` is the text in the file, which is what
    is signed."""

    text: str
    stored: str


def checked_id(item_id: str) -> tuple[str, ...]:
    """Return the parts of an id. Raises `Refused` for one that could mean anything but a file in a space."""
    if _PLAIN_ID.fullmatch(item_id) and len(item_id) <= MAX_ID:
        return tuple(item_id.split("/"))
    shown = _CONTROL.sub("?", item_id)[:200]
    if not item_id or len(item_id) > MAX_ID:
        raise Refused(f"an item's id has 1 to {MAX_ID} characters")
    if "\\" in item_id or _CONTROL.search(item_id):
        raise Refused(f"{shown} is not an item's id: write category/name, with / between the parts")
    parts = tuple(item_id.split("/"))
    if item_id.startswith("/") or re.match(r"[A-Za-z]:", item_id):
        raise Refused(f"{shown} is not an item's id: an id is category/name, never an absolute path")
    if any(part.startswith(".") for part in parts):
        raise Refused(f"{shown} is not an item's id: no part of it may begin with a dot")
    if not all(parts):
        raise Refused(f"{shown} is not an item's id: a part of it is empty")
    return parts


def is_genuine(path: Path, text: str) -> bool:
    """Tell whether a file of the built-in folder is the one that was shipped. `text` is the normalised text."""
    try:
        name = path.relative_to(BUILT_IN_FOLDER).as_posix()
    except ValueError:
        return False
    return HASHES.get(name) == digest_of(text)


MAX_ENTRIES = 10_000
MAX_DEPTH = 20


class Root(Struct, frozen=True):
    """One folder with items of one type. `home` is the folder that must contain its real path; the user's own may be
    anywhere."""

    type: ItemType
    space: SpaceName
    folder: Path
    endings: tuple[str, ...]
    home: str = ""

    def real(self) -> str | None:
        """Return the real path, or None if the folder does not exist. Raises `Refused` for a link out of its space."""
        try:
            path = os.path.realpath(self.folder, strict=True)
        except OSError:
            return None
        if self.home and not _is_in(path, self.home):
            raise Refused(f"{self.folder} is a link that leads out of its folder; put a real folder there")
        return path

    def entry(self, item_id: str, path: Path) -> Entry:
        return Entry(item_id, self.type, self.space, path)


class Spaces:
    """The items of all spaces. Files are read again at every call, because a run may write an item and then use it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._home = str(settings.workspace.folder.resolve() / ".ai")

    def find(self, item_type: ItemType, item_id: str, source: SpaceName | None = None) -> Item | None:
        """Return the item that an id means, in all spaces or in one. Tools are not files and are never found here.

        Raises `Refused` for an id or a link that leads elsewhere, `CannotStart` for a bare name that several items
        have, and `Unreadable` for a file that is not text or too large.
        """
        parts = checked_id(item_id)
        if item_type not in FOLDERS:
            return self._document(item_type, item_id, source)
        for root in self.roots(item_type, source):
            item = _in_root(root, parts)
            if item is not None:
                return item
        return self._bare(item_type, item_id, source) if len(parts) == 1 else None

    def find_file(self, item_type: ItemType, item_id: str, then: str = "") -> Item | None:
        """Find an item like `find`. Raises `Refused` for a link: it would put one signed file in the place of another,
        which moving a file cannot do. `then` completes the advice."""
        item = self.find(item_type, item_id)
        if item is not None and item.id != item_id and not item.id.endswith(f"/{item_id}"):
            raise Refused(f"the {item_type} {item_id} is a link to {item.id}; put a file of its own there{then}")
        return item

    def entries(self, item_type: ItemType, source: SpaceName | None = None) -> list[Entry]:
        """Return all items of a type in the order of spaces and ids, without those hidden by an earlier space."""
        entries: dict[str, Entry] = {}
        for entry in self._entries(item_type, source):
            entries.setdefault(entry.id, entry)
        return list(entries.values())

    def read(self, entry: Entry) -> Item:
        """Read an item. Raises `Unreadable`, or `Refused` if it is a link that leads out."""
        if entry.type not in FOLDERS:
            return _read(entry)
        for root in self.roots(entry.type, entry.space):
            item = _in_root(root, tuple(entry.id.split("/")))
            if item is not None:
                return item
        raise Unreadable(entry.path, "does not exist")

    def roots(self, item_type: ItemType, source: SpaceName | None = None) -> Iterator[Root]:
        name, endings = FOLDERS[item_type]
        workspace, user = self.settings.workspace.folder, self.settings.user
        if source in (None, "project"):
            yield Root(item_type, "project", workspace / ".ai" / name, endings, self._home)
            if item_type == "knowledge":
                for folder in self.settings.knowledge_folders:
                    yield Root(item_type, "project", folder, endings)
        if source in (None, "user"):
            yield Root(item_type, "user", user / ".ai" / name, endings)
        if source in (None, "system"):
            yield Root(item_type, "system", BUILT_IN_FOLDER / name, endings)

    def _bare(self, item_type: ItemType, name: str, source: SpaceName | None) -> Item | None:
        fitting = [entry for entry in self.entries(item_type, source) if entry.name == name]
        if len(fitting) > 1:
            listed = ", ".join(sorted(entry.id for entry in fitting))
            raise CannotStart(f"{name} means several {plural(item_type)}: {listed}; say which")
        return self.read(fitting[0]) if fitting else None

    def _document(self, item_type: ItemType, name: str, source: SpaceName | None) -> Item | None:
        if source not in (None, "project"):
            return None
        if item_type == "playbook":
            playbook = load_playbooks(self.settings).find(name)
            return _read(Entry(playbook[0], "playbook", "project", playbook[1])) if playbook else None
        entries = self._pipelines() if item_type == "pipeline" else ()
        return next((_read(entry) for entry in entries if entry.id == name), None)

    def _entries(self, item_type: ItemType, source: SpaceName | None) -> Iterator[Entry]:
        if item_type in FOLDERS:
            for root in self.roots(item_type, source):
                yield from _below(root)
        elif source not in (None, "project"):
            return
        elif item_type == "playbook":
            for name, path in load_playbooks(self.settings).paths.items():
                yield Entry(name, "playbook", "project", path)
        elif item_type == "pipeline":
            yield from self._pipelines()

    def _pipelines(self) -> Iterator[Entry]:
        # Reads and parses all pipelines, so it is imported only for them.
        from quire.library.registered import load_registry

        for name, registered in sorted(load_registry(self.settings).pipelines.items()):
            yield Entry(name, "pipeline", "project", Path(registered.source.name))


class ItemIndex:
    """Finds the items of a type when many names are checked: the folders are listed once, and an unknown name costs no
    access to the disk. Finds the same as `Spaces.find`, as long as the files do not change after the first use."""

    def __init__(self, spaces: Spaces, item_type: ItemType) -> None:
        """`item_type` is one that has a file for each item."""
        self._spaces = spaces
        self._type = item_type
        self.find = lru_cache(maxsize=None)(self._find)

    def _find(self, name: str) -> Item | None:
        """Find an item by its name. Raises what `Spaces.find` raises."""
        parts = checked_id(name)
        here = parts[0] in self._top
        if not here:
            if isinstance(self._bare_names, QuireError):
                raise self._bare_names
            here = name in self._bare_names
        return self._spaces.find(self._type, name) if here else None

    @cached_property
    def _top(self) -> frozenset[str]:
        """All names directly below the folders of the type, files with and without their endings."""
        top: set[str] = set()
        for root in self._spaces.roots(self._type):
            names = [entry.id.partition("/")[0] for entry in _unsaved_below(root)]
            with suppress(OSError):  # `Spaces.find` cannot find anything there either
                names += [path.name for path in root.folder.iterdir()]
            top.update(names)
            top.update(name.removesuffix(ending) for name in names for ending in root.endings)
        return frozenset(top)

    @cached_property
    def _bare_names(self) -> frozenset[str] | QuireError:
        try:
            return frozenset(entry.name for entry in self._spaces.entries(self._type))
        except QuireError as error:
            return error


def plural(item_type: str) -> str:
    return "knowledge items" if item_type == "knowledge" else f"{item_type}s"


def _in_root(root: Root, parts: Sequence[str]) -> Item | None:
    if (item := _saved(root, parts)) is not None:
        return item
    item_id = "/".join(parts)
    return next((_read(entry) for entry in _unsaved_below(root) if entry.id == item_id), None)


def _unsaved_below(root: Root) -> Iterator[Entry]:
    """Yield the items that an editor has open and that are not on the disk yet."""
    for path in unsaved_below(root.folder, root.endings):
        ending = next(ending for ending in root.endings if path.name.endswith(ending))
        if not belongs_to_test(path.name):
            yield root.entry(path.relative_to(root.folder).as_posix().removesuffix(ending), path)


def _saved(root: Root, parts: Sequence[str]) -> Item | None:
    top = root.real()
    if top is None:
        return None
    folder, linked = top, False
    for part in parts[:-1]:
        entry = _named(folder, (part,))
        if entry is None:
            return None
        folder, linked = entry.path, linked or entry.is_symlink()
    names = [name for ending in root.endings if not belongs_to_test(name := parts[-1] + ending)]
    entry = _named(folder, names)
    if entry is None:
        return None
    if linked or entry.is_symlink():
        return _linked(root, top, entry.path)
    return _read(root.entry("/".join(parts), Path(entry.path)))


def _named(folder: str, names: Sequence[str]) -> os.DirEntry[str] | None:
    """Return the first of these names that a folder really has: some file systems also find `Base.md` under
    `base.md`."""
    try:
        with os.scandir(folder) as entries:
            listed = {entry.name: entry for entry in entries if entry.name in names}
    except OSError:
        return None
    return next((listed[name] for name in names if name in listed), None)


def _linked(root: Root, top: str, path: str) -> Item:
    """Read the target of a link, under its own id. The path is resolved first, so that the checked file is the one that
    is read."""
    try:
        real = Path(os.path.realpath(path, strict=True))
    except OSError as error:
        raise Unreadable(Path(path), f"cannot be read: {error.strerror or error}") from None
    if not _is_in(str(real), top) or real.suffix not in root.endings:
        raise Refused(f"{path} is a link that leads out of {root.folder}; put the file itself there")
    return _read(root.entry(real.relative_to(top).with_suffix("").as_posix(), real))


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _below(root: Root) -> Iterator[Entry]:
    yield from _unsaved_below(root)
    top = root.real()
    if top is None:
        return
    count = 0
    for here, folders, files in os.walk(top):
        below = Path(here).relative_to(top)
        folders[:] = (
            sorted(name for name in folders if not name.startswith(".")) if len(below.parts) < MAX_DEPTH else []
        )
        for ending in root.endings:
            for name in sorted(files):
                if not name.endswith(ending) or name.startswith(".") or belongs_to_test(name):
                    continue
                count += 1
                if count > MAX_ENTRIES:
                    raise CannotStart(f"{root.folder} holds more than {MAX_ENTRIES:,} items")
                yield root.entry((below / name.removesuffix(ending)).as_posix(), Path(here) / name)


def _read(entry: Entry) -> Item:
    """Read a file, both as stored and as normalised text. Never blocks: only regular files are read."""
    path = entry.path
    if (source := open_text(path)) is not None and not source.exceeds(MAX_DOCUMENT_BYTES):
        return Item(entry.id, entry.type, entry.space, path, source.text, source.text)
    try:
        if not NO_LINK and path.is_symlink():
            raise Unreadable(path, "is a link")
        opened = os.open(path, os.O_RDONLY | NO_WAIT | NO_LINK)
        try:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise Unreadable(path, "is not a regular file")
            data = bytearray()
            while len(data) <= MAX_DOCUMENT_BYTES and (piece := os.read(opened, MAX_DOCUMENT_BYTES + 1 - len(data))):
                data += piece
        finally:
            os.close(opened)
    except OSError as error:
        raise Unreadable(path, f"cannot be read: {error.strerror or error}") from None
    if len(data) > MAX_DOCUMENT_BYTES:
        raise Unreadable(path, f"is larger than {MAX_DOCUMENT_BYTES:,} bytes")
    try:
        stored = data.decode()
    except UnicodeDecodeError:
        raise Unreadable(path, "is not UTF-8 text") from None
    if "\0" in stored:
        raise Unreadable(path, "is a binary file, not text")
    return Item(entry.id, entry.type, entry.space, path, normalise(stored), stored)
