"""Steps of a pipeline whose YAML is broken."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.depth import depth

from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.syntax import HOLE
from quire.lsp.pipeline.tree import parts_of, readable
from quire.source import Source

ROOT = Path(__file__).parents[3]
TEXTS = [
    Source.of(path.read_text()).text
    for path in sorted([*ROOT.glob("examples/**/*.yaml"), *ROOT.glob("tests/**/*.yaml")])
    if ".test." not in path.name and "\nsteps:" in path.read_text()
]
PIECES = (
    "\t", "'", '"', "  ", "\n", "{", "}", "[", "]", "&a ", "*a", "- ", ": ", "#", "|\n", ">\n", "---\n", "...\n", "x",
    "ctx.", "!expr ", "!file x", "dialect: quire\n", "%YAML", "\r\n", "&a", "é", "\u2028", "\ufeff", "steps:\n",
    "  - transform: {value: '1'}\n", "- transform: {value: '1'}\n", "<<: ", "on_error: continue", "output: a-b", "&x y",
    "schema: A\n", "pipeline: b\n",
)  # fmt: skip
STEPS = """\
pipeline: small
steps:
  - transform: {value: "ctx.a", output: b}
  - agent: {prompt: "x {b}", output: c}
  - transform: {value: "c", output: d}
"""


def edited(text: str, drawn: random.Random) -> str:
    """Return a text after one random edit."""
    at = drawn.randrange(len(text) + 1)
    lines = text.split("\n")
    line = drawn.randrange(len(lines))
    match drawn.randrange(8):
        case 0 | 1 | 2:
            return text[:at] + drawn.choice(PIECES) + text[at:]
        case 3:
            return text[:at] + text[at + drawn.randrange(1, 6) :]
        case 4:
            lines.insert(line, lines[drawn.randrange(len(lines))])
        case 5:
            del lines[line]
        case 6:
            lines[line] = " " * drawn.randrange(1, 4) + lines[line]
        case _:
            lines[line] = lines[line][drawn.randrange(1, 3) :]
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(depth(8, 100)))
def test_steps_that_an_edit_breaks_leave_the_others_as_they_are(seed: int) -> None:
    drawn = random.Random(seed)
    broken = 0
    for _ in range(100):
        text = drawn.choice(TEXTS)
        source = Source.of(edited(text, drawn))
        reading, file = parse(source, registered=True), readable(source)
        if reading.file is not None or reading.partial is not None:
            continue
        broken += 1
        spans = [span for part in parts_of(source.text) for span in part.spans]
        for step in (step for pipeline in file.pipelines for step in pipeline.steps):
            assert any(span.start < step.span.start < span.end for span in spans), source.text
            # A step that is YAML and not a step of a pipeline is a hole with the place of all its keys.
            written = source.text[step.span.start : step.span.end].strip("\"'")
            assert step.body is HOLE or step.kind == written, source.text
    assert broken > 10


@pytest.mark.parametrize("text", TEXTS)
def test_all_of_a_text_that_is_right_is_readable(text: str) -> None:
    reading = parse(Source("", text), registered=True)
    if reading.file is not None and "&" not in text:
        assert readable(Source("", text)) == reading.file


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ('"x {b}"', '"x {b}', ["transform", "transform"]),
        ("output: b}", "output: b", ["agent", "transform"]),
        ('"c", output: d}', '"c", output: [', ["transform", "agent"]),
        ("pipeline: small", "pipeline: [small", []),
    ],
)
def test_readable_steps_of_broken_text(old: str, new: str, kinds: list[str]) -> None:
    text = STEPS.replace(old, new)
    file = readable(Source("", text))
    steps = [step for pipeline in file.pipelines for step in pipeline.steps]
    assert [step.kind for step in steps] == kinds
    assert [text[step.span.start : step.span.end] for step in steps] == kinds


def test_a_pipeline_whose_only_step_is_broken_is_readable() -> None:
    file = readable(Source("", "pipeline: small\ndialect: quire\nsteps:\n  - transform: {value: 'a\n"))
    assert [(one.name.text, one.dialect, one.steps) for one in file.pipelines] == [("small", True, ())]
