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
CALLS = 500

STORES: dict[str, Value] = {
    "a": {"b": 7},
    "n": 3,
    "name": "Ada",
    "many": list(range(CALLS)),
    "numbers": [3, 1],
    "pairs": [[1, 2], [3]],
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
FUNCTIONS = {
    "text": "text(ctx.n)",
    "number": "number('1.10')",
    "json": "json(ctx.review)",
    "parse": "parse('{\"a\": [1, 2]}')",
    "split": "split('a,b,c,d', ',')",
    "trim": "trim(' a ')",
    "lower": "lower(ctx.name)",
    "upper": "upper(ctx.name)",
    "replace": "replace('a-b-c', '-', ' ')",
    "contains": "contains(ctx.name, 'd')",
    "starts_with": "starts_with(ctx.name, 'A')",
    "ends_with": "ends_with(ctx.name, 'a')",
    "first": "first(ctx.reviews)",
    "last": "last(ctx.reviews)",
    "slice": "slice(ctx.reviews, 1, 3)",
    "sort": "sort(ctx.numbers)",
    "reverse": "reverse(ctx.numbers)",
    "distinct": "distinct(ctx.numbers)",
    "keys": "keys(ctx.review)",
    "values": "values(ctx.review)",
    "entries": "entries(ctx.review)",
    "merge": "merge(ctx.review, ctx.a)",
    "range": "range(5)",
    "min": "min(ctx.n, 5)",
    "max": "max(ctx.n, 5)",
    "abs": "abs(ctx.n)",
    "round": "round(2.675, 2)",
    "floor": "floor(2.5)",
    "ceil": "ceil(2.5)",
    "flatten": "flatten(ctx.pairs)",
    "zip": "zip(ctx.numbers, ctx.numbers)",
    "group": "group(ctx.numbers, x -> x)",
    "format": "format('{} of {}', ctx.n, 7)",
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
    evaluate = compile(parse(text, dialect=True)).evaluate
    evaluating, parsing = [], []
    for _ in range(BLOCKS):
        evaluating.append(best(lambda: evaluate(BINDINGS, STORES), EVALUATIONS))
        parsing.append(best(lambda: parse(text, dialect=True), PARSES))
    return min(evaluating), min(parsing)


def call_cost(text: str) -> float:
    """Seconds for one call of a function, as the body of a lambda: beginning and measuring a whole evaluation, which
    takes one to three microseconds, is shared by many calls."""
    evaluate = compile(parse(f"count(map(ctx.many, one -> {text}))", dialect=True)).evaluate
    return min(best(lambda: evaluate(BINDINGS, STORES), 1) for _ in range(8 * BLOCKS)) / CALLS


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
    for text in FUNCTIONS.values():
        speed = 1e-3 / call_cost(text)
        rows.append(Row(f"calls per second: {text}", speed, "k/s", "at least 300", speed >= 300))
    return rows


if __name__ == "__main__":
    show("expressions", measure())
