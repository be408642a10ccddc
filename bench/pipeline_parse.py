"""The pipeline reader beside PyYAML's own loader in Python, and its time on hostile texts.

    python -m bench.pipeline_parse

Ours is the whole of it: positions, strict keys, all rules of the format and every expression. The other side only
makes dictionaries of the text. Both take turns, and the best turn of each counts.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from functools import partial

import yaml

from bench.rows import Row, show
from quire.formats.pipeline.check import check
from quire.formats.pipeline.parse import parse
from quire.source import Source

TURNS = 10
FASTER = 5.0
QUICKLY = 1_000.0
MEMORY = 150.0

SCHEMA = """\
schema: Review
fields:
  passed: {type: bool}
  notes: {type: string}
  tags: {type: list, of: {type: string}}
---
pipeline: review_everything
description: Reviews documents one by one and writes a report on each of them.
steps:
"""
FOUR_STEPS = """\
  - agent:
      prompt: |
        You are a careful reviewer of technical documents. Read the text below, which is
        number NUMBER of a longer series, and say whether it can be published as it stands.

        {ctx.document_NUMBER}

        Reply with passed, notes and tags.
      capabilities: {tools: [file__read, web_search]}
      schema: Review
      output: review_NUMBER
  - transform:
      value: "review_NUMBER.passed and 'OK' or 'NEEDS WORK: ' + review_NUMBER.notes"
      output: verdict_NUMBER
  - tool:
      name: file__write
      args:
        path: "reports/verdict-NUMBER.txt"
        content: !expr "verdict_NUMBER + join(review_NUMBER.tags, ', ')"
      output: written_NUMBER
  - for_each:
      over: filter(ctx.reviewers, r -> r.active)
      max_parallel: 4
      on_error: retry(2)
      do: {agent: {prompt: "Review document NUMBER as {item}: {ctx.document_NUMBER}", schema: Review}}
      collect: {transform: {value: "all(pipe, r -> r.passed)"}}
      output: all_passed_NUMBER
"""
PAGE = SCHEMA + "".join(FOUR_STEPS.replace("NUMBER", str(number)) for number in range(50))
DIALECT = PAGE.replace("pipeline: review_everything\n", "pipeline: review_everything\ndialect: quire\n")
USED = (
    DIALECT.replace("      output: verdict_", "      when: count(ctx.reviewers) > 0\n      output: verdict_")
    .replace(
        "      output: written_", "      on_error: 'retry(2), continue'\n      timeout: 30s\n      output: written_"
    )
    .replace("      do: {agent: {prompt:", "      do: {steps: [{agent: {prompt:")
    .replace("schema: Review}}\n      collect", "schema: Review}}]}\n      collect")
)
"""The same page as a document of the dialect, and one that uses it in three of four steps."""
WITHIN = 1.1
TERSE = "pipeline: p\nsteps:\n" + "".join(
    f"- transform: {{value: 'ctx.a{at} + {at}', output: b{at}}}\n" for at in range(200)
)
START = "pipeline: p\nsteps:\n- "
HOSTILE: dict[str, Callable[[], str]] = {
    "a list of 1,000,000 items": lambda: f"{START}fold: {{items: [{'1, ' * 1_000_000}1], init: '0'}}",
    "a literal of 100 MB": lambda: f"{START}tool: {{name: t, args: {{x: {'x' * 100_000_000}}}}}",
    "a billion laughs": lambda: (
        "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1},' * 10}]\n" for n in range(1, 20))
    ),
    "an expression of 100,000 brackets": lambda: f"{START}transform: {{value: '{'(' * 100_000}'}}",
    "an expression of 100,000 minus signs": lambda: f"{START}transform: {{value: '{'-' * 99_999}1'}}",
    "90,000 open lists": lambda: f"{START}tool: {{name: t, args: {{x: {'[' * 90_000}",
    "5,000 steps with unknown keys": lambda: "pipeline: p\nsteps:\n" + "- transform: {valeu: '1', ouput: x}\n" * 5_000,
    "4,500 calls of itself": lambda: "pipeline: p\nsteps:\n" + "- call: {pipeline: p, pass: [a]}\n" * 4_500,
    "a prompt of 40,000 braces": lambda: f"{START}agent: {{prompt: '{'{a}' * 20_000}{'{ctx.a }' * 12_000}'}}",
    "1,200 fans among 1,200 stores": lambda: (
        "pipeline: p\ndialect: quire\nsteps:\n"
        + "".join(
            f"- for_each: {{over: s{n}, on_error: abort, do: {{steps: [{{transform: {{value: item, output: x}}}}]}}, "
            f"collect: {{transform: {{value: pipe}}}}, output: s{n + 1}}}\n"
            for n in range(1_200)
        )
    ),
    "4,500 stores, each read by the next": lambda: (
        "pipeline: p\nsteps:\n" + "".join(f"- transform: {{value: s{n}, output: s{n + 1}}}\n" for n in range(4_500))
    ),
}


class Plain(yaml.SafeLoader):
    """The tag is given a meaning, or nothing would be loaded at all."""


Plain.add_constructor("!expr", lambda loader, node: str(node.value))


def milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1e3


def compare(text: str) -> tuple[float, float]:
    source = Source.of(text)
    if parse(source).file is None:
        raise SystemExit("the page of this bench is broken")
    ours, theirs = [], []
    for _ in range(TURNS):
        ours += [milliseconds(lambda: parse(source)) for _ in range(3)]
        theirs.append(milliseconds(lambda: list(yaml.load_all(text, Plain))))
    return min(ours), min(theirs)


def _dialect() -> list[Row]:
    """Compare by the character, in turns: the pages differ in length."""
    texts = [PAGE, DIALECT, USED]
    best = [float("inf")] * len(texts)
    for _ in range(3 * TURNS):
        for at, text in enumerate(texts):
            best[at] = min(best[at], milliseconds(partial(parse, Source.of(text))) / len(text))
    said, used = best[1] / best[0], best[2] / best[0]
    return [
        Row("the same page in the dialect / without", said, "×", f"at most {WITHIN}", said <= WITHIN),
        Row("a page that uses the dialect / without, a character", used, "×", f"at most {WITHIN}", used <= WITHIN),
    ]


def measure() -> list[Row]:
    rows = []
    for name, text in {"200 steps": PAGE, "200 terse steps": TERSE}.items():
        ours, theirs = compare(text)
        ratio = theirs / ours
        aimed = text is PAGE
        target = "at least 5" if aimed else "nothing but different expressions"
        rows.append(Row(f"{name}: SafeLoader / whole reading", ratio, "×", target, not aimed or ratio >= FASTER))
        rows.append(Row(f"{name}, {len(text):,} characters: whole reading", ours, "ms", "", True))
    rows += _dialect()
    for name, make in HOSTILE.items():
        source = Source.of(make())
        look = partial(check, source)
        elapsed = min(milliseconds(look) for _ in range(2))
        tracemalloc.start()
        look()
        used = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        rows.append(Row(f"{name}: time", elapsed, "ms", "at most 1 s", elapsed <= QUICKLY))
        rows.append(Row(f"{name}: memory", used, "MB", "at most 150", used <= MEMORY))
    return rows


if __name__ == "__main__":
    show("pipelines", measure())
