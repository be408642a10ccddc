"""Hooks of a thread: which of them an event sets off, what their actions do, and what they decide.

A hook's action passes the same gate as everything else, under the thread's own grants. Whatever goes wrong in one is a
warning and sets off no further hook.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from quire.engine.requests import Emit, Load, Request, ToolRequest
from quire.engine.thread.hooks import filled_action, holds, injects
from quire.engine.thread.setup import CONTROL, Setup
from quire.errors import StepFailed
from quire.plan.nodes import Hook, HookAction
from quire.trust.capabilities import Grants, Primary, canonical
from quire.values import Value

Decision = Literal["retry", "fail", "abort", "continue", "escalate", "suspend", "skip"]
DECISIONS: tuple[str, ...] = get_args(Decision)

Steps = Generator[Request, Any, Any]


@dataclass(frozen=True, slots=True)
class Decided:
    """What the hooks of an event decided, and the words that came with it."""

    what: Decision
    message: str = ""

    @property
    def stops(self) -> bool:
        return self.what in ("fail", "abort")

    @property
    def asks(self) -> bool:
        """A person is to say whether the thread goes on."""
        return self.what in ("escalate", "suspend")


@dataclass(slots=True)
class Hooking:
    """The hooks of one thread. `start` runs a directive as a child and says how it ended; `notes` are texts that hooks
    brought for the model. `paths` are where hooks have acted in this turn.
    """

    setup: Setup
    start: Callable[[str, Mapping[str, Value], str], Generator[Request, Any, Mapping[str, Value]]]
    notes: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def fire(self, event: str, where: str, label: str, context: Mapping[str, Value]) -> Generator[Request, Any, Any]:
        """Runs all that the event sets off; the first decision counts. None where there is none."""
        decided: Decided | None = None
        for number, hook in enumerate(one for one in self.setup.composed.hooks if one.event == event):
            if not holds(hook.condition, context):
                continue
            for index, action in enumerate(hook.actions):
                if injects(hook, action):
                    continue
                path = f"{where}/hook[{event}][{number}]" + (f"/action[{index}]" if index else "")
                decision = yield from self._act(hook, action, path, label, context)
                decided = decided or decision
        return decided

    def _act(
        self, hook: Hook, action: HookAction, path: str, label: str, context: Mapping[str, Value]
    ) -> Generator[Request, Any, Decided | None]:
        meant = filled_action(action, context)
        item_id, filled = meant.item_id, dict(meant.parameters)
        self.paths.append(f"{path}/*")
        told: dict[str, Value] = {"hook": hook.id, "event": hook.event, "item_id": item_id, "params": filled}
        yield Emit("hook_action", path, label, told)
        if canonical(item_id) == CONTROL:
            return _decided(filled)
        try:
            result = yield from self._dispatch(action, item_id, filled, path, label)
        except StepFailed as error:
            message = f"hook {hook.id}: {error.message}"
            yield Emit("warning", path, label, {"message": message})
            return None
        return _decided(result) if isinstance(result, Mapping) else None

    def _dispatch(self, action: HookAction, item_id: str, filled: dict[str, Value], path: str, label: str) -> Steps:
        grants = self.setup.grants
        if action.item_type == "tool" and action.primary == "execute":
            yield ToolRequest(f"{path}/tool", label, "", canonical(item_id), filled, None, grants, self.setup.declared)
            return None
        if not Grants.of(grants).allows(cast("Primary", action.primary), action.item_type, item_id):
            raise StepFailed(f"permission denied: {action.primary} {action.item_type} {item_id}", kind="denied")
        if action.item_type == "directive" and action.primary == "execute":
            ended = yield from self.start(item_id, filled, path)
            return ended.get("outputs")
        if action.item_type == "knowledge":
            text: str | None = yield Load(f"{path}/load", label, "knowledge", item_id)
            if text is None:
                raise StepFailed(f"there is no knowledge {item_id}", kind="unknown_item")
            self.notes.append(text)
            return None
        arguments = {"item_type": action.item_type, "item_id": item_id, **filled}
        yield ToolRequest(f"{path}/tool", label, "rye", action.primary, arguments, None, grants, self.setup.declared)
        return None


def _decided(result: Mapping[str, Value]) -> Decided | None:
    """What a control action, or the outputs of a directive that a hook ran, decide."""
    what = result.get("action")
    if isinstance(what, str) and what in DECISIONS:
        message = result.get("message") or result.get("error") or ""
        return Decided(cast("Decision", what), str(message))
    return None
