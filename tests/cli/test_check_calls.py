"""`quire check` follows calls across formats, with what the files of the workspace really declare."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke
from tests.directives import directive
from tests.given import given

from quire.cli.check import command

DIRECTIVE = directive(
    "greet",
    "<execute><tool>rye.file-system.write</tool></execute>",
    "Write to {input:guest}, who stays {input:nights} nights.",
    category="team",
    more="""<inputs>
  <input name="guest" type="string" required="true">Who</input>
  <input name="nights" type="integer" default="1">How long</input>
</inputs>
<outputs>
  <output name="path" type="string" required="true">Where</output>
  <output name="words" type="integer" required="true">How many</output>
</outputs>""",
)
PLAYBOOK = """# Letter

## INPUTS

- `guest` (string): Who
- `tone` (enum: warm, dry): How

## STEP 1: A

{{guest}} {{tone}}

@output(mood)
"""


def pipeline(*steps: str) -> str:
    return "pipeline: p\nsteps:\n" + "".join(f"  - {step}\n" for step in steps)


@pytest.fixture(autouse=True)
def documents(workspace: Path) -> None:
    given(
        {
            ".ai/directives/team/greet.md": DIRECTIVE,
            "playbooks/letter.playbook.md": PLAYBOOK,
            "pipelines/price.yaml": 'pipeline: price\nsteps:\n  - transform: {value: "ctx.nights * 60"}\n',
        },
        workspace,
    )


def found(invoke: Invoke, file: Path, text: str) -> list[tuple[str, str]]:
    file.write_text(text)
    done = invoke(command, "--json", str(file))
    return [(one["code"], one["message"]) for one in json.loads(done.stdout)]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("call: {pipeline: greet, pass: [guest, nights]}", []),
        ("call: {pipeline: letter, pass: [guest, tone]}", []),
        ("call: {pipeline: greet}", [("PL114", "the directive greet needs guest, which it is not given")]),
        (
            "call: {pipeline: letter, pass: {guest: ctx.g, tone: \"'loud'\"}}",
            [
                (
                    "PL114",
                    'the playbook letter cannot take this tone: "loud" is not one of warm, dry',
                )
            ],
        ),
        (
            "call: {pipeline: greet, pass: {guest: ctx.g, nights: \"'two'\"}}",
            [("PL114", 'the directive greet cannot take this nights: "two" is not an integer')],
        ),
        ("call: {pipeline: gret}", [("PL101", 'unknown pipeline, playbook or directive "gret"')]),
    ],
)
def test_calls_of_a_pipeline(invoke: Invoke, workspace: Path, step: str, expected: list[tuple[str, str]]) -> None:
    assert found(invoke, workspace / "p.yaml", pipeline(step)) == expected


@pytest.mark.parametrize(
    ("value", "codes"),
    [
        ("done.path", []),
        ("done.pth", ["PL109"]),
        ("done.words > 3", []),
        ("done.words > 'three'", ["PL110"]),
        ("said.mood", []),
        ("said.output", []),
        ("said.mod", ["PL109"]),
        ("said.mood > 3", ["PL110"]),
    ],
)
def test_what_a_callee_gives(invoke: Invoke, workspace: Path, value: str, codes: list[str]) -> None:
    calls = (
        "call: {pipeline: greet, pass: [guest], output: done}",
        "call: {pipeline: letter, pass: [guest, tone], output: said}",
    )
    text = pipeline(*calls, f'transform: {{value: "{value}"}}')
    told = [code for code, _ in found(invoke, workspace / "p.yaml", text)]
    assert [code for code in told if code.startswith("PL1")] == codes


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ('@tool(quire, greet, {"guest": "Ada", "nights": 2})', []),
        ('@tool(quire, "team/greet", {"guest": "Ada"})', []),
        ('@tool(quire, price, {"nights": 2})', []),
        ('@tool(quire, file__read, {"path": "a.txt"})', []),
        ('@tool(quire, price, {"night": 2})', ["PB226", "PB226"]),
        ('@tool(quire, greet, {"nights": "two"})', ["PB226", "PB226"]),
        ('@tool(quire, letter, {"guest": "Ada"})', ["PB226"]),
        ("@tool(quire, nobody)", ["PB225"]),
    ],
)
def test_calls_of_a_playbook(invoke: Invoke, workspace: Path, call: str, expected: list[str]) -> None:
    text = f"# T\n\n## STEP 1: A\n\n{call}\n"
    assert [code for code, _ in found(invoke, workspace / "t.playbook.md", text)] == expected


def test_a_callee_that_cannot_be_read_is_left_to_the_run(invoke: Invoke, workspace: Path) -> None:
    (workspace / ".ai/directives/team/broken.md").write_text("# Broken\n\n```xml\n<directive\n```\n")
    assert found(invoke, workspace / "p.yaml", pipeline("call: {pipeline: broken}")) == []
