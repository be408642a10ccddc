"""Reading a pipeline again after a change gives exactly what reading all of it gives."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.depth import depth

from quire.formats.pipeline import incremental
from quire.formats.pipeline.check import check_reading
from quire.formats.pipeline.incremental import IncrementalReader, piece_of, readable
from quire.formats.pipeline.parse import parse
from quire.source import MAX_DOCUMENT_BYTES, Source

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
def test_random_edits(seed: int) -> None:
    drawn = random.Random(seed)
    for _ in range(15):
        text, reader = drawn.choice(TEXTS), IncrementalReader()
        for _ in range(10):
            before, source = text, Source.of(edited(text, drawn))
            text = source.text
            registered = drawn.random() < 0.5
            whole, again = parse(source, registered=registered), reader.parse(source, registered=registered)
            assert again == whole, source.text
            assert check_reading(again) == check_reading(whole), source.text
            readable(source)
            if whole.file is None and drawn.random() < 0.7:
                text = before  # else nearly all texts would be broken


def test_examples_are_read_by_their_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object, **named: object) -> None:
        raise AssertionError("the whole text was read")

    wholes = {text: parse(Source("", text), registered=True) for text in TEXTS}
    cut = [text for text, whole in wholes.items() if whole.file and "&" not in text and "steps: [" not in text]
    monkeypatch.setattr(incremental, "parse", refuse)
    read = 0
    for text in cut:
        try:
            assert IncrementalReader().parse(Source("", text), registered=True) == wholes[text]
            read += 1
        except AssertionError as error:
            assert "whole text" in str(error)
    assert read >= len(cut) * 0.9, (read, len(cut))


def test_only_the_changed_step_is_parsed() -> None:
    reader = IncrementalReader()
    first = reader.parse(Source("", STEPS))
    before = piece_of.cache_info().misses
    second = reader.parse(Source("", STEPS.replace("x {b}", "longer {b}")))
    assert piece_of.cache_info().misses == before + 1
    assert first.file is not None and second.file is not None
    assert second.file.pipelines[0].steps[0] is first.file.pipelines[0].steps[0]
    assert second == parse(Source("", STEPS.replace("x {b}", "longer {b}")))


def test_equal_steps_are_different_objects() -> None:
    text = "pipeline: a\nsteps:\n" + "  - transform: {value: '1'}\n" * 3
    file = IncrementalReader().parse(Source("", text)).file
    assert file is not None
    assert len({id(step) for step in file.pipelines[0].steps}) == 3


def test_the_limit_of_size_holds() -> None:
    text = "pipeline: a\nsteps:\n" + "  - transform: {value: '1'}\n" * (MAX_DOCUMENT_BYTES // 20)
    source = Source("", text)
    assert IncrementalReader().parse(source) == parse(source)


def test_readable_steps_of_broken_text() -> None:
    file = readable(Source("", STEPS.replace('"x {b}"', '"x {b}')))
    assert [step.kind for step in file.pipelines[0].steps] == ["transform", "transform"]
