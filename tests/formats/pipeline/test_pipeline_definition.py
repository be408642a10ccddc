"""What agents are told about the pipelines that they write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quire.formats.pipeline.definition import GRAMMAR, definition_source, mistakes
from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.steps import KEYS
from quire.source import Source

MINIMAL = "pipeline: x\nsteps:\n  - transform: {value: '1'}"


def test_the_grammar_names_every_step() -> None:
    """S4: an agent that generates pipelines is handed the grammar."""
    assert set(re.findall(r"^  (\w+): ", GRAMMAR, re.MULTILINE)) == set(KEYS)


def test_the_page_shows_the_grammar() -> None:
    page = Path(__file__).parents[3] / "docs" / "pipelines.md"
    assert GRAMMAR in page.read_text()


@pytest.mark.parametrize("text", [f"```\n{MINIMAL}\n```", f"\n```yaml\n{MINIMAL}\n```\n", MINIMAL])
def test_a_fence_around_a_definition_is_taken_off(text: str) -> None:
    assert definition_source(text).text.rstrip("\n") == MINIMAL


def test_fences_inside_of_a_definition_stay() -> None:
    text = 'pipeline: x\nsteps:\n  - agent: {prompt: "```\\ncode\\n```"}\n'
    assert definition_source(text).text == text


def test_mistakes_have_a_place_and_a_suggestion() -> None:
    told = mistakes(parse(Source.of("pipeline: x\nsteps:\n  - transfrom: {value: '1'}\n")))
    assert told.startswith("line 3, column 5: ") and "did you mean transform?" in told


def test_many_mistakes_are_counted() -> None:
    steps = "".join("  - nonsense: {}\n" for _ in range(15))
    assert mistakes(parse(Source.of(f"pipeline: x\nsteps:\n{steps}"))).endswith("; and 5 more")
