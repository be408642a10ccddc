"""What only Quire has in a pipeline: each place is noted, and the format itself has none."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.formats.pipeline.reading import shown

from quire.formats.pipeline.language import KINDS
from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.portable import beyond_format
from quire.source import Source

FORMAT = """\
schema: Review
fields:
  passed: {type: bool}
  level: {type: enum, values: [low, high]}
  tags: {type: list, of: {type: string}}
  by: {type: ref, schema: Person}
  at: {type: object, fields: {line: {type: number}}}
---
schema: Person
fields: {name: {type: string}}
---
pipeline: all_of_it
description: every kind with every key
steps:
  - transform: {value: "map(ctx.xs, x -> get(x, 'a', 1))", output: a}
  - tool: {name: file__read, args: {path: !expr a, other: {steps: [1], required: false}}, schema: Review, output: b}
  - shell: {command: !expr b, schema: Review, output: c}
  - agent: {prompt: hi, identity: me, capabilities: {tools: [file__read]}, schema: Review, output: d}
  - call: {pipeline: other, pass: [a, b], output: e}
  - match: {on: d.passed, cases: {"True": {pipeline: other, pass: [a]}}, default: {pipeline: other}, output: f}
  - fold: {over: ctx.xs, init: "0", do: {transform: {value: acc + item}}, output: g, max_items: 3}
  - fold: {items: [1, {do: 2}], init: "0", do: {transform: {value: acc}}, output: g}
  - for_each:
      over: ctx.xs
      max_parallel: 2
      on_error: "retry(2)"
      do: {parallel: {on_error: continue, branches: {b: {transform: {value: item}}}, collect: {transform: {value: b}}}}
      collect: {transform: {value: pipe}}
      output: h
"""


def noted(text: str) -> list[tuple[str, str]]:
    return shown(text, beyond_format(parse(Source.of(text))))


def test_the_format_itself_is_portable() -> None:
    assert parse(Source.of(FORMAT)).diagnostics == () and noted(FORMAT) == []


STEP = "  - transform: {value: a}\n"
HEAD = "pipeline: p\ndialect: quire\nsteps:\n"


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("schema: S\nfields: {a: {type: list, of: {type: string, max_length: 3}, required: false}}\n---\n"
         "pipeline: p\ndialect: quire\nsteps:\n  - agent: {prompt: a, schema: S}\n",
         ["max_length", "required", "dialect"]),
        ("pipeline: p\nsteps:\n  - call: {pipeline: q, pass: {a: ctx.b}}\n", ["pass"]),
        (HEAD + "  - transform: {title: Sum up, value: a}\n", ["dialect", "title"]),
        ("pipeline: p\nsteps:\n  - match: {on: a, cases: {x: {pipeline: q, pass: {a: ctx.b}}}}\n", ["pass"]),
        ("pipeline: p\nsteps:\n  - for_each: {max_items: 1, on_error: abort, do: {transform: {value: item}}, "
         "collect: {transform: {value: pipe}}}\n", ["max_items"]),
        (HEAD + "  - transform: {value: \"upper(lower(ctx.a)) + 'upper(1)'\"}\n",
         ["dialect", "upper(lower(ctx.a))", "lower(ctx.a)"]),
        (HEAD + "  - tool: {name: t, args: {a: !expr sort(ctx.a)}}\n", ["dialect", "sort(ctx.a)"]),
        (HEAD + "  - agent: {prompt: !file p.md, when: 'contains(ctx.a, 1)', timeout: 3s, on_error: continue}\n",
         ["dialect", "!file p.md", "when", "contains(ctx.a, 1)", "timeout", "on_error"]),
        (HEAD + "  - steps: [{transform: {value: a}}, {stop: {value: upper(ctx.a)}}]\n",
         ["dialect", "steps", "stop", "upper(ctx.a)"]),
        (HEAD + "  - steps: {do: [{fail: {message: no}}], output: x}\n", ["dialect", "steps", "fail"]),
        (HEAD + "  - repeat: {do: {call: {pipeline: q, pass: {a: acc}}}, until: 'starts_with(acc, b)', max: 3}\n",
         ["dialect", "repeat", "pass", "starts_with(acc, b)"]),
        (HEAD + "  - match: {on: a, cases: {x: {steps: [{transform: {value: first(ctx.a)}}]}}}\n",
         ["dialect", "steps", "first(ctx.a)"]),
        (HEAD + "  - for_each: {over: ctx.a, on_error: 'retry(1), continue', default: 'null', "
         "do: {steps: [{transform: {value: item}}]}, collect: {transform: {value: pipe}}}\n",
         ["dialect", "'retry(1), continue'", "default", "steps"]),
        ("pipeline: p\ndialect: quire\ninput: {a: {type: string}}\nsteps:\n" + STEP, ["dialect", "input"]),
    ],
)  # fmt: skip
def test_each_place_is_noted(text: str, places: list[str]) -> None:
    assert noted(text) == [("PL301", place) for place in places]


def test_what_cannot_be_read_is_not_noted() -> None:
    assert noted("pipeline: p\ndialect: quire\nsteps: []\n") == []


DIALECT = [
    path for path in Path(__file__).parents[3].glob("examples/**/*.yaml") if "\ndialect: quire\n" in path.read_text()
]


@pytest.mark.parametrize("path", DIALECT, ids=lambda path: path.name)
def test_all_that_the_format_refuses_is_noted(path: Path) -> None:
    """The reader without the dialect line is the judge: it refuses what belongs to the dialect, by name."""
    text = path.read_text(encoding="utf-8")
    places = {place for _, place in noted(text)}
    without = text.replace("\ndialect: quire\n", "\n")
    refused = [one for one in parse(Source.of(without), registered=True).diagnostics if "Quire dialect" in one.message]
    names = {without[one.span.start : one.span.end] for one in refused}
    assert [name for name in names if not any(place.startswith(name) for place in places)] == []


def test_the_format_that_implementations_share_does_not_grow() -> None:
    # A key that is not here is Quire's own, and its row in the table of the language says so.
    assert {
        kind.name: " ".join(key.name for key in kind.keys if not (key.dialect or key.own))
        for kind in KINDS
        if not kind.dialect
    } == KEYS_OF_THE_FORMAT


KEYS_OF_THE_FORMAT = {
    "transform": "value output",
    "tool": "name args schema output",
    "shell": "command schema output",
    "agent": "prompt identity capabilities schema output",
    "call": "pipeline pass output",
    "match": "on cases default output",
    "fold": "over items init do output max_items",
    "for_each": "over items max_parallel on_error do collect output",
    "parallel": "on_error branches collect output",
}
