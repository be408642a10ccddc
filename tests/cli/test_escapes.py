"""Nothing that a document, a model or a workspace wrote drives the terminal, whichever verb prints it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.given import given

from quire.cli import main

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u2066"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2066]")
PAGE = f"""# Title {EVIL}

## STEP 1: Step {EVIL}

Say {EVIL}.

@output(lv, extract:"lv")

## STEP 2: Tool {EVIL}

@tool("server {EVIL}", "tool {EVIL}", {{}})

## ARTIFACTS

type: {{{{lv}}}}
"""
RUNNING = PAGE.replace(PAGE[PAGE.index("## STEP 2") : PAGE.index("## ARTIFACTS")], "")
LITERAL = RUNNING.replace("{{lv}}", f"kind{EVIL}")
SETTINGS = f"""
[tools]
allow = ["tool {EVIL}"]
[agents."agent {EVIL}"]
model = "model {EVIL}"
[models.providers."provider {EVIL}"]
base_url = "http://{EVIL}"
"""


def quoted(text: str) -> str:
    """As TOML has it."""
    return RAW.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


@pytest.mark.parametrize("page", [PAGE, LITERAL])
@pytest.mark.parametrize(
    "arguments",
    [
        *(["check", "--format", form] for form in ("full", "concise", "json", "github", "sarif")),
        ["show"],
        ["show", "--json"],
        ["parse"],
    ],
)
def test_documents(workspace: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], page: str) -> None:
    Path("page.md").write_text(page)
    main([*arguments, "page.md"])
    told = capsys.readouterr()
    assert "kind" in told.out or page is PAGE
    assert not RAW.search(told.out + told.err)


@pytest.mark.parametrize("page", [RUNNING, LITERAL])
@pytest.mark.parametrize("sides", [[], ["--json"], ["--journal"], ["--state"], ["--follow"], ["--follow", "--json"]])
def test_runs(workspace: Path, capsys: pytest.CaptureFixture[str], page: str, sides: list[str]) -> None:
    given({"page.md": page, "replies.json": [f"Reply. {json.dumps({'lv': f'level {EVIL}'})}"]})
    assert main(["run", "page.md", "--script", "replies.json", "--json"]) == 0
    told = capsys.readouterr()
    assert "level" in told.out and not RAW.search(told.out + told.err)
    assert json.loads(told.out.splitlines()[-1])["named"] == {"lv": f"level {EVIL}"}
    assert main(["runs", "last", *sides]) == 0
    told = capsys.readouterr()
    assert told.out and not RAW.search(told.out + told.err)
    if sides in ([], ["--json"]):
        assert "level" in told.out


def test_why_a_tool_was_called(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given({"page.md": PAGE, "replies.json": ["x"]})
    main(["run", "page.md", "--script", "replies.json"])
    capsys.readouterr()
    for step in ("1", "2"):
        main(["runs", "why", "last", step])
        told = capsys.readouterr()
        assert not RAW.search(told.out + told.err)


@pytest.mark.parametrize("arguments", [["trust", "workspace"], ["trust", "workspace", "--json"], ["doctor"]])
def test_what_a_workspace_asks_for(workspace: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    Path("quire.toml").write_text(quoted(SETTINGS))
    main(arguments)
    told = capsys.readouterr()
    assert "provider" in told.out and not RAW.search(told.out + told.err)


def test_an_evaluated_value_is_the_same_for_machines(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "ctx.a", "--context", json.dumps({"a": EVIL})]) == 0
    told = capsys.readouterr().out
    assert json.loads(told) == EVIL and not RAW.search(told)
