"""Aligned columns in plain text, and short texts for their cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import click

from quire.display.text import one_line
from quire.display.visible import width
from quire.wording import cut_line

Style = Callable[[str, int], str]
"""Gets a finished cell and the number of its column; returns the same text, optionally with colour codes around it."""

GAP = "  "
_STATUS_COLOURS = {
    "completed": "green",
    "running": "cyan",
    "pending": "cyan",
    "awaiting_input": "yellow",
    "answered": "yellow",
    "paused": "yellow",
    "interrupted": "yellow",
    "cancelled": "yellow",
    "failed": "red",
    "expired": "red",
}


def table(
    rows: Sequence[Sequence[str]],
    header: Sequence[str] = (),
    *,
    right: frozenset[int] = frozenset(),
    style: Style = lambda cell, column: cell,
) -> list[str]:
    """Return one line per row, with cells made safe for a terminal.

    `right` are the columns to align right. Padding is computed before `style` adds codes that take no space.
    """
    cells = [[_indent(cell) + one_line(cell) for cell in row] for row in ([header] if header else []) + list(rows)]
    if not cells:
        return []
    widths = [max(width(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = []
    for row in cells:
        padded = []
        for column, cell in enumerate(row):
            room = " " * (widths[column] - width(cell))
            padded.append(room + style(cell, column) if column in right else style(cell, column) + room)
        lines.append(GAP.join(padded).rstrip())
    return lines


def _indent(cell: str) -> str:
    return " " * (len(cell) - len(cell.lstrip(" ")))


def status_colour(status: str) -> str | None:
    return _STATUS_COLOURS.get(status)


def age(seconds: float) -> str:
    """Format a time span in one unit: `12s`, `5m`, `3h`, `8d`."""
    seconds = max(0.0, seconds)
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def tokens(input_tokens: int, output_tokens: int) -> str:
    """Return `in+out`; empty if there were none."""
    return f"{input_tokens:,}+{output_tokens:,}" if input_tokens or output_tokens else ""


def short(text: str, limit: int) -> str:
    """Put a text on one line and cut it after `limit` characters."""
    return cut_line(one_line(text), limit)


def paragraph(title: str, lines: Sequence[str]) -> Iterator[str]:
    yield ""
    yield click.style(one_line(title), bold=True)
    yield from (f"  {line}" if line else "" for line in lines)
