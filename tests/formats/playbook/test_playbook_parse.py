"""The reader: what the tree holds, and what is said about the rest."""

from __future__ import annotations

import pytest
from tests.formats.trees import without_spans

from quire.diagnostics import Severity
from quire.formats.playbook.parse import parse
from quire.formats.playbook.syntax import ParseResult, Playbook, Step
from quire.source import Source, Span


def read(text: str) -> ParseResult:
    return parse(Source.of(text))


def tree(text: str) -> Playbook:
    reading = read(text)
    assert reading.playbook is not None, reading.diagnostics
    return reading.playbook


def step(body: str, inputs: str = "") -> Step:
    return tree(f"# T\n\n{inputs}\n\n## STEP 1: A\n\n{body}\n").steps[0]


def codes(text: str, *severities: Severity) -> list[tuple[str, int]]:
    reading = read(text)
    wanted = severities or tuple(Severity)
    return [
        (found.code.id, reading.source.position(found.span.start).line)
        for found in reading.diagnostics
        if found.severity in wanted
    ]


def in_step(body: str, *severities: Severity) -> list[tuple[str, int]]:
    """Codes of a step's text, with lines counted from its first."""
    found = codes(f"# T\n\n## INPUTS\n- `m` (string): x\n## STEP 1: A\n{body}\n", *severities)
    return [(code, line - 5) for code, line in found]


IF = '```if m == "a"```'
ELSE = "```else```"
ENDIF = "```endif```"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["PB001"]),
        ("\ufeff \n\t\n", ["PB001"]),
        ("no heading at all", ["PB003", "PB004"]),
        ("## STEP 1: A\n\nx", ["PB003"]),
        ("## NOTES\n\n# Late\n\n## STEP 1: A", ["PB003"]),
        ("# T\n\n## step 1: A", ["PB004"]),
        ("## INPUTS\n- `a` (string)\n- `a` (string)", ["PB003", "PB004", "PB005"]),
        ("# T\n## INPUTS\n- `a` (string)\n## STEP 1: A\n## INPUTS\n- `a` (text)", ["PB005"]),
        ('# T\n## STEP 1: A\n@elicit(select, "Q", "a", default:"b")', ["PB006"]),
        ('# T\n## STEP 1: A\n@elicit(confirm, "Q", default:"perhaps")', ["PB006"]),
        ("#   \n## STEP 1: A", ["PB003"]),
    ],
)
def test_all_fatal_errors_are_reported_at_once(text: str, expected: list[str]) -> None:
    reading = read(text)
    assert [found.code.id for found in reading.of(Severity.ERROR)] == expected
    assert reading.playbook is None


