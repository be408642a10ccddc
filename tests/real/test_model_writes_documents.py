"""A small model that is given only AGENTS.md and the skill writes documents that check clean.

The texts are those that `quire new agents` and `quire new skill` write. What `quire check --fix` cannot mend is told
with the task, and the model tries again, twice at most: a model of this size repeats a text that it is shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from quire.cli import main
from quire.engine.conversation import Message
from quire.engine.ports import Model, ModelCall
from quire.formats.grammars import agents_text, skill_text
from quire.models.downloads import pulled_model
from quire.models.scripted import ScriptedModel

MODEL = "qwen2.5-coder-1.5b"
REPAIRS = 2
LONGEST_REPLY = 500
ORDER = "Reply with the text of the file {name} and nothing else."
AGAIN = "quire check found these mistakes in your last text. Avoid them:"
TASKS = {
    "note.playbook.md": "Write a playbook with one input, a subject. Step 1 writes three facts about the subject. Step"
    " 2 writes a short note from them.",
    "choose.playbook.md": "Write a playbook that proposes a holiday for a month, lets a person choose between sea and"
    " mountains, and then writes a plan for it.",
    "review.playbook.md": "Write a playbook with the inputs text and language. Step 1 lists the mistakes of the text,"
    " step 2 corrects it, step 3 translates it into the language.",
    "greet.yaml": "Write a pipeline that asks a model for a greeting in the language ctx.language and writes the"
    " greeting into the file greeting.txt.",
    "two.yaml": "Write a pipeline in which an agent summarises ctx.text and a second agent translates the summary into"
    " French.",
    "sum.yaml": "Write a pipeline that adds up the numbers in ctx.numbers, without a model.",
}
LEAST = 1
"""So many of the six tasks have to end with a document without findings; three did when it was counted: the
model has 1.5 B parameters."""

Check = Callable[[str, str], list[str]]


@pytest.fixture(scope="session")
def qwen() -> Path:
    """The model file in the user's own cache; a session's fixture is made before a test has another cache."""
    found = pulled_model(MODEL)
    if found is None:
        pytest.skip(f"the model file is not here: `quire model pull {MODEL}` fetches it")
    return found.path


@pytest.fixture
def check(workspace: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    """What `quire check --fix` leaves to the author of a text."""

    def findings(name: str, text: str) -> list[str]:
        (workspace / name).write_text(text, encoding="utf-8")
        main(["check", name, "--fix", "--json"])
        found = json.loads(capsys.readouterr().out)
        return [f"- {one['message']}: {one['help'] or 'leave it out'}" for one in found]

    return findings


def text_of(reply: str) -> str:
    """The text of a file; a model often puts it into a fence, and explains it below, although it is told not to."""
    fenced = re.match(r"\s*(`{3,})\w*\n(.*?)\n\1[ \t]*(?:\n|$)", reply, re.DOTALL)
    return (fenced[2] if fenced else reply).strip() + "\n"


async def author(model: Model, name: str, task: str, check: Check) -> list[list[str]]:
    """Let a model write a document, and return the findings of each of its tries."""
    system = f"{agents_text()}\n\n{skill_text('quire')}"
    tries: list[list[str]] = []
    while len(tries) <= REPAIRS and (not tries or tries[-1]):
        told = [f"\n{AGAIN}", *dict.fromkeys(tries[-1])] if tries else []
        message = Message("user", "\n".join([task, "", ORDER.format(name=name), *told]))
        reply = await model.complete(ModelCall(system, (message,), max_tokens=LONGEST_REPLY), lambda piece: None)
        tries.append(check(name, text_of(reply.text)))
    return tries


async def test_the_author_is_told_the_findings_until_there_are_none(check: Check) -> None:
    good = "# A\n\n## INPUTS\n\n- `x` (string): X\n\n## STEP 1: B\n\nSay {{x}}.\n"
    model = ScriptedModel([good.replace("{{x}}", "x"), f"```markdown\n{good}```"])
    first, second = await author(model, "a.playbook.md", "Write it.", check)
    assert "is never read" in str(first) and second == []
    assert first[0] in model.calls[1].messages[-1].content and skill_text("quire") in model.calls[0].system


async def test_the_embedded_model_writes_documents_that_check_clean(qwen: Path, check: Check) -> None:
    pytest.importorskip("xllamacpp", reason='needs the extra "local", and libgomp', exc_type=ImportError)
    from quire.models.local import LocalModel

    model = LocalModel(qwen, name=MODEL)
    tries = {name: await author(model, name, task, check) for name, task in TASKS.items()}
    assert sum(not found[-1] for found in tries.values()) >= LEAST, tries
