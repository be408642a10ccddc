"""`--out` of a run that comes to rest: whoever goes on with it need not say again where its output goes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Said, json_of

from quire.cli import main

ASKS = """# Asks

## STEP 1: Name

@elicit(input, "Called?")

## STEP 2: Write

Write to {{__elicit_step_1}}.

@artifact(type: "markdown")
"""


@pytest.fixture
def parked(workspace: Path, said: Said) -> Callable[..., str]:
    """Starts a run that waits for an answer; gives back its id."""
    (workspace / "asks.playbook.md").write_text(ASKS)
    (workspace / "replies.json").write_text(json.dumps(["Dear Ann"]))

    def start(*more: str) -> str:
        assert main(["run", "asks.playbook.md", "-q", "--script", "replies.json", *more]) == 4
        said()
        return str(json_of(said, "runs")[0]["id"])

    return start


@pytest.mark.parametrize(
    ("out", "file"),
    [("letter", "letter.md"), ("letter.txt", "letter.txt"), ("made", "made/asks.md"), ("made/", "made/asks.md")],
)
@pytest.mark.parametrize("verb", ["answer", "resume"])
def test_the_output_goes_where_it_was_first_said(
    workspace: Path, said: Said, parked: Callable[..., str], out: str, file: str, verb: str
) -> None:
    (workspace / "made").mkdir()
    run = parked("--out", out)
    if verb == "resume":
        assert main(["answer", run, "Ann", "--hold"]) == 0
        assert main(["resume", run]) == 0
    else:
        assert main(["answer", run, "Ann"]) == 0
    printed, err = said()
    assert (printed, (workspace / file).read_text()) == ("", "Dear Ann\n")
    assert err.splitlines()[-1] == f"wrote {file}", "the path as one would type it here"


def test_from_another_folder_it_is_the_same_file(
    workspace: Path, said: Said, parked: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = parked("--out", "letter.md")
    (workspace / "sub").mkdir()
    monkeypatch.chdir(workspace / "sub")
    assert main(["answer", run, "Ann", "--script", "../replies.json"]) == 0
    assert f"wrote {workspace / 'letter.md'}" in said()[1]
    assert (workspace / "letter.md").read_text() == "Dear Ann\n"


def test_what_is_said_now_wins(workspace: Path, said: Said, parked: Callable[..., str]) -> None:
    run = parked("--out", "letter.md")
    assert main(["answer", run, "Ann", "-q", "--out", "other.md"]) == 0
    assert (workspace / "other.md").is_file() and not (workspace / "letter.md").exists()


def test_without_any_it_goes_to_stdout(said: Said, parked: Callable[..., str]) -> None:
    assert main(["answer", parked(), "Ann", "-q"]) == 0
    assert said()[0] == "Dear Ann\n"


@pytest.mark.parametrize("verb", [["answer", "last", "Ann"], ["resume", "last"]])
def test_a_folder_that_is_gone_is_said_before_anything_happens(
    workspace: Path, said: Said, parked: Callable[..., str], verb: list[str]
) -> None:
    (workspace / "made").mkdir()
    parked("--out", "made/letter.md")
    (workspace / "made").rmdir()
    assert main([*verb, "-q"]) == 2
    assert said()[1] == (
        "quire: --out made/letter.md: the folder made does not exist; so it was said when the run was started, --out "
        "says otherwise\n"
    )
    assert len(json_of(said, "inbox")) == 1, "the answer was not stored"
    assert main(["answer", "last", "Ann", "--hold"]) == 0, "where nothing is written, no folder is needed"
    assert main(["resume", "last", "-q", "--out", "letter.md"]) == 0
    assert (workspace / "letter.md").is_file()


def test_a_fork_does_not_write_over_the_output_of_its_origin(
    workspace: Path, said: Said, parked: Callable[..., str]
) -> None:
    run = parked("--out", "letter.md")
    assert main(["answer", run, "Ann", "-q"]) == 0
    (workspace / "letter.md").write_text("mine by now")
    assert main(["fork", run, "--from", "2", "-q"]) == 0
    assert (said()[0], (workspace / "letter.md").read_text()) == ("Dear Ann\n", "mine by now")
    assert main(["fork", run, "--from", "1", "-q", "--out", "forked.md"]) == 4
    assert main(["answer", "last", "Bo", "-q"]) == 0
    assert (workspace / "forked.md").read_text() == "Dear Ann\n"


def test_a_pipe_is_not_remembered(said: Said, parked: Callable[..., str]) -> None:
    run = parked("--out", os.devnull)
    assert main(["answer", run, "Ann", "-q"]) == 0
    assert said()[0] == "Dear Ann\n"


def test_an_export_does_not_tell_where_files_were(workspace: Path, said: Said, parked: Callable[..., str]) -> None:
    run = parked("--out", "letter.md")
    assert main(["runs", "export", run, "-o", "run.jsonl"]) == 0
    first = json.loads((workspace / "run.jsonl").read_text().splitlines()[0])
    assert first["pins"]["out"] == "" and str(workspace / "letter") not in (workspace / "run.jsonl").read_text()
