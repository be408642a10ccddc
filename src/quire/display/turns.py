"""Turns of a thread in words: the called tools, their results, and the use of the limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.display.text import duration, one_line, short
from quire.engine.thread_progress import (
    START,
    CallView,
    HookView,
    call_number,
    reply_of_turn,
    thread_of,
    threads_above,
    turn_of,
)
from quire.patterns import late_pattern
from quire.trust.capabilities import from_flat_name
from quire.values import InvalidValue, Value, decode, encode

if TYPE_CHECKING:
    from quire.engine.progress import Progress, StepView
    from quire.engine.records import EffectRecord, Event

ARGUMENT = 40
RESULT = 100
SAID = 200
PAGE_CALLS = 20
"""Calls of agents that the page of a run shows for each step."""
EVENT = 300
_SHOWN_ARGUMENTS = 4
_ADVICE = late_pattern(r"; grant it (?:with|to a new run)|, which the permissions at ")


def called(call: CallView) -> str:
    """Return the tool and its arguments in short: `rye/file-system/write path="a.txt" content="…"`."""
    name, arguments = from_flat_name(call.name) if call.name else call.tool, call.arguments
    item_id, parameters = arguments.get("item_id"), arguments.get("parameters")
    if from_flat_name(call.name) == "rye/execute" and isinstance(item_id, str) and isinstance(parameters, Mapping):
        name, arguments = item_id, parameters
    return " ".join([name, *_arguments(arguments)])


def answered(call: CallView, limit: int = RESULT) -> str:
    """Return the result of a call in short; empty while there is none."""
    if call.result is None:
        return ""
    if not call.kind:
        return short(call.result, limit)
    return f"{'denied' if call.kind == 'denied' else 'failed'}: {short(_error(call), limit)}"


def element_for(capability: str) -> str:
    """Return the element that grants a capability in the `<permissions>` of a directive."""
    _, primary, item_type, *rest = (*capability.split(".", 3), "", "")
    return f"<{primary}><{item_type}>{rest[0] or '*'}</{item_type}></{primary}>"


def error_text(text: str) -> str:
    """Return the error message from the JSON that a model got; any other text unchanged."""
    try:
        value = decode(text)
    except InvalidValue:
        return text
    message = value.get("error") if isinstance(value, Mapping) else None
    return message if isinstance(message, str) else text


def agent_heading(call: CallView, before: CallView | None = None) -> str:
    """Return the line above the calls of an agent's turn: its item and number, and what the agent said. Empty if the
    call before belongs to the same turn, and for calls of threads, whose turns are steps."""
    if not call.turn or (before is not None and (before.item, before.turn) == (call.item, call.turn)):
        return ""
    item = f"[{one_line(call.item)}] " if call.item else ""
    return f"{item}turn {call.turn}" + (f": {short(call.said, SAID)}" if call.said.strip() else "")


def shown_calls(step: StepView, most: int) -> tuple[list[CallView], int]:
    """Return the calls to show, and the number of earlier ones. Of a turn all are shown, of agents the last ones."""
    calls = list(step.calls.values())
    if step.thread:
        return calls, 0
    shown = calls[-most:]
    return shown, step.agent_calls - len(shown)


def call_lines(step: StepView, indent: str = "  ") -> Iterator[tuple[str, bool]]:
    """Yield a line for each call with its result, for pages, and whether the call failed. The turns of agents have
    lines of their own."""
    calls, earlier = shown_calls(step, PAGE_CALLS)
    if earlier:
        yield f"{indent}… {earlier} before these: quire runs RUN --journal", False
    before: CallView | None = None
    for call in calls:
        if heading := agent_heading(call, before):
            yield f"{indent}{heading}", False
        result = answered(call)
        deeper = indent + "  " * bool(call.turn)
        yield f"{deeper}{one_line(called(call))}" + (f" → {result}" if result else ""), bool(call.kind)
        before = call


def effect_words(event: Event) -> str:
    """Return the reply and the calls of a turn's model, or the result of a call, if the event has its record."""
    turn, record = turn_of(event.path), event.record
    if record is None or record.state != event.data.get("state"):
        return ""
    if not turn:
        return _agent_words(record)
    if record.kind == "tool":
        result = f"[{call_number(event.path, turn)}] {short(encode(record.value), RESULT)}"
        return result if record.state == "ok" else ""
    reply = reply_of_turn(record, turn)
    if reply is None:
        return ""
    text, calls = reply
    return short(" → ".join(filter(None, [text, ", ".join(map(called, calls.values()))])), EVENT)


