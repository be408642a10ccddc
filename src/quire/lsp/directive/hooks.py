"""Hooks of a directive in words: their events, their conditions, and the values that they can read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.lsp.answers import code
from quire.lsp.directive.tags import declared_inputs, declared_outputs, scan
from quire.plan.vocabulary import HOOK_COST, HOOK_EVENTS, LIMITS

if TYPE_CHECKING:
    from quire.formats.directive.syntax import Hook
    from quire.lsp.answers import Name
    from quire.lsp.directive.tags import Tagged
    from quire.lsp.document_view import View

EVENTS: Mapping[str, str] = {
    "build_system_prompt": "before the first turn; knowledge goes into the system message",
    "thread_started": "before the first turn; knowledge goes into the prompt at the hook's `position`",
    "after_step": "after the calls of each turn",
    "error": "a model call or a tool call failed or was denied",
    "limit": "a limit is reached",
    "directive_return": "the model hands back its outputs; hooks judge them, and outputs that they cannot judge are "
    "not accepted",
    "after_complete": "the thread ended well",
}
_COMMON: Mapping[str, str] = {
    "event": "the name of the event",
    "directive": "the id of the directive",
    "thread_id": "the id of the thread",
    "turn": "the number of the turn",
    **{f"cost.{name}": "used so far" for name in HOOK_COST},
    **{f"limits.{name}": "as the directive declares it" for name in LIMITS},
}
_MORE: Mapping[str, Mapping[str, str]] = {
    "error": {
        "error.type": "the kind of failure; `permission_denied` for a denial",
        "error.message": "the message",
        "error.resource": "the id of the tool",
    },
    "limit": {
        "limit_code": "such as `turns_exceeded`",
        "current_value": "what was used",
        "current_max": "the limit",
    },
    "directive_return": {"status": "`completed` or `error`"},
    "after_complete": {"success": "true"},
}
_WITH_OUTPUTS = ("directive_return", "after_complete")
DECISION_MEANINGS: Mapping[str, str] = {
    "retry": "a failed model call is made again; outputs are refused with `message`",
    "skip": "the same as `retry`",
    "continue": "outputs are accepted; a failed model call is made again",
    "fail": "the thread fails",
    "abort": "the thread fails",
    "escalate": "asks a person whether to continue, or for a higher limit",
    "suspend": "the same as `escalate`",
}
OPERATOR_MEANINGS: Mapping[str, str] = {
    "eq": "is equal",
    "ne": "is not equal",
    "gt": "is above",
    "gte": "is at least",
    "lt": "is below",
    "lte": "is at most",
    "in": "is one of a list in JSON",
    "contains": "a text, list or mapping contains it",
    "regex": "matches a pattern of RE2",
    "exists": "has a value",
}


def paths_of(event: str, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> dict[str, str]:
    """Return the paths that a hook on an event can read, with their meanings. Of an event that is not known, or not
    written yet, all of them."""
    paths: dict[str, str] = {}
    is_sent = event in HOOK_EVENTS
    for name, more in _MORE.items():
        if name == event or not is_sent:
            paths |= more
    if event in _WITH_OUTPUTS or not is_sent:
        paths |= {f"outputs.{name}": "an output of the model" for name in outputs}
    paths |= {f"inputs.{name}": "an input" for name in inputs}
    return paths | dict(_COMMON)


def path_meaning(path: str) -> str:
    """Return the meaning of a path; empty if it is not known."""
    if path.startswith(("inputs.", "outputs.")):
        return "an input" if path.startswith("inputs.") else "an output of the model"
    for more in (_COMMON, *_MORE.values()):
        if path in more:
            return more[path]
    return ""


_SHOWN = 20


def hook_markdown(view: View, tag: Tagged) -> str:
    """Return the action of a hook, or of the hook around a condition, to be put behind the meaning of the element."""
    around = tag if tag.tag == "hook" else next((above for above in tag.around() if above.tag == "hook"), None)
    if around is None:
        return ""
    text = view.source.text
    event = around.value("event")
    lines = [f"\n\n**when**: {_event(event)}"]
    hook = hook_of(view, around.start)
    if hook is not None:
        lines.append(f"**if**: {condition_of(hook) or 'always'}")
        if actions := _actions(hook):
            lines.append(f"**then**: {actions}")
    paths = paths_of(event, declared_inputs(text), declared_outputs(text))
    readable = ", ".join(code(path) for path in list(paths)[:_SHOWN])
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    lines.append(f"Conditions and `${{…}}` can read {readable}{more}.")
    return "\n\n".join(lines)


def hook_named(view: View, name: Name) -> str:
    """Return the action of the hook with this name. It may be one of a directive that this one extends."""
    home = view.folder.view(name.document) if name.document else view
    tags = scan(home.source.text).tags if home else ()
    tag = next((element for element in tags if element.tag == "hook" and element.value("id") == name.text), None)
    if home is None or tag is None:
        return f"**hook** {code(name.text)}\n\nNo directive of the chain has it."
    return f"**hook** {code(name.text)}{hook_markdown(home, tag)}"


def hook_of(view: View, start: int) -> Hook | None:
    """Return the hook whose element begins at an offset, as far as it could be read."""
    hooks: tuple[Hook, ...] = view.reading.partial.hooks
    return next((hook for hook in hooks if hook.span.start == start), None)


def condition_of(hook: Hook) -> str:
    from quire.display.outline_directive import condition_words
    from quire.formats.directive.lower import condition

    return condition_words(condition(hook.tests))


def _event(event: str) -> str:
    if not event:
        return "it has no event, so it never acts"
    return f"{code(event)}, {EVENTS[event]}" if event in EVENTS else f"{code(event)}, which is not sent here"


def _actions(hook: Hook) -> str:
    parts = []
    for action in hook.actions:
        parameters = ", ".join(f"{name} = {value}" for name, value in action.parameters[:4])
        what = f"{action.primary} {action.attribute('item_type')} {action.attribute('item_id')}"
        parts.append(code(what) + (f" with {code(parameters)}" if parameters else ""))
    return "; ".join(parts)
