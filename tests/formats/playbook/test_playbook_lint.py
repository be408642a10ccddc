"""The lints: each fires on the wrong, not on the right, and points at the characters it is about."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from quire.diagnostics import Diagnostic, Severity
from quire.formats.playbook.check import lint
from quire.formats.playbook.codes import codes
from quire.formats.playbook.parse import parse
from quire.source import Source


def lints(text: str) -> list[tuple[str, str, Diagnostic]]:
    reading = parse(Source.of(text))
    return [(found.code.id, text[found.span.start : found.span.end], found) for found in lint(reading)]


def document(body: str, inputs: str = "") -> str:
    return f"# T\n\n## INPUTS\n\n{inputs}\n\n## STEP 1: A\n\n{body}\n"


IF = '```if m == "a"```\n### STEP 1a: P\np\n```endif```'
IF2 = IF.replace("1a", "2a")
SHELL_TEXT = '@tool(quire, shell, {"command": "ls {{a}}"})'
SHELL_HOLE = '@tool(quire, "rye/bash", {"command": {{a}}})'
CHAINED = '```if m == "a"```\n### STEP 1a: P\np\n@output(q)\n### STEP 1b: Q\n{{q}}\n```endif```'


@pytest.mark.parametrize(
    ("code", "text", "place"),
    [
        ("PB201", document("{{x}}"), "{{x}}"),
        ("PB201", document('@tool(a, b, {"k": "{{x}}"})'), "{{x}}"),
        ("PB201", document("x\n\n## OUTPUT\n\ntype: {{kind}}"), "{{kind}}"),
        ("PB202", document("{{x}}\n\n## STEP 2: B\nb\n@output(x)"), "{{x}}"),
        ("PB202", document("{{x}}\n@output(x)"), "{{x}}"),
        ("PB202", document('{{__elicit_step_2}}\n\n## STEP 2: B\n@elicit(input, "Q")'), "{{__elicit_step_2}}"),
        ("PB203", document("x", "- `a` (string): x"), "a"),
        ("PB204", document("x\n@output(o)\n\n## STEP 2: B\n@tool(a, b)"), "o"),
        ("PB204", document('@tool(a, b)\n@output(o)\n\n## STEP 2: B\n@elicit(input, "Q")'), "o"),
        ("PB205", document("{{a}}\n@output(a)", "- `a` (string): x"), "a"),
        ("PB206", document(IF, "- `m` (enum: A, b): x"), '```if m == "a"```'),
        ("PB206", document(f'x\n@output(m: enum, "b", "c")\n\n## STEP 2: B\n{IF2}'), '```if m == "a"```'),
        ("PB206", document(f'@elicit(confirm, "Q")\n@output(m)\n\n## STEP 2: B\n{IF2}'), '```if m == "a"```'),
        ("PB206", document(IF.replace("==", "!="), "- `m` (enum: b, c): x"), '```if m != "a"```'),
        ("PB207", document("@elicit(input)"), "@elicit(input)"),
        ("PB208", document('@elicit(select, "Q", "a")'), '@elicit(select, "Q", "a")'),
        ("PB208", document('@elicit(select, "Q")'), '@elicit(select, "Q")'),
        ("PB208", document('@elicit(input, "Q", "a")'), '@elicit(input, "Q", "a")'),
        ("PB209", document("{{a}}", "- `a` (enum: x, y, x): x"), "- `a` (enum: x, y, x): x"),
        ("PB209", document('@elicit(select, "Q", "a", "a")'), '@elicit(select, "Q", "a", "a")'),
        ("PB210", document("@output(x)"), "## STEP 1: A"),
        ("PB211", document("{{a}}", "- `a` (enum): x"), "- `a` (enum): x"),
        ("PB211", document("x\n@output(o: enum)"), "@output(o: enum)"),
        ("PB212", document("{{ a }} {{a}}", "- `a` (string): x"), "{{ a }}"),
        ("PB212", document("{{my-name}}"), "{{my-name}}"),
        ("PB213", document("x\n@output(_x)"), "_x"),
        ("PB213", document("x\n@output(2x)"), "2x"),
        ("PB214", document("x\n\n## SYSTEM:\n\ny"), "## SYSTEM:"),
        ("PB214", document("x\n\n ## STEP 2: y"), "## STEP 2: y"),
        ("PB214", document("x\n\n##STEP 2: y"), "##STEP 2: y"),
        ("PB214", "# T\n\n## INPUT\n\n## STEP 1: A\nx", "## INPUT"),
        ("PB215", document(f"x\n@output(m)\n\n## STEP 2: B\n{IF2}"), "m"),
        ("PB216", document('x\n@output(o, "a", "b")'), '@output(o, "a", "b")'),
        ("PB217", document(r'@elicit(select, "a\", "b", "c")'), r'@elicit(select, "a\", "b", "c")'),
        ("PB218", document("@tool(a, b, {k: 1})"), "@tool(a, b, {k: 1})"),
        ("PB218", document("@tool(a, b, [1])"), "@tool(a, b, [1])"),
        ("PB228", document(SHELL_TEXT, "- `a` (string): x"), SHELL_TEXT),
        ("PB228", document(SHELL_HOLE, "- `a` (string): x"), SHELL_HOLE),
        ("PB219", document(IF.replace("1a", "2a"), "- `m` (string): x"), "### STEP 2a: P"),
        ("PB219", document(IF.replace("p\n", "p\n### STEP 1a: Q\nq\n"), "- `m` (string): x"), "### STEP 1a: Q"),
        ("PB221", document("### STEP 1a: P\n\nx"), "### STEP 1a: P"),
        ("PB222", document("{{a}}", "- `a` (number: five): x"), "- `a` (number: five): x"),
        ("PB222", document("{{a}}", "- `a` (bool: maybe): x"), "- `a` (bool: maybe): x"),
        ("PB223", document("@prompt(file:../x.md)"), "@prompt(file:../x.md)"),
        ("PB224", document("x\n\n## ARTIFACTS\n\na json file"), "## ARTIFACTS"),
        ("PB229", document("{{a}}", "- `a` (integer: 3): x"), "integer"),
        ("PB229", document("{{a}}", '- `a` (string, default "x"): y'), 'string, default "x"'),
        ("PB229", document("{{a}}", "- `a` (list): x"), "list"),
        ("PB229", document("x\n@output(o: integer)"), "integer"),
        ("PB230", "# T\n\n## SYSTEM\n\nFor {{x}}.\n\n## STEP 1: A\nx", "{{x}}"),
        ("PB231", document("Write. @output(p)"), "@output(p)"),
        ("PB231", document('Ask. @elicit(input, "Q (really)?")  \nMore.'), '@elicit(input, "Q (really)?")'),
    ],
)
def test_a_lint_fires_once_at_its_place(code: str, text: str, place: str) -> None:
    assert [(found, where) for found, where, _ in lints(text)] == [(code, place)]


@pytest.mark.parametrize(
    "text",
    [
        document("{{a}} {{b:string:x}} {{c:text:}}", "- `a` (number: -1.5e3): x"),
        document("x\n@output(o)\n\n## STEP 2: B\n{{o}}"),
        document("x\n@output(last)"),
        document(IF, "- `m` (enum: a, b): x"),
        document('@tool(quire, shell, {"command": ["ls", "{{a}}"], "stdin": "{{a}}"})', "- `a` (string): x"),
        document(f'x\n@output(m: enum, "a", "b")\n{IF}'),
        document(f'@elicit(select, "Q", "a", "b")\n@output(m)\n{IF}'),
        document(f'@elicit(select, "Q", "{{{{x:string:y}}}}", "b")\n@output(m)\n{IF}'),
        document(IF.replace("p\n", "{{o}}\n"), "- `m` (string): x\n- `o` (text): x"),
        document('@elicit(input, "Q")\nUse {{__elicit_step_1}}.'),
        document('@tool(a, b, {"n": {{n}}, "s": "{{n}}"})', "- `n` (number): x"),
        document("x\n\n## NOTES\n\n{{y:string:z}}\n\n## CHANGELOG\n\nx"),
        document("```\n## step 9: no\n```"),
        document("x\n\n## OUTPUT\n\ntype: {{kind}}", "- `kind` (string): x"),
        document(CHAINED, "- `m` (string): x"),
        document("x\n@output(o)\n\n## STEP 2: B\nb"),
        document("x\n@output(o)\n\n## STEP 2: B\n@tool(a, b)\n\n## STEP 3: C\n@prompt(library:p)"),
        document("{{a}}{{b}}{{c}}", "- `a` (): x\n- `b` (Int): x\n- `c` ( Select : x, y): x"),
        document("Write `@output(p)`\nlike @output(p) here\n```\nwrite @output(p)\n```\nmail a@output(p)"),
    ],
)
def test_a_good_document_has_no_lints(text: str) -> None:
    assert lints(text) == []


@pytest.mark.parametrize(
    ("text", "help"),
    [
        (document("{{a}} {{summry}}", "- `a` (text): x\n- `summary` (text): x"), "did you mean {{summary}}?"),
        (document(IF, "- `m` (enum: A, b): x"), 'did you mean "A"?'),
        (document("x\n\n## SYSTEM:\n\ny"), "write ## SYSTEM"),
        (document("{{x}}\n\n## STEP 2: B\nb\n@output(x)"), "step 2 captures it"),
    ],
)
def test_help_names_what_was_probably_meant(text: str, help: str) -> None:
    assert help in [found.help for _, _, found in lints(text)]


def test_lints_are_lints() -> None:
    assert {found.severity for _, _, found in lints(document("{{x}}"))} == {Severity.LINT}
    assert lints("no playbook at all") == []


def test_a_type_that_is_not_there_is_told_what_to_write() -> None:
    """S10."""
    text = document("{{a}}{{b}}", '- `a` (integer: 3): x\n- `b` (string, default "x"): y')
    assert [found.help for _, _, found in lints(text)] == [
        "did you mean number?",
        "write (string), or (string: VALUE) for a default",
    ]


def test_what_once_was_a_lint_keeps_its_page() -> None:
    """PB220 became the warnings PB117 and PB118; the code stays known to `--explain`."""
    (retired,) = [code for code in codes() if code.id == "PB220"]
    assert "PB117" in retired.explanation


def test_many_conditions_on_many_options_are_looked_at_once_each() -> None:
    options, conditions = 300, 100
    arms = "\n".join(f'```{"elif" if at else "if"} m == "z{at}"```\nx' for at in range(conditions))
    text = document(f"{arms}\n```endif```", f"- `m` (enum: {', '.join(f'o{at}' for at in range(options))}): x")
    reading = parse(Source.of(text))
    lowered = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal lowered
        lowered += event == "c_call" and getattr(argument, "__name__", "") == "lower"

    sys.setprofile(count)
    try:
        found = lint(reading)
    finally:
        sys.setprofile(None)
    assert [one.code.id for one in found] == ["PB206"] * conditions
    assert lowered < 3 * (options + conditions)
