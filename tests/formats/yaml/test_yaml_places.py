from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.depth import depth

from quire.formats.yaml import Mapping, Scalar, place, read_yaml
from quire.source import Source, Span


def scalar(text: str) -> tuple[Source, Scalar]:
    source = Source.of(text)
    reading = read_yaml(source)
    assert reading.diagnostics == ()
    [mapping] = reading.documents
    assert isinstance(mapping, Mapping)
    value = mapping.entries[0].value
    assert isinstance(value, Scalar)
    return source, value


@pytest.mark.parametrize(
    ("text", "part", "found"),
    [
        ("é: ctx.pased", "pased", "pased"),
        ("a: !expr ctx.pased", "pased", "pased"),
        ("a: 'ctx.pased'", "pased", "pased"),
        ("a: 'x + ''y'' + pased'", "pased", "pased"),
        ("a: 'x + ''y'' + pased'", "'y'", "''y''"),
        ('a: "\\"x\\" + \\u00e9 + \\x41 + \\U0001F600 + pased"', "pased", "pased"),
        ('a: "x\\n+ pased"', "\n", "\\n"),
        ("a: |  # why\n   x\n\n     + pased\n   + y\nb: 1", "pased", "pased"),
        ("a: |\n   x\n\n     + pased\n   + y\nb: 1", "+ y", "+ y"),
        ("a: |2\n    x + pased\nb: 1", "  x", "  x"),
        ("a: !expr |\n  x\n  + pased\n", "pased", "pased"),
        ("a: >\n  x\n  + pased\n", "pased", "pased"),
        ("a: >-  # why\n  é\n\n  x\n    + pased\n", "x\n  + pased", "x\n    + pased"),
        ('a: "x\n  + pased"', "pased", "pased"),
        ('a: "\\u00e9 x\\\n  + \\t\\"pased\\""', "pased", "pased"),
        ('a: "\\x20x\n  + pased"', "pased", '"\\x20x\n  + pased"'),
        ("a: 'x''\n  + pased'", "pased", "pased"),
        ("a: x\n  + pased", "pased", "pased"),
    ],
)
def test_place(text: str, part: str, found: str) -> None:
    source, value = scalar(text)
    at = value.text.index(part)
    span = place(source, value, Span(at, at + len(part)))
    assert source.text[span.start : span.end] == found


def test_place_of_nothing_at_the_end() -> None:
    source, value = scalar("a: 'x +'\n")
    assert place(source, value, Span(3, 3)) == Span(7, 7)
    source, value = scalar("a: |\n  x +\n")
    assert place(source, value, Span(3, 3)) == Span(10, 10)
    assert place(source, value, Span(4, 4)).start <= len(source.text)
    source, value = scalar("a: >-\n  x\n  + (1\n")
    assert place(source, value, Span(6, 6)) == Span(16, 16)


def test_place_outside_is_the_whole_scalar() -> None:
    source, value = scalar("a: x")
    assert place(source, value, Span(0, 99)) == value.body


@settings(max_examples=depth(30, 150), deadline=None)
@given(
    lines=st.lists(st.text(alphabet="ab +'\"\\é:#", max_size=8), min_size=1, max_size=4),
    style=st.sampled_from(["'", '"', "|"]),
)
def test_every_character_is_found(lines: list[str], style: str) -> None:
    text = "\n".join(lines)
    if style == "|":
        if not text.strip() or any(line != line.strip() for line in lines):
            return
        written = "|\n" + "\n".join(f"   {line}" for line in lines)
    elif style == "'":
        text = text.replace("\n", " ")
        written = "'" + text.replace("'", "''") + "'"
    else:
        written = '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    source, value = scalar(f"é: {written}\n")
    for index, character in enumerate(value.text):
        span = place(source, value, Span(index, index + 1))
        shown = source.text[span.start : span.end]
        if character not in "'\"\\\n":
            assert shown == character
