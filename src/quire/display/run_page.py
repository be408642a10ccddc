"""Runs for people: their list, the page of one run, its journal, its questions, and its events as lines."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, cast

import click

from quire.display.text import (
    age,
    duration,
    fan_words,
    fitting_table,
    money,
    one_line,
    paragraph,
    place,
    prompt_lines,
    section,
    short,
    status_colour,
    table,
    tokens_in_and_out,
    visible,
)
from quire.display.turns import call_lines, effect_words, hook_words, turn_title, used_of
from quire.engine.records import EffectRecord, Event, Question, RunRow, Status
from quire.plan.vocabulary import JOINT
from quire.values import Value, as_texts

if TYPE_CHECKING:
    from quire.engine.progress import StepView
    from quire.runs.outcome import RunView

OUTPUT_LINES = 12
EFFECT_LINES = 30
_TITLE = 48
_EVENTS = {"step_completed": "done", "step_started": "started", "step_skipped": "skipped", "step_failed": "failed"}


def run_page(view: RunView, now: float) -> Iterator[str]:
    """Yield the paragraphs of the page, the most important facts first and the output last."""
    yield from run_header(view.row, now, view.pins.model, bool(view.questions))
    yield from section("inputs", _values(as_texts(view.pins.inputs)))
    steps = list(view.replay.progress.steps.values())
    used = used_of(view.replay.progress)
    rows = [(name, f"{much} of {most}" if most else f"{much}, no limit") for name, much, most in used]
    yield from section("used", table(rows))
    yield from paragraph("turns" if view.thread else "steps", _steps(steps))
    if view.pins.reuse:
        from quire.display.copies_json import reuse_lines

        yield from paragraph("reused", reuse_lines(view.reuse))
    set_values = [
        (f"after {place(step.way)}", name, short(value, 80))
        for step, values in view.changes
        for name, value in as_texts(values).items()
    ]
    yield from section("set by hand", table(set_values))
    yield from section("answers", _answers(view.answers))
    hooks = [hook for thread in view.replay.progress.threads.values() for hook in thread.hooks]
    yield from section("hooks", [one_line(f"{hook.path}: {hook_words(hook)}") for hook in hooks])
    yield from section("items that failed", [line for step in steps for line in _failures(step)])
    yield from section("stores", _values(as_texts(view.replay.progress.stores)))
    own = {name: value for name, value in view.named.items() if not name.startswith("__")}
    yield from section("named outputs", _values(own))
    warnings = [f"{f'{place(label)}: ' if label else ''}{one_line(text)}" for label, text in view.warnings]
    yield from section("warnings", warnings)
    if view.row.format == "pipeline" and view.effects:
        yield from paragraph("effects", _effects(view))
    lines = [line for question in view.questions for line in question_lines(question, now)]
    yield from section("waiting for an answer", lines)
    if closing := str(view.ending.get("closing_message") or ""):
        yield from paragraph("closing message", visible(closing).split("\n"))
    if view.replay.finished:
        yield from paragraph(f"output ({view.artifact_type})" if view.artifact_type else "output", _output(view))


def run_header(row: RunRow, now: float, model: str, asks: bool = True) -> Iterator[str]:
    yield click.style(one_line(row.title) or row.id, bold=True)
    cost = money(row.cost)
    at = f" at {place(position_of(row))}" if position_of(row) and row.status is not Status.COMPLETED else ""
    yield f"{'run':9} {row.id}"
    yield f"{'status':9} {_coloured(said(shown_status(row, asks)), row.status)}{at}"
    facts = [
        ("subject", row.label),
        *([("note", row.note)] if row.note else []),
        ("document", row.document),
        *_origin(row),
        *([("model", model)] if model else []),
        *([("forced", ", ".join(map(str, cast("list[str]", forced))))] if (forced := row.pins.get("forced")) else []),
        ("created", f"{_clock(row.created_at)} ({age(now - row.created_at)} ago)"),
    ]
    if row.expires_at is not None and row.status in (Status.PAUSED, Status.AWAITING_INPUT):
        facts.append(("expires", f"{_clock(row.expires_at)} (in {age(row.expires_at - now)})"))
    if row.parked:
        facts.append(("waits", row.waits))
    if row.input_tokens or row.output_tokens:
        facts.append(("tokens", f"{row.input_tokens:,} in, {row.output_tokens:,} out" + (f", {cost}" if cost else "")))
    if row.failure:
        where = f"{place(position_of(row))}: " if position_of(row) else ""
        facts.append(("error", f"{where}{row.failure.message} ({row.failure.kind})"))
        if row.failed_at:
            facts.append(("failed at", ", ".join(row.ended_by)))
    yield from (f"{name:9} {one_line(fact)}" for name, fact in facts)


def journal_table(effects: Sequence[EffectRecord]) -> list[str]:
    cells = [
        (
            record.path,
            record.kind,
            record.state,
            record.request[:12],
            duration(record.elapsed),
            tokens_in_and_out(record.usage.input_tokens, record.usage.output_tokens) if record.usage else "",
            short(_note(record), 60),
        )
        for record in effects
    ]
    header = ("PATH", "KIND", "STATE", "REQUEST", "TOOK", "TOKENS", "NOTE")
    return table(cells, header, right=frozenset({4, 5}))


def _note(record: EffectRecord) -> str:
    """Return why the effect failed, who answered, where a reply was taken from, or which values were set at a
    breakpoint."""
    if record.failure:
        return record.failure.message
    if record.by:
        return f"reused from {record.by}" if record.reused_from else f"by {record.by}"
    names = record.value if record.kind == "break" and isinstance(record.value, Mapping) else ()
    return f"set {', '.join(names)}" if names else ""


def _answers(answers: Sequence[tuple[str, EffectRecord]]) -> list[str]:
    """Return the last answers, with the name of the user who gave each, if it is known."""
    shown = answers[-EFFECT_LINES:]
    rows = [(place(way), short(str(record.value), 60), f"by {record.by}" if record.by else "") for way, record in shown]
    rest = len(answers) - len(shown)
    return [*([f"… {rest} before these: quire runs RUN --json"] if rest else []), *table(rows)]


def question_lines(question: Question, now: float) -> list[str]:
    """Return a question, its possible answers, and its expiry."""
    at = f" at {one_line(question.path)}" if _is_nested(question) else ""
    first, *more = prompt_lines(question.prompt)
    lines = [f"{place(question.way)}{at} ({question.kind}): {first}", *(f"  {line}".rstrip() for line in more)]
    if question.options:
        lines.append("  options: " + " | ".join(one_line(option) for option in question.options))
    if question.default is not None:
        lines.append(f"  default: {one_line(question.default)}")
    waits = f"  asked {age(now - question.asked_at)} ago"
    if question.expires_at is not None:
        waits += f", expires in {age(question.expires_at - now)}"
    return [*lines, waits]


def event_line(event: Event) -> str:
    """Return one stored event as a line for people."""
    data = event.data
    step = place(event.way) if event.way else ""
    title = one_line(str(data.get("name") or data.get("title", "")))
    match event.type:
        case "effect":
            took = duration(float(str(data.get("elapsed", 0))))
            used = tokens_in_and_out(_whole(data, "input_tokens"), _whole(data, "output_tokens"))
            what = [str(data.get("kind", "")), str(data.get("state", "")), took, used, str(data.get("message", ""))]
            what += ["by", str(data["by"])] if data.get("by") else []
            what += ["reused from", str(data["reused"])] if data.get("reused") else []
            what.append(effect_words(event))
        case "thread_started":
            what = ["thread", str(data.get("thread", "")), "started"]
        case "thread_ended":
            how = "completed" if data.get("success") else "failed:"
            what = ["thread", str(data.get("thread", "")), how, str(data.get("error", ""))]
        case "tools_offered":
            offered = data.get("tools")
            what = ["may use", ", ".join(map(str, offered)) if isinstance(offered, list | tuple) else ""]
        case "hook_action":
            what = [f"hook {data.get('hook') or ''} on {data.get('event')}:", str(data.get("item_id", ""))]
        case "tool_called":
            what = ["starts", str(data.get("tool", ""))]
        case "run_forked":
            what = ["forked from", str(data.get("origin", ""))]
        case "question":
            what = ["asks:", str(data.get("prompt", ""))]
        case "warning":
            what = ["warning:", str(data.get("message", ""))]
        case "fan_started":
            what = [f"{data.get('total')} items side by side"]
        case kind if kind in _EVENTS:
            what = [_EVENTS[kind], title, str(data.get("message", ""))]
        case other:
            what = [other.replace("_", " "), str(data.get("message", data.get("reason", "")))]
    said_here = one_line(" ".join(part for part in what if part))
    return f"{_clock(event.at)[11:]}  {f'{step}: ' if step else ''}{said_here}"


def shown_status(row: RunRow, asks: bool = True) -> str:
    """Return the status to show. An imported run is "imported"; its page says with which status it was exported. A run
    that waits without an open question is "answered": it waits to be driven on."""
    if row.pins.get("imported"):
        return "imported"
    return "answered" if row.status is Status.AWAITING_INPUT and not asks else str(row.status)


def _origin(row: RunRow) -> list[tuple[str, str]]:
    """Return where a forked or imported run comes from."""
    facts = []
    if isinstance(origin := row.pins.get("origin"), Mapping) and origin:
        facts.append(("forked", f"from {origin.get('run')} at {place(str(origin.get('step')))}"))
    if isinstance(imported := row.pins.get("imported"), Mapping) and imported:
        facts.append(("imported", f"from a file, as {said(str(imported.get('status')))}"))
    return facts


def position_of(row: RunRow) -> str:
    """Return the way to the step of a run. In a failed pipeline this is the step that failed, which need not be the
    one that was started last."""
    if row.failed_at:
        top = row.failed_at.partition("/")[0]
        return row.position if JOINT in row.position and row.position.startswith(top) else top
    return row.position


def _is_nested(question: Question) -> bool:
    """Return True if steps with the same label can ask several questions at once, as the items of a list do."""
    if question.path.startswith("thread/"):
        return question.path.count("/thread/") > 0
    return "[" in question.path and not question.path.startswith(f"{question.label}/") and "/case[" not in question.path


def _failures(step: StepView) -> list[str]:
    fan = step.fan
    if fan is None:
        return []
    lines = [
        f"step {step.label}, {one_line(name)}: {short(message, 100)}" for name, message in fan.failures[:EFFECT_LINES]
    ]
    return lines if fan.failed <= len(lines) else [*lines, f"… {fan.failed - len(lines)} more"]


def _effects(view: RunView) -> list[str]:
    """Return the table of effects, cut if it is long. Effects that did not succeed are always included."""
    effects = view.effects
    if len(effects) <= EFFECT_LINES:
        return journal_table(effects)
    wrong = [record for record in effects if record.state != "ok"][:EFFECT_LINES]
    first = effects[: max(0, EFFECT_LINES - len(wrong))]
    shown = [*first, *(record for record in wrong if record not in first)]
    rest = len(effects) - len(shown)
    return [*journal_table(shown), f"… {rest} more: quire runs {view.row.id} --journal"]


def said(status: str) -> str:
    return status.replace("_", " ")


def _steps(steps: Sequence[StepView]) -> list[str]:
    """Return a row for each step; below a turn or the step of an agent, the tools that it called."""
    rows = table([_step(step) for step in steps], right=frozenset({3}), style=_status_style)
    lines = []
    for step, row in zip(steps, rows, strict=True):
        lines.append(row)
        for line, failed in call_lines(step, "  " * (step.depth + 2)):
            lines.append(click.style(line, fg="red") if failed else line)
    return lines


def _step(step: StepView) -> tuple[str, ...]:
    return (
        "  " * step.depth + step.way,
        said(step.status),
        short(turn_title(step) if step.thread else step.title, _TITLE)
        + (f"  {fan_words(step.fan)}" if step.fan else ""),
        duration(step.elapsed) if step.elapsed >= 0.05 else "",
        tokens_in_and_out(step.input_tokens, step.output_tokens),
        money(step.cost),
        short(f"survived: {step.survived}" if step.survived else step.message, 60),
    )


def _output(view: RunView) -> list[str]:
    lines = visible(view.artifact).split("\n")
    if len(lines) <= OUTPUT_LINES:
        return lines
    rest = len(lines) - OUTPUT_LINES
    return [*lines[:OUTPUT_LINES], f"… {rest} more lines: quire runs {view.row.id} --output"]


def _values(values: Mapping[str, str]) -> list[str]:
    return table([(name, short(value, 80)) for name, value in values.items()])


def _status_style(cell: str, column: int) -> str:
    """Colour the second column, which has the status."""
    return _coloured(cell, cell.replace(" ", "_")) if column == 1 else cell


def _coloured(cell: str, status: str) -> str:
    colour = status_colour(status)
    return click.style(cell, fg=colour) if colour else cell


def _clock(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _whole(data: Mapping[str, Value], name: str) -> int:
    value = data.get(name)
    return value if isinstance(value, int) else 0


_LAYOUTS = tuple(product((True, False), (_TITLE, 32, 20, 12), (60, 40, 24, 12, 0)))
"""Layouts from the widest to the narrowest: if tokens and cost are shown, and the characters for title and
inputs."""


def run_table(rows: Sequence[RunRow], now: float, asking: Collection[str], columns: int | None = None) -> list[str]:
    """Return the list in the widest layout that fits into `columns`, else in the narrowest. `asking` are the runs with
    an open question."""
    return fitting_table((_run_table(rows, now, asking, *layout) for layout in _LAYOUTS), columns)


def _run_table(
    rows: Sequence[RunRow], now: float, asking: Collection[str], numbers: bool, title: int, inputs: int
) -> list[str]:
    wide = title == _TITLE
    header = ["RUN", "STATUS", "SUBJECT", "STEP", "AGE"] + ["TOKENS", "COST"] * numbers
    header += ["TITLE"] * wide + ["INPUTS"] * bool(inputs)
    cells = []
    for row in rows:
        origin, inputs_of = row.pins.get("origin"), row.pins.get("inputs")
        forked = f"  (fork of {origin.get('run')})" if isinstance(origin, Mapping) and origin else ""
        texts = as_texts(inputs_of) if isinstance(inputs_of, Mapping) else {}
        cell = [
            row.id,
            said(shown_status(row, row.id in asking)),
            short(row.label, title) + (forked if wide else "") + (f"  ({short(row.waits, 60)})" if row.parked else ""),
            position_of(row),
            age(now - row.created_at),
        ]
        cell += [tokens_in_and_out(row.input_tokens, row.output_tokens), money(row.cost)] * numbers
        named = ", ".join(f"{name}={text}" for name, text in texts.items())
        cells.append(cell + [short(row.title, 32)] * wide + [short(named, inputs)] * bool(inputs))
    return table(cells, header, right=frozenset({4, 5, 6} if numbers else {4}), style=_status_style)


_TREE_LAYOUTS = ((72, 60), (60, 40), (48, 24), (40, 0), (28, 0))
"""Layouts from the widest to the narrowest: the characters for the names of rows, and for the words about them."""


def tree_table(columns: Mapping[str, Sequence[Value]], room: int | None = None) -> list[str]:
    """Return the tree of a run, one row a line, in the widest layout that fits."""
    names = ("parent", "title", "label", "state", "hint", "took", "cost", "kind")
    rows = list(zip(*(columns[name] for name in names), strict=True))
    depths: list[int] = []
    for parent, *_ in rows:
        depths.append(depths[parent] + 1 if isinstance(parent, int) and parent >= 0 else 0)
    return fitting_table((_tree_table(rows, depths, *layout) for layout in _TREE_LAYOUTS), room)


def _tree_table(rows: Sequence[tuple[Value, ...]], depths: Sequence[int], name: int, hint: int) -> list[str]:
    cells = []
    for (_, title, label, state, words, took, cost, kind), depth in zip(rows, depths, strict=True):
        number = f"{title} " if kind == "step" and title else ""
        seconds, price = (value if isinstance(value, int | float) else None for value in (took, cost))
        cell = ["  " * depth + short(f"{number}{label}", max(8, name - 2 * depth)), str(state)]
        cell += [short(str(words), hint)] * bool(hint)
        cells.append([*cell, duration(seconds) if seconds else "", money(price) if price else ""])
    header = ("STEP", "STATE", *(["ABOUT"] * bool(hint)), "TOOK", "COST")
    return table(cells, header, right=frozenset({len(header) - 2, len(header) - 1}), style=_status_style)
