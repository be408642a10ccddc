"""The step labels that somebody names when a run is started: each must be one that can be meant."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from quire.engine.ask import WrongAnswer, checked_answer
from quire.errors import BadInputs
from quire.plan.nodes import Agent, Ask, Call, Formula, Invoke, Literal, Plan, Select, Step
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
            problems += _of_pipeline(labels, label, answer)
            continue
        if label not in labels:
            problems.append(f"answer {label}: there is no step {label}")
        elif (ask := labels[label].ask) is None:
            problems.append(f"answer {label}: step {label} asks nothing")
        elif problem := _misfit(ask, answer):
            problems.append(f"answer {label}: {problem}")
    if problems:
        raise BadInputs(problems)


def _of_pipeline(labels: Mapping[str, Step], label: str, answer: str) -> Iterator[str]:
    """A callee or an agent may be the one that asks; paths of items, and steps of callees, are known only when they
    run."""
    head = label.partition("/")[0]
    if "/" in label or "›" in label:
        if head not in labels and not any(isinstance(step.work, Call | Select) for step in labels.values()):
            yield f"answer {label}: there is no step {head}"
        return
    step = labels.get(label)
    if step is None:
        if not any(isinstance(one.work, Call | Select) for one in labels.values()):
            yield f"answer {label}: there is no step {label}"
        return
    match step.work:
        case Invoke(tool="ask", arguments=arguments):
            if problem := _misfit_of_tool(dict(arguments), answer):
                yield f"answer {label}: {problem}"
        case Agent() | Call() | Select():
            return
        case _:
            yield f"answer {label}: step {label} asks nothing"


def _misfit_of_tool(arguments: Mapping[str, Literal | Formula], answer: str) -> str:
    """The same for the tool `ask`: what is computed, only the run can tell."""
    if any(isinstance(arguments.get(name), Formula) for name in ("type", "options")):
        return ""
    literal = {name: one.value for name, one in arguments.items() if isinstance(one, Literal)}
    kind, options = literal.get("type", "input"), literal.get("options", [])
    if not isinstance(kind, str) or not isinstance(options, list | tuple):
        return ""
    return _problem(kind, [str(option) for option in options], answer)


def _misfit(ask: Ask, answer: str) -> str:
    """Why a question will not take this answer; empty where it will, or where only the run can tell."""
    if any(True for option in ask.options for _ in option.references()):
        return ""
    return _problem(ask.kind, ["".join(map(str, option.parts)) for option in ask.options], answer)


def _problem(kind: str, options: Sequence[str], answer: str) -> str:
    try:
        checked_answer(kind, options, option_by_number(kind, options, answer))
    except WrongAnswer as wrong:
        return str(wrong)
    return ""
