"""Ports through which the checks of a pipeline learn about the workspace."""

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
        """Return the pipeline that a target means inside `caller`.

        Returns the same object for the same pipeline each time.
        """
        ...

    def document(self, name: str) -> Called | None:
        """Return a playbook or a directive by its name, unless a pipeline has the same name."""
        ...

    def tools(self) -> Collection[str] | None:
        """Return all names by which a tool can be called.

        Return None if they cannot be known without starting a server or a module.
        """
        ...

    def parameters(self, tool: str) -> Mapping[str, Value] | None:
        """Return the JSON Schema of the arguments of a built-in tool; None for every other name."""
        ...

    def identities(self) -> Collection[str] | None:
        """Return all identities that an agent can run under; None if they are not known."""
        ...


@runtime_checkable
class Settled(Protocol):
    """A resolver that also knows the settings of the workspace and the plans of its pipelines."""

    def plans(self) -> Mapping[str, Plan]:
        """Return the registered pipelines by name."""
        ...

    def caps(self) -> tuple[int, int]:
        """Return how many model calls a run may make, and how deep fans may be nested; 0 means no limit."""
        ...

    def python_problem(self, tool: str) -> str:
        """Return why a Python tool of the workspace cannot be used; empty for every other name."""
        ...


Document: TypeAlias = Callable[[str], Called | None]
Find: TypeAlias = Callable[[str, Pipeline], Pipeline | None]


def finder(file: PipelineFile, resolver: Resolver | None) -> Find:
    """Return a function that finds the pipeline of a name.

    The pipelines of the file itself come first: siblings call each other by their bare names. A name that is not
    registered means the checked pipeline itself, as in a run of its file.
    """
    siblings = {pipeline.name.text: pipeline for pipeline in file.pipelines}

    def find(name: str, caller: Pipeline) -> Pipeline | None:
        if name in siblings and siblings.get(caller.name.text) is caller:
            return siblings[name]
        found = resolver.pipeline(name, caller) if resolver else None
        return found or (siblings.get(name) if len(siblings) == 1 else None)

    return find
