"""What check finds in a pipeline that can be read: with its file alone, and with a workspace around it."""

from __future__ import annotations

import time

import pytest
from tests.formats.pipeline.reading import Workspace, checked, file_of, steps

from quire.formats.pipeline.check import check_reading
from quire.formats.pipeline.parse import parse
from quire.source import Source

COLLECT = "collect: {transform: {value: pipe}}"
SCHEMAS = """\
schema: Review
fields:
  passed: {type: bool}
  level: {type: enum, values: [low, high, 3]}
  score: {type: number}
  notes: {type: string, required: false}
  tags: {type: list, of: {type: string}}
  by: {type: ref, schema: Person}
  files: {type: list, of: {type: object, fields: {path: {type: string}}}}
---
schema: Person
fields: {name: {type: string}}
---
"""
REVIEW = "agent: {prompt: hi, schema: Review, output: review}"


def typed(*texts: str) -> list[tuple[str, str]]:
    return checked(SCHEMAS + steps(REVIEW, *texts))


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["transform: {value: ctx.a + b}"], []),
        (["transform: {value: n + 1, output: n}"], []),
        (["transform: {value: a}", "transform: {value: '1', output: a}"], [("PL104", "a")]),
        (["agent: {prompt: 'x {ctx.a}'}", "transform: {value: '1', output: a}"], [("PL104", "{ctx.a}")]),
        (["call: {pipeline: q, pass: [a]}", "transform: {value: '1', output: a}"], [("PL104", "a")]),
        (["transform: {value: \"get(ctx, 'a')\"}", "transform: {value: '1', output: a}"], []),
        ([f"for_each: {{on_error: abort, do: {{transform: {{value: item, output: a}}}}, {COLLECT}}}",
          "transform: {value: ctx.a}"], [("PL203", "a"), ("PL104", "ctx.a")]),
        (["fold: {init: '0', do: {transform: {value: \"get(ctx, 'a', 0)\", output: a}}, output: t}"], []),
        (["transform: {value: '[item, acc]'}"], [("PL105", "item"), ("PL105", "acc")]),
        (["agent: {prompt: 'about {item}'}"], [("PL105", "{item}")]),
        ([f"for_each: {{on_error: abort, do: {{transform: {{value: acc}}}}, {COLLECT}}}"], [("PL105", "acc")]),
        (["fold: {init: '0', do: {for_each: {over: '[acc]', on_error: abort, do: {transform: {value: acc}}, "
          "collect: {transform: {value: pipe}}}}, output: t}"],
         [("PL105", "acc")]),
        (["for_each: {on_error: abort, do: {transform: {value: item}}, collect: {transform: {value: item}}}"],
         [("PL105", "item")]),
        (["transform: {value: '1', output: total}", "transform: {value: totl}"], [("PL207", "totl")]),
        (["transform: {value: '1', output: total}", "transform: {value: other}"], []),
        (["transform: {value: '1', output: pipe}"], [("PL204", "pipe")]),
        ([f"parallel: {{branches: {{a: {{transform: {{value: '1', output: b}}}}}}, {COLLECT}}}"], [("PL203", "b")]),
        (["agent: {prompt: ' '}"], [("PL205", "' '")]),
        (["agent: {prompt: 'a {ctx.n + 1} { pipe } {x y} {\"ctx.a\": 1}'}"],
         [("PL202", "{ctx.n + 1}"), ("PL202", "{ pipe }")]),
        (["tool: {name: t, args: {a: '{ctx.path}', b: ['x {item} y'], c: '{other}', d: !expr ctx.x}}"],
         [("PL201", "'{ctx.path}'"), ("PL201", "['x {item} y']")]),
        (["shell: {command: [head, -5]}"], [("PL111", "[head, -5]")]),
        (["shell: {command: []}"], [("PL111", "[]")]),
        (["tool: {name: shell, args: {command: 5}}"], [("PL111", "5")]),
        (["shell: {command: ls}", "shell: {command: [ls]}", "shell: {command: !expr '[ctx.a]'}"], []),
        (["agent: {prompt: hi, schema: Reveiw}"], [("PL102", "Reveiw")]),
        (["call: {pipeline: q, pass: [a, a]}"], [("PL206", "a")]),
        (["call: {pipeline: p}"], [("PL020", "p")]),
    ],
)  # fmt: skip
def test_what_a_file_itself_tells(texts: list[str], found: list[tuple[str, str]]) -> None:
    assert checked(steps(*texts)) == found


