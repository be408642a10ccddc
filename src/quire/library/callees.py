"""The documents of any format that a document can call. They are found before it runs and pinned with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from quire.errors import BadDocument
from quire.formats.resolver import CallTarget, Circle
from quire.library.document import Document, read
from quire.library.library import KINDS, Library
from quire.plan.uses import called_names
from quire.source import Source

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.compose import Bundle
    from quire.library.snapshot import Snapshot
    from quire.plan.nodes import Plan
    from quire.values import Value


class Callee(Struct, frozen=True):
    """A document that can be called. `declared` and `key` are set for a pipeline in a file, `bundle` for a
    directive."""

    name: str
    plan: Plan
    source: Source
    declared: str = ""
    key: str = ""
    bundle: Bundle | None = None

    @property
    def text(self) -> str:
        """The text to pin; for a directive, everything that it is composed from."""
        return self.bundle.encoded() if self.bundle else self.source.text


class Callees:
    """Finds called documents by name, in the library as it is at the first question."""

    def __init__(self, library: Library, directive: Callable[[str], Bundle | None]) -> None:
        """`directive` gathers and verifies a directive."""
        self._settings = library.settings
        self._library = library
        self._directive = directive

    @cached_property
    def _snapshot(self) -> Snapshot:
        return self._library.snapshot()

    def find(self, name: str, kind: str = "") -> Callee | None:
        """Find a called document, or return None. Raises `Refused` and `BadDocument` for one that is not usable."""
        kinds = (kind,) if kind else KINDS
        document = self._snapshot.find(name, [item_type for item_type in kinds if item_type != "directive"])
        if document is not None:
            from quire.library.verify import require_signed

            require_signed(self._settings, document.source, document.format)
            return Callee(name, document.runnable(), document.source, document.declared, document.key)
        bundle = self._directive(name) if "directive" in kinds else None
        if bundle is None:
            return None
        source = Source.of(bundle.directives[bundle.item_id], f"{bundle.item_id}.md")
        return Callee(name, read_directive(source), source, bundle=bundle)

    def reachable(self, plan: Plan) -> dict[str, Callee]:
        """Return everything that a plan can call, by name, at any depth. An unknown name is left out: the step that
        reaches it fails. Raises `BadDocument` if a document can reach itself."""
        callees: dict[str, Callee] = {}
        self._follow(plan, callees, (plan.title,))
        return callees

    def _follow(self, plan: Plan, callees: dict[str, Callee], way: tuple[str, ...]) -> None:
        for name in called_names(plan):
            if name in way:
                raise BadDocument(str(Circle(CallTarget(name), way[way.index(name) :], decided=False)))
            if name not in callees and (callee := self.find(name)) is not None:
                callees[name] = callee
                self._follow(callee.plan, callees, (*way, name))


def no_such(name: str, library: Library) -> str:
    """Return the message about a name that is neither a built-in tool nor a document."""
    from quire.tools.builtin import SPECS
    from quire.tools.registry import unknown

    entries = [entry for several in library.entries().values() for entry in several if entry.space != "system"]
    names = [name for entry in entries for name in (entry.id, entry.name)]
    return unknown("built-in tool and no document", name, dict.fromkeys([*SPECS, *names]))


def read_directive(source: Source) -> Plan:
    from quire.formats.directive.lower import lower
    from quire.formats.directive.parse import parse

    reading = parse(source)
    if reading.directive is None:
        raise BadDocument(f"{source.name} has errors: quire check shows them")
    return lower(reading.directive)


def pinned(callees: Mapping[str, Callee]) -> dict[str, Value]:
    """Return the pins of called documents; their texts go to the store by hash."""
    return {
        name: {
            "sha256": Source.of(callee.text, "").sha256,
            "document": callee.source.name,
            "declared": callee.declared,
            "key": callee.key,
            "format": callee.plan.format,
        }
        for name, callee in callees.items()
    }


def document_from_pin(source: Source, format: str, declared: str, key: str, rules: int) -> Document:
    """Read a document again from its pinned text, by the rules of its run. Raises `StopIteration` if a file of
    pipelines has none of the name."""
    if format == "directive":
        return Document(source, format, read_directive(source), ())
    if not declared:
        return read(source, rules)
    from quire.library.registered import read_pipelines

    plan = next(pipeline.plan for pipeline in read_pipelines(key, source)[0] if pipeline.declared == declared)
    return Document(source, format, plan, (), declared, key)


def callee_from_pin(stored: Mapping[str, Value], text: str, rules: int) -> tuple[Plan, Bundle | None]:
    """Read a called document from its pin, by the rules of its run."""
    from quire.engine.interpreter.thread.compose import Bundle

    entry = cast("Mapping[str, str]", stored)
    format = entry.get("format", "pipeline")
    bundle = Bundle.of(text) if format == "directive" else None
    source = Source.of(bundle.directives[bundle.item_id] if bundle else text, entry["document"])
    return document_from_pin(source, format, entry["declared"], entry["key"], rules).runnable(), bundle