def test_the_size_is_that_of_the_stored_bytes() -> None:
    text = "# T\n\n## STEP 1: A\n\n"
    exact = text + "ä" * ((200_000 - len(text)) // 2)
    assert read(exact).playbook is not None
    assert [found.code.id for found in read(exact + "xx").diagnostics] == ["PB002"]


def test_errors_stand_where_they_are() -> None:
    text = "## NOTES\n\n# Late\n\n## Step one: A\n"
    assert codes(text) == [("PB003", 3), ("PB004", 5)]


@pytest.mark.parametrize(
    ("heading", "number", "title"),
    [
        ("## STEP 1: Plan: phase 2 (draft)  ", 1, "Plan: phase 2 (draft)"),
        ("##\tSTEP  007:\tx", 7, "x"),
        ("## STEP 0: zero", 0, "zero"),
        (f"## STEP {'0' * 5000}12: zeros", 12, "zeros"),
    ],
)
def test_step_headings(heading: str, number: int, title: str) -> None:
    found = tree(f"# T\n{heading}\nx").steps[0]
    assert (found.number, found.label, found.title) == (number, str(number), title)


@pytest.mark.parametrize(
    "heading",
    [
        "## STEP 1:x",
        " ## STEP 1: x",
        "## STEP 1:",
        "## STEP one: x",
        "## STEP ١: x",
        "##STEP 1: x",
        f"## STEP {'9' * 5000}: x",
    ],
)
def test_headings_that_are_no_steps(heading: str) -> None:
    playbook = tree(f"# T\n## STEP 1: A\nx\n{heading}\ny\n")
    assert len(playbook.steps) == 1


def test_line_ends_and_the_mark_are_normalised() -> None:
    text = "\ufeff# T\r\n\r## STEP 1: A\ra\u2028b\x0bc\r\n@output(o)\r"
    found = tree(text).steps[0]
    assert found.content == "a\u2028b\x0bc"
    assert found.output is not None and found.output.name == "o"


@pytest.mark.parametrize(
    ("body", "content"),
    [
        ("one  \ntwo\t\n\n\n\nthree", "one\ntwo\n\n\n\nthree"),
        ("a\n\n@output(x)\n\nb", "a\n\nb"),
        ("a\n@output(x)\nb", "a\nb"),
        ("a\n\n\n@output(x)\nb", "a\n\nb"),
        ("a\n@prompt(library:p)\n\n@output(x)\n   \n\nb\n\n\nc", "a\n\nb\n\n\nc"),
        ("@output(x)\n    b", "b"),
        ("a\n@output(x)\n    b", "a\n    b"),
        (f"a\n\n{IF}\n### STEP 1a: P\np\n{ENDIF}\n\nb", "a\n\nb"),
        ("é\u00a0\nb  ", "é\u00a0\nb"),
    ],
)
def test_content(body: str, content: str) -> None:
    assert step(body, "## INPUTS\n- `m` (string): x").content == content


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("@output(x)", ("x", None, (), None)),
        ("  @output(x : INT)  ", ("x", "number", (), None)),
        ('@output(x: select, "a, b",   "c")', ("x", "enum", ("a, b", "c"), None)),
        ('@output(x, "a")', ("x", None, ("a",), None)),
        ('@output(x: weird, extract:"f")', ("x", "string", (), "f")),
        ('@output(1x: json, "a", extract:"f_2")', ("1x", "json", ("a",), "f_2")),
    ],
)
def test_output(line: str, expected: tuple[object, ...]) -> None:
    found = step(f"x\n{line}").output
    assert found is not None
    assert (found.name, found.type, found.options, found.field) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("@elicit(input)", ("input", "", (), None)),
        ('@elicit(Input,"Why (briefly), and how?" )', ("input", "Why (briefly), and how?", (), None)),
        ('@elicit(SELECT, "Q", "a, b", "c", default:"c")', ("select", "Q", ("a, b", "c"), "c")),
        ('@elicit(confirm, "Go?", default:"YES")', ("confirm", "Go?", (), "yes")),
        ('@elicit(select, "Q", "{{a}}", default:"x")', ("select", "Q", ("{{a}}",), "x")),
        ('@elicit(input, default:"x")', ("input", "", (), "x")),
        ('@elicit(select, "Q" , "(a)" )', ("select", "Q", ("(a)",), None)),
        (r'@elicit(input, "say \"hi\"", default:"\"y\"")', ("input", 'say "hi"', (), '"y"')),
        (r'@elicit(input, "say \"hi\", then go")', ("input", 'say "hi", then go', (), None)),
        (r'@elicit(select, "C:\", "D:\")', ("select", "C:\\", ("D:\\",), None)),
    ],
)
def test_elicit(line: str, expected: tuple[object, ...]) -> None:
    found = step(line).elicitation
    assert found is not None
    assert (found.kind, found.prompt, found.options, found.default) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("@tool(srv, get.it-now)", ("srv", "get.it-now", "")),
        ('@tool("My, Server", "get it" , {"q": "a, )"} )', ("My, Server", "get it", '{"q": "a, )"}')),
        ("@tool(a, b, {{args}})", ("a", "b", "{{args}}")),
    ],
)
def test_tool(line: str, expected: tuple[str, str, str]) -> None:
    found = step(line).tool
    assert found is not None
    assert (found.connection, found.tool, found.arguments) == expected


@pytest.mark.parametrize("reference", ["library:abc-1", "file:prompts/a b.md", "file:../x.md", "mcp:srv/name", "{{v}}"])
def test_prompt(reference: str) -> None:
    found = step(f"@prompt({reference})\n\ntext")
    assert found.prompt is not None and found.prompt.ref == reference
    assert found.content == "text"


