"""Problems of a case: expectations that do not hold for its observation, calls without an answer in its scripts, and
answers without a call.

Two things are expected without being said: that the run completes, and that it gives no warning. An answer that was not
used is reported only if the case is fine otherwise: a failure makes many of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.diagnostics import Diagnostic
from quire.formats.test import codes
from quire.formats.test.expected import Check, Contains, Equal, Expect, Fields, Holds, Limit, Listed, Matcher
from quire.plan.built_in_tools import ALIASES
from quire.testing.case_results import Problem
from quire.testing.matchers import MISSING, Mismatch, Missing, Scope, Seen, holds, mismatch, shown
from quire.trust.capabilities import canonical, flat_name
from quire.values import encode
from quire.wording import cut, did_you_mean, nearest

if TYPE_CHECKING:
    from quire.diagnostics import Code
    from quire.formats.test.syntax import Case
    from quire.plan.pipeline_work import Formula
    from quire.source import Span
    from quire.testing.case_run import CaseWorld
    from quire.testing.matchers import Snapshots
    from quire.testing.observation import Observation, SeenCall
    from quire.values import Value

_BY_ID = {code.id: code for code in codes.codes()}


class Judging(Struct):
    """An observation, and everything that is needed to hold expectations against it."""

    observation: Observation
    where: Span
    """The place of the case: problems that no expectation names are shown there."""
    row: Mapping[str, Value]
    snapshots: Snapshots | None = None
    """Of the case; None where snapshots are not compared."""

    def scope(self) -> Scope:
        observation = self.observation
        calls: Value = [{"tool": call.tool, "arguments": dict(call.arguments)} for call in observation.calls]
        bindings: dict[str, Value] = {
            "row": dict(self.row),
            "inputs": dict(observation.inputs),
            "named": dict(observation.named),
            "stores": dict(observation.stores),
            "outputs": dict(observation.outputs),
            "calls": calls,
            "output": observation.output,
        }
        return Scope(bindings, self.snapshots)


def judge(expect: Expect | None, judging: Judging) -> list[Problem]:
    """Return the problems of an observation: expectations that fail, another status, warnings."""
    checks = expect.checks if expect else ()
    scope = judging.scope()
    problems = [problem for check in checks if (problem := _check(check, judging.observation, scope)) is not None]
    if not any(check.subject in ("status", "exit") for check in checks) and judging.observation.status != "completed":
        if judging.observation.status == "not_started":
            return [_not_completed(judging)]  # all the rest follows from it
        problems.insert(0, _not_completed(judging))
    problems += _warnings(checks, judging, scope)
    return problems


def always(formulas: Sequence[Formula], judging: Judging) -> list[Problem]:
    """Return the properties of the file that do not hold."""
    bindings = {**judging.scope().bindings, "value": judging.observation.output}
    mismatches = (holds(formula, formula.span, bindings) for formula in formulas)
    return [_problem(wrong, "always", code=codes.ALWAYS) for wrong in mismatches if wrong is not None]


def _check(check: Check, observation: Observation, scope: Scope) -> Problem | None:
    scope.place = f"{check.subject}.{check.name}" if check.name else check.subject
    match check.subject:
        case "that":
            assert isinstance(check.matcher, Holds)  # noqa: S101  # as the reader makes it
            wrong = holds(check.matcher.formula, check.span, {**scope.bindings, "value": observation.output})
            return _problem(wrong, "that") if wrong else None
        case "warnings":
            return None  # with those that were not expected
        case "events":
            return _events(check, observation, scope)
        case "refused":
            return _refused(check, observation)
        case "calls":
            return _calls(check, observation, scope)
        case "prompts":
            return _prompts(check, observation, scope)
    value = _value(check, observation)
    wrong = mismatch(check.matcher, value, scope)
    if wrong is None:
        return None
    if value is MISSING and wrong.message == "it is missing":
        wrong.message += _instead(check, observation)
    title = f"step {check.name}" if check.name and check.subject == "steps" else scope.place
    if check.subject in ("status", "exit") and observation.error is not None:
        return _problem(wrong, title, f"{observation.status}: {observation.error.get('message', '')}")
    return _problem(wrong, title, shown(value) if not isinstance(value, Missing) else "")


def seen_value(check: Check, observation: Observation) -> Seen:
    """Return the value that a check is about: the number of calls, the text of all prompts; `MISSING` if it is about
    more than one value."""
    if check.subject in ("that", "warnings", "events", "refused"):
        return MISSING
    if check.subject == "calls":
        return sum(not call.refused and _is_tool(call, check.name) for call in observation.calls)
    if check.subject == "prompts":
        return "\n\n".join(prompt.text for prompt in observation.prompts if not check.name or prompt.is_of(check.name))
    return _value(check, observation)


def _value(check: Check, observation: Observation) -> Seen:
    """Return the value that a check is about."""
    name = check.name
    match check.subject:
        case "status":
            return observation.status
        case "exit":
            return observation.exit
        case "output":
            return observation.output
        case "artifact":
            return observation.artifact
        case "error":
            return _error(check.matcher, observation)
        case "files":
            return MISSING if observation.files.get(name) is None else observation.files[name]
        case "asked":
            texts = [question.prompt for question in observation.asked if not name or question.is_of(name)]
            if isinstance(check.matcher, Listed):
                return list(texts)
            return "\n\n".join(texts) if texts else MISSING
        case "hooks":
            return observation.hooks.get(name, 0)
    table = _tables(observation)[check.subject]
    return dict(table) if not name else table.get(name, MISSING)


def _error(matcher: Matcher, observation: Observation) -> Seen:
    """Return the error: its message, or the whole if the expectation is a mapping of kind, message and step."""
    if observation.error is None:
        return MISSING
    if isinstance(matcher, Equal) and isinstance(matcher.value, Mapping):
        return {name: observation.error.get(name) for name in matcher.value}
    if isinstance(matcher, Fields):
        return {name: observation.error.get(name) for name, _ in matcher.fields}
    return str(observation.error.get("message", ""))


def _tables(observation: Observation) -> Mapping[str, Mapping[str, Value]]:
    return {
        "named": observation.named,
        "stores": observation.stores,
        "outputs": observation.outputs,
        "steps": observation.steps,
        "used": observation.used.as_value(),
    }


def _instead(check: Check, observation: Observation) -> str:
    """Name the existing names in place of a missing one."""
    names: list[str] = []
    if check.subject == "asked":
        names = list(dict.fromkeys(question.way for question in observation.asked))
    elif check.subject == "files":
        names = list(observation.files)
    elif check.subject in _tables(observation):
        names = list(_tables(observation)[check.subject])
    if not names:
        return ""
    return did_you_mean(nearest(check.name, names), f"; there are {', '.join(names[:10])}", lead="; ")


def _prompts(check: Check, observation: Observation, scope: Scope) -> Problem | None:
    """Check the prompts of a step: a list one by one, anything else against all of them as one text."""
    if not check.name:
        whole: dict[str, list[Value]] = {}
        for prompt in observation.prompts:
            whole.setdefault(prompt.way, []).append(prompt.text)
        wrong = mismatch(check.matcher, {**whole}, scope)
        return _problem(wrong, "prompts") if wrong else None
    prompts = [prompt.text for prompt in observation.prompts if prompt.is_of(check.name)]
    value: Seen = list(prompts) if isinstance(check.matcher, Listed) else "\n\n".join(prompts) if prompts else MISSING
    wrong = mismatch(check.matcher, value, scope)
    if wrong is None:
        return None
    if not prompts:
        steps = list(dict.fromkeys(prompt.way for prompt in observation.prompts))
        wrong.message = f"step {check.name} asked no model" + (f"; asked were {', '.join(steps)}" if steps else "")
    return _problem(wrong, f"the prompt of step {check.name}", "\n\n".join(prompts))


def _calls(check: Check, observation: Observation, scope: Scope) -> Problem | None:
    """Check the calls of a tool: their number, the arguments of each, or those of some call."""
    matcher = check.matcher
    calls = [call for call in observation.calls if not call.refused and _is_tool(call, check.name)]
    arguments: list[Value] = [dict(call.arguments) for call in calls]
    if _counts(matcher):
        wrong = mismatch(matcher, len(calls), scope)
    elif isinstance(matcher, Listed) or (isinstance(matcher, Equal) and isinstance(matcher.value, list | tuple)):
        wrong = mismatch(matcher, arguments, scope)
    else:
        reasons = [mismatch(matcher, argument, scope) for argument in arguments]
        if any(reason is None for reason in reasons):
            return None
        wrong = reasons[0] if len(reasons) == 1 else Mismatch("no call has such arguments", check.span)
        wrong = wrong or Mismatch("it was never called", check.span)
    if wrong is None:
        return None
    value = "\n".join(f"{call.name} {encode(dict(call.arguments))}" for call in calls)
    return _problem(wrong, f"the calls of {check.name}", value)


def _counts(matcher: Matcher) -> bool:
    if isinstance(matcher, Equal):
        return isinstance(matcher.value, int) and not isinstance(matcher.value, bool)
    inner = getattr(matcher, "matchers", ())
    return isinstance(matcher, Limit) or (bool(inner) and all(isinstance(part, Limit) for part in inner))


def _is_tool(call: SeenCall, name: str) -> bool:
    tool_id = ALIASES.get(name, name)
    if call.tool in (tool_id, canonical(name)) or name in (call.name, flat_name(call.tool)):
        return True
    if not call.tool.startswith(("mcp/", "python/")):
        return False
    place, _, tool = call.tool.partition("/")[2].rpartition("/")
    return name in (f"{place}/{tool}", f"{place}__{tool}", f"{place}.{tool}", tool)


def _refused(check: Check, observation: Observation) -> Problem | None:
    expected = check.matcher.value if isinstance(check.matcher, Equal) else []
    names = [str(name) for name in expected] if isinstance(expected, list | tuple) else [str(expected)]
    missing = [name for name in names if name not in observation.refused]
    more = [name for name in observation.refused if name not in names]
    if not missing and not more:
        return None
    reasons = [f"{name} was not refused" for name in missing] + [f"{name} was refused as well" for name in more]
    wrong = Mismatch("; ".join(reasons), check.matcher.span)
    return _problem(wrong, "refused", "\n".join(observation.refused) or "nothing was refused")


def _events(check: Check, observation: Observation, scope: Scope) -> Problem | None:
    """Check that there is an event for each matcher, in their order."""
    left: Iterator[Mapping[str, Value]] = (event.as_json() for event in observation.events)
    for matcher in _each(check.matcher):
        if not any(_event_fits(matcher, event, scope) for event in left):
            wrong = Mismatch("no such event occurred, or not after the one before", matcher.span)
            return _problem(wrong, "events")
    return None


def _event_fits(matcher: Matcher, event: Mapping[str, Value], scope: Scope) -> bool:
    """Tell whether an event matches: a mapping means the keys that it has, a text the type."""
    if isinstance(matcher, Equal) and isinstance(matcher.value, Mapping):
        matcher = Contains((matcher.value,), span=matcher.span)
    value: Value = event["type"] if isinstance(matcher, Equal) and isinstance(matcher.value, str) else dict(event)
    return mismatch(matcher, value, scope) is None


def _warnings(checks: Sequence[Check], judging: Judging, scope: Scope) -> list[Problem]:
    """Return the warnings that no expectation matches, and the expectations that no warning matches."""
    matchers = [matcher for check in checks if check.subject == "warnings" for matcher in _each(check.matcher)]
    left = [message for _, message in judging.observation.warnings]
    problems: list[Problem] = []
    for matcher in matchers:
        fitting = next((message for message in left if mismatch(matcher, message, scope) is None), None)
        if fitting is None:
            wrong = Mismatch("no such warning was given", matcher.span)
            messages = [message for _, message in judging.observation.warnings]
            problems.append(_problem(wrong, "warnings", "\n".join(messages) or "no warnings"))
        else:
            left.remove(fitting)
    where = next((check.span for check in checks if check.subject == "warnings"), judging.where)
    for message in left:
        step = next((label for label, text in judging.observation.warnings if text == message), "")
        place = f"step {step} warned" if step else "the run warned"
        help = "expect it: `warnings: [{contains: …}]`; or mend the document"
        problems.append(Problem(Diagnostic(codes.UNEXPECTED_WARNING, f"{place}: {message}", where, "", help)))
    return problems


def _each(matcher: Matcher) -> list[Matcher]:
    """Return the matchers of a list, however the reader has kept it."""
    if isinstance(matcher, Listed):
        return list(matcher.matchers)
    if isinstance(matcher, Equal) and isinstance(matcher.value, list | tuple):
        return [Equal(value, matcher.span) for value in matcher.value]
    return [matcher]


def _not_completed(judging: Judging) -> Problem:
    observation = judging.observation
    error, step = (str((observation.error or {}).get(name, "")) for name in ("message", "step"))
    where = f" at step {step}" if step else ""
    message = f"the run is {observation.status.replace('_', ' ')}{where}"
    if observation.status == "not_started":
        return Problem(Diagnostic(codes.CANNOT_START, "the run could not be started", judging.where), error)
    help = f"expect it: `status: {observation.status}`" if observation.status != "interrupted" else ""
    return Problem(Diagnostic(codes.EXPECTATION, message, judging.where, "", help), error)


def _problem(wrong: Mismatch, title: str, value: str = "", code: Code = codes.EXPECTATION) -> Problem:
    finding = Diagnostic(_BY_ID.get(wrong.code, code), f"{title}: {wrong.message}", wrong.span)
    return Problem(finding, value, wrong.parts, wrong.expected, wrong.actual)


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
    for call, entry in world.model.missing:
        where = entry[0].span if entry else case.setting.model.span if case.setting.model else case.span
        example = f'"{call.way}": …' if call.turn is None else f"- {{turn: {call.turn}, reply: …}}"
        help = f"the nearest entry does not fit: {entry[1]}" if entry else f"add to model: `{example}`"
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
    """Return help that names the keys of a tool's results, those first that are always present."""
    from quire.plan.built_in_tools import RESULTS

    schema = RESULTS.get(tool, {})
    keys, always = schema.get("properties"), schema.get("required")
    if not isinstance(keys, Mapping) or not isinstance(always, list):
        return ""
    more = [key for key in keys if key not in always]
    optional = f", and may have {', '.join(more)}" if more else ""
    return f"a result has {', '.join(map(str, always))}{optional}"


def _no_answers(world: CaseWorld, case: Case) -> list[Problem]:
    """Return the questions that a run is waiting for, if that is why the case failed."""
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
