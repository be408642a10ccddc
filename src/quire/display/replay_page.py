"""The pages and the JSON of stored runs that were walked with an edited document (`quire runs replay --document`), or
asked of another model (`quire runs replay --model`).

Runs with the same fate are told of together: how many, which ones, and the difference in the first of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from quire.display.run_json import failure_data
from quire.display.text import duration, money, one_line, place, short, table, tokens_in_and_out
from quire.display.text import prompt_lines as visible_lines
from quire.display.transcript import prompt_data, prompt_text
from quire.display.why import changes_data, word_diff
from quire.engine.requests import Boundary, Effect, HumanRequest, Load, Meter, ModelRequest, ToolRequest
from quire.engine.reused_replies import saved_by
from quire.runs.shadow import is_end
from quire.testing.live.recorded_prompts import reply_text, tool_uses, total_spent
from quire.values import Value, pretty, text_or_json
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.runs.diff import Change
    from quire.runs.shadow import Replayed, Verdict
    from quire.testing.live.recorded_prompts import AskedCall, FollowedRun, RecordedRun


_SHOWN_RUNS = 5
_SHOWN_GROUPS = 8
_IN_SUMMARY = 3
_SHOWN_CHANGES = 6
_SHOWN_LINES = 8
_VERDICTS: tuple[Verdict, ...] = ("different", "new", "unreadable")
_COLOURS = {"same": "green", "different": "yellow", "new": "yellow", "unreadable": "red"}


def replay_page(runs: Sequence[Replayed], *, colour: bool = False) -> Iterator[str]:
    """Yield a paragraph for each fate that is not the same end, remarks about the others, and the summary last."""
    groups = _groups(runs)
    for group in groups[:_SHOWN_GROUPS]:
        yield from _group(group, colour)
        yield ""
    if len(groups) > _SHOWN_GROUPS:
        yield f"… {len(groups) - _SHOWN_GROUPS} more ways in which runs differ: --json has all of them"
        yield ""
    remarks = list(_remarks([run for run in runs if run.verdict == "same"], colour))
    if remarks:
        yield from (*remarks, "")
    yield summary(runs)


def summary(runs: Sequence[Replayed]) -> str:
    """Return one line: the number of runs that come to the same end, and the results of the others."""
    same = sum(run.verdict == "same" for run in runs)
    comes = "comes" if 1 in (same, len(runs)) else "come"
    parts = [f"{same} of {len(runs)} stored {pluralize('run', len(runs))} {comes} to the same end"]
    groups = _groups(runs)
    parts += [f"{len(group)} {_fate(group[0], len(group))}" for group in groups[:_IN_SUMMARY]]
    if rest := sum(map(len, groups[_IN_SUMMARY:])):
        parts.append(f"{rest} differ in other ways")
    return "; ".join(parts)


def _groups(runs: Sequence[Replayed]) -> list[list[Replayed]]:
    """Return the runs that do not come to the same end by their fate, the most frequent one first."""
    groups: dict[tuple[str, str, str, str], list[Replayed]] = {}
    for run in runs:
        if run.verdict != "same":
            way = run.new.request.label if run.new else ""
            groups.setdefault((run.verdict, way, run.reason, run.problem), []).append(run)
    return sorted(groups.values(), key=len, reverse=True)


def _fate(run: Replayed, count: int) -> str:
    s = "s" if count == 1 else ""
    match run.verdict:
        case "new" if run.new is not None:
            return f"ask{s} something new at {place(run.new.request.label)} ({run.reason})"
        case "new":
            return f"need{s} another input ({short(run.problem, 100)})"
        case "different":
            return f"come{s} to a different end ({run.reason})"
    return f"cannot be replayed ({short(run.problem, 100)})"


def _group(group: Sequence[Replayed], colour: bool) -> Iterator[str]:
    first = group[0]
    names = ", ".join(run.run for run in group[:_SHOWN_RUNS])
    more = f", and {len(group) - _SHOWN_RUNS} more" if len(group) > _SHOWN_RUNS else ""
    head = f"{len(group)} {pluralize('run', len(group))} {_fate(first, len(group))}"
    yield click.style(head, fg=_COLOURS[first.verdict], bold=True)
    yield f"  {names}{more}"
    if first.new is not None:
        yield from _indented(_new_request(first, colour))
    for change in sorted(first.changes, key=lambda change: not is_end(change))[:_SHOWN_CHANGES]:
        yield from _indented(change_lines(change, colour))
    yield from _indented(_dropped(first.dropped))


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"  {line}".rstrip() for line in lines)


def _new_request(run: Replayed, colour: bool) -> Iterator[str]:
    new = run.new
    if new is None:
        return
    if new.others:
        yield f"and {new.others} more {pluralize('request', new.others)} beside it"
    if new.before is None:
        text = _text(new.request)
        if isinstance(new.request, ModelRequest):  # without what the model was told before
            text = "\n\n".join(message.content for message in new.request.messages[new.request.known :])
        lines = visible_lines(text)
        yield f"{_titled(new.request)}:"
        yield from (f"  {line}" for line in lines[:_SHOWN_LINES])
        if len(lines) > _SHOWN_LINES:
            yield f"  … {len(lines) - _SHOWN_LINES} more {pluralize('line', len(lines) - _SHOWN_LINES)}"
        return
    lines = word_diff(_text(new.before), _text(new.request), colour=colour)
    yield from lines or [f"{_titled(new.request)}: {new.what}", *_settings(new.before, new.request)]


def _settings(before: Effect, now: Effect) -> Iterator[str]:
    """Yield the parts of a model call besides its prompt that differ."""
    if not isinstance(before, ModelRequest) or not isinstance(now, ModelRequest):
        return
    then, after = before.content(), now.content()
    if not isinstance(then, dict) or not isinstance(after, dict):
        return
    for name in dict.fromkeys((*then, *after)):
        if name not in ("system", "messages") and then.get(name) != after.get(name):
            old, new = (pretty(part.get(name)) if part.get(name) is not None else "none" for part in (then, after))
            yield f"  {name}: {short(old, 80)} -> {short(new, 80)}"


def _titled(request: Effect) -> str:
    match request:
        case ModelRequest():
            return "a model call"
        case HumanRequest():
            return "a question"
        case ToolRequest(connection=connection, tool=tool):
            return one_line(f"a call of {connection}/{tool}" if connection else f"a call of {tool}")
        case Load(scheme=scheme, where=where):
            return one_line(f"the text {scheme}:{where}")
        case Boundary():
            return "values that a person set"
    return "a request"


def _text(request: Effect) -> str:
    match request:
        case ModelRequest():
            return prompt_text(request)
        case HumanRequest(prompt=prompt, options=options):
            return "\n".join((prompt, *(f"- {option}" for option in options)))
        case ToolRequest(connection=connection, tool=tool, arguments=arguments, stdin=stdin):
            name = f"{connection}/{tool}" if connection else tool
            return "\n".join((name, pretty(dict(arguments)), *([stdin] if stdin is not None else [])))
        case Load(scheme=scheme, where=where):
            return f"{scheme}:{where}"
    return pretty(request.content())


def change_lines(change: Change, colour: bool) -> Iterator[str]:
    """Yield the lines about one difference of two runs."""
    if change.what == "step":
        yield f"{place(change.where)}: {_plain(change.a)} -> {_plain(change.b)}"
    elif change.what == "warning":
        at = f" at {place(change.where)}" if change.where else ""
        yield f"new warning{at}: {one_line(_plain(change.b))}"
    elif change.what == "asks":
        yield f"{place(change.where)}: {_ASKS.get(_plain(change.b), 'something else would be asked')}"
    elif change.what == "calls":
        yield "tool calls:"
        yield from (f"  {line}" for line in word_diff(_calls(change.a), _calls(change.b), colour=colour, most=12))
    elif change.what == "status":
        yield f"status: {_plain(change.a).replace('_', ' ')} -> {_plain(change.b).replace('_', ' ')}"
    else:
        yield one_line(f"{change.what} {change.where}".rstrip()) + ":"
        lines = word_diff(_plain(change.a), _plain(change.b), colour=colour, most=12)
        yield from (f"  {line}" for line in lines)


_ASKS = {
    "model": "the model would be asked once more",
    "tool": "a tool would be called",
    "ask": "a person would be asked",
}


def _calls(value: Value) -> str:
    """Return the tool calls of a reply, one on each line."""
    listed = value if isinstance(value, list | tuple) else []
    pairs = [pair for pair in listed if isinstance(pair, list | tuple)]
    return "\n".join(" ".join(map(text_or_json, pair)) for pair in pairs)


def _plain(value: Value) -> str:
    return "" if value is None else pretty(value)


def _dropped(requests: Sequence[Effect]) -> Iterator[str]:
    for request in requests[:_SHOWN_CHANGES]:
        yield f"not asked any more: {_titled(request)} at {place(request.label)}"
    if len(requests) > _SHOWN_CHANGES:
        yield f"… {len(requests) - _SHOWN_CHANGES} more"


def _remarks(runs: Sequence[Replayed], colour: bool) -> Iterator[str]:
    """Yield remarks about runs that come to the same end on another way."""
    dropped: dict[str, int] = {}
    reworded: dict[str, tuple[int, str]] = {}
    changed: dict[str, int] = {}
    for run in runs:
        for line in dict.fromkeys(_dropped(run.dropped)):
            dropped[line] = dropped.get(line, 0) + 1
        for then, now in run.reworded:
            where = f"the question of {place(now.label)} has other words; its stored answer was taken"
            count, shown = reworded.get(where, (0, ""))
            reworded[where] = count + 1, shown or "\n".join(word_diff(then.prompt, now.prompt, colour=colour, most=6))
        for change in run.changes:
            what = f"{change.what} {change.where}" if change.what != "step" else place(change.where)
            changed[what] = changed.get(what, 0) + 1
    if not (dropped or reworded or changed):
        return
    yield click.style("the same end on another way", bold=True)
    yield from (f"  {_in_runs(count)}: {line}" for line, count in list(dropped.items())[:_SHOWN_GROUPS])
    yield from (
        f"  {_in_runs(count)}: {one_line(what)} changed" for what, count in list(changed.items())[:_SHOWN_GROUPS]
    )
    for where, (count, lines) in list(reworded.items())[:_SHOWN_GROUPS]:
        yield f"  {_in_runs(count)}: {where}"
        yield from (f"    {line}" for line in lines.split("\n") if line)


def _in_runs(count: int) -> str:
    return f"in {count} {pluralize('run', count)}"


def replay_data(document: str, runs: Sequence[Replayed], stored: int) -> dict[str, Value]:
    """Return the same as JSON. `stored` is the number of stored runs of the document, of which these are the newest."""
    counts: dict[str, Value] = {
        verdict: sum(run.verdict == verdict for run in runs) for verdict in ("same", *_VERDICTS)
    }
    return {
        "document": document,
        **counts,
        "found": stored,
        "summary": summary(runs),
        "runs": [_data(run) for run in runs],
    }


def _data(run: Replayed) -> Value:
    new = run.new
    asks: Value = None
    if new is not None:
        asks = {
            "step": new.request.label,
            "path": new.request.path,
            "before": _request_data(new.before) if new.before is not None else None,
            "now": _request_data(new.request),
            "others": new.others,
        }
    return {
        "run": run.run,
        "title": run.title,
        "verdict": run.verdict,
        "reason": run.reason or None,
        "problem": run.problem or None,
        "new": asks,
        "changes": changes_data(run.changes),
        "dropped": [{"step": each.label, "path": each.path, "request": _request_data(each)} for each in run.dropped],
        "reworded": [{"step": now.label, "before": then.prompt, "now": now.prompt} for then, now in run.reworded],
    }


def _request_data(request: Effect) -> Value:
    return prompt_data(request) if isinstance(request, ModelRequest) else request.content()


_SHOWN_CALLS = 12
_SHOWN_RUNS_OF_MODEL = 20
_RIGHT = frozenset(range(1, 9))
_ARROW = " -> "
_KINDS = ("same", "words", "changed", "failed")


def announcement(runs: Sequence[RecordedRun], model: str, most: float | None, *, follow: bool) -> str:
    """Return the line that lists the coming model calls, before anything is paid."""
    calls = sum(len(run.calls) for run in runs)
    spent = total_spent(call.spent for run in runs for call in run.calls)
    bound = "at a price that is not known" if most is None else f"for at most ${most:.4f}"
    if follow and most:
        bound = f"for at most ${most:.4f} if it asks what the runs asked"
    paid = f"; the runs paid {money(spent.cost)}" if spent.cost else ""
    left_out = sum(run.left_out for run in runs)
    others = f", without {left_out} that failed or were cut off" if left_out else ""
    runs_of = f"{len(runs)} {pluralize('run', len(runs))}"
    asks = f"{calls} {pluralize('call', calls)} of {runs_of}{others}, on {model}"
    return one_line(f"FREE: {asks}{paid}" if most == 0 else f"PAID: {asks}, {bound}{paid}")


def asked_page(calls: Sequence[AskedCall], *, colour: bool = False) -> Iterator[str]:
    """Yield the changes that replies would make, then a table with a row for each step, then the summary."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for call in calls:
        if call.kind in ("changed", "failed"):
            groups.setdefault((place(call.call.request.label), *_changes(call, colour)), []).append(call.call.run)
    for (step, *lines), runs in list(groups.items())[:_SHOWN_CALLS]:
        where = runs[0] if len(runs) == 1 else f"{len(runs)} calls, the first of them in {runs[0]}"
        yield f"{step} in {where}:"
        yield from (f"  {line}".rstrip() for line in lines)
    if len(groups) > _SHOWN_CALLS:
        yield f"… {len(groups) - _SHOWN_CALLS} more changes: --json has all of them"
    if groups:
        yield ""
    yield from _table(calls)
    yield ""
    yield asked_summary(calls)


