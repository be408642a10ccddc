"""The script of a run that goes on elsewhere: what was said is passed over, what was never asked for is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quire.cli import main

AGENTS = """
pipeline: three
steps:
- agent: {prompt: first, output: a}
- agent: {prompt: second, output: b}
- agent: {prompt: third, output: c}
- transform: {value: "[a, b, c]"}
"""
RETRIED = """
pipeline: retried
steps:
- for_each:
    items: [x]
    on_error: retry(2)
    do: {agent: {prompt: "about {item}"}}
    collect: {transform: {value: pipe}}
"""


def limit(calls: int) -> None:
    Path("quire.toml").write_text(f"[safety.spawn]\nmax_pipeline_spawns = {calls}\n")


def write(text: str, *replies: object) -> list[str]:
    Path("p.yaml").write_text(text)
    Path("replies.json").write_text(json.dumps(replies))
    return ["run", "p.yaml", "-q", "--script", "replies.json"]


@pytest.mark.usefixtures("workspace")
def test_a_refused_call_has_used_no_entry(capsys: pytest.CaptureFixture[str]) -> None:
    run = write(AGENTS, "one", "two", "three")
    assert main([*run, "--break", "1"]) == 4
    limit(1)
    assert main(["resume", "last", "-q"]) == 5
    assert "1 model calls that it may make" in capsys.readouterr().err
    assert main(["resume", "last", "-q"]) == 5  # refused once more
    limit(2)
    assert main(["resume", "last", "-q"]) == 5
    limit(0)
    capsys.readouterr()
    assert main(["resume", "last", "-q"]) == 0
    assert json.loads(capsys.readouterr().out) == ["one", "two", "three"]


@pytest.mark.usefixtures("workspace")
def test_a_failed_call_has_used_one(capsys: pytest.CaptureFixture[str]) -> None:
    run = write(AGENTS, "one", {"error": "busy"}, "two", "three")
    assert main(run) == 3
    capsys.readouterr()
    assert main(["resume", "last", "-q"]) == 0
    assert json.loads(capsys.readouterr().out) == ["one", "two", "three"]


@pytest.mark.usefixtures("workspace")
def test_refusals_that_a_retry_consumed(capsys: pytest.CaptureFixture[str]) -> None:
    run = write(RETRIED, {"error": "busy"}, "said")
    limit(1)
    assert main(run) == 5  # the first try was asked, the other two were refused
    limit(0)
    capsys.readouterr()
    assert main(["resume", "last", "-q"]) == 0
    assert json.loads(capsys.readouterr().out) == ["said"]


@pytest.mark.usefixtures("workspace")
def test_a_script_that_ran_out_goes_on_with_what_is_added_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(write(AGENTS, "one")) == 3
    assert "no reply for step 2" in capsys.readouterr().err
    write(AGENTS, "one", "two", "three")
    assert main(["resume", "last", "-q"]) == 0
    assert json.loads(capsys.readouterr().out) == ["one", "two", "three"]
