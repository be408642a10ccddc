"""Find directives by name when many names are checked: the folders are listed once, and an unknown name costs no access
to the disk."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from quire.errors import QuireError
from quire.library.items import Item, checked_id

if TYPE_CHECKING:
    from quire.library.spaces import Spaces


class DirectiveIndex:
    """Finds what `Spaces.find` finds, as long as the files do not change after the first use."""

    def __init__(self, spaces: Spaces) -> None:
        self._spaces = spaces
        self.find = lru_cache(maxsize=None)(self._find)

    def _find(self, name: str) -> Item | None:
        """Find a directive by its name. Raises what `Spaces.find` raises."""
        parts = checked_id(name)
        here = parts[0] in self._top
        if not here:
            if isinstance(self._bare_names, QuireError):
                raise self._bare_names
            here = name in self._bare_names
        return self._spaces.find("directive", name) if here else None

    @cached_property
    def _top(self) -> frozenset[str]:
        """All names directly below the folders of directives, files with and without their endings."""
        found: set[str] = set()
        for root in self._spaces.roots("directive"):
            try:
                names = [path.name for path in root.folder.iterdir()]
            except OSError:
                continue  # `Spaces.find` cannot find anything there either
            found.update(names)
            found.update(name.removesuffix(ending) for name in names for ending in root.endings)
        return frozenset(found)

    @cached_property
    def _bare_names(self) -> frozenset[str] | QuireError:
        try:
            return frozenset(entry.name for entry in self._spaces.entries("directive"))
        except QuireError as error:
            return error
