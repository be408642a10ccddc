"""`quire run --reuse`: what it takes, what it says about it, and how it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Said, json_of

from quire.cli import main

DOCUMENT = """# Two

## STEP 1: First

First.

## STEP 2: Second

Second.
"""
REPLIES = """[
  {"step": "1", "reply": "one", "usage": {"input_tokens": 1200, "output_tokens": 30, "cost": 0.25}},
  {"step": "2", "reply": "two", "usage": {"input_tokens": 10, "output_tokens": 3, "cost": 0.01}}
]"""
RUN = ("run", "two.md", "--script", "replies.json")


@pytest.fixture
def run(workspace: Path, said: Said) -> str:
    (workspace / "two.md").write_text(DOCUMENT)
    (workspace / "replies.json").write_text(REPLIES)
    assert main([*RUN, "-q"]) == 0
    said()
    return newest(said)


def newest(said: Said) -> str:
    said()
    return str(json_of(said, "runs")[0]["id"])


def test_a_table_says_what_was_saved(run: str, workspace: Path, said: Said) -> None:
    (workspace / "two.md").write_text(DOCUMENT.replace("Second.", "Another."))
    assert main([*RUN, "--reuse", "last"]) == 0
    out, err = said()
    assert out == "two\n"
    assert [re.sub(r"[0-9.]+s$", "SECONDS", line) for line in err.splitlines()[-4:]] == [
        f"REUSED FROM {run}  REPLIES    TOKENS     COST  TIME",
        "step 1                           1  1,200+30  $0.2500  SECONDS",
        "saved                            1  1,200+30  $0.2500  SECONDS",
        "asked anew: 1 call (1 changed)",
    ]
    assert main(["runs", "last"]) == 0
    page = said()[0]
    assert f"REUSED FROM {run}" in page
    assert "tokens    10 in, 3 out, $0.0100" in page
    assert main(["runs", "last", "--journal"]) == 0
    assert f"reused from {run}" in said()[0].splitlines()[1]
    assert main(["runs", "why", "last", "1"]) == 0
    assert f"reused from {run}" in said()[0]
    assert main(["runs", "last", "--follow"]) == 0
    assert f"reused from {run}" in said()[0]


def test_programs_get_the_same(run: str, said: Said) -> None:
    assert main([*RUN, "--reuse", run[:9], "--json"]) == 0
    out, err = said()
    *events, last = [json.loads(line) for line in out.splitlines()]
    assert [one["reused"] for one in events if one["type"] == "effect"] == [run, run]
    assert (last["reused"]["run"], last["reused"]["replies"], last["reused"]["asked"]) == (run, 2, 0)
    saved = last["reused"]["saved"]
    assert (saved["input_tokens"], saved["output_tokens"], saved["cost"]) == (1210, 33, 0.26)
    assert last["cost"] == 0.0
    assert "REUSED" not in err
    data = json_of(said, "runs", "last")
    assert data["reused"] == last["reused"]
    assert [one.get("reused") for one in data["effects"]] == [run, run]


def test_a_quiet_run_says_nothing_of_it(run: str, said: Said) -> None:
    assert main([*RUN, "--reuse", "last", "-q"]) == 0
    assert said() == ("two\n", "")


def test_a_run_that_reuses_nothing_has_no_such_key(run: str, said: Said) -> None:
    data = json_of(said, "runs", run)
    assert "reused" not in data
    assert all("reused" not in one for one in data["effects"])


@pytest.mark.parametrize(
    ("document", "reuse", "message"),
    [
        ("two.md", "zzz", "unknown run zzz"),
        ("two.md", "", "--reuse is empty"),
        ("three.md", "RUN", "run RUN is of two.md, which is not three.md: nothing of it can be reused"),
        ("three.md", "last", "no run of three.md is stored here, so no reply can be reused"),
        ("p.yaml", "RUN", "run RUN is of a playbook, and p.yaml is a pipeline: nothing of it can be reused"),
    ],
)
def test_what_cannot_be_reused(run: str, workspace: Path, said: Said, document: str, reuse: str, message: str) -> None:
    (workspace / "three.md").write_text(DOCUMENT.replace("# Two", "# Three"))
    (workspace / "p.yaml").write_text("pipeline: p\nsteps:\n- agent: {prompt: Hello}\n")
    assert main(["run", document, "--script", "replies.json", "--reuse", reuse.replace("RUN", run)]) == 2
    out, err = said()
    assert out == ""
    assert message.replace("RUN", run) in err
    assert "Traceback" not in err
    assert newest(said) == run
