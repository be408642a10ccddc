"""Every operator, on a small document: the plan differs in one place, and a walk shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

import msgspec
import pytest
from tests.engine.thread.crew import directive, give, ls
from tests.testing.scripted import Scripted, down, plan_of, start_of, walked
from tests.walks.answers import WalkEnd

from quire.engine.requests import HumanRequest
from quire.plan.nodes import Plan
from quire.source import Source
from quire.testing.mutation.mutants import OPERATORS, Mutant, mutants
from quire.values import Value


def differences(one: object, other: object, place: str = "") -> Iterator[str]:
    """The places at which two plans differ. Tuples of different lengths differ as a whole."""
    if type(one) is not type(other):
        yield place
    elif isinstance(one, msgspec.Struct):
        for name in one.__struct_fields__:
            if not name.startswith("_"):
                yield from differences(getattr(one, name), getattr(other, name), f"{place}.{name}" if place else name)
    elif is_dataclass(one):
        for field in fields(one):
            if field.compare:
                yield from differences(getattr(one, field.name), getattr(other, field.name), f"{place}.{field.name}")
    elif isinstance(one, Mapping) and isinstance(other, Mapping) and one.keys() == other.keys():
        for name in one:
            yield from differences(one[name], other[name], f"{place}.{name}")
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        for number, (part, changed) in enumerate(zip(one, other, strict=True)):
            yield from differences(part, changed, f"{place}[{number}]")
    elif one != other:
        yield place


def trace(text: str, inputs: Mapping[str, Value], script: Mapping[str, object], plan: Plan) -> object:
    """Everything that a test could look at."""
    answers = Scripted(**script)  # type: ignore[arg-type]
    end: WalkEnd = walked(start_of(text, inputs, plan=plan), answers)
    asked = [(one.path, one.prompt, one.options) for one in end.asked.values() if isinstance(one, HumanRequest)]
    events = [(one.type, one.label, dict(one.data)) for one in end.events]
    return (
        (end.status, end.result, end.failure, end.seconds),
        (answers.prompts, answers.calls, answers.refused, asked, events),
    )


def mutant_of(text: str, id: str) -> Mutant:
    found = {one.id: one for one in mutants(plan_of(text), Source.of(text))}
    assert id in found, "\n".join(found)
    return found[id]


PLAYBOOK = """# P

## SYSTEM

Be brief.

## INPUTS

- `tone` (string): The tone

## STEP 1: Draft

Write in a {{tone}} tone.

@output(best, extract:"best")

## STEP 2: Check

@elicit(confirm, "Take {{best}}?")

## STEP 3: Finish

```if __elicit_step_2 == "yes"```

### STEP 3a: Polish

Polish {{best}}.

```else```

### STEP 3b: Again

Write another.

```endif```

## STEP 4: Kind

@elicit(select, "Which?", "short", "long")

## STEP 5: Send

@tool(post, send, {"to": "all", "copies": 2, "urgent": true, "text": "Take {{best}}", "list": ["a"], "n": {{tone}}})

## ARTIFACTS

type: markdown
from: best
"""
REPLIES = {"1": 'Some. {"best": "Bread."}', "3a": "Bread, then.", "3b": "Flour."}
CASE: dict[str, object] = {"model": REPLIES, "people": {"2": "yes", "4": "long"}}

SEND = 'calls: {send: [{"<argument>": "<value>"}]}'

CONTEXT = """# P

## STEP 1: One

Say one.

@output(one)

## STEP 2: Two

@prompt({{one}})

Say two.

@output(kind: enum, "a", "b")

## STEP 3: Three

@context(kind)

Say three.

```if kind == "a"```

### STEP 3a: Last

Say {{one}}.

