"""One session per verb: `run`, `resume`, `answer` and `fork` open the workspace once and read its settings once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

import quire.runs.stored
from quire.cli import main
from quire.runs.runtime import Runtime
from quire.workspace.settings import Settings

PAGE = '# P\n\n## STEP 1: Ask\n\n@elicit(input, "Who?")\n\n## STEP 2: Say\n\nGreet.\n'
VERBS = {
    "run": ["run", "page.playbook.md", "--script", "script.json", "--unattended"],
    "resume": ["resume", "last", "--answer", "1=Ann"],
    "answer": ["answer", "last", "Ann"],
    "fork": ["fork", "last", "--from", "1", "--unattended"],
}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the runtimes that are made, and how often settings are read."""
    count: Counter[str] = Counter()
    settings_of, make = quire.runs.stored.settings_of, Runtime.open

    def read(start: Path | None, environ: Mapping[str, str]) -> Settings:
        count["settings"] += 1
        return settings_of(start, environ)

    def open_runtime() -> Runtime:
        count["runtime"] += 1
        return make()

    monkeypatch.setattr("quire.runs.runtime.settings_of", read)
    monkeypatch.setattr(Runtime, "open", open_runtime)
    return count


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_opens_the_workspace_once(workspace: Path, opened: Counter[str], verb: str) -> None:
    Path("page.playbook.md").write_text(PAGE)
    Path("script.json").write_text(json.dumps([{"default": "Hello."}]))
    if verb != "run":
        assert main(["run", "page.playbook.md", "--script", "script.json"]) == 4
    opened.clear()
    assert main(VERBS[verb]) == 0
    assert opened == {"runtime": 1, "settings": 1}


@pytest.mark.parametrize("verb", [["answer", "last", "Ann"], ["resume", "last", "--answer", "1=Ann"]])
def test_a_detached_run_gets_the_options_again(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, verb: list[str]
) -> None:
    started: list[str] = []
    monkeypatch.setattr("quire.cli.drive.start_module", lambda *arguments: started.extend(arguments))
    Path("page.playbook.md").write_text(PAGE)
    Path("script.json").write_text(json.dumps([{"default": "Hello."}]))
    assert main(["run", "page.playbook.md", "--script", "script.json"]) == 4
    assert main([*verb, "--detach", "--quiet", "--budget", "0", "--script", "script.json"]) == 0
    assert started[:2] == ["quire", "resume"] and started[3] == "--quiet"
    given = ["--budget", "0.0", "--script", "script.json"]
    assert sorted(started[4:]) == sorted([*given, *(verb[2:] if verb[0] == "resume" else [])])