def _changes(call: AskedCall, colour: bool) -> Iterator[str]:
    if call.after is not None and call.after.failure is not None:
        yield f"failed: {one_line(call.after.failure.message)}"
    for change in call.changes:
        yield from change_lines(change, colour)


def asked_summary(calls: Sequence[AskedCall]) -> str:
    counts = {kind: sum(call.kind == kind for call in calls) for kind in _KINDS}
    words = {
        "same": "the same reply",
        "words": "only other words",
        "changed": "other captures, calls or branches",
        "failed": "no reply",
    }
    parts = [f"{count} {words[kind]}" for kind, count in counts.items() if count]
    unasked = sum(call.after is None for call in calls)
    parts += [f"{unasked} not asked"] if unasked else []
    return f"{len(calls)} {pluralize('call', len(calls))}: {', '.join(parts) or 'none'}"


def _table(calls: Sequence[AskedCall]) -> list[str]:
    by_step: dict[str, list[AskedCall]] = {}
    for call in calls:
        by_step.setdefault(call.call.request.label, []).append(call)
    rows = [_row(place(label), several) for label, several in by_step.items()]
    if len(rows) > 1:
        rows.append(_row("all", calls))
    header = ("STEP", "CALLS", "SAME", "WORDS", "CHANGED", "FAILED", "TOKENS", "COST", "TIME")
    return table(rows, header, right=_RIGHT)


