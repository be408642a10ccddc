"""The Quire dialect: asked for in one line, refused by name without it."""

from __future__ import annotations

import pytest
from tests.formats.pipeline.reading import dialect as quire
from tests.formats.pipeline.reading import file_of, problems

from quire.formats.pipeline.check import check
from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.write import write
from quire.source import Source

PLAIN = "pipeline: p\nsteps: [{transform: {value: '1'}}]\n"
QUIRE = "pipeline: p\ndialect: quire\nsteps: [{transform: {value: '1'}}]\n"


def test_a_document_says_its_dialect_and_is_written_with_it() -> None:
    assert [one.dialect for one in file_of(PLAIN).pipelines] == [False]
    file = file_of(QUIRE)
    assert [one.dialect for one in file.pipelines] == [True]
    assert "dialect: quire\n" in write(file)
    assert "dialect" not in write(file_of(PLAIN))


@pytest.mark.parametrize(("said", "pointed"), [("quier", "quier"), ("3", "3"), ("[quire]", "[quire]")])
def test_another_dialect_is_refused(said: str, pointed: str) -> None:
    assert problems(QUIRE.replace("quire", said)) == [("PL022", pointed)]


CALL = 'pipeline: p\nsteps:\n  - transform: {value: "upper(ctx.name)"}\n'


def test_a_function_of_the_dialect_is_refused_by_name_without_it() -> None:
    (found,) = parse(Source.of(CALL)).diagnostics
    assert (found.code.id, found.message) == ("EX001", "the function upper belongs to the Quire dialect")
    assert CALL[found.span.start : found.span.end] == "upper"
    assert found.help == "write dialect: quire beside pipeline: to use it"
    assert problems(CALL.replace("pipeline: p\n", "pipeline: p\ndialect: quire\n")) == []


def test_two_documents_of_a_file_may_have_different_dialects() -> None:
    quire = CALL.replace("pipeline: p\n", "pipeline: q\ndialect: quire\n")
    for text in (f"{quire}---\n{CALL}", f"{CALL}---\n{quire}"):
        (found,) = parse(Source.of(text), registered=True).diagnostics
        assert found.code.id == "EX001" and text.count("---", 0, found.span.start) == int(text.startswith(quire))


def seed(*steps: str) -> str:
    return quire(*steps).replace("dialect: quire\n", "")


USES = [
    ("steps: [{transform: {value: '1'}}]", "steps"),
    ("repeat: {do: {transform: {value: '1'}}, until: acc == 1, max: 2}", "repeat"),
    ("fail: {message: no}", "fail"),
    ("stop: {value: '1'}", "stop"),
    ("transform: {value: '1', when: 'true'}", "when"),
    ("transform: {title: Sum up, value: '1'}", "title"),
    ("tool: {name: ask, on_error: continue}", "on_error"),
    ("tool: {name: ask, timeout: 30s}", "timeout"),
    ("shell: {command: ls, stdin: x}", "stdin"),
    ("shell: {command: ls, env: [HOME]}", "env"),
    ("shell: {command: ls, cwd: src}", "cwd"),
    ("shell: {command: ls, check: false}", "check"),
    ("shell: {command: ls, text: true}", "text"),
    ("agent: {prompt: hi, model: cheap}", "model"),
    ("agent: {prompt: hi, turns: 2}", "turns"),
    ("agent: {prompt: hi, max_tokens: 20}", "max_tokens"),
    ("agent: {prompt: hi, temperature: 0.5}", "temperature"),
    ("agent: {prompt: !file a.md}", "!file a.md"),
    ("call: {pipeline: q, timeout: 1h}", "timeout"),
    ("match: {on: x, cases: {a: {steps: [{transform: {value: '1'}}]}}}", "steps"),
    ("match: {on: x, cases: {a: {pipeline: q}}, on_error: continue}", "on_error"),
    (
        "for_each: {items: [1], on_error: 'retry(1), continue', do: {transform: {value: item}}, "
        "collect: {transform: {value: pipe}}}",
        "'retry(1), continue'",
    ),
    (
        "parallel: {on_error: continue, default: '1', branches: {a: {transform: {value: '1'}}}, "
        "collect: {transform: {value: pipe}}}",
        "default",
    ),
]


