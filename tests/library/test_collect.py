"""A search for documents: which files of a folder are documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.library.collect import collect

STEPS = "[{shell: {command: [ls]}}]"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", f"pipeline: a\nsteps: {STEPS}\n"),
        ("a.yaml", f"{{pipeline: a, steps: {STEPS}}}\n"),
        ("a.yaml", f"--- {{pipeline: a, steps: {STEPS}}}\n"),
        ("a.yml", f"  pipeline: a\n  steps: {STEPS}\n"),
        ("a.yaml", f"? pipeline\n: a\n? steps\n: {STEPS}\n"),
        ("a.yaml", f"!!str pipeline: a\nsteps: {STEPS}\n"),
        ("a.yaml", f"&p pipeline: a\nsteps: {STEPS}\n"),
        ("a.yaml", f'"pipe\\u006cine": a\nsteps: {STEPS}\n'),
        ("a.md", "# A\n\n##  STEP 1: A\n\nSay hello.\n"),
        ("a.markdown", "# A\n\n## STEP 1: A\n\nSay hello.\n"),
    ],
)
def test_a_document_is_found_however_it_is_written(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert [one.path.name for one in collect([str(tmp_path)])[0]] == [name]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "stages:\n  pipeline: a\n"),
        ("a.yaml", "kind: pipeline\n"),
        ("a.yaml", "- pipeline: a\n"),
        ("a.yaml", "{stages: {pipeline: a}}\n"),
        ("a.yaml", 'a: "\\u00e4"\n'),
        ("a.md", "# A\n\nThe heading ## STEP 1: A is an example.\n"),
    ],
)
def test_other_files_are_not_taken_for_documents(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert collect([str(tmp_path)])[0] == []