def test_a_schema_that_nobody_names() -> None:
    assert checked("schema: A\nfields: {x: {type: bool}}\n---\n" + steps("transform: {value: '1'}")) == [("PL208", "A")]
    assert typed() == []


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["transform: {value: review.pased}"], [("PL109", "pased")]),
        (["transform: {value: ctx.review.by.nam}"], [("PL109", "nam")]),
        (["transform: {value: review.passed.x}"], [("PL109", "x")]),
        (["transform: {value: pipe.pased}"], [("PL109", "pased")]),
        (["agent: {prompt: 'x {review.pased}'}"], [("PL109", "pased")]),
        (["transform: {value: 'map(review.files, f -> f.pth)'}"], [("PL109", "pth")]),
        (["transform: {value: 'map(review.files, ctx -> ctx.review)'}"], [("PL109", "review")]),
        (["transform: {value: review.by, output: who}", "transform: {value: who.nme}"], [("PL109", "nme")]),
        (["transform: {value: '1', output: review}", "transform: {value: review.pased}"], [("PL109", "pased")]),
        (["tool: {name: t, output: review}", "transform: {value: review.pased}"], []),
        (["transform: {value: \"get(review, 'more')\"}"], []),
        (["transform: {value: review.notes}"], [("PL209", "notes")]),
        ([f"for_each: {{over: review.files, on_error: abort, do: {{transform: {{value: item.pth}}}}, {COLLECT}}}"],
         [("PL109", "pth")]),
        (["for_each: {over: xs, on_error: abort, do: {agent: {prompt: a, schema: Person}}, "
          "collect: {transform: {value: 'map(pipe, p -> p.nme)'}}}"], [("PL109", "nme")]),
        (["parallel: {branches: {a: {agent: {prompt: a, schema: Person}}}, collect: {transform: {value: a.nme}}}"],
         [("PL109", "nme")]),
        (["transform: {value: \"review.score > 'x'\"}"], [("PL110", "review.score > 'x'")]),
        (["transform: {value: \"review.by.name <= 3 or review.tags < 1\"}"],
         [("PL110", "review.by.name <= 3"), ("PL110", "review.tags < 1")]),
        (["transform: {value: 'review < 1'}"], [("PL110", "review < 1")]),
        (["transform: {value: 'review.score > 1 and review.passed < 2 and review.by.name < ctx.x'}"], []),
        (["transform: {value: \"review.score == 'x'\"}"], []),
        (["match: {on: review.passed, cases: {'true': {pipeline: a}, 'False': {pipeline: b}}}"],
         [("PL108", "review.passed"), ("PL107", "'true'")]),
        (["match: {on: review.level, cases: {low: {pipeline: a}, medium: {pipeline: b}}, default: {pipeline: c}}"],
         [("PL107", "medium")]),
        (["match: {on: review.level, cases: {low: {pipeline: a}, high: {pipeline: b}, 3: {pipeline: c}}}"], []),
        (["match: {on: review.score, cases: {low: {pipeline: a}}}"], []),
    ],
)  # fmt: skip
def test_what_schemas_tell(texts: list[str], found: list[tuple[str, str]]) -> None:
    assert typed(*texts) == found


def test_the_finger_is_inside_a_literal_block() -> None:
    text = SCHEMAS + steps(REVIEW, "agent:\n    prompt: |\n      Two lines, then\n      {review.pased}.\n")
    assert checked(text) == [("PL109", "pased")]


REPORT = "pipeline: report\nsteps:\n- transform: {value: \"review.notes + get(ctx, 'more', '')\"}\n"
GREEDY = "pipeline: greedy\nsteps:\n- transform: {value: ctx}\n"


