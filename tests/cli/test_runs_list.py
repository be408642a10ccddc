"""The list of runs: its width, its number, its pages; and what leaves a run exactly as it is."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from tests.given import given
from tests.warm import run_quire

from quire.cli.runs import command
from quire.display.run_page import run_table
from quire.engine.records import RunRow, Status
from quire.runs.options import RunOptions

Invoke = Callable[..., Result]
MakeRun = Callable[..., str]

PAGE = (
    "# A page with a rather long title that goes on\n\n## INPUTS\n- `product` (string)\n\n## STEP 1: A\n\n{{product}}\n"
)


@pytest.mark.parametrize("columns", [200, 100, 80, 60])
def test_the_list_fits_into_the_width(columns: int) -> None:
    row = RunRow(
        id="1nfnvna-zdnnh",
        title="A page with a rather long title that goes on and on",
        format="playbook",
        document="page.md",
        status=Status.AWAITING_INPUT,
        position="2",
        created_at=0.0,
        updated_at=0.0,
        expires_at=None,
        input_tokens=123_456,
        output_tokens=4567,
        cost=1.25,
        failure=None,
        ended_by=(),
        epoch=1,
        pins={"inputs": {"product": "tea " * 30}},
    )
    lines = run_table([row], 10.0, {row.id}, columns)
    assert all(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= columns for line in lines)
    assert ("product=tea" in lines[1]) == (columns == 200)


def test_the_list_says_how_many_there_are_and_has_pages(invoke: Invoke, make_run: MakeRun) -> None:
    for number in range(3):
        make_run(PAGE, ["ok"], {"product": f"tea{number}"})
    first = invoke(command, "--limit", "2")
    assert "2 of 3 runs: --page 2 has the next" in first.stderr
    assert "product=tea2" in first.stdout and "product=tea0" not in first.stdout
    second = invoke(command, "--limit", "2", "--page", "2")
    assert "product=tea0" in second.stdout and "product=tea2" not in second.stdout
    assert "3 to 3 of 3 runs" in second.stderr and "--page" not in second.stderr
    assert "of" not in invoke(command).stderr
    assert "page 9 does not exist" in invoke(command, "--page", "9").stderr


def test_the_output_of_a_run_keeps_its_escape_sequences(invoke: Invoke, make_run: MakeRun) -> None:
    make_run("# T\n\n## STEP 1: A\n\nGo.\n", ["\x1b[31mred\x1b[0m"])
    assert invoke(command, "last", "--output").stdout == "\x1b[31mred\x1b[0m\n"


def test_an_export_overwrites_nothing_unasked(invoke: Invoke, make_run: MakeRun) -> None:
    make_run("# T\n\n## STEP 1: A\n\nGo.\n", ["ok"])
    Path("kept.txt").write_text("mine")
    refused = invoke(command, "export", "last", "-o", "kept.txt")
    assert refused.exit_code == 2 and "kept.txt exists" in refused.stderr and Path("kept.txt").read_text() == "mine"
    assert invoke(command, "export", "last", "-o", "kept.txt", "--force").exit_code == 0


def test_why_says_that_a_run_was_paused_by_hand(invoke: Invoke, make_run: MakeRun) -> None:
    text = "# T\n\n## STEP 1: A\n\nGo.\n\n## STEP 2: B\n\nOn.\n"
    make_run(text, ["ok"], options=RunOptions(breakpoints=("1",)))
    shown = invoke(command, "why", "last", "1").stdout
    assert "boundary" not in shown


def test_a_file_gets_the_artifact_in_utf_8(workspace: Path) -> None:
    """`PYTHONIOENCODING=ascii` is about terminals; what is written elsewhere is the artifact itself."""
    given({"page.md": "# T\n\n## STEP 1: A\n\nGo.\n", "replies.json": ["größer 日本"]})
    environ = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = run_quire(["run", "page.md", "--script", "replies.json", "-q"], cwd=workspace, env=environ)
    assert done.stdout == "größer 日本\n"
    assert run_quire(["runs", "last", "--output"], cwd=workspace, env=environ).stdout == "größer 日本\n"


def test_the_last_event_has_the_artifact_and_its_type(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from quire.cli import main

    given({"page.md": "# T\n\n## STEP 1: A\n\nGo.\n", "replies.json": ["text"]})
    main(["run", "page.md", "--script", "replies.json", "--json"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (completed,) = [line for line in lines if line["type"] == "run_completed"]
    told, result = json.dumps(completed), lines[-1]
    assert '"artifact": "text"' in told and '"artifact_type": ""' not in told
    assert result["artifact"] == "text"


def test_a_script_may_come_from_a_pipe(workspace: Path) -> None:
    Path("page.md").write_text("# T\n\n## STEP 1: A\n\nGo.\n")
    read, write = os.pipe()
    os.write(write, b'["piped"]')
    os.close(write)
    from quire.models.scripted import read_script

    path = Path(f"/dev/fd/{read}")
    assert read_script(path)[0].reply == read_script(path)[0].reply == "piped"
    os.close(read)


def test_a_question_without_a_terminal_says_what_fits(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from quire.cli import main

    ask = '@elicit(input, "Look:\\nfine?\\n\\nSay so.", default:"yes, fine")'
    Path("page.md").write_text(f"# T\n\n## STEP 1: A\n\n{ask}\n")
    assert main(["run", "page.md"]) == 4
    said = capsys.readouterr().err
    assert "a text; the default is yes, fine" in said
    assert "fine?\n\nSay so." in said
    main(["inbox"])
    assert "fine?\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("model", "demo", "told"), [("smollm2", "", True), ("smollm2", "1", False), ("other", "", False)]
)
def test_the_smallest_model_is_called_a_toy(
    workspace: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    demo: str,
    told: bool,
) -> None:
    import asyncio

    from quire.cli.drive import SessionOptions, drive
    from quire.library.document import load
    from quire.models.scripted import ScriptedModel
    from quire.runs.runtime import Runtime

    Path("page.md").write_text("# T\n\n## STEP 1: A\n\nGo.\n")
    monkeypatch.setenv("QUIRE_DEMO", demo)

    async def work() -> int:
        runtime = Runtime.open(workspace, model=ScriptedModel(["ok"], name=f"local:{model}"))
        try:
            return await drive(runtime, await runtime.start(load("page.md"), {}, RunOptions()), SessionOptions())
        finally:
            await runtime.close()

    assert asyncio.run(work()) == 0
    assert ("is a toy" in capsys.readouterr().err) == told
