"""JSON of the inbox: open questions with the command that answers each, answers that were given, and letters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.display.run_json import question_data
from quire.display.shell_commands import answer_to

if TYPE_CHECKING:
    from quire.engine.records import Answer, EffectRecord, Letter, Question
    from quire.runs.outcome import RunView
    from quire.values import Value

LED_STEPS = 3
"""Steps before a question whose outputs are shown with it."""
LED_CHARACTERS = 6000
_NUMBER = re.compile(r"\[\d+\]")
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


def question_groups(questions: Sequence[Question]) -> Iterator[list[Question]]:
    """Yield the questions, those that items of one fan-out ask together, in the order of their oldest."""
    groups: dict[tuple[str, str], list[Question]] = {}
    for question in questions:
        groups.setdefault((question.run, _NUMBER.sub("[]", question.path)), []).append(question)
    yield from groups.values()


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
