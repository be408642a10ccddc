"""Pages and JSON that explain a step's result (`runs why`), the differences of two runs (`runs diff`), and how a text
changed, by words.

Changed words are coloured, or marked `[-old-]{+new+}` where there are no colours. Lines without a change are folded,
apart from one on each side, and so is the unchanged middle of a long line.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, assert_never

import click

from quire.display.run_json import failure_data, usage_data
from quire.display.text import duration, money, one_line, place, short, visible
from quire.display.text import tokens as counted
from quire.display.transcript import prompt_data, prompt_text
from quire.display.visible import visible as shown
from quire.engine.requests import Boundary, HumanRequest, Load, Meter, ModelRequest, ToolRequest
from quire.runs.diff import Change, RunDiff, StepDiff, answered_by
from quire.text_diff import Piece, word_pieces
from quire.values import Value, pretty

if TYPE_CHECKING:
    from quire.runs.outcome import RunView
    from quire.runs.why import Performed, ValueSource, Why


SHOWN_LINES = 12
_MARKS = {"same": "=", "changed": "~", "only in A": "<", "only in B": ">"}
_COLOURS = {"changed": "yellow", "only in A": "red", "only in B": "green"}


def why_page(why: Why) -> Iterator[str]:
    """Yield paragraphs: the step, the values it read, then each effect with its request and its answer."""
    title = f": {one_line(why.title)}" if why.title else ""
    yield click.style(f"{place(why.way)}{title}" if why.way else one_line(why.path), bold=True)
    yield f"{'run':9} {why.run}"
    yield f"{'path':9} {one_line(why.path)}"
    yield f"{'status':9} {one_line(why.status.replace('_', ' '))}" + (
        f": {one_line(why.message)}" if why.message else ""
    )
    took = [duration(why.elapsed), counted(why.input_tokens + why.output_tokens), money(why.cost)]
    yield f"{'took':9} {' · '.join(part for part in took if part)}"
    if why.values:
        yield from _title("what it read")
        for read in why.values:
            value = "" if read.many else f" = {short(pretty(read.value), 80)}"
            yield f"  {one_line(read.name)}{value}  ({one_line(read.source)})"
    if why.told:
        yield from _title("results that the model was told")
        yield f"  of {', '.join(place(label) for label in why.told)}"
    for performed in why.performed:
        yield from _effect(performed)


def _effect(performed: Performed) -> Iterator[str]:
    record = performed.record
    facts: list[str] = [record.state if record else "not performed yet"]
    if record:
        facts.append(duration(record.elapsed))
        if record.usage:
            used = record.usage
            facts += [f"{used.input_tokens:,} in, {used.output_tokens:,} out", money(used.cost)]
        facts += [f"{'reused from' if record.reused_from else 'by'} {one_line(record.by)}"] if record.by else []
        if record.delays:
            waits = ", ".join(duration(delay) for delay in record.delays)
            facts.append(f"asked again after {waits}")
    yield from _title(f"{one_line(performed.path)}  {' · '.join(fact for fact in facts if fact)}")
    yield from _block(*_asked(performed))
    if record is not None:
        name, text = _answered(performed)
        yield from _block(name, text)


def _asked(performed: Performed) -> tuple[str, str]:
    match performed.request:
        case ModelRequest() as request:
            return "prompt", prompt_text(request)
        case ToolRequest(connection=connection, tool=tool, arguments=arguments, stdin=stdin):
            name = f"{connection}/{tool}" if connection else tool
            whole = {**arguments, **({"(stdin)": stdin} if stdin is not None else {})}
            return f"call of {name}", pretty(whole)
        case HumanRequest(prompt=prompt, options=options):
            return "question", prompt + (f"\noptions: {' | '.join(options)}" if options else "")
        case Load(scheme=scheme, where=where):
            return "reads", f"{scheme}:{where}"
        case Boundary(label=label):
            return "paused", f"after {place(label)}"
    return "asks", pretty(performed.request.content())


def _answered(performed: Performed) -> tuple[str, str]:
    names: dict[type[object], str] = {
        ModelRequest: "reply",
        ToolRequest: "result",
        HumanRequest: "answer",
        Load: "text",
        Boundary: "set by hand",
    }
    failed = performed.record is not None and performed.record.failure is not None
    name = "failed" if failed else names.get(type(performed.request), "answer")
    value = answered_by(performed)
    return name, "(missing)" if value is None else pretty(value)


def _block(name: str, text: str) -> Iterator[str]:
    yield f"  {one_line(name)}"
    yield from (f"    {line}".rstrip() for line in visible(text).rstrip("\n").split("\n"))


def _title(text: str) -> Iterator[str]:
    yield ""
    yield click.style(text, bold=True)


def why_data(why: Why) -> dict[str, Value]:
    return {
        "run": why.run,
        "path": why.path,
        "step": why.label,
        "way": why.way,
        "title": why.title,
        "status": why.status,
        "message": why.message,
        "elapsed": round(why.elapsed, 3),
        "input_tokens": why.input_tokens,
        "output_tokens": why.output_tokens,
        "cost": why.cost,
        "values": values_data(why.values),
        "told": list(why.told),
        "effects": [_performed(performed) for performed in why.performed],
    }


def values_data(values: Iterable[ValueSource]) -> list[Value]:
    return [
        {"name": value.name, "value": value.value, "source": value.source, "path": value.path or None}
        for value in values
    ]


def _performed(performed: Performed) -> Value:
    record, request = performed.record, performed.request
    sent = prompt_data(request) if isinstance(request, ModelRequest) else request.content()
    return {
        "path": performed.path,
        "request": sent,
        "state": record.state if record else None,
        "kind": record.kind if record else None,
        "answer": record.value if record else None,
        **({"by": record.by or None} if record and record.kind == "ask" else {}),
        **({"reused": record.by} if record and record.reused_from else {}),
        "error": failure_data(record.failure) if record else None,
        "at": record.at if record else None,
        "elapsed": round(record.elapsed, 3) if record else None,
        "delays": list(record.delays) if record else [],
        "usage": usage_data(record.usage) if record else None,
    }


def diff_page(a: RunView, b: RunView, diff: RunDiff) -> Iterator[str]:
    for name, view in (("A", a), ("B", b)):
        origin = view.pins.origin
        forked = f", forked from {origin.get('run')} at {place(str(origin.get('step')))}" if origin else ""
        yield f"{name} {view.row.id}  {one_line(view.row.label)}  {view.row.status.words}{one_line(forked)}"
    for change in diff.about:
        yield from _change(change, "  ")
    yield ""
    for step in diff.steps:
        yield from _step(step)


def _step(step: StepDiff) -> Iterator[str]:
    words = ", ".join(dict.fromkeys(change.what for change in step.changes)) or step.state
    line = f"{_MARKS[step.state]} {one_line(step.label)}  {short(step.title, 40)}"
    line = line if step.state == "same" else f"{line.rstrip()}  ({words})"
    colour = _COLOURS.get(step.state)
    yield click.style(line.rstrip(), fg=colour) if colour else line.rstrip()
    for change in step.changes:
        yield from _change(change, "    ")


def _change(change: Change, indent: str) -> Iterator[str]:
    yield f"{indent}{change.what} {one_line(change.where)}".rstrip()
    lines = _value_lines(change.a), _value_lines(change.b)
    shown = [
        line for line in difflib.unified_diff(*lines, lineterm="", n=0) if not line.startswith(("---", "+++", "@@"))
    ]
    for line in shown[:SHOWN_LINES]:
        yield f"{indent}  {click.style(line, fg='red' if line.startswith('-') else 'green')}"
    if len(shown) > SHOWN_LINES:
        yield f"{indent}  … {len(shown) - SHOWN_LINES} more lines"


def _value_lines(value: Value) -> list[str]:
    if value is None:
        return []
    return [short(line, 160) if len(line) > 160 else line for line in visible(pretty(value)).split("\n")]


def diff_data(a: RunView, b: RunView, diff: RunDiff) -> dict[str, Value]:
    return {
        "a": a.row.id,
        "b": b.row.id,
        "subjects": [shown(view.row.label) for view in (a, b)],
        "same": diff.same,
        "about": changes_data(diff.about),
        "steps": [
            {
                "path": step.path,
                "step": step.label,
                "title": step.title,
                "state": step.state.replace(" ", "_").lower(),
                "changes": changes_data(step.changes),
                "spent": {"a": _spent(step.spent[0]), "b": _spent(step.spent[1])},
            }
            for step in diff.steps
        ],
    }


def _spent(spent: Meter | None) -> Value:
    if spent is None:
        return None
    return {
        "elapsed": round(spent.elapsed, 3),
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "cost": spent.cost,
    }


def changes_data(changes: Sequence[Change]) -> list[Value]:
    return [{"what": change.what, "where": change.where, "a": change.a, "b": change.b} for change in changes]


LINES_AROUND = 1
"""Unchanged lines shown on each side of a change."""
MOST_LINES = 40
_AROUND = 60
"""Unchanged characters shown on each side of a change in its line."""
_LONGEST = 400
"""A longer changed piece of one line is cut."""


_Line = list[Piece]


def word_diff(old: str, new: str, *, colour: bool = False, most: int = MOST_LINES) -> list[str]:
    """Return the lines that show the difference, safe for a terminal; none if the texts are the same."""
    if old == new:
        return []
    units = list(_folded(_lines_of_pieces(word_pieces(old, new))))
    cut = units if len(units) <= most else units[: most - 1]
    shown = [
        f"… {unit:,} unchanged lines" if isinstance(unit, int) else "".join(_marked_up(unit, colour)).rstrip(" ")
        for unit in cut
    ]
    more = len(units) - len(cut)
    return [*shown, *([f"… {more:,} more lines"] if more else [])]


def _lines_of_pieces(pieces: Sequence[Piece]) -> list[_Line]:
    """Break pieces into lines. A line end that is only in one of the texts breaks the shown line too, and is shown as a
    sign where it stands alone."""
    lines: list[_Line] = [[]]
    for piece in pieces:
        *ended, rest = piece.text.split("\n")
        for text in ended:
            if text or piece.kind != "same":
                lines[-1].append(Piece(piece.kind, text or "↵"))
            lines.append([])
        if rest:
            lines[-1].append(Piece(piece.kind, rest))
    return lines if lines[-1] else lines[:-1]


def _folded(lines: Sequence[_Line]) -> Iterator[_Line | int]:
    """Yield the lines near a change, and the number of lines folded between them."""
    changed = [any(piece.kind != "same" for piece in line) for line in lines]
    skipped = 0
    for at, line in enumerate(lines):
        if any(changed[max(0, at - LINES_AROUND) : at + LINES_AROUND + 1]):
            if skipped == 1:  # folding one line saves none
                yield lines[at - 1]
            elif skipped:
                yield skipped
            skipped = 0
            yield line
        else:
            skipped += 1
    if skipped == 1:
        yield lines[-1]
    elif skipped:
        yield skipped


def _marked_up(pieces: _Line, colour: bool) -> Iterator[str]:
    for at, piece in enumerate(pieces):
        match piece.kind:
            case "same":
                yield _visible(_middle_folded(piece.text, at > 0, at + 1 < len(pieces)))
            case "gone" | "new":
                yield _marked(piece, colour)
            case _:
                assert_never(piece.kind)


def _marked(piece: Piece, colour: bool) -> str:
    more = len(piece.text) - _LONGEST
    text = _visible(piece.text if more <= 0 else f"{piece.text[:_LONGEST]} … ({more:,} more characters)")
    if not colour:
        return f"[-{text}-]" if piece.kind == "gone" else f"{{+{text}+}}"
    tint = "red" if piece.kind == "gone" else "green"
    # The colour of the letters does not show on spaces.
    return click.style(text, fg=tint) if text.strip() else click.style(text, bg=tint)


def _middle_folded(text: str, changed_before: bool, changed_after: bool) -> str:
    kept_before, kept_after = (_AROUND if changed_before else 0), (_AROUND if changed_after else 0)
    if not changed_before and not changed_after:
        kept_before = 2 * _AROUND
    if len(text) <= kept_before + kept_after + _AROUND // 2:
        return text
    return f"{text[:kept_before]} … {text[len(text) - kept_after :]}" if kept_after else f"{text[:kept_before]} …"


def _visible(text: str) -> str:
    return "\t".join(shown(part) for part in text.split("\t"))
