"""Decisions of a directive: its hooks and their conditions, its limits, its permissions, a refused call, its prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.formats.directive.parse import parse
from quire.formats.directive.syntax import Combined, Condition
from quire.plan.thread import THREAD_PATH, Hook, HookAction
from quire.plan.vocabulary import CONTROL, HOOK_EVENTS, LIMIT_ALIASES
from quire.testing.coverage.decisions import Decision
from quire.trust.capabilities import canonical
from quire.values import Value, encode
from quire.wording import cut

if TYPE_CHECKING:
    from quire.formats.directive.syntax import Directive, Test
    from quire.plan.nodes import Plan
    from quire.plan.thread import Thread
    from quire.source import Source, Span


def thread_decisions(plan: Plan, source: Source) -> Iterator[Decision]:
    thread = plan.thread
    if thread is None:
        return
    tree = parse(source).partial
    at = tree.name.span if tree.name else tree.root
    yield Decision("steps", THREAD_PATH, "", "", f"thread {thread.name}", at)
    yield Decision("prompts", THREAD_PATH, "", "", "a prompt of the thread is looked at", at)
    place = tree.permissions.span if tree.permissions else at
    yield Decision("errors", THREAD_PATH, "call", "refused", "a call is refused", place)
    for number, granted in enumerate(thread.permissions, 1):
        label = f"{granted.capability} is used"
        yield Decision("grants", THREAD_PATH, f"grant[{number}]", "used", label, granted.span)
    yield from _limits(thread, tree, at)
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


def _limits(thread: Thread, tree: Directive, otherwise: Span) -> Iterator[Decision]:
    written = {LIMIT_ALIASES.get(name, name): text.span for name, text in tree.limits or ()}
    cost = tree.cost.span if tree.cost else otherwise
    for name in counted_limits(thread):
        label = f"the limit {name} is reached"
        yield Decision("hooks", THREAD_PATH, f"limit[{name}]", "reached", label, written.get(name, cost))


def _hook(number: int, hook: Hook, tree: Directive) -> Iterator[Decision]:
    event = HOOK_EVENTS.get(hook.event)
    if event is None or not event.sent:
        return  # it never happens here
    name = f"hook {hook.id or number} at {hook.event}"
    own = tree.hooks[number - 1] if len(tree.hooks) >= number else None
    written = own.actions if own else ()
    for index, action in enumerate(hook.actions, 1):
        span = written[index - 1].span if len(written) >= index else hook.span
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
            label = f"{name}: `{_written(test)}` {way}"
            yield Decision("conditions", THREAD_PATH, f"hook[{number}]/if[{index}]", way, label, span)


def asks(action: HookAction) -> bool:
    """Tell whether an action of a hook asks a person how the thread goes on."""
    return canonical(action.item_id) == CONTROL and dict(action.parameters).get("action") in ("escalate", "suspend")


def _words(action: HookAction) -> str:
    """Describe an action: the decision of a hook that decides, else the item that it asks for."""
    decision = dict(action.parameters).get("action")
    if canonical(action.item_id) == CONTROL and isinstance(decision, str):
        return decision
    return " ".join(part for part in (action.primary, action.item_type, action.item_id) if part)


def condition_parts(condition: Mapping[str, Value]) -> list[Mapping[str, Value]]:
    """Return the parts of a condition that are true or false by themselves: tests, and `any` and `all` as a whole."""
    found: list[Mapping[str, Value]] = []
    stack: list[Value] = [condition]
    while stack:
        part = stack.pop()
        if not isinstance(part, Mapping):
            continue
        combined = [inner for name in ("any", "all") for inner in _listed(part.get(name))]
        if combined or "path" in part or "op" in part:
            found.append(part)
        stack.extend(reversed([*combined, *([part["not"]] if "not" in part else [])]))
    return found


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


def _listed(value: Value) -> list[Value]:
    return list(value) if isinstance(value, list | tuple) else []


def _written(test: Mapping[str, Value]) -> str:
    if "path" in test or "op" in test:
        value = f" {encode(test['value'])}" if "value" in test else ""
        return cut(f"{test.get('path', '')} {test.get('op', 'eq')}{value}", 60, 57)
    return "any" if "any" in test else "all"
