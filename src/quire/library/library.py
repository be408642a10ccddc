"""The documents of one workspace: which document a name means, and a snapshot of all of them for checks."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.errors import CannotStart
from quire.library.document import Document, load, read
from quire.source import Source

if TYPE_CHECKING:
    from quire.library.items import Entry, Item, ItemType, SpaceName, Spaces
    from quire.library.registered import Playbooks, RegisteredPipelines
    from quire.library.snapshot import Snapshot
    from quire.plan.nodes import Plan
    from quire.workspace.settings import Settings

KINDS: tuple[ItemType, ...] = ("pipeline", "playbook", "directive")
"""The kinds of documents in the order in which a name is looked up."""


class Library:
    """The documents of one workspace. It has no state of a run, so all runs of a process can share it.

    The files are looked at again for each question, because a run may write a document and then use it. Only the parse
    of a text is remembered (`quire.library.document`), never the decision to trust a file.
    """

    def __init__(self, settings: Settings | Callable[[], Settings]) -> None:
        """`settings` may be a function that loads them when they are first needed."""
        self._given = settings

    @cached_property
    def settings(self) -> Settings:
        return self._given() if callable(self._given) else self._given

    @cached_property
    def spaces(self) -> Spaces:
        from quire.library.items import Spaces

        return Spaces(self.settings)

    def snapshot(self) -> Snapshot:
        """Return the library with its files as they are now: each is looked at once, when it is first needed."""
        from quire.library.snapshot import Snapshot

        return Snapshot(self._given)

    def registry(self) -> RegisteredPipelines:
        from quire.library.registered import load_registry

        return load_registry(self.settings)

    def playbooks(self) -> Playbooks:
        from quire.library.registered import load_playbooks

        return load_playbooks(self.settings)

    def named_directive(self, name: str) -> Item | None:
        """Find a directive by its id, or by its bare name. Raises what `Spaces.find` raises."""
        return self.spaces.find("directive", name)

    def directive_at(self, file: str) -> Item:
        """Return the directive in a file. Raises `CannotStart` for a file that is not in a space: it could be neither
        referenced nor signed."""
        path = Path(file).resolve()
        for root in self.spaces.roots("directive"):
            folder = root.real()
            if folder is not None and path.is_relative_to(folder):
                item_id = path.relative_to(folder).with_suffix("").as_posix()
                item = self.spaces.find("directive", item_id, root.space)
                if item is not None:
                    return item
        raise CannotStart(f"{file} is not a directive: they are below .ai/directives of a project or user folder")

    def find(self, name: str, kinds: Collection[str] = KINDS) -> Document | None:
        """Return the document that a name means: a registered pipeline, else a playbook, else a directive.

        Its signature is not verified. Raises `QuireError` for a document that exists but cannot be read.
        """
        if "pipeline" in kinds and (registered := self.registry().pipelines.get(name)):
            return registered.document
        if "playbook" in kinds and (playbook := self.playbooks().find(name)):
            return replace(load(playbook[1]), id=playbook[0])
        item = self.named_directive(name) if "directive" in kinds else None
        return replace(read(Source.of(item.text, str(item.path))), id=item.id) if item else None

    def meanings(self, name: str, space: SpaceName | None = None) -> list[Entry]:
        """Return all documents that a person may mean by a name: of the workspace, of the user's document list, and
        directives of all spaces; or those of one space. A full match wins over the last part of another name, within
        each kind and place."""
        from quire.library.registered import SHELF, shelf_entries

        places = [{kind: self.spaces.entries(kind, space) for kind in KINDS}]
        if space in (None, SHELF):
            places.append(shelf_entries(self.settings))
        meant: list[Entry] = []
        for place in places:
            for kind, entries in place.items():
                whole = [entry for entry in entries if entry.id == name]
                meant += whole or [entry for entry in entries if entry.name == name and kind != "pipeline"]
        return meant

    @cached_property
    def shelf(self) -> Library:
        """The library in which a document of the user's document list looks up names."""
        from quire.library.registered import shelf_settings

        return Library(shelf_settings(self.settings))

    def of(self, file: str) -> Library:
        """Return the library in which a document of this file looks up names."""
        from quire.workspace.locate import is_on_shelf

        return self.shelf if is_on_shelf(file, self.settings.user) else self

    def entries(self) -> dict[str, list[Entry]]:
        """Return all documents that have a name, by their kinds."""
        return {kind: self.spaces.entries(kind) for kind in KINDS}

    def plans(self) -> dict[str, Plan]:
        """Return the registered pipelines by name."""
        return {name: pipeline.plan for name, pipeline in self.registry().pipelines.items()}
