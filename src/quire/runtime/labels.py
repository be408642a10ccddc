"""The step labels that somebody names when a run is started: each must be one that can be meant."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from quire.engine.ask import WrongAnswer, checked_answer
from quire.errors import BadInputs
from quire.plan.nodes import Ask, Plan
from quire.runtime.people import option_by_number

_TURN = re.compile(r"\bturn (?:[1-9]\d*$)|turn\[\d+\]")
"""A turn of a thread by its label, or by its path."""
_BEFORE = re.compile(r"(?:.* )?start|(?:.*/)?thread/start/.*")
"""What a thread may ask before its first turn, where it cannot stop."""


def check_labels(plan: Plan, breakpoints: Collection[str], answers: Mapping[str, str]) -> None:
    """Raises `BadInputs` with everything that is wrong."""
    if plan.format == "directive":
        # Which turns there will be, and whether one of them asks, nobody knows before.
        wrong = [label for label in breakpoints if not _TURN.search(label)]
        wrong += [label for label in answers if not _TURN.search(label) and not _BEFORE.fullmatch(label)]
        if wrong:
            steps = "its steps are turn 1, turn 2, …"
            raise BadInputs([f"{label} is not a step of a directive: {steps}" for label in wrong])
        return
    labels = {step.label: step for _, step in plan.steps()}
    # A pipeline stops between the steps of its own document; those inside of others are no places to stop at.
    stops = {step.label for step in plan.body.steps} if plan.format == "pipeline" else labels.keys()
    problems = [f"breakpoint {label}: there is no step {label}" for label in breakpoints if label not in stops]
    for label, answer in answers.items():
        if plan.format == "pipeline":
            # A callee or an agent may be the one that asks; paths of items are known only when they run.
            continue
        if label not in labels:
            problems.append(f"answer {label}: there is no step {label}")
        elif (ask := labels[label].ask) is None:
            problems.append(f"answer {label}: step {label} asks nothing")
        elif problem := _misfit(ask, answer):
            problems.append(f"answer {label}: {problem}")
    if problems:
        raise BadInputs(problems)


def _misfit(ask: Ask, answer: str) -> str:
    """Why a question will not take this answer; empty where it will, or where only the run can tell."""
    if any(True for option in ask.options for _ in option.references()):
        return ""
    options = ["".join(map(str, option.parts)) for option in ask.options]
    try:
        checked_answer(ask.kind, options, option_by_number(ask.kind, options, answer))
    except WrongAnswer as wrong:
        return str(wrong)
    return ""
