"""The calls between the documents of a workspace, for `check`: the circles that they lead into.

Only documents that the checked one can reach are read, each once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from quire.errors import QuireError
from quire.formats import format_of
from quire.formats.resolver import Caller, CallTarget, Circle, circles
from quire.library.document_places import place_of
from quire.library.library import KINDS, Library

if TYPE_CHECKING:
    from quire.library.registered import Registered
    from quire.source import Source


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
        own = next((one.name for one in here if Path(one.source.name).resolve() == path.resolve()), "")
        root = _caller("pipeline", own, own or declared, calls)
        return circles(root, lambda caller, wanted: self._find(caller, wanted) or _itself(root, wanted))

    @cached_property
    def _declaring(self) -> Mapping[str, Sequence[Registered]]:
        found: dict[str, list[Registered]] = {}
        for one in self._library.registry().pipelines.values():
            found.setdefault(one.declared, []).append(one)
        return found

    def _find(self, caller: Caller, wanted: CallTarget) -> Caller | None:
        """Return the document that a run would resolve a name to. A document that cannot be read leads nowhere: the run
        reports why."""
        self._followed += 1
        name = wanted.name
        if caller.format == "pipeline" and wanted.kind in ("", "pipeline"):
            # In a file of several, a name without a dot is a sibling first.
            key, dot, _ = caller.name.rpartition(".")
            sibling = f"{key}.{name}"
            name = sibling if dot and sibling in self._library.registry().pipelines else name
        try:
            return self._caller(name, wanted.kind)
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
            return (
                _caller("directive", document.id, document.id, [one for one, _ in documents_called(tree)])
                if tree
                else None
            )
        if document.plan is None:
            return None
        from quire.library.callees import called_names

        return _caller(
            document.format, document.id, document.id, [CallTarget(one) for one in called_names(document.plan)]
        )


def _caller(format: str, id: str, name: str, calls: Sequence[CallTarget]) -> Caller:
    """Return a document of the graph; one without an id cannot be called."""
    return Caller(f"{format}:{id}" if id else "", name, format, tuple(dict.fromkeys(calls)))


def _itself(root: Caller, wanted: CallTarget) -> Caller | None:
    return root if wanted.name == root.name and wanted.kind in ("", "pipeline") else None