@pytest.mark.parametrize(
    ("step", "found"),
    [
        ("call: {pipeline: reprot}", [("PL101", "reprot")]),
        ("match: {on: x, cases: {a: {pipeline: nope}}, default: {pipeline: no.pe}}",
         [("PL101", "nope"), ("PL101", "no.pe")]),
        ("call: {pipeline: report}", [("PL106", "report")]),
        ("call: {pipeline: report, pass: [review, more]}", []),
        ("call: {pipeline: report, pass: [review, mor]}", [("PL206", "mor")]),
        ("call: {pipeline: report, pass: {review: x}}", []),
        ("call: {pipeline: greedy, pass: [anything]}", []),
        ("tool: {name: file__raed}", [("PL103", "file__raed")]),
        ("agent: {prompt: a, capabilities: {tools: [file__read, nope]}}", [("PL103", "nope")]),
        ("tool: {name: ask}", []),
        ("shell: {command: ls}", []),
    ],
)  # fmt: skip
def test_what_a_workspace_tells(step: str, found: list[tuple[str, str]]) -> None:
    assert checked(steps(step), Workspace(REPORT, GREEDY, tools=["file__read"])) == found


def test_tools_that_nobody_knows_are_not_missed() -> None:
    assert checked(steps("tool: {name: anything}"), Workspace()) == []


def test_cycles_through_others() -> None:
    a = "pipeline: a\nsteps:\n- call: {pipeline: b}\n"
    b = "pipeline: b\nsteps:\n- match: {on: x, cases: {y: {pipeline: c}}, default: {pipeline: a}}\n"
    c = "pipeline: c\nsteps:\n- transform: {value: '1'}\n"
    reading = parse(Source.of(steps("call: {pipeline: c}", "fold: {init: '0', do: {call: {pipeline: a}}, output: t}")))
    found = [one for one in check_reading(reading, Workspace(a, b, c)) if one.code.id == "PL020"]
    assert [one.message for one in found] == ["the pipeline a can reach itself: a → b → a"]
    assert checked(steps("call: {pipeline: c}", "call: {pipeline: c}"), Workspace(c)) == []


def test_siblings_of_a_registered_file_call_each_other() -> None:
    text = steps("call: {pipeline: q}") + "---\npipeline: q\nsteps:\n- call: {pipeline: p}\n"
    reading = parse(Source.of(text), registered=True)
    assert [one.code.id for one in check_reading(reading)] == ["PL020"]


def test_long_chains_of_calls_and_wide_ones_take_no_time() -> None:
    chain = [
        f"pipeline: c{n}\nsteps:\n- call: {{pipeline: c{n + 1}}}\n- call: {{pipeline: c{n + 1}}}\n"
        for n in range(1_500)
    ]
    assert (
        checked(steps("call: {pipeline: c0}"), Workspace(*chain, "pipeline: c1500\nsteps: [{transform: {value: '1'}}]"))
        == []
    )


def test_a_broken_file_keeps_its_errors() -> None:
    assert [code for code, _ in checked(steps("transform: {value: 1}", "agent: {prompt: ''}"))] == ["PL014"]
    assert file_of(steps("agent: {prompt: ''}"))


@pytest.mark.parametrize(
    "text",
    [
        "pipeline: p\nsteps:\n" + "- call: {pipeline: p, pass: [a]}\n" * 3_000,
        "---\n".join(f"pipeline: c{n}\nsteps: [{{call: {{pipeline: c{n + 1}}}}}]\n" for n in range(3_000)),
        steps(f"agent: {{prompt: '{'{a}' * 20_000}{'{ctx.a }' * 10_000}'}}"),
        steps(f"agent: {{prompt: '{'{item}' * 25_000}'}}"),
        SCHEMAS + steps(REVIEW, f"transform: {{value: 'count([{'review.x, item, ' * 6_000}1])'}}"),
        steps(*(f"transform: {{value: r{n}, output: w{n}}}" for n in range(3_000))),
        "schema: E\nfields: {e: {type: enum, values: [" + ", ".join(f"v{n}" for n in range(4_000)) + "]}}\n---\n"
        + steps("agent: {prompt: a, schema: E, output: r}",
                "match: {on: r.e, cases: {" + ", ".join(f"c{n}: {{pipeline: q}}" for n in range(4_000)) + "}}"),
    ],
)  # fmt: skip
def test_hostile_files_are_checked_quickly(text: str) -> None:
    reading = parse(Source.of(text), registered=True)
    assert reading.file is not None
    started = time.process_time()
    check_reading(reading)
    assert time.process_time() - started < 3
