"""Run the hooks of a thread: select them by event, perform their actions, collect their decisions, and ask a person.

A hook's action passes the same gate as every other call, under the thread's own grants. A failure in an action does not
trigger further hooks. At `directive_return` it refuses the outputs, since a check that could not be made is not passed;
at every other event it is a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct, field

from quire.engine.interpreter.thread.hooks import condition_holds, is_composed, resolve_action
from quire.engine.interpreter.thread.limits import MOST
from quire.engine.requests import Emit, HumanRequest, Load, Request, Steps, ToolRequest
from quire.errors import Denied, StepFailed
from quire.plan.templates import as_text
from quire.plan.vocabulary import CONTROL, DECISIONS, Decision, judges
from quire.trust.capabilities import Grants, Primary, canonical

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.setup import Setup
    from quire.plan.thread import Hook, HookAction
    from quire.values import Value


class HookDecision(Struct, frozen=True):
    """The decision of the hooks of an event, and its message."""

    what: Decision
    message: str = ""

    @property
    def stops(self) -> bool:
        return self.what in ("fail", "abort")

    @property
    def asks(self) -> bool:
        """Return True if a person has to say whether the thread goes on."""
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
        for number, hook in enumerate(one for one in self.setup.composed.hooks if one.event == event):
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
        """Put the thread into the inbox: a person decides whether it goes on."""
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
            asked = f"{path}/ask" + (f"[{slips}]" if slips else "")
            self.paths.append(asked)
            prompt = f"{self.setup.id}: {why}\nA higher limit for {name}, or no to end it?"
            answer: str = yield HumanRequest(asked, label, f"limit of {name}", "input", prompt)
            if answer.strip().lower() in ("", "n", "no"):
                return None
            if (given := _number(answer)) is not None:
                return given
            slips += 1
            why = f"{answer!r} is {'no' if self.setup.composed.rules < 2 else 'not a'} number."

    def _act(
        self, hook: Hook, action: HookAction, path: str, label: str, context: Mapping[str, Value]
    ) -> Generator[Request, Any, HookDecision | None]:
        meant = resolve_action(action, context, self.setup.composed.rules)
        item_id, filled = meant.item_id, dict(meant.parameters)
        self.paths.append(f"{path}/*")
        told: dict[str, Value] = {"hook": hook.id, "event": hook.event, "item_id": item_id, "params": filled}
        yield Emit("hook_action", path, label, told)
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
        given = "no action" if what is None else f"the action {as_text(what)!r}"
        raise StepFailed(f"{given} is not a decision (known: {', '.join(DECISIONS)})", kind="hook")

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
