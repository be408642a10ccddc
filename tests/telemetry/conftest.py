"""A receiver for each test, and a workspace whose runs send their spans to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.given import given
from tests.telemetry.receiver import Receiver, receiving

from quire.telemetry.exporter import exporter_to

PLAYBOOK = """# Weekly report

## INPUTS

- `topic` (string): What it is about

## STEP 1: Notes

@tool(quire, file__read, {"path": "notes.txt"})
@output(notes)

## STEP 2: Gist

The gist of {{notes}} about {{topic}}.

@output(gist)

## STEP 3: Agree

@elicit(select, "Shall it be PROMPT-ASKED?", "yes", "no", default:"yes")
@output(agreed)

## STEP 4: Again

Say {{agreed}} again.
"""
Said = Callable[[], tuple[str, str]]
"""What stdout and stderr got since the last time."""
USAGE = {"input_tokens": 10, "output_tokens": 3, "cost": 0.01}
RUN = ["run", "report.playbook.md", "-i", "topic=INPUT-TEXT", "--script", "replies.json", "--quiet"]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no variable of this machine and no exporter of another test take part."""
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "TRACEPARENT"):
        monkeypatch.delenv(name, raising=False)
    exporter_to.cache_clear()
    yield
    exporter_to.cache_clear()


@pytest.fixture
def report(workspace: Path) -> Path:
    replies = [{"default": "REPLY-TEXT", "usage": USAGE}]
    return given(
        {"report.playbook.md": PLAYBOOK, "notes.txt": "TOOL-TEXT", "replies.json": json.dumps(replies)}, workspace
    )


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    return capsys.readouterr


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiving() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.address)
        yield receiver
