"""The values that conditions and parameters of hooks can read, by event, and what each event and decision means."""

from __future__ import annotations

from collections.abc import Mapping

from quire.plan.vocabulary import HOOK_COST, HOOK_EVENTS, LIMITS

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
    "escalate": "a person says whether to go on, or gives a higher limit",
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
    found: dict[str, str] = {}
    known = event in HOOK_EVENTS
    for name, more in _MORE.items():
        if name == event or not known:
            found |= more
    if event in _WITH_OUTPUTS or not known:
        found |= {f"outputs.{name}": "an output of the model" for name in outputs}
    found |= {f"inputs.{name}": "an input" for name in inputs}
    return found | dict(_COMMON)


def path_meaning(path: str) -> str:
    """Return the meaning of a path; empty if it is not known."""
    if path.startswith(("inputs.", "outputs.")):
        return "an input" if path.startswith("inputs.") else "an output of the model"
    for more in (_COMMON, *_MORE.values()):
        if path in more:
            return more[path]
    return ""
