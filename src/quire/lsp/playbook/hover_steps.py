"""Show what a step of a playbook does: its model, its prompt with stand-ins, and the bound of the document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.formats.playbook.names import family
from quire.lsp.bounds import bound_words
from quire.lsp.markdown import fenced
from quire.lsp.playbook.hover_text import escaped, paragraphs, quoted
from quire.lsp.playbook.outline import arm_words, work_words
from quire.lsp.playbook.step_prompts import composed_prompt, model_of_step
from quire.wording import cut_off

if TYPE_CHECKING:
    from quire.formats.playbook.syntax import Playbook, Step
    from quire.lsp.views import View

LONGEST_PROMPT = 8_000


def step_of(tree: Playbook | None, label: str) -> Step | None:
    """Return the first step or sub-step of a label."""
    for parent in tree.steps if tree else ():
        for step in family(parent):
            if step.label == label:
                return step
    return None


def step_hover(view: View, label: str) -> str:
    """Return the facts about a step; empty if there is none of that label."""
    step = step_of(view.reading.partial, label)
    if step is None:
        return ""
    work = work_words(step)
    title = f": {escaped(step.title)}" if step.title else ""
    head = f"**STEP {step.label}{title}**" + (f" · {escaped(work)}" if work else "")
    bound = bound_words(view, quick=True)
    return paragraphs(
        head,
        _question(step),
        _arms(step),
        _prompt(view, step),
        f"The document takes {bound}." if bound else "",
    )


def _question(step: Step) -> str:
    asked = step.elicitation
    if asked is None or step.tool:
        return ""
    answers = {"confirm": "yes or no", "input": "any text"}.get(asked.kind) or " or ".join(map(quoted, asked.options))
    default = f"; unattended {quoted(asked.default)}" if asked.default is not None else ""
    return f"Asks: {escaped(asked.prompt)} ({answers}{default})"


def _arms(step: Step) -> str:
    if not step.arms:
        return ""
    lines = []
    for arm in step.arms:
        labels = ", ".join(one.label for one in arm.steps) or "nothing"
        lines.append(f"- {quoted(arm_words(arm))} → {labels}")
    if all(arm.condition for arm in step.arms):
        lines.append("- otherwise no arm is taken")
    return "\n".join(lines)


def _prompt(view: View, step: Step) -> str:
    if step.tool or not (step.has_text or step.prompt):
        return ""
    model = model_of_step(view, step.label, step.model.name if step.model else "")
    found = composed_prompt(view, step.label)
    if found.problem:
        return f"No prompt to show: {escaped(found.problem)}"
    notes = "\n".join(f"- {escaped(note)}" for note in found.notes)
    sent = f"Sent to {quoted(model)}:" if ":" in model else "Sent to the model:"
    return paragraphs(sent, fenced(cut_off(found.text.strip(), LONGEST_PROMPT), "text"), notes)
