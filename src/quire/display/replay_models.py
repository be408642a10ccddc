"""The pages and the JSON of stored runs that were asked of another model (`quire replay --model`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from quire.display.replay_page import change_lines, replay_data, replay_page
from quire.display.tables import table, tokens
from quire.display.text import duration, money, one_line, place
from quire.engine.reused_replies import Saved, saved_by
from quire.testing.live.recorded_prompts import reply_text, tool_uses
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.testing.live.recorded_prompts import AskedCall, FollowedRun, RecordedRun
    from quire.values import Value

_SHOWN_CALLS = 12
_SHOWN_RUNS = 20
_RIGHT = frozenset(range(1, 9))
_ARROW = " -> "
_KINDS = ("same", "words", "changed", "failed")


def announcement(runs: Sequence[RecordedRun], model: str, most: float | None, *, follow: bool) -> str:
    """Return the line that says what will be asked, before anything is paid."""
    calls = sum(len(run.calls) for run in runs)
    spent = Saved()
    for run in runs:
        for call in run.calls:
            spent = spent.plus(call.spent)
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
    asked = [call for call in calls if call.after is not None]
    before, after = Saved(), Saved()
    for call in asked:
        before = before.plus(call.call.spent)
        after = after.plus(saved_by(call.after) if call.after else Saved())
    return (name, str(len(calls)), *(str(count) if count else "" for count in counts), *_compared(before, after))


def _compared(before: Saved, after: Saved) -> tuple[str, str, str]:
    return (
        f"{tokens(before.input_tokens, before.output_tokens) or '0'}{_ARROW}"
        f"{tokens(after.input_tokens, after.output_tokens) or '0'}",
        f"{_money(before)}{_ARROW}{_money(after)}",
        f"{duration(before.elapsed)}{_ARROW}{duration(after.elapsed)}",
    )


def _money(spent: Saved) -> str:
    return "unknown" if spent.cost is None else f"${spent.cost:.4f}"


def followed_page(runs: Sequence[FollowedRun], *, colour: bool = False) -> Iterator[str]:
    """Yield what each run cost and took then and now, and the page about their ends."""
    rows = [_followed_row(run) for run in runs[:_SHOWN_RUNS]]
    header = ("RUN", "END", "CALLS", "TOKENS", "COST", "TIME")
    yield from table(rows, header, right=frozenset(range(2, 6)))
    if len(runs) > _SHOWN_RUNS:
        yield f"… {len(runs) - _SHOWN_RUNS} more runs: --json has all of them"
    yield ""
    yield from replay_page([run.replayed for run in runs], colour=colour)


_ENDS = {"same": "the same", "different": "different", "new": "not recorded", "unreadable": "given up"}


def _followed_row(run: FollowedRun) -> tuple[str, ...]:
    then, now = run.calls
    end = _ENDS[run.replayed.verdict]
    return (run.replayed.run, end, f"{then}{_ARROW}{now}", *_compared(*run.spent))


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
        failure = after.failure
        new = {
            "text": reply_text(after),
            "tool_calls": tool_uses(after),
            "error": {"kind": failure.kind, "message": failure.message} if failure else None,
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
        "changes": [{"what": one.what, "where": one.where, "a": one.a, "b": one.b} for one in asked.changes],
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
