"""DD101 to DD104: arms, steps, conditions and stores without an effect."""

from __future__ import annotations

import pytest
from tests.analysis.rules.rule_cases import codes_of, findings_of

from quire.plan.nodes import Step

HEAD = "pipeline: p\ndialect: quire\nsteps:\n"
KIND = """
schema: Kind
fields: {kind: {type: enum, values: [bill, letter]}, urgent: {type: bool}}
---
"""


def pipeline(*steps: str, schema: str = "") -> str:
    """Return a pipeline of steps in flow style, and a last one that reads nothing."""
    return schema + HEAD + "".join(f"  - {step}\n" for step in steps)


def dead(*steps: str, schema: str = "") -> list[str]:
    return codes_of("dead_code", pipeline(*steps, schema=schema))


def choice(cases: str, default: str = "", on: str = "ctx.a") -> str:
    return f"match: {{on: {on}, cases: {{{cases}}}{', default: ' + default if default else ''}}}"


AGENT = "agent: {prompt: hi, schema: Kind, output: mail}"
NO = "{steps: [{fail: {message: no}}]}"
ONE = "{steps: [{transform: {value: '1'}}]}"


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        (["stop: {value: '1'}", "transform: {value: '2'}"], ["DD102"]),
        (["stop: {value: '1', when: ctx.a}", "transform: {value: '2'}"], []),
        (["fail: {message: no}", "transform: {value: '2'}", "transform: {value: '3'}"], ["DD102"]),
        (["steps: {do: [{fail: {message: no}}], on_error: continue}", "transform: {value: '2'}"], []),
        (["steps: [{transform: {value: '1'}}, {fail: {message: no}}]", "transform: {value: '2'}"], ["DD102"]),
        (["steps: [{fail: {message: no}}, {transform: {value: '1'}}]"], ["DD102"]),
        (
            [
                choice(f"x: {NO}, y: {NO}"),
                "transform: {value: '2'}",
            ],
            ["DD102"],
        ),
        (
            [
                choice(f"x: {NO}, y: {ONE}"),
                "transform: {value: '2'}",
            ],
            [],
        ),
        (
            [
                choice(f"x: {NO}", ONE),
                "transform: {value: '2'}",
            ],
            [],
        ),
        ([choice(f"x: {NO}", "ctx.b"), "transform: {value: '2'}"], []),
        (["repeat: {do: {steps: [{stop: {}}, {transform: {value: acc}}]}, until: acc, max: 2}"], ["DD102"]),
    ],
)
def test_steps_after_the_end(steps: list[str], found: list[str]) -> None:
    assert dead(*steps) == found


@pytest.mark.parametrize(
    ("when", "found"),
    [
        ("'true'", ["DD103"]),
        ("1 > 2", ["DD103"]),
        ("ctx.a == ctx.a", ["DD103"]),
        ("ctx.a or true", ["DD103"]),
        ("not (ctx.a and false)", ["DD103"]),
        ("ctx.a and true", []),
        ("ctx.a == ctx.b", []),
        ("ctx.a", []),
        ("1 / 0", []),
    ],
)
def test_conditions_that_always_turn_out_the_same(when: str, found: list[str]) -> None:
    assert dead(f'transform: {{value: "1", when: "{when}"}}') == found


@pytest.mark.parametrize(
    ("inner", "found"),
    [
        ("ctx.a == 'x'", ["DD103"]),
        ("ctx.a == 'y'", ["DD103"]),
        ("ctx.a != 'y'", ["DD103"]),
        ("ctx.b == 'x'", []),
        ("ctx.a.c == 'x'", []),
    ],
)
def test_a_condition_that_one_around_it_decides(inner: str, found: list[str]) -> None:
    step = f'steps: {{do: [{{transform: {{value: "1", when: "{inner}"}}}}], when: "ctx.a == \'x\'"}}'
    assert dead(step) == found


@pytest.mark.parametrize(("inner", "found"), [("ctx.a == 'x'", ["DD103"]), ("ctx.a == 'y'", [])])
def test_a_condition_that_excludes_one_value(inner: str, found: list[str]) -> None:
    assert dead(f'steps: {{do: [{{transform: {{value: "1", when: "{inner}"}}}}], when: "ctx.a != \'x\'"}}') == found


def test_a_store_that_is_written_again_is_not_decided() -> None:
    inner = "{steps: [{transform: {value: ctx.b, output: a}}, {transform: {value: '1', when: \"ctx.a == 'y'\"}}]}"
    assert dead(choice(f"x: {inner}, y: {ONE}")) == []


def test_an_item_of_another_loop_is_not_decided() -> None:
    inner = (
        "{for_each: {over: ctx.rows, max_items: 3, on_error: abort, when: \"item == 'a'\", "
        "do: {transform: {value: '1', when: \"item == 'a'\"}}, collect: {transform: {value: pipe}}}}"
    )
    step = (
        "for_each: {over: ctx.rows, max_items: 3, on_error: abort, "
        f"do: {inner}, collect: {{transform: {{value: pipe}}}}}}"
    )
    assert dead(step) == []


@pytest.mark.parametrize(
    ("until", "found"),
    [
        ('until: "false", max: 3', ["DD103"]),
        ('until: "false", max: 3, on_max: keep', []),
        ('until: "true", max: 3', ["DD103"]),
        ("until: acc, max: 3", []),
    ],
)
def test_loops_that_never_or_always_end(until: str, found: list[str]) -> None:
    assert dead(f"repeat: {{do: {{transform: {{value: ctx.a}}}}, {until}}}") == found


