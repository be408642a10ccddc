"""Check documents against their workspace: registered pipelines, other documents, tools, identities.

Nothing is started, and the user is not asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from quire.diagnostics import Diagnostic
from quire.formats.pipeline.check import check_reading
from quire.formats.pipeline.codes.errors import CLAIMED_TWICE
from quire.formats.pipeline.codes.warnings import ARGUMENTS
from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.syntax import Literal, Pipeline, ToolBody, walk
from quire.formats.resolver import Called
from quire.library.call_graph import CalledDocuments, CallGraph, PipelineReach, PlaybookReach
from quire.library.collect import has_file_beside
from quire.library.pipelines import Registered, in_folder, load_registry
from quire.plan.nodes import Arguments, Plan, UseTool
from quire.source import Source, real_path
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace, find_workspace
from quire.workspace.mcp_config import BUILT_IN

if TYPE_CHECKING:
    from quire.formats.pipeline.parse_result import ParseResult
    from quire.library.python_tools import PythonTools
    from quire.values import Value
    from quire.workspace.settings import Settings


class WorkspaceResolver:
    """The `Resolver` of a workspace, as its files are now."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        registry = load_registry(settings)
        self._registered = registry.pipelines
        self._claimed = registry.claimed
        self._names = {id(one.tree): one.name for one in registry.pipelines.values()}
        self.graph = CallGraph(settings, lambda: registry.pipelines)
        self._documents = CalledDocuments(self.graph.playbooks, self.graph.directives)

    def pipeline(self, name: str, caller: Pipeline) -> Pipeline | None:
        """Find a pipeline by name. In a file of several, a name without a dot is a sibling first."""
        key, dot, _ = self._names.get(id(caller), "").rpartition(".")
        found: Registered | None = self._registered.get(f"{key}.{name}") if dot else None
        found = found or self._registered.get(name)
        return found.tree if found else None

    def document(self, name: str) -> Called | None:
        return self._documents.find(name)

    def registered(self, name: str) -> Called | None:
        """Describe a registered pipeline for a playbook. A pipeline declares no inputs: the values that it reads are
        needed."""
        found = self._registered.get(name)
        if found is None:
            return None
        from quire.formats.pipeline.check_calls import needs_of

        needed, read = needs_of(found.tree)
        return Called("pipeline", name, needed, None if read is None else tuple(sorted(read)))

    def tools(self) -> Collection[str] | None:
        """Return the known tools, or None if there are servers or modules: they are not started to list their tools."""
        if self._settings.servers or self._settings.tools.modules:
            return None
        from quire.tools.builtin import NAMES, SPECS

        return {*SPECS, *NAMES}

    def parameters(self, tool: str) -> Mapping[str, Value] | None:
        """Return the parameters of a built-in tool. Built-in names take precedence over all others, so the name cannot
        mean another tool."""
        from quire.tools.builtin import NAMES, SPECS
        from quire.trust.capabilities import canonical

        name = NAMES.get(canonical(tool))
        return SPECS[name].schema if name else None

    def plans(self) -> Mapping[str, Plan]:
        return {name: one.plan for name, one in self._registered.items()}

    def caps(self) -> tuple[int, int]:
        spawn = self._settings.spawn
        return spawn.max_pipeline_spawns, spawn.max_pipeline_fan_out_depth

    def python_problem(self, tool: str) -> str:
        if not self._settings.tools.modules or self.parameters(tool) is not None:
            return ""
        head = next((mark for mark in ("python__", "python/") if tool.startswith(mark)), "")
        return self.python_tools.problem(tool.removeprefix(head))

    @cached_property
    def python_tools(self) -> PythonTools:
        from quire.library.python_tools import PythonTools

        return PythonTools(self._settings)

    def identities(self) -> Collection[str]:
        return {"default", *self._settings.agents}

    def claimed_twice(self, source: Source) -> list[Diagnostic]:
        """Return a finding for each name that both this file and another one declare: neither is loaded."""
        found = []
        at = real_path(Path(source.name))
        for name, several in self._claimed.items():
            others = [one.source.name for one in several if real_path(Path(one.source.name)) != at]
            for one in several if len(others) < len(several) else ():
                if one.source.name not in others:
                    message = f"the pipeline {name} is declared by {' and by '.join(others)} too: neither is loaded"
                    found.append(Diagnostic(CLAIMED_TWICE, message, one.tree.name.span, help="rename one of them"))
        return found

    def is_registered(self, path: Path) -> bool:
        """Tell whether a file may hold several pipelines. An unregistered file is only run by itself, and holds one."""
        folder = self._settings.workspace.folder
        named = {real_path(folder / entry.path) for entry in self._settings.pipelines.values()}
        at = real_path(path)
        return at in named or in_folder(at, folder)