@pytest.mark.parametrize(
    ("line", "code", "kept"),
    [
        ("@output( x )", "PB106", True),
        ('@output(x, extract: "f")', "PB106", True),
        ("@output(x) now", "PB106", True),
        ("@output(x", "PB106", True),
        ("@Output(x)", "PB106", True),
        ("@ouput(x)", "PB106", True),
        ("@output: x", "PB106", True),
        ("@output()", "PB106", True),
        ('@elicit(input "p")', "PB106", True),
        ("@elicit(input,)", "PB106", True),
        ('@elicit(input, "p", )', "PB106", True),
        ('@elicit(input, "p") and "q")', "PB106", True),
        ('@elicit(input, default:"x", "p")', "PB106", True),
        ("@elicit(input, 'p')", "PB106", True),
        ('@elicit(select, "p" "a")', "PB106", True),
        ('@elicit(input, "p", default: "x")', "PB106", True),
        ("@tool()", "PB106", True),
        ("@tool(my server, x)", "PB106", True),
        ("@tool(a b)", "PB106", True),
        ("@prompt(library:a/b)", "PB106", True),
        ("@prompt(bare)", "PB106", True),
        ("@prompt(mcp:srv)", "PB106", True),
        ("@prompt(https://x)", "PB108", False),
        ('@elicit(slider, "p")', "PB105", False),
        ("@elicit(slider, p)", "PB105", False),
        ("@tool(srv)", "PB111", False),
        ('@elicit(confirm, "p", "Sure")', "PB112", False),
        ('```if m > "3"```', "PB110", True),
        ('```if m contains "a"```', "PB110", True),
        ("```if m == 'a'```", "PB107", True),
        ("```if m```", "PB107", True),
        ("``` else ```", "PB107", True),
        ("```ENDIF```", "PB107", True),
        ("```else``` and more", "PB107", True),
        ('````if m == "a"````', "PB107", True),
        ('`if m == "a"`', "PB107", True),
        ("`endif`", "PB107", True),
        ("```else```", "PB115", True),
        ("```endif```", "PB115", True),
        ('```elif m == "b"```', "PB115", True),
    ],
)
def test_a_near_miss_is_one_warning_and_no_text_is_lost(line: str, code: str, kept: bool) -> None:
    assert in_step(f"before\n{line}\nafter", Severity.WARNING) == [(code, 2)]
    assert step(f"before\n{line}\nafter", "## INPUTS\n- `m` (string): x").content == (
        f"before\n{line}\nafter" if kept else "before\nafter"
    )


@pytest.mark.parametrize(
    "line",
    [
        "Write @output(x) here.",
        "@team please look (soon)",
        "@someone(else)",
        "@tooling is a word",
        "`if` is a keyword, and so is `else`",
        "```python```",
        "# Heading",
        "### STEP: none",
        "- @output(x)",
    ],
)
def test_ordinary_text_gives_no_warning(line: str) -> None:
    assert in_step(line, Severity.WARNING) == []
    assert step(line).content == line


def test_a_tool_beside_a_question_is_one_warning_at_the_tool() -> None:
    body = '@elicit(input, "Q")\n@prompt(library:x)\n@tool(a, b)'
    assert in_step(body, Severity.WARNING) == [("PB114", 3)]


def test_the_last_directive_counts_whole_and_the_other_is_noted() -> None:
    body = '@output(a: enum, "p")\n@output(b)'
    found = step(body).output
    assert found is not None and (found.name, found.type, found.options) == ("b", None, ())
    assert in_step(body) == [("PB305", 1)]