NESTED = "match: {on: ctx.a, cases: {x: {steps: [{match: {on: %s, cases: {%s: " + ONE + "}, default: " + ONE + "}}]}}}"


@pytest.mark.parametrize(
    ("on", "label", "found"),
    [("ctx.a", "y", ["DD101"]), ("ctx.a", "x", []), ("ctx.b", "y", []), ("a", "y", ["DD101"])],
)
def test_a_case_that_the_choice_around_it_excludes(on: str, label: str, found: list[str]) -> None:
    assert dead(NESTED % (on, label)) == found


def test_a_case_that_was_taken_before_the_default() -> None:
    inner = choice(f"x: {ONE}, y: {ONE}")
    assert dead(choice(f"x: {ONE}", f"{{steps: [{{{inner}}}]}}")) == ["DD101"]


@pytest.mark.parametrize(
    ("on", "cases", "found"),
    [
        ("mail.kind", "bill, letter", ["DD101"]),
        ("mail.kind", "bill", []),
        ("mail.urgent", "'True', 'False'", ["DD101"]),
        ("ctx.other", "bill, letter", []),
    ],
)
def test_a_default_for_values_that_there_are_not(on: str, cases: str, found: list[str]) -> None:
    arms = ", ".join(f"{one.strip()}: {ONE}" for one in cases.split(","))
    steps = (AGENT, f"match: {{on: {on}, cases: {{{arms}}}, default: {ONE}}}", "transform: {value: mail}")
    assert dead(*steps, schema=KIND) == found


def test_a_match_on_a_constant() -> None:
    found = findings_of("dead_code", pipeline(choice(f"a: {ONE}, b: {ONE}", on="\"'a'\"")))
    assert [one.code.id for one in found] == ["DD103"]
    assert "always chooses a" in found[0].message


LAST = "transform: {value: '1'}"


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        (["transform: {value: '1', output: a}", LAST], ["DD104"]),
        (["transform: {value: '1', output: a}"], []),
        (["transform: {value: '1', output: a}", "transform: {value: ctx.a}"], []),
        (["transform: {value: '1', output: a}", "transform: {value: a + 1}"], []),
        (["transform: {value: '1', output: a}", "agent: {prompt: 'see {a}'}"], []),
        (["transform: {value: '1', output: a}", "agent: {prompt: 'see {ctx.a.b}'}"], []),
        (["transform: {value: '1', output: a}", "call: {pipeline: q, pass: [a]}"], []),
        (["transform: {value: '1', output: a}", "call: {pipeline: q, pass: {b: a}}"], []),
        (["transform: {value: '1', output: a}", "transform: {value: json(ctx)}"], []),
        (["transform: {value: '1', output: a}", "transform: {value: \"get(ctx, 'b')\"}"], ["DD104"]),
        (["transform: {value: '1', output: a}", "transform: {value: \"get(ctx, 'a')\"}"], []),
        (["transform: {value: '1', output: a}", "tool: {name: now, args: {zone: !expr a}}"], []),
        (["transform: {value: '1', output: a}", "transform: {value: '1', when: a}"], []),
        (["steps: [{transform: {value: '1', output: a}}, {transform: {value: '2'}}]", LAST], ["DD104"]),
        (["transform: {value: '1', output: a}", choice(f"x: {ONE}", on="a")], []),
    ],
)
def test_stores_that_nothing_reads(steps: list[str], found: list[str]) -> None:
    assert dead(*steps) == found


def test_a_prompt_of_a_file_may_read_every_store() -> None:
    assert dead("transform: {value: '1', output: a}", "agent: {prompt: !file p.md}", LAST) == []


PLAYBOOK = """# Letters

## INPUTS

- `kind` (enum: bill, letter): What it is

## STEP 1: Look

Look at it.

@output(seen)

%s
"""


def arms(*tests: str) -> str:
    lines = []
    for at, test in enumerate(tests):
        lines.append("```else```" if test == "else" else f"```{'if' if at == 0 else 'elif'} {test}```")
        lines.append(f"Do {at}.")
    return PLAYBOOK % "\n\n".join([*lines, "```endif```"])


@pytest.mark.parametrize(
    ("tests", "found"),
    [
        (['seen == "a"', 'seen == "b"', "else"], 0),
        (['seen == "a"', 'seen == "a"'], 1),
        (['seen == "a"', 'seen != "a"', "else"], 1),
        (['seen != "a"', 'seen == "b"', "else"], 1),
        (['seen != "a"', 'seen == "a"', "else"], 1),
        (['kind == "bill"', 'kind == "letter"', "else"], 1),
        (['kind == "bill"', "else"], 0),
        (['kind == "bill"', 'seen == "bill"'], 0),
    ],
)
def test_arms_of_playbooks(tests: list[str], found: int) -> None:
    codes = codes_of("dead_code", arms(*tests), "p.md")
    assert codes == ["DD101"] * found


def test_a_thousand_arms_take_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from quire.analysis.rules import dead_code

    looked: list[object] = []
    original = dead_code._always_ends

    def counted(step: Step) -> bool:
        looked.append(step)
        return original(step)

    monkeypatch.setattr(dead_code, "_always_ends", counted)
    cases = ", ".join(f"c{n}: {{steps: [{{fail: {{message: no}}}}]}}" for n in range(1_000))
    assert dead(choice(cases), LAST) == ["DD102"]
    assert len(looked) <= 4_000
