"""Whatever the text: reading a test file never raises, takes linear time, and points into the text."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.depth import depth
from tests.formats.test.readings import SAMPLES, reading_of

from quire.diagnostics import Severity
from quire.formats.test.fields import keys_of

CASE = "cases.-"
PLACES = ("", CASE, *(f"{CASE}.{one}" for one in ("then.-", "expect", "expect.output", "model.-", "tools.NAME")))
KEYS = tuple(key for place in PLACES for key in keys_of(place))
TEXTS = [path.read_text(encoding="utf-8") for path in SAMPLES]
PIECES = (
    *(f"{key}: " for key in KEYS),
    *("{", "}", "[", "]", ": ", ", ", "- ", "\n", "  ", '"', "'", "|\n", ">\n", "&a ", "*a", "<<: *a", "#", "---\n"),
    *("!expr ", "!snapshot ", "!!str ", "!file ", "null", "true", "1", "-1", "1e999", ".inf", "0x10", "48h", "todo"),
    *("real", "any", "everywhere", "../x", "/etc/passwd", "{row.x}", "value == ", "(?=a)", "\u2028", "\x00", "\ud800"),
)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """One of the samples with some parts removed, repeated or replaced."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 30)))
        what = draw(st.integers(0, 3))
        new = "" if what == 0 else text[start:end] * 2 if what == 1 else draw(st.sampled_from(PIECES))
        text = text[:start] + new + text[end if what != 3 else start :]
    return text


@settings(max_examples=depth(150, 3000), deadline=None)
@given(mutated())
@example("cases: &a [*a]")
@example("cases: [{name: a, <<: {name: b}}]")
@example("cases:\n  - ? {a: b}\n    : c\n")
def test_reading_never_raises(text: str) -> None:
    reading = reading_of(text)
    wrong = any(found.severity is Severity.ERROR for found in reading.diagnostics)
    assert (reading.file is None) is wrong
    for found in reading.diagnostics:
        assert 0 <= found.span.start <= found.span.end <= len(reading.source.text)
        assert found.message and "\n" not in found.message


LARGE = {
    "cases": ("cases:\n", "  - {name: 'case %d', inputs: {a: 1}, expect: {output: x}}\n"),
    "unknown keys": ("cases:\n  - name: a\n", "    k%d: 1\n"),
    "wrong expressions": ("cases:\n  - name: a\n    expect:\n      that:\n", "        - !expr 'a %d = b'\n"),
    "defaults": ("defaults:\n  inputs:\n", "    i%d: 1\n"),
    "aliases": ("x: &a {b: c}\ncases:\n", "  - {name: 'case %d', inputs: *a}\n"),
    "deep": ("cases:\n  - name: a\n    expect:\n      output: ", "[%d, "),
}


@pytest.mark.parametrize("kind", LARGE)
def test_reading_takes_linear_time(kind: str) -> None:
    head, line = LARGE[kind]

    def seconds(count: int) -> float:
        text = head + "".join(line % number for number in range(count))
        begin = time.process_time()
        reading_of(text)
        return time.process_time() - begin

    seconds(50)
    assert seconds(4000) < 40 * max(seconds(400), 0.005)


def test_many_cases_with_many_defaults_are_refused() -> None:
    inputs = "".join(f"    i{number}: 1\n" for number in range(3000))
    cases = "".join(f"  - {{name: c{number}, inputs: {{a: 1}}}}\n" for number in range(3000))
    reading = reading_of(f"defaults:\n  inputs:\n{inputs}cases:\n{cases}")
    assert [found.message for found in reading.diagnostics] == [
        "the defaults have too many entries for the number of cases"
    ]


def test_a_file_that_is_too_large() -> None:
    reading = reading_of("cases: []\n#" + "x" * 2_000_000)
    assert [found.code.id for found in reading.diagnostics] == ["YM002"]
