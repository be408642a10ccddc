"""`quire run`, in this process, on scripted replies."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.directives import directive
from tests.given import given
from tests.processes import started

from quire.cli import BROKEN_PIPE, main
from quire.engine.records import Batch, Lease, WriteResult
from quire.errors import NoModel, StoreError
from quire.stores.sqlite.store import SqliteStore

DOCUMENT = """# Plan

## INPUTS
- `topic` (string): What it is about
- `depth` (enum: quick, deep): How deep
- `note` (string: none): A note

## STEP 1: Research

Research {{topic}} ({{note}}).

@output(summary)

## STEP 2: Decide

```if depth == "deep"```
### STEP 2a: Dig
Dig into {{summary}}.
```else```
### STEP 2b: Skim
Skim.
```endif```

## STEP 3: Report

Report.
"""
ASKING = """# Ask

## STEP 1: Choose

@elicit(select, "Which way?", "ship it", "rework")

## STEP 2: Write

Write about {{__elicit_step_1}}.
"""
ONE = "# One\n\n## STEP 1: Only\n\nSay it: {word}.\n"
INPUTS = ("-i", "topic=bees", "-i", "depth=quick")
LONG = "x" * 300 + ".md"

Write = Callable[..., str]


@pytest.fixture
def script(workspace: Path) -> Write:
    def write(*replies: object) -> str:
        (workspace / "replies.json").write_text(json.dumps(replies))
        return "replies.json"

    return write


@pytest.fixture
def document(workspace: Path) -> Path:
    return given({"plan.playbook.md": DOCUMENT}, workspace) / "plan.playbook.md"


def page(workspace: Path, text: str, name: str = "page.md") -> str:
    (workspace / name).write_text(text)
    return name


def test_stdout_is_the_output_and_stderr_the_progress(
    document: Path, script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["run", document.name, *INPUTS, "--script", script("one", "two", "three")])
    out, err = capsys.readouterr()
    assert (code, out) == (0, "three\n")
    lines = [line.rpartition(" ")[0] for line in err.splitlines()]
    assert lines[0].startswith("model: script:")
    assert err.splitlines()[0].endswith("(--script); 3 model calls")
    assert lines[1:] == [
        "[1/3] Research … done",
        "[2/3] Decide",
        "  [2b] Skim … done",
        "[2/3] Decide … done",
        "[3/3] Report … done",
    ]
    assert "\x1b" not in err


def test_quiet_says_nothing(document: Path, script: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", document.name, *INPUTS, "-q", "--script", script({"default": "done"})]) == 0
    assert capsys.readouterr() == ("done\n", "")


def test_piped_output_is_exact(workspace: Path, script: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", page(workspace, ONE), "-q", "--script", script("a\x1b[31m\tb\r\n\n")]) == 0
    assert capsys.readouterr().out == "a\x1b[31m\tb\r\n\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("topic=@topic.txt", "Research bees and wasps (none)."),
        ("topic=@-", "Research from stdin (none)."),
        ("topic=@@home", "Research @home (none)."),
        ("topic=a=b", "Research a=b (none)."),
    ],
)
def test_inputs_come_from_the_line_a_file_or_stdin(
    document: Path,
    script: Write,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    given: str,
    said: str,
) -> None:
    Path("topic.txt").write_text("\ufeffbees and wasps\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"from stdin")))
    replies = script({"contains": said, "reply": "right"}, {"default": "wrong"})
    assert main(["run", document.name, "-i", given, "-i", "depth=quick", "--break", "1", "--script", replies]) == 4
    assert "summary = right" in capsys.readouterr().err


def test_a_file_of_inputs_is_overridden_by_the_line(document: Path, script: Write) -> None:
    Path("in.json").write_text('{"topic": "bees", "depth": "deep", "note": 12.5}')
    replies = script({"contains": "Research ants (12.5)", "reply": "right"}, {"step": "2a", "reply": "x"}, "end")
    assert main(["run", document.name, "--inputs", "in.json", "-i", "topic=ants", "--script", replies]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.md"], "nowhere.md does not exist"),
        (["."], "is a folder"),
        (["plan.playbook.md", "-i", "topic"], "write NAME=VALUE"),
        (["plan.playbook.md", "-i", "topic=@nowhere"], "the file nowhere does not exist"),
        (["plan.playbook.md", "-i", "topic=@."], "cannot be read"),
        (["plan.playbook.md", "-i", "topic=@latin"], "not UTF-8"),
        (["plan.playbook.md", "-i", "topic=@-", "-i", "note=@-"], "stdin can be read only once"),
        (["plan.playbook.md", "--inputs", "latin"], "not UTF-8"),
        (["plan.playbook.md", "--inputs", "list.json"], "not a JSON object"),
        (["plan.playbook.md", "--answer", "1"], "write NAME=VALUE"),
        (["plan.playbook.md", "--budget", "much"], "budget"),
        (["plan.playbook.md", "--model", "script:x", "--script", "y"], "exclude each other"),
        (["plan.playbook.md", "--detach", "--json"], "--detach"),
        (["plan.playbook.md", *INPUTS, "--script", "nowhere.json"], "no script at nowhere.json"),
        (["plan.playbook.md", *INPUTS, "--out", "nowhere/x"], "the folder nowhere does not exist"),
        (["plan.playbook.md", *INPUTS, "--out", "plan.playbook.md"], "the document itself"),
        (["plan.playbook.md", *INPUTS, "--out", "circle.md"], "--out circle.md: Too many levels of symbolic links"),
        (["plan.playbook.md", *INPUTS, "--out", LONG], "File name too long"),
        (["plan.playbook.md", *INPUTS, "--script", LONG], "File name too long"),
        (["plan.playbook.md", *INPUTS, "--script", "."], "quire: . cannot be read: Is a directory"),
        (["plan.playbook.md", *INPUTS, "--script", "latin"], "latin is not UTF-8 text (byte 3)"),
        (["plan.playbook.md", *INPUTS, "--script", "~nobody-of-this-name/x"], "no script at"),
        (["plan.playbook.md", *INPUTS, "--model", f"local:{LONG}"], "no model named"),
        (["plan.playbook.md", *INPUTS, "--model", "local:pipe"], "pipe is not a regular file"),
        (["plan.playbook.md", *INPUTS, "--model", "local:./circle.md"], "circle.md cannot be read: Too many levels"),
    ],
)
def test_what_cannot_start_is_one_line(
    document: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    Path("latin").write_bytes(b"caf\xe9")
    Path("list.json").write_text("[1]")
    Path("circle.md").symlink_to("circle.md")
    os.mkfifo("pipe")
    assert main(["run", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (bool(out), len(err.splitlines())) == ("--json" in arguments, 1)  # a JSON line: test_json_errors.py
    assert err.startswith("quire: ") and said in err
    assert not Path(".quire").exists()


def test_everything_wrong_with_the_inputs_is_said_at_once(
    document: Path, script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", document.name, "-i", "dept=x", "-i", "depth=deeper", "--script", script("x")]) == 2
    assert [line.strip() for line in capsys.readouterr().err.splitlines()] == [
        "quire: unknown input dept (did you mean depth?)",
        "missing input topic (string): What it is about",
        'input depth: "deeper" is not one of quick, deep (did you mean deep?)',
    ]
    assert not Path(".quire").exists()


def test_a_wrong_document_is_shown_and_not_run(
    workspace: Path, script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", page(workspace, "no title\n\n## STEP 1: A\n\nx\n"), "--script", script("x")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "error[PB003]" in err and "--> page.md:1:1" in err
    assert err.splitlines()[-1] == "quire: page.md cannot run: 1 error"


def test_warnings_of_the_document_are_counted(
    workspace: Path, script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '# W\n\n## STEP 1: A\n\nx\n\n```if a == "b"```\n### STEP 1a: B\ny\n```endif```\n\n## STEP 3: C\n\nz\n'
    assert main(["run", page(workspace, text), "--script", script({"default": "x"})]) == 0
    assert "2 warnings: quire check page.md\n" in capsys.readouterr().err


def test_json_is_a_line_for_each_event_and_one_for_the_result(
    document: Path, script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    usage = {"input_tokens": 10, "output_tokens": 5, "cost": 0.25}
    replies = script({"reply": "one two", "usage": usage}, "skimmed", "the end")
    assert main(["run", document.name, *INPUTS, "--json", "--script", replies]) == 0
    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]
    assert err == ""
    assert [line["type"] for line in lines[:2]] == ["run_started", "step_started"]
    assert "".join(line["text"] for line in lines if line["type"] == "delta" and line["step"] == "1") == "one two"
    result = lines[-1]
    assert result.pop("run") == lines[0]["run"]
    assert result == {
        "type": "result",
        "status": "completed",
        "output": "the end",
        "artifact": "the end",
        "artifact_type": None,
        "named": {"summary": "one two"},
        "steps": {"1": "completed", "2": "completed", "2a": "skipped", "2b": "completed", "3": "completed"},
        "cost": 0.25,
        "input_tokens": 10,
        "output_tokens": 5,
        "error": None,
    }


def test_a_question_that_nobody_can_be_asked_waits(
    workspace: Path, script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", page(workspace, ASKING), "-q", "--script", script("x")]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[:3] == ["step 1 (Choose) asks: Which way?", "  1. ship it", "  2. rework"]
    assert err.splitlines()[3].startswith("waiting for an answer: quire answer ")


@pytest.mark.parametrize(("arguments", "chosen"), [(["--answer", "1=rework"], "rework"), (["--unattended"], "ship it")])
def test_answers_given_beforehand(
    workspace: Path, script: Write, capsys: pytest.CaptureFixture[str], arguments: list[str], chosen: str
) -> None:
    replies = script({"contains": f"Write about {chosen}.", "reply": "right"})
    assert main(["run", page(workspace, ASKING), "-q", *arguments, "--script", replies]) == 0
    assert capsys.readouterr().out == "right\n"


@pytest.mark.parametrize(
    ("reply", "arguments", "code", "said"),
    [
        ({"error": "overloaded"}, [], 3, "failed at step 1: overloaded"),
        ({"reply": "x", "usage": {"cost": 0.6}}, ["--budget", "0.5"], 5, "failed at step 2b: the budget of $0.5 "),
    ],
)
def test_a_failed_run_says_where_why_and_how_to_go_on(
    document: Path,
    script: Write,
    capsys: pytest.CaptureFixture[str],
    reply: object,
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    assert main(["run", document.name, *INPUTS, "-q", *arguments, "--script", script(reply, "y", "z")]) == code
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(said)
    assert "quire resume " in err.splitlines()[-1]


def test_a_failure_in_json(document: Path, script: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", document.name, *INPUTS, "--json", "--script", script({"error": "overloaded"})]) == 3
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (result["status"], result["output"]) == ("failed", None)
    assert result["error"] == {"kind": "model", "message": "overloaded", "step": "1", "way": "1"}
    assert result["steps"] == {"1": "failed", "2": "pending", "2a": "pending", "2b": "pending", "3": "pending"}


def test_an_untrusted_workspace_is_refused(workspace: Path, script: Write, capsys: pytest.CaptureFixture[str]) -> None:
    (workspace / ".mcp.json").write_text('{"mcpServers": {"clock": {"command": "no-such-command"}}}')
    text = "# T\n\n## STEP 1: A\n\n@tool(clock, now, {})\n"
    assert main(["run", page(workspace, text), "--script", script("x")]) == 6
    out, err = capsys.readouterr()
    assert out == "" and "no-such-command" in err and "quire trust workspace" in err


JSON_PAGE = ONE + "\n## ARTIFACTS\n\ntype: json\n"


@pytest.mark.parametrize(
    ("text", "reply", "out", "file", "content", "warning"),
    [
        (JSON_PAGE, '```json\n{"a": 1}\n```', "x", "x.json", '{"a": 1}\n', ""),
        (JSON_PAGE, '{"a": 1}', "x.json", "x.json", '{"a": 1}\n', ""),
        (JSON_PAGE, "no json", "x", "x.json", "no json\n", "it is not JSON"),
        (JSON_PAGE, '{"a": 1}', "x.txt", "x.txt", '{"a": 1}\n', "usually ends in .json"),
        (JSON_PAGE, "Here:\n```json\n{}\n```", "x", "x.json", "Here:\n```json\n{}\n```\n", "it is not JSON"),
        (JSON_PAGE, '{"a": 1}', "made/", "made/page.json", '{"a": 1}\n', ""),
        (ONE, "```md\nkept\n```", "x", "x.md", "```md\nkept\n```\n", ""),
        (ONE, "beside", ".", "page.output.md", "beside\n", ""),
    ],
)
def test_out_writes_the_artifact(
    workspace: Path,
    script: Write,
    capsys: pytest.CaptureFixture[str],
    text: str,
    reply: str,
    out: str,
    file: str,
    content: str,
    warning: str,
) -> None:
    (workspace / "made").mkdir()
    assert main(["run", page(workspace, text), "--out", out, "--script", script(reply)]) == 0
    stdout, err = capsys.readouterr()
    assert stdout == ""
    assert (workspace / file).read_text() == content
    assert f"wrote {file}" in err
    assert warning in err if warning else "warning" not in err
    assert not list(workspace.rglob(".*.????????"))


def test_out_keeps_the_mode_and_follows_a_link(workspace: Path, script: Write) -> None:
    (workspace / "real.md").write_text("old")
    (workspace / "real.md").chmod(0o640)
    (workspace / "link.md").symlink_to("real.md")
    assert main(["run", page(workspace, ONE), "--out", "link.md", "--script", script("new")]) == 0
    assert (workspace / "real.md").read_text() == "new\n"
    assert (workspace / "link.md").is_symlink()
    assert (workspace / "real.md").stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_loses_no_output(workspace: Path, script: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", page(workspace, ONE), "--out", "/dev/full", "--script", script("precious")]) == 3
    out, err = capsys.readouterr()
    assert out == "precious\n" and "could not be written" in err


def test_a_damaged_store_is_one_line(workspace: Path, script: Write, capsys: pytest.CaptureFixture[str]) -> None:
    (workspace / ".quire").mkdir()
    (workspace / ".quire" / "quire.db").write_bytes(b"this is no database at all" * 100)
    assert main(["run", page(workspace, ONE), "--script", script("x")]) == 2
    err = capsys.readouterr().err
    assert err.startswith("quire: ") and "quire.db" in err and "Traceback" not in err


def test_a_reader_that_leaves_parks_the_run(workspace: Path, script: Write) -> None:
    page(workspace, DOCUMENT)
    arguments = ["run", "page.md", *INPUTS, "--json", "--script", script({"default": "x", "delay_ms": 50})]
    pipe = subprocess.PIPE
    with started([sys.executable, "-m", "quire", *arguments], stdout=pipe, stderr=pipe, env=os.environ) as quire:
        assert quire.stdout is not None and quire.stderr is not None
        quire.stdout.readline()
        quire.stdout.close()
        err = quire.stderr.read().decode()
        assert quire.wait() == BROKEN_PIPE
    assert "quire resume" in err and "Traceback" not in err and "Exception" not in err


def test_detach_leaves_the_run_to_another_process(
    workspace: Path, script: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **rest: started.append(command))
    assert main(["run", page(workspace, ONE), "--detach", "--budget", "2", "--script", script("later")]) == 0
    run = capsys.readouterr().out.strip()
    assert started == [[sys.executable, "-P", "-m", "quire", "resume", run, "--quiet"]]
    assert main(started[0][4:]) == 0
    assert capsys.readouterr().out == "later\n"


def test_a_store_that_fails_in_the_middle_says_how_to_go_on(
    workspace: Path, script: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store_write = SqliteStore.write

    async def full_after_the_first_step(self: SqliteStore, lease: Lease, batch: Batch) -> WriteResult:
        if any(effect.path == "2/case[2]/1/model" for effect in batch.effects):
            raise StoreError("the disk is full")
        return await store_write(self, lease, batch)

    with monkeypatch.context() as broken:
        broken.setattr(SqliteStore, "write", full_after_the_first_step)
        code = main(["run", page(workspace, DOCUMENT), *INPUTS, "-q", "--script", script("one", "two", "end")])
    out, err = capsys.readouterr()
    assert (code, out) == (3, "")  # nothing that has begun could not start
    assert err.startswith("quire: the disk is full\nnothing that was recorded is lost: quire resume ")
    assert main(["resume", "last", "-q"]) == 0
    assert capsys.readouterr().out == "end\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["SIGTERM", "a closed terminal"])
def test_a_signal_pauses_without_a_terminal(workspace: Path, script: Write, number: int) -> None:
    page(workspace, DOCUMENT)
    replies = script({"reply": "one", "delay_ms": 300}, {"default": "x"})
    command = [sys.executable, "-m", "quire", "run", "page.md", *INPUTS, "--json", "--script", replies]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ) as quire:
        assert quire.stdout is not None
        while json.loads(quire.stdout.readline())["type"] != "step_started":
            pass
        quire.send_signal(number)
        out, err = quire.communicate()
    result = json.loads(out.splitlines()[-1])
    assert quire.returncode == 130
    assert (result["status"], result["steps"]["1"], result["steps"]["3"]) == ("paused", "completed", "pending")
    assert err.decode().splitlines() == [
        "pausing after this step … (Ctrl-C again stops at once)",
        f"paused at step 1: quire resume {result['run']}",
    ]


def test_a_removed_store_is_not_said_to_hold_anything(workspace: Path, script: Write) -> None:
    """reliability M4."""
    page(workspace, DOCUMENT)
    replies = script({"reply": "one", "delay_ms": 500}, {"default": "x"})
    command = [sys.executable, "-m", "quire", "run", "page.md", *INPUTS, "--json", "--script", replies]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ) as quire:
        assert quire.stdout is not None
        while json.loads(quire.stdout.readline())["type"] != "step_started":
            pass
        shutil.rmtree(workspace / ".quire")
        _, err = quire.communicate()
    assert quire.returncode == 3
    (line,) = err.decode().splitlines()
    assert line.endswith("was removed or replaced while it was in use: start Quire again")


def test_a_playbook_that_asks_no_model_needs_none(
    workspace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUIRE_MODELS", str(workspace / "none"))
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    asking = page(workspace, '# T\n\n## STEP 1: Ask\n\n@elicit(confirm, "Go?")\n')
    assert main(["run", asking, "--answer", "1=yes", "-q"]) == 0
    assert capsys.readouterr().out == "yes\n"
    assert main(["run", page(workspace, ONE), "-q"]) == 2
    assert "three ways" in capsys.readouterr().err.lower()


@pytest.mark.parametrize(
    ("answers", "code", "said"),
    [
        (["1=maybe", "2=Purple"], 2, ["quire: answer 1: answer yes or no", "answer 2: answer one of: Red | Blue"]),
        (["1=n", "2=Blue", "3=anything"], 0, []),
        # What the options are is known only when the step runs.
        (
            ["4=nothing that is offered"],
            3,
            [
                "failed at step 4: the answer does not fit, and no person can be asked: answer one of: Red | none",
                "to continue: quire resume RUN --answer 4=VALUE",
            ],
        ),
    ],
)
def test_answers_are_looked_at_before_the_run(
    workspace: Path, script: Write, capsys: pytest.CaptureFixture[str], answers: list[str], code: int, said: list[str]
) -> None:
    text = """# Ask

