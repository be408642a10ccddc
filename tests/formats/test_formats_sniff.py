"""Which format a document is in."""

from __future__ import annotations

import pytest

from quire.errors import CannotStart
from quire.formats import check, read, sniff
from quire.source import Source

PLAYBOOK = "# T\n\n## STEP 1: A\n\nx\n"
DIRECTIVE = '# T\n\n```xml\n<directive name="d" version="1.0.0">\n</directive>\n```\n\nDo it.\n'


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.playbook.md", "playbook"),
        ("docs/any.md", "playbook"),
        ("A.MD", "playbook"),
        (".ai/directives/x/y.md", "directive"),
        ("/w/.ai/directives/y.md", "directive"),
        (".ai/directives/y.playbook.md", "playbook"),
        ("directives/y.md", "playbook"),
        (".ai/knowledge/a/y.md", "knowledge"),
        (".ai/knowledge/y.yaml", "knowledge"),
        (".ai/knowledge/x/.ai/directives/y.md", "directive"),
        (".ai/y.md", "playbook"),
        (".ai/pipelines/p.yaml", "pipeline"),
        ("p.yaml", "pipeline"),
        ("p.yml", "pipeline"),
        ("p.txt", None),
        ("x.test.yaml", "test"),
        ("X.Test.YAML", "test"),
        (".ai/knowledge/x.test.yaml", "test"),
        (".ai/directives/x.test.yaml", "test"),
        ("pipelines/x.test.yaml", "test"),
        ("x.test.snap.yaml", None),
        ("x.cassette.yaml", None),
        (".ai/knowledge/x.judge.yaml", None),
        ("contest.yaml", "pipeline"),
        ("<text>", "playbook"),
    ],
)
def test_sniff(name: str, format: str | None) -> None:
    assert sniff(name, PLAYBOOK) == format


def test_read_and_check_a_playbook() -> None:
    assert read(Source.of(PLAYBOOK)).playbook is not None
    assert [found.code.id for found in check(Source.of(PLAYBOOK + "{{x}}"))] == ["PB201"]


def test_check_a_pipeline() -> None:
    text = "pipeline: p\nsteps: [{transform: {valeu: '1'}}]\n"
    assert [found.code.id for found in check(Source.of(text, "p.yaml"))] == ["PL012", "PL011"]


@pytest.mark.parametrize(
    ("text", "format"),
    [
        (DIRECTIVE, "directive"),
        (DIRECTIVE.replace("<directive", "<!-- ours -->\n<directive"), "directive"),
        (DIRECTIVE + "\n## STEP 1: A\n", "playbook"),
        (f"````\n{DIRECTIVE}````\n", "playbook"),
        (DIRECTIVE.replace("```xml", "```html"), "playbook"),
        (DIRECTIVE.replace("<directive ", "<directives "), "playbook"),
        (DIRECTIVE.replace("<directive", "<a/><directive"), "playbook"),
        ("# About <directive> elements\n", "playbook"),
    ],
)
def test_a_directive_that_is_named_is_known_by_its_fence(text: str, format: str) -> None:
    assert sniff("any.md", text) == format
    assert sniff("any.playbook.md", text) == "playbook"


def test_check_a_directive_and_knowledge() -> None:
    assert "DR109" in [found.code.id for found in check(Source.of(DIRECTIVE, ".ai/directives/d.md"))]
    assert [found.code.id for found in check(Source.of("Body", ".ai/knowledge/k.md"))] == ["KN101"]


@pytest.mark.parametrize(("name", "words"), [(".ai/directives/d.md", "directive"), ("x.txt", "not a document")])
def test_what_is_no_playbook_is_said_in_one_line(name: str, words: str) -> None:
    with pytest.raises(CannotStart, match=words) as caught:
        read(Source.of(PLAYBOOK, name))
    assert "\n" not in str(caught.value) and name in str(caught.value)


def test_check_of_no_document() -> None:
    with pytest.raises(CannotStart, match="not a document"):
        check(Source.of(PLAYBOOK, "x.txt"))
