"""Read texts as test files, for the tests of the reader."""

from __future__ import annotations

from pathlib import Path

from quire.formats.test.parse import parse
from quire.formats.test.syntax import Case, TestFile, TestReading
from quire.source import Source

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.test.yaml"))


def reading_of(text: str) -> TestReading:
    return parse(Source.of(text, "x.test.yaml"))


def file_of(text: str) -> TestFile:
    """Read a file that has no findings."""
    reading = reading_of(text)
    assert [(one.code.id, one.message) for one in reading.diagnostics] == []
    assert reading.file is not None
    return reading.file


def case_of(lines: str) -> Case:
    """Read one case from its lines below the name."""
    body = "".join(f"    {line}\n" for line in lines.splitlines())
    return file_of(f"cases:\n  - name: one\n{body}").cases[0]


def findings(text: str) -> list[tuple[str, str, str, str]]:
    """Return the code, the message, the marked text and the help of each finding."""
    reading = reading_of(text)
    assert reading.file is None
    return [
        (one.code.id, one.message, reading.source.text[one.span.start : one.span.end], one.help)
        for one in reading.diagnostics
    ]


def case_findings(lines: str) -> list[tuple[str, str, str, str]]:
    body = "".join(f"    {line}\n" for line in lines.splitlines())
    return findings(f"cases:\n  - name: one\n{body}")
