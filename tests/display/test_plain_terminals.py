"""Terminals that do not have every character, and characters that take more room than one."""

from __future__ import annotations

import io
import sys

import pytest
from rich.cells import cell_len

from quire.display.live_frame import FrameState, frame, summary
from quire.display.text import wrapped
from quire.display.visible import PLAINER, escaped, in_encoding, width
from quire.engine.progress import FanView, Progress, StepView


def picture(moment: FrameState, columns: int = 60) -> list[str]:
    steps = {
        "1": StepView("1", "1", "Lies das Café…", 0, "completed", elapsed=1.0, input_tokens=12, cost=0.5),
        "2": StepView("2", "2", "über " * 30, 0, "running", started_at=90.0, fan=FanView(20, 4, 3, 1)),
    }
    steps["2"].fan = FanView(20, 4, 3, 1, [("7", "kaputt – leider")])
    known = Progress(steps, streaming="日本語 héllo " * 20)
    return [line.plain for line in (*frame(known, columns, 24, moment), *summary(known, columns, moment))]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_picture_has_only_what_the_terminal_has_and_fits(encoding: str) -> None:
    lines = picture(FrameState(100.0, 3.0, unicode=False, encoding=encoding))
    for line in lines:
        line.encode(encoding)
        assert cell_len(line) < 60
    assert any("1 of 2 steps - " in line or "1 of 2 steps · " in line for line in lines)
    assert not any("\\xb7" in line or "\\u2026" in line for line in lines)


def test_a_picture_keeps_its_signs_where_it_can() -> None:
    lines = picture(FrameState(100.0, 3.0))
    assert any("·" in line for line in lines) and any("…" in line for line in lines)
    assert all(cell_len(line) < 60 for line in lines)


def test_styles_stay_where_they_were() -> None:
    step = StepView("1", "1", "é" * 10, 0, "completed", elapsed=1.0)
    [line, _] = summary(Progress({"1": step}), 80, FrameState(100.0, 3.0, unicode=False))
    assert [line.plain[span.start : span.end] for span in line.spans if span.style == "dim"] == ["  1.0s"]
    assert r"\xe9\xe9" in line.plain


@pytest.mark.parametrize(
    ("text", "encoding", "shown"),
    [
        ("a · b…", "ascii", "a - b..."),
        ("a · b…", "latin-1", "a · b..."),
        ("a · b…", "utf-8", "a · b…"),
        ("é → 日", "ascii", r"\xe9 -> \u65e5"),
        ("é → 日", "latin-1", r"é -> \u65e5"),
    ],
)
def test_signs_have_plainer_ones(text: str, encoding: str, shown: str) -> None:
    assert in_encoding(text, encoding) == shown
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors=PLAINER)
    stream.write(text)
    stream.seek(0)
    assert stream.read() == shown


TEXTS = [
    "日本語の長い文章です。" * 12,
    "word 日本語 word " * 20,
    "naïve café " * 20,
    "e\u0301" * 100,
    "\x1b[31m" * 40,
    "tab\there " * 20,
    "x" * 200,
    "short",
    "",
    "two\n\nparagraphs " + "and more " * 20,
    "   indented " * 10,
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("indent", ["", "  "])
def test_wrapped_text_stays_within_the_edge(
    monkeypatch: pytest.MonkeyPatch, text: str, encoding: str, indent: str
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict"))
    shown = wrapped(text, indent)
    shown.encode(encoding)
    assert max(width(line) for line in shown.split("\n")) <= 40
    if encoding == "utf-8" and text.isprintable():
        assert "".join(shown.split()) == "".join(text.split())


def test_lines_are_broken_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert wrapped("one two three four five six") == "one two three four\nfive six"
    assert wrapped("日本 日本 日本 日本 日本") == "日本 日本 日本 日本\n日本"


@pytest.mark.parametrize("text", ['{"a": "\x7f\x9b\u202e"}', '{\n  "a": "é"\n}'])
def test_escaped_json_is_the_same_json(text: str) -> None:
    import json

    assert json.loads(escaped(text), strict=False) == json.loads(text, strict=False)
    assert "\x7f" not in escaped(text) and "\x9b" not in escaped(text) and "\u202e" not in escaped(text)
