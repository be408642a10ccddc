"""What the page on directives shows can be read, and is as good as it says."""

from __future__ import annotations

from pathlib import PurePath

from tests.docs.pages import blocks

from quire.formats.directive.check import check
from quire.formats.directive.knowledge import check_knowledge, knowledge_issues
from quire.formats.directive.parse import parse
from quire.formats.directive.validate import issues
from quire.source import Source

PAGE = "docs/reference/directives.md"
METADATA = ("permissions", "limits", "cost", "context", "hooks")


def test_whole_files() -> None:
    directive, knowledge = (Source.of(block.text) for block in blocks(PAGE, "markdown"))
    assert check(directive) == ()
    assert issues(directive, PurePath("team/greet_guest.md")) == []
    assert check_knowledge(knowledge) == ()
    assert knowledge_issues(knowledge, PurePath("team/house-rules.md")) == []


def test_fragments() -> None:
    fragments = [block.text for block in blocks(PAGE, "xml") if not block.text.startswith("<directive")]
    assert len(fragments) == 9
    for fragment in fragments:
        tag = fragment[1:].partition(">")[0].split()[0]
        if tag == "any":
            action = '<action primary="fetch" item_type="knowledge" item_id="a" />'
            fragment = f'<metadata><hooks><hook id="h" event="error">{fragment}{action}</hook></hooks></metadata>'
        elif tag == "step":
            fragment = f"<process>{fragment}</process>"
        elif tag in METADATA:
            fragment = f"<metadata>{fragment}</metadata>"
        reading = parse(Source.of(f'```xml\n<directive name="a" version="1.0.0">{fragment}</directive>\n```\n'))
        assert reading.diagnostics == (), fragment
