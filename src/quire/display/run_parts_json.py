"""JSON of the parts of a run: one step with everything that led to its result, effects and values.

Texts of models, tools and people have any length, so each is cut where the JSON of a whole step would grow too large;
`/effects/{path}` has the whole of one. Ten thousand effects as columns take a sixth of their size as objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.display.run_json import answer_data, failure_data, question_data, step_data, usage_data
from quire.display.shell_commands import fork_command, side_command, why_command
from quire.engine.progress import StepView
from quire.engine.requests import HumanRequest, ModelRequest, ToolRequest
from quire.plan.vocabulary import JOINT, first_label
from quire.runs.prompts import marked, template_of
from quire.runs.run_tree import state_of
from quire.runs.step_reads import PIPE
from quire.runs.why import ProvenanceProgress
from quire.values import encode

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord, Status
    from quire.plan.nodes import Template
    from quire.runs.outcome import RunView
    from quire.runs.why import Performed, ValueSource, Why
    from quire.stores.run_pages import EffectBrief
    from quire.values import Value


LONGEST_TEXT = 100_000
"""Characters of one text in the JSON of a step."""
MOST_EFFECTS = 40
"""Effects of a step in one page: a fan-out has thousands."""


def step_detail(view: RunView, why: Why, *, after: int = 0) -> dict[str, Value]:
    """Return a step, or anything that a path stands for, with its requests as sent and what came back."""
    step = view.progress.steps.get(why.path)
    performed = why.performed[after : after + MOST_EFFECTS]
    rest = len(why.performed) - after - len(performed)
    inside = f"{why.path}/"
    questions = [
        question for question in view.questions if question.path.startswith(inside) or question.path == why.path
    ]
    answers = [answer for answer in view.answers if answer[1].path.startswith(inside)]
    output = short(step.output) if step else {}
    # Of several steps with one label the first.
    paths = {step.label: path for path, step in reversed(view.progress.steps.items())}
    return {
        **(step_data(step, output=False) if step else _place(why, view.row.status)),
        "state": _state(view, why),
        "effects": [_effect(view, effect, why.values) for effect in performed],
        "effects_total": len(why.performed),
        "next": str(after + len(performed)) if rest > 0 else None,
        "output": output.get("value"),
        "output_cut": output.get("cut"),
        "values": [
            {"name": value.name, "source": value.source, "path": value.path or None, **short(value.value)}
            for value in why.values
        ],
        "told": [{"label": label, "path": paths.get(label)} for label in why.told],
        "questions": [{**question_data(question), "hash": question.hash} for question in questions],
        "answers": [answer_data(way, record) for way, record in answers[-MOST_EFFECTS:]],
        "set": [dict(values) for at, values in view.changes if at.path == why.path],
        "commands": _commands(view, why),
    }


def _state(view: RunView, why: Why) -> str:
    """Return the state of the row at a path, as the tree of the run has it."""
    step = view.progress.steps.get(why.path)
    last = why.performed[-1].record if why.performed else None
    status = step.status if step else last.state if last else "running" if why.performed else why.status
    asks = any(question.path.startswith(why.path) for question in view.questions)
    return state_of(status, view.row.status, asks=asks)


def _place(why: Why, run: Status) -> dict[str, Value]:
    """Return what is known about an item or a call, which is not a step: its state is that of its last effect."""
    last = why.performed[-1].record if why.performed else None
    status = str(run) if last is None else "failed" if last.failure else "completed"
    numbers = why.elapsed, why.input_tokens, why.output_tokens, why.cost
    place = StepView(why.path, why.label, why.title, 0, status, message=why.message, way=why.way)
    place.elapsed, place.input_tokens, place.output_tokens, place.cost = numbers
    return step_data(place, output=False)


def _commands(view: RunView, why: Why) -> dict[str, Value]:
    run, way = view.row.id, why.way or why.path
    is_step = why.path in view.progress.steps
    return {
        "why": why_command(run, way if is_step else why.path),
        "prompt": side_command(run, "--prompt", way if is_step else why.path),
        "fork": fork_command(run, first_label(way) if JOINT in way else way),
    }


def _effect(view: RunView, done: Performed, values: Sequence[ValueSource]) -> Value:
    record, request = done.record, done.request
    data: dict[str, Value] = {
        "path": done.path,
        "label": request.label,
        "kind": record.kind if record else _kind(done),
    }
    if record is not None:
        data |= {**_outcome(record), **{f"answer_{name}": value for name, value in short(record.value).items()}}
    match request:
        case ModelRequest():
            template = template_of(view, done.path)
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


def _kind(performed: Performed) -> str:
    names = {ModelRequest: "model", ToolRequest: "tool", HumanRequest: "ask"}
    return next((name for kind, name in names.items() if isinstance(performed.request, kind)), "other")


def _pieces(text: str, template: Template | None, values: Sequence[ValueSource]) -> list[Value]:
    if len(text) > LONGEST_TEXT:
        return [{"text": text[:LONGEST_TEXT]}, {"text": "", "cut": len(text) - LONGEST_TEXT}]
    return [
        {"text": piece.text, "name": piece.name, "source": piece.source or None, "path": piece.path or None}
        if piece.name
        else {"text": piece.text}
        for piece in marked(text, template, values)
    ]


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
    columns: dict[str, list[Value]] = {name: [] for name in COLUMNS}
    for brief in briefs:
        record, usage = brief.record, brief.record.usage
        head = (record.path, record.kind, record.state, round(record.at, 3), round(record.elapsed, 3))
        used = (usage.input_tokens, usage.output_tokens, usage.cost) if usage else (None, None, None)
        error = record.failure.message if record.failure else None
        for name, value in zip(COLUMNS, (*head, *used, brief.size, error), strict=True):
            columns[name].append(value)
    return columns


def values_data(view: RunView) -> dict[str, Value]:
    """Return the values of a run as they are now: inputs, named results and stores, each with its writer."""
    by_name: dict[str, dict[str, Value]] = {}
    for name, value in view.pins.inputs.items():
        by_name[name] = {"name": name, "kind": "input", "source": "input", "path": None, **short(value)}
    progress = view.replay.progress
    writes = (
        {write.name: write for write in progress.writes if write.name != PIPE}
        if isinstance(progress, ProvenanceProgress)
        else {}
    )
    # Answers are also kept under names of their own, which no document writes.
    named = {name: value for name, value in view.progress.named.items() if not name.startswith("__")}
    now: Mapping[str, Value] = {**named, **view.stores}
    for name, value in now.items():
        write = writes.get(name)
        if write is None and name in by_name:
            continue
        kind = "store" if name in view.stores else "result"
        source, path = (write.source, write.path) if write else ("", "")
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