def _row(name: str, calls: Sequence[AskedCall]) -> tuple[str, ...]:
    counts = [sum(call.kind == kind for call in calls) for kind in _KINDS]
    before = total_spent(call.call.spent for call in calls if call.after is not None)
    after = total_spent(saved_by(call.after) for call in calls if call.after is not None)
    return (name, str(len(calls)), *(str(count) if count else "" for count in counts), *_compared(before, after))


def _compared(before: Meter, after: Meter) -> tuple[str, str, str]:
    return (
        f"{tokens_in_and_out(before.input_tokens, before.output_tokens) or '0'}{_ARROW}"
        f"{tokens_in_and_out(after.input_tokens, after.output_tokens) or '0'}",
        f"{_money(before)}{_ARROW}{_money(after)}",
        f"{duration(before.elapsed)}{_ARROW}{duration(after.elapsed)}",
    )


def _money(spent: Meter) -> str:
    return "unknown" if spent.cost is None else f"${spent.cost:.4f}"


def followed_page(runs: Sequence[FollowedRun], *, colour: bool = False) -> Iterator[str]:
    """Yield what each run cost and took then and now, and the page about their ends."""
    rows = [
        (run.replayed.run, _ENDS[run.replayed.verdict], _ARROW.join(map(str, run.calls)), *_compared(*run.spent))
        for run in runs[:_SHOWN_RUNS_OF_MODEL]
    ]
    header = ("RUN", "END", "CALLS", "TOKENS", "COST", "TIME")
    yield from table(rows, header, right=frozenset(range(2, 6)))
    if len(runs) > _SHOWN_RUNS_OF_MODEL:
        yield f"… {len(runs) - _SHOWN_RUNS_OF_MODEL} more runs: --json has all of them"
    yield ""
    yield from replay_page([run.replayed for run in runs], colour=colour)


