"""`quire runs replay`: which runs it takes, what it says of them, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import MakeRun, Said, json_of
from tests.given import given

from quire.cli import main
from quire.runs.options import RunOptions

TEXT = """# Sum

## INPUTS

- `report` (string): Which report

## STEP 1: Read

Read {{report}}.

## STEP 2: Sure

@elicit(confirm, "Is it right?")

## STEP 3: Sum

```if __elicit_step_2 == "yes"```

### STEP 3a: Short

Sum it up in five sentences.

```else```

### STEP 3b: Long

Sum it up at length.

```endif```
"""
NAME = "page.playbook.md"


@pytest.fixture
def runs(make_run: MakeRun) -> list[str]:
    """Four runs: three with a yes, one with a no."""
    return [
        make_run(TEXT, ["read", "the sum"], {"report": name}, RunOptions(answers={"2": answer}))
        for name, answer in (("A", "yes"), ("B", "yes"), ("C", "no"), ("D", "yes"))
    ]


def edit(workspace: Path, *changes: tuple[str, str]) -> None:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (workspace / NAME).write_text(text)


def test_all_come_to_the_same_end(runs: list[str], said: Said) -> None:
    assert main(["replay", "--document", NAME]) == 0
    assert said() == ("4 of 4 stored runs come to the same end\n", "")
    assert main(["replay", runs[0][:10], "--document", NAME]) in (0, 2)
    for document in ([NAME], []):  # real-work, small things: without a value as for `resume`
        assert main(["replay", "last", "--document", *document]) == 0
    assert said()[0].endswith("1 of 1 stored run comes to the same end\n")


def test_a_changed_prompt_is_shown_by_words(runs: list[str], workspace: Path, said: Said) -> None:
    edit(workspace, ("five sentences", "three sentences"))
    assert main(["replay", "--document", NAME]) == 1
    out, err = said()
    assert out.splitlines() == [
        "3 runs ask something new at step 3a (prompt changed)",
        f"  {runs[3]}, {runs[1]}, {runs[0]}",
        "  … 9 unchanged lines",
        "  --- user ---",
        "  Sum it up in [-five-]{+three+} sentences.",
        "",
        "1 of 4 stored runs comes to the same end; 3 ask something new at step 3a (prompt changed)",
    ]
    assert err == ""


def test_programs_get_everything(runs: list[str], workspace: Path, said: Said) -> None:
    edit(workspace, ("five sentences", "three sentences"), ("Is it right?", "Is it all right?"))
    assert main(["replay", *runs, "--document", NAME, "--json"]) == 1
    data = json.loads(said()[0])
    assert {name: data[name] for name in ("same", "different", "new", "unreadable", "found")} == {
        "same": 1,
        "different": 0,
        "new": 3,
        "unreadable": 0,
        "found": 4,
    }
    assert [one["run"] for one in data["runs"]] == runs
    first, third = data["runs"][0], data["runs"][2]
    assert (first["verdict"], first["reason"]) == ("new", "prompt changed")
    assert (first["new"]["step"], first["new"]["path"]) == ("3a", "3/case[1]/1/model")
    assert "five" in first["new"]["before"]["messages"][-1]["content"]
    assert "three" in first["new"]["now"]["messages"][-1]["content"]
    assert third["reworded"] == [{"step": "2", "before": "Is it right?", "now": "Is it all right?"}]


@pytest.mark.parametrize(
    ("changes", "last", "lines"),
    [
        (
            (("- `report`", "- `tone` (string): How\n- `report`"),),
            "0 of 4 stored runs come to the same end; 4 need another input (missing input tone (string): How)",
            [],
        ),
        (
            (("### STEP 3b: Long\n\nSum it up at length.", "### STEP 3b: Long\n\nSum it up, {{report}}."),),
            "3 of 4 stored runs come to the same end; 1 asks something new at step 3b (prompt changed)",
            ["  Sum it up{+,+} [-at length-]{+C+}."],
        ),
        (
            (("Is it right?", "Is it all right?"),),
            "4 of 4 stored runs come to the same end",
            [
                "the same end on another way",
                "  in 4 runs: the question of step 2 has other words; its stored answer was taken",
                "    Is it {+all +}right?",
            ],
        ),
        (
            ((TEXT[TEXT.index("## STEP 3: Sum") :], ""),),
            "0 of 4 stored runs come to the same end; 4 come to a different end (output changed)",
            ["  output:", "    [-the sum-]{+yes+}", "  not asked any more: a model call at step 3a"],
        ),
        (
            (('"yes"```', '"no"```'),),
            "0 of 4 stored runs come to the same end; 3 ask something new at step 3b (another branch); "
            "1 asks something new at step 3a (another branch)",
            ["  a model call:", "    Sum it up at length."],
        ),
    ],
)
def test_what_it_says(
    runs: list[str], workspace: Path, said: Said, changes: tuple[tuple[str, str], ...], last: str, lines: list[str]
) -> None:
    edit(workspace, *changes)
    assert main(["replay", "--document", NAME]) == (0 if last.startswith("4 of 4") else 1)
    out = said()[0].splitlines()
    assert out[-1] == last
    assert [line for line in lines if line not in out] == []


def test_only_the_newest_are_taken_and_it_says_so(runs: list[str], said: Said) -> None:
    data = json_of(said, "replay", "--document", NAME, "--last", "2")
    assert ([one["run"] for one in data["runs"]], data["found"]) == (runs[:1:-1], 4)
    assert main(["replay", "--document", NAME, "--last", "2"]) == 0
    out, err = said()
    assert (out, err) == (
        "2 of 2 stored runs come to the same end\n",
        "the newest 2 of 4 stored runs were replayed: --last 4\n",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "say what is new: --document FILE, --model SPEC or --script FILE, one of them"),
        (["--document", "gone.md"], "gone.md"),
        (["--document", NAME, "nothing"], "unknown run nothing"),
        (["--document", "other.playbook.md"], "no completed run of other.playbook.md is stored here"),
        (["--document", "broken.yaml", "last"], "broken.yaml is a pipeline, and run"),
        (["--document", NAME, "last", "--last", "3"], "--last is for --document without RUN"),
        (["--document"], "--document without a FILE needs a RUN"),
    ],
)
def test_what_cannot_start(runs: list[str], workspace: Path, said: Said, arguments: list[str], message: str) -> None:
    (workspace / "other.playbook.md").write_text("# Other\n\n## STEP 1: One\n\nOne.\n")
    (workspace / "broken.yaml").write_text("pipeline: broken\nsteps: 1\n")
    assert main(["replay", *arguments]) == 2
    out, err = said()
    assert (out, message in err) == ("", True), err


def test_nothing_hostile_reaches_the_terminal(make_run: MakeRun, workspace: Path, said: Said) -> None:
    make_run("# H\n\n## STEP 1: One\n\nOne.\n", ["\x1b]0;title\x07 \u202e"], name="h.playbook.md")
    given({"h.playbook.md": "# H\n\n## STEP 1: One\n\nOne.\n\n## STEP 2: \x1b[2JTwo\n\nTwo \x1b[31m.\n"}, workspace)
    assert main(["replay", "--document", "h.playbook.md"]) == 1
    out = said()[0]
    assert "\x1b" not in out and "\u202e" not in out and "\x07" not in out
