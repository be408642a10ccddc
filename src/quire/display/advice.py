"""Advice for failed runs: the commands that can continue a run.

A plain `resume` does not always help: a hook that decided `fail` would decide it again, and so would a computation of
the document. These runs get other advice, such as `fork`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from quire.display.shell_commands import (
    OTHER,
    SETTING,
    STEP,
    VALUE,
    Blank,
    fork_command,
    resume_command,
    run_command,
    shell_line,
)
from quire.display.text import money, one_line, place
from quire.display.visible import visible
from quire.engine.records import Status
from quire.patterns import late_pattern
from quire.plan.vocabulary import CONTROL, first_label
from quire.runs.outcome import limit_to_raise
from quire.trust.capabilities import canonical
from quire.wording import counted

if TYPE_CHECKING:
    from quire.engine.progress import Progress
    from quire.engine.records import RunRow
    from quire.engine.thread_progress import HookView
    from quire.runs.outcome import RunView
    from quire.values import Value
    from quire.workspace.settings import Settings

_STOPS = ("fail", "abort")
_OUTERMOST = late_pattern(r"thread/turn\[(\d+)\]")


_EFFECT = late_pattern(r"/(?:model|tool|ask|prompt|load|offer|break|uncertain|work|repair|abort)(?:\[\d+\])?$")
"""Matches the end of an effect's path. A run that ended at any other path failed in something computed from the
document."""
_DOCUMENT = ("arguments", "undefined", "unknown_tool", "ambiguous_tool")
"""Failure kinds of effects that are caused by the document."""
_MODEL = ("auth", "unknown_model", "quota", "refused", "too_long")
_ANSWER = ("answer", "unattended")
_NO_GRANT = "no grant opens"
"""Words in the refusal of a write to a place that no grant opens."""
_ALLOW = late_pattern(r"--allow (?:'([^']*)'|([^\s;,)]+))")
"""Matches the grant that a refusal names; a place with odd characters in its name stands in quotes."""


def after_failure(row: RunRow, progress: Progress) -> list[str]:
    """Return lines for the user: commands that can continue the failed run, or the reason why a resume cannot."""
    failure = row.failure
    if failure is None:
        return []
    if name := limit_to_raise(row):
        now = progress.limits.get(name)
        more = f"{2 * now:g}" if isinstance(now, int | float) and now else "MORE"
        return [f"to continue: {resume_command(row.id, limit=f'{name}={more}')}"]
    if failure.kind == "denied" and _NO_GRANT in failure.message:
        return ["nothing opens that place to a tool, so a resume and a fork are refused again: change it yourself"]
    if failure.kind == "denied" and row.format == "directive":
        again = run_command(row.document)
        return [f"a resume has the same permissions: change them in the document, sign it, then {again}"]
    if failure.kind == "denied":
        return with_a_grant(row, progress)
    if hook := hook_that_stopped(row, progress):
        return what_helps(row, progress, hook)
    if lines := by_other_means(row):
        return lines
    if fails_again(row):
        return instead_of_resume(row)
    budget = ""
    if failure.kind == "limit":
        # Where the price is not known, no amount is enough.
        budget = "none" if "--budget none" in failure.message else Blank("MORE|none")
    return [f"to try again from there: {resume_command(row.id, budget=budget)}"]


_COMMAND = late_pattern(r"""quire (resume|runs fork|run)(?: (?:'[^']*'|"[^"]*"|[^\s;,\['"])+)*""")
_WHY = {
    "resume": "a resume does the failed work again and keeps all that is done",
    "fork": "a resume would fail again: a fork does it again with other values or permissions",
    "fix": "a resume would fail again: change the document or its permissions first",
    "again": "a resume would fail again: a new run begins with the first step",
}


def next_step(row: RunRow, progress: Progress, *, asks: bool) -> dict[str, Value]:
    """Return the one thing that helps a run now: a verb, the reason for it, and the command that does it."""
    match row.status:
        case _ if row.pins.get("imported") or row.status is Status.EXPIRED:
            kind = "imported" if row.pins.get("imported") else "expired"
            return _next("fork", f"the run is {kind}: a fork continues in a new run", fork_command(row.id, STEP))
        case Status.COMPLETED:
            return _next("again", "the run is complete", run_command(row.document))
        case Status.FAILED:
            lines = after_failure(row, progress)
            command = next((match for line in lines if (match := _COMMAND.search(line))), None)
            verb = {"runs fork": "fork", "run": "again"}.get(command[1], "resume") if command else "fix"
            if any("--document" in line for line in lines) or (row.failure and row.failure.kind == "denied"):
                verb = "fix" if verb != "fork" else verb
            return _next(verb, _WHY[verb], command[0] if command else None)
        case Status.RUNNING:
            return _next("none", "the run is under way", None)
        case Status.AWAITING_INPUT if asks:
            return _next("none", "the run waits for an answer", None)
    return _next("resume", f"the run is {row.status.words}: a resume continues it", resume_command(row.id))


def _next(verb: str, why: str, command: str | None) -> dict[str, Value]:
    return {"verb": verb, "why": why, "command": command}


_DONE = ("completed", "skipped")
MOST_RESUMED = 100
"""Runs that are resumed at once."""


