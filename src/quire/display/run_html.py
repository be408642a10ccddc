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
from typing import TYPE_CHECKING

from quire import __version__
from quire.display.run_page import position_of, shown_status
from quire.display.run_tree_json import Group, TreeRows
from quire.display.text import money
from quire.display.visible import visible
from quire.engine.records import Status
from quire.values import pretty
from quire.wording import counted

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord
    from quire.runs.live_views import SeenTree
    from quire.runs.outcome import RunView
    from quire.runs.run_tree import Node
    from quire.values import Value

CUT = 20_000
"""Characters of each text in a file that is not `full`."""
MOST_ROWS = 5_000
MOST_BELOW = 100
"""Rows below one row, and rows in all, in a file that is not `full`."""
DEEPEST = 60
FOLDED = 12
"""Lines of an input that are shown without a click."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_TEXTS = ("model", "tool", "ask")
_MARKS = {"done": "✓", "failed": "✗", "running": "…", "waits": "?", "stopped": "■", "skipped": "–", "pending": "○"}


def run_html(view: RunView, seen: SeenTree, now: float, *, full: bool = False) -> str:
    """Return the file. With `full` no text is cut, and all rows are there."""
    return "".join(_File(view, seen, now, full).parts())


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


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class _File:
    def __init__(self, view: RunView, seen: SeenTree, now: float, full: bool) -> None:
        self.view = view
        self.row = seen.row
        self.full = full
        self.rows = TreeRows(seen.tree, seen.row, now)
        end = now if seen.row.status is Status.RUNNING else seen.tree.root.end
        self.whole = max(end - self.rows.start, 0.001)
        self.took, self.waited = seen.tree.times(seen.tree.root, now, seen.row.status)
        self.left = 10**9 if full else MOST_ROWS
        self.effects: Mapping[str, list[EffectRecord]] = self._by_row(seen)

    def _by_row(self, seen: SeenTree) -> Mapping[str, list[EffectRecord]]:
        """Return the effects with texts by the path of the row in which the tree counts them."""
        records: dict[str, list[EffectRecord]] = defaultdict(list)
        by_path = {record.path: record for record in self.view.effects if record.kind in _TEXTS}
        for path, (node, _) in seen.tree.leaves.items():
            if path in by_path:
                records[node.path].append(by_path[path])
        return records

    def parts(self) -> list[str]:
        row, label = self.row, _text(self.row.label)
        return [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="referrer" content="no-referrer">\n',
            f"<title>{label} · Quire</title>\n<style>\n{_style()}</style></head>\n<body><main>\n",
            f"<header><h1>{label}</h1>{self._state()}<p>{' '.join(self._facts())}</p>",
            f"<p>{_text(row.note)}</p>" if row.note else "",
            "</header>\n",
            *self._ending(),
            "<section><h2>Steps</h2>\n",
            *(self._row(child, 0) for child in self._below(self.rows.tree.root)),
            "</section>\n",
            *self._inputs(),
            f"<footer>Made by Quire {escape(__version__)}. Texts of models, tools and people stand here as they are, "
            "and nothing in this file runs or loads anything.</footer>\n</main></body></html>\n",
        ]

    def _state(self) -> str:
        kinds = {Status.COMPLETED: "done", Status.FAILED: "failed", Status.AWAITING_INPUT: "waits"}
        kind = kinds.get(self.row.status, "stopped")
        words = shown_status(self.row, bool(self.view.questions)).replace("_", " ")
        return f'<span class="state {kind}">{_MARKS[kind]} {_text(words)}</span>'

    def _facts(self) -> list[str]:
        row, tokens = self.row, self.row.input_tokens + self.row.output_tokens
        # A path of this machine means nothing to other readers.
        document, model = row.document.rpartition("/")[2], self.view.pins.model.partition(":/")[0]
        waited = f" + {_seconds(self.waited)} waiting" if self.waited else ""
        bound = f" of ≤ ${self.view.pins.budget:g}" if self.view.pins.budget else ""
        spent = [
            f"{money(row.cost) or '$0'}{bound}" if bound else money(row.cost),
            f"{row.input_tokens:,} in, {row.output_tokens:,} out" if tokens else "",
        ]
        started = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.created_at))
        times = [f"{_seconds(self.took)}{waited}", *spent]
        facts = [row.title, document, *times, model, started, row.id]
        return [f"<span>{_text(fact)}</span>" for fact in dict.fromkeys(facts) if fact]

    def _ending(self) -> list[str]:
        """Return the result, the error or the questions: the reason to open the file."""
        view, failure = self.view, self.row.failure
        if view.replay.finished:
            kind = f" <small>{_text(view.file_type)}</small>" if view.file_type else ""
            return [f'<section class="result"><h2>Result{kind}</h2>{self._pre(view.artifact)}</section>\n']
        if failure is not None:
            place = f"<p>at step {_text(position_of(self.row))}</p>" if position_of(self.row) else ""
            return [f'<section class="error"><h2>Error</h2>{self._pre(failure.message)}{place}</section>\n']
        asked = [
            f'<section class="waits"><h2>Waits for an answer</h2>{self._pre(one.prompt)}</section>\n'
            for one in view.questions
        ]
        return asked

    def _inputs(self) -> list[str]:
        inputs = self.view.pins.inputs
        if not inputs:
            return []
        texts = ((name, pretty(value)) for name, value in inputs.items())
        rows = (f"<dt>{_text(name)}</dt><dd>{self._folded(text)}</dd>" for name, text in texts)
        return ["<section><h2>Inputs</h2><dl>", *rows, "</dl></section>\n"]

    def _below(self, row: Node | Group) -> list[Node | Group]:
        return self.rows.below(row)

    def _row(self, row: Node | Group, depth: int) -> str:
        """Return a row with what is below it."""
        self.left -= 1
        self.rows.add(row, -1)
        facts = {name: column.pop() for name, column in self.rows.columns.items()}
        facts["kind"] = facts["kind"] if isinstance(row, Group) else self.rows.tree.folded(row)[0].kind
        below = self._below(row)
        most = len(below) if self.full else MOST_BELOW
        shown = below[: max(0, min(most, self.left))] if depth < DEEPEST else []
        inside = "".join(self._row(child, depth + 1) for child in shown)
        if len(below) > len(shown):
            inside += f'<p class="cut">{counted(len(below) - len(shown), "more row")} not in this file</p>'
        inside += "".join(map(self._pre, self._texts(row))) if not below else ""
        is_open = " open" if below and (depth == 0 or facts["failed"]) and not isinstance(row, Group) else ""
        head = self._head(facts)
        if not inside:
            return f'<div class="row">{head}</div>\n'
        return f'<details{is_open}><summary class="row">{head}</summary><div class="below">{inside}</div></details>\n'

    def _head(self, facts: Mapping[str, Value]) -> str:
        state = str(facts["state"])
        cost = facts["cost"]
        spent = money(cost if isinstance(cost, float | int) else None) if facts["effects"] else ""
        took = f"{_seconds(_number(facts['took']))}" if facts["from"] is not None else ""
        name = f"<b>{_text(str(facts['label']))}</b> <i>{_text(str(facts['hint']))}</i>"
        number = f"<small>{_text(str(facts['title']))}</small> " if facts["title"] else ""
        mark = f'<span class="mark {escape(state)}" title="{escape(state)}">{_MARKS.get(state, "○")}</span>'
        return (
            f'<span class="name">{mark} {number}{name}</span>{self._bar(facts)}<span>{took}</span><span>{spent}</span>'
        )

    def _bar(self, facts: Mapping[str, Value]) -> str:
        if facts["from"] is None:
            return "<span></span>"
        start, took = _number(facts["from"]), _number(facts["took"]) + _number(facts["waited"])
        x, width = min(100.0, 100 * start / self.whole), max(0.4, min(100.0, 100 * took / self.whole))
        kind = str(facts["state"] if facts["state"] in ("failed", "waits") else facts["kind"])
        kind = "span" if facts["children"] and kind not in ("failed", "waits") else kind
        bars = f'<rect x="{min(x, 100 - width):.2f}" width="{width:.2f}" height="8" class="{escape(kind)}"/>'
        buckets = facts["buckets"]
        if isinstance(buckets, list) and buckets:
            pairs = [[_number(part) for part in pair] for pair in buckets if isinstance(pair, list)]
            most, step, bars = max(map(max, pairs)) or 1, width / len(pairs), ""
            for at, pair in enumerate(pairs):
                place = f'x="{x + at * step:.2f}" width="{step:.2f}"'
                for part, kind in zip(pair, ("done", "failed"), strict=True):
                    bars += (
                        f'<rect {place} y="{8 - 8 * part / most:.2f}" height="{8 * part / most:.2f}" class="{kind}"/>'
                    )
        return f'<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">{bars}</svg>'

    def _texts(self, row: Node | Group) -> list[str]:
        """Return the replies, results and answers of a row; of a step that only computes, its output."""
        if isinstance(row, Group):
            return []
        paths = [row.path, self.rows.tree.folded(row)[0].path]
        texts = [_reply(record) for path in dict.fromkeys(paths) for record in self.effects.get(path, ())]
        step = self.view.progress.steps.get(row.path)
        output = step.output if step is not None and not texts else None
        return [text for text in (*texts, output) if text]

    def _folded(self, text: str) -> str:
        """Return a text; a long one behind its number of lines."""
        lines = text.count("\n") + 1
        if lines <= FOLDED:
            return self._pre(text)
        return f"<details><summary>{counted(lines, 'line')}</summary>{self._pre(text)}</details>"

    def _pre(self, text: str) -> str:
        rest = 0 if self.full else len(text) - CUT
        if rest <= 0:
            return f"<pre>{_text(text)}</pre>"
        return f'<pre>{_text(text[:CUT])}</pre><p class="cut">{counted(rest, "more character")} not in this file</p>'


def _number(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _reply(record: EffectRecord) -> str:
    """Return the text of an effect; of a failed one its message."""
    if record.failure is not None:
        return record.failure.message
    value = record.value
    if record.kind == "model" and isinstance(value, Mapping):
        calls = value.get("calls") or value.get("tool_calls")
        value = "\n\n".join(filter(None, [str(value.get("text") or ""), pretty(calls) if calls else ""]))
    return pretty(value) if value is not None else ""