def test_branches() -> None:
    found = step(
        f'Lead.\n\n{IF}\n\n### STEP 1a: P\n\np\n@output(x)\n\n### STEP 1b: Q\n\nq\n\n```elif m != "b"```\n\n{ELSE}\n'
        f"  ### STEP 1c: R  \nr\n{ENDIF}\n\n@output(y)",
        "## INPUTS\n- `m` (string): x",
    )
    assert found.content == "Lead."
    assert found.output is not None and found.output.name == "y"
    assert [[(sub.label, sub.title, sub.content) for sub in arm.steps] for arm in found.arms] == [
        [("1a", "P", "p"), ("1b", "Q", "q")],
        [],
        [("1c", "R", "r")],
    ]
    conditions = [arm.condition for arm in found.arms]
    assert [(c.variable, c.operator, c.value, c.source) if c else None for c in conditions] == [
        ("m", "==", "a", "input"),
        ("m", "!=", "b", "input"),
        None,
    ]


def test_lead_text_of_an_arm_becomes_a_sub_step_with_a_free_letter() -> None:
    body = f"{IF}\nlead {{{{m}}}}\n@output(x)\n### STEP 1a: P\np\n{ELSE}\nother\n{ENDIF}"
    found = step(body, "## INPUTS\n- `m` (string): x")
    lead, named = found.arms[0].steps
    assert (lead.label, lead.title, lead.content, named.label) == ("1b", "", "lead {{m}}", "1a")
    assert lead.output is not None and [place.name for place in lead.placeholders] == ["m"]
    assert [sub.label for sub in found.arms[1].steps] == ["1c"]
    assert in_step(body) == [("PB306", 2), ("PB306", 7)]


def test_an_if_without_endif_closes_at_the_next_section() -> None:
    text = f"# T\n## INPUTS\n- `m` (string): x\n## STEP 1: A\n{IF}\n### STEP 1a: P\np\n## STEP 2: B\nb\n"
    playbook = tree(text)
    assert playbook.steps[0].arms[0].steps[0].content == "p"
    assert playbook.steps[1].content == "b"
    assert codes(text) == [("PB113", 5)]


def test_a_nested_if_is_text_of_its_sub_step() -> None:
    inner = f'```if m == "b"```\n### STEP 1b: Q\n@output(z)\ninner\n{ELSE}\n{ENDIF}'
    body = f"{IF}\n### STEP 1a: P\nouter\n{inner}\n{ENDIF}\ntail"
    found = step(body, "## INPUTS\n- `m` (string): x")
    assert len(found.arms) == 1
    assert found.arms[0].steps[0].content == f"outer\n{inner}"
    assert found.content == "tail"
    assert in_step(body) == [("PB109", 4), ("PB116", 11)]


def test_a_second_chain_is_joined_to_the_first() -> None:
    body = f"{IF}\nx\n{ENDIF}\nmiddle\n{IF}\ny\n{ENDIF}"
    found = step(body, "## INPUTS\n- `m` (string): x")
    assert [arm.steps[0].content for arm in found.arms] == ["x", "y"]
    assert found.content == "middle"
    assert in_step(body, Severity.WARNING) == [("PB116", 4), ("PB117", 5)]


@pytest.mark.parametrize("late", ['```elif m == "b"```', ELSE, f"{ENDIF}\n{IF}"])
def test_an_arm_that_no_run_reaches_is_a_warning(late: str) -> None:
    """S14."""
    body = f"{IF}\n### STEP 1a: P\np\n{ELSE}\n### STEP 1b: Q\nq\n{late}\n### STEP 1c: R\nr\n{ENDIF}"
    assert in_step(body, Severity.WARNING) == [("PB118", 7 + late.count("\n"))]


def test_text_after_endif_is_a_warning_that_says_where_it_goes() -> None:
    """S14; blank lines and directives after `endif` are fine, and a marker has its own warning."""
    branch = f"{IF}\n### STEP 1a: P\np\n{ENDIF}"
    assert in_step(f"before\n{branch}\n\n@output(o)\n\n") == []
    assert in_step(f"before\n{branch}\n{ENDIF}", Severity.WARNING) == [("PB115", 6)]
    (found,) = read(f"# T\n## INPUTS\n- `m` (string): x\n## STEP 1: A\n{branch}\n\n  Sum up.\nMore.\n").diagnostics
    assert found.code.id == "PB116" and "before the sub-steps" in found.message