def resume_receipt(views: Sequence[RunView], budget: float | None, settings: Settings) -> dict[str, Any]:
    """Return what a resume of several runs does, as JSON. A run with a `problem` stays as it is. Of a budget for all of
    them each other run has an equal part, besides the money that it has spent."""
    from quire.runs.fork import fork_steps, rest_bounds

    steps = [next_step(view.row, view.progress, asks=bool(view.questions)) for view in views]
    count = sum(step["verb"] == "resume" for step in steps)
    runs: list[dict[str, Any]] = []
    for view, step in zip(views, steps, strict=True):
        row = view.row
        path = next((step.path for step in fork_steps(view) if step.status not in _DONE), "")
        calls = rest_bounds(view, path, view.effects, view.pins, settings).model_calls.most if path else 0
        own = view.pins.budget if budget is None else (row.cost or 0) + budget / max(1, count)
        problem = None if step["verb"] == "resume" else step["why"]
        run = {"run": row.id, "label": visible(row.label), "problem": problem}
        runs.append({**run, "cost": row.cost, "budget": own, "calls": calls})
    able = [run for run in runs if not run["problem"]]
    left = [None if run["budget"] is None else max(0.0, run["budget"] - (run["cost"] or 0)) for run in able]
    most, calls = _sum(left), _sum([run["calls"] for run in able])
    words = f"continues {counted(count, 'run')}"
    words += f" of {len(runs)}" if count < len(runs) else ""
    words += "; any number of model calls" if calls is None else f"; at most {counted(calls, 'model call')}"
    words += "; without a budget" if most is None else f"; spends at most {money(most) or 'nothing'} more"
    budgets = [] if budget is None else ["--budget", f"{budget:g}"]
    return {
        "runs": runs,
        "calls": calls,
        "most": most,
        "summary": words if able else "no run continues",
        "command": shell_line("resume", *(run["run"] for run in able), *budgets) if able else None,
    }


def _sum(parts: list[Any]) -> Any:
    return None if None in parts else sum(parts)


def fails_again(row: RunRow) -> bool:
    """Return True if the document caused the failure, so that every resume with the same text fails again."""
    if row.failure is None or not row.ended_by or row.format == "directive":
        return False
    return row.failure.kind in _DOCUMENT or not _EFFECT.search(row.ended_by[0])


def instead_of_resume(row: RunRow) -> list[str]:
    """Return lines for the user: commands that can succeed where a plain resume cannot."""
    edited = resume_command(row.id, document=True)
    lines = [f"to continue: edit the document, then {edited}; completed steps are kept"]
    if row.format == "playbook":
        forked = fork_command(row.id, first_label(row.position), sets=SETTING)
        lines.append(f"  or continue with another value: {forked}")
    return lines


def by_other_means(row: RunRow) -> list[str]:
    """Return lines for the user if a plain resume would fail in the same way; empty if it may succeed."""
    kind = row.failure.kind if row.failure else ""
    if kind in _MODEL:
        other, same = resume_command(row.id, model=OTHER), resume_command(row.id)
        return [f"to continue: {other}; or {same}, once the model can be asked"]
    if kind == "script":
        where = place(row.position) if row.position else "that call"
        return [f"to continue: {resume_command(row.id, script=Blank('FILE'))}, with a reply for {where}"]
    if kind == "fail":
        edited = resume_command(row.id, document=True)
        return [f"its document says so: start a new run when the reason is gone, or edit the document, then {edited}"]
    if kind in _ANSWER:
        return [f"to continue: {resume_command(row.id, answer=(row.position, VALUE))}"]
    if kind == "too_many_calls":
        return [f"to continue: {resume_command(row.id, limit=Blank('calls=MORE'))}, 0 for no limit"]
    return []


def with_a_grant(row: RunRow, progress: Progress) -> list[str]:
    """Return lines for the user after a refusal. A resume keeps the grants of the run's start; a fork can get more."""
    grant = _ALLOW.search(row.failure.message if row.failure else "")
    step = first_label(row.position)
    if row.format == "pipeline":  # it can be forked only between its top-level steps
        top = progress.steps.get(row.ended_by[0].partition("/")[0]) if row.ended_by else None
        step = top.label if top else ""
    if grant and step:
        return [f"to continue: {fork_command(row.id, step, allow=grant[1] or grant[2])}"]
    edited = resume_command(row.id, document=True)
    return [f"to continue: edit the document, then {edited}; a resume alone asks for the same"]


def hook_that_stopped(row: RunRow, progress: Progress) -> HookView | None:
    """Return the hook whose own decision made the run fail; None if the cause was anything else, such as a user or the
    outputs of a directive."""
    if row.failure is None or row.failure.kind == "stopped":
        return None
    blamed = {path.removesuffix("/*") for path in row.ended_by}
    hooks = [hook for thread in progress.threads.values() for hook in thread.hooks if hook.path in blamed]
    stopping = [
        hook for hook in hooks if canonical(hook.item_id) == CONTROL and hook.parameters.get("action") in _STOPS
    ]
    return stopping[-1] if stopping else None


def what_helps(row: RunRow, progress: Progress, hook: HookView) -> list[str]:
    """Return lines for the user: what to do after a hook ended the run."""
    named = one_line(hook.hook or hook.event)
    lines = [f"the hook {named} (on {hook.event}) ended it, and would again after a resume; to continue:"]
    step = _fork_from(row, progress, hook)
    if step:
        lines.append(f"  {fork_command(row.id, step)} [--set NAME=VALUE], to do that again, or otherwise")
    elif row.pins.get("inputs"):
        lines.append(f"  {fork_command(row.id, 'turn 1', sets=SETTING)}, to begin with another input")
    again = run_command(row.document)
    return [*lines, f"  {again}, once the hook or what it looks at (inputs, limits) is changed"]


def _fork_from(row: RunRow, progress: Progress, hook: HookView) -> str:
    """Return the step or turn that led to the hook; empty before the first turn of a directive, where nothing can be
    redone."""
    if row.format == "directive":
        turn = _OUTERMOST.match(hook.path)
        return f"turn {turn[1]}" if turn else ""
    path = hook.path
    while path:
        step = progress.steps.get(path)
        if step is not None and not step.thread:
            return step.label
        path = path.rpartition("/")[0]
    return ""
