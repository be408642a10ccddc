"""Run the hooks of a thread: select them by event and condition, perform their actions, collect their decisions, and
ask a person.

Conditions and patterns come from documents and are evaluated in the middle of a run, so they never raise: a comparison
that makes no sense, an invalid pattern and an unknown operator simply do not hold.

A hook's action passes the same gate as every other call, under the thread's own grants. A failure in an action does not
trigger further hooks. At `directive_return` it refuses the outputs, since a check that could not be made is not passed;
at every other event it is a warning.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct, field

from quire.engine.interpreter.thread.budgets import MOST
from quire.engine.requests import Emit, HumanRequest, Load, Request, Steps, ToolRequest
from quire.errors import Denied, StepFailed
from quire.plan.templates import as_text, input_text
from quire.plan.thread import THREAD_RULES, Hook, HookAction
from quire.plan.vocabulary import CONTROL, DECISIONS, Decision, adds_context, judges
from quire.safe_regex import compiled
from quire.source import Source
from quire.trust.capabilities import Grants, Primary, canonical
from quire.values import Value, clean

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.setup import Setup


_MAX_DEPTH = 100
_EXPRESSION = re.compile(r"\$\{([^{}]++)\}")
_FILLED = re.compile(r"\{input:(\w++)(?:(\?)|[:|]([^}]*+))?\}|\$\{([^{}]++)\}")
"""All references, filled in one pass, so that an inserted value is never searched for references."""

_SPELLING = 1
"""Conditions compare truth values as texts, in the spelling of 0.1.0."""

_INDEX = re.compile(r"[0-9]{1,9}")


def condition_holds(condition: Mapping[str, Value], context: Mapping[str, Value]) -> bool:
    """Evaluate a condition. An empty condition always holds; a malformed one never does, not even under `not`."""
    try:
        return _holds(condition, context, 0)
    except _Malformed:
        return False


class _Malformed(Exception):
    pass


def _holds(condition: Value, context: Mapping[str, Value], depth: int) -> bool:
    if not isinstance(condition, Mapping) or depth > _MAX_DEPTH:
        raise _Malformed
    results: list[bool] = []
    for name in ("any", "all"):
        if name in condition:
            parts = condition[name]
            if not isinstance(parts, list | tuple):
                raise _Malformed
            held = [_holds(part, context, depth + 1) for part in parts]
            results.append(any(held) if name == "any" else all(held))
    if "not" in condition:
        results.append(not _holds(condition["not"], context, depth + 1))
    if "path" in condition or "op" in condition:
        path, op = condition.get("path", ""), condition.get("op", "eq")
        if not isinstance(path, str) or not isinstance(op, str):
            raise _Malformed
        test = OPERATORS.get(op)
        results.append(test is not None and test(look_up(context, path), condition.get("value")))
    if not results and condition:
        raise _Malformed
    return all(results)


def look_up(context: Value, path: str) -> Value:
    """Return the value at a dotted path, or None; numbers index the items of a list from 0."""
    value = context
    for part in path.split(".") if path else ():
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list | tuple) and _INDEX.fullmatch(part) and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def _ordering(compare: Callable[[Any, Any], Any]) -> Callable[[Value, Value], bool]:
    def test(actual: Value, expected: Value) -> bool:
        numbers = isinstance(actual, int | float) and isinstance(expected, int | float)
        texts = isinstance(actual, str) and isinstance(expected, str)
        return (numbers or texts) and bool(compare(actual, expected))

    return test


def _contains(actual: Value, expected: Value) -> bool:
    """Look for a part of a text, an item of a list, or a key of an object."""
    if actual is None or expected is None:
        return False
    if isinstance(actual, list | tuple):
        return expected in actual
    if isinstance(actual, Mapping):
        return expected in actual if isinstance(expected, str) else False
    return as_text(expected, _SPELLING) in as_text(actual, _SPELLING)


def _matches(actual: Value, expected: Value) -> bool:
    if actual is None or not isinstance(expected, str):
        return False
    pattern = compiled(expected)
    return pattern is not None and pattern.search(clean(as_text(actual, _SPELLING))) is not None


OPERATORS: Mapping[str, Callable[[Value, Value], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": _ordering(operator.gt),
    "gte": _ordering(operator.ge),
    "lt": _ordering(operator.lt),
    "lte": _ordering(operator.le),
    "in": lambda actual, expected: actual is not None and isinstance(expected, list | tuple) and actual in expected,
    "contains": _contains,
    "regex": _matches,
    "exists": lambda actual, _: actual is not None,
}


def fill_params(value: Value, context: Mapping[str, Value], rules: int = THREAD_RULES) -> Value:
    """Return the value with every `${a.b}` and `{input:x}` in its texts filled in, once.

    A text that is a single `${…}` becomes the value that it stands for, of any type, or None. Inside a text the value
    is written out, and a missing one becomes empty.
    """
    if isinstance(value, str):
        whole = _EXPRESSION.fullmatch(value)
        return _evaluated(whole[1], context) if whole else _filled(value, context, rules)
    if isinstance(value, Mapping):
        return {name: fill_params(part, context, rules) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [fill_params(part, context, rules) for part in value]
    return value


def _filled(text: str, context: Mapping[str, Value], rules: int) -> str:
    end = text.rfind("}") + 1
    if rules < 2:
        return _EXPRESSION.sub(lambda match: _written(_evaluated(match[1], context), rules), text[:end]) + text[end:]
    inputs = context.get("inputs")

    def value_of(match: re.Match[str]) -> str:
        if match[4]:
            return _written(_evaluated(match[4], context), rules)
        return input_text(match, None, inputs if isinstance(inputs, Mapping) else {}, rules)

    return _FILLED.sub(value_of, text[:end]) + text[end:]


def resolve_action(action: HookAction, context: Mapping[str, Value], rules: int = THREAD_RULES) -> HookAction:
    """Return the action with its item's id and its parameters filled in."""
    parameters = tuple((name, fill_params(value, context, rules)) for name, value in action.parameters)
    item_id = _written(fill_params(action.item_id, context, rules), rules)
    return HookAction(action.primary, action.item_type, item_id, parameters)


