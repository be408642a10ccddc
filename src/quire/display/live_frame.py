"""Render one picture of a running run, as lines that fit the terminal: its steps, the streamed reply, a status line.

The picture depends only on the progress and the size of the terminal. Texts never become markup, and control
characters written by a model or a document are made visible.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct
from rich.cells import cell_len, chop_cells
from rich.text import Text

from quire.display.text import fan_words, numbers, one_line, visible
from quire.display.turns import (
    agent_heading,
    answered,
    called,
    hook_words,
    is_of_turn,
    placed_hooks,
    shown_calls,
    turn_title,
    used_of,
)
from quire.display.visible import in_encoding
from quire.engine.thread_progress import CallView, HookView, thread_of
from quire.plan.built_in_tools import RETURN
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.engine.progress import FanView, Progress, StepView

STREAM_ROWS = 8
FAILURE_ROWS = 4
"""Number of failed items shown while a step runs; `SUMMARY_FAILURES` are shown at its end."""
SUMMARY_FAILURES = 20
AGENT_CALLS = 6
"""Number of an agent's calls shown below its step, the last ones."""
_BAR = 20
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_NARROW = 40
_CUT, _PLAIN_CUT = "…", "~"
"""The end of a line that was cut, one column each; the second for terminals without Unicode."""
_RESULT, _RESULT_ROOM = 400, 16
"""Characters of a result that are read, and the free cells that are needed to show any of it."""

_GLYPHS = {
    "pending": ("○", "."),
    "completed": ("✓", "+"),
    "skipped": ("–", "-"),
    "failed": ("✗", "x"),
    "awaiting_input": ("?", "?"),
    "paused": ("‖", "="),
    "cancelled": ("‖", "="),
}
_STYLES = {
    "pending": "dim",
    "running": "cyan",
    "completed": "green",
    "skipped": "dim",
    "failed": "red",
    "awaiting_input": "yellow",
    "paused": "yellow",
    "cancelled": "yellow",
}


class FrameState(Struct, frozen=True):
    """The time and the terminal of a picture."""

    now: float
    """The time on the clock of the events."""
    seconds: float
    """The duration of the run so far."""
    note: str = ""
    unicode: bool = True
    encoding: str = "ascii"
    """The encoding of a terminal that does not support all of Unicode."""


def shown_steps(progress: Progress) -> list[StepView]:
    """Return the steps of the document, and the sub-steps of the branches that were taken."""
    inside = [step for step in progress.steps.values() if step.depth and step.status not in ("pending", "skipped")]
    taken = {step.path.rpartition("/")[0] for step in inside}
    return [step for step in progress.steps.values() if not step.depth or step.path.rpartition("/")[0] in taken]


