"""Knowledge files: metadata and a body."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.formats.directive.knowledge import check_knowledge, read_knowledge
from quire.source import Source

SIGNED = "<!-- rye:signed:2026-02-10T02:00:00Z:placeholder:unsigned:unsigned -->"
FENCE = '```yaml\nname: k\ntitle: T\nversion: "1.0.0"\nentry_type: reference\ntags: [a, 2]\n```'


@pytest.mark.parametrize("before", ["", "\n\n", f"{SIGNED}\n", f"{SIGNED}\n\n"])
def test_a_fence_and_a_body(before: str) -> None:
    knowledge = read_knowledge(Source.of(f"{before}{FENCE}\n\n# Body\n\n```yaml\na: 1\n```\n"))
    assert knowledge.metadata == {
        "name": "k",
        "title": "T",
        "version": "1.0.0",
        "entry_type": "reference",
        "tags": ["a", 2],
    }
    assert knowledge.body == "# Body\n\n```yaml\na: 1\n```"
    assert check_knowledge(knowledge.source) == ()


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("name: k\nbody: |\n  Ada,\n  Grace.\n", "Ada,\nGrace."),
        ("name: k\ncontent: Ada\n", "Ada"),
        ("# rye:signed:x\nname: k\nlist: [a]\n", "name: k\nlist: [a]"),
    ],
)
def test_a_yaml_file(text: str, body: str) -> None:
    knowledge = read_knowledge(Source.of(text, "k.yaml"))
    assert (knowledge.metadata["name"], knowledge.body, knowledge.diagnostics) == ("k", body, ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\nname: k\n---\nBody", [("KN001", 1)]),
        (f"{SIGNED}\n---\nname: k\n---\nBody", [("KN001", 2)]),
        ("```yaml\nname: k\n", [("KN002", 1)]),
        ("```yaml\n- a\n```\n", [("KN003", 2)]),
        ("\n```yaml\nname: k\nname: l\n```\n", [("YM005", 4)]),
        ("x" * 200_001, [("KN004", 1)]),
        ("Body", [("KN101", 1)]),
        (f"# T\n{FENCE}\n", [("KN102", 1)]),
        ("\n```yaml\nname: k\ntitle: T\nentry_type: x\n```\n", [("KN103", 2)]),
    ],
)
def test_findings(text: str, expected: list[tuple[str, int]]) -> None:
    source = Source.of(text)
    found = [(one.code.id, source.position(one.span.start).line) for one in check_knowledge(source)]
    assert found == expected


def test_yaml_that_cannot_be_read_is_called_that() -> None:
    (found,) = read_knowledge(Source.of("```yaml\nname: [k\n```\nBody")).errors
    assert found.message.startswith("the YAML of the metadata cannot be read: ")


def test_what_is_no_front_matter() -> None:
    assert read_knowledge(Source.of(f"--- a line ---\n{FENCE}\nBody")).body == "Body"


@given(st.text(), st.sampled_from(["k.md", "k.yaml"]))
def test_any_text(text: str, name: str) -> None:
    for around in (text, f"```yaml\n{text}\n```\n"):
        source = Source.of(around, name)
        assert all(0 <= one.span.start <= one.span.end <= len(source.text) + 1 for one in check_knowledge(source))


def test_plain_yaml_without_a_fence_keeps_its_name() -> None:
    """S8: a file that is nothing but keys and values is both metadata and body, as a `.yaml` file is."""
    signed = "<!-- rye:signed:2026-02-10T02:00:00Z:placeholder:unsigned:unsigned -->\n"
    knowledge = read_knowledge(Source.of(f"{signed}name: k\ntitle: T\nbody: Hello.\n", "k.md"))
    assert (knowledge.metadata["name"], knowledge.body, knowledge.diagnostics) == ("k", "Hello.", ())
    prose = read_knowledge(Source.of("name: k\nand then some prose: with\ncolons\n", "k.md"))
    assert (prose.metadata, [one.code.id for one in prose.diagnostics]) == ({}, ["KN101"])