```endif```
"""


@pytest.mark.parametrize(
    ("id", "place", "expectation"),
    [
        ("drop_system", "system", 'prompts: {"1": {contains: "Be brief."}}'),
        ("drop_artifact:source", "artifact.source", 'output: "<the output>"'),
        ("drop_step:1", "body.steps", 'steps: {"1": completed}'),
        ("drop_step:3a", "body.steps[2].match.cases[0].body.steps", 'steps: {"3a": completed}'),
        (
            "drop_reference:1:tone",
            "body.steps[0].work.prompt.parts",
            'prompts: {"1": {contains: "<the value of tone>"}}',
        ),
        ("drop_capture:1:best", "body.steps[0]", 'named: {best: "<the value of best>"}'),
        ("drop_question:2", "body.steps[1].ask", 'asked: {"2": {contains: "<a part of the prompt>"}}'),
        (
            "drop_reference:2:question.best.1",
            "body.steps[1].ask.prompt.parts",
            'asked: {"2": {contains: "<the value of best>"}}',
        ),
        ("drop_option:4:1", "body.steps[3].ask.options", 'steps: {"4": completed}'),
        ("drop_arm:3:1", "body.steps[2].match.cases", 'steps: {"3a": completed}'),
        ("negate_condition:3:1", "body.steps[2].match.cases[0].test.operator", 'steps: {"3a": completed}'),
        ("change_condition:3:1", "body.steps[2].match.cases[0].test.value", 'steps: {"3a": completed}'),
        ("swap_arms:3:1", "body.steps[2].match.cases", 'steps: {"3a": completed}'),
        ("change_argument:5:argument.to", "body.steps[4].work.arguments.to.parts[0]", SEND),
        ("change_argument:5:argument.copies", "body.steps[4].work.arguments.copies", SEND),
        ("change_argument:5:argument.urgent", "body.steps[4].work.arguments.urgent", SEND),
        ("change_argument:5:argument.list[0]", "body.steps[4].work.arguments.list[0].parts[0]", SEND),
        ("drop_reference:5:argument.text.best.1", "body.steps[4].work.arguments.text.parts", SEND),
        ("drop_reference:5:argument.n.tone", "body.steps[4].work.arguments.n", SEND),
    ],
)
def test_a_playbook(id: str, place: str, expectation: str) -> None:
    _check(PLAYBOOK, {"tone": "dry"}, CASE, id, place, expectation)


@pytest.mark.parametrize(
    ("id", "place", "expectation"),
    [
        ("drop_preamble:2", "body.steps[1].work.preamble", 'prompts: {"2": {contains: "<the value of one>"}}'),
        ("drop_option:2:kind.a", "body.steps[1].capture.options", 'named: {kind: "<the value of kind>"}'),
        (
            "drop_context:3",
            "body.steps[2].work.context",
            'prompts: {"3": {not_contains: "<a result that it must not see>"}}',
        ),
    ],
)
def test_prompts_and_contexts(id: str, place: str, expectation: str) -> None:
    _check(CONTEXT, {}, {"model": {"1": "First.", "2": "a"}}, id, place, expectation)


PIPELINE = """schema: Note
fields:
  text: {type: string, max_length: 9}
  kind: {type: enum, values: [good, bad]}
  marks: {type: list, of: {type: number, minimum: 1}, max_items: 3}
---
pipeline: p
dialect: quire
steps:
- tool: {name: read, args: {path: a.txt, lines: 2, tags: [x]}, output: doc}
- for_each:
    over: ctx.list
    max_items: 3
    on_error: retry(2)
    do: {agent: {prompt: "Read {item} of {ctx.doc.did}.", schema: Note}}
    collect: {transform: {value: "filter(pipe, n -> n.kind == 'good' and count(n.marks) < 2)"}}
    output: notes
- transform:
    value: "{all: count(notes) + 1, name: get(ctx, 'name', 'none'), ok: not all(notes, n -> count(n.marks) == 1)}"
    output: sums
    when: "count(notes) > 0"
- match:
    on: sums.name
    cases:
      none: {steps: [{tool: {name: ask, args: {prompt: "Really?", type: confirm}, output: sure}}]}
      some: {steps: [{transform: {value: "'no'", output: sure}}]}
    default: {steps: [{transform: {value: "'maybe'", output: sure}}]}
- tool: {name: send, args: {sure: !expr sure}, on_error: continue, default: "'unsent'", timeout: 5s, output: sent}
- repeat: {init: "1", do: {transform: {value: acc * 2}}, until: acc > 4, max: 3, output: rounds}
- parallel:
    branches: {left: {transform: {value: sums.all}}, right: {transform: {value: rounds}}}
    collect: {transform: {value: "[left, right]"}}
    output: both
