"""Directives around a fragment, for tests."""

from __future__ import annotations

from quire.formats.directive.document import check
from quire.formats.directive.parse import parse
from quire.formats.directive.reading import Reading
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


def read(metadata: str = "", root: str = "", body: str = "Do it.") -> Reading:
    return parse(Source.of(document(metadata, root, body)))


def codes_in(text: str) -> list[tuple[str, int]]:
    """Code and line of everything that `check` says."""
    source = Source.of(text, ".ai/directives/greet.md")
    return [(found.code.id, source.position(found.span.start).line) for found in check(source)]
