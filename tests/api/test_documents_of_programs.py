"""What `quire.run` takes as a document, and the values that it gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.directive_project import LEAF, call, write_directives
from tests.given import given

import quire
from quire.errors import BadDocument, CannotStart, Unreadable

PLAYBOOK = "# Tea\n\n## STEP 1: Say\n\nSay a word.\n"
PIPELINE = """# greets
pipeline: greet
steps:
  - transform: {value: "{said: 'Hello, ' + ctx.name, letters: 5}", output: greeting}
  - transform: {value: "[ctx.greeting.said, true, null]"}
"""


@pytest.fixture(autouse=True)
def workspace(here: Path) -> Path:
    return given({"pipelines/greet.yaml": PIPELINE, "tea.playbook.md": PLAYBOOK}, here)


FORMS: dict[str, Any] = {
    "text": PIPELINE,
    "text with CRLF": PIPELINE.replace("\n", "\r\n"),
    "source": quire.Source.of(PIPELINE, "greet.yaml"),
    "name": "greet",
    "file": "pipelines/greet.yaml",
    "path": Path("pipelines", "greet.yaml"),
}


@pytest.mark.parametrize("document", FORMS.values(), ids=FORMS)
async def test_a_pipeline_in_every_form(document: Any) -> None:
    """Its value and its stores are values, not JSON text."""
    result = await quire.run(document, inputs={"name": "Ann"})
    assert result.status is quire.Status.COMPLETED
    assert result.value == ["Hello, Ann", True, None]
    assert result.stores == {"name": "Ann", "greeting": {"said": "Hello, Ann", "letters": 5}}
    assert result.output == '[\n  "Hello, Ann",\n  true,\n  null\n]'
    assert result.outputs == {}


@pytest.mark.parametrize("document", [PLAYBOOK, "tea", "tea.playbook.md"])
async def test_a_playbook_in_every_form(document: str) -> None:
    result = await quire.run(document, model=quire.ScriptedModel(["Leaf."]))
    assert (result.output, result.value, result.stores, result.outputs) == ("Leaf.", "Leaf.", {}, {})


async def test_the_outputs_of_a_directive(workspace: Path) -> None:
    write_directives(workspace)
    script = quire.ScriptedModel([{"tool_calls": [call("directive_return", path="report.txt", ok=True)]}])
    result = await quire.run("deploy_staging", inputs={"target": "staging"}, model=script)
    assert result.status is quire.Status.COMPLETED, result.error
    assert result.outputs == result.value == {"path": "report.txt", "ok": True}
    assert result.stores == {}


async def test_a_directive_is_run_from_its_space_only() -> None:
    """Nobody could have signed a text."""
    with pytest.raises(CannotStart, match="is not a directive: they are below"):
        await quire.run(LEAF, inputs={"target": "staging"}, model=quire.ScriptedModel([]))


async def test_a_name_is_looked_up_in_the_given_workspace(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = workspace / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    result = await quire.run("greet", inputs={"name": "Bo"}, workspace=workspace)
    assert result.stores["name"] == "Bo"


@pytest.mark.parametrize(
    ("document", "kind", "said"),
    [
        ("greeet", CannotStart, "did you mean greet?"),
        ("none.md", Unreadable, "does not exist"),
        ("\n \n", BadDocument, "the text of the document is empty"),
        (5, CannotStart, "5 is not a document"),
    ],
)
async def test_what_is_not_a_document(document: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        await quire.run(document)


def test_a_text_can_be_checked() -> None:
    assert quire.check(PLAYBOOK) == quire.check(PIPELINE) == ()
    assert [found.code.id for found in quire.check("pipeline: x\nsteps: []\n")] == ["PL013"]


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset, dict.fromkeys])
async def test_breakpoints_and_allow_take_any_collection(kind: Any) -> None:
    two_steps = f"{PLAYBOOK}\n## STEP 2: End\n\nEnd.\n"
    result = await quire.run(two_steps, model=quire.ScriptedModel(["Leaf."]), breakpoints=kind(["1"]))
    assert result.status is quire.Status.PAUSED
    launched = await quire.launch("greet", input={"name": "Ann"}, allow=kind(["shell"]))
    assert launched["status"] == "ok"
