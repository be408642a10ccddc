"""`--limit calls=N`: how many model calls a run may make, by the user's own word (newcomer M2, law 14)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Said

from quire.cli import main

FAN = """pipeline: fan
steps:
  - for_each:
      over: ctx.rows
      on_error: POLICY
      do: {agent: {prompt: "say {item}"}}
      collect: {transform: {value: "count(pipe)"}}
"""
ROWS = 200
RAISED = "[safety.spawn]\nmax_pipeline_spawns = 500\n"


@pytest.fixture(autouse=True)
def fan(workspace: Path) -> None:
    (workspace / "fan.yaml").write_text(FAN.replace("POLICY", "continue"))
    (workspace / "sure.yaml").write_text(FAN.replace("POLICY", "abort"))
    (workspace / "in.json").write_text(json.dumps({"rows": list(range(ROWS))}))
    (workspace / "s.json").write_text('[{"default": "ok"}]')
    (workspace / "p.playbook.md").write_text("# P\n\n## STEP 1: A\n\nGo.\n\n## STEP 2: B\n\nGo.\n")


def run(*more: str, document: str = "fan.yaml") -> int:
    inputs = () if document.endswith(".md") else ("--inputs", "in.json")
    return main(["run", document, *inputs, "--script", "s.json", "-q", *more])


def test_a_cap_drops_no_item(said: Said) -> None:
    """real-work: `continue` and the default cap lost half of the list, with exit 0."""
    assert run() == 5
    out, err = said()
    assert out == "" and "(1/for_each[100]/model)" in err
    assert "to continue: quire resume" in err and "--limit calls=MORE, 0 for no limit" in err
    assert main(["resume", "last", "-q", "--limit", "calls=150"]) == 5
    assert main(["resume", "last", "-q", "--limit", "calls=0"]) == 0
    assert said()[0] == f"{ROWS}\n"


def test_the_limit_holds_for_forks_and_in_other_formats(said: Said) -> None:
    assert run("--limit", "calls=0") == 0
    assert main(["fork", "last", "--from", "1", "-q", "--limit", "calls=30"]) == 5
    assert "the run has made the 30 model calls" in said()[1]
    assert main(["fork", "last", "--from", "1", "-q", "--limit", "calls=none"]) == 0
    assert run("--limit", "calls=1", document="p.playbook.md") == 5
    assert main(["resume", "last", "-q", "--limit", "calls=2"]) == 0


@pytest.mark.parametrize("value", ["-1", "abc", "", "1.5", "true", "1e3", "10000000000000000"])
@pytest.mark.parametrize("verb", [["run", "fan.yaml"], ["resume", "last"], ["fork", "last", "--from", "1"]])
def test_anything_but_a_number_is_refused_in_one_line(said: Said, verb: list[str], value: str) -> None:
    if verb[0] == "fork":
        assert run(document="p.playbook.md") == 0 and said()
    assert main([*verb, "--limit", f"calls={value}"]) == 2
    out, err = said()
    assert (out, err.count("\n")) == ("", 1)
    assert f"--limit calls={value}: the limit of calls is a whole number, 0 for no limit" in err


def test_a_list_that_is_too_long_is_refused_before_the_start(said: Said) -> None:
    assert run(document="sure.yaml") == 5
    assert "run it with --limit calls=200, or raise max_pipeline_spawns" in said()[1]
    assert main(["runs", "--json"]) == 0 and json.loads(said()[0]) == []
    assert run("--limit", "calls=199", document="sure.yaml") == 5
    assert run("--limit", "calls=200", document="sure.yaml") == 0


def test_the_own_word_needs_no_trust_and_a_file_of_the_workspace_does(workspace: Path, said: Said) -> None:
    (workspace / "quire.toml").write_text(RAISED)
    assert run() == 6
    assert "quire trust workspace" in said()[1]
    assert run("--limit", "calls=0") == 0
    assert said()[0] == f"{ROWS}\n"
    assert main(["trust", "workspace", "--yes"]) == 0
    assert run() == 0


def test_the_start_says_the_limit_that_holds(said: Said) -> None:
    assert main(["run", "fan.yaml", "--inputs", "in.json", "--script", "s.json", "--limit", "calls=7"]) == 5
    assert "at most 200 model calls, stopped at 7" in said()[1]
