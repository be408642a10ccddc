"""One measured number, and how a table of them is printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """`target` says what is aimed at; `ok` whether it was reached in this run."""

    name: str
    value: float
    unit: str
    target: str
    ok: bool


def show(title: str, rows: Sequence[Row]) -> None:
    print(f"\n{title}")
    for row in rows:
        number = f"{row.value:,.3f}" if row.value < 10 else f"{row.value:,.1f}"
        print(f"  {'ok  ' if row.ok else 'MISS'} {row.name:<58} {number:>12} {row.unit:<3} {row.target}")
