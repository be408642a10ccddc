"""AGENTS.md of the repository: short, and true in every path and command that it names."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from tests.docs.pages import ROOT

from quire.cli.app import group

TEXT = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
SPANS = re.findall(r"`([^`\n]+)`", TEXT)
PATHS = [span for span in SPANS if re.fullmatch(r"[\w./-]+", span) and ("/" in span or span.endswith(".md"))]


def test_it_is_short() -> None:
    lines = TEXT.splitlines()
    assert len(lines) <= 60 and max(map(len, lines)) <= 120


@pytest.mark.parametrize("path", PATHS)
def test_paths_exist(path: str) -> None:
    places = (ROOT, ROOT / "src/quire")
    assert any((place / path).exists() for place in places) or "NAME" in path or path.startswith(".venv/")


def test_verbs_exist() -> None:
    verbs = {match[1] for span in SPANS if (match := re.match(r"(?:\.venv/bin/)?quire ([a-z]+)", span))}
    assert len(verbs) > 6 and verbs <= set(group.list_commands(click.Context(group)))


def test_its_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z-]+)", TEXT)) <= targets
    assert set(re.findall(r"python -m (tests[\w.]+)", TEXT)) == {"tests.docs.http_page"}
    assert Path(ROOT, "tests/docs/http_page.py").is_file()
