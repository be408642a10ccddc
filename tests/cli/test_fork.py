"""`quire runs fork` at the front door: what it says, what it prints, which numbers it ends with."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Said, json_of
from tests.given import given

from quire.cli import main
from quire.errors import BadConfiguration
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace

DOCUMENT = """# Three

## STEP 1: First

First.

@output(first)

## STEP 2: Second

Second after {{first}}.

@output(second)

## STEP 3: Third

Third after {{first}} and {{second}}.
"""


@pytest.fixture
def run(workspace: Path, said: Said) -> str:
    (workspace / "three.md").write_text(DOCUMENT)
    (workspace / "replies.json").write_text('["one", {"contains": "Second after", "reply": "two"}, {"default": "end"}]')
    assert main(["run", "three.md", "-q", "--script", "replies.json"]) == 0
    said()
    return str(json_of(said, "runs")[0]["id"])


def test_it_drives_at_once_and_names_its_origin(run: str, said: Said) -> None:
    assert main(["fork", "last", "--from", "2", "--set", "first=ONE"]) == 0
    out, err = said()
    assert out == "end\n"
    first, second, *rest = err.splitlines()
    assert first.endswith(f": from step 2 of {run}, with 1 recorded effect of it")
    assert second.endswith(f"(as run {run} was started)")
    assert rest == ["[2/3] Second … done 0.0s", "[3/3] Third … done 0.0s"]
    assert main(["runs"]) == 0
    forked = said()[0].splitlines()[1]
    assert " Three · 20" in forked and f" (fork of {run})" in forked
    assert main(["runs", "last"]) == 0
    assert f"forked    from {run} at step 2" in said()[0]
    assert main(["runs", "last", "--prompt", "3"]) == 0
    assert "Third after ONE and two." in said()[0]


def test_another_script_is_that_of_the_whole_run(run: str, said: Said, workspace: Path) -> None:
    (workspace / "other.json").write_text('["not asked again", "TWO", "END"]')
    assert main(["fork", run, "--from", "2", "--script", "other.json", "--json"]) == 0
    lines = [json.loads(line) for line in said()[0].splitlines()]
    assert lines[-1]["named"] == {"first": "one", "second": "TWO"}
    assert [line["path"] for line in lines if line["type"] == "effect"] == ["2/model", "3/model"]


def test_a_dry_run_says_what_is_kept_and_makes_nothing(run: str, said: Said) -> None:
    assert main(["fork", run, "--from", "2", "--dry-run"]) == 0
    assert said()[0] == "keeps 1 recorded effect (free), does 2 steps again, at most 2 model calls\n"
    receipt = json_of(said, "fork", run, "--from", "2", "--set", "first=ONE", "--dry-run")
    assert [step["label"] for step in receipt["again"]] == ["2", "3"]
    assert receipt["command"] == f"quire runs fork {run} --from 2 --set first=ONE"
    assert len(json_of(said, "runs")) == 1
    assert main(["fork", run, "--document", "--dry-run"]) == 2


def test_its_own_process(run: str, said: Said) -> None:
    assert main(["fork", run, "--from", "3", "--detach"]) == 0
    new = said()[0].strip()
    deadline = time.monotonic() + 60
    while True:
        status = json_of(said, "runs", new)["status"]
        if status == "completed" or time.monotonic() > deadline:
            break
    assert status == "completed"


ASKING = """# Ask

## STEP 1: First

First.

## STEP 2: Which

@elicit(select, "Which?", "a", "b", default:"b")

## STEP 3: Third

