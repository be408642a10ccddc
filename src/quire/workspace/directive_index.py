"""Directives by name, for a check of many names: the folders are listed once, and a name that none of them has costs no
look at the disk."""

from __future__ import annotations

from functools import cached_property

from quire.errors import QuireError
from quire.workspace.items import Item, checked_id
from quire.workspace.spaces import Spaces


class DirectiveIndex:
    """Finds what `Spaces.find` finds, as long as the files stay as they were when it was first asked."""

    def __init__(self, spaces: Spaces) -> None:
        self._spaces = spaces

    def find(self, name: str) -> Item | None:
        """Raises what `Spaces.find` raises."""
        parts = checked_id(name)
        here = any(f"{parts[0]}{ending}" in self._top for ending in ("", *self._endings))
        if not here:
            if isinstance(self._bare_names, QuireError):
                raise self._bare_names
            here = name in self._bare_names
        return self._spaces.find("directive", name) if here else None

    @cached_property
    def _endings(self) -> tuple[str, ...]:
        return tuple({ending: None for root in self._spaces.roots("directive") for ending in root.endings})

    @cached_property
    def _top(self) -> frozenset[str]:
        """All names right below the folders of directives. A folder that may not be read is left to `Spaces.find`."""
        found: set[str] = set()
        for root in self._spaces.roots("directive"):
            try:
                found.update(path.name for path in root.folder.iterdir())
            except OSError:
                continue
        return frozenset(found)

    @cached_property
    def _bare_names(self) -> frozenset[str] | QuireError:
        try:
            return frozenset(entry.name for entry in self._spaces.entries("directive"))
        except QuireError as error:
            return error
