"""What checking a pipeline needs to know from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol, TypeAlias

from quire.formats.pipeline.syntax import Pipeline, PipelineFile


class Resolver(Protocol):
    """The registered pipelines and the tools of a workspace."""

    def pipeline(self, name: str, caller: Pipeline) -> Pipeline | None:
        """What a target means in a pipeline. The same pipeline is the same object each time."""
        ...

    def tools(self) -> Collection[str] | None:
        """All names by which a tool can be called; None where that cannot be known without asking somebody."""
        ...


Find: TypeAlias = Callable[[str, Pipeline], Pipeline | None]


def finder(file: PipelineFile, resolver: Resolver | None) -> Find:
    """The pipelines of the file itself come first: siblings call each other by their bare names."""
    siblings = {pipeline.name.text: pipeline for pipeline in file.pipelines}

    def find(name: str, caller: Pipeline) -> Pipeline | None:
        if name in siblings and siblings.get(caller.name.text) is caller:
            return siblings[name]
        return resolver.pipeline(name, caller) if resolver else None

    return find
