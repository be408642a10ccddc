"""JSON of forks: the steps at which a run can be forked, and the receipt of a fork."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.display.commands import fork_command
from quire.display.outline import range_data
from quire.display.text import money
from quire.library.input_schema import input_schema
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.runs.fork import Changes
    from quire.runs.fork_receipt import ForkStep, Receipt
    from quire.runs.view import RunView
    from quire.values import Value


def fork_form_data(view: RunView, steps: list[ForkStep]) -> dict[str, Value]:
    """Return everything that a form for a fork needs: steps, inputs with their types and values, model and budget."""
    from quire.display.run_json import row_data

    return {
        **row_data(view.row),
        "model": view.pins.instead or view.pins.model,
        "budget": view.pins.budget,
        "steps": [_step(step) for step in steps],
        "inputs": input_schema(view.document),
        "values": dict(view.pins.inputs),
        "named": dict(view.named),
    }


def receipt_data(found: Receipt, changes: Changes) -> dict[str, Value]:
    """Return a receipt with its sentence and the command that makes the fork."""
    fork, bounds = found.fork, found.bounds
    usages = [one.usage for one in fork.kept if one.usage]
    return {
        "origin": fork.origin.row.id,
        "step": fork.place.label,
        "path": fork.place.path,
        "summary": receipt_line(found),
        "kept": {
            "effects": len(fork.kept),
            "cost": found.cost,
            "input_tokens": sum(one.input_tokens for one in usages),
            "output_tokens": sum(one.output_tokens for one in usages),
        },
        "again": [_step(step) for step in found.again],
        "later": found.later,
        "bounds": {name: range_data(getattr(bounds, name)) for name in ("model_calls", "tool_calls", "questions")},
        "model": fork.pins.instead or fork.pins.model,
        "reason": fork.reason,
        "budget": fork.pins.budget,
        "command": command_of(found, changes),
    }


def receipt_line(found: Receipt) -> str:
    """Return the receipt as a sentence: what is kept, what is done again, and how much at most."""
    kept, again, calls = len(found.fork.kept), len(found.again), found.bounds.model_calls.most
    price = f" ({money(found.cost) or 'free'})" if kept else ""
    done = f"does {again} {pluralize('step', again)} again" if again else "does no step again"
    most = "any number of model calls" if calls is None else f"at most {calls:,} model {pluralize('call', calls)}"
    return f"keeps {kept:,} recorded {pluralize('effect', kept)}{price}, {done}, {most}"


def command_of(found: Receipt, changes: Changes) -> str:
    sets: Mapping[str, Value] = changes.sets
    budget = "" if changes.budget is None else f"{changes.budget:g}"
    return fork_command(
        found.fork.origin.row.id, found.fork.place.label, sets=sets, model=changes.model or "", budget=budget
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
    }
