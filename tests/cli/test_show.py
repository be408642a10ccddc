"""Outlines, flowcharts and prompts of documents."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from tests.given import given

from quire.cli import main
from quire.cli.show import command

Invoke = Callable[..., Result]

PAGE = """# Trip

Plans a trip.

## SYSTEM

Be practical.

## INPUTS

- `place` (string): Where to
- `days` (number: 3): How long
- `style` (enum: cheap, grand): How

## STEP 1: Look around

@prompt(library:tone)

List sights of {{place}}.

@output(best: enum, "sea", "hills", extract:"best")

## STEP 2: Book

@tool(travel, book, {"place": "{{place}}"})

## STEP 3: Choose

@elicit(select, "Which of {{best}}?", "first", "second", default:"first")

## STEP 4: Plan

```if style == "grand"```

### STEP 4a: Grand

Plan {{days}} grand days.

```else```

### STEP 4b: Cheap

Plan {{days}} cheap days.

```endif```

## ARTIFACTS

type: markdown
"""


@pytest.fixture
def page(workspace: Path) -> str:
    (workspace / "trip.playbook.md").write_text(PAGE)
    return "trip.playbook.md"


def test_the_outline(invoke: Invoke, page: str) -> None:
    result = invoke(command, page)
    assert result.exit_code == 0
    assert result.stdout == (
        "2 calls · unpriced · writes mcp.travel.book · asks 1 question\n"
        "\n"
        "Trip\n"
        "Plans a trip.\n"
        "\n"
        "inputs\n"
        "  NAME   TYPE    VALUE                          DESCRIPTION\n"
        "  place  string  required                       Where to\n"
        "  days   number  default 3                      How long\n"
        "  style  enum    required, one of cheap, grand  How\n"
        "\n"
        "system prompt\n"
        "  Be practical.\n"
        "\n"
        "steps\n"
        "  1  Look around\n"
        "      asks the model: List sights of {{place}}.\n"
        "      with the prompt library:tone before it\n"
        '      keeps the field "best" as best (enum: sea, hills)\n'
        "  2  Book\n"
        "      calls the tool travel/book\n"
        "  3  Choose\n"
        "      asks to choose: Which of {{best}}? (first | second), else first\n"
        "  4  Plan\n"
        '      if style == "grand":\n'
        "        4a  Grand\n"
        "            asks the model: Plan {{days}} grand days.\n"
        "      else:\n"
        "        4b  Cheap\n"
        "            asks the model: Plan {{days}} cheap days.\n"
        "\n"
        "tools\n"
        "  travel/book (step 2)\n"
        "\n"
        "prompts\n"
        "  library:tone (step 1)\n"
        "\n"
        "artifact\n"
        "  markdown\n"
        "\n"
        "approvals (effects that a person must agree to)\n"
        "  step 2 book  write, elevated  no question before it\n"
        "\n"
        "data flows (where text from outside goes)\n"
        "  2 book → 4a model (no tools)\n"
        "  2 book → 4b model (no tools)\n"
        "\n"
        "permissions it needs\n"
        "  rye.execute.tool.mcp.travel.book (step 2; unknown)\n"
    )


def test_the_bounds(invoke: Invoke, page: str) -> None:
    """newcomer M4: a bound that is only the longest prompt of the engine is not printed."""
    shown = invoke(command, page, "--bounds").stdout
    assert shown[shown.index("bounds\n") : shown.index("\napprovals")] == (
        "bounds\n"
        "  model calls                2\n"
        "  tool calls                 1\n"
        "  questions                  1\n"
        "  input tokens               ∞ [1]\n"
        "  output tokens              ≤ 32.8 K [2]\n"
        "  money                      unpriced [3]\n"
        "  time, not counting people  ≤ 3 h [4]\n"
        "  [1] input not bounded: the window of the model is not known; bound it with --model NAME\n"
        "  [2] a reply has at most 16,384 tokens\n"
        "  [3] the model: no model is named: --model NAME, or [models] default in quire.toml (BD106)\n"
        "  [4] model calls and tools take as long as their time-outs allow; people are not counted\n"
    )
    assert json.loads(invoke(command, page, "--json").stdout)["proof"]["numbers"]["input_tokens"]["most"] is None


@pytest.mark.parametrize(
    ("settings", "environ", "line", "note"),
    [
        ("", {"ANTHROPIC_API_KEY": "x"}, "2 calls · ≤ $", "anthropic:claude-sonnet-5-5 reads at most "),
        ('[models]\ndefault = "local:a"\n', {}, "2 calls · free · ", "local:a reads at most 8,192 tokens a call"),
        (
            '[models]\ndefault = "ollama:a"\n[models.prices."ollama:a"]\nwindow = 5000\n',
            {},
            "2 calls · free · ",
            "ollama:a reads at most 5,000 tokens a call",
        ),
        (
            '[models]\ndefault = "ollama:a"\n',
            {},
            "2 calls · free · ",
            'the window of ollama:a is not known; bound it with window = 128000 under [models.prices."ollama:a"]',
        ),
    ],
)
@pytest.mark.usefixtures("no_connections")
def test_the_model_is_that_of_a_run(
    invoke: Invoke,
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: str,
    environ: dict[str, str],
    line: str,
    note: str,
) -> None:
    """newcomer M4, real-work M5: `show` chooses the model as `run` does, opens nothing, and knows its window."""
    home = tmp_path / "own-space"
    given({"quire.toml": settings}, home)
    for name, value in {"QUIRE_HOME": str(home), **environ}.items():
        monkeypatch.setenv(name, value)
    shown = invoke(command, page, "--bounds").stdout
    assert shown.startswith(line) and note in shown


def test_the_outline_as_json(invoke: Invoke, page: str) -> None:
    found = json.loads(invoke(command, page, "--json").stdout)
    assert found["document"] == page and found["title"] == "Trip" and found["artifact"] == "markdown"
    assert found["inputs"][1] == {
        "name": "days",
        "type": "number",
        "required": False,
        "default": "3",
        "options": [],
        "description": "How long",
    }
    assert found["tools"] == [{"tool": "travel/book", "steps": ["2"]}]
    once = {"least": 1, "most": 1}
    twice, never = {"least": 2, "most": 2}, {"least": 0, "most": 0}
    assert found["bounds"] == {
        "model_calls": twice,
        "tool_calls": once,
        "questions": once,
        "threads": never,
        "unknown": [],
    }
    needed = {"capability": "rye.execute.tool.mcp.travel.book", "steps": ["2"]}
    assert found["envelope"] == {"capabilities": [needed], "unknown": []}
    assert found["prompts"] == [{"prompt": "library:tone", "steps": ["1"]}]
    assert found["steps"][0]["keeps"] == {"name": "best", "type": "enum", "options": ["sea", "hills"], "field": "best"}
    assert [branch["if"] for branch in found["steps"][3]["branches"]] == ['style == "grand"', None]
    assert found["steps"][3]["branches"][1]["steps"][0]["model"]["text"] == "Plan {{days}} cheap days."


def test_the_graph(invoke: Invoke, page: str) -> None:
    text = invoke(command, page, "--graph", "mermaid").stdout
    assert text.startswith("flowchart TD\n")
    assert 's4case -->|"style == #34;grand#34;"| s4c1_1model' in text
    assert json.loads(invoke(command, page, "--graph", "mermaid", "--json").stdout)["text"] == text
    drawn = invoke(command, page, "--graph", "svg").stdout
    assert drawn.startswith("<svg ") and "Step 4a - Grand" in drawn
    assert json.loads(invoke(command, page, "--graph", "svg", "--json").stdout) == {"graph": "svg", "text": drawn}


def test_the_prompt_of_a_step(invoke: Invoke, page: str, workspace: Path) -> None:
    given({"prompts/tone.md": "Speak of {{place}} kindly."}, workspace)
    result = invoke(command, page, "--prompt", "1", "-i", "place=Rome", "--json")
    found = json.loads(result.stdout)
    (message,) = found["messages"]
    assert message["role"] == "user" and found["system"] == "Be practical."
    assert message["content"].startswith("Speak of Rome kindly.\n\nList sights of Rome.\n\nFirst do all that is asked")
    assert found["closing"]["properties"] == {"best": {"type": "string", "enum": ["sea", "hills"]}}
    assert [line for line in result.stderr.splitlines() if "place" in line] == []
    assert "no value for style: {{style}} stands for it" in result.stderr


def test_the_prompt_for_people_with_stand_ins_and_a_forced_arm(invoke: Invoke, page: str) -> None:
    result = invoke(command, page, "--prompt", "4a", "-i", "place=Rome", "-i", "style=cheap")
    assert result.stdout == (
        "--- system ---\n"
        "Be practical.\n\n"
        "Results of the earlier steps, oldest first:\n\n"
        "[Step 1: Look around]\n[output of step 1]\n\n"
        "[Step 2: Book]\n[result of step 2]\n\n"
        "[Step 3: Choose, answer of the user]\nfirst\n\n"
        "--- user ---\n"
        "Plan 3 grand days.\n"
    )
    assert "would not come to step 4a" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--prompt", "2"), "calls the tool travel/book"),
        (("--prompt", "7"), "unknown step 7"),
        (("--prompt", "1", "-i", "plcae=Rome"), "did you mean place"),
        (("--prompt", "1", "-i", "days=many"), "not a number"),
        (("--graph", "mermaid", "--prompt", "1"), "exclude each other"),
        (("-i", "place=Rome"), "-i is for --prompt"),
    ],
)
def test_what_cannot_be_shown(invoke: Invoke, page: str, arguments: tuple[str, ...], said: str) -> None:
    result = invoke(command, page, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_a_wrong_document_and_a_missing_one(invoke: Invoke, workspace: Path) -> None:
    (workspace / "bad.md").write_text("no title\n\n## STEP 1: A\n\nx\n")
    result = invoke(command, "bad.md")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "No title found" in result.stderr
    assert invoke(command, "gone.md").exit_code == 2


def test_nothing_is_started_and_no_socket_is_opened(
    invoke: Invoke, page: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("show must not do this")

    (workspace / ".mcp.json").write_text('{"mcpServers": {"travel": {"command": "false"}}}')
    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "socketpair", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    for arguments in ((), ("--graph", "mermaid"), ("--graph", "svg"), ("--prompt", "4b")):
        assert invoke(command, page, *arguments).exit_code == 0


def test_control_characters_are_shown_not_sent(invoke: Invoke, workspace: Path) -> None:
    (workspace / "x.md").write_text("# T\x1b[2J\n\nabout\x9b\n\n## STEP 1: A\x07\n\ngo\u202e\n")
    output = invoke(command, "x.md").output
    assert "go" in output and not set(output) & set("\x1b\x9b\x07\u202e")


def test_the_arms_of_a_branch_have_their_words(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arms = "".join(
        f"```{word}```\n\n### STEP 1{letter}: S\n\nSay {letter}.\n\n"
        for word, letter in (('if x == "1"', "a"), ('elif x == "2"', "b"), ('elif x != "3"', "c"), ("else", "d"))
    )
    inputs = "## INPUTS\n\n- `x` (string): Which\n\n"
    Path("arms.md").write_text(f"# Arms\n\n{inputs}## STEP 1: Choose\n\n{arms}```endif```\n")
    assert main(["show", "arms.md"]) == 0
    shown = [line.strip() for line in capsys.readouterr().out.splitlines()]
    words = [line for line in shown if line.startswith(("if ", "elif ", "else"))]
    assert words == ['if x == "1":', 'elif x == "2":', 'elif x != "3":', "else:"]