@pytest.mark.parametrize(("step", "pointed"), USES, ids=[f"{at}-{one[1]}" for at, one in enumerate(USES)])
def test_what_the_dialect_adds_is_refused_without_it_and_the_help_names_the_line(step: str, pointed: str) -> None:
    assert problems(quire(step)) == []
    ((_, place),) = problems(seed(step))
    assert place == pointed
    (found,) = parse(Source.of(seed(step), "p.yaml")).diagnostics
    assert found.help == "write dialect: quire beside pipeline: to use it"


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("steps: []", [("PL013", "[]")]),
        ("steps: {do: []}", [("PL013", "[]")]),
        ("steps: {output: x}", [("PL012", "steps")]),
        ("repeat: {do: {transform: {value: '1'}}, until: acc == 1}", [("PL012", "repeat")]),
        ("repeat: {do: {transform: {value: '1'}}, max: 3}", [("PL012", "repeat")]),
        ("repeat: {do: {transform: {value: '1'}}, until: acc == 1, max: 0}", [("PL018", "0")]),
        ("repeat: {do: {transform: {value: '1'}}, until: acc == 1, max: 20000}", [("PL018", "20000")]),
        ("repeat: {do: {transform: {value: '1'}}, until: acc ==, max: 2}", [("EX001", "")]),
        ("repeat: {do: {transform: {value: '1'}}, until: acc == 1, max: 2, on_max: kepe}", [("PL013", "kepe")]),
        ("fail: {}", [("PL012", "fail")]),
        ("fail: {message: 3}", [("PL013", "3")]),
        ("fail: out", [("PL010", "out")]),
        ("tool: {name: ask, default: '1'}", [("PL023", "default")]),
        ("tool: {name: ask, on_error: retry(2), default: '1'}", [("PL023", "default")]),
        ("tool: {name: ask, on_error: give up}", [("PL017", "give up")]),
        ("tool: {name: ask, title: ''}", [("PL013", "''")]),
        ("tool: {name: ask, title: 3}", [("PL013", "3")]),
        ('tool: {name: ask, title: "a\\nb"}', [("PL013", '"a\\nb"')]),
        (f"tool: {{name: ask, title: {'x' * 81}}}", [("PL013", "x" * 81)]),
        ("tool: {name: ask, timeout: soon}", [("PL024", "soon")]),
        ("tool: {name: ask, timeout: 30}", [("PL024", "30")]),
        ("tool: {name: ask, timeout: 0s}", [("PL024", "0s")]),
        ("shell: {command: ls, timeout: 11m}", [("PL024", "11m")]),
        ("shell: {command: ls, env: HOME}", [("PL013", "HOME")]),
        ("shell: {command: ls, env: ['A=b', 3]}", [("PL007", "'A=b'"), ("PL007", "3")]),
        ("shell: {command: ls, check: maybe}", [("PL013", "maybe")]),
        ("agent: {prompt: hi, turns: 0}", [("PL018", "0")]),
        ("agent: {prompt: hi, turns: 101}", [("PL018", "101")]),
        ("agent: {prompt: hi, temperature: warm}", [("PL018", "warm")]),
        ("agent: {prompt: hi, temperature: 3}", [("PL018", "3")]),
        ("agent: {prompt: !file ''}", [("PL013", "!file ''")]),
        ("agent: {prompt: !file ../a.md}", [("PL013", "!file ../a.md")]),
        ("agent: {prompt: !file /etc/passwd}", [("PL013", "!file /etc/passwd")]),
        ("agent: {prompt: !file 'c:\\a.md'}", [("PL013", "!file 'c:\\a.md'")]),
        ("agent: {prompt: !file [a]}", [("YM009", "!file")]),
        ("tool: {name: ask, args: {prompt: !file a.md}}", [("YM010", "!file a.md")]),
        ("match: {on: x, cases: {a: {steps: []}}}", [("PL013", "[]")]),
        ("match: {on: x, cases: {a: {steps: [{stop: {}}], pass: [b]}}}", [("PL011", "pass")]),
        (
            "for_each: {items: [1], on_error: abort, do: {stop: {}}, collect: {transform: {value: pipe}}}",
            [("PL025", "stop")],
        ),
        (
            "parallel: {branches: {a: {steps: [{stop: {}}]}}, collect: {stop: {}}}",
            [("PL025", "stop")],
        ),
        ("loop: {until: x}", [("PL009", "loop")]),
    ],
)
def test_mistakes_point_at_their_place(step: str, expected: list[tuple[str, str]]) -> None:
    assert problems(quire(step)) == expected


