"""The proof of a long pipeline: what it costs for each step, and beside reading the same document.

    python -m bench.proofs

Every fourth step is an agent, an expression with a condition, a tool, and a fan. Each plan is read afresh and has names
of its own, so that no expression of it was read before, as in a command; times are processor time. Garbage is looked
for as seldom as in the commands, and that of the reading before the proof. A proof counts until it is there, not until
it is thrown away.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from itertools import islice
from string import ascii_letters

from bench.rows import Row, show
from quire.cli import NEW_OBJECTS
from quire.library.document import read
from quire.library.foresight import Foresight
from quire.source import Source

STEPS = 1_830
FEW = 20
ROUNDS = 15


def measure() -> list[Row]:
    gc.set_threshold(NEW_OBJECTS)
    letters = iter(ascii_letters)
    read_whole, whole = _least(STEPS, letters)
    _, half = _least(STEPS // 2, letters)
    _, few = _least(FEW, letters)
    growth = (whole / STEPS) / (half / (STEPS // 2))
    beside = whole / read_whole
    size, small = len(document(STEPS, "a")) / 1e3, len(document(FEW, "a")) / 1e3
    return [
        Row(f"proof of a pipeline of {size:.0f} KB", whole * 1e3, "ms", "at most 100", whole <= 0.100),
        Row(f"proof of a pipeline of {small:.0f} KB", few * 1e3, "ms", "at most 1", few <= 0.001),
        Row(f"a step of {STEPS} / a step of {STEPS // 2}", growth, "×", "at most 1.2", growth <= 1.2),
        Row(f"proof of {size:.0f} KB / reading the same document", beside, "×", "at most 1", beside <= 1),
    ]


def document(steps: int, letter: str) -> str:
    """Return a pipeline of so many steps, whose names begin with a letter."""
    return "pipeline: p\ndialect: quire\nsteps:\n" + "\n".join(f"  - {_step(letter, at)}" for at in range(steps))


def _step(letter: str, at: int) -> str:
    before, rows, output = f"{letter}{max(0, at - 1)}", f"ctx.row{letter}", f"{letter}{at}"
    match at % 4:
        case 0:
            prompt = f"Look at {{{rows}}} and {{{before}}}"
            return f"agent: {{prompt: '{prompt}', capabilities: {{tools: []}}, output: {output}}}"
        case 1:
            return f"transform: {{value: '{rows} + [{before}]', output: {output}, when: 'count({rows}) > {at}'}}"
        case 2:
            return f"tool: {{name: file__write, args: {{path: out{at}.md, content: !expr {before}}}, output: {output}}}"
    inner = "do: {transform: {value: 'item + 1'}}, collect: {transform: {value: pipe}}"
    return f"for_each: {{over: {rows}, on_error: abort, {inner}, output: {output}}}"


def _least(steps: int, letters: Iterator[str]) -> tuple[float, float]:
    """Return the least time of reading a document of so many steps, and of proving it."""
    times = [_once(steps, letter) for letter in islice(letters, ROUNDS)]
    return min(one for one, _ in times), min(one for _, one in times)


def _once(steps: int, letter: str) -> tuple[float, float]:
    source = Source.of(document(steps, letter), "p.yaml")
    started = time.process_time()
    plan = read(source).plan
    was_read = time.process_time()
    if plan is None:
        raise RuntimeError("the document of the benchmark cannot be read")
    gc.collect()
    began = time.process_time()
    proof = Foresight(None).proof(plan)
    proven = time.process_time()
    del proof
    return was_read - started, proven - began


if __name__ == "__main__":
    show("proofs", measure())