@pytest.mark.parametrize(
    ("heading", "warned"),
    [
        ("## Step 2: Review", True),
        ("## STEP two: Review", True),
        ("## STEP 2:Review", True),
        ("## STEP 2", True),
        ("## step 2 - Review", True),
        ("## Step-by-step guide", False),
        ("## Steps", False),
        ("## Stepping stones: why", False),
        ("## NOTES", False),
    ],
)
def test_a_step_that_is_lost_by_its_heading_is_a_warning(heading: str, warned: bool) -> None:
    """S14."""
    found = codes(f"# T\n## STEP 1: A\nx\n{heading}\ny\n")
    assert found == ([("PB119", 4)] if warned else [])


@pytest.mark.parametrize(
    ("variable", "source", "warned"),
    [
        ("m", "input", False),
        ("early", "step_output", False),
        ("sub", "step_output", False),
        ("own", "step_output", False),
        ("__elicit_step_1", "step_output", False),
        ("__elicit_step_2", "input", True),
        ("late", "step_output", True),
        ("nope", "input", True),
    ],
)
def test_where_a_condition_gets_its_value(variable: str, source: str, warned: bool) -> None:
    text = (
        f'# T\n## STEP 1: A\n@elicit(input, "Q")\n@output(early)\n{IF}\n### STEP 1a: P\np\n@output(sub)\n{ENDIF}\n'
        f'## STEP 2: B\n```if {variable} == "x"```\n### STEP 2a: Q\nq\n{ENDIF}\n@output(own)\n'
        f"## STEP 3: C\nc\n@output(late)\n## INPUTS\n- `m` (string): x\n"
    )
    condition = tree(text).steps[1].arms[0].condition
    assert condition is not None and condition.source == source
    assert codes(text, Severity.WARNING) == ([("PB104", 11)] if warned else [])


def test_step_numbers_are_compared_with_the_step_before() -> None:
    text = "# T\n## STEP 2: A\nx\n## STEP 3: B\nx\n## STEP 3: C\nx\n"
    assert codes(text) == [("PB101", 2), ("PB101", 6)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("- `a` (Num): x", ("a", "number", None, (), "x", True)),
        ("  -  `a`  (string: http://x:80/y):   url  ", ("a", "string", "http://x:80/y", (), "url", False)),
        ("- `a` (string:)", ("a", "string", None, (), "", True)),
        ("- `a` (json: 1)", ("a", "string", "1", (), "", False)),
        ("- `a` (Choice: p , q,,)", ("a", "enum", None, ("p", "q"), "", True)),
        ("- `a` (enum)", ("a", "enum", None, (), "", True)),
    ],
)
def test_inputs(line: str, expected: tuple[object, ...]) -> None:
    text = f"# T\n## INPUTS\n{line}\n## STEP 1: A\nx"
    (found,) = tree(text).inputs
    assert (found.name, found.type, found.default, found.options, found.description, found.required) == expected
    assert text[found.span.start : found.span.end] == line.strip()
    assert text[found.name_span.start : found.name_span.end] == "a"


@pytest.mark.parametrize(
    ("line", "description"),
    [("- `a` (string):", ""), ("- `a` (string):  ", ""), ("- `a` ()", ""), ("- `a` (): x", "x")],
)
def test_type_and_description_of_an_input_may_be_missing(line: str, description: str) -> None:
    """S10."""
    text = f"# T\n## INPUTS\n{line}\n## STEP 1: A\nx"
    assert codes(text) == []
    (declared,) = tree(text).inputs
    assert (declared.name, declared.type, declared.description, declared.required) == ("a", "string", description, True)


@pytest.mark.parametrize(
    ("line", "warned"),
    [
        ("plain text", False),
        ("---", False),
        ("**bold** words", False),
        ("* `a` (string): x", True),
        ("+ `a` (string): x", True),
        ("- a (string): x", True),
        ("- `_a` (string): x", True),
        ("- `a` (string:)y):", True),
        ("1. `a` (string): x", True),
        ("2) `a` (string): x", True),
        ("2026 was a year", False),
        ("- `a` (string) : x", True),
    ],
)
def test_malformed_inputs(line: str, warned: bool) -> None:
    text = f"# T\n## INPUTS\n{line}\n## STEP 1: A\nx"
    assert codes(text) == ([("PB102", 3)] if warned else [])
    assert tree(text).inputs == ()


