"""Texts of an editor: edits and positions in every encoding, with every line end."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.lsp.document_text import SHORT_LINE, EditorText, Encoding
from quire.source import Span, normalise

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
TEXTS = st.text(st.sampled_from("ab ä€𝄞\r\n\n"), max_size=30)
LONG = st.text(st.sampled_from("ä𝄞" + 3 * "ab€" + "\n"), min_size=SHORT_LINE, max_size=3 * SHORT_LINE)


def lines_of(text: str) -> list[str]:
    return re.split(r"\r\n|\n|\r", text)


def units(text: str, encoding: Encoding) -> int:
    wide = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    return len(text.encode(encoding + ("" if wide == 1 else "-le"))) // wide


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=TEXTS | LONG, data=st.data())
def test_a_position_and_its_offset_are_the_same_place(encoding: Encoding, text: str, data: st.DataObject) -> None:
    edited = EditorText(text, encoding)
    source = normalise(text)
    at = data.draw(st.integers(0, len(source)))
    place = edited.position(at)
    before = source[:at]
    assert place == {"line": before.count("\n"), "character": units(before.rpartition("\n")[2], encoding)}
    assert edited.offset(place) == at


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=TEXTS, new=TEXTS, data=st.data())
def test_an_edit_of_a_range_is_an_edit_of_the_text(
    encoding: Encoding, text: str, new: str, data: st.DataObject
) -> None:
    lines = lines_of(text)

    def place() -> tuple[int, dict[str, int]]:
        """Draw a position, and return it with its offset in the text as the editor has it."""
        line = data.draw(st.integers(0, len(lines) - 1))
        column = data.draw(st.integers(0, len(lines[line])))
        ends = [found.end() for found in re.finditer(r"\r\n|\n|\r", text)]
        start = ([0, *ends])[line]
        return start + column, {"line": line, "character": units(lines[line][:column], encoding)}

    (start, from_place), (end, to_place) = sorted([place(), place()], key=lambda one: one[0])
    change = {"range": {"start": from_place, "end": to_place}, "text": new}
    assert EditorText(text, encoding).edited([change]).raw == text[:start] + new + text[end:]


def test_positions_beyond_the_end_mean_the_end() -> None:
    text = EditorText("ab\ncd", "utf-16")
    assert text.offset({"line": 0, "character": 99}) == 2
    assert text.offset({"line": 99, "character": 0}) == 5
    assert text.offset({"line": -1, "character": "x"}) == 0
    assert text.offset(None) == 0
    assert (
        text.edited(
            [{"range": {"start": {"line": 7, "character": 7}, "end": {"line": 9, "character": 0}}, "text": "!"}]
        ).raw
        == "ab\ncd!"
    )


def test_a_column_inside_of_a_character_means_its_start() -> None:
    assert EditorText("a𝄞b", "utf-16").offset({"line": 0, "character": 2}) == 1
    assert EditorText("a€b", "utf-8").offset({"line": 0, "character": 3}) == 1


def test_a_byte_order_mark_shifts_the_first_line_only() -> None:
    text = EditorText("\ufeff# Note\nx", "utf-16")
    assert text.source.text == "# Note\nx"
    assert text.position(2) == {"line": 0, "character": 3}
    assert text.offset({"line": 0, "character": 3}) == 2
    assert text.offset({"line": 1, "character": 1}) == 8


def test_halves_of_a_character_are_joined_and_lone_ones_replaced() -> None:
    def typed(text: EditorText, new: str, column: int) -> EditorText:
        place = {"line": 0, "character": column}
        return text.edited([{"range": {"start": place, "end": place}, "text": new}])

    half = typed(EditorText("ab", "utf-16"), "\ud834", 1)
    assert half.source.text == "a\ufffdb"
    assert typed(half, "\udd1e", 2).source.text == "a𝄞b"


def test_ranges_are_written_from_spans() -> None:
    text = EditorText("one\r\ntwo\r\n", "utf-8")
    assert text.source.text == "one\ntwo\n"
    assert text.range(Span(4, 7)) == {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 3}}
    assert text.span(text.range(Span(4, 7))) == Span(4, 7)
    assert text.line_end == "\r\n"
