"""`quire resume`: nothing that was recorded is done again, whatever ended the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Said, json_of
from tests.cli.test_fork import DOCUMENT
from tests.processes import started

from quire.cli import main


@pytest.fixture
def document(workspace: Path) -> str:
    (workspace / "three.md").write_text(DOCUMENT)
    return "three.md"


def script(*replies: object, name: str = "replies.json") -> str:
    Path(name).write_text(json.dumps(replies))
    return name


def performed(out: str) -> list[str]:
    """The paths of the effects in a `--json` output."""
    lines = [json.loads(line) for line in out.splitlines()]
    return [line["path"] for line in lines if line["type"] == "effect"]


def test_goes_on_after_a_breakpoint_with_a_value_changed(document: str, said: Said) -> None:
    replies = script("one", {"contains": "Second after ONE.", "reply": "two"}, {"contains": "Third", "reply": "end"})
    assert main(["run", document, "--break", "1", "-q", "--script", replies]) == 4
    assert said()[1].splitlines()[:2] == ["paused after step 1", "  first = one"]
    assert main(["resume", "last", "--set", "first=ONE", "--json"]) == 0
    out, err = said()
    assert (performed(out), err) == (["2/model", "3/model"], "")
    assert json.loads(out.splitlines()[-1])["named"] == {"first": "ONE", "second": "two"}


def test_a_failure_is_tried_again_and_scripts_go_on_where_they_were(document: str, said: Said) -> None:
    replies = script("one", {"error": "busy"}, {"error": "still busy"}, "two", "end")
    assert main(["run", document, "--json", "--script", replies]) == 3
    assert performed(said()[0]) == ["1/model", "2/model"]
    assert main(["resume", "last", "-q"]) == 3
    assert said()[1].startswith("failed at step 2: still busy")
    assert main(["resume", "last", "--json"]) == 0
    out, _ = said()
    assert performed(out) == ["2/model", "3/model"]
    assert json.loads(out.splitlines()[-1])["output"] == "end"


def test_a_script_has_one_name_whoever_drives_the_run(document: str, said: Said) -> None:
    """reliability S2: a relative path was recorded as it was written."""
    replies = script("one", "two", "end")
    assert main(["run", document, "--break", "1", "-q", "--script", replies]) == 4
    assert main(["resume", "last", "-q", "--script", replies]) == 0
    said()
    assert main(["runs", "export", "last"]) == 0
    assert f"script:{Path(replies).resolve()}" in (out := said()[0]) and "script:replies.json" not in out


def test_a_process_that_was_killed_lost_nothing(document: str, said: Said) -> None:
    replies = script("one", {"reply": "never said", "delay_ms": 60_000})
    command = [sys.executable, "-m", "quire", "run", document, "--json", "--script", replies]
    with started(command, stdout=subprocess.PIPE, env=os.environ) as quire:
        for line in quire.stdout or ():
            event = json.loads(line)
            if event["type"] == "step_started" and event["path"] == "2":
                break
    shown = json_of(said, "runs", event["run"])
    assert (shown["status"], shown["step"]) == ("interrupted", "2")
    assert [step["status"] for step in shown["steps"]] == ["completed", "interrupted", "pending"]
    assert main(["runs", event["run"]]) == 0
    assert "interrupted at step 2\n" in said()[0]
    other = script("passed over", {"contains": "Second after one.", "reply": "two"}, "end", name="other.json")
    assert main(["resume", event["run"][:9], "--json", "--script", other]) == 0
    out, _ = said()
    assert performed(out) == ["2/model", "3/model"]
    assert json.loads(out.splitlines()[-1])["named"] == {"first": "one", "second": "two"}


def test_a_limit_is_the_one_of_now(document: str, said: Said) -> None:
    replies = script({"reply": "one", "usage": {"cost": 0.4}}, "two", "end")
    assert main(["run", document, "-q", "--budget", "0.3", "--script", replies]) == 5
    assert "--budget MORE" in said()[1]
    assert main(["resume", "last", "-q", "--budget", "0.3"]) == 5
    said()
    assert main(["resume", "last", "-q", "--budget", "0.5", "--out", "result"]) == 0
    assert said() == ("", "")
    assert Path("result.md").read_text() == "end\n"


def test_a_budget_holds_for_the_rest_of_the_run(document: str, said: Said) -> None:
    replies = script(*({"reply": one, "usage": {"cost": 0.4}} for one in ("one", "two", "end")))
    assert main(["run", document, "-q", "--budget", "0.3", "--script", replies]) == 5
    said()
    assert main(["resume", "last", "-q", "--budget", "0.7"]) == 5
    assert "the budget of $0.7 is used up" in said()[1]
    assert main(["resume", "last", "-q"]) == 5
    assert "the budget of $0.7 is used up" in said()[1]
    assert main(["fork", "last", "--from", "3", "-q"]) == 0  # what is taken over costs nothing again
    said()


def test_the_model_is_said(document: str, said: Said) -> None:
    assert main(["run", document, "--break", "1", "-q", "--script", script({"default": "x"})]) == 4
    said()
    assert main(["resume", "last"]) == 0
    out, err = said()
    assert out == "x\n"
    assert err.splitlines()[0] == f"model: script:{Path('replies.json').resolve()} (as the run was started)"
    assert [line.partition(" …")[0] for line in err.splitlines()[1:]] == ["[2/3] Second", "[3/3] Third"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nothing"], "unknown run nothing"),
        (["last"], "is completed: `quire runs "),
        (["last", "--set", "x"], "write NAME=VALUE"),
    ],
)
def test_what_cannot_be_resumed(document: str, said: Said, arguments: list[str], problem: str) -> None:
    assert main(["run", document, "-q", "--script", script({"default": "x"})]) == 0
    said()
    assert main(["resume", *arguments]) == 2
    out, err = said()
    assert (out, len(err.splitlines())) == ("", 1) and problem in err


def test_values_are_set_only_where_the_run_is_paused(document: str, said: Said) -> None:
    assert main(["run", document, "-q", "--script", script({"error": "no"})]) == 3
    said()
    assert main(["resume", "last", "--set", "first=x"]) == 2
    assert "values can be set only there" in said()[1]


def test_a_misspelt_value_is_not_set(document: str, said: Said) -> None:
    assert main(["run", document, "-q", "--break", "1", "--script", script("one", "two", "three")]) == 4
    said()
    assert main(["resume", "last", "--set", "frist=x", "--set", "zzz=1", "--set", "first=x"]) == 2
    assert said()[1].splitlines() == [
        "quire: --set frist: the document never mentions frist (did you mean first?)",
        "  --set zzz: the document never mentions zzz",
    ]
    assert main(["resume", "last", "-q", "--set", "first=x"]) == 0


def test_an_edited_document_is_named_by_the_resume_of_a_failed_run(document: str, said: Said) -> None:
    """newcomer, small things: the run keeps its text, so it fails in the same way."""
    assert main(["run", document, "-q", "--script", script({"error": "no"}, {"error": "no"}, {"error": "no"})]) == 3
    said()
    assert main(["resume", "last"]) == 3
    assert "was edited" not in said()[1]
    Path(document).write_text(DOCUMENT.replace("Third after", "At last"))
    assert main(["resume", "last"]) == 3
    words = "three.md was edited since; to continue with the edited text: quire resume "
    assert words in said()[1]


def test_the_only_run_that_can_go_on_needs_no_name_on_a_terminal(
    document: str, at_a_terminal: None, said: Said
) -> None:
    """newcomer, small things."""
    replies = script({"contains": "First", "reply": "one"}, {"default": "x"})
    assert main(["run", document, "-q", "--script", replies]) == 0
    assert main(["run", document, "-q", "--break", "1", "--script", replies]) == 4
    assert main(["resume", "-q"]) == 0
    said()
    assert main(["resume"]) == 2
    assert said()[1] == "quire: there are no runs to resume\n"
    for _ in range(2):
        assert main(["run", document, "-q", "--break", "1", "--script", replies]) == 4
    said()
    assert main(["resume"]) == 2
    assert "several runs could be meant to resume, say which: " in said()[1]


def test_without_any_run(workspace: Path, said: Said) -> None:
    assert main(["resume", "last"]) == 2
    assert said()[1] == "quire: no runs exist yet\n"


def test_several_runs_are_resumed_one_after_another(document: str, said: Said) -> None:
    for _ in range(2):
        assert main(["run", document, "-q", "--script", script("one", {"error": "busy"}, "two", "end")]) == 3
    assert main(["run", document, "-q", "--script", script("one", "two", "end", name="whole.json")]) == 0
    said()
    runs = [row["id"] for row in json_of(said, "runs")]
    assert main(["resume", *runs, "--dry-run"]) == 0
    err = said()[1]
    assert err.splitlines()[0] == "continues 2 runs of 3; at most 4 model calls; without a budget"
    assert f"{runs[0]} (" in err and "stays as it is: the run is complete" in err
    assert main(["resume", *runs, "--dry-run", "--json", "--budget", "1"]) == 0
    assert [line["budget"] for line in json.loads(said()[0])["runs"][1:]] == [0.5, 0.5]
    assert main(["resume", *runs[1:], "-q"]) == 0
    assert said()[0].splitlines() == ["end", "end"]
    assert main(["resume", *runs, "-q"]) == 2
    assert main(["resume", *runs, "--detach"]) == 2
    assert "several runs, and --dry-run, do not take: detach" in said()[1]
