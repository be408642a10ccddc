"""What playbooks have only in Quire: `@context`, `@model`, `from:`, escapes in questions; each is a note."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.depth import depth
from tests.formats.trees import without_spans
from tests.growth import within

from quire.diagnostics import edits_of
from quire.formats.playbook.check import check
from quire.formats.playbook.extensions import beyond_format
from quire.formats.playbook.lower import lower
from quire.formats.playbook.parse import parse
from quire.formats.playbook.syntax import Playbook, Step
from quire.formats.playbook.write import as_vector, write
from quire.formats.resolver import DocumentResolver
from quire.plan.nodes import Think
from quire.source import Source


def playbook(*lines: str, extended: bool = True) -> Playbook:
    found = parse(Source.of("# T\n\n## STEP 1: A\n\n" + "\n".join(lines)), extended=extended).playbook
    assert found is not None
    return found


def step(*lines: str, extended: bool = True) -> Step:
    return playbook(*lines, extended=extended).steps[0]


def findings(text: str, resolver: DocumentResolver | None = None) -> list[tuple[str, str]]:
    source = Source.of(text)
    return [(one.code.id, source.text[one.span.start : one.span.end]) for one in check(source, resolver)]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("@context(none)", ()),
        ("@context(draft)", ("draft",)),
        ("@context(draft, 2, 3a)", ("draft", "2", "3a")),
        ("  @context( 2 ,2,draft )  ", ("2", "draft")),
        ("@context(none, 2)", ("none", "2")),
    ],
)
def test_a_context_names_results(line: str, names: tuple[str, ...]) -> None:
    read = step("Do.", line)
    assert read.context and read.context.names == names
    assert read.content == "Do."


@pytest.mark.parametrize("line", ["@model(cheap)", "@model(my-reader)", " @model(tier_2) "])
def test_a_model_is_a_name(line: str) -> None:
    read = step("Do.", line)
    assert read.model and read.model.name == line.strip()[7:-1]
    assert read.content == "Do."


@pytest.mark.parametrize(
    "line",
    [
        "@context()",
        "@context(none) please",
        "@context(a b)",
        "@context(a,)",
        "@context(../x)",
        "@Context(none)",
        "@context (none)",
        "@model()",
        "@model(a, b)",
        "@model(openai:gpt-5)",
        "@model({{tier}})",
        "@model(http://127.0.0.1:1)",
        "@MODEL(cheap)",
    ],
)
def test_anything_else_is_text_with_a_warning(line: str) -> None:
    text = f"# T\n\n## STEP 1: A\n\nDo.\n{line}"
    read = parse(Source.of(text)).playbook
    assert read and read.steps[0].content == f"Do.\n{line}"
    assert read.steps[0].context is None and read.steps[0].model is None
    assert findings(text)[0][0] == "PB106"


@pytest.mark.parametrize("line", ["@model", "@context", "@model MyApp.User", "mail @model(x", "@models(x)"])
def test_a_mention_is_text_without_a_warning(line: str) -> None:
    assert findings(f"# T\n\n## STEP 1: A\n\n{line}") == []


def test_the_last_one_counts() -> None:
    text = "# T\n\n## STEP 1: A\n\nDo.\n@model(cheap)\n@model(high)\n@context(none)\n@context(none)"
    assert [code for code, _ in findings(text)].count("PB305") == 2
    read = parse(Source.of(text)).playbook
    assert read and read.steps[0].model and read.steps[0].model.name == "high"


def test_each_use_is_a_note() -> None:
    text = (
        "# T\n\n## STEP 1: A\n\nDo.\n@output(draft)\n\n## STEP 2: B\n\nDo.\n@context(draft)\n@model(cheap)\n"
        '@elicit(input, "One\\nTwo")\n\n## ARTIFACTS\n\ntype: json\nfrom: draft\n'
    )
    assert findings(text) == [
        ("PB307", "@context(draft)"),
        ("PB307", "@model(cheap)"),
        ("PB307", '@elicit(input, "One\\nTwo")'),
        ("PB307", "draft"),
    ]


def test_under_older_rules_they_are_what_they_were() -> None:
    read = step("Do.", "@context(none)", "@model(cheap)", '@elicit(input, "C:\\new")', extended=False)
    assert read.content == "Do.\n@context(none)\n@model(cheap)"
    assert read.elicitation and read.elicitation.prompt == "C:\\new"
    assert playbook("Do.", "## ARTIFACTS", "from: 1", extended=False).artifact is None


STEPS = (
    "# T\n\n## STEP 1: A\n\nDo.\n@output(draft)\n\n## STEP 2: B\n\n"
    '@elicit(input, "Q?")\n\n## STEP 3: C\n\nDo.\n{}\n\n```if draft == "x"```\n\n### STEP 3a: P\n\nDo.\n{}\n\n'
    "### STEP 3b: Q\n\nDo.\n{}\n\n```else```\n\n### STEP 3c: R\n\nDo.\n{}\n\n```endif```\n\n## STEP 4: D\n\nDo.\n{}\n"
)


@pytest.mark.parametrize(
    ("at", "line", "unknown"),
    [
        (0, "@context(draft, 1, 2, __elicit_step_2)", []),
        (0, "@context(darft)", ["darft"]),
        (0, "@context(3)", ["3"]),
        (0, "@context(3a, 4)", ["3a", "4"]),
        (1, "@context(3)", []),
        (1, "@context(3b)", ["3b"]),
        (2, "@context(3a)", []),
        (3, "@context(3a)", ["3a"]),
        (4, "@context(3, 3a, 3b, 3c)", []),
        (4, "@context(none, 1)", ["none"]),
    ],
)
def test_a_context_can_name_only_results_before_it(at: int, line: str, unknown: list[str]) -> None:
    lines = [""] * 5
    lines[at] = line
    found = findings(STEPS.format(*lines))
    assert [place for code, place in found if code == "PB121"] == unknown


def test_an_unknown_name_gets_the_nearest_one() -> None:
    source = Source.of(STEPS.format("@context(drft)", "", "", "", "") + "\n## ARTIFACTS\n\nfrom: drfat\n")
    found = {one.code.id: one for one in check(source)}
    assert found["PB121"].help == 'did you mean "draft"?'
    assert found["PB120"].help == 'did you mean "draft"?'
    assert [edit.new for code in ("PB121", "PB120") for edit in edits_of(source, found[code])] == ["draft", "draft"]


@pytest.mark.parametrize(
    ("section", "type", "source"),
    [
        ("type: json\nfrom: draft", "json", "draft"),
        ("From:   2a  \ntype: markdown", "markdown", "2a"),
        ("from: 1", "", "1"),
        ("from: one\nfrom: two", "", "one"),
        ("type: json\nfrom: the last step", "json", ""),
        ("```\nfrom: draft\n```\ntype: json", "json", ""),
        ("We copy from: nowhere\ntype: json", "json", ""),
    ],
)
def test_an_artifact_may_say_where_it_comes_from(section: str, type: str, source: str) -> None:
    read = playbook("Do.", "## ARTIFACTS", "", section).artifact
    assert read and (read.type, read.source) == (type, source)


def test_two_sections_are_read_as_one() -> None:
    read = playbook("Do.", "## ARTIFACTS", "from: 1", "## OUTPUT", "type: json").artifact
    assert read and (read.type, read.source) == ("json", "1")


@pytest.mark.parametrize("section", ["from: sumary", "type: json\nfrom: {{x}}", "from: 7"])
def test_a_source_that_is_no_result_is_a_warning(section: str) -> None:
    text = f"# T\n\n## STEP 1: A\n\nDo.\n@output(summary)\n\n## ARTIFACTS\n\n{section}"
    assert "PB120" in [code for code, _ in findings(text)]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"One\nTwo", "One\nTwo"),
        (r"C:\\new", r"C:\new"),
        (r"C:\temp\x", r"C:\temp\x"),
        (r"\\\\n", "\\\\\\n"),
        (r"a\\b", r"a\\b"),
        (r"say \"hi\"\nnow", 'say "hi"\nnow'),
        ("C:\\", "C:\\"),
    ],
)
def test_escapes_in_a_question(written: str, meant: str) -> None:
    read = step(f'@elicit(select, "{written}", "{written} 1", "2", default:"2")')
    assert read.elicitation and read.elicitation.prompt == meant
    assert read.elicitation.options == (f"{meant} 1", "2")


def test_a_default_is_compared_without_escapes() -> None:
    text = '# T\n\n## STEP 1: A\n\n@elicit(select, "Q", "a\\nb", "c", default:"a\\nb")'
    assert findings(text) == [("PB307", '@elicit(select, "Q", "a\\nb", "c", default:"a\\nb")')]


@settings(max_examples=depth(100, 500), deadline=None)
@given(st.lists(st.text(alphabet='\\n" x,'), min_size=1, max_size=3))
@example(["\\\\n"])
@example(["\\", 'x\\"'])
def test_every_question_that_is_read_is_written_the_same(texts: list[str]) -> None:
    line = "@elicit(select, " + ", ".join(f'"{text}"' for text in texts) + ")"
    read = playbook(line)
    again = parse(Source.of(write(read))).playbook
    assert again is not None and without_spans(again) == without_spans(read)


def test_the_tree_is_written_lowered_and_shown() -> None:
    read = playbook(
        "Do.", "@output(x)", "## STEP 2: B", "Do.", "@context(x, 1)", "@model(cheap)", "## OUTPUT", "from: x"
    )
    again = parse(Source.of(write(read))).playbook
    assert again is not None and without_spans(again) == without_spans(read)
    plan = lower(read)
    work = plan.body.steps[1].work
    assert isinstance(work, Think) and (work.context, work.model) == (("x", "1"), "cheap")
    assert plan.artifact and plan.artifact.source == "x"
    shown = as_vector(parse(Source.of(write(read))))["definition"]
    assert isinstance(shown, dict) and isinstance(shown["steps"], list)
    assert shown["artifact_from"] == "x" and shown["artifact_type"] == ""
    second = shown["steps"][1]
    assert isinstance(second, dict) and (second["context"], second["model"]) == (["x", "1"], "cheap")


def test_a_step_that_asks_no_model_needs_neither() -> None:
    for body in (
        '@elicit(input, "Q")',
        '@tool(quire, file__read, {"path": "x"})',
        '```if x == "y"```\nDo.\n```endif```',
    ):
        text = f"# T\n\n## INPUTS\n\n- `x` (string): x\n\n## STEP 1: {{{{x}}}}\n\n@model(cheap)\n@context(none)\n{body}"
        assert [code for code, _ in findings(text)].count("PB234") == 2, body


class Names(DocumentResolver):
    def models(self) -> Collection[str] | None:
        return {"cheap", "reader"}


def test_an_unknown_model_is_a_lint_with_the_nearest_name() -> None:
    text = "# T\n\n## STEP 1: A\n\nDo.\n@model(raeder)"
    found = [one for one in check(Source.of(text), Names()) if one.code.id == "PB235"]
    assert [one.help for one in found] == ['did you mean "reader"?']
    assert "PB235" not in [code for code, _ in findings(text.replace("raeder", "reader"), Names())]
    assert "PB235" not in [code for code, _ in findings(text)]


def test_ten_thousand_names_take_no_time() -> None:
    body = "".join(f"## STEP 1: x\nx\n@context(b{at})\n@output(a{at})\n" for at in range(4_000))

    with within(5):
        check(Source.of("# T\n\n" + body + "## ARTIFACTS\nfrom: q"))


def test_what_the_format_leaves_open_is_noted_on_request() -> None:
    text = (
        "# T\n\n## INPUTS\n\n- `x` (string): X\n\n## STEP 1: A\n\n@prompt(library:x)\n"
        '@elicit(input, "Q", default:"a")\n'
        "{{x}} {{y:string:z}}\n\n## STEP 2: B\n\n@prompt(file:a.md)\n"
    )
    read = parse(Source.of(text)).playbook
    assert read is not None
    noted = [(one.code.id, text[one.span.start : one.span.end]) for one in beyond_format(read)]
    assert noted == [
        ("PB307", '@elicit(input, "Q", default:"a")'),
        ("PB307", "{{y:string:z}}"),
        ("PB307", "@prompt(file:a.md)"),
    ]
    assert not any(code == "PB307" for code, _ in findings(text))