def frame(progress: Progress, width: int, height: int, moment: FrameState) -> list[Text]:
    """Return at most `height - 1` lines of at most `width - 1` cells, because the cursor needs a row below."""
    room = max(1, height - 1)
    steps = shown_steps(progress)
    stream = _stream(progress, width, min(STREAM_ROWS, max(0, max(room - 1 - len(steps), (room - 1) // 2))))
    rows: list[Text] = []
    current, followed = 0, _current(steps)
    for number, lines in _blocks(progress, steps, FAILURE_ROWS, width, moment):
        rows += lines
        # Keep the failures of the running step in the window together with it.
        current = len(rows) - 1 if number == followed else current
    shown = _under(_window(rows, current, max(0, room - 1 - len(stream))), rows[current] if rows else None, stream)
    return [_fitting(line, width, moment) for line in (*shown, status_line(progress, moment))][-room:]


def summary(progress: Progress, width: int, moment: FrameState) -> list[Text]:
    """Return the lines that stay on the screen at the end: every step, without a limit, and the totals."""
    lines: list[Text] = []
    for _, block in _blocks(progress, shown_steps(progress), SUMMARY_FAILURES, width, moment):
        lines += block
    if any(step.thread and not step.depth for step in progress.steps.values()):
        lines.append(Text(_used(progress), style="dim"))
    elif progress.steps:  # a thread may be without any turn
        top = [step.status for step in progress.steps.values() if not step.depth]
        took = totals(progress, moment.seconds)
        done = f"{top.count('completed')} of {_steps(len(top))}"
        lines.append(Text(done + (f" · {took}" if took else ""), style="dim"))
    return [_fitting(line, width, moment) for line in lines]


def _blocks(
    progress: Progress, steps: list[StepView], failures: int, width: int, moment: FrameState
) -> Iterator[tuple[int, list[Text]]]:
    """Yield the number and the lines of each step: the step itself, its failed items, its calls, the hooks around
    it."""
    before, after = placed_hooks(progress, [step.path for step in steps])
    for number, step in enumerate(steps):
        lines = [hook_line(progress, hook, moment) for hook in before.get(number, [])]
        lines += [step_line(step, width, moment), *failure_lines(step, failures, moment), *call_lines(step, moment)]
        yield number, [*lines, *(hook_line(progress, hook, moment) for hook in after.get(number, []))]
    if not steps:
        yield 0, [hook_line(progress, hook, moment) for hook in before.get(0, [])]


def step_line(step: StepView, width: int, moment: FrameState) -> Text:
    running = step.status == "running"
    seconds = step.elapsed
    if running and step.started_at is not None:
        # The times of concurrent items add up to more than the time that has passed.
        since = moment.now - step.started_at
        seconds = since if step.fan else max(seconds, since)
    took = "" if width < _NARROW else numbers(seconds, step.input_tokens + step.output_tokens, step.cost)
    style = _STYLES.get(step.status, "")
    line = Text("  " * step.depth)
    line.append(_glyph(step.status, moment), style=style)
    line.append(f" {one_line(step.way)} ", style="dim" if style == "dim" else "")
    fan = _BAR + 24 if step.fan and running else 24 if step.fan else 0
    room = width - 1 - line.cell_len - (cell_len(took) + 2 if took else 0) - fan
    words = turn_title(step) if step.thread else one_line(step.title)
    title = Text(words, style="dim" if style == "dim" else "bold" if running else "")
    title.truncate(max(room, 8), overflow="ellipsis")
    line.append_text(title)
    if step.fan and (step.fan.total or step.fan.failed):
        line.append(f"  {fan_bar(step.fan, width, moment)}" if running else f"  {fan_words(step.fan)}", style=style)
    if took:
        line.append(f"  {took}", style="dim")
    if step.message and step.status == "failed":
        line.append(f"  {one_line(step.message)}", style="red")
    elif step.survived:
        line.append(f"  survived: {one_line(step.survived)}", style="yellow")
    return _with_result(line, step, width, moment)


def _with_result(line: Text, step: StepView, width: int, moment: FrameState) -> Text:
    """Append the beginning of a finished step's result to its line, if there is room for some words."""
    result = one_line((step.displayed or "")[:_RESULT]).strip()
    room = width - 1 - line.cell_len - 4
    if step.status != "completed" or step.thread or step.fan or not result or room < _RESULT_ROOM:
        return line
    words = Text(f"  {'│' if moment.unicode else '|'} {result}", style="dim")
    words.truncate(room + 4, overflow="ellipsis")
    return line.append_text(words)


def fan_bar(fan: FanView, width: int, moment: FrameState) -> str:
    """Return the progress of parallel items: a bar if there is room for one, and the counts."""
    ended = fan.done + fan.failed
    counts = f"{ended}/{fan.total}"
    if fan.rounds:
        return f"round {min(ended + 1, fan.total)} of at most {fan.total}"
    if fan.failed:
        counts += f" · {fan.failed} failed"
    if fan.running:
        counts += f" · {fan.running} running"
    if width < 2 * _NARROW or not fan.total:
        return counts
    full, empty = ("█", "░") if moment.unicode else ("#", "-")
    filled = _BAR * ended // fan.total
    return f"{full * filled}{empty * (_BAR - filled)} {counts}"


def failure_lines(step: StepView, most: int, moment: FrameState) -> list[Text]:
    """Return a line for each failed item of a step; only the last ones if there are many."""
    if step.fan is None or not step.fan.failed:
        return []
    shown = step.fan.failures[-most:]
    glyph = _glyph("failed", moment)
    lines = [Text(f"    {glyph} {one_line(name)}: {one_line(message)}", style="red") for name, message in shown]
    hidden = step.fan.failed - len(shown)
    return [*([Text(f"    … {hidden} more failed", style="dim")] if hidden else []), *lines]


def call_lines(step: StepView, moment: FrameState) -> list[Text]:
    """Return a line for each tool call of a turn with its result; failed and denied calls in red. Of the calls of
    agents the last ones, below a line for each turn."""
    calls, earlier = shown_calls(step, AGENT_CALLS)
    lines = [Text(f"    … {earlier} earlier calls", style="dim")] if earlier else []
    before: CallView | None = None
    for call in calls:
        if heading := agent_heading(call, before):
            lines.append(Text(f"{'  ' * (step.depth + 1)}{heading}", style="dim"))
        before = call
        status = "failed" if call.kind else "running" if call.result is None else "completed"
        if call.result is None and step.status != "running":
            status = "completed" if call.name == RETURN else "paused"
        result = answered(call)
        line = Text("  " * (step.depth + 1 + bool(call.turn)))
        line.append(_glyph(status, moment), style=_STYLES[status])
        line.append(f" {one_line(called(call))}", style="red" if call.kind else "")
        if result:
            line.append(f" → {result}" if moment.unicode else f" -> {result}", style="red" if call.kind else "dim")
        lines.append(line)
    return lines


def hook_line(progress: Progress, hook: HookView, moment: FrameState) -> Text:
    """Return the line of a hook, indented one level deeper than the turns of its thread if it belongs to one of
    them."""
    depth = (progress.depth_of(f"{thread_of(hook.path)}/turn[1]") or 0) + is_of_turn(hook)
    return Text(f"{'  ' * depth}{'↳' if moment.unicode else '>'} {one_line(hook_words(hook))}", style="dim")


def _used(progress: Progress, first: int | None = None) -> str:
    """Return how much a thread has used of its limits; with `first`, of the first ones only, which are usually reached
    first."""
    parts = [f"{name} {much}" + (f" of {most}" if most else "") for name, much, most in used_of(progress)]
    return " · ".join(parts[:first])


def status_line(progress: Progress, moment: FrameState) -> Text:
    if moment.note:
        return Text(moment.note, style="yellow")
    if any(step.thread and not step.depth for step in progress.steps.values()):
        return Text(f"{_used(progress, 3)} · Ctrl-C pauses", style="dim")
    if not progress.steps:
        return Text("starting · Ctrl-C pauses", style="dim")
    top = [step for step in progress.steps.values() if not step.depth]
    at = next((number for number, step in enumerate(top, 1) if step.status == "running"), None)
    parts = [f"step {at} of {len(top)}" if at else _steps(len(top)), totals(progress, moment.seconds)]
    return Text(" · ".join([*filter(None, parts), "Ctrl-C pauses"]), style="dim")


def totals(progress: Progress, seconds: float) -> str:
    steps = progress.steps.values()
    costs = [step.cost for step in steps]
    cost = None if None in costs else sum(cost for cost in costs if cost is not None)
    return numbers(seconds, sum(step.input_tokens + step.output_tokens for step in steps), cost)


def _steps(count: int) -> str:
    return f"{count} {pluralize('step', count)}"


def _glyph(status: str, moment: FrameState) -> str:
    if status == "running":
        return _SPINNER[int(moment.seconds * 10) % len(_SPINNER)] if moment.unicode else "*"
    pretty, plain = _GLYPHS.get(status, ("·", "."))
    return pretty if moment.unicode else plain


def _current(steps: list[StepView]) -> int:
    """Return the index of the innermost running step, else of the last step that has begun."""
    running = [number for number, step in enumerate(steps) if step.status in ("running", "awaiting_input")]
    ended = [number for number, step in enumerate(steps) if step.status != "pending"]
    return (running or ended or [0])[-1]


def _window(rows: list[Text], current: int, room: int) -> list[Text]:
    """Return the rows around the current one, with a note about the rows that are left out."""
    if len(rows) <= room:
        return rows
    if room < 3:
        return rows[current : current + 1][:room]
    first = min(max(0, current - (room - 2) // 2 - 1), len(rows) - room)
    texts = rows[first : first + room]
    if first:
        texts[0] = Text(f"  … {first + 1} above", style="dim")
    if first + room < len(rows):
        texts[-1] = Text(f"  … {len(rows) - first - room + 1} below", style="dim")
    return texts


def _under(rows: list[Text], current: Text | None, stream: list[Text]) -> list[Text]:
    """Insert the streamed reply below the step that it belongs to."""
    at = next((number for number, row in enumerate(rows, 1) if row is current), len(rows))
    return [*rows[:at], *stream, *rows[at:]]


def _stream(progress: Progress, width: int, room: int) -> list[Text]:
    """Return the last lines of the reply that the model is writing. Only the end of the text is processed, because a
    reply can be long."""
    inner = max(8, width - 5)
    tail = progress.shown_stream()[-inner * (room + 1) * 2 :] if room else ""
    if not tail.strip():
        return []
    rows = [piece for line in visible(tail).expandtabs(4).splitlines() for piece in _wrapped(line, inner)]
    return [Text(f"  │ {row}", style="dim") for row in rows[-room:]]


def _wrapped(line: str, width: int) -> list[str]:
    """Break a line at spaces where there are any, by the width of each character on a terminal."""
    if cell_len(line) <= width:
        return [line]
    rows = [""]
    for word in line.split(" "):
        joined = f"{rows[-1]} {word}" if rows[-1] else word
        if cell_len(joined) <= width:
            rows[-1] = joined
        else:
            pieces = chop_cells(word, width)
            rows = [*rows, *pieces] if rows[-1] else pieces
    return rows


def _fitting(line: Text, width: int, moment: FrameState) -> Text:
    """Cut a line to the width. Characters that the terminal cannot show are replaced first, because most replacements
    are longer."""
    if not moment.unicode:
        line = _in_encoding(line, moment.encoding)
    line.truncate(max(1, width - 1), overflow="ellipsis")
    if not moment.unicode and line.plain.endswith(_CUT):
        line = Text.assemble(line[:-1], _PLAIN_CUT)
    return line


def _in_encoding(line: Text, encoding: str) -> Text:
    """Rewrite a line in characters that the terminal has, keeping its styles."""
    cuts = sorted({0, len(line), *(edge for span in line.spans for edge in (span.start, span.end))})
    plain = Text(style=line.style)
    for start, end in itertools.pairwise(cuts):
        piece = line[start:end]
        plain.append(in_encoding(piece.plain, encoding), style=piece.spans[0].style if piece.spans else None)
    return plain
