"""JSON of the inbox: open questions with the command that answers each, answers that were given, and letters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.display.run_json import question_data
from quire.display.shell_commands import answer_to
from quire.display.text import one_line
from quire.values import encode, sha256
from quire.wording import cut

if TYPE_CHECKING:
    from quire.engine.records import Answer, EffectRecord, Letter, Question, RunRow
    from quire.runs.outcome import RunView
    from quire.values import Value

LED_STEPS = 3
"""Steps before a question whose outputs are shown with it."""
LED_CHARACTERS = 6000
_ITEM = re.compile(r"\b(for_each|fold|parallel|repeat)\[[^\]]*\]")
_DOORS: Mapping[str, str] = {
    "web": "in the page",
    "python": "by a program",
    "--answer": "by --answer",
    "unattended": "by the default, because the run is unattended",
}


def open_question(question: Question, names: Mapping[str, Value], others: Iterable[Question]) -> dict[str, Value]:
    """Return an open question as the API lists it: with its hash, and the command that answers it.

    `names` are those of its run, `others` the open questions of the same run.
    """
    return {**question_data(question, names), "hash": question.hash, "command": answer_to(question, others)}


def group_of(question: Question, row: RunRow | None) -> str:
    """Return the key of the questions that are alike: those of the items of one fan-out, or those with the same text
    that runs of the same document ask at the same step."""
    path = _ITEM.sub(r"\1[]", question.path)
    apart = question.prompt if path == question.path else question.run
    return sha256(encode([row.pins.get("document") if row else question.run, path, apart]).encode())[:24]


def differing_inputs(rows: Sequence[RunRow]) -> dict[str, str]:
    """Return for each run, in one line, the inputs that differ among several runs and that its label does not name."""
    inputs = {row.id: {**values} if isinstance(values := row.pins.get("inputs"), Mapping) else {} for row in rows}
    names = dict.fromkeys(name for values in inputs.values() for name in values)
    differing = [name for name in names if len({encode(values.get(name)) for values in inputs.values()}) > 1]
    lines = {}
    for row in rows:
        texts = ((name, one_line(str(inputs[row.id].get(name, "")))[:60]) for name in differing)
        lines[row.id] = cut(" · ".join(f"{name}: {text}" for name, text in texts if text not in row.label), 120)
    return lines


def led_here(view: RunView, path: str) -> list[dict[str, Value]]:
    """Return the last outputs before the question at a path, the oldest first."""
    asking = view.progress.step_of(path)
    before: list[dict[str, Value]] = []
    for step in view.progress.steps.values():
        if step is asking:
            break
        if step.output:
            cut = len(step.output) > LED_CHARACTERS
            before.append(
                {
                    "path": step.path,
                    "way": step.way,
                    "title": step.title,
                    "output": step.output[:LED_CHARACTERS],
                    "cut": cut,
                }
            )
    return before[-LED_STEPS:]


def answered_by(by: str) -> str:
    """Return words for the author of an answer: where it was given, or by whom."""
    if by.startswith("mcp:"):
        return f"by {by.removeprefix('mcp:').removesuffix(' (form)')}, over MCP"
    return _DOORS.get(by) or (f"by {by.removesuffix(' (terminal)')}, in a terminal" if by else "elsewhere")


def given_answer(answer: EffectRecord | Answer) -> dict[str, Value]:
    """Return the answer that counts. One that no driver has taken yet has no time."""
    at: Value = getattr(answer, "at", None)
    return {"value": answer.value, "by": answer.by or None, "words": answered_by(answer.by), "at": at}


def letter_data(letter: Letter) -> dict[str, Value]:
    return {
        "run": letter.run,
        "kind": "pipeline",
        "recipient": letter.recipient,
        "text": letter.text,
        "at": letter.at,
    }
