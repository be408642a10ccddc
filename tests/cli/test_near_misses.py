"""`check` fails on near misses, and `run` asks or stops (newcomer G1)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import json_of
from tests.cli.test_terminal import Quire, put, quire
from tests.given import given

from quire.cli import main

__all__ = ["quire"]

PUBLISH = """# Publish

## STEP 1: Draft

Draft.

@output(draft)

## STEP 2: Ask

@elicit(confirm, Publish this?)

## STEP 3: Write

@tool(quire, file__write, {"path": "site/index.md", "content": "{{draft}}"})
"""


@pytest.fixture
def publish(workspace: Path) -> list[str]:
    given({"pub.playbook.md": PUBLISH, "replies.json": [{"default": "A page."}]}, workspace)
    return ["run", "pub.playbook.md", "--script", "replies.json", "--allow", "file__write"]


def test_a_misquoted_approval_is_not_passed_over(publish: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "pub.playbook.md"]) == 1
    assert capsys.readouterr().err == "1 warning in 1 file (1 would stop a run)\n"
    assert main(publish) == 2
    err = capsys.readouterr().err
    assert "pub.playbook.md:11:1: PB106 Looks like @elicit" in err and err.endswith("with --force\n")
    assert not Path("site").exists()
    assert main(["runs", "--json"]) == 0 and json.loads(capsys.readouterr().out) == []


def test_force_is_pinned_and_shown(publish: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*publish, "--force"]) == 0
    assert Path("site/index.md").read_text() == "A page."
    capsys.readouterr()
    assert main(["runs", "last"]) == 0
    assert "forced    PB106" in capsys.readouterr().out
    assert json_of(capsys, "runs")[0]["forced"] == ["PB106"]


def test_forty_near_misses_are_shown_at_once(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = "".join(f"## Step {n}: Lost\n\nx\n\n" for n in range(2, 42))
    given({"page.md": f"# P\n\n## STEP 1: A\n\nx\n\n{steps}", "replies.json": '["x"]'})
    assert main(["run", "page.md", "--script", "replies.json"]) == 2
    assert capsys.readouterr().err.count("PB119") == 40


def test_tests_run_and_say_so(publish: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    case = "{name: a, model: {'1': A page., '2': x}, allow: [file__write], expect: {status: completed}}"
    Path("pub.test.yaml").write_text(f"document: pub.playbook.md\ncases: [{case}]")
    assert main(["test", "pub.test.yaml"]) == 0
    assert "pub.playbook.md: line 11: PB106 Looks like @elicit" in capsys.readouterr().err


@pytest.mark.parametrize(("answer", "code"), [("no", 2), ("", 2), ("yes", 0)])
def test_on_a_terminal_it_is_asked_once(quire: Quire, answer: str, code: int) -> None:
    text = PUBLISH.partition("## STEP 3")[0].replace("Draft.", "Draft {draft}.")
    screen = quire("run", *put(text, {"default": "A page."}))
    screen.wait_for("PB236", "PB106", "Run anyway? yes or no [no]:")
    screen.press(f"{answer}\r")
    ended, rest = screen.end()
    assert ended == code
    assert "PB106]" not in rest and ("not started" in rest) is (code == 2)


def test_resume_does_not_ask_again(publish: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*publish, "--force", "--break", "1"]) == 4
    assert main(["resume", "last"]) == 0
    assert Path("site/index.md").exists()
    assert main(["resume", "last", "--force"]) == 2


def test_extensions_are_a_note_of_a_run(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ruling 19 of playbooks; seeds §5."""
    text = (
        '# X\n\n## STEP 1: A\n\nSay.\n\n    @output(x)\n\n@model(cheap)\n\n## STEP 2: B\n\n@elicit(input, "C:\\new?")'
    )
    note = (
        "note: Quire's own: @model, an indented directive, an escape in a question (quire check --portable page.md)\n"
    )
    for name, said in (("page.md", True), ("page.playbook.md", False)):
        Path(name).write_text(text)
        assert main(["run", *put(text, {"default": "x"})[1:], name, "--unattended"]) == 0
        assert (note in capsys.readouterr().err) is said
    assert main(["check", "page.md", "--portable"]) == 1
    assert "An indented directive is Quire's own" in capsys.readouterr().out


@pytest.mark.parametrize("given", [[], ["-i", "v=yes"], ["-i", "v=true"]])
def test_a_boolean_is_the_same_by_default_and_given(
    workspace: Path, given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Seeds §5: a default yes and a given yes are both true."""
    text = "# X\n\n## INPUTS\n\n- `v` (boolean: yes): V\n\n## STEP 1: A\n\nSay {{v}}.\n"
    file, *script = put(text, {"contains": "Say true.", "reply": "right"})
    assert main(["check", file]) == 0
    assert main(["run", file, *script, *given]) == 0
    assert capsys.readouterr().out.endswith("right\n")


MISLEADING = {
    "inputs: {a: 1}\nsteps: [{transform: {value: '1'}}]": "write input:, and dialect: quire",
    "steps: [{agent: {prompt: x, retries: 3}}]": "write on_error: retry(2), and dialect: quire",
    "steps: [{transform: {value: 'ctx.a | upper'}}]": "a function is called",
    "steps: [{if: {on: x}}]": "when: EXPR",
    "steps: [{tool: {name: read_file, args: {}}}]": "did you mean file__read?",
    "steps: [{transform: {value: '1'}}]\n---\nschema: S\nproperties: {a: {type: string}}": "write fields:",
}


@pytest.mark.parametrize("text", MISLEADING)
def test_help_leads_to_what_is_meant(workspace: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Newcomer, small: help that misleads."""
    Path("p.yaml").write_text(f"pipeline: p\n{text}\n")
    main(["check", "p.yaml"])
    assert MISLEADING[text] in capsys.readouterr().out