def _agent_words(record: EffectRecord) -> str:
    """Return what an agent said and called, or the result of its call; empty for other effects."""
    at = CallView(path=record.path)
    item = f"[{one_line(at.item)}] " if at.item else ""
    if record.state != "ok":
        return ""
    if record.kind == "tool":
        return f"{item}{short(encode(record.value), RESULT)}" if at.turn else ""
    reply = reply_of_turn(record, record.path.rpartition("/model")[0])
    if reply is None or not reply[1]:
        return ""
    text, calls = reply
    names = ", ".join(called(CallView("", call.arguments, call.name)) for call in calls.values())
    return item + short(" → ".join(filter(None, [text, names])), EVENT)


def hook_words(hook: HookView) -> str:
    return " ".join([f"hook {hook.hook or hook.event} on {hook.event}: {hook.item_id}", *_arguments(hook.parameters)])


def is_of_turn(hook: HookView) -> bool:
    """Return True if the hook acted in a turn of its thread, not before the first or after the last."""
    return thread_of(hook.path) == turn_of(hook.path).rpartition("/")[0]


def placed_hooks(
    progress: Progress, steps: Sequence[str]
) -> tuple[dict[int, list[HookView]], dict[int, list[HookView]]]:
    """Return the hooks that acted, by the index of the step that they are shown before, and of the step that they are
    shown after.

    A hook that acted before the first turn of a thread is shown before that turn; a hook of a turn, or after the last
    turn, is shown after everything that happened in it. The hooks of a thread without any turn are shown after the
    last step; if there are no steps, they are returned as before step 0.
    """
    before: dict[int, list[HookView]] = {}
    after: dict[int, list[HookView]] = {}
    # Inner threads end first.
    for path, thread in sorted(
        progress.threads.items(), key=lambda entry: threads_above(f"{entry[0]}/turn[1]"), reverse=True
    ):
        if progress.depth_of(f"{path}/turn[1]") is None:
            continue
        for hook in thread.hooks:
            around = turn_of(hook.path) if is_of_turn(hook) else path
            inside = [number for number, step in enumerate(steps) if f"{step}/".startswith(f"{around}/")]
            if hook.path.startswith(f"{path}/{START}/") and inside:
                before.setdefault(inside[0], []).append(hook)
            elif inside or steps:
                after.setdefault(inside[-1] if inside else len(steps) - 1, []).append(hook)
            else:
                before.setdefault(0, []).append(hook)
    return before, after


def turn_title(step: StepView) -> str:
    """Return the text of the model's reply, which tells more than the name of its directive."""
    return short(step.output, 200) if step.output else ""


def used_of(progress: Progress) -> list[tuple[str, str, str]]:
    """Return the use of each limit by the outermost thread: its name, the amount used, and the limit (empty if there
    is none)."""
    own = [step for step in progress.steps.values() if step.thread and step.depth == 0]
    if not own:
        return []
    steps = [step for step in progress.steps.values() if step.thread]
    costs = [step.cost for step in steps]
    spend = None if None in costs else sum(cost for cost in costs if cost is not None)
    tokens = sum(step.input_tokens + step.output_tokens for step in own)
    spawns = sum(thread.depth == 1 for thread in progress.threads.values())
    turns = sum(step.output is not None for step in own)
    limits = progress.limits
    return [
        ("turns", str(turns), _most(limits, "turns", turns)),
        ("tokens", f"{tokens:,}", _most(limits, "tokens", tokens)),
        ("spend", "unknown" if spend is None else f"${spend:.4f}", _most(limits, "spend")),
        ("spawns", str(spawns), _most(limits, "spawns")),
        ("time", duration(sum(step.elapsed for step in steps)), _most(limits, "duration_seconds")),
    ]


def _most(limits: Mapping[str, Value], name: str, used: int = 0) -> str:
    """Format a limit. A turn count above the limit means that a resume has raised it."""
    most = limits.get(name)
    if not isinstance(most, int | float):
        return ""
    match name:
        case "spend":
            return f"${most:g}"
        case "duration_seconds":
            return duration(most)
    return f"{most:,}" + (", raised since" if used > most and name == "turns" else "")


def _arguments(arguments: Mapping[str, Value]) -> list[str]:
    shown = [f"{name}={short(encode(value), ARGUMENT)}" for name, value in list(arguments.items())[:_SHOWN_ARGUMENTS]]
    return [*shown, "…"] if len(arguments) > len(shown) else shown


def _error(call: CallView) -> str:
    """Return the message alone, without the JSON around it that the model gets. For a denial only the missing
    capability is shown; the end of the run's report says where to grant it."""
    text = error_text(call.result or "")
    return _ADVICE.split(text.removeprefix("permission denied: "), maxsplit=1)[0] if call.kind == "denied" else text
