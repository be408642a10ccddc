"""`quire runs try` and `quire runs test`: the receipt, the differences of replies, test cases, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Said, json_of

from quire.cli import main

DOCUMENT = """# Two

## STEP 1: First

First about {{topic:string:tea}}.

@output(first)

## STEP 2: Second

Second after {{first}}.
"""


@pytest.fixture
def run(workspace: Path, said: Said) -> str:
    (workspace / "two.playbook.md").write_text(DOCUMENT)
    (workspace / "replies.json").write_text('["one cup", {"default": "two cups"}]')
    assert main(["run", "two.playbook.md", "-q", "--script", "replies.json"]) == 0
    said()
    return str(json_of(said, "runs")[0]["id"])


def script(workspace: Path, *entries: object) -> str:
    (workspace / "other.json").write_text(json.dumps(entries))
    return f"script:{workspace / 'other.json'}"


def test_tries_show_how_their_replies_differ(run: str, said: Said, workspace: Path) -> None:
    model = script(workspace, {"default": "two pots"})
    assert main(["runs", "try", "last", "2", "-n", "2", "--model", model, "--prompt", "Pots of {{first}}."]) == 0
    out, err = said()
    assert err.startswith("2 runs of step 2 alone")
    first, second, *_ = [line for line in out.splitlines() if line.startswith("try ")]
    assert first.startswith("try 1  completed") and second.startswith("try 2  completed")
    assert out.count("two [-cups-]{+pots+}") == 2
    assert [row["id"] for row in json_of(said, "runs")] == [run]
    tried = first.split(" · ")[-1]
    assert "Pots of one cup." in main_out(said, "runs", tried, "--prompt", "2")


def main_out(said: Said, *words: str) -> str:
    assert main([*words]) == 0
    return said()[0]


def test_values_and_a_prompt_from_a_file(run: str, said: Said, workspace: Path) -> None:
    (workspace / "prompt.txt").write_text("Say {{first}} again.\n")
    words = ("runs", "try", run, "2", "--prompt", "@prompt.txt", "--set", "first=nine", "--json")
    data = json.loads(main_out(said, *words))
    [tried] = data["tries"]
    assert (tried["status"], tried["origin"]["try"]) == ("completed", 1)
    assert "Say nine again." in main_out(said, "runs", tried["id"], "--prompt", "2")


def test_a_dry_run_makes_nothing(run: str, said: Said) -> None:
    receipt = json_of(said, "runs", "try", run, "2", "--dry-run", "-n", "3")
    assert (receipt["n"], receipt["step"], receipt["prompt"]) == (3, "2", "Second after {{first}}.")
    assert receipt["values"] == [{"name": "first", "value": "one cup", "source": "step 1", "path": "1"}]
    assert main_out(said, "runs", "try", run, "2", "--dry-run").startswith("1 run of step 2 alone")


def test_exit_codes(run: str, said: Said, workspace: Path) -> None:
    assert main(["runs", "try", run, "2", "--prompt", "## STEP 3: Delete"]) == 6
    assert "more than the prompt would change" in said()[1]
    assert main(["runs", "try", run, "2", "-n", "21"]) == 6
    assert main(["runs", "try", run, "7"]) == 2
    dear = script(workspace, {"default": "x", "usage": {"input_tokens": 1, "output_tokens": 1, "cost": 0.5}})
    assert main(["runs", "try", run, "2", "--model", dear, "--budget", "0"]) == 5
    assert main(["runs", "try", run, "2", "--model", script(workspace, {"error": "busy"})]) == 3
    out, _ = said()
    assert "failed" in out and "busy" in out


def test_a_case_of_a_try_is_written_and_passes(run: str, said: Said, workspace: Path) -> None:
    model = script(workspace, {"default": "two pots"})
    [tried] = json.loads(main_out(said, "runs", "try", run, "2", "--model", model, "--json"))["tries"]
    assert 'expect: {output: "two pots"}' in main_out(said, "runs", "test", tried["id"])
    assert not (workspace / "two.test.yaml").exists()
    for name in ("try 1 of 2: ", "try 1 of 2: "):
        case = json_of(said, "runs", "test", tried["id"], "--write")
        assert case["case"].startswith(name) and case["written"]
    assert main(["runs", "test", run, "--write"]) == 0
    said()
    assert main(["test"]) == 0
    assert "3 passed" in "".join(said())
