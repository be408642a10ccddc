"""Values set in the middle of a run are checked like inputs, kept as text that can be stored, and shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import json_of

from quire.cli import main

DOCUMENT = """# Typed

## INPUTS

- `n` (number: 3): A number
- `flag` (boolean: true): A flag
- `size` (enum: small, large): A size
- `topic` (string: tea): A topic
- `name` (string): A name

## STEP 1: First

Say {{topic}} to {{name}}.

@output(first)

## STEP 2: Second

{{n}} {{flag}} {{size}} {{topic}} {{name}} {{first}}

## STEP 3: Third

{{topic}} again.
"""


@pytest.fixture
def paused(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("typed.playbook.md").write_text(DOCUMENT)
    Path("replies.json").write_text(json.dumps([{"default": "fine"}]))
    given = ["-i", "size=small", "-i", "name=Ann"]
    assert main(["run", "typed.playbook.md", "--break", "1", "-q", "--script", "replies.json", *given]) == 4
    capsys.readouterr()


def sets(*pairs: str) -> list[str]:
    return [part for pair in pairs for part in ("--set", pair)]


@pytest.mark.usefixtures("paused")
class TestResume:
    def test_every_wrong_value_is_listed_and_nothing_is_done(self, capsys: pytest.CaptureFixture[str]) -> None:
        wrong = sets("n=abc", "flag=perhaps", "size=smal", "name= ", "topik=x")
        assert main(["resume", "last", *wrong]) == 2
        said = capsys.readouterr().err
        for problem in (
            '--set n: "abc" is not a number',
            '--set flag: "perhaps" is not true or false',
            '--set size: "smal" is not one of small, large (did you mean small?)',
            "--set name: it is required",
            "--set topik: the document never mentions topik (did you mean topic?)",
        ):
            assert problem in said
        shown = json_of(capsys, "runs", "last")
        assert (shown["status"], len(shown["effects"])) == ("paused", 1)

    def test_values_are_kept_as_inputs_are(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["resume", "last", "-q", *sets("n= 7 ", "flag=no", "size=large", "topic=", "first=")]) == 0
        capsys.readouterr()
        prompt = json_of(capsys, "runs", "last", "--prompt", "2")
        # A blank means the default of an input; a kept result may be empty.
        assert prompt["messages"][-1]["content"] == "7 false large tea Ann "

    def test_what_is_no_text_does_not_break_the_run(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["resume", "last", "-q", "--set", "topic=caf\udce9", "--set", "first=\udce9"]) == 0
        capsys.readouterr()
        assert main(["runs", "last"]) == 0
        assert "caf\ufffd" in capsys.readouterr().out
        assert main(["runs", "last", "--prompt", "2"]) == 0
        assert "caf\ufffd Ann \ufffd" in capsys.readouterr().out

    def test_they_are_shown_everywhere(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["resume", "last", "-q", *sets("topic=co\x1bffee", "first=ONE")]) == 0
        capsys.readouterr()
        assert main(["runs", "last"]) == 0
        page = capsys.readouterr().out
        assert "\nset by hand\n  after step 1  topic  co␛ffee\n  after step 1  first  ONE\n" in page
        assert main(["runs", "last", "--journal"]) == 0
        journal = capsys.readouterr().out
        assert "set topic, first" in next(line for line in journal.splitlines() if line.startswith("1/break"))
        data = json_of(capsys, "runs", "last")
        assert data["inputs"]["topic"] == "tea"
        assert data["set"] == [{"after": "1", "path": "1", "values": {"topic": "co\x1bffee", "first": "ONE"}}]
        assert main(["runs", "last", "--state"]) == 0
        assert json.loads(capsys.readouterr().out)["input_values"]["topic"] == "co\x1bffee"


@pytest.mark.usefixtures("paused")
@pytest.mark.parametrize("step", ["1", "2"])
class TestFork:
    def test_wrong_values_are_refused(self, step: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["resume", "last", "-q"]) == 0
        capsys.readouterr()
        assert main(["fork", "last", "--from", step, "-q", *sets("n=abc", "flag=perhaps")]) == 2
        said = capsys.readouterr().err
        assert 'n: "abc" is not a number' in said
        assert 'flag: "perhaps" is not true or false' in said

    def test_what_is_no_text_does_not_break_the_run(self, step: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["resume", "last", "-q"]) == 0
        fork = ["fork", "last", "--from", step, "-q", "--set", "topic=caf\udce9", "--set", "n="]
        assert main(fork) == (4 if step == "1" else 0)  # a fork stops at the breakpoints of the run
        capsys.readouterr()
        assert main(["runs", "last", "--prompt", "3"]) == 0
        assert "caf\ufffd again." in capsys.readouterr().out


def test_half_a_character_in_a_reply_is_replaced(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = '# P\n\n## STEP 1: A\n\nSay.\n\n@output(k, extract:"k")\n\n## STEP 2: B\n\nUse {{k}}.\n'
    Path("half.playbook.md").write_text(document)
    Path("replies.json").write_text(
        json.dumps([{"reply": 'hi {"k": "\\ud83d"}'}, {"contains": "Use \ufffd.", "reply": "b"}])
    )
    assert main(["run", "half.playbook.md", "-q", "--script", "replies.json"]) == 0
    for side in (["--state"], ["--json"], ["--prompt", "2"]):
        assert main(["runs", "last", *side]) == 0
        assert "\ufffd" in capsys.readouterr().out


@pytest.mark.usefixtures("paused")
@pytest.mark.parametrize(
    "verb",
    [
        ["runs", "\udcff"],
        ["runs", "why", "\udcff", "1"],
        ["runs", "diff", "\udcff", "last"],
        ["runs", "export", "\udcff"],
        ["answer", "\udcff", "yes"],
        ["resume", "\udcff"],
        ["cancel", "\udcff"],
        ["fork", "\udcff", "--from", "1"],
    ],
)
def test_an_id_that_is_no_text_names_no_run(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(verb) == 2
    assert "unknown run" in capsys.readouterr().err
