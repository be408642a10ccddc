"""The coloured pieces of a source: nothing is lost, and each kind is seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.display.source_lines import LONGEST_LINE, source_lines
from quire.source import Source

EXAMPLES = sorted(
    path for path in (Path(__file__).parents[2] / "examples").rglob("*") if path.suffix in (".md", ".yaml")
)


def _joined(source: Source, format: str) -> str:
    lines = source_lines(source, format)
    return "\n".join(line if isinstance(line, str) else "".join(text for _, text in line) for line in lines)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_pieces_of_an_example_are_its_text(path: Path) -> None:
    source = Source.of(path.read_text(encoding="utf-8"), path.name)
    for format in ("playbook", "directive", "pipeline"):
        assert _joined(source, format) == source.text.removesuffix("\n")


@given(
    text=st.text(alphabet="# -*`@{}:\"'<>/=[]!\\\n\t~ aé😀1"),
    format=st.sampled_from(("playbook", "directive", "pipeline")),
)
def test_the_pieces_of_any_text_are_the_text(text: str, format: str) -> None:
    source = Source.of(text, "x")
    assert _joined(source, format) == source.text.removesuffix("\n")


@pytest.mark.parametrize(
    ("format", "text", "piece"),
    [
        ("playbook", "## STEP 1: Draft", ("step", "## STEP 1: Draft")),
        ("playbook", "# Title", ("heading", "# Title")),
        ("playbook", "Write {{topic:string:x}} now", ("value", "{{topic:string:x}}")),
        ("playbook", '@elicit(confirm, "Go?")', ("call", "@elicit")),
        ("playbook", "```if x\n@tool(a)\n```", ("code", "@tool(a)")),
        ("playbook", '```if tone == "dry"```\n## STEP 1a: Cut', ("call", '```if tone == "dry"```')),
        ("playbook", "```else```\n## STEP 1b: Add", ("step", "## STEP 1b: Add")),
        ("pipeline", "  over: ctx.items # all", ("key", "over")),
        ("pipeline", "  over: ctx.items # all", ("comment", "# all")),
        ("pipeline", "max: 5", ("number", "5")),
        ("pipeline", 'a: "it: is # text"', ("text", '"it: is # text"')),
        ("directive", '```xml\n<model tier="fast">\n```', ("tag", "<model")),
        ("directive", '```xml\n<model tier="fast">\n```', ("text", '"fast"')),
    ],
)
def test_kinds(format: str, text: str, piece: tuple[str, str]) -> None:
    lines = source_lines(Source.of(text, "x"), format)
    assert piece in [one for line in lines if not isinstance(line, str) for one in line]


def test_a_long_line_is_left_alone() -> None:
    line = "{{x}} " * LONGEST_LINE
    assert source_lines(Source.of(line, "x"), "playbook") == [line]