def test_everything_of_the_dialect_is_written_and_read_again() -> None:
    file = file_of(quire(*(step for step, _ in USES)))
    again = file_of(write(file))
    assert write(again) == write(file)
    assert [one.kind for one in again.pipelines[0].steps] == [step.partition(":")[0] for step, _ in USES]


_LOOP = (
    "repeat: {{init: '0', do: {{for_each: {{items: [1], on_error: abort, do: {{{}}},"
    " collect: {{transform: {{value: acc + round}}}}}}}}, until: 'true', max: 2}}"
)


@pytest.mark.parametrize(
    ("steps", "codes"),
    [
        (("transform: {value: '2', when: ctx.n > 1, output: a}", "transform: {value: a}"), ["PL210"]),
        (("transform: {value: '2', when: ctx.n > 1, output: a}", "transform: {value: a, when: ctx.n > 1}"), []),
        (("transform: {value: '2', when: ctx.n > 1, output: a}", "transform: {value: \"get(ctx, 'a')\"}"), []),
        (("transform: {value: '1', output: a}", "transform: {value: '2', when: a > 1, output: a}"), []),
        (("steps: [{transform: {value: '1', output: a}}, {transform: {value: a}}]", "transform: {value: a}"), []),
        (("steps: {when: ctx.n > 1, do: [{transform: {value: '1', output: a}}, {transform: {value: a}}]}",), []),
        (
            (
                "match: {on: ctx.n, cases: {a: {steps: [{transform: {value: '1', output: b}}]}}}",
                "transform: {value: b}",
            ),
            ["PL210"],
        ),
        (("steps: [{transform: {value: b}}, {transform: {value: '1', output: b}}]",), ["PL104"]),
        (("repeat: {do: {transform: {value: acc, output: s}}, until: s == round, max: 3}",), []),
        (("repeat: {do: {transform: {value: '1'}}, until: acc > 'a', max: 3}",), ["PL110"]),
        (("tool: {name: ask, on_error: continue, output: a}", "transform: {value: errors.a}"), []),
        (("stop: {value: ctx.x.y, when: ctx.x}",), []),
        # real-work M2 and M3.
        ((_LOOP.format("agent: {prompt: 'Round {round}, about {item}, so far {acc}'}"),), []),
        ((_LOOP.format("transform: {value: '[round, item, acc]'}"),), []),
        ((_LOOP.format("fold: {items: [1], init: '0', do: {transform: {value: acc + round}}, output: x}"),), []),
        (("tool: {name: ask, when: ctx.n > 1, default: '2', output: a}", "agent: {prompt: '{a}'}"), []),
        (("tool: {name: ask, when: ctx.n > 1, output: a}", "agent: {prompt: '{a}'}"), ["PL210"]),
        (("tool: {name: ask, default: '2', output: a}", "agent: {prompt: '{a}'}"), ["PL023"]),
        # seeds L2 (a).
        (("transform: {value: '1', output: errors}",), ["PL204"]),
    ],
)
def test_stores_and_types_are_followed_through_blocks_and_conditions(steps: tuple[str, ...], codes: list[str]) -> None:
    found = check(Source.of(quire(*steps), "p.yaml"))
    assert [one.code.id for one in found] == codes


@pytest.mark.parametrize(("default", "codes"), [("{n: 1}", []), ("{n: 'one'}", ["PL121"]), ("{n: ctx.n}", [])])
def test_a_default_that_is_written_out_fits_the_schema_of_its_step(default: str, codes: list[str]) -> None:
    step = f'tool: {{name: ask, schema: Mark, on_error: continue, default: "{default}"}}'
    text = "schema: Mark\nfields: {n: {type: number}}\n---\n" + quire(step)
    assert [one.code.id for one in check(Source.of(text, "p.yaml"))] == codes
