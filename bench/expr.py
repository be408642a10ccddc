"""What an expression costs once it is compiled, beside what reading it anew each time would cost.

    python -m bench.expr

Both take turns in blocks, and the best block counts. The other side only parses: whatever walked its tree would come
on top.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.rows import Row, show
from quire.expr import compile, parse
from quire.values import Value

BLOCKS = 15
PARSES = 300
EVALUATIONS = 3_000

STORES: dict[str, Value] = {
    "a": {"b": 7},
    "n": 3,
    "name": "Ada",
    "review": {"passed": True, "notes": "fine"},
    "reviews": [{"passed": True, "score": score} for score in range(8)],
}
BINDINGS: dict[str, Value] = {"ctx": STORES, "pipe": "x"}
EXPRESSIONS = {
    "path": "ctx.a.b",
    "store": "review.passed and 'OK' or 'NEEDS WORK'",
    "text": "'Hello, ' + ctx.name + '!'",
    "arithmetic": "(ctx.n + 1) * 2 / 4 - ctx.a.b",
    "condition": "ctx.n > 2 and not (ctx.name == 'Bob' or ctx.a.b < 5)",
    "record": "{name: ctx.name, ok: ctx.review.passed, tags: [ctx.n, pipe]}",
}
LAMBDA = "sum(map(filter(ctx.reviews, r -> r.passed), r -> r.score))"


def best(work: Callable[[], object], times: int) -> float:
    """Seconds for one call, in one block."""
    started = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - started) / times


def costs(text: str) -> tuple[float, float]:
    """Seconds to evaluate the compiled expression, and seconds to parse it."""
    evaluate = compile(parse(text)).evaluate
    evaluating, parsing = [], []
    for _ in range(BLOCKS):
        evaluating.append(best(lambda: evaluate(BINDINGS, STORES), EVALUATIONS))
        parsing.append(best(lambda: parse(text), PARSES))
    return min(evaluating), min(parsing)


def measure() -> list[Row]:
    rows = []
    for name, text in EXPRESSIONS.items():
        evaluating, parsing = costs(text)
        if name == "path":
            speed = 1e-6 / evaluating
            rows.append(Row(f"simple paths per second: {text}", speed, "M/s", "at least 1", speed >= 1))
        ratio = parsing / evaluating
        rows.append(Row(f"{name}: reading it anew / compiled once", ratio, "×", "at least 10", ratio >= 10))
        micros = evaluating * 1e6
        rows.append(Row(f"{name}: one evaluation", micros, "µs", "at most 15", micros <= 15))
    evaluating, parsing = costs(LAMBDA)
    micros = evaluating * 1e6
    rows.append(Row("two lambdas over 8 records: one evaluation", micros, "µs", "at most 15", micros <= 15))
    return rows


if __name__ == "__main__":
    show("expressions", measure())
