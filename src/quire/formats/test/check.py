"""Check a test file: by its text alone, and against the plan of its document.

A test names the steps of a document and of its callees by label, by the way to them, or by path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from quire.diagnostics import Code, Diagnostic
from quire.formats.test import codes as all_codes
from quire.formats.test.codes import codes
from quire.formats.test.expected import Absent, Equal, Limit
from quire.formats.test.parse import parse
from quire.formats.test.syntax import Act, ActKind
from quire.patterns import late_pattern
from quire.plan.built_in_tools import ALIASES
from quire.plan.nodes import Plan, Step, UseTool
from quire.plan.pipeline_work import Agent, ForEach, Invoke, Literal, Parallel
from quire.plan.reach import Reached, reached_steps
from quire.plan.thread import Thread
from quire.plan.uses import OWN, OWN_TOOLS
from quire.plan.vocabulary import JOINT, last_label
from quire.wording import Suggestions, did_you_mean, first_of, quoted

if TYPE_CHECKING:
    from quire.formats.test.expected import Check, Expect
    from quire.formats.test.syntax import Case, GivenAnswer, Script, Setting, TestFile, ToolScript
    from quire.source import Source, Span


__all__ = ["check", "check_against", "codes"]

_SEPARATORS = late_pattern(r"[/._-]+")
_ROW = "{row."
_PLACES = {"playbook": "named", "pipeline": "stores", "directive": "outputs"}
"""The subject that has the values of each format."""
_MOST_NAMED = 12


def check(source: Source) -> tuple[Diagnostic, ...]:
    """Return all findings about the text of a test file."""
    return parse(source).diagnostics


def check_against(
    file: TestFile, plan: Plan, callees: Mapping[str, Plan], system: str | None = None
) -> list[Diagnostic]:
    """Return the findings that need the document of a test: names of steps, tools and values that it does not have.

    `callees` are the documents that it can call, by name. `system` has the system texts of all profiles; without it,
    texts that no prompt contains are not reported.
    """
    checks = _Checks(plan, callees, system)
    for case in file.cases:
        checks.case(case)
        if not file.always and not _says_something(case):
            checks.expects_nothing(case)
    return sorted(checks.found.values(), key=lambda finding: finding.span.start)


class _Checks:
    def __init__(self, plan: Plan, callees: Mapping[str, Plan], system: str | None) -> None:
        self.found: dict[tuple[str, int, str], Diagnostic] = {}
        """By code, place and message: each case repeats the findings about the defaults."""
        self._plan = plan
        self._steps = DocumentSteps(plan, callees)
        self._suggestions = Suggestions.wide()
        self._at_a_time = self._steps.at_a_time()
        self._tools = self._steps.tools()
        self._system = system
        self._prompts = self._steps.fixed_prompts() if system is not None else None

    def _report(self, code: Code, message: str, span: Span, help: str = "") -> None:
        self.found.setdefault((code.id, span.start, message), Diagnostic(code, message, span, "", help))

    def case(self, case: Case) -> None:
        setting = case.setting
        self._script(setting.model, setting.spans, case)
        self._answers(setting.answers, setting.spans, case)
        self._tool_scripts(setting.tools, setting)
        self._expect(case.expect, case)
        for act in case.then:
            if act.kind is ActKind.EDIT:
                return  # the steps that come then are those of another text
            self._act(act, case)

    def expects_nothing(self, case: Case) -> None:
        prompted = self._steps.model_steps()
        help = f'look at the prompts, at least: `prompts: {{"{prompted[0]}": {{contains: …}}}}`' if prompted else ""
        message = f"the case {quoted(case.name)} expects nothing but that the run completes"
        self._report(all_codes.ASSERTS_NOTHING, message, case.span, help)

    def _act(self, act: Act, case: Case) -> None:
        self._script(act.model, {}, case)
        self._answers(act.answers, {}, case)
        self._tool_scripts(act.tools, None)
        self._expect(act.expect, case)
        label = act.options.get("from")
        if act.kind is ActKind.FORK and isinstance(label, str):
            self._known(label, act.span)

    def _known(self, name: str, span: Span) -> bool:
        """Tell whether a step is known, and report it otherwise. A name from a row is known when the case runs."""
        if _ROW in name:
            return False
        if self._steps.is_known(name):
            return True
        if self._plan.thread:
            help = "the steps of a directive are turn 1, turn 2, …"
        else:
            names = self._steps.names
            listed = ", ".join(first_of(names, _MOST_NAMED))
            help = did_you_mean(self._suggestions.nearest(name, names), f"the steps are {listed}")
        self._report(all_codes.UNKNOWN_STEP, f"unknown step {quoted(name)}", span, help)
        return False

    def _script(self, script: Script | None, spans: Mapping[str, Span], case: Case) -> None:
        if script is None:
            return
        for entry in script.entries:
            span = spans.get(f"model.{entry.step}", entry.span) if script.by_step else entry.span
            if entry.step and self._known(entry.step, span) and not self._steps.asks_model(entry.step):
                self._asks_no_model(entry.step, span)
            if entry.contains:
                self._check_contained(entry.contains, entry.span)
        self._order(script)

    def _asks_no_model(self, name: str, span: Span) -> None:
        below = self._steps.asks_below(name)
        help = f"steps inside of it that do: {', '.join(first_of(below, 5))}" if below else ""
        help = help or _those_that("ask a model", self._steps.model_steps())
        self._report(all_codes.UNKNOWN_STEP, f"step {name} asks no model itself", span, help)

    def _order(self, script: Script) -> None:
        """Report replies in order that calls of a fan could get in any order."""
        ordered = [entry for entry in script.entries if entry.in_order]
        said = [(entry.reply, entry.calls, entry.error, entry.crash) for entry in ordered]
        if all(reply == said[0] for reply in said):
            return
        named = {entry.step for entry in script.entries if entry.step}
        free = [label for label in self._at_a_time if label not in named]
        if free:
            message = f"step {free[0]} asks the model several things at a time, so the order of replies is not decided"
            help = f"write {{step: {free[0]}, item: 0, reply: …}}, or contains instead of item"
            self._report(all_codes.ORDER_IN_FAN, message, ordered[0].span, help)

    def _check_contained(self, text: str, span: Span) -> None:
        if self._prompts is None or _ROW in text or text in (self._system or ""):
            return
        if not any(text in prompt for prompt in self._prompts):
            message = f"no prompt of the document contains {quoted(text)}"
            self._report(all_codes.IMPOSSIBLE_CONTAINS, message, span, "its prompts are fixed texts without values")

    def _answers(self, answers: Mapping[str, tuple[GivenAnswer, ...]], spans: Mapping[str, Span], case: Case) -> None:
        for name, several in answers.items():
            span = spans.get(f"answers.{name}") or (several[0].span if several else case.span)
            self._asks(name, span, case)

    def _asks(self, name: str, span: Span, case: Case) -> None:
        """Report a step that never asks a person."""
        if self._known(name, span) and not self._steps.asks_person(name) and not self._may_be_uncertain(name, case):
            help = _those_that("ask", self._steps.person_steps())
            self._report(all_codes.NEVER_ASKS, f"step {name} never asks a person", span, help)

    def _may_be_uncertain(self, name: str, case: Case) -> bool:
        """Tell whether a run may ask what became of an effect that was under way when its process died."""
        effects = any(isinstance(step.work, UseTool | Invoke) for step in self._steps.steps(name))
        return effects and ("runs" in case.setting.config or bool(case.then))

    def _tool_scripts(self, tools: Mapping[str, ToolScript], setting: Setting | None) -> None:
        for name, script in tools.items():
            span = setting.spans.get(f"tools.{name}", script.span) if setting else script.span
            self._tool(name, span)

    def _tool(self, name: str, span: Span) -> None:
        if any(_is_same(name, tool) for tool in self._tools):
            return
        nearest = self._suggestions.nearest(name, self._tools)
        if nearest is None and self._steps.models_call_tools():
            return
        if name in ALIASES.values() or (name in ALIASES and self._steps.models_call_tools()):
            return
        listed = f"it calls {', '.join(first_of(self._tools, _MOST_NAMED))}" if self._tools else "it calls no tools"
        message = f"the document never calls the tool {quoted(name)}"
        self._report(all_codes.UNKNOWN_TOOL, message, span, did_you_mean(nearest, listed))

    def _expect(self, expect: Expect | None, case: Case) -> None:
        for check in expect.checks if expect else ():
            if not check.name or isinstance(check.matcher, Absent):
                continue
            match check.subject:
                case "steps":
                    self._known(check.name, check.span)
                case "prompts":
                    never = not self._steps.asks_model(check.name) and not self._steps.asks_below(check.name)
                    if self._known(check.name, check.span) and never and not self._steps.is_open:
                        self._asks_no_model(check.name, check.span)
                case "asked":
                    self._asks(check.name, check.span, case)
                case "calls":
                    if not _is_none(check):
                        self._tool(check.name, check.span)
                case "named" | "stores" | "outputs":
                    self._made(check, case)

    def _made(self, check: Check, case: Case) -> None:
        """Report a value that the document never makes."""
        right = _PLACES[self._plan.format]
        if check.subject != right:
            message = f"a {self._plan.format} has no {check.subject}"
            self._report(all_codes.NEVER_MADE, message, check.span, f"its values are in {right}")
            return
        names = self._values(case)
        if names is None or check.name in names:
            return
        listed = f"it makes {', '.join(first_of(names, _MOST_NAMED))}" if names else "it gives no value a name"
        message = f"the document never makes {quoted(check.name)}"
        help = did_you_mean(self._suggestions.nearest(check.name, names), listed)
        self._report(all_codes.NEVER_MADE, message, check.span, help)

    def _values(self, case: Case) -> list[str] | None:
        """Return the names of the values that a run can have; None if they are not known before it."""
        plan = self._plan
        if plan.thread is not None:
            named = [output.name for output in plan.thread.outputs]
            return named if named and not plan.thread.extends else None
        names = [*(input.name for input in plan.inputs), *(field.name for field in plan.declared or ())]
        return [*plan.written, *names, *case.setting.inputs]


def _those_that(do: str, names: list[str]) -> str:
    return f"steps that {do}: {', '.join(first_of(names, _MOST_NAMED))}" if names else f"no step can {do}"


def _is_same(name: str, tool: str) -> bool:
    """Tell whether two names may mean the same tool: names of servers and packages may be left out."""
    first, second = _folded(name), _folded(tool)
    return first[-len(second) :] == second or second[-len(first) :] == first


def _folded(name: str) -> list[str]:
    return [part for part in _SEPARATORS.split(ALIASES.get(name, name).lower()) if part]


def _is_none(check: Check) -> bool:
    """Tell whether a check says that a tool is not called."""
    match check.matcher:
        case Equal(value=value):
            return value == 0
        case Limit(bound=bound, least=least):
            return not least and bound < 1
    return False


def _says_something(case: Case) -> bool:
    """Tell whether a case can fail where its run completes, or is not meant to say anything yet."""
    if case.draft or case.skip is not None or case.crash_everywhere or case.live or case.setting.cassette:
        return True
    scripts = [case.setting.model, *(act.model for act in case.then)]
    if any(entry.contains for script in scripts if script is not None for entry in script.entries):
        return True  # a prompt without that text gets no reply
    expects = [case.expect, *(act.expect for act in case.then)]
    # Every case expects that the run completes.
    usual = (("status", "completed"), ("exit", 0))
    return any(
        not (isinstance(check.matcher, Equal) and (check.subject, check.matcher.value) in usual)
        for expect in expects
        if expect
        for check in expect.checks
    )


_TURN = late_pattern(r"turn [1-9][0-9]*|(?:.* )?start")
"""A turn of a thread, or a question before its first turn."""


class DocumentSteps:
    """Answers questions about names of steps. A name that only a run can know counts as known."""

    def __init__(self, plan: Plan, callees: Mapping[str, Plan]) -> None:
        self.plan = plan
        self._callees = callees
        self._reached: dict[str, list[Reached]] = {}
        for step in reached_steps(plan, callees):
            self._reached.setdefault(step.name, []).append(step)
            if JOINT in step.name:
                self._reached.setdefault(last_label(step.name), []).append(step)
        self._threads = any(document.thread for document in (plan, *callees.values()))
        self.is_open = self._calls_unknown() or self._thread_calls()

    def _calls_unknown(self) -> bool:
        """Tell whether a step calls a document that is not among the callees."""
        names = [call.document for _, step in self._all() for call in step.calls()]
        for _, step in self._all():
            match step.work:
                case UseTool(connection=place, tool=tool) if place == OWN:
                    names += [tool] if tool not in OWN_TOOLS and tool not in ALIASES else []
        return any(name not in self._callees for name in names)

    def _thread_calls(self) -> bool:
        """Tell whether a model may call documents that are not known before a run."""
        threads = [step.work for _, step in self._all() if isinstance(step.work, Thread)]
        return any(
            thread.extends or "*" in capability or ".tool." not in capability
            for thread in threads
            for capability in [*(permission.capability for permission in thread.permissions), ".tool."]
        )

    def _all(self) -> Iterator[tuple[str, Step]]:
        for plan in (self.plan, *self._callees.values()):
            yield from plan.steps()

    @property
    def names(self) -> list[str]:
        return list(self._reached)

    def steps(self, name: str) -> list[Step]:
        """Return the steps that a name means; none for one that is not known."""
        return [reached.step for reached in self._reached.get(name, ())]

    def is_known(self, name: str) -> bool:
        """Tell whether a name is one of a step, or may be one."""
        if name in self._reached or "/" in name or "[" in name:
            return True
        if self._threads and _TURN.fullmatch(last_label(name)):
            return True
        return self.is_open

    def asks_model(self, name: str) -> bool:
        """Tell whether a step asks a model itself."""
        steps = self.steps(name)
        return not steps or any(step.work is not None and step.work.asks_model for step in steps)

    def model_steps(self) -> list[str]:
        """Return the names of the steps that ask a model."""
        return [name for name in self._reached if self.asks_model(name)]

    def person_steps(self) -> list[str]:
        """Return the names of the steps that may ask a person."""
        return [name for name in self._reached if self.asks_person(name)]

    def asks_below(self, name: str) -> list[str]:
        """Return the labels of steps that ask a model, among a step and the steps inside of it."""
        return [label for step in self.steps(name) for label in self._asking(step, ())]

    def asks_person(self, name: str) -> bool:
        """Tell whether a step may ask a person."""
        steps = self.steps(name)
        return not steps or any(map(self._may_ask, steps))

    def _may_ask(self, step: Step) -> bool:
        if step.ask is not None or step.calls() or isinstance(step.work, Agent | Thread):
            return True
        match step.work:
            case Invoke(tool=tool):
                return tool == "ask"
            case UseTool(connection=place, tool=tool):
                return place == OWN and (tool == "ask" or tool in self._callees)
        return False

    def at_a_time(self) -> list[str]:
        """Return the labels of the steps that may ask a model while another call of a model is under way."""
        return list(dict.fromkeys(label for plan in (self.plan, *self._callees.values()) for label in self._fans(plan)))

    def _fans(self, plan: Plan) -> Iterator[str]:
        for _, step in plan.steps():
            match step.work:
                case ForEach(do=do, max_parallel=most, source=source):
                    single = isinstance(source, Literal) and isinstance(source.value, list) and len(source.value) < 2
                    yield from self._asking(do, ()) if most > 1 and not single else ()
                case Parallel(branches=branches):
                    asking = [self._asking(branch, ()) for _, branch in branches]
                    if sum(map(bool, asking)) > 1:
                        yield from (label for labels in asking for label in labels)

    def _asking(self, step: Step, callers: tuple[str, ...]) -> list[str]:
        """Return the labels of the steps that ask a model, inside of a step and of the documents that it calls."""
        labels = [step.label] if step.work is not None and step.work.asks_model else []
        inner = [part for _, part in step.work.parts()] if step.work else []
        inner += [inner_step for case in (step.match.cases if step.match else ()) for inner_step in case.body.steps]
        for part in inner:
            labels += self._asking(part, callers)
        names = [call.document for call in step.calls()]
        match step.work:
            case UseTool(connection=place, tool=tool) if place == OWN:
                names.append(tool)
        for name in names:
            callee = self._callees.get(name)
            if callee is not None and name not in callers:
                for inner_step in callee.body.steps:
                    labels += self._asking(inner_step, (*callers, name))
        return labels

    def tools(self) -> list[str]:
        """Return the names of the tools that steps call themselves."""
        calls = (call for _, step in self._all() if step.work for call in step.work.tool_calls())
        return list(dict.fromkeys(f"{place}/{tool}" if place and place != OWN else tool for place, tool in calls))

    def models_call_tools(self) -> bool:
        """Tell whether a model may call tools that no step names."""
        formats = {plan.format for plan in (self.plan, *self._callees.values())}
        if self.is_open or formats != {"pipeline"}:
            return True
        return any(isinstance(step.work, Agent) and step.work.tools != () for _, step in self._all())

    def fixed_prompts(self) -> list[str] | None:
        """Return the prompts of the document; None if one of them is known only in a run."""
        if self.is_open or self._threads or self.plan.format != "pipeline" or self._callees:
            return None
        prompts: list[str] = []
        for _, step in self.plan.steps():
            match step.work:
                case Agent(prompt=prompt, file="", schema=None, identity=None):
                    if any(prompt.references()) or (step.work.tools is None or step.work.tools):
                        return None
                    prompts.append("".join(part for part in prompt.parts if isinstance(part, str)))
                case Agent():
                    return None
        return prompts