_ENDS = {"same": "the same", "different": "different", "new": "not recorded", "unreadable": "given up"}


def asked_data(model: str, most: float | None, calls: Sequence[AskedCall]) -> dict[str, Value]:
    counts: dict[str, Value] = {kind: sum(call.kind == kind for call in calls) for kind in _KINDS}
    return {
        "model": model,
        "bound": most,
        **counts,
        "unasked": sum(call.after is None for call in calls),
        "summary": asked_summary(calls),
        "calls": [_call_data(call) for call in calls],
    }


def _call_data(asked: AskedCall) -> Value:
    call, after = asked.call, asked.after
    new: Value = None
    if after is not None:
        new = {
            "text": reply_text(after),
            "tool_calls": tool_uses(after),
            "error": failure_data(after.failure),
            **saved_by(after).as_value(),
        }
    return {
        "run": call.run,
        "step": call.request.label,
        "path": call.request.path,
        "kind": asked.kind,
        "before": {
            "text": reply_text(call.record),
            "tool_calls": tool_uses(call.record),
            **call.spent.as_value(),
        },
        "after": new,
        "changes": changes_data(asked.changes),
    }


def followed_data(model: str, most: float | None, runs: Sequence[FollowedRun]) -> dict[str, Value]:
    ends = replay_data("", [run.replayed for run in runs], len(runs))
    spent: list[Value] = [
        {
            "run": run.replayed.run,
            "calls": {"before": run.calls[0], "after": run.calls[1]},
            "spent": {"before": run.spent[0].as_value(), "after": run.spent[1].as_value()},
        }
        for run in runs
    ]
    return {
        **{name: value for name, value in ends.items() if name != "document"},
        "model": model,
        "bound": most,
        "used": spent,
    }
