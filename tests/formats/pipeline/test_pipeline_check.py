"""What check finds in a pipeline that can be read: with its file alone, and with a workspace around it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.formats.pipeline.reading import Workspace, checked, steps
from tests.growth import within

from quire.formats.pipeline.check import check_reading
from quire.formats.pipeline.parse import parse
from quire.formats.resolver import CallTarget, Circle, DocumentInterface, DocumentResolver
from quire.source import Source
from quire.values import Value

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
        (["transform: {value: '1', output: verdict}", 'agent: {prompt: "Sum up {verdct}."}'], [("PL207", "{verdct}")]),
        (["transform: {value: '1', output: verdict}", 'agent: {prompt: "Sum up {example}."}'], []),
        (['agent: {prompt: "Read ${ctx.doc}."}'], [("PL202", "${ctx.doc}")]),
        (['agent: {prompt: "Read {{ctx.doc}}."}'], [("PL202", "{{ctx.doc}}")]),
        (['agent: {prompt: "Read {ctx.doc}, and write {{ctx.doc}} before it."}'], []),
        (['agent: {prompt: "Read {ctx.doc}, {ctx.n} and {{ctx.n}}; not {{ctx.x}}."}'], []),
        (['agent: {prompt: "Read {ctx.doc}."}', 'agent: {prompt: "Of {ctx.n}: {{ctx.doc}}."}'],
         [("PL202", "{{ctx.doc}}")]),
        (['agent: {prompt: "Read {input:doc}."}'], [("PL202", "{input:doc}")]),
        (['agent: {prompt: "Read {input:doc} of {ctx.doc}."}'], [("PL211", "{input:doc}")]),
        (['agent: {prompt: "Read {CTX.doc} and {pipe}."}'], [("PL211", "{CTX.doc}")]),
        (["transform: {value: '1', output: doc}", 'agent: {prompt: "Read {inputs.doc} and {foo.bar}."}'],
         [("PL211", "{inputs.doc}")]),
        (["tool: {name: t, output: state}", 'agent: {prompt: "{state.doc} {ctx.doc}"}'], []),
        ([f"for_each: {{over: ctx.xs, on_error: abort, do: {{agent: {{prompt: 'A {{{{item}}}}'}}}}, {COLLECT}}}"],
         [("PL211", "{{item}}")]),
        (["transform: {value: '1', output: doc}", 'agent: {prompt: "Read {{ctx.doc}} and {{doc}}."}'],
         [("PL202", "{{ctx.doc}}"), ("PL211", "{{doc}}")]),
        (['agent: {prompt: "A shell knows ${HOME}, Jinja {{name}}."}'], []),
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


@pytest.mark.parametrize(
    ("written", "help"),
    [("{{ctx.doc}}", "write {ctx.doc}, with one brace on each side"), ("${ctx.doc}", "write {ctx.doc}")],
)
def test_the_help_shows_the_reference(written: str, help: str) -> None:
    (finding,) = check_reading(parse(Source("p.yaml", steps(f'agent: {{prompt: "Read {written}."}}'))))
    assert finding.help == help


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
        (["transform: {value: \"review.score == 'x'\"}"], [("TY105", "review.score == 'x'")]),
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


READ: dict[str, Value] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "a file"},
        "limit": {"type": "integer", "minimum": 1},
        "all": {"type": "boolean"},
        "words": {"type": "array"},
    },
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ("{path: a.txt}", []),
        ("{path: a.txt, limit: 3, all: true, words: [a]}", []),
        ("{path: !expr ctx.n, limit: !expr pipe}", []),
        ("{}", [("PL113", "t")]),
        ("{limit: 3}", [("PL113", "t")]),
        ("{path: a.txt, limti: 3}", [("PL113", "limti")]),
        ("{path: 5}", [("PL113", "5")]),
        ("{path: a.txt, limit: 0}", [("PL113", "0")]),
        ("{path: a.txt, limit: true, all: 1, words: {}}", [("PL113", "true"), ("PL113", "1"), ("PL113", "{}")]),
        ("{file: !expr ctx.f}", [("PL113", "t"), ("PL113", "file")]),
    ],
)
def test_what_a_built_in_tool_is_given(args: str, found: list[tuple[str, str]]) -> None:
    workspace = Workspace(tools=["t"], parameters={"t": READ})
    assert checked(steps(f"tool: {{name: t, args: {args}}}"), workspace) == found
    assert checked(steps("tool: {name: u, args: {no: 1}}"), Workspace(parameters={"t": READ})) == []


def test_identities() -> None:
    known = Workspace(identities=["default", "reviewer"])
    assert checked(steps("agent: {prompt: a, identity: reviwer}"), known) == [("PL112", "reviwer")]
    for said in ("identity: reviewer", "identity: default", ""):
        assert checked(steps(f"agent: {{prompt: a, {said}}}"), known) == []
    assert checked(steps("agent: {prompt: a, identity: anybody}"), Workspace()) == []


def test_an_agent_may_be_left_all_tools_that_fit() -> None:
    text = steps("agent: {prompt: a, capabilities: {tools: ['file__*', 'web__*']}}", "tool: {name: 'file__*'}")
    assert checked(text, Workspace(tools=["file__read"])) == [("PL103", "'web__*'"), ("PL103", "'file__*'")]


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
    assert checked(
        steps("call: {pipeline: c0}"), Workspace(*chain, "pipeline: c1500\nsteps: [{transform: {value: '1'}}]")
    ) == [("PL117", "p")]


FAN = "{{parallel: {{branches: {{a: {0}}}, on_error: abort, collect: {{transform: {{value: pipe}}}}}}}}"
LEAF = "{transform: {value: pipe}}"
LIST = "for_each: {items: [1, 2], max_items: %s, on_error: abort, do: {agent: {prompt: x}}, collect: " + LEAF + "}"


@pytest.mark.parametrize(
    ("step", "found"),
    [
        (LIST % 2, []),
        (LIST % 1, ["PL118"]),
        ("call: {pipeline: two}", ["PL116"]),
        (FAN.format(FAN.format(LEAF))[1:-1], []),
        (FAN.format(FAN.format(FAN.format(LEAF)))[1:-1], ["PL117"]),
        (FAN.format(FAN.format("{call: {pipeline: fan}}"))[1:-1], ["PL117"]),
        ("tool: {name: plot, args: {}}", ["PL119"]),
        ("tool: {name: other, args: {}}", []),
    ],
)
def test_limits_and_python_tools_of_the_workspace(step: str, found: list[str]) -> None:
    """G4, G11: what a run would be refused for, or fail with, is said by `check`."""
    two = steps("agent: {prompt: a}", "agent: {prompt: b}", "agent: {prompt: c}")
    workspace = Workspace(
        two.replace("pipeline: p", "pipeline: two"),
        steps(FAN.format(LEAF)[1:-1]).replace("pipeline: p", "pipeline: fan"),
        caps=(2, 2),
        python={"plot": "the type Figure of figure cannot be given as JSON"},
    )
    assert [code for code, _ in checked(steps(step), workspace)] == found


BROKEN = "transform: {value: 1}"
SCHEMA = "schema: S\nfields: {a: {type: bool}}\n---\n"
NO_STEPS = "pipeline: q\nsteps: 5\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (steps(BROKEN, "agent: {prompt: ''}"), ["PL014", "PL205"]),
        (steps(BROKEN, "tool: {name: x, args: {p: '{ctx.a}'}}", "transform: {value: item}"),
         ["PL014", "PL201", "PL105"]),
        (steps("agent: {prompt: hi, schema: No}", BROKEN), ["PL102", "PL014"]),
        # The one that cannot be read still says what it writes, also where that is misplaced.
        (steps("transform: {value: 1, output: a}", "transform: {value: a}", "transform: {value: '1', output: a}"),
         ["PL014"]),
        (steps("transfrom: {value: '1', output: total}", "transform: {value: totl}"), ["PL009", "PL207"]),
        # One that does not say what it writes may write anything.
        (steps("transform: {value: '1', ouput: total}", "transform: {value: total}",
               "transform: {value: '1', output: totale}"), ["PL011"]),
        (steps("transform: {value: '1', ouput: a}", "transform: {value: a}", "transform: {value: '1', output: a}"),
         ["PL011"]),
        # A schema may be used by who cannot be read, and be there although it cannot be read itself.
        (SCHEMA + steps(BROKEN), ["PL014"]),
        ("schema: S\nfields: {a: {type: nope}}\n---\n" + steps("agent: {prompt: hi, schema: S}"), ["PL043"]),
        # A step with a broken step inside is still known, and so are the other steps inside of it.
        (steps("for_each: {items: [1], on_error: abort, do: {transform: {value: 1}}, "
               "collect: {agent: {prompt: ''}}}"), ["PL014", "PL205"]),
        ("pipeline: 1x\nsteps:\n- agent: {prompt: ''}\n", ["PL007", "PL205"]),
        # After a syntax error there is no telling what the rest would have been.
        (steps("agent: {prompt: ''}", "transform: {value: ]}"), ["YM001"]),
    ],
)  # fmt: skip
def test_a_file_with_errors_is_checked_as_far_as_it_can_be_read(text: str, found: list[str]) -> None:
    assert [code for code, _ in checked(text, Workspace())] == found


def test_a_broken_sibling_is_no_reason_to_warn() -> None:
    call = "pipeline: p\nsteps:\n- call: {pipeline: q, pass: [x]}\n---\n"
    for sibling in (NO_STEPS, "pipeline: q\nsteps:\n- transform: {value: 1}\n"):
        reading = parse(Source.of(call + sibling), registered=True)
        assert reading.file is None
        assert check_reading(reading, Workspace()) == reading.diagnostics


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
    with within(3):
        check_reading(reading)


class Rings(DocumentResolver):
    """Circles by the name of the call that leads into them."""

    def __init__(self, **decided: bool) -> None:
        self._decided = decided

    def document(self, name: str) -> DocumentInterface:
        return DocumentInterface("directive", name)

    def circles(self, source: Source, calls: Sequence[CallTarget], declared: str = "") -> Sequence[Circle]:
        known = [call for call in calls if call.name in self._decided]
        return [Circle(call, (declared, call.name), self._decided[call.name]) for call in known]


def test_circles_through_documents_of_other_formats() -> None:
    text = steps("call: {pipeline: a}", "match: {on: x, cases: {y: {pipeline: b}}, default: {pipeline: a}}")
    found = check_reading(parse(Source.of(text)), Rings(a=False, b=True))
    assert [(one.code.id, one.message, text[one.span.start : one.span.end]) for one in found] == [
        ("PL020", "p can reach itself: p → a → p", "a"),
        ("PL115", "p can reach itself: p → b → p", "b"),
    ]
    assert checked(steps("transform: {value: '1'}"), Rings(a=False)) == []


def test_slips_in_expressions_are_lints() -> None:
    """Unknown escapes lose their backslash, and of two values for one key the last counts."""
    text = steps("transform: {value: '{a: 1, a: \"x\\q\"}'}")
    assert checked(text) == [("EX004", "1"), ("EX003", "\\q")]
