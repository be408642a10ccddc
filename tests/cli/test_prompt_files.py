"""Prompt files of pipelines: kept with the run from its start, shown before and after it, never from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Said
from tests.given import given

from quire.cli import main

DOCUMENT = """\
pipeline: filed
dialect: quire
steps:
  - tool: {name: ask, args: {prompt: "go on?", type: confirm}}
  - agent: {prompt: !file prompts/hi.md}
"""


@pytest.fixture
def filed(workspace: Path) -> Path:
    return given(
        {"prompts/hi.md": "Greet {ctx.name}.", "d.yaml": DOCUMENT, "s.json": '[{"default": "said"}]'}, workspace
    )


def test_a_run_keeps_the_text_that_the_file_had_at_its_start(filed: Path, said: Said) -> None:
    assert main(["check", "d.yaml"]) == 0
    assert main(["run", "d.yaml", "-i", "name=Ada", "--script", "s.json", "-q"]) == 4
    (filed / "prompts" / "hi.md").write_text("Insult {ctx.name}.")
    assert main(["answer", "last", "yes", "-q"]) == 0
    said()
    assert main(["runs", "last", "--prompt", "2"]) == 0
    assert "Greet Ada." in said()[0]


def test_a_preview_fills_the_file_in(filed: Path, said: Said) -> None:
    assert main(["show", "d.yaml", "--prompt", "2", "-i", "name=Ada"]) == 0
    assert "Greet Ada." in said()[0]


def test_a_missing_file_is_found_before_anything_is_paid(filed: Path, said: Said) -> None:
    (filed / "prompts" / "hi.md").unlink()
    assert main(["run", "d.yaml", "-i", "name=Ada", "--script", "s.json", "-q"]) == 2
    assert "prompts/hi.md" in said()[1]
    assert main(["show", "d.yaml", "--prompt", "2"]) == 2


def test_a_link_that_leads_out_is_not_followed(filed: Path, said: Said, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    (filed / "prompts" / "hi.md").unlink()
    (filed / "prompts" / "hi.md").symlink_to(tmp_path / "secret.txt")
    assert main(["run", "d.yaml", "-i", "name=Ada", "--script", "s.json", "--answer", "1=yes", "-q"]) in (2, 3)
    assert "leads out" in said()[1]


def test_a_file_that_is_too_long_is_refused(filed: Path, said: Said) -> None:
    (filed / "prompts" / "hi.md").write_text("x" * 1_000_001)
    assert main(["run", "d.yaml", "-i", "name=Ada", "--script", "s.json", "-q"]) == 2
