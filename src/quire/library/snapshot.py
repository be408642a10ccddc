"""The documents, tools and identities of a workspace as they are now, for checks that ask thousands of questions in a
row; and the circles that calls between documents lead into.

Nothing is started or verified, and the user is not asked. Each file is read once, and only when a question needs it;
modules for rare questions are imported then. Python tools are imported only if the user has agreed to the
workspace.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from quire.errors import QuireError, Untrusted
from quire.formats import format_of
from quire.formats.resolver import (
    Caller,
    CallTarget,
    Circle,
    DocumentInterface,
    DocumentResolver,
    ItemKind,
    Parent,
    circles,
)
from quire.library.document import place_of
from quire.library.library import KINDS, Library
from quire.source import Source

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import Pipeline
    from quire.library.items import Item, ItemIndex
    from quire.library.registered import Playbooks, Registered, RegisteredPipelines
    from quire.library.verify import VerifiedItems
    from quire.plan.nodes import Arguments, Plan
    from quire.tools.arguments import PlannedCall
    from quire.tools.registry import ToolSpec
    from quire.values import Value
    from quire.workspace.settings import Settings


class PythonTools:
    """Imports the modules when the first tool is looked up. Modules of an untrusted workspace are never imported: then
    nothing is known about its tools. Nothing is known about undeclared names either, because installed packages may
    provide them."""

    def __init__(self, settings: Settings, *, imports: bool = True) -> None:
        self._settings = settings
        self._imports = imports

    def problem(self, tool: str) -> str:
        """Return the reason why a tool cannot be used at all; empty if none is known."""
        loaded = self._loaded
        if isinstance(loaded, str):
            return loaded
        spec = loaded.get(tool)
        return spec.problem if spec else ""

    def problems(self, call: PlannedCall) -> list[str]:
        """Return the reasons why a call cannot be made."""
        if problem := self.problem(call.tool):
            return [problem]
        loaded = self._loaded
        spec = None if isinstance(loaded, str) else loaded.get(call.tool)
        return call.wrong_names(spec) if spec else []

    @cached_property
    def _loaded(self) -> Mapping[str, ToolSpec] | str:
        """The tools by name, or the reason why they cannot be loaded."""
        if not self._settings.tools.modules or not self._imports:
            return {}
        from quire.tools.python import workspace_tools

        try:
            return workspace_tools(self._settings)
        except Untrusted:
            return {}
        except QuireError as error:
            return str(error)


class KnownTools(Library, DocumentResolver):
    """A library that answers the questions of a `DocumentResolver` about tools and identities."""

    _imports = True
    """If false, Python tools are not imported, and nothing is known about them."""

    def is_built_in(self, name: str) -> bool:
        from quire.plan.uses import is_built_in

        return is_built_in(name)

    def tools(self) -> Collection[str] | None:
        """Return the known tools, or None if there are servers or modules: they are not started to list their tools."""
        if self.settings.servers or self.settings.tools.modules:
            return None
        from quire.tools.builtin import NAMES, SPECS

        return {*SPECS, *NAMES}

    def connections(self) -> Collection[str]:
        from quire.workspace.mcp_config import BUILT_IN, ITEMS, PYTHON

        return {BUILT_IN, ITEMS, PYTHON, *self.settings.servers, *self.settings.disabled_servers}

    def parameters(self, tool: str) -> Mapping[str, Value] | None:
        """Return the parameters of a built-in tool. Built-in names take precedence over all others, so the name cannot
        mean another tool."""
        spec = _built_in(tool)
        return spec.schema if spec else None

    def tool_problems(self, connection: str, tool: str, given: Arguments) -> list[str]:
        from quire.plan.nodes import UseTool
        from quire.tools.arguments import PlannedCall
        from quire.workspace.mcp_config import BUILT_IN

        call = PlannedCall.of_tool(UseTool(connection, tool, given))
        if connection != BUILT_IN:
            return self._python.problems(call)
        spec = _built_in(tool)
        return [*call.wrong_names(spec), *call.wrong_values(spec)] if spec else []

    def python_problem(self, tool: str) -> str:
        if not self.settings.tools.modules or self.parameters(tool) is not None:
            return ""
        head = next((mark for mark in ("python__", "python/") if tool.startswith(mark)), "")
        return self._python.problem(tool.removeprefix(head))

    @cached_property
    def _python(self) -> PythonTools:
        return PythonTools(self.settings, imports=self._imports)

    def identities(self) -> Collection[str]:
        return {"default", *self.settings.agents}

    def models(self) -> Collection[str]:
        from quire.models.tiers import step_models

        return {*step_models(self.settings.models), *self.settings.agents}

    def caps(self) -> tuple[int, int]:
        spawn = self.settings.spawn
        return spawn.max_pipeline_spawns, spawn.max_pipeline_fan_out_depth


def _built_in(tool: str) -> ToolSpec | None:
    from quire.tools.builtin import NAMES, SPECS
    from quire.trust.capabilities import canonical

    return SPECS.get(NAMES.get(canonical(tool), ""))


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
        from quire.library.items import ItemIndex

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
        return CallGraph(self)

    def pipeline(self, name: str, caller: Pipeline) -> Pipeline | None:
        """Find a pipeline by name. In a file of several, a name without a dot is a sibling first."""
        key, dot, _ = self._names.get(id(caller), "").rpartition(".")
        registered = self._registry.pipelines
        pipeline = (registered.get(f"{key}.{name}") if dot else None) or registered.get(name)
        return pipeline.tree if pipeline else None

    @cached_property
    def _names(self) -> Mapping[int, str]:
        return {id(pipeline.tree): pipeline.name for pipeline in self._registry.pipelines.values()}

    def directive(self, item_id: str) -> Parent | None:
        from quire.formats.directive.check import layers
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
        from quire.engine.interpreter.thread.hooks import is_composed
        from quire.library.directive_preview import read_project_hooks

        hooks = read_project_hooks(self.settings)[0]
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


MOST_FOLLOWED = 50_000
"""The number of calls that are followed for one workspace. In a file of thousands of pipelines that call each other,
each call would be followed again from each of them; cycles that are missed because of this limit are refused when the
run starts."""


class CallGraph:
    """The calls between the documents of a library that does not change."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._followed = 0
        self._caller = lru_cache(maxsize=None)(self._read)

    def circles(self, source: Source, calls: Sequence[CallTarget], declared: str) -> list[Circle]:
        """Return the circles that the calls of a document lead into; `declared` names it in a file of several."""
        path = Path(source.name)
        match format_of(source):
            case "pipeline":
                return self._pipeline(path, calls, declared)
            case "playbook":
                paths = self._library.playbooks().paths.items()
                own = next((name for name, file in paths if file.resolve() == path.resolve()), "")
                return circles(_caller("playbook", own, own or path.name, calls), self._find)
        place = place_of(path, "directives")
        own = place[1].with_suffix("").as_posix() if place else ""
        return circles(_caller("directive", own, own, calls), self._find)

    def _pipeline(self, path: Path, calls: Sequence[CallTarget], declared: str) -> list[Circle]:
        """An unregistered pipeline has no name for other documents, but a run of it resolves its own name to itself."""
        if self._followed > MOST_FOLLOWED:
            return []
        here = self._declaring.get(declared, ())
        own = next((pipeline.name for pipeline in here if Path(pipeline.source.name).resolve() == path.resolve()), "")
        root = _caller("pipeline", own, own or declared, calls)

        def find(caller: Caller, target: CallTarget) -> Caller | None:
            itself = root if target.name == root.name and target.kind in ("", "pipeline") else None
            return self._find(caller, target) or itself

        return circles(root, find)

    @cached_property
    def _declaring(self) -> Mapping[str, Sequence[Registered]]:
        declaring: dict[str, list[Registered]] = {}
        for pipeline in self._library.registry().pipelines.values():
            declaring.setdefault(pipeline.declared, []).append(pipeline)
        return declaring

    def _find(self, caller: Caller, target: CallTarget) -> Caller | None:
        """Return the document that a run would resolve a name to. A document that cannot be read leads nowhere: the run
        reports why."""
        self._followed += 1
        name = target.name
        if caller.format == "pipeline" and target.kind in ("", "pipeline"):
            # In a file of several, a name without a dot is a sibling first.
            key, dot, _ = caller.name.rpartition(".")
            sibling = f"{key}.{name}"
            name = sibling if dot and sibling in self._library.registry().pipelines else name
        try:
            return self._caller(name, target.kind)
        except QuireError:
            return None

    def _read(self, name: str, kind: str) -> Caller | None:
        document = self._library.find(name, (kind,) if kind else KINDS)
        if document is None:
            return None
        if document.format == "directive":
            from quire.formats.directive.item_references import documents_called
            from quire.formats.directive.parse import parse

            tree = parse(document.source).directive
            targets = [target for target, _ in documents_called(tree)] if tree else None
        else:
            from quire.plan.uses import called_names

            plan = document.plan
            targets = [CallTarget(called) for called in called_names(plan)] if plan is not None else None
        return _caller(document.format, document.id, document.id, targets) if targets is not None else None


def _caller(format: str, id: str, name: str, calls: Sequence[CallTarget]) -> Caller:
    """Return a document of the graph; one without an id cannot be called."""
    return Caller(f"{format}:{id}" if id else "", name, format, tuple(dict.fromkeys(calls)))
