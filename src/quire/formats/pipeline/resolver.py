"""What checking a pipeline needs to know from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from quire.formats.pipeline.syntax import Pipeline, PipelineFile
from quire.formats.resolver import Called

if TYPE_CHECKING:
    from quire.plan.nodes import Plan
    from quire.values import Value


class Resolver(Protocol):
    """The registered pipelines, the tools and the identities of a workspace."""

    def pipeline(self, name: str, caller: Pipeline) -> Pipeline | None:
        """What a target means in a pipeline. The same pipeline is the same object each time."""
        ...

    def document(self, name: str) -> Called | None:
        """A playbook or a directive that is no pipeline's namesake."""
        ...

    def tools(self) -> Collection[str] | None:
        """All names by which a tool can be called; None where that cannot be known without asking somebody."""
        ...

    def parameters(self, tool: str) -> Mapping[str, Value] | None:
        """The JSON Schema of what a built-in tool takes; None for every other name."""
        ...

    def identities(self) -> Collection[str] | None:
        """All names that an agent can run under; None where nobody knows."""
        ...


@runtime_checkable
class Settled(Protocol):
    """A resolver that knows the settings of the workspace and the plans of its pipelines, too."""

    def plans(self) -> Mapping[str, Plan]:
        """The registered pipelines by name."""
        ...

    def caps(self) -> tuple[int, int]:
        """How many model calls a run may make, and how deep fans may be nested; 0 where there is no limit."""
        ...

    def python_problem(self, tool: str) -> str:
        """Why a name means a Python tool of the workspace that cannot be used; empty for every other name."""
        ...


Document: TypeAlias = Callable[[str], Called | None]
Find: TypeAlias = Callable[[str, Pipeline], Pipeline | None]


def finder(file: PipelineFile, resolver: Resolver | None) -> Find:
    """The pipelines of the file itself come first: siblings call each other by their bare names. A name that is not
    registered means the checked pipeline itself, as in a run of its file."""
    siblings = {pipeline.name.text: pipeline for pipeline in file.pipelines}

    def find(name: str, caller: Pipeline) -> Pipeline | None:
        if name in siblings and siblings.get(caller.name.text) is caller:
            return siblings[name]
        found = resolver.pipeline(name, caller) if resolver else None
        return found or (siblings.get(name) if len(siblings) == 1 else None)

    return find
