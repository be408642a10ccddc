"""JSON of runs, questions and journals, as `--json` prints it. All keys are defined here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from quire.display.visible import visible
from quire.engine.records import Status
from quire.plan.vocabulary import first_label, last_label
from quire.subject import first_line
from quire.wording import cut_line

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.setup import Setup
    from quire.engine.progress import Progress, StepView
    from quire.engine.records import EffectRecord, Question, RunRow, Usage
    from quire.engine.requests import Failure
    from quire.engine.thread_progress import CallView
    from quire.runs.outcome import RunView
    from quire.values import Value


MOST_RESULT = 200


def row_data(row: RunRow) -> dict[str, Value]:
    """Return a run as a list shows it. Times are seconds since 1970; an unknown cost is null."""
    return {
        "id": row.id,
        "status": str(row.status),
        "title": row.title,
        "format": row.format,
        "document": row.document,
        "step": last_label(row.position),
        "way": row.position,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "expires_at": row.expires_at,
        "wake_at": row.wake_at,
        "waits": visible(row.waits),
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
        "cost": row.cost,
        "error": {"kind": row.failure.kind, "message": row.failure.message, "paths": list(row.ended_by)}
        if row.failure
        else None,
        "origin": row.pins.get("origin") or None,
        "imported": row.pins.get("imported") or None,
        "forced": row.pins.get("forced") or [],
        "subject": visible(row.subject or row.title or row.id),
        "name": row.name and visible(row.name),
        "label": visible(row.label),
        "note": row.note,
        "seen_at": row.seen_at,
        "until": row.until,
    }


def item_data(row: RunRow, now: float, result: str | None, labels: Sequence[str]) -> dict[str, Value]:
    """Return a run as one of a list: with the first line of its result, error or question, its place among its steps
    `labels`, and the seconds it took so far."""
    end = now if row.status is Status.RUNNING else row.updated_at
    return {
        **row_data(row),
        "result": visible(cut_line(first_line(result), MOST_RESULT)) if result else None,
        "steps": {**steps_data(row, labels)} if labels else None,
        "took": round(max(0.0, end - row.created_at), 3),
        "model": row.pins.get("instead") or row.pins.get("model"),
    }


def steps_data(row: RunRow, labels: Sequence[str]) -> dict[str, int]:
    """Return the place of a run among the steps of its document: `at` of `of`, counted from 1."""
    reached = first_label(row.position)
    at = len(labels) if row.status is Status.COMPLETED else labels.index(reached) + 1 if reached in labels else 0
    return {"at": at, "of": len(labels)}


def past_run_data(row: RunRow) -> dict[str, Value]:
    """Return a run as one of many of the same document. `elapsed` are the seconds from its start to its last change."""
    data = row_data(row)
    names = ["id", "label", "status", "created_at", "updated_at", "input_tokens", "output_tokens", "cost", "error"]
    elapsed = round(max(0.0, row.updated_at - row.created_at), 3)
    model = row.pins.get("model") or ""
    return {**{name: data[name] for name in names}, "origin": data["origin"], "model": model, "elapsed": elapsed}


def view_data(view: RunView) -> dict[str, Value]:
    """Return everything that is known about one run."""
    progress = view.progress
    return {
        **row_data(view.row),
        "model": view.pins.model,
        "inputs": dict(view.pins.inputs),
        "breakpoints": list(view.pins.breakpoints),
        "steps": [step_data(step) for step in progress.steps.values()],
        "set": [{"after": step.label, "path": step.path, "values": dict(values)} for step, values in view.changes],
        "named": dict(view.named),
        "warnings": [{"step": last_label(way), "way": way, "message": message} for way, message in view.warnings],
        "questions": [question_data(question) for question in view.questions],
        "answers": [answer_data(way, record) for way, record in view.answers],
        "effects": effects_data(view.effects),
        "output": view.value if view.replay.finished else None,
        "artifact": view.artifact if view.replay.finished else None,
        "artifact_type": view.artifact_type,
        **reused_data(view),
        **view.details,
        **(_thread(view.thread, progress) if view.thread else {}),
    }


def reused_data(view: RunView) -> dict[str, Value]:
    """Return the replies that the run has taken from another one; nothing for most runs."""
    if not view.pins.reuse:
        return {}
    from quire.display.copies_json import reuse_data

    return {"reused": reuse_data(view.reuse)}


def _thread(thread: Setup, progress: Progress) -> dict[str, Value]:
    return {
        "limits": thread.limits.as_value(),
        "capabilities": list(thread.grants),
        "threads": [
            {"path": run.path, "directive": run.id, "depth": run.depth, "tools": list(run.tools), "ended": run.ended}
            for run in progress.threads.values()
        ],
    }


def name_data(row: RunRow | None) -> dict[str, Value]:
    """Return the names of a run beside things of it: the title of its document, and its label as `subject`."""
    return {"title": row.title, "subject": visible(row.label)} if row else {"title": "", "subject": ""}


def question_data(question: Question, names: Mapping[str, Value] | None = None) -> dict[str, Value]:
    """Return a question. `names` are those of its run, for lists with questions of several runs."""
    return {
        "run": question.run,
        **(names or {}),
        "step": question.label,
        "way": question.way,
        "step_title": question.title,
        "path": question.path,
        "kind": question.kind,
        "prompt": question.prompt,
        "options": list(question.options),
        "default": question.default,
        "asked_at": question.asked_at,
        "expires_at": question.expires_at,
    }


def answer_data(way: str, record: EffectRecord) -> Value:
    return {
        "step": last_label(way),
        "way": way,
        "path": record.path,
        "answer": record.value,
        "by": record.by or None,
        "at": record.at,
    }


def effects_data(effects: Sequence[EffectRecord]) -> list[Value]:
    return [_effect(record) for record in effects]


def step_data(step: StepView, *, output: bool = True) -> dict[str, Value]:
    """Return a step; without `output` only what does not grow with the texts of models and tools."""
    fan = step.fan
    # For the rounds of a loop, `total` is the most that there may be until it has ended.
    counts: dict[str, Value] = {"total": fan.total, "done": fan.done, "failed": fan.failed} if fan else {}
    calls: list[Value] = [_call(call) if output else {"name": call.name or call.tool} for call in step.calls.values()]
    return {
        "path": step.path,
        "label": step.label,
        "way": step.way,
        "title": step.title,
        "status": step.status,
        "message": step.message,
        **({"output": step.output} if output else {}),
        "elapsed": round(step.elapsed, 3),
        "input_tokens": step.input_tokens,
        "output_tokens": step.output_tokens,
        "cost": step.cost,
        **({"thread": step.thread, "calls": calls} if step.thread else {}),
        **({"turns": step.agent_turns, "calls_total": step.agent_calls} if step.agent_calls else {}),
        **({"calls": calls} if step.agent_calls and output else {}),
        **({"survived": step.survived} if step.survived else {}),
        **({"items": {**counts, "rounds": True} if fan.rounds else counts} if fan else {}),
    }


def _call(call: CallView) -> Value:
    agent: dict[str, Value] = {"path": call.path, "turn": call.turn, "item": call.item or None}
    return {
        **({**agent, "text": call.said or None} if call.path else {}),
        "name": call.name or call.tool,
        "tool": call.tool,
        "arguments": dict(call.arguments),
        "result": call.result,
        "error": call.kind or None,
    }


def usage_data(usage: Usage | None) -> Value:
    """Return the usage of an effect; None without any."""
    if usage is None:
        return None
    return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "cost": usage.cost}


def failure_data(failure: Failure | None) -> Value:
    return {"kind": failure.kind, "message": failure.message} if failure else None


def _effect(record: EffectRecord) -> Value:
    return {
        "path": record.path,
        "kind": record.kind,
        "state": record.state,
        "request": record.request,
        "at": record.at,
        "elapsed": round(record.elapsed, 3),
        "delays": list(record.delays),
        "usage": usage_data(record.usage),
        "error": failure_data(record.failure),
        **({"set": record.value} if record.kind == "break" else {}),
        **({"by": record.by or None} if record.kind == "ask" else {}),
        **({"reused": record.by} if record.reused_from else {}),
    }
