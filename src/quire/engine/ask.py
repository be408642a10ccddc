"""A step that asks a person, and what counts as an answer."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from quire.engine.earlier import Entry
from quire.engine.requests import HumanRequest, Request
from quire.engine.scope import Scope
from quire.plan.nodes import Ask, Step

MOST_UNFIT = 5
"""Answers to one question that may not fit; then it waits in the inbox."""


class WrongAnswer(ValueError):
    """Says what would be right."""


def ask(step: Step, question: Ask, path: str, scope: Scope) -> Generator[Request, Any, str]:
    answer: str = yield HumanRequest(
        path=f"{path}/ask",
        label=step.label,
        title=step.title,
        kind=question.kind,
        prompt=scope.render(question.prompt),
        options=tuple(scope.render(option) for option in question.options),
        default=scope.render(question.default) if question.default is not None else None,
    )
    for name in dict.fromkeys((step.number, step.label)):
        yield scope.name(f"{path}/ask", step.label, f"__elicit_step_{name}", answer)
    scope.entries.append(Entry(step.label, step.title, answer, answer=True))
    return answer


def checked_answer(kind: str, options: Sequence[str], answer: str) -> str:
    """The answer as it is kept; raises `WrongAnswer`."""
    if kind == "confirm":
        word = answer.strip().lower()
        if word in ("yes", "y"):
            return "yes"
        if word in ("no", "n"):
            return "no"
        raise WrongAnswer("answer yes or no")
    if kind == "select" and options:
        if answer in options:
            return answer
        trimmed = answer.strip()
        if trimmed in options:
            return trimmed
        raise WrongAnswer("answer one of: " + " | ".join(options))
    return answer


def unattended_answer(kind: str, options: Sequence[str], default: str | None) -> str:
    """What stands for a person where nobody can be asked."""
    if default is not None:
        return default
    if kind == "confirm":
        return "yes"
    return options[0] if kind == "select" and options else ""