def is_composed(hook: Hook, action: HookAction) -> bool:
    """Tell whether the action brings a text into the first message or the system text.

    Composition has done that already, so a thread does not perform it again.
    """
    return adds_context(hook.event) and action.item_type == "knowledge" and action.primary in ("execute", "fetch")


def in_order(*layers: Iterable[Hook]) -> tuple[Hook, ...]:
    """Return the hooks of all layers in one sequence.

    Layers are given from the root ancestor down to the leaf, then the project.
    """
    return tuple(hook for layer in layers for hook in layer)


def _evaluated(expression: str, context: Mapping[str, Value]) -> Value:
    """Return the first value that one of the paths between `||` leads to, or None."""
    for path in expression.split("||"):
        value = look_up(context, path.strip())
        if value is not None:
            return value
    return None


def _written(value: Value, rules: int) -> str:
    return "" if value is None else as_text(value, rules)


def loses_a_gate(text: str, origin: str) -> bool:
    """Tell whether a hook that may judge outputs is left out of a project's file."""
    from quire.formats.directive.hooks_file import HooksFile

    file = HooksFile(Source.of(text, origin))
    file.read()
    return file.loses_a_gate


def read_hooks_yaml(text: str, origin: str) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """Read a project's hooks, a list under `hooks:`. Return the hooks, and all problems as `origin:line:column: …`.

    A hook with any problem is left out: half a condition would let it act where it must not.
    """
    from quire.formats.directive.hooks_file import HooksFile  # YAML costs tens of milliseconds that few threads need

    return HooksFile(Source.of(text, origin)).read()


class HookDecision(Struct, frozen=True):
    """The decision of the hooks of an event, and its message."""

    what: Decision
    message: str = ""

    @property
    def stops(self) -> bool:
        return self.what in ("fail", "abort")

    @property
    def asks(self) -> bool:
        """Return True if a person has to say whether the thread continues."""
        return self.what in ("escalate", "suspend")


