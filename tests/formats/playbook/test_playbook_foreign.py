"""Values, questions and branches in the syntax of other formats are found, and fixes write them as a playbook does
(newcomer G2); near misses have fixes (newcomer, small: `--fix --unsafe` leaves the obvious)."""

from __future__ import annotations

import pytest

from quire.cli.fixes import chosen_fixes
from quire.diagnostics import Severity, fix_of
from quire.formats import check
from quire.source import Source

HEAD = "# T\n\n## INPUTS\n\n- `ok` (string): Whether\n\n## STEP 1: A\n\n"


def found(body: str) -> list[tuple[str, str]]:
    source = Source.of(f"{HEAD}{body}\n", "page.playbook.md")
    return [(one.code.id, source.text[one.span.start : one.span.end]) for one in check(source) if one.stops]


def fixed(body: str) -> str:
    source = Source.of(f"{HEAD}{body}\n", "page.playbook.md")
    edits = [edit for fix in chosen_fixes(source, check(source), unsafe=True) for edit in fix.edits]
    text = source.text
    for edit in sorted(edits, key=lambda one: -one.span.start):
        text = text[: edit.span.start] + edit.new + text[edit.span.end :]
    return text.removeprefix(HEAD).removesuffix("\n")


@pytest.mark.parametrize("written", ["{ok}", "${ok}", "{ctx.ok}", "{input:ok}", "{{ctx.ok}}"])
def test_a_value_of_another_format_is_found_and_fixed(written: str) -> None:
    assert found(f"Is it {written}?") == [("PB236", written)]
    assert fixed(f"Is it {written}?") == "Is it {{ok}}?"


@pytest.mark.parametrize(
    "body",
    [
        '{{ok}} {"ok": true} {other} ${HOME} {ctx.x} {input:x} {ok: 1} {{{ok}}} {}',
        "{{ok}} in code: `{ok}` and `${ok}`",
        "{{ok}}\n\n```python\nprint(f'{ok}')\n```",
        "{{ok}}\n\n```\nelse\n```",
        '{{ok}}\n\n```\nif other == "yes"\n```',
        "{{ok}}\n\n#### Step 1: Look\n\nLook.\n\n### Step 2: Say",
        "{{ok}}\n\n    ## STEP 2: In an example",
    ],
)
def test_other_braces_and_code_are_text(body: str) -> None:
    assert found(body) == []


@pytest.mark.parametrize(
    ("code", "body", "meant"),
    [
        ("PB236", "@ask(Publish this?)", '@elicit(input, "Publish this?")'),
        ("PB236", '@ask(confirm, "Publish {{ok}}?")', '@elicit(confirm, "Publish {{ok}}?")'),
        ("PB106", "@elicit(confirm, Publish this?)", '@elicit(confirm, "Publish this?")'),
        ("PB106", "@elicit(select, Which?, a, 'b c')", '@elicit(select, "Which?", "a", "b c")'),
        ("PB110", "```if ok = yes```\n\n### STEP 1a: B\n\nb\n\n```endif```", None),
        ("PB107", '```if ok == "yes"```\n\n### STEP 1a: B\n\nb\n\n```end```', None),
    ],
)
def test_near_misses_have_fixes(code: str, body: str, meant: str | None) -> None:
    assert code in [id for id, _ in found(body)]
    assert fixed(body) == meant if meant else found(fixed(body)) == []


def test_a_marker_in_a_fence_of_three_lines() -> None:
    branch = '```\nif ok == "yes"\n```\n\n### STEP 1a: B\n\nb\n\n```\nendif\n```'
    assert [id for id, _ in found(branch)] == ["PB236", "PB236"]
    assert fixed(branch) == '```if ok == "yes"```\n\n### STEP 1a: B\n\nb\n\n```endif```'


@pytest.mark.parametrize("line", ["### Step 1b: C", "### STEP 1ab: C", "##STEP 6: C", " ## STEP 2: C", "###STEP 1b: C"])
def test_a_heading_like_a_step_stops(line: str) -> None:
    """Seeds §3, neighbour of S14."""
    assert found(f"{{{{ok}}}}\n\n{line}\n\nx") == [("PB214", line.strip())]


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("- topic (string) - What", "- `topic` (string): What"),
        ("* **topic** (enum: a, b): What", "- `topic` (enum: a, b): What"),
        ("- topic (number: 3)", "- `topic` (number: 3)"),
        ("- something to think about", None),
    ],
)
def test_an_input_line_is_written_in_its_form(line: str, meant: str | None) -> None:
    source = Source.of(f"# T\n\n## INPUTS\n\n{line}\n\n## STEP 1: A\n\nx\n", "page.playbook.md")
    (finding,) = [one for one in check(source) if one.code.id == "PB102"]
    fix = fix_of(source, finding)
    assert (fix.edits[0].new if fix else None) == meant


def test_types_by_other_names_and_two_types() -> None:
    """Seeds §6: the last type counts, and a note says so."""
    source = Source.of("# T\n\n## STEP 1: A\n\nx\n\n## ARTIFACTS\n\ntype: json\ntype: md\n", "page.playbook.md")
    note, unknown = check(source)
    assert (note.code.id, source.position(note.span.start).line) == ("PB305", 9)
    fix = fix_of(source, unknown)
    assert unknown.code.id == "PB103" and fix is not None and fix.edits[0].new == "markdown"


def test_a_misspelt_placeholder_is_a_warning() -> None:
    source = Source.of(f"{HEAD}{{{{okk}}}} {{{{other}}}} {{{{ok}}}}\n", "page.playbook.md")
    assert [(one.code.id, one.severity) for one in check(source)] == [
        ("PB201", Severity.WARNING),
        ("PB201", Severity.LINT),
    ]