@pytest.mark.parametrize(
    ("lines", "kind", "warned"),
    [
        ("type: json", "json", False),
        ("TYPE:   Html_CSS  ", "html_css", False),
        ("type: {{Kind}}", "{{Kind}}", False),
        ("some words\ntype: pdf", "pdf", True),
        ("type: json\ntype: mermaid", "mermaid", False),
        ("type: json please", None, False),
    ],
)
@pytest.mark.parametrize("heading", ["ARTIFACTS", "OUTPUT", "Artifacts"])
def test_artifacts(heading: str, lines: str, kind: str | None, warned: bool) -> None:
    text = f"# T\n## STEP 1: A\nx\n## {heading}\n{lines}\n"
    artifact = tree(text).artifact
    assert (artifact.type if artifact else None) == kind
    assert [code for code, _ in codes(text)] == (["PB103"] if warned else ["PB305"] if kind == "mermaid" else [])


def test_the_last_system_prompt_counts_and_is_not_scanned() -> None:
    text = "# T\n## SYSTEM\none\n## system  prompt\ntwo {{x}}\n@output( y )\n## STEP 1: A\nx\n"
    assert tree(text).system == "two {{x}}\n@output( y )"
    assert codes(text) == [("PB305", 2)]


def test_placeholders_know_their_places() -> None:
    text = (
        "# T\n## STEP 1: no {{title}}\n{{a}} {{b:string}} {{c:number:5}} {{ d }}\n"
        '@elicit(select, "{{p}}?", "{{q}}", default:"{{r}}")\n@output(o: enum, "{{not}}")\nend {{z}}\n'
    )
    found = tree(text).steps[0].placeholders
    assert [(place.name, place.type, place.default) for place in found] == [
        ("a", None, None),
        ("b", "string", None),
        ("c", "number", "5"),
        ("p", None, None),
        ("q", None, None),
        ("r", None, None),
        ("z", None, None),
    ]
    assert all(text[place.span.start + 2 :].startswith(place.name) for place in found)


def test_placeholders_of_directives_that_do_not_count_are_left_out() -> None:
    found = step('@elicit(input, "{{old}}")\n@elicit(input, "{{new}}")\n@elicit(slider, "{{no}}")\n@tool(a, b, {{t}})')
    assert [place.name for place in found.placeholders] == ["new", "t"]


def test_spans_cover_what_they_are_about() -> None:
    text = (
        '# T\n  \n## STEP 1: A b  \n  @output(name: enum, "x")  \n```if name == "x"```\n### STEP 1a: P\np\n```endif```'
    )
    playbook = tree(text)
    found = playbook.steps[0]
    condition = found.arms[0].condition
    assert found.output is not None and condition is not None
    spans = {
        Span(playbook.title_start, playbook.title_end): "# T",
        found.span: "## STEP 1: A b",
        found.output.span: '@output(name: enum, "x")',
        found.output.name_span: "name",
        condition.span: '```if name == "x"```',
        condition.variable_span: "name",
        found.arms[0].steps[0].span: "### STEP 1a: P",
    }
    for span, expected in spans.items():
        assert text[span.start : span.end] == expected


def test_trees_are_equal_when_they_say_the_same_in_the_same_places() -> None:
    text = '# T\n## INPUTS\n- `m` (enum: a, b)\n## STEP 1: A\n{{m}}\n```if m == "a"```\n### STEP 1a: P\np\n```endif```'
    moved = text.replace("\n## STEP", "\n\n## STEP")
    assert read(text) == read(text)
    assert tree(moved) != tree(text)
    assert without_spans(tree(moved)) == without_spans(tree(text))
    assert without_spans(tree(text.replace("{{m}}", "{{n}}"))) != without_spans(tree(text))


def test_text_before_the_title_is_noted() -> None:
    assert codes("---\na: b\n---\n\n# T\n## STEP 1: A\nx") == [("PB303", 1)]
    assert tree("\n  \n# T #\n\nSome\n\nwords  \n\n## STEP 1: A\nx").title == "T #"
