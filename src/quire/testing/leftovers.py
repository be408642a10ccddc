"""Problems with the scripts of a case: calls without an answer, and answers without a call.

An answer that was not used is reported only if the case is fine otherwise: a failure makes many of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.diagnostics import Diagnostic
from quire.formats.test import codes
from quire.testing.results import Problem
from quire.wording import cut

if TYPE_CHECKING:
    from quire.formats.test.syntax import Case
    from quire.testing.case_run import CaseWorld


def leftovers(world: CaseWorld, case: Case, problems: list[Problem], *, complete: bool) -> list[Problem]:
    """Return the problems of a case with those of its scripts. `complete` is false if an act was not reached."""
    missing = [*_no_replies(world, case), *_unscripted(world, case), *_unfit(world, case)]
    if missing:
        return missing  # all the rest follows from it
    if problems:
        waits = case.expect is None or not (case.expect.of("status") or case.expect.of("exit"))
        return [*problems, *(_no_answers(world, case) if waits else ())]
    return list(_unused(world, case)) if complete else problems


def _no_replies(world: CaseWorld, case: Case) -> list[Problem]:
    problems: dict[str, Problem] = {}
    for call, nearest in world.model.missing:
        where = nearest[0].span if nearest else case.setting.model.span if case.setting.model else case.span
        example = f'"{call.way}": …' if call.turn is None else f"- {{turn: {call.turn}, reply: …}}"
        help = f"the nearest entry does not fit: {nearest[1]}" if nearest else f"add to model: `{example}`"
        numbers = {"item": call.item, "turn": call.turn}
        more = [f"{name} {number}" for name, number in numbers.items() if number is not None]
        message = f"the model has no reply for step {call.way}" + (f" ({', '.join(more)})" if more else "")
        problem = Problem(Diagnostic(codes.NO_REPLY, message, where, "", help), cut(call.text, 2_000))
        problems.setdefault(message, problem)  # a step that is tried again asks again
    return list(problems.values())


def _unscripted(world: CaseWorld, case: Case) -> list[Problem]:
    problems = []
    for call in dict.fromkeys(world.tools.unscripted):
        script = world.tools.scripts.find(call.tool)
        where = script.span if script else case.setting.spans.get("tools", case.span)
        help = "" if script else f"add to tools: `{call.tool}: {{returns: …}}`"
        message = f"{call.tool} was called, and {call.reason}"
        problems.append(Problem(Diagnostic(codes.UNSCRIPTED_TOOL, message, where, "", help)))
    return problems


def _unfit(world: CaseWorld, case: Case) -> list[Problem]:
    problems = []
    for call in dict.fromkeys(world.tools.unfit):
        script = world.tools.scripts.find(call.tool)
        where = script.span if script else case.span
        message = f"{call.tool} never returns this: {call.reason}"
        problems.append(Problem(Diagnostic(codes.UNFIT_STUB, message, where, "", _keys_of_result(call.tool))))
    return problems


def _keys_of_result(tool: str) -> str:
    """Return help that names the keys of a tool's results, those first that are always there."""
    from quire.plan.built_in_tools import RESULTS

    schema = RESULTS.get(tool, {})
    keys, always = schema.get("properties"), schema.get("required")
    if not isinstance(keys, Mapping) or not isinstance(always, list):
        return ""
    more = [key for key in keys if key not in always]
    optional = f", and may have {', '.join(more)}" if more else ""
    return f"a result has {', '.join(map(str, always))}{optional}"


def _no_answers(world: CaseWorld, case: Case) -> list[Problem]:
    """Return the questions that a run waits with, if that is why the case failed."""
    problems = []
    where = case.setting.spans.get("answers", case.span)
    for question in world.people.seen.values():
        if question.answer is None:
            message = f"step {question.way} asks, and no answer is given"
            help = f'add to answers: `"{question.way}": …`; or expect `status: awaiting_input`'
            problems.append(Problem(Diagnostic(codes.NO_ANSWER, message, where, "", help), question.prompt))
    return problems


def _unused(world: CaseWorld, case: Case) -> list[Problem]:
    findings = []
    for entry in world.model.replies.unused():
        message = "no call took this reply" + (f" of step {entry.step}" if entry.step else "")
        help = "remove it, or say `times: any` if it may stay unused" if entry.times == 1 else ""
        findings.append(Diagnostic(codes.UNUSED_REPLY, message, entry.span, "", help))
    for name, answer in world.people.answers.unused():
        where = answer.span if answer.span.end else case.setting.spans.get(f"answers.{name}", case.span)
        findings.append(Diagnostic(codes.UNUSED_ANSWER, f"no question took the answer to step {name}", where))
    for name, script in world.tools.scripts.unused():
        findings.append(Diagnostic(codes.UNUSED_TOOL, f"{name} was never called", script.span))
    return [Problem(finding) for finding in findings]
