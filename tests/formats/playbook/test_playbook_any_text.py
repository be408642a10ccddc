"""Whatever the text: reading never raises, never loses a line of a step, and never takes more than linear time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.depth import depth
from tests.formats.trees import without_spans
from tests.growth import assert_linear, within

from quire.diagnostics import Severity
from quire.formats import check
from quire.formats.playbook.parse import parse
from quire.formats.playbook.syntax import Step
from quire.formats.playbook.write import as_vector, write
from quire.source import Source

DIRECTIVES = [
    "@output(x)",
    '@output(y: enum, "a", "b")',
    '@elicit(select, "Q {{m}}", "a", "b")',
    '@elicit(input, "Q")',
    "@prompt(library:p)",
    '@tool("a b", c, {"k": "{{m}}"})',
    "@tool(one)",
    "@output( z )",
    '@elicit(slider, "x")',
    "@context(x, 1)",
    "@context(none)",
    "@model(cheap)",
    '@elicit(input, "two\\nlines")',
]
MARKERS = ['```if m == "a"```', '```elif x != "b"```', "```else```", "```endif```", '```if m > "1"```', "``` else ```"]
HEADINGS = ["### STEP 1a: P", "### STEP 1b: Q", "# Heading", "### Part", "## STEP 2: B", "## STEP 1: C"]
BLANKS = ["", "", "   "]
FENCES = ["```", "```py", "~~~", "````"]
WHOLE_FENCES = ["```\n## STEP 3: no\n@output(no)\n```", "~~~md\n```endif```\n~~~"]
SECTIONS = [
    "## SYSTEM",
    "## INPUTS",
    "- `m` (enum: a, b): M",
    "* broken",
    "## ARTIFACTS",
    "type: json",
    "from: x",
    "## NOTES",
    "# T",
]

lines = st.sampled_from([*DIRECTIVES, *MARKERS, *HEADINGS, *BLANKS, *WHOLE_FENCES, "plain {{m}} text", "  indented"])
bodies = st.lists(lines, max_size=25).map("\n".join)
anything = st.lists(st.one_of(lines, st.sampled_from([*FENCES, *SECTIONS]), st.text(max_size=30)), max_size=30).map(
    "\n".join
)


def steps_of(steps: tuple[Step, ...]) -> Iterator[Step]:
    for step in steps:
        yield step
        for arm in step.arms:
            yield from steps_of(arm.steps)


@settings(max_examples=depth(40, 200), deadline=None)
@given(st.one_of(st.text(), anything, st.text(alphabet='#@`~ \n{}()",:STEP1output')))
def test_nothing_raises(text: str) -> None:
    source = Source.of(text)
    reading = parse(source)
    assert (reading.playbook is None) == bool(reading.of(Severity.ERROR))
    as_vector(reading)
    for found in check(source):
        assert 0 <= found.span.start <= found.span.end <= len(source.text)
        assert source.position(found.span.end).line >= 1


@settings(max_examples=depth(40, 200), deadline=None)
@given(st.lists(st.one_of(lines, st.sampled_from(FENCES)), max_size=30))
def test_no_line_of_text_is_lost(body: list[str]) -> None:
    numbered = [piece for at, line in enumerate(body) for piece in (line, f"text number {at} {{{{m}}}}")]
    playbook = parse(Source.of("# T\n## STEP 1: A\n" + "\n".join(numbered))).playbook
    assert playbook is not None
    kept = Counter(line for step in steps_of(playbook.steps) for line in step.content.split("\n"))
    assert all(kept[f"text number {at} {{{{m}}}}"] == 1 for at in range(len(body)))
    places = [place for step in steps_of(playbook.steps) for place in step.placeholders if place.name == "m"]
    assert len({place.span for place in places}) == len(places) >= len(body)


@settings(max_examples=depth(40, 200), deadline=None)
@given(
    bodies,
    st.sampled_from(["", "Some words.\n\nMore."]),
    st.sampled_from(["", "## SYSTEM\nBe brief.\n\n- always\n"]),
)
def test_what_is_written_reads_the_same(body: str, description: str, system: str) -> None:
    inputs = "## INPUTS\n- `m` (enum: a, b): M\n- `n` (number: 5)\n"
    text = f"# T\n{description}\n{system}{inputs}## STEP 1: A\n{body}\n## OUTPUT\ntype: json"
    playbook = parse(Source.of(text)).playbook
    assert playbook is not None
    again = parse(Source.of(write(playbook))).playbook
    assert again is not None
    assert without_spans(again) == without_spans(playbook)


HOSTILE: dict[str, Callable[[int], str]] = {
    "elicit and spaces": lambda n: "@elicit(input," + " " * n + "x",
    "elicit and spaces, closed": lambda n: "@elicit(input," + " " * n + "x)",
    "elicit and quotes": lambda n: "@elicit(input," + '"\\' * (n // 2) + ")",
    "backticks": lambda n: "`" * n,
    "backticks and a word": lambda n: "`" * n + "if x",
    "tildes": lambda n: "~" * n + "x",
    "braces": lambda n: "{" * n,
    "open placeholders": lambda n: "{{a:b:" * (n // 6),
    "a long placeholder": lambda n: "{{" + "a" * n,
    "tool and quotes": lambda n: "@tool(" + '"' * n + ")",
    "tool and names": lambda n: "@tool(" + "a" * n,
    "output options": lambda n: "@output(x" + ', "a"' * (n // 5) + ",)",
    "output spaces": lambda n: "@output(x" + " " * n + ")",
    "if and spaces": lambda n: "```if" + " " * n + "```",
    "if and a value": lambda n: '```if x == "' + "a" * n,
    "white lines": lambda n: (" " * 99 + "\n") * (n // 100),
    "one white line": lambda n: "a" + " " * n + "b",
    "hashes": lambda n: "#" * n,
    "ats": lambda n: "@" * n,
    "at words": lambda n: "@" + "output" * (n // 6) + "(",
    "unclosed fences": lambda n: "```a\n" * (n // 5),
    "falling fences": lambda n: "".join("`" * (k + 3) + "a\n" for k in range(int((2 * n) ** 0.5), 0, -1)),
    "nested ifs": lambda n: '```if a == "b"```\n' * (n // 18),
    "arms": lambda n: '```if a == "b"```\n' + '```elif a == "b"```\nx\n' * (n // 22),
    "undeclared names": lambda n: "".join(f'```if name{k} == "b"```\n```endif```\n' for k in range(n // 38)),
    "steps": lambda n: "## STEP 1: x\n" * (n // 13),
    "steps with outputs": lambda n: "".join(f"## STEP 1: x\n{{{{b{k}}}}}\n@output(a{k})\n" for k in range(n // 42)),
    "sections": lambda n: "## INPUTS\n```\n```\n" * (n // 18),
    "inputs": lambda n: "## INPUTS\n" + "".join(f"- `a{k}` (enum: a, b)\n" for k in range(n // 23)),
    "input and backticks": lambda n: "## INPUTS\n- `a` (" + "(" * n,
    "artifact": lambda n: "## OUTPUT\ntype:" + " " * n + "a b",
    "artifact source": lambda n: "## OUTPUT\nfrom:" + " " * n + "a b",
    "context": lambda n: "@context(" + "a," * (n // 2) + ")",
    "context, closed": lambda n: "@context(a" + ", b" * (n // 3) + ")",
    "context and spaces": lambda n: "@context(a" + " " * n + "b)",
    "model": lambda n: "@model(" + "a" * n,
    "line breaks": lambda n: '@elicit(input, "' + "\\n" * (n // 2) + '")',
    "backslashes": lambda n: '@elicit(input, "' + "\\" * n + 'n")',
    "carriage returns": lambda n: "\r" * n,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_time_is_linear(name: str) -> None:
    """Twice the text may take twice the time, and not four times; short times are all noise."""
    make = HOSTILE[name]

    def read(size: int) -> Callable[[], object]:
        source = Source.of("# T\n\n## STEP 1: A\n\n" + make(size))
        assert source.size <= 200_000
        return lambda: parse(source)

    assert_linear(read, 90_000, quick=0.01)


def test_a_whole_check_of_a_hostile_document_is_quick() -> None:
    part = depth(2, 1)
    for make in HOSTILE.values():
        with within(5 / part**2):
            check(Source.of("# T\n\n## STEP 1: A\n\n" + make(180_000 // part)))
