"""Draft a case of a test that takes a playbook to a step, or into an arm.

The values that conditions read are chosen so that the arm is taken; everything else is a placeholder, as `quire new
test` writes it. Nothing is run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.playbook.callees import OWN
from quire.lsp.playbook.captures import ASKED
from quire.lsp.playbook.known_tools import built_in
from quire.plan.nodes import Comparison, Match, Plan, Sequence, Step, Think, UseTool
from quire.testing.drafts import Draft, DraftReply
from quire.testing.placeholders import TODO, Choices, Placeholders

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quire.plan.nodes import Capture
    from quire.values import Value


def draft_case(plan: Plan, schema: Mapping[str, Value], label: str, arm: int | None, name: str) -> Draft:
    """Return a case for a step, or for an arm of it by its number."""
    made: dict[str, Value] = {}
    if arm is not None:
        step = next(one for one in plan.body.steps if one.label == label)
        assert step.match is not None  # noqa: S101  # the caller has seen the arm
        for variable, value in _wanted(plan, step.match, arm).items():
            made |= _choice(plan, variable, value)
    walk = _Walk(plan, schema, made)
    walk.steps(plan.body)
    walk.draft.name = name
    return walk.draft


def _wanted(plan: Plan, match: Match, arm: int) -> dict[str, str]:
    """Return values with which an arm is taken, and none before it."""
    equal: dict[str, str] = {}
    other: dict[str, set[str]] = {}
    for at, case in enumerate(match.cases[: arm + 1]):
        if case.test is None:
            continue
        if (case.test.operator == "==") is (at == arm):
            equal[case.test.variable] = case.test.value
        else:
            other.setdefault(case.test.variable, set()).add(case.test.value)
    for variable, excluded in other.items():
        if variable not in equal or equal[variable] in excluded:
            known = [one for one in _options(plan, variable) if one not in excluded]
            equal[variable] = known[0] if known else f"{TODO} another {variable}"
    return equal


def _options(plan: Plan, variable: str) -> list[str]:
    """Return the texts that a value can be, as far as they are known."""
    for one in plan.inputs:
        if one.name == variable:
            return ["true", "false"] if one.type == "boolean" else list(one.options)
    for _, step in plan.steps():
        if step.capture and step.capture.name == variable and step.capture.options:
            return list(step.capture.options)
        if step.ask and variable in _answer_names(step):
            return _answers(step)
    return []


def _answers(step: Step) -> list[str]:
    if step.ask is None:
        return []
    if step.ask.kind == "confirm":
        return ["yes", "no"]
    return ["".join(str(part) for part in one.parts) for one in step.ask.options if not any(one.references())]


def _answer_names(step: Step) -> set[str]:
    names = {f"{ASKED}{step.label}", f"{ASKED}{step.number}"}
    return names | {step.capture.name} if step.capture and step.work is None else names


def _choice(plan: Plan, variable: str, value: str) -> dict[str, Value]:
    """Return the choices, in the words of `Placeholders`, that give a value to a name."""
    for one in plan.inputs:
        if one.name == variable:
            return {f"input {variable}": value == "true" if one.type == "boolean" else value}
    found: dict[str, Value] = {}
    for _, step in plan.steps():
        if step.ask and variable in _answer_names(step):
            found[f"answer {step.label}"] = value
        elif step.capture and step.capture.name == variable:
            typed: Value = value == "true" if step.capture.type == "boolean" else value
            found[f"reply {step.label} {variable}"] = typed
    return found


class _Walk:
    """Follows the steps that a run with these choices would take."""

    def __init__(self, plan: Plan, schema: Mapping[str, Value], made: dict[str, Value]) -> None:
        self._made = made
        self._placeholders = Placeholders(plan, Choices(made))
        self.draft = Draft("draft", self._placeholders.inputs(schema))
        self._values = {one.name: one.default or "" for one in plan.inputs}
        self._values |= {name: _text(value) for name, value in self.draft.inputs.items()}

    def steps(self, sequence: Sequence) -> None:
        for step in sequence.steps:
            answer = self._ask(step) if step.ask else ""
            chosen = self._chosen(step.match) if step.match and step.match.decide_first else None
            if step.match and step.match.decide_first and chosen is None:
                continue
            self._work(step, answer)
            if step.match and not step.match.decide_first:
                chosen = self._chosen(step.match)
            if chosen is not None:
                self.steps(chosen)

    def _ask(self, step: Step) -> str:
        known = _answers(step)
        otherwise = known[0] if known else f"{TODO}: an answer to step {step.label}"
        answer = str(self._made.get(f"answer {step.label}", otherwise))
        self.draft.answers[step.label] = answer
        for name in (f"{ASKED}{step.label}", f"{ASKED}{step.number}"):
            self._values[name] = answer
        return answer

    def _work(self, step: Step, answer: str) -> None:
        match step.work:
            case Think():
                reply = self._placeholders.reply(step, step.label)
                self.draft.replies[step.label, None] = DraftReply(step.label, reply)
                if step.capture:
                    self._keep(step.capture, step.label, _text(reply))
            case UseTool(connection=place, tool=tool):
                if _is_scripted(place, tool):
                    key = tool if place == OWN else f"{place}/{tool}"
                    self.draft.tools.setdefault(key, self._placeholders.result(tool, [tool]))
                if step.capture:
                    self._keep(step.capture, step.label, "")
            case _:
                if step.capture:
                    self._values[step.capture.name] = answer

    def _keep(self, capture: Capture, label: str, reply: str) -> None:
        """Note the value of a capture, as `Placeholders` has made it."""
        first = capture.options[0] if capture.options else "true" if capture.type == "boolean" else reply
        self._values.setdefault(capture.name, "")
        self._values[capture.name] = _text(self._made.get(f"reply {label} {capture.name}", first))

    def _chosen(self, match: Match) -> Sequence | None:
        for case in match.cases:
            if case.test is None or self._holds(case.test):
                return case.body
        return None

    def _holds(self, test: Comparison) -> bool:
        return (self._values.get(test.variable, "") == test.value) is (test.operator == "==")


def _is_scripted(connection: str, tool: str) -> bool:
    """Tell whether a test has to say what a tool returns: all but the built-in ones that stay in the workspace."""
    own = built_in(tool) if connection == OWN else None
    return connection != OWN or (own is not None and own.risk == "elevated")


def _text(value: Value) -> str:
    from quire.values import encode

    return value if isinstance(value, str) else encode(value)
