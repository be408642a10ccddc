"""A run as one HTML file, to look at without Quire: head, result, inputs, and the tree with bars and replies.

It opens from a disk and loads nothing: it has no script, and its policy allows only its own styles. Texts of models and
tools are text, never HTML. Prompts are not in it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from quire import __version__
from quire.display.run_page import position_of, shown_status
from quire.display.run_tree_json import TreeRows
from quire.display.text import duration, money
from quire.display.visible import visible
from quire.engine.records import Status
from quire.values import pretty
from quire.wording import counted

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord
    from quire.runs.live_views import SeenTree
    from quire.runs.outcome import RunView
    from quire.runs.run_tree import Node


CUT, MOST_ROWS, MOST_BELOW = 20_000, 5_000, 100
"""Characters of a text, all rows, and rows below one row, in a file that is not `full`."""
DEEPEST = 60
FOLDED = 12
"""Lines of an input that are shown without a click."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_MARKS = {"done": "✓", "failed": "✗", "running": "…", "waits": "?", "stopped": "■", "skipped": "–", "pending": "○"}
_STATES = {Status.COMPLETED: "done", Status.FAILED: "failed", Status.AWAITING_INPUT: "waits", Status.RUNNING: "running"}
_FILE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{label} · Quire</title>
<style>
{style}</style></head>
<body><main><header><h1>{label}</h1>{state}{facts}</header>
{ending}<section><h2>Steps</h2>
{steps}</section>
{inputs}<footer>Made by Quire {version}. Texts of models, tools and people are shown as they are; nothing in this file
runs or loads anything.</footer></main></body></html>
"""


def run_html(view: RunView, seen: SeenTree, now: float, *, full: bool = False) -> str:
    """Return the file. With `full` it has all rows and whole texts."""
    row, file = seen.row, _File(view, seen, now, full)
    state = _STATES.get(row.status, "stopped")
    status = shown_status(row, bool(view.questions)).replace("_", " ")
    return _FILE.format(
        policy=escape(POLICY),
        label=_text(row.label),
        style=_style(),
        state=f'<span class="state {state}">{_MARKS[state]} {_text(status)}</span>',
        facts=file.facts(),
        ending=file.ending(),
        steps="".join(file.part(child, 0) for child in file.rows.below(seen.tree.root)),
        inputs=file.inputs(),
        version=escape(__version__),
    )


@cache
def _style() -> str:
    """Return the colours and sizes of the page, and the rules of this file."""
    package = files("quire")
    sheets = (package / "server" / "page" / "tokens.css", package / "display" / "run_html.css")
    return "\n".join(sheet.read_text("utf-8") for sheet in sheets)


def _text(text: str) -> str:
    """Return a text as HTML that shows it: no element, and no character that hides or reverses others."""
    lines = text.replace("\r\n", "\n").replace("\t", "    ").split("\n")
    return escape("\n".join(map(visible, lines)))


class _File:
    def __init__(self, view: RunView, seen: SeenTree, now: float, full: bool) -> None:
        self.view, self.row, self.full = view, seen.row, full
        self.rows = TreeRows(seen.tree, seen.row, now)
        self.took, self.waited = seen.tree.times(seen.tree.root, now, seen.row.status)
        end = now if seen.row.status is Status.RUNNING else seen.tree.root.end
        self.whole = max(end - self.rows.start, 0.001)
        self.took = max(self.took, self.whole - self.waited) if seen.row.status is Status.RUNNING else self.took
        self.left = 10**9 if full else MOST_ROWS
        self.texts: dict[str, list[str]] = defaultdict(list)
        """The replies, results and answers, by the path of the row in which the tree counts them."""
        for record in view.effects:
            if record.kind in ("model", "tool", "ask") and record.path in seen.tree.leaves:
                self.texts[seen.tree.leaves[record.path][0].path].append(_reply(record))

    def facts(self) -> str:
        row, pins = self.row, self.view.pins
        waited = f" + {duration(self.waited)} waiting" if self.waited else ""
        cost = f"{money(row.cost) or '$0'} of ≤ ${pins.budget:g}" if pins.budget else money(row.cost)
        tokens = f"{row.input_tokens:,} in, {row.output_tokens:,} out" if row.input_tokens else ""
        started = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.created_at))
        # A path of this machine means nothing to other readers.
        names = [row.title, row.document.rpartition("/")[2]]
        facts = [*names, f"{duration(self.took)}{waited}", cost, tokens, pins.model.partition(":/")[0], started, row.id]
        listed = "".join(f"<span>{_text(fact)}</span> " for fact in dict.fromkeys(facts) if fact)
        return f"<p>{listed}</p>" + (f"<p>{_text(row.note)}</p>" if row.note else "")

    def ending(self) -> str:
        """Return the result, the error or the questions: the reason to open the file."""
        view, failure = self.view, self.row.failure
        if view.replay.finished:
            return f'<section class="result"><h2>Result</h2>{self._pre(view.artifact)}</section>\n'
        if failure is not None:
            place = f" at step {_text(position_of(self.row))}" if position_of(self.row) else ""
            return f'<section class="error"><h2>Error{place}</h2>{self._pre(failure.message)}</section>\n'
        asked = "".join(self._pre(question.prompt) for question in view.questions)
        return f'<section class="waits"><h2>Waits for an answer</h2>{asked}</section>\n' if asked else ""

    def inputs(self) -> str:
        rows = []
        for name, value in self.view.pins.inputs.items():
            text, lines = self._pre(pretty(value)), pretty(value).count("\n") + 1
            if lines > FOLDED:
                text = f"<details><summary>{counted(lines, 'line')}</summary>{text}</details>"
            rows.append(f"<dt>{_text(name)}</dt><dd>{text}</dd>")
        return f"<section><h2>Inputs</h2><dl>{''.join(rows)}</dl></section>\n" if rows else ""

    def part(self, row: Node, depth: int) -> str:
        """Return a row with all that is below it."""
        self.left -= 1
        self.rows.add(row, -1)
        facts: dict[str, Any] = {name: column.pop() for name, column in self.rows.columns.items()}
        below = self.rows.below(row)
        most = min(len(below) if self.full else MOST_BELOW, max(0, self.left)) if depth < DEEPEST else 0
        inside = "".join(self.part(child, depth + 1) for child in below[:most])
        if len(below) > most:
            inside += f'<p class="cut">{counted(len(below) - most, "more row")} not in this file</p>'
        if not below:
            leaf = self.rows.tree.folded(row)[0]
            facts["kind"] = leaf.kind
            texts = [text for path in dict.fromkeys((row.path, leaf.path)) for text in self.texts.get(path, ())]
            step = self.view.progress.steps.get(row.path)
            texts = texts or [step.output or "" if step is not None else ""]
            inside += "".join(map(self._pre, filter(None, texts)))
        head = self._head(facts)
        if not inside:
            return f'<div class="row">{head}</div>\n'
        is_open = " open" if row.kind != "group" and below and (depth == 0 or facts["failed"]) else ""
        return f'<details{is_open}><summary class="row">{head}</summary><div class="below">{inside}</div></details>\n'

    def _head(self, facts: Mapping[str, Any]) -> str:
        state, number = escape(facts["state"]), f"<small>{_text(facts['title'])}</small> " if facts["title"] else ""
        mark = f'<span class="mark {state}" title="{state}">{_MARKS.get(state, "○")}</span>'
        name = f"<b>{_text(facts['label'])}</b> <i>{_text(facts['hint'])}</i>"
        bar, took = ("", "") if facts["from"] is None else (self._bar(facts), duration(facts["took"]))
        spent = money(facts["cost"]) if facts["effects"] else ""
        return (
            f'<span class="name">{mark} {number}{name}</span><span>{bar}</span><span>{took}</span><span>{spent}</span>'
        )

    def _bar(self, facts: Mapping[str, Any]) -> str:
        """Draw the time of a row; of a fan, how many of its items are done and failed."""
        width = max(0.4, min(100.0, 100 * (facts["took"] + facts["waited"]) / self.whole))
        x = min(100 * facts["from"] / self.whole, 100 - width)
        kind = "span" if facts["children"] else escape(facts["kind"])
        kind = facts["state"] if facts["state"] in ("failed", "waits") else kind
        bars = [(x, width, 0.0, 8.0, kind)]
        if pairs := facts["buckets"]:
            most, wide, bars = max(map(max, pairs)) or 1, width / len(pairs), []
            for at, (done, failed) in enumerate(pairs):
                for part, kind in ((done, "done"), (failed, "failed")):
                    bars.append((x + at * wide, wide, 8 - 8 * part / most, 8 * part / most, kind))
        drawn = "".join(
            f'<rect x="{x:.2f}" width="{width:.2f}" y="{y:.2f}" height="{height:.2f}" class="{kind}"/>'
            for x, width, y, height, kind in bars
        )
        return f'<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'

    def _pre(self, text: str) -> str:
        rest = 0 if self.full else max(0, len(text) - CUT)
        cut = f'<p class="cut">{counted(rest, "more character")} not in this file</p>' if rest else ""
        return f"<pre>{_text(text[: len(text) - rest])}</pre>{cut}"


def _reply(record: EffectRecord) -> str:
    """Return the text of an effect; of a failed one its message."""
    if record.failure is not None:
        return record.failure.message
    value: Any = record.value
    if record.kind == "model" and isinstance(value, Mapping):
        calls = value.get("uses")
        value = "\n\n".join(filter(None, [str(value.get("text") or ""), pretty(calls) if calls else ""]))
    return "" if value is None else pretty(value)
