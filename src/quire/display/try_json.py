"""Tries as JSON and for the terminal: their receipt and their outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quire.display.run_json import row_data
from quire.display.shell_commands import try_command
from quire.display.text import duration, money, one_line, place
from quire.display.why import values_data, word_diff
from quire.engine.interpreter.until import is_within
from quire.engine.records import EffectRecord, RunRow, total_cost
from quire.plan.descriptions import step_name
from quire.plan.pipeline_work import Agent
from quire.wording import counted

if TYPE_CHECKING:
    from quire.runs.step_tries import PreparedTry
    from quire.runs.why import ValueSource
    from quire.values import Value


def outcome_data(row: RunRow, records: Sequence[EffectRecord], until: str) -> dict[str, Value]:
    """Return a try with its reply, its time and its cost; of the run itself what it recorded at the same step."""
    own = [record for record in records if is_within(record.path, until)]
    calls = [record for record in own if record.kind == "model"]
    replies = [record.value for record in calls if record.state == "ok" and isinstance(record.value, dict)]
    usages = [record.usage for record in calls if record.usage]
    origin = row.pins.get("origin")
    return {
        **row_data(row),
        "try": origin.get("try") if isinstance(origin, dict) and row.until else None,
        "reply": str(replies[-1].get("text", "")) if replies else None,
        "calls": len(calls),
        "took": round(sum(record.elapsed for record in own), 3),
        "spent": total_cost(calls),
        "used": [sum(usage.input_tokens for usage in usages), sum(usage.output_tokens for usage in usages)],
    }


def receipt_data(
    prepared: PreparedTry, count: int, most: float | None, values: Sequence[ValueSource]
) -> dict[str, Value]:
    """Return what some tries do and cost: about as much as the recorded calls, and at most `most` for each first
    call."""
    view, at, pins = prepared.view, prepared.place, prepared.pins
    recorded = outcome_data(view.row, view.effects, at.until)
    step = dict(view.document.runnable().steps()).get(at.step)
    about = recorded["spent"] if pins.instead in ("", view.pins.model) else None
    return {
        "path": at.call,
        "until": at.until,
        "step": view.replay.asked[at.call].label,
        "title": step_name(step) if step else "",
        "n": count,
        "model": pins.instead or pins.model,
        "temperature": prepared.request.temperature,
        "schema": step.work.schema if step and isinstance(step.work, Agent) else None,
        "recorded": recorded,
        "values": values_data(value for value in values if not value.many),
        "calls": count,
        "about": about * count if isinstance(about, int | float) else None,
        "most": None if most is None else most * count,
        "budget": pins.budget,
        "command": try_command(view.row.id, at.call, count),
    }


def receipt_line(receipt: Mapping[str, Any]) -> str:
    """Return a receipt as a sentence."""
    count, about, most = receipt["n"], receipt["about"], receipt["most"]
    price = "at a price that is not known" if most is None else f"at most {money(most) or 'free'}"
    usual = f"about {money(about)}, " if about else ""
    return f"{counted(count, 'run')} of {place(receipt['step'])} alone, {usual}{price}; no tool changes anything"


def try_lines(tried: Mapping[str, Any], receipt: Mapping[str, Any], *, colour: bool) -> list[str]:
    """Return a try for people: its state and numbers, then how its reply differs from the recorded one."""
    error, schema = tried["error"], receipt["schema"]
    fit = f"{'does not fit' if error else 'fits'} {schema}" if schema else ""
    facts = [tried["status"].replace("_", " "), fit, duration(tried["took"]), money(tried["spent"] or 0), tried["id"]]
    lines = [f"try {tried['try']}  " + " · ".join(one_line(fact) for fact in facts if fact)]
    lines += [f"  {one_line(error['message'])}"] if error else []
    if tried["reply"] is not None:
        changed = word_diff(receipt["recorded"]["reply"] or "", tried["reply"], colour=colour)
        lines += [f"  {line}" for line in changed or ["the recorded reply"]]
    return lines
