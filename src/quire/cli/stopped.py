"""What helps where `resume` does not: a hook that says `fail` says so again, and so does what the document computes."""

from __future__ import annotations

import re

from quire.engine.progress import Progress
from quire.engine.records import RunRow
from quire.engine.thread.setup import CONTROL
from quire.engine.turns import HookView
from quire.render.text import one_line
from quire.trust.capabilities import canonical

_STOPS = ("fail", "abort")
_OUTERMOST = re.compile(r"thread/turn\[(\d+)\]")


_PURE = ("arguments", "undefined")


def fails_again(row: RunRow) -> bool:
    """Whether a step of a playbook failed by itself, before it asked for anything: the same values fail again."""
    own = bool(row.ended_by) and row.ended_by[0].rpartition("/")[2].isdecimal()
    return row.format == "playbook" and own and row.failure is not None and row.failure.kind in _PURE


def instead_of_resume(row: RunRow) -> list[str]:
    """Lines for people."""
    return [
        "to try again: mend the document and run it anew, a resume would fail in the same way;",
        f"  or go on with another value: quire fork {row.id} --from {one_line(row.position)} --set NAME=VALUE",
    ]


def hook_that_stopped(row: RunRow, progress: Progress) -> HookView | None:
    """The hook by whose own word a run failed; None where anything else did, a person or the outputs of a directive."""
    if row.failure is None or row.failure.kind == "stopped":
        return None
    blamed = {path.removesuffix("/*") for path in row.ended_by}
    hooks = [hook for thread in progress.threads.values() for hook in thread.hooks if hook.path in blamed]
    stopping = [one for one in hooks if canonical(one.item_id) == CONTROL and one.parameters.get("action") in _STOPS]
    return stopping[-1] if stopping else None


def what_helps(row: RunRow, progress: Progress, hook: HookView) -> list[str]:
    """Lines for people."""
    named = one_line(hook.hook or hook.event)
    lines = [f"the hook {named} (on {hook.event}) ended it, and would again after a resume; what helps:"]
    step = _fork_from(row, progress, hook)
    if step:
        lines.append(f'  quire fork {row.id} --from "{step}" [--set NAME=VALUE], to do that again, or otherwise')
    elif row.pins.get("inputs"):
        lines.append(f'  quire fork {row.id} --from "turn 1" --set NAME=VALUE, to begin with another input')
    return [
        *lines,
        f"  quire run {one_line(row.document)}, once the hook or what it looks at (inputs, limits) is changed",
    ]


def _fork_from(row: RunRow, progress: Progress, hook: HookView) -> str:
    """The step or turn that led to it; empty before the first turn of a directive, where nothing can be redone."""
    if row.format == "directive":
        turn = _OUTERMOST.match(hook.path)
        return f"turn {turn[1]}" if turn else ""
    path = hook.path
    while path:
        step = progress.steps.get(path)
        if step is not None and not step.thread:
            return one_line(step.label)
        path = path.rpartition("/")[0]
    return ""
