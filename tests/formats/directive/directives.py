"""Directives around a fragment, for tests."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import PurePath

from quire.errors import Refused
from quire.formats.directive.check import check
from quire.formats.directive.parse import parse
from quire.formats.directive.syntax import ParseResult
from quire.formats.resolver import CallTarget, Circle, DocumentResolver, ItemKind, Parent
from quire.source import Source

METADATA = """\
    <description>Greet somebody</description>
    <category>team</category>
    <author>me</author>
    <model tier="low" />
    <permissions><execute><tool>rye.file-system.*</tool></execute><fetch><knowledge>*</knowledge></fetch></permissions>
"""


def document(metadata: str = "", root: str = "", body: str = "Do it.") -> str:
    """A small directive with more in its metadata, below its root, or as its body."""
    inside = f"\n  <metadata>\n{metadata}\n  </metadata>" if metadata else ""
    return f'# T\n\n```xml\n<directive name="greet" version="1.0.0">{inside}\n{root}\n</directive>\n```\n\n{body}\n'


def read(metadata: str = "", root: str = "", body: str = "Do it.") -> ParseResult:
    return parse(Source.of(document(metadata, root, body)))


def codes_in(text: str, around: Around | None = None) -> list[tuple[str, int]]:
    """Code and line of everything that `check` says."""
    source = Source.of(text, ".ai/directives/greet.md")
    return [
        (found.code.id, source.position(found.span.start).line)
        for found in check(source, around, around.place if around else None)
    ]


class Around(DocumentResolver):
    """A space with `team/greet` in it, some parents, and the knowledge `team/names`; ids with dots are refused."""

    def __init__(self, *parents: Parent, place: str = "team/greet.md") -> None:
        self.place = PurePath(place)
        self._parents = {one.id: one for one in (*parents, Parent("team/base", ""), Parent("team/greet", "team/greet"))}
        self._parents["team/changed"] = Parent("team/changed", "")

    def directive(self, item_id: str) -> Parent | None:
        return self._parents.get(_refused(item_id))

    def has_knowledge(self, item_id: str) -> bool:
        return _refused(item_id) == "team/names"

    def ids(self, kind: ItemKind) -> Collection[str]:
        return list(self._parents) if kind == "directive" else ["team/names"]

    def project_layers(self) -> Collection[str]:
        return ["team/brought"]

    def distrust(self, item_id: str) -> str:
        return f"the directive {item_id} was changed since it was signed" if item_id == "team/changed" else ""

    def circles(self, source: Source, calls: Sequence[CallTarget], declared: str = "") -> Sequence[Circle]:
        way = ("team/greet", "lead_back")
        return [Circle(call, way, decided=True) for call in calls if call == CallTarget("lead_back", "pipeline")]


def _refused(item_id: str) -> str:
    if "." in item_id:
        raise Refused(f"{item_id} is not an item's id")
    return item_id
