"""The documents of a workspace as they are now, for checks that ask thousands of questions in a row.

Nothing is started or verified, and the user is not asked. Each file is read once, and only when a question needs it;
what only some questions need is imported then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from quire.errors import QuireError
from quire.formats.resolver import CallTarget, Circle, DocumentInterface, ItemKind, Parent
from quire.library.known_tools import KnownTools
from quire.source import Source

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import Pipeline
    from quire.library.call_graph import CallGraph
    from quire.library.items import Item
    from quire.library.registered import Playbooks, RegisteredPipelines
    from quire.library.spaces import ItemIndex
    from quire.library.verify import VerifiedItems
    from quire.plan.nodes import Plan
    from quire.workspace.settings import Settings


class Snapshot(KnownTools):
    """The `DocumentResolver` of a workspace."""

    def __init__(self, settings: Settings | Callable[[], Settings], *, imports: bool = True) -> None:
        super().__init__(settings)
        self._imports = imports
        self._called: dict[str, DocumentInterface | None] = {}
        self._ids: dict[ItemKind, list[str]] = {}

    @cached_property
    def _registry(self) -> RegisteredPipelines:
        return super().registry()

    @cached_property
    def _playbooks(self) -> Playbooks:
        return super().playbooks()

    @cached_property
    def _directives(self) -> ItemIndex:
        from quire.library.spaces import ItemIndex

        return ItemIndex(self.spaces, "directive")

    @cached_property
    def _plans(self) -> dict[str, Plan]:
        return super().plans()

    def plans(self) -> dict[str, Plan]:
        return self._plans

    def registry(self) -> RegisteredPipelines:
        return self._registry

    def playbooks(self) -> Playbooks:
        return self._playbooks

    def named_directive(self, name: str) -> Item | None:
        return self._directives.find(name)

    def document(self, name: str) -> DocumentInterface | None:
        if name not in self._called:
            from quire.library.interface import interface_of

            self._called[name] = interface_of(name, self)
        return self._called[name]

    def circles(self, source: Source, calls: Sequence[CallTarget], declared: str = "") -> Sequence[Circle]:
        return self._graph.circles(source, calls, declared)

    @cached_property
    def _graph(self) -> CallGraph:
        from quire.library.call_graph import CallGraph

        return CallGraph(self)

    def pipeline(self, name: str, caller: Pipeline) -> Pipeline | None:
        """Find a pipeline by name. In a file of several, a name without a dot is a sibling first."""
        key, dot, _ = self._names.get(id(caller), "").rpartition(".")
        registered = self._registry.pipelines
        found = (registered.get(f"{key}.{name}") if dot else None) or registered.get(name)
        return found.tree if found else None

    @cached_property
    def _names(self) -> Mapping[int, str]:
        return {id(one.tree): one.name for one in self._registry.pipelines.values()}

    def directive(self, item_id: str) -> Parent | None:
        from quire.formats.directive.check_references import layers
        from quire.formats.directive.parse import parse
        from quire.formats.directive.syntax import text_of

        item = self.spaces.find_file("directive", item_id)
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

        item = self.spaces.find_file("knowledge", item_id)
        if item is not None and read_knowledge(Source.of(item.text, str(item.path))).errors:
            from quire.library.verify import read_body

            read_body(item)  # raises the error that a run would raise
        return item is not None

    def ids(self, kind: ItemKind) -> Collection[str]:
        if kind not in self._ids:
            try:
                self._ids[kind] = [entry.id for entry in self.spaces.entries(kind)]
            except QuireError:
                self._ids[kind] = []
        return self._ids[kind]

    def project_layers(self) -> Collection[str]:
        return self._project_layers

    @cached_property
    def _project_layers(self) -> Collection[str]:
        from quire.engine.interpreter.thread.hooks import is_composed, read_hooks_yaml
        from quire.source import read_source
        from quire.workspace.consent import HOOKS

        file = self.settings.workspace.folder / HOOKS
        if not file.is_file():
            return ()
        hooks, _ = read_hooks_yaml(read_source(file).text, HOOKS)
        bringing = [hook for hook in hooks if any(is_composed(hook, action) for action in hook.actions)]
        return {*(hook.id for hook in bringing), *(action.item_id for hook in bringing for action in hook.actions)}

    def distrust(self, item_id: str) -> str:
        from quire.trust.signatures import Verification

        item = self.spaces.find_file("directive", item_id)
        if item is None:
            return ""
        verdict = self._verified.verdict(item)
        return "" if verdict.ok or verdict.outcome is Verification.UNSIGNED else verdict.message

    @cached_property
    def _verified(self) -> VerifiedItems:
        from quire.library.verify import VerifiedItems

        return VerifiedItems.of(self.settings)
