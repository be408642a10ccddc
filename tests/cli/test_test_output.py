"""The line of progress of `quire test` is for terminals alone, and leaves nothing behind."""

from __future__ import annotations

import io
import sys

import pytest
from tests.display.results_of_tests import results

from quire.cli.test import ProgressLine, Report


class Terminal(io.TextIOWrapper):
    def __init__(self) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding="utf-8", write_through=True)

    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        return self.bytes.getvalue().decode()


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProgressLine, "EVERY", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def report() -> None:
    made = Report("concise")
    for result in results():
        made.add(result)
    made.end()


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> str:
    """Not a fixture: pytest exchanges the streams before each test once more."""
    stream = Terminal()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        report()
    return stream.text()


def test_a_terminal_sees_how_far_the_tests_are(monkeypatch: pytest.MonkeyPatch) -> None:
    *shown, last = on_terminal(monkeypatch).split("\r\x1b[K")
    assert "6 cases · 1 failed · texts/tagline.test.yaml" in shown
    assert "failed" in last and last.endswith(" s)\n")


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_plain_terminal_sees_only_the_summary(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    said = on_terminal(monkeypatch)
    assert "\x1b" not in said and said.count("\n") == 1


def test_a_file_gets_only_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    report()
    said = capsys.readouterr().err
    assert "\r" not in said and said.count("\n") == 1
