"""Decisions of a document: every way in which its runs can differ, each with a stable id, a label and a place.

Coverage counts decisions, not lines: a line of prose that ran says little, but an arm that never ran, an answer that
no test gives and a prompt that no test looks at are gaps that an author can close. Decisions of a called document
belong to the file of the called document, so they are not listed for its callers.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quire.formats.directive.parse import parse as parse_directive
from quire.formats.directive.syntax import Combined, Condition
from quire.formats.playbook.parse import parse as parse_playbook
from quire.plan.descriptions import condition, written
from quire.plan.thread import THREAD_PATH, Hook, HookAction
from quire.plan.vocabulary import CONTROL, HOOK_EVENTS, LIMIT_ALIASES
from quire.source import NOWHERE, Source, Span
from quire.trust.capabilities import canonical
from quire.values import Value, encode
from quire.wording import cut

if TYPE_CHECKING:
    from quire.formats.directive.syntax import Directive, Test
    from quire.library.document import Document
    from quire.plan.nodes import Match, Plan, Step
    from quire.plan.thread import Thread

Kind = typing.Literal["steps", "arms", "answers", "fans", "errors", "conditions", "hooks", "grants", "prompts"]
KINDS: tuple[Kind, ...] = typing.get_args(Kind)


class Decision(Struct, frozen=True):
    """One way in which a run can go."""

    kind: Kind
    place: str
    """The path of the step in the plan: `2`, `3/case[1]/1`, `1/for_each`, `thread`; `weigh>1` in a file of several
    pipelines."""
    choice: str
    """The question that is decided there, such as `arm`, `ask` or `when[2]`; empty for steps and prompts."""
    way: str
    """This way of deciding it: `1`, `else`, `yes`, `true`."""
    label: str
    """In the words of the author: `step 3: else`."""
    span: Span = NOWHERE

    @property
    def block(self) -> str:
        """The decisions with the same block exclude each other in one evaluation."""
        return decision_id(self.kind, self.place, self.choice)

    @property
    def id(self) -> str:
        return decision_id(self.kind, self.place, self.choice, self.way)


def decision_id(kind: Kind, place: str, choice: str = "", way: str = "") -> str:
    """Return the id of a decision. It is built from positions, so that a renamed title does not change it."""
    return f"{kind}:{place}" + (f":{choice}" if choice else "") + (f"={way}" if way else "")


def document_decisions(document: Document) -> tuple[Decision, ...]:
    """Return the decisions of a document, with those of the pipelines of its file that it calls."""
    from quire.testing.coverage.taken import file_pipelines

    parts = file_pipelines(document)
    return tuple(decision for part in parts for decision in decisions_of(part.plan, document.source, part.prefix))


def decisions_of(plan: Plan, source: Source, prefix: str = "") -> tuple[Decision, ...]:
    """Return the decisions of a plan, in the order of its steps. `source` is the text of its whole file; `prefix`
    begins their places, in a file of several pipelines."""
    if plan.thread is not None:
        return tuple(_thread_decisions(plan.thread, source))
    if plan.format == "playbook":
        return tuple(_playbook_decisions(plan, source))
    from quire.testing.coverage.pipeline_decisions import pipeline_decisions

    return tuple(pipeline_decisions(plan, source, prefix))


UNATTENDED = "unattended"
"""The author of an answer that a run gave itself."""


def answers(
    place: str,
    label: str,
    kind: Literal["input", "confirm", "select"],
    options: Sequence[tuple[str, Span]],
    default: bool,
    span: Span,
) -> Iterator[Decision]:
    """Yield the answers to a question. `options` are those that the document lists, with their places.

    A confirmation has two ways and a select one for each option. Free text has one: that it was answered. If the
    document names a default, then the run in which no person is asked is a further way.
    """

    def decision(way: str, words: str, at: Span = span) -> Decision:
        return Decision("answers", place, "ask", way, f"step {label} {words}", at)

    if kind == "confirm":
        yield decision("yes", "answered yes")
        yield decision("no", "answered no")
    elif kind == "select" and options:
        for number, (option, at) in enumerate(options, 1):
            yield decision(str(number), f"answered {cut(option, 40, 37)}", at)
    else:
        yield decision("text", "answered")
    if default:
        yield decision(UNATTENDED, "without a person: its default")


def way_of_answer(place: str, answer: str, by: str, kind: str, options: Sequence[str], listed: bool) -> list[str]:
    """Return the ids of the decisions that an answer takes. `listed` says that the document lists the options."""
    if kind == "confirm":
        way = answer
    elif kind == "select" and listed and answer in options:
        way = str(options.index(answer) + 1)
    else:
        way = "text"
    taken = [way] + ([UNATTENDED] if by == UNATTENDED else [])
    return [decision_id("answers", place, "ask", choice) for choice in taken]


def _playbook_decisions(plan: Plan, source: Source) -> Iterator[Decision]:
    playbook = parse_playbook(source).playbook
    top = playbook.steps if playbook else ()
    inner = (step for parent in top for arm in parent.arms for step in arm.steps)
    trees = {step.start: step for step in (*top, *inner)}
    for path, step in plan.steps():
        tree = trees.get(step.span.start)
        name = f"step {step.label}"
        yield Decision("steps", path, "", "", f"{name}: {step.title}" if step.title else name, step.span)
        if step.work is not None and step.work.asks_model:
            yield Decision("prompts", path, "", "", f"{name}: its prompt is looked at", step.span)
        if step.ask is not None:
            place = tree.elicitation.span if tree and tree.elicitation else step.span
            options = [(written(option), place) for option in step.ask.options]
            yield from answers(path, step.label, step.ask.kind, options, step.ask.default is not None, place)
        if step.match is not None:
            yield from _branches(path, step, step.match, [arm.span for arm in tree.arms] if tree else [])


def _branches(path: str, step: Step, match: Match, spans: list[Span]) -> Iterator[Decision]:
    name = f"step {step.label}"
    for number, case in enumerate(match.cases, 1):
        span = spans[number - 1] if len(spans) >= number else step.span
        if case.test is None:
            yield Decision("arms", path, "arm", str(number), f"{name}: else", span)
            return  # an arm after `else` never runs
        test = condition(case.test)
        word = "if" if number == 1 else "elif"
        yield Decision("arms", path, "arm", str(number), f"{name}: {word} {test}", span)
        for way in ("true", "false"):
            yield Decision("conditions", path, f"if[{number}]", way, f"{name}: `{test}` {way}", span)
    last = spans[-1] if spans else step.span
    yield Decision("arms", path, "arm", "none", f"{name}: no branch (without else)", last)


def _thread_decisions(thread: Thread, source: Source) -> Iterator[Decision]:
    tree = parse_directive(source).partial
    at = tree.name.span if tree.name else tree.root
    yield Decision("steps", THREAD_PATH, "", "", f"thread {thread.name}", at)
    yield Decision("prompts", THREAD_PATH, "", "", "a prompt of the thread is looked at", at)
    place = tree.permissions.span if tree.permissions else at
    yield Decision("errors", THREAD_PATH, "call", "refused", "a call is refused", place)
    for number, granted in enumerate(thread.permissions, 1):
        label = f"{granted.capability} is used"
        yield Decision("grants", THREAD_PATH, f"grant[{number}]", "used", label, granted.span)
    limits = {LIMIT_ALIASES.get(name, name): text.span for name, text in tree.limits or ()}
    cost = tree.cost.span if tree.cost else at
    for name in counted_limits(thread):
        label = f"the limit {name} is reached"
        yield Decision("hooks", THREAD_PATH, f"limit[{name}]", "reached", label, limits.get(name, cost))
    for number, hook in enumerate(thread.hooks, 1):
        yield from _hook(number, hook, tree)


def counted_limits(thread: Thread) -> list[str]:
    """Return the names of the limits that a thread of this directive can reach. The limit of depth is reached by its
    children, unless it allows none."""
    return [
        name
        for name, value in thread.limits.items()
        if name != "spend_currency" and value is not None and (name != "depth" or value == 0)
    ]


def _hook(number: int, hook: Hook, tree: Directive) -> Iterator[Decision]:
    event = HOOK_EVENTS.get(hook.event)
    if event is None or not event.sent:
        return  # it never happens here
    name = f"hook {hook.id or number} at {hook.event}"
    own = tree.hooks[number - 1] if len(tree.hooks) >= number else None
    trees = own.actions if own else ()
    for index, action in enumerate(hook.actions, 1):
        span = trees[index - 1].span if len(trees) >= index else hook.span
        label = f"{name}: {_words(action)}"
        yield Decision("hooks", THREAD_PATH, f"hook[{number}]/action[{index}]", "done", label, span)
    if any(asks(action) for action in hook.actions):
        for way in ("yes", "no") if hook.event != "limit" else ("more", "no"):
            label = f"hook {hook.id or number} answered {'with a higher limit' if way == 'more' else way}"
            yield Decision("answers", THREAD_PATH, f"hook[{number}]/ask", way, label, hook.span)
    places = list(_places(own.tests, own.span)) if own else []
    for index, test in enumerate(condition_parts(hook.condition), 1):
        span = places[index - 1] if len(places) >= index else hook.span
        for way in ("true", "false"):
            label = f"{name}: `{_condition_text(test)}` {way}"
            yield Decision("conditions", THREAD_PATH, f"hook[{number}]/if[{index}]", way, label, span)


def asks(action: HookAction) -> bool:
    """Tell whether an action of a hook asks a person how the thread continues."""
    return canonical(action.item_id) == CONTROL and dict(action.parameters).get("action") in ("escalate", "suspend")


def _words(action: HookAction) -> str:
    """Describe an action: the decision of a hook that decides, else the item that it asks for."""
    decision = dict(action.parameters).get("action")
    if canonical(action.item_id) == CONTROL and isinstance(decision, str):
        return decision
    return " ".join(part for part in (action.primary, action.item_type, action.item_id) if part)


def condition_parts(condition: Mapping[str, Value]) -> list[Mapping[str, Value]]:
    """Return the parts of a condition that are true or false by themselves: tests, and `any` and `all` as a whole."""
    parts: list[Mapping[str, Value]] = []
    stack: list[Value] = [condition]
    while stack:
        part = stack.pop()
        if not isinstance(part, Mapping):
            continue
        lists = (part.get(name) for name in ("any", "all"))
        combined = [inner for listed in lists if isinstance(listed, list | tuple) for inner in listed]
        if combined or "path" in part or "op" in part:
            parts.append(part)
        stack.extend(reversed([*combined, *([part["not"]] if "not" in part else [])]))
    return parts


def _places(tests: Sequence[Test], around: Span) -> Iterator[Span]:
    """Yield the places of the tests of a hook, in the order of `condition_parts`. Several tests are an `all`."""
    if len(tests) > 1:
        yield around
    for test in tests:
        yield from _places_of(test)


def _places_of(test: Test) -> Iterator[Span]:
    if isinstance(test, Combined) and test.kind == "not":
        yield from _places(test.parts, test.span)
        return
    if isinstance(test, Condition) or test.parts:
        yield test.span
    for part in test.parts if isinstance(test, Combined) else ():
        yield from _places_of(part)


def _condition_text(test: Mapping[str, Value]) -> str:
    if "path" in test or "op" in test:
        value = f" {encode(test['value'])}" if "value" in test else ""
        return cut(f"{test.get('path', '')} {test.get('op', 'eq')}{value}", 60, 57)
    return "any" if "any" in test else "all"
