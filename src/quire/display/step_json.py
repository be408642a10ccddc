"""JSON of the parts of a run: one step with everything that led to its result, effects without values, and values.

Texts of models, tools and people have any length, so each is cut where the JSON of a whole step would grow too large;
`/effects/{path}` has the whole of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.display.commands import fork_command, side_command, why_command
from quire.display.run_json import answer_data, failure_data, question_data, step_data, usage_data
from quire.engine.requests import HumanRequest, ModelRequest, ToolRequest
from quire.plan.ways import JOINT, first_label
from quire.runs.prompt_marks import Piece, marked, template_of
from quire.runs.provenance import ProvenanceProgress
from quire.runs.step_reads import PIPE
from quire.values import encode

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord
    from quire.plan.nodes import Template
    from quire.runs.provenance import ValueSource
    from quire.runs.view import RunView
    from quire.runs.why import Performed, Why
    from quire.stores.journal_pages import EffectBrief
    from quire.values import Value

LONGEST_TEXT = 100_000
"""Characters of one text in the JSON of a step."""
MOST_EFFECTS = 40
"""Effects of a step in one page: a fan-out has thousands."""


def step_detail(view: RunView, found: Why, *, after: int = 0) -> dict[str, Value]:
    """Return a step, or anything that a path stands for, with its requests as sent and what came back."""
    step = view.progress.steps.get(found.path)
    performed = found.performed[after : after + MOST_EFFECTS]
    rest = len(found.performed) - after - len(performed)
    inside = f"{found.path}/"
    questions = [one for one in view.questions if one.path.startswith(inside) or one.path == found.path]
    answers = [one for one in view.answers if one[1].path.startswith(inside)]
    output = short(step.output) if step else {}
    return {
        **(step_data(step, output=False) if step else _place(found)),
        "effects": [_effect(view, one, found.values) for one in performed],
        "effects_total": len(found.performed),
        "next": str(after + len(performed)) if rest > 0 else None,
        "output": output.get("value"),
        "output_cut": output.get("cut"),
        "values": [_origin(one) for one in found.values],
        "told": [_told(view, label) for label in found.told],
        "questions": [{**question_data(one), "hash": one.hash} for one in questions],
        "answers": [answer_data(way, record) for way, record in answers[-MOST_EFFECTS:]],
        "set": [dict(values) for at, values in view.changes if at.path == found.path],
        "commands": _commands(view, found),
    }


def _place(found: Why) -> dict[str, Value]:
    """Return what is known about an item or a call, which is not a step: its state is that of its last effect."""
    last = found.performed[-1].record if found.performed else None
    status = "running" if last is None else "failed" if last.failure else "completed"
    return {
        "path": found.path,
        "label": found.label,
        "way": found.way,
        "title": found.title,
        "status": status,
        "message": found.message,
        "elapsed": round(found.elapsed, 3),
        "input_tokens": found.input_tokens,
        "output_tokens": found.output_tokens,
        "cost": found.cost,
    }


def _commands(view: RunView, found: Why) -> dict[str, Value]:
    run, way = view.row.id, found.way or found.path
    known = found.path in view.progress.steps
    return {
        "why": why_command(run, way if known else found.path),
        "prompt": side_command(run, "--prompt", way if known else found.path),
        "fork": fork_command(run, first_label(way) if JOINT in way else way),
    }


def _told(view: RunView, label: str) -> Value:
    path = next((path for path, step in view.progress.steps.items() if step.label == label), None)
    return {"label": label, "path": path}


def _origin(one: ValueSource) -> dict[str, Value]:
    return {"name": one.name, "source": one.source, "path": one.path or None, **short(one.value)}


def _effect(view: RunView, one: Performed, values: Sequence[ValueSource]) -> Value:
    record, request = one.record, one.request
    data: dict[str, Value] = {"path": one.path, "label": request.label, "kind": record.kind if record else _kind(one)}
    if record is not None:
        data |= {**_outcome(record), **{f"answer_{name}": value for name, value in short(record.value).items()}}
    match request:
        case ModelRequest():
            template = template_of(view, one.path)
            data["system"] = short(request.system)
            data["messages"] = [
                {
                    "role": message.role,
                    "pieces": _pieces(message.content, template if message.role == "user" else None, values),
                    "calls": [{"name": use.name, "arguments": dict(use.arguments)} for use in message.uses],
                }
                for message in request.messages[-MOST_EFFECTS:]
            ]
            data["earlier_messages"] = max(0, len(request.messages) - MOST_EFFECTS)
            data["tools"] = [tool.name for tool in request.tools]
            data["model"] = request.model or view.pins.instead or view.pins.model
            data["schema"] = request.schema or request.closing
        case ToolRequest(connection=connection, tool=tool, arguments=arguments):
            data["tool"] = f"{connection}/{tool}" if connection else tool
            data["arguments"] = short(dict(arguments))
        case HumanRequest(prompt=prompt, options=options):
            data["prompt"], data["options"] = prompt, list(options)
        case _:
            data["request"] = short(request.content())
    return data


def _kind(one: Performed) -> str:
    names = {ModelRequest: "model", ToolRequest: "tool", HumanRequest: "ask"}
    return next((name for kind, name in names.items() if isinstance(one.request, kind)), "other")


def _pieces(text: str, template: Template | None, values: Sequence[ValueSource]) -> list[Value]:
    if len(text) > LONGEST_TEXT:
        cut = text[:LONGEST_TEXT]
        return [{"text": cut}, {"text": "", "cut": len(text) - LONGEST_TEXT}]
    return [_piece(one) for one in marked(text, template, values)]


def _piece(one: Piece) -> Value:
    if not one.name:
        return {"text": one.text}
    return {"text": one.text, "name": one.name, "source": one.source or None, "path": one.path or None}


def short(value: Value) -> dict[str, Value]:
    """Return a value as `{"value": …}`; a long one as the beginning of its text, with the number of characters left
    out."""
    text = value if isinstance(value, str) else encode(value)
    if len(text) <= LONGEST_TEXT:
        return {"value": value}
    return {"value": text[:LONGEST_TEXT], "cut": len(text) - LONGEST_TEXT}


def _outcome(record: EffectRecord) -> dict[str, Value]:
    return {
        "state": record.state,
        "at": record.at,
        "elapsed": round(record.elapsed, 3),
        "delays": list(record.delays),
        "usage": usage_data(record.usage),
        "error": failure_data(record.failure),
        "by": None if record.reused_from else record.by or None,
        **({"reused": record.by} if record.reused_from else {}),
    }


def effect_data(record: EffectRecord) -> dict[str, Value]:
    """Return one effect with its value."""
    head: dict[str, Value] = {"path": record.path, "kind": record.kind, "request": record.request}
    return {**head, **_outcome(record), "value": record.value}


def brief_data(brief: EffectBrief) -> dict[str, Value]:
    """Return one effect without its value."""
    record = brief.record
    return {"path": record.path, "kind": record.kind, **_outcome(record), "value_size": brief.size}


COLUMNS = ("path", "kind", "state", "at", "elapsed", "input_tokens", "output_tokens", "cost", "value_size", "error")


def columns_data(briefs: Iterable[EffectBrief]) -> dict[str, list[Value]]:
    """Return effects as one list for each column: a third smaller, and quicker to read, than objects."""
    found: dict[str, list[Value]] = {name: [] for name in COLUMNS}
    for brief in briefs:
        record, usage = brief.record, brief.record.usage
        found["path"].append(record.path)
        found["kind"].append(record.kind)
        found["state"].append(record.state)
        found["at"].append(round(record.at, 3))
        found["elapsed"].append(round(record.elapsed, 3))
        found["input_tokens"].append(usage.input_tokens if usage else None)
        found["output_tokens"].append(usage.output_tokens if usage else None)
        found["cost"].append(usage.cost if usage else None)
        found["value_size"].append(brief.size)
        found["error"].append(record.failure.message if record.failure else None)
    return found


def values_data(view: RunView) -> dict[str, Value]:
    """Return the values of a run as they are now: inputs, named results and stores, each with its writer."""
    by_name: dict[str, dict[str, Value]] = {}
    for name, value in view.pins.inputs.items():
        by_name[name] = {"name": name, "kind": "input", "source": "input", "path": None, **short(value)}
    progress = view.replay.progress
    writes = (
        {one.name: one for one in progress.writes if one.name != PIPE}
        if isinstance(progress, ProvenanceProgress)
        else {}
    )
    # Answers are also kept under names of their own, which no document writes.
    named = {name: value for name, value in view.progress.named.items() if not name.startswith("__")}
    now: Mapping[str, Value] = {**named, **view.stores}
    for name, value in now.items():
        one = writes.get(name)
        if one is None and name in by_name:
            continue
        kind = "store" if view.row.format == "pipeline" else "result"
        source, path = (one.source, one.path) if one else ("", "")
        by_name[name] = {"name": name, "kind": kind, "source": source, "path": path or None, **short(value)}
    for step, values in view.changes:
        for name, value in values.items():
            last = writes.get(name)
            if last is not None and not last.source.startswith("set ") and last.path != step.path:
                continue
            source = f"set at the end of step {step.label}"
            entry = by_name.setdefault(name, {"name": name, "kind": "result"})
            entry |= {"source": source, "path": step.path, "by_hand": True, **short(value)}
    return {"values": list(by_name.values())}
