"""Check directives and knowledge files: their places, and the references to items of the spaces around them.

Nothing is started or verified. The workspace is read only for a file that names something in it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from quire.errors import QuireError, Refused
from quire.formats.directive.check_references import ItemKind, Parent
from quire.source import Source

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.formats.resolver import Circle, Wanted
    from quire.library.call_graph import CallGraph
    from quire.library.items import Item
    from quire.library.pipelines import Registered
    from quire.library.spaces import Spaces
    from quire.library.verify import VerifiedItems


def place_of(path: Path, folder: str) -> tuple[Path, PurePath] | None:
    """Return the folder that contains the file's space, and the file's path in it; None for a file that is not in a
    space.

    Links are not followed: the path at which an item is found is its name.
    """
    parts = Path(os.path.abspath(path)).parts  # noqa: PTH100
    at = max((at for at, part in enumerate(parts) if part == ".ai"), default=-1)
    if at < 0 or len(parts) <= at + 2 or parts[at + 1] != folder:
        return None
    return Path(*parts[:at]), PurePath(*parts[at + 2 :])


class ItemCheck:
    """Collects all findings about directives and knowledge files. A workspace is read once for all its files."""

    def __init__(self) -> None:
        self._homes: dict[Path, _Home] = {}

    def directive(self, source: Source) -> tuple[Diagnostic, ...]:
        from quire.formats.directive.document import check

        found = place_of(Path(source.name), "directives")
        if found is None:
            return check(source)
        home, place = found
        return check(source, _Around(self._homes.setdefault(home, _Home(home)), place))

    def knowledge(self, source: Source) -> tuple[Diagnostic, ...]:
        from quire.formats.directive.knowledge import check_knowledge

        found = place_of(Path(source.name), "knowledge")
        return check_knowledge(source, found[1] if found else None)


class _Home:
    """A workspace that is read when the first item in it is looked up."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ids: dict[ItemKind, list[str]] = {}

    @cached_property
    def spaces(self) -> Spaces:
        from quire.library.spaces import Spaces
        from quire.workspace.configuration import load_settings
        from quire.workspace.locate import find_workspace

        return Spaces(load_settings(find_workspace(self._folder)))

    @cached_property
    def verified(self) -> VerifiedItems:
        from quire.library.verify import VerifiedItems

        return VerifiedItems.of(self.spaces.settings)

    @cached_property
    def project_layers(self) -> Collection[str]:
        from quire.engine.interpreter.thread.hooks import injects, read_hooks_yaml
        from quire.source import read_source
        from quire.workspace.consent import HOOKS

        file = self.spaces.settings.workspace.folder / HOOKS
        if not file.is_file():
            return ()
        hooks, _ = read_hooks_yaml(read_source(file).text, HOOKS)
        bringing = [hook for hook in hooks if any(injects(hook, action) for action in hook.actions)]
        return {*(hook.id for hook in bringing), *(action.item_id for hook in bringing for action in hook.actions)}

    def ids(self, kind: ItemKind) -> Collection[str]:
        if kind not in self._ids:
            try:
                self._ids[kind] = [entry.id for entry in self.spaces.entries(kind)]
            except QuireError:
                self._ids[kind] = []
        return self._ids[kind]

    @cached_property
    def graph(self) -> CallGraph:
        from quire.library.call_graph import CallGraph

        return CallGraph(self.spaces.settings, self._pipelines)

    def _pipelines(self) -> Mapping[str, Registered]:
        from quire.library.pipelines import load_registry

        return load_registry(self.spaces.settings).pipelines


class _Around:
    """The `Surroundings` of one directive."""

    def __init__(self, home: _Home, place: PurePath) -> None:
        self.place = place
        self._home = home

    def parent(self, item_id: str) -> Parent | None:
        from quire.formats.directive.check_references import layers
        from quire.formats.directive.parse import parse
        from quire.formats.directive.syntax import text_of

        item = self._find("directive", item_id)
        if item is None:
            return None
        reading = parse(Source.of(item.text, str(item.path)))
        if reading.directive is None:
            from quire.library.verify import read_thread

            read_thread(item)  # raises the error that a run would raise
        context = reading.partial.context.items if reading.partial.context else ()
        suppress = tuple(text.text for position, text in context if position == "suppress")
        return Parent(item.id, text_of(reading.partial.extends), suppress, tuple(layers(reading.partial)))

    def has_knowledge(self, item_id: str) -> bool:
        from quire.formats.directive.knowledge import read_knowledge

        item = self._find("knowledge", item_id)
        if item is not None and read_knowledge(Source.of(item.text, str(item.path))).errors:
            from quire.library.verify import read_body

            read_body(item)  # raises the error that a run would raise
        return item is not None

    def ids(self, kind: ItemKind) -> Collection[str]:
        return self._home.ids(kind)

    def project_layers(self) -> Collection[str]:
        return self._home.project_layers

    def distrust(self, item_id: str) -> str:
        from quire.trust.signatures import Outcome

        item = self._find("directive", item_id)
        if item is None:
            return ""
        verdict = self._home.verified.verdict(item)
        return "" if verdict.ok or verdict.outcome is Outcome.UNSIGNED else verdict.message

    def circles(self, declared: str, calls: Sequence[Wanted]) -> Sequence[Circle]:
        return self._home.graph.directive(self.place.with_suffix("").as_posix(), calls)

    def _find(self, kind: ItemKind, item_id: str) -> Item | None:
        """Find an item as a run does. Raises `Refused` for a link, which would put one signed file in the place of
        another."""
        item = self._home.spaces.find(kind, item_id)
        if item is not None and item.id != item_id and not item.id.endswith(f"/{item_id}"):
            raise Refused(f"the {kind} {item_id} is a link to {item.id}; put a file of its own there")
        return item