- fold: {over: ctx.both, init: "0", max_items: 2, do: {transform: {value: acc + item}}, output: total}
- fail: {message: !expr "'too much: ' + join(ctx.list, ' ')", when: total > 99}
- stop: {value: "[total, sent]"}
- transform: {value: "'never'"}
"""
GOOD = '{"text": "fine", "kind": "good", "marks": [1]}'
NOTES: dict[str, object] = {"model": {"2.do": [GOOD, GOOD]}, "people": {"4.none.1": "yes"}}
MIXED: dict[str, object] = {**NOTES, "model": {"2.do": [GOOD, GOOD.replace("good", "bad")]}}
VARIED: dict[str, object] = {**NOTES, "model": {"2.do": [GOOD, GOOD.replace("[1]", "[]")]}}
LATE: dict[str, object] = {**NOTES, "seconds": 9.0}
FAILING: dict[str, object] = {**NOTES, "tools": {"send": down()}}
SHAKY: dict[str, object] = {**NOTES, "model": {"2.do": [down(), GOOD, GOOD]}}
LOST: dict[str, object] = {**NOTES, "model": {"2.do": [GOOD, down(), down(), down()]}}


@pytest.mark.parametrize(
    ("id", "place", "script"),
    [
        ("make_optional:Note:text", "schemas.Note.fields[0].required", NOTES),
        ("drop_schema_limit:Note:text:max_length", "schemas.Note.fields[0].type.max_length", NOTES),
        ("drop_enum_value:Note:kind:1", "schemas.Note.fields[1].type.values", NOTES),
        ("drop_schema_limit:Note:marks:max_items", "schemas.Note.fields[2].type.max_items", NOTES),
        ("drop_schema_limit:Note:marks[]:minimum", "schemas.Note.fields[2].type.of.minimum", NOTES),
        ("drop_step:1", "body.steps", NOTES),
        ("drop_capture:1:doc", "body.steps[0].capture", NOTES),
        ("change_argument:1:path", "body.steps[0].work.arguments[0][1].value", NOTES),
        ("change_argument:1:lines", "body.steps[0].work.arguments[1][1].value", NOTES),
        ("change_argument:1:tags[0]", "body.steps[0].work.arguments[2][1].value[0]", NOTES),
        ("change_max_items:2", "body.steps[1].work.max_items", NOTES),
        ("drop_max_items:2", "body.steps[1].work.max_items", NOTES),
        ("change_on_error:2:no_retry", "body.steps[1].work.on_error", SHAKY),
        ("change_on_error:2:fewer", "body.steps[1].work.on_error.times", LOST),
        ("change_on_error:2:survives", "body.steps[1].work.on_error.survives", LOST),
        ("drop_reference:2.do:item", "body.steps[1].work.do.work.prompt.parts", NOTES),
        ("drop_reference:2.do:ctx.doc.did", "body.steps[1].work.do.work.prompt.parts", NOTES),
        ("drop_schema:2.do", "body.steps[1].work.do.work.schema", NOTES),
        ("drop_filter:2.collect:value.0", "body.steps[1].work.collect.work.value.compiled", MIXED),
        ("change_logic:2.collect:value.1", "body.steps[1].work.collect.work.value.compiled", MIXED),
        ("change_comparison:2.collect:value.2", "body.steps[1].work.collect.work.value.compiled", NOTES),
        ("change_constant:2.collect:value.3", "body.steps[1].work.collect.work.value.compiled", NOTES),
        (
            "drop_condition:3:when",
            "body.steps[2].guard.when",
            {**NOTES, "model": {"2.do": GOOD.replace("good", "bad")}},
        ),
        (
            "change_comparison:3:when.0",
            "body.steps[2].guard.when.compiled",
            {**NOTES, "model": {"2.do": GOOD.replace("good", "bad")}},
        ),
        ("negate_condition:3:when.2", "body.steps[2].guard.when.compiled", NOTES),
        ("change_arithmetic:3:value.0", "body.steps[2].work.value.compiled", NOTES),
        ("drop_default:3:value.2", "body.steps[2].work.value.compiled", NOTES),
        ("drop_not:3:value.4", "body.steps[2].work.value.compiled", NOTES),
        ("change_quantifier:3:value.5", "body.steps[2].work.value.compiled", VARIED),
        ("drop_arm:4:none", "body.steps[3].work.cases", NOTES),
        ("drop_arm:4:default", "body.steps[3].work.default", NOTES),
        ("swap_arms:4:none", "body.steps[3].work.cases", NOTES),
        ("drop_question:4.none.1", "body.steps[3].work.cases[0][1].body.steps", NOTES),
        (
            "change_argument:4.none.1:prompt",
            "body.steps[3].work.cases[0][1].body.steps[0].work.arguments[0][1].value",
            NOTES,
        ),
        ("change_on_error:5:abort", "body.steps[4].guard.on_error.policy", FAILING),
        ("drop_default:5:guard", "body.steps[4].guard.default", FAILING),
        ("change_constant:5:default.0", "body.steps[4].guard.default.compiled", FAILING),
        ("drop_timeout:5", "body.steps[4].guard.timeout", LATE),
        ("change_max:6", "body.steps[5].work.max", NOTES),
        ("negate_condition:6:until.2", "body.steps[5].work.until.compiled", NOTES),
        ("change_comparison:6:until.0", "body.steps[5].work.until.compiled", NOTES),
        ("change_on_max:6", "body.steps[5].work.keeps_last", NOTES),
        ("drop_branch:7:left", "body.steps[6].work.branches", NOTES),
        ("drop_max_items:8", "body.steps[7].work.max_items", NOTES),
        ("change_max_items:8", "body.steps[7].work.max_items", NOTES),
        ("drop_condition:9:when", "body.steps[8].guard.when", NOTES),
        ("drop_step:10", "body.steps", NOTES),
    ],
)
def test_a_pipeline(id: str, place: str, script: Mapping[str, object]) -> None:
    hidden = {
        "drop_max_items:2",
        "drop_arm:4:default",
        "drop_max_items:8",
        "change_comparison:6:until.0",
        "change_on_max:6",
    }
    mutant = mutant_of(PIPELINE, id)
    assert _own_place(set(differences(plan_of(PIPELINE), mutant.plan))) == place
    inputs: dict[str, Value] = {"list": ["a", "b", "c"] if "max_items:2" in id else ["a", "b"]}
    if id in hidden:
        # These show only in a case of their own, which is in the table below.
        return
    assert trace(PIPELINE, inputs, script, mutant.plan) != trace(PIPELINE, inputs, script, plan_of(PIPELINE))


@pytest.mark.parametrize(
    ("id", "text", "inputs"),
    [
        (
            "drop_max_items:1",
            "for_each: {over: ctx.l, max_items: 1, on_error: continue, do: {transform: {value: item}}, "
            "collect: {transform: {value: pipe}}}",
            {"l": [1, 2]},
        ),
        (
            "drop_max_items:1",
            "fold: {over: ctx.l, init: '0', max_items: 1, do: {transform: {value: acc + item}}, output: o}",
            {"l": [1, 2]},
        ),
        (
            "drop_arm:1:default",
            "match: {on: ctx.l, cases: {a: {steps: [{transform: {value: '1'}}]}}, "
            "default: {steps: [{transform: {value: '2'}}]}}",
            {"l": "b"},
        ),
        (
            "drop_arm:1:default",
            "match: {on: ctx.l, cases: {a: {steps: [{transform: {value: '1'}}]}}, default: \"'x'\"}",
            {"l": "b"},
        ),
        (
            "change_comparison:1:until.0",
            "repeat: {init: '1', do: {transform: {value: acc * 2}}, until: acc > 4, max: 3}",
            {},
        ),
        ("change_on_max:1", "repeat: {init: '1', do: {transform: {value: acc * 2}}, until: acc > 40, max: 3}", {}),
        (
            "change_on_max:1",
            "repeat: {init: '1', do: {transform: {value: acc * 2}}, until: acc > 40, max: 3, on_max: keep}",
            {},
        ),
        (
            "change_on_error:1:continue",
            "parallel: {branches: {a: {fail: {message: no}}, b: {transform: {value: '1'}}}, on_error: abort, "
            "collect: {transform: {value: pipe}}}",
            {},
        ),
        (
            "drop_default:1:fan",
            "for_each: {over: ctx.l, on_error: continue, default: \"'none'\", do: {fail: {message: no}}, "
            "collect: {transform: {value: pipe}}}",
            {"l": [1]},
        ),
        ("change_constant:1:value.2", "transform: {value: \"first(split(replace('a-b', '-', ' ')))\"}", {}),
        ("change_constant:1:message.0", "fail: {message: !expr \"'no'\"}", {}),
        (
            "change_constant:1:init.0",
            "repeat: {init: '1', do: {transform: {value: acc * 2}}, until: acc > 4, max: 3}",
            {},
        ),
        ("change_constant:1:value.0", "stop: {value: '1'}", {}),
        ("drop_schema:1", "tool: {name: t, schema: Note}", {}),
    ],
)
def test_cases_of_their_own(id: str, text: str, inputs: dict[str, Value]) -> None:
    whole = f"schema: Note\nfields: {{text: {{type: string}}}}\n---\npipeline: p\ndialect: quire\nsteps:\n- {text}\n"
    mutant = mutant_of(whole, id)
    assert trace(whole, inputs, {}, mutant.plan) != trace(whole, inputs, {}, plan_of(whole))


CALLING = """
pipeline: p
steps:
- call: {pipeline: other, pass: [doc]}
"""


def test_a_passed_value() -> None:
    mutant = mutant_of(CALLING, "drop_pass:1:doc")
    assert list(differences(plan_of(CALLING), mutant.plan)) == ["body.steps[0].work.passes"]


DIRECTIVE = directive(
    "main",
    "Tidy {input:file}.",
    permissions="<execute><tool>rye.file-system.read</tool><tool>rye.file-system.write</tool></execute>",
    meta=(
        '<limits turns="3" tokens="200000" />'
        '<hooks><hook event="after_step" id="stop"><condition path="turn" op="gt" value="1" />'
        '<action primary="execute" item_type="tool" item_id="rye/agent/threads/internal/control">'
        '<param name="action">fail</param></action></hook></hooks>'
    ),
    more='<inputs><input name="file" type="string" required="true" /></inputs>'
    '<outputs><output name="topics" type="integer" required="true" /></outputs>',
)
THREAD: dict[str, object] = {
    "model": {"turn 1": [ls()], "turn 2": [("rye_bash", {"command": "rm"})], "turn 3": [give()]}
}


@pytest.mark.parametrize(
    ("id", "place", "script", "expectation"),
    [
        (
            "drop_permission:thread:rye.execute.tool.rye.file-system.read",
            "permissions",
            THREAD,
            "refused: []",
        ),
        (
            "widen_permission:thread:rye.execute.tool.rye.file-system.write",
            "permissions[1].capability",
            THREAD,
            'refused: ["rye.execute.tool.rye.bash"]',
        ),
        (
            "drop_limit:thread:turns",
            "limits",
            {"model": {"turn 1": [ls()], "turn 2": "a", "turn 3": "b", "turn 4": "c"}},
            'error: {contains: "limit reached: turns"}',
        ),
        (
            "drop_hook:thread:stop",
            "hooks",
            {"model": {"turn 1": [ls()], "turn 2": [ls()], "turn 3": [give(topics=1)]}},
            "hooks: {stop: 1}",
        ),
        ("negate_condition:thread:stop", "hooks[0].condition", THREAD, "hooks: {stop: 1}"),
        (
            "make_optional:thread:topics",
            "outputs[0].required",
            {"model": {"turn 1": [give()]}},
            'error: {contains: "topics"}',
        ),
        ("drop_reference:thread:body.file.0", "body", THREAD, 'prompts: {"turn 1": {contains: "<the value of file>"}}'),
    ],
)
def test_a_directive(id: str, place: str, script: Mapping[str, object], expectation: str) -> None:
    _check(DIRECTIVE, {"file": "a.txt"}, script, id, f"body.steps[0].work.{place}", expectation)


def _check(
    text: str, inputs: Mapping[str, Value], script: Mapping[str, object], id: str, place: str, expectation: str
) -> None:
    mutant = mutant_of(text, id)
    assert _own_place(set(differences(plan_of(text), mutant.plan))) == place
    assert mutant.kill.expectation() == expectation
    assert trace(text, inputs, script, mutant.plan) != trace(text, inputs, script, plan_of(text))
    assert mutant.span.end > mutant.span.start


def _own_place(found: set[str]) -> str:
    """The one place that all differences are in."""
    parts = [one.replace("[", ".[").split(".") for one in found]
    shared = []
    for level in zip(*parts, strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    head, compiled, _ = ".".join(shared).replace(".[", "[").partition(".compiled")
    return head + compiled


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        ("# P\n\n## STEP 1: A\n\nSay.\n\n@output(unread)\n", "drop_capture"),
        ("pipeline: p\nsteps:\n- transform: {value: '1', output: unread}\n", "drop_capture"),
        ("pipeline: p\ndialect: quire\nsteps:\n- tool: {name: t, on_error: abort, output: a}\n", "drop_default"),
        ("pipeline: p\nsteps:\n- transform: {value: \"'a' + 'b'\"}\n", "change_arithmetic"),
        ("pipeline: p\nsteps:\n- transform: {value: 'null'}\n", "change_constant"),
        (
            "pipeline: p\ndialect: quire\nsteps:\n- tool: {name: t, on_error: continue, default: 'null'}\n",
            "drop_default",
        ),
        ("# P\n\n## STEP 1: A\n\nSay.\n\n@output(a)\n\n## STEP 2: B\n\n@context(a)\n\nSay.\n", "drop_context"),
        (
            "schema: Note\nfields: {text: {type: string}}\n---\npipeline: p\nsteps:\n- transform: {value: '1'}\n",
            "make_optional",
        ),
        (directive("main", permissions="<execute><tool>*</tool></execute>"), "drop_default"),
        (
            directive("main", permissions="<execute><tool>rye.*</tool><tool>rye.bash</tool></execute>"),
            "drop_permission:thread:rye.execute.tool.rye.bash",
        ),
        (directive("main", meta='<limits turns="25" />'), "drop_limit"),
        (
            "pipeline: p\nsteps:\n- parallel:\n    branches: {a: {transform: {value: '1'}}}\n"
            "    collect: {transform: {value: pipe}}\n",
            "change_on_error",
        ),
    ],
)
def test_what_changes_nothing_is_not_made(text: str, absent: str) -> None:
    assert [one.id for one in mutants(plan_of(text), Source.of(text)) if one.id.startswith(absent)] == []


@pytest.mark.parametrize("text", [PLAYBOOK, CONTEXT, PIPELINE, DIRECTIVE])
def test_ids_are_unique_and_the_same_every_time(text: str) -> None:
    first, second = (mutants(plan_of(text), Source.of(text)) for _ in range(2))
    assert [one.id for one in first] == [one.id for one in second]
    assert len({one.id for one in first}) == len(first) > 5


def test_there_is_a_most() -> None:
    assert len(mutants(plan_of(PIPELINE), Source.of(PIPELINE), most=7)) == 7


def test_every_operator_is_described_and_tried() -> None:
    """The texts of this module have a mutant of each operator, but for one that needs knowledge."""
    texts = (PLAYBOOK, CONTEXT, PIPELINE, CALLING, DIRECTIVE)
    made = {one.operator for text in texts for one in mutants(plan_of(text), Source.of(text))}
    assert made <= set(OPERATORS)
    assert set(OPERATORS) - made == {"drop_knowledge"}


def test_knowledge() -> None:
    text = directive("main", meta="<context><system>house/style</system></context>")
    mutant = mutant_of(text, "drop_knowledge:thread:system.house/style")
    assert list(differences(plan_of(text), mutant.plan)) == ["body.steps[0].work.context.system"]


SAME = """schema: Note
fields: {marks: {type: list, of: {type: number}, max_items: 3}}
---
pipeline: p
dialect: quire
steps:
- agent: {prompt: hello, schema: Note, output: note}
- match:
    on: ctx.kind
    cases:
      a: {steps: [{transform: {value: ctx.x}}]}
      b: {steps: [{transform: {value: ctx.x}}]}
      c: {steps: [{transform: {value: ctx.y}}]}
- for_each:
    over: note.marks
    max_items: MOST
    on_error: abort
    do: {transform: {value: item}}
    collect: {transform: {value: pipe}}
"""


@pytest.mark.parametrize(
    ("most", "made"),
    [(2, {"drop_max_items:3", "change_max_items:3"}), (3, {"change_max_items:3"}), (4, set())],
)
def test_no_mutant_is_made_of_what_a_schema_or_another_case_says_too(most: int, made: set[str]) -> None:
    text = SAME.replace("MOST", str(most))
    ids = {one.id for one in mutants(plan_of(text), Source.of(text))}
    assert {id for id in ids if "max_items:3" in id and "schema" not in id} == made
    assert {id for id in ids if id.startswith("swap_arms")} == {"swap_arms:2:b"}


def test_an_agent_that_has_the_schema_is_the_one_whose_prompt_shows_it() -> None:
    text = SAME.replace("MOST", "3").replace("- agent", "- agent: {prompt: x, schema: Other}\n- agent", 1)
    text = "schema: Other\nfields: {a: {type: string}}\n---\n" + text
    assert 'prompts: {"2": ' in mutant_of(text, "make_optional:Note:marks").kill.expectation()
