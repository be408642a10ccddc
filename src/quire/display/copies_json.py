"""JSON of copies of runs: the steps at which a run can be forked, the receipt of a fork, replies that were taken from
another run, and runs that were removed, imported or verified. All keys of `--json` are defined here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.display.outline import range_data
from quire.display.shell_commands import fork_command
from quire.display.text import duration, money, one_line, place, table, tokens_in_and_out
from quire.library.interface import input_schema
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.engine.requests import Meter
    from quire.runs.fork import Changes, ForkStep, Receipt
    from quire.runs.imports import Exported, Verdict
    from quire.runs.outcome import RunView
    from quire.runs.reuse import Reuse
    from quire.runs.shares import Share
    from quire.stores.contract import Pruned
    from quire.values import Value


def share_data(share: Share) -> dict[str, Value]:
    times: dict[str, Value] = {"created_at": share.created_at, "expires_at": share.expires_at}
    return {"id": share.id, "run": share.run, "by": share.by, **times}


def fork_form_data(view: RunView, steps: list[ForkStep], options: Mapping[str, Value]) -> dict[str, Value]:
    """Return everything that the forms of a fork, and of a new run like this one, need: steps, inputs with their types
    and values, results of steps, options."""
    from quire.display.run_json import row_data

    return {
        **row_data(view.row),
        "model": view.pins.instead or view.pins.model,
        "budget": view.pins.budget,
        "steps": [_step(step) for step in steps],
        "inputs": input_schema(view.document),
        "values": dict(view.pins.inputs),
        "named": {**view.named, **view.progress.stores},
        "options": {**options},
    }


def receipt_data(receipt: Receipt, changes: Changes) -> dict[str, Value]:
    """Return a receipt with its sentence and the command that makes the fork."""
    fork, bounds = receipt.fork, receipt.bounds
    usages = [record.usage for record in fork.kept if record.usage]
    return {
        "origin": fork.origin.row.id,
        "step": fork.place.label,
        "path": fork.place.path,
        "summary": receipt_line(receipt),
        "kept": {
            "effects": len(fork.kept),
            "cost": receipt.cost,
            "input_tokens": sum(usage.input_tokens for usage in usages),
            "output_tokens": sum(usage.output_tokens for usage in usages),
        },
        "again": [_step(step) for step in receipt.again],
        "later": receipt.later,
        "bounds": {name: range_data(getattr(bounds, name)) for name in ("model_calls", "tool_calls", "questions")},
        "model": fork.pins.instead or fork.pins.model,
        "reason": fork.reason,
        "budget": fork.pins.budget,
        "command": command_of(receipt, changes),
    }


def receipt_line(receipt: Receipt) -> str:
    """Return the receipt as a sentence: the kept steps, the steps that run again, and the most that these use."""
    effects, again, calls = len(receipt.fork.kept), len(receipt.again), receipt.bounds.model_calls.most
    price = f" ({money(receipt.cost) or 'free'})" if effects else ""
    done = f"does {again} {pluralize('step', again)} again" if again else "does no step again"
    most = "any number of model calls" if calls is None else f"at most {calls:,} model {pluralize('call', calls)}"
    return f"keeps {effects:,} recorded {pluralize('effect', effects)}{price}, {done}, {most}"


def command_of(receipt: Receipt, changes: Changes) -> str:
    sets: Mapping[str, Value] = changes.sets
    budget = "" if changes.budget is None else f"{changes.budget:g}"
    return fork_command(
        receipt.fork.origin.row.id, receipt.fork.place.label, sets=sets, model=changes.model or "", budget=budget
    )


def _step(step: ForkStep) -> Value:
    return {
        "path": step.path,
        "label": step.label,
        "title": step.title,
        "status": step.status,
        "reached": step.reached,
        "settable": step.settable,
        "first": step.first,
        "names": list(step.names),
    }


STEP_LINES = 20


def reuse_lines(reuse: Reuse) -> list[str]:
    """Return the table: a row for each step with replies that were taken, and what they had used when they were paid
    for."""
    note, why = "", ", ".join(f"{count} {reason}" for reason, count in reuse.reasons.items())
    if reuse.asked:
        asked = f"asked anew: {reuse.asked} {pluralize('call', reuse.asked)}"
        note = one_line(asked + (f" ({why})" if why else ""))
    if not reuse.steps:
        return [f"no reply of {reuse.run} was reused{f': {note}' if note else ''}"]
    rows = [(place(step.way), *_row(step.calls, step.saved)) for step in list(reuse.steps.values())[:STEP_LINES]]
    hidden = len(reuse.steps) - len(rows)
    if hidden:
        rows.append((f"{hidden} more", "", "", "", ""))
    rows.append(("saved", *_row(reuse.calls, reuse.saved)))
    lines = table(
        rows, (f"REUSED FROM {reuse.run}", "REPLIES", "TOKENS", "COST", "TIME"), right=frozenset({1, 2, 3, 4})
    )
    return [*lines, *([note] if note else [])]


def reuse_data(reuse: Reuse) -> dict[str, Value]:
    return {
        "run": reuse.run,
        "replies": reuse.calls,
        "saved": reuse.saved.as_value(),
        "asked": reuse.asked,
        **({"reasons": dict(reuse.reasons)} if reuse.reasons else {}),
        "steps": [
            {"path": path, "way": step.way, "replies": step.calls, "saved": step.saved.as_value()}
            for path, step in reuse.steps.items()
        ],
    }


def _row(calls: int, saved: Meter) -> tuple[str, str, str, str]:
    cost = "unknown" if saved.cost is None else money(saved.cost)
    return str(calls), tokens_in_and_out(saved.input_tokens, saved.output_tokens), cost, duration(saved.elapsed)


def pruned_data(pruned: Pruned, *, dry_run: bool) -> dict[str, Value]:
    return {
        "runs": list(pruned.runs),
        "effects": pruned.effects,
        "texts": pruned.texts,
        "bytes": pruned.size,
        "given_back": pruned.given_back,
        "dry_run": dry_run,
    }


def imported_data(exported: Exported) -> dict[str, Value]:
    return {"run": exported.row.id, "effects": len(exported.effects), "head": exported.head}


def verdict_data(verdict: Verdict, file: str = "") -> dict[str, Value]:
    """Return a verdict about a stored run, or about a `file`."""
    data: dict[str, Value] = {"file": file, "ok": verdict.ok} if file else {"run": verdict.run, "ok": verdict.ok}
    if verdict.exported is not None:
        exported = verdict.exported
        data |= {"run": verdict.run, "lines": exported.lines, "head": exported.head}
    if not verdict.ok:
        data["problem"] = verdict.problem
        if file:
            data["line"] = verdict.line or None
    elif not file:
        data["effects"] = verdict.effects
    return data