class PlaybookResolver:
    """The resolver for playbooks, for which a pipeline is a document like any other."""

    def __init__(self, workspace: WorkspaceResolver) -> None:
        self._workspace = workspace

    def is_built_in(self, name: str) -> bool:
        from quire.library.called_names import is_built_in

        return is_built_in(name)

    def document(self, name: str) -> Called | None:
        return self._workspace.registered(name) or self._workspace.document(name)

    def tool_problems(self, connection: str, tool: str, given: Arguments) -> list[str]:
        from quire.tools.planned_calls import PlannedCall

        call = PlannedCall.of_tool(UseTool(connection, tool, given))
        if connection != BUILT_IN:
            return self._workspace.python_tools.problems(call)
        from quire.tools.builtin import NAMES, SPECS
        from quire.trust.capabilities import canonical

        spec = SPECS.get(NAMES.get(canonical(tool), ""))
        return [*call.wrong_names(spec), *call.wrong_values(spec)] if spec else []


class DocumentCheck:
    """Collects all findings about a file in its own workspace, which is read once for all its files."""

    def __init__(self) -> None:
        self._resolvers: dict[Workspace, WorkspaceResolver] = {}

    def playbook(self, source: Source) -> tuple[Diagnostic, ...]:
        from quire.formats.playbook.document import check

        path = Path(source.name)
        resolver = self._resolver(path)
        reach = PlaybookReach(resolver.graph, path)
        return check(source, PlaybookResolver(resolver), reach, has_file_beside(source))

    def pipeline(self, source: Source) -> tuple[Diagnostic, ...]:
        path = Path(source.name)
        resolver = self._resolver(path)
        reading = parse(source, registered=resolver.is_registered(path))
        found = check_reading(reading, resolver, PipelineReach(resolver.graph, path))
        return (*resolver.claimed_twice(source), *found, *_refused_headers(reading))

    def _resolver(self, path: Path) -> WorkspaceResolver:
        workspace = _workspace(path)
        resolver = self._resolvers.get(workspace)
        if resolver is None:
            resolver = self._resolvers[workspace] = WorkspaceResolver(load_settings(workspace))
        return resolver


def _refused_headers(reading: ParseResult) -> list[Diagnostic]:
    """Return a finding for each header written in the document that `http__get` does not send."""
    from quire.trust.capabilities import canonical

    found: list[Diagnostic] = []
    for pipeline in reading.file.pipelines if reading.file else ():
        for _, step in walk(pipeline):
            body = step.body
            if not isinstance(body, ToolBody) or canonical(body.name.text) != canonical("http__get"):
                continue
            for name, value in body.args:
                if name.text == "headers" and isinstance(value, Literal) and isinstance(value.value, Mapping):
                    from quire.tools.builtin.http import header_problem

                    problems = [problem for header in value.value if (problem := header_problem(str(header)))]
                    found += [Diagnostic(ARGUMENTS, problem, value.span) for problem in problems]
    return found


def _workspace(path: Path) -> Workspace:
    """Return the workspace that a run of the document would have. If no folder around it is marked, that is the current
    folder."""
    found = find_workspace(path.parent)
    if found.marker is None and found.folder.is_relative_to(current := Path.cwd().resolve()):
        return find_workspace(current)
    return found
