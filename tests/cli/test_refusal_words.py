"""What a person is told to do after a refusal: only what can help."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.cli import main

PAGE = '# P\n\n## STEP 1: A\n\n@tool(quire, file__write, {{"path": "{path}", "content": "x"}})\n'


@pytest.mark.parametrize(
    ("path", "helps"),
    [
        ("quire.toml", False),
        (".git/config", False),
        (".ai/config/capability_risk.yaml", False),
        ("src/new.rs", False),
        ("prompts/a.md", True),
        ("AGENTS.md", True),
        (".ai/directives/a.md", True),
    ],
)
def test_a_new_start_is_proposed_where_a_grant_helps(
    workspace: Path, capsys: pytest.CaptureFixture[str], path: str, helps: bool
) -> None:
    """Security, "Are the defaults usable?"."""
    (workspace / "p.playbook.md").write_text(PAGE.format(path=path))
    (workspace / ".mcp.json").write_text('{"mcpServers": {"s": {"command": "cargo", "args": ["run"], "cwd": "src"}}}')
    assert main(["trust", "workspace", "--yes"]) == 0
    assert main(["run", "p.playbook.md", "-q"]) == 6
    said = capsys.readouterr().err
    assert ("--allow file__write=" in said) == helps
    assert ("--from 1 --allow file__write=" in said) == helps
    assert "edit the document" not in said, "that is no way out of a place that nothing opens"
    assert ("no tool may write it, and no grant opens it: " in said) != helps
    assert ("nothing opens that place to a tool, so a resume and a fork are refused again" in said) != helps


def test_a_run_that_its_document_fails_is_started_again(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (workspace / "p.yaml").write_text("pipeline: p\ndialect: quire\nsteps: [{fail: {message: blocked}}]\n")
    assert main(["run", "p.yaml", "-q"]) == 3
    said = capsys.readouterr().err
    assert "blocked" in said and "start a new run when the reason is gone, or edit the document, then quire" in said