## STEP 1: Sure

@elicit(confirm, "Sure?", default:"yes")

## STEP 2: Colour

@elicit(select, "Which?", "Red", "Blue")

## STEP 3: Note

@elicit(input, "What?")

## STEP 4: Again

@elicit(select, "Which again?", "{{__elicit_step_2}}", "none")
"""
    given = [word for answer in answers for word in ("--answer", answer)]
    assert main(["run", page(workspace, text), *given, "--script", script("x"), "--unattended"]) == code
    err = [line.strip() for line in capsys.readouterr().err.splitlines()]
    wanted = ("quire: answer ", "answer ", "failed at ", "to continue: ")
    told = [re.sub(r"resume \S+", "resume RUN", line) for line in err if line.startswith(wanted)]
    assert told == said


def test_a_tool_that_was_not_granted_is_a_refusal(
    workspace: Path, script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '# T\n\n## STEP 1: A\n\n@tool(quire, shell, {"command": ["true"]})\n'
    assert main(["run", page(workspace, text), "--script", script("x")]) == 6
    assert capsys.readouterr().err.startswith("quire: permission denied: shell (rye/bash) needs the capability")
    both = text + "\n## STEP 2: B\n\n@tool(nowhere, x)\n"
    assert main(["run", page(workspace, both), "--script", script("x")]) == 2
    assert "permission denied" in (err := capsys.readouterr().err) and 'unknown connection "nowhere"' in err
    assert not Path(".quire").exists()


def test_a_missing_model_and_missing_inputs_are_said_at_once(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none(*_: object, **__: object) -> None:
        raise NoModel("no model is configured")

    monkeypatch.setattr("quire.runs.adapters.choose_model", none)
    monkeypatch.setattr("quire.models.tiers.choose_model", none)
    Path("p.playbook.md").write_text("# P\n\n## INPUTS\n\n- `who` (string): Whom\n\n## STEP 1: A\n\nSay {{who}}.\n")
    Path("p.yaml").write_text('pipeline: p\nsteps:\n- agent: {prompt: "{ctx.who}"}\n- transform: {value: ctx.who}\n')
    Path(".ai/directives/team").mkdir(parents=True)
    Path(".ai/directives/team/greet.md").write_text(GREET)
    for file, missing in {
        "p.playbook.md": "missing input who (string): Whom",
        "p.yaml": "nothing is given for who",
        ".ai/directives/team/greet.md": "missing required input who (string): Whom",
    }.items():
        assert main(["run", file]) == 2
        said = capsys.readouterr().err
        assert "no model is configured" in said
        assert missing in said


def test_warnings_are_counted_in_every_format(
    workspace: Path, capsys: pytest.CaptureFixture[str], script: Callable[..., str]
) -> None:
    """Those of a directive, too, that only the workspace around it tells."""
    Path(".ai/directives/team").mkdir(parents=True)
    file = Path(".ai/directives/team/greet.md")
    file.write_text(GREET.replace("<author>", "<context><before>team/nothing</before></context><author>"))
    main(["run", str(file), "-i", "who=Ada", "--script", script("x")])
    assert capsys.readouterr().err.startswith("1 warning: quire check .ai/directives/team/greet.md\n")


GREET = directive(
    "greet",
    "<execute><tool>rye.file-system.write</tool></execute>",
    "Greet {input:who}.",
    category="team",
    more='<inputs><input name="who" type="string" required="true">Whom</input></inputs>',
)


LIKED = "# Say\n\n## INPUTS\n\n- `word` (string): A word\n\n## STEP 1: Say\n\nSay {{word}}.\n"


def test_like_takes_document_inputs_and_options_of_an_earlier_run(
    workspace: Path, said: Callable[[], tuple[str, str]]
) -> None:
    (workspace / "say.playbook.md").write_text(LIKED)
    (workspace / "replies.json").write_text('[{"contains": "Say one", "reply": "1"}, {"default": "another"}]')
    assert main(["run", "say.playbook.md", "-i", "word=one", "--script", "replies.json", "-q"]) == 0
    assert main(["run", "--like", "last", "-q"]) == 0
    assert main(["run", "--like", "last", "-i", "word=two", "-q"]) == 0
    assert said()[0].splitlines() == ["1", "1", "another"]
    (workspace / "say.playbook.md").write_text(LIKED.replace("Say {{word}}", "Shout {{word}}"))
    assert main(["run", "--like", "last"]) == 0
    assert "the document has changed since run" in said()[1]
    assert main(["run", "say.playbook.md", "--like", "last"]) == 2
    assert main(["run"]) == 2
    assert "DOC cannot be given with --like" in said()[1]
    (workspace / "say.playbook.md").unlink()
    assert main(["run", "--like", "last"]) == 2