class HookRunner(Struct):
    """The hooks of one thread."""

    setup: Setup
    start: Callable[[str, Mapping[str, Value], str], Generator[Request, Any, Mapping[str, Value]]]
    """Runs a directive as a child and returns how it ended."""
    notes: list[str] = field(default_factory=list)
    """Texts that hooks brought for the model."""
    paths: list[str] = field(default_factory=list)
    """Paths at which hooks have acted in this turn."""

    def fire(
        self, event: str, where: str, label: str, context: Mapping[str, Value]
    ) -> Generator[Request, Any, HookDecision | None]:
        """Run all hooks that the event triggers and return the first decision, or None."""
        decided: HookDecision | None = None
        for number, hook in enumerate(hook for hook in self.setup.composed.hooks if hook.event == event):
            if self.setup.watch is not None:
                self.setup.watch(hook, context)
            if not condition_holds(hook.condition, context):
                continue
            for index, action in enumerate(hook.actions):
                if is_composed(hook, action):
                    continue
                path = f"{where}/hook[{event}][{number}]" + (f"/action[{index}]" if index else "")
                decision = yield from self._act(hook, action, path, label, context)
                decided = decided or decision
        return decided

    def may_go_on(self, why: str, path: str, label: str) -> Generator[Request, Any, bool]:
        """Put the thread into the inbox: a person decides whether it continues."""
        self.paths.append(f"{path}/ask")
        id = self.setup.id
        answer: str = yield HumanRequest(
            f"{path}/ask", label, id, "confirm", f"{id} waits: {why}\nGo on?", default="no"
        )
        return answer == "yes"

    def higher_limit(self, name: str, why: str, path: str, label: str) -> Generator[Request, Any, float | None]:
        """Return the higher limit that a person gives, or None for a no.

        Any other answer is taken for a typing error, and the question is asked again.
        """
        slips = 0
        while True:
            ask = f"{path}/ask" + (f"[{slips}]" if slips else "")
            self.paths.append(ask)
            prompt = f"{self.setup.id}: {why}\nA higher limit for {name}, or no to end it?"
            answer: str = yield HumanRequest(ask, label, f"limit of {name}", "input", prompt)
            if answer.strip().lower() in ("", "n", "no"):
                return None
            if (limit := _number(answer)) is not None:
                return limit
            slips += 1
            why = f"{answer!r} is {'no' if self.setup.composed.rules < 2 else 'not a'} number."

    def _act(
        self, hook: Hook, action: HookAction, path: str, label: str, context: Mapping[str, Value]
    ) -> Generator[Request, Any, HookDecision | None]:
        meant = resolve_action(action, context, self.setup.composed.rules)
        item_id, filled = meant.item_id, dict(meant.parameters)
        self.paths.append(f"{path}/*")
        data: dict[str, Value] = {"hook": hook.id, "event": hook.event, "item_id": item_id, "params": filled}
        yield Emit("hook_action", path, label, data)
        try:
            if canonical(item_id) == CONTROL:
                return self._decided(filled, control=True)
            result = yield from self._dispatch(action, item_id, filled, path, label)
            return self._decided(result) if isinstance(result, Mapping) else None
        except StepFailed as error:
            message = f"hook {hook.id}: {error.message}"
            yield Emit("warning", path, label, {"message": message})
        if not judges(hook.event) or self._lenient:
            return None
        return HookDecision("fail", f"{message}; the outputs are refused, because this check was not passed")

    @property
    def _lenient(self) -> bool:
        """Return True if the thread follows the rules of 0.1.0, under which a check that failed to run was passed."""
        return self.setup.composed.rules < 2

    def _decided(self, result: Mapping[str, Value], *, control: bool = False) -> HookDecision | None:
        """Return the decision of a control action, or of the outputs of a directive that a hook ran.

        Raises `StepFailed` for an action that is not a decision. Outputs without one do not decide anything.
        """
        what = result.get("action")
        if isinstance(what, str) and what in DECISIONS:
            message = result.get("message") or result.get("error") or ""
            return HookDecision(what, str(message))
        if self._lenient or (what is None and not control):
            return None
        action = "no action" if what is None else f"the action {as_text(what)!r}"
        raise StepFailed(f"{action} is not a decision (known: {', '.join(DECISIONS)})", kind="hook")

    def _dispatch(self, action: HookAction, item_id: str, filled: dict[str, Value], path: str, label: str) -> Steps:
        grants, held = self.setup.grants, (self.setup.grants, self.setup.declared, self.setup.limits)
        if action.item_type == "tool" and action.primary == "execute":
            yield ToolRequest(f"{path}/tool", label, "", canonical(item_id), filled, None, *held)
            return None
        try:
            allowed = Grants.of(grants, self.setup.declared)
            allowed.require(cast("Primary", action.primary), action.item_type, item_id)
        except Denied as error:
            raise StepFailed(str(error), kind="denied") from None
        if action.item_type == "directive" and action.primary == "execute":
            ended = yield from self.start(item_id, filled, path)
            if ended.get("success") is not True and not self._lenient:
                raise StepFailed(f"{item_id} failed: {ended.get('error') or 'it did not say why'}", kind="hook")
            return ended.get("outputs")
        if action.item_type == "knowledge":
            text: str | None = yield Load(f"{path}/load", label, "knowledge", item_id)
            if text is None:
                raise StepFailed(f"there is no knowledge {item_id}", kind="unknown_item")
            self.notes.append(text)
            return None
        arguments = {"item_type": action.item_type, "item_id": item_id, **filled}
        yield ToolRequest(f"{path}/tool", label, "rye", action.primary, arguments, None, *held)
        return None


def _number(answer: str) -> float | None:
    """Return the limit that a person gives, or None if the answer is not a valid one."""
    try:
        number = float(answer)
    except ValueError:
        return None
    return number if 0 < number <= MOST else None