Third.
"""


@pytest.mark.parametrize("verb", [["resume", "last"], ["fork", "last", "--from", "2"]])
@pytest.mark.parametrize(("more", "answer"), [(["--answer", "2=a"], "a"), (["--unattended"], "b")])
def test_going_on_takes_answers_as_a_start_does(
    workspace: Path, said: Said, verb: list[str], more: list[str], answer: str
) -> None:
    """§4: what `run` takes for its questions, `resume` and `fork` take."""
    given({"ask.md": ASKING, "replies.json": '[{"default": "said"}]'}, workspace)
    assert main(["run", "ask.md", "-q", "--script", "replies.json"]) == 4
    assert main([*verb, "-q", *more]) == 0
    said()
    view = json_of(said, "runs", "last")
    assert (view["status"], answer in json.dumps(view)) == ("completed", True)
    assert main(["runs", "last", "--prompt", "3"]) == 0
    assert f"answer of the user]\n{answer}\n" in said()[0]


def test_resume_takes_breakpoints(workspace: Path, said: Said) -> None:
    given({"ask.md": ASKING, "replies.json": '[{"default": "said"}]'}, workspace)
    assert main(["run", "ask.md", "-q", "--script", "replies.json"]) == 4
    assert main(["resume", "last", "--unattended", "--break", "2"]) == 4
    assert "paused after step 2" in said()[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["last"], "say what is new: --from STEP, or --document"),
        (["last", "--from", "7"], "unknown step 7: the steps are 1, 2, 3"),
        (["nothing", "--from", "1"], "unknown run nothing"),
        (["last", "--from", "2", "--set", "frst=x"], "--set frst: the document never mentions frst (did you mean"),
        (["last", "--from", "2", "--set", "x"], "--set x: write NAME=VALUE"),
        (["last", "--from", "2", "--limit", "turns=3"], "--limit is for directives"),
        (["last", "--from", "2", "--model", "a:b", "--script", "x"], "exclude each other"),
        (["last", "--from", "2", "--detach", "--json"], "--detach has no output of its own"),
        (["last", "--from", "2", "--model", "nobody:x"], "nobody"),
    ],
)
def test_what_cannot_be_forked(run: str, said: Said, arguments: list[str], message: str) -> None:
    assert main(["fork", *arguments]) == 2
    out, err = said()
    assert message in err.lower() if message.startswith("missing") else message in err
    assert (bool(out), len(err.splitlines())) == ("--json" in arguments, 1)  # a JSON line: test_json_errors.py
    assert len(json_of(said, "runs")) == 1


def test_an_id_that_is_nearly_right(run: str, said: Said) -> None:
    wrong = run[:-1] + ("x" if run[-1] != "x" else "y")
    assert main(["fork", wrong, "--from", "1"]) == 2
    assert said()[1] == f"quire: unknown run {wrong}: did you mean {run}?\n"


def test_a_full_disk_leaves_no_half_file(run: str, workspace: Path) -> None:
    (workspace / "big.json").write_text(json.dumps(["x" * 300_000, "two", "end"]))
    assert main(["run", "three.md", "-q", "--script", "big.json"]) == 0
    code = (
        "import resource, sys; from quire.cli import main;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000));"
        "sys.exit(main(['runs', 'export', 'last', '-o', 'run.jsonl']))"
    )
    before = sorted(path.name for path in workspace.iterdir())
    done = subprocess.run([sys.executable, "-c", code], cwd=workspace, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "quire: run.jsonl cannot be written: File too large (nothing is left of it)\n"
    assert sorted(path.name for path in workspace.iterdir()) == before


BROKEN = "pipeline: p\nsteps:\n- agent: {prompt: A., output: x}\n- transform: {value: %s}\n- agent: {prompt: B.}\n"


@pytest.mark.parametrize("verb", ["fork", "resume"])
def test_an_edited_document_goes_on(workspace: Path, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """G3: nothing that was paid for is paid for again, and what is kept is said first."""
    given({"p.yaml": BROKEN % "ctx.x.nope", "replies.json": '["a", "b"]'})
    assert main(["run", "p.yaml", "--script", "replies.json"]) == 3
    told = capsys.readouterr().err
    assert " --document" in told.splitlines()[-1]
    Path("p.yaml").write_text(BROKEN % "ctx.x")
    assert main([verb, "last", "--document", "--unattended"]) == 0
    out, err = capsys.readouterr()
    assert out == "b\n"
    assert "with 1 of 1 recorded effect of" in err
    assert "continues at step 3" in err


def test_an_expired_run_that_is_answered_is_told_of_fork(
    workspace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting runs expire after 30 days; `[runs] expiry = "never"` is legal."""
    Path("p.playbook.md").write_text('# P\n\n## STEP 1: A\n\n@elicit(confirm, "Go?")\n')
    now = time.time()
    for days, code in ((29, 0), (31, 2)):
        with monkeypatch.context() as earlier:
            earlier.setattr(time, "time", lambda days=days: now - days * 86_400)
            assert main(["run", "p.playbook.md"]) == 4
        run = capsys.readouterr().err.split("quire answer ")[1].split()[0]
        assert main(["answer", run, "yes"]) == code
    assert "--from 1` asks again, in a new run" in capsys.readouterr().err


def test_a_run_may_wait_for_ever(workspace: Path) -> None:
    Path("quire.toml").write_text('[runs]\nexpiry = "never"\n')
    assert load_settings(Workspace(workspace)).runs.expiry is None
    Path("quire.toml").write_text('[runs]\nexpiry = "nver"\n')
    with pytest.raises(BadConfiguration):
        load_settings(Workspace(workspace))
