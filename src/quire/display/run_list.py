"""The list of runs for people, fitted to the width of their terminal."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

from click import unstyle

from quire.display.run_page import position_of, said, shown_status, status_in
from quire.display.text import age, money, short, table, tokens_in_and_out
from quire.display.visible import width
from quire.values import as_texts

if TYPE_CHECKING:
    from quire.engine.records import RunRow

TITLE, INPUTS = 48, 60
_LAYOUTS = tuple(product((True, False), (TITLE, 32, 20, 12), (INPUTS, 40, 24, 12, 0)))
"""Layouts from the widest to the narrowest: whether tokens and cost are shown, and the characters for title and
inputs."""


def run_table(rows: Sequence[RunRow], now: float, asking: Collection[str], columns: int | None = None) -> list[str]:
    """Return the list in the widest layout that fits into `columns`, else in the narrowest. `asking` are the runs with
    an open question."""
    lines: list[str] = []
    for numbers, title, inputs in _LAYOUTS:
        lines = _table(rows, now, asking, numbers=numbers, title=title, inputs=inputs)
        if columns is None or all(width(unstyle(line)) <= columns for line in lines):
            return lines
    return lines


def _table(
    rows: Sequence[RunRow], now: float, asking: Collection[str], *, numbers: bool, title: int, inputs: int
) -> list[str]:
    header = ["RUN", "STATUS", "TITLE", "STEP", "AGE"] + ["TOKENS", "COST"] * numbers + ["INPUTS"] * bool(inputs)
    cells = []
    for row in rows:
        origin, inputs_of = row.pins.get("origin"), row.pins.get("inputs")
        forked = f"  (fork of {origin.get('run')})" if isinstance(origin, Mapping) and origin else ""
        texts = as_texts(inputs_of) if isinstance(inputs_of, Mapping) else {}
        cell = [
            row.id,
            said(shown_status(row, row.id in asking)),
            short(row.title, title) + (forked if title == TITLE else ""),
            position_of(row),
            age(now - row.created_at),
        ]
        cell += [tokens_in_and_out(row.input_tokens, row.output_tokens), money(row.cost)] * numbers
        named = ", ".join(f"{name}={text}" for name, text in texts.items())
        cells.append(cell + [short(named, inputs)] * bool(inputs))
    return table(cells, header, right=frozenset({4, 5, 6} if numbers else {4}), style=status_in(1))
