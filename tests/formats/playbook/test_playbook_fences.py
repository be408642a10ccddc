"""Code fences: what is inside is content, wherever it stands, and no fence swallows the rest of a document."""

from __future__ import annotations

import pytest

from quire.diagnostics import Severity
from quire.formats import markdown
from quire.formats.playbook.parse import parse
from quire.source import Source


@pytest.mark.parametrize(
    ("lines", "pairs", "unclosed"),
    [
        (["```", "```"], ((0, 1),), ()),
        (["```md", "```"], ((0, 1),), ()),
        (["```", "```md", "```"], ((0, 2),), ()),
        (["````", "```", "`````"], ((0, 2),), ()),
        (["```", "~~~", "```", "~~~"], ((0, 2),), (3,)),
        (["~~~ a`b", "~~~~  "], ((0, 1),), ()),
        (["   ```", "  ```"], ((0, 1),), ()),
        (["    ```", "```"], (), (1,)),
        (["```", "    ```"], (), (0,)),
        (["```a`b", "```"], (), (1,)),
        (["``", "```", "```"], ((1, 2),), ()),
        (["````", "```"], (), (0, 1)),
        (["````a", "```", "```", "~~~"], ((1, 2),), (0, 3)),
    ],
)
def test_pairs(lines: list[str], pairs: tuple[tuple[int, int], ...], unclosed: tuple[int, ...]) -> None:
    assert markdown.find_fences(lines) == markdown.Fences(pairs, unclosed)


FENCE = '```markdown\n## STEP 9: Not\n@output(no)\n```if a == "b"```\n### STEP 1x: no\n```'


@pytest.mark.parametrize("fence", [FENCE, FENCE.replace("```markdown", "~~~").rsplit("```", 1)[0] + "~~~"])
def test_a_fence_in_a_step_is_content_and_noted_once(fence: str) -> None:
    reading = parse(Source.of(f"# T\n## STEP 1: A\nbefore\n{fence}\n@output(yes)\n## STEP 2: B\nb"))
    assert reading.playbook is not None
    first, second = reading.playbook.steps
    assert first.content == f"before\n{fence}"
    assert first.output is not None and first.output.name == "yes"
    assert second.content == "b"
    assert [(found.code.id, found.severity) for found in reading.diagnostics] == [("PB301", Severity.NOTE)]
    assert "## STEP 9: Not (and 3 more like it)" in reading.diagnostics[0].message


@pytest.mark.parametrize("fence", ["```\nplain\n```", "```py\n# comment\n@decorator\n```", "~~~\n@team\n~~~"])
def test_an_ordinary_fence_is_not_worth_a_note(fence: str) -> None:
    reading = parse(Source.of(f"# T\n## STEP 1: A\n{fence}\n"))
    assert reading.playbook is not None and reading.playbook.steps[0].content == fence
    assert reading.diagnostics == ()


@pytest.mark.parametrize(
    ("before", "lines"),
    [
        ('```if m == "a"\nx\n```', [3]),
        ('  ```if m == "a"\n```\nx\n```endif\n```', [3, 6]),
        ("~~~else\nx\n~~~", [3]),
        ("```elm\nx\n```", []),
        ("```else tail\nx\n```", []),
        ('```\nif m == "a"\n```', []),
    ],
)
def test_a_fence_that_begins_like_a_marker_is_warned_of(before: str, lines: list[int]) -> None:
    reading = parse(Source.of(f"# T\n## STEP 1: A\n{before}\n"))
    assert [reading.source.position(found.span.start).line for found in reading.of(Severity.WARNING)] == lines


def test_a_fence_outside_of_steps_is_no_marker() -> None:
    assert parse(Source.of("# T\n```if a\n```\n## STEP 1: A\nx")).diagnostics == ()


def test_fences_in_an_arm() -> None:
    inside = "```\n```endif```\n### STEP 1b: no\n```"
    text = (
        f'# T\n## INPUTS\n- `m` (string)\n## STEP 1: A\n```if m == "a"```\n### STEP 1a: P\n{inside}\n```endif```\nend'
    )
    reading = parse(Source.of(text))
    assert reading.playbook is not None
    found = reading.playbook.steps[0]
    assert found.arms[0].steps[0].content == inside
    assert found.content == "end"


@pytest.mark.parametrize("section", ["", "## SYSTEM\n", "## NOTES\n", "## ARTIFACTS\n"])
def test_a_heading_in_a_fence_cuts_no_section(section: str) -> None:
    text = f"# T\n{section}```\n## STEP 7: no\ntype: json\n```\nend\n## STEP 1: A\nx"
    reading = parse(Source.of(text))
    assert reading.playbook is not None
    assert [step.number for step in reading.playbook.steps] == [1]
    assert reading.playbook.artifact is None
    kept = "```\n## STEP 7: no\ntype: json\n```\nend"
    assert reading.playbook.description == ("" if section else kept)
    assert reading.playbook.system == (kept if section == "## SYSTEM\n" else "")


def test_inputs_in_a_fence_are_examples() -> None:
    text = "# T\n## INPUTS\n- `a` (string)\n```\n- `b` (string)\n* c\n```\n- `d` (string)\n## STEP 1: A\nx"
    reading = parse(Source.of(text))
    assert reading.playbook is not None
    assert [declared.name for declared in reading.playbook.inputs] == ["a", "d"]
    assert reading.of(Severity.WARNING) == ()


@pytest.mark.parametrize("opening", ["```", "```python", "~~~~", "````"])
def test_an_unclosed_fence_is_text(opening: str) -> None:
    reading = parse(Source.of(f"# T\n## STEP 1: A\n{opening}\ncode\n\n## STEP 2: B\n@output(o)\n"))
    assert reading.playbook is not None
    first, second = reading.playbook.steps
    assert first.content == f"{opening}\ncode"
    assert second.output is not None
    assert [found.code.id for found in reading.diagnostics] == ["PB302"]


@pytest.mark.parametrize("line", ['```if m == "a"', "```else", "```endif"])
def test_a_marker_without_its_end_is_a_near_miss(line: str) -> None:
    reading = parse(Source.of(f"# T\n## STEP 1: A\n{line}\ntext\n"))
    assert [found.code.id for found in reading.of(Severity.WARNING)] == ["PB107"]


def test_a_playbook_that_was_pasted_with_its_fence_is_read() -> None:
    text = "Here it is:\n\n```markdown\n# T\n\n## STEP 1: A\n\n```json\n## x\n```\n\n## STEP 2: B\nb\n```\n"
    reading = parse(Source.of(text))
    assert reading.playbook is not None
    assert reading.playbook.title == "T"
    assert [step.content for step in reading.playbook.steps] == ["```json\n## x\n```", "b\n```"]
    assert [found.code.id for found in reading.diagnostics] == ["PB304", "PB301", "PB302"]


def test_an_example_with_a_heading_before_the_title_opens_no_fence() -> None:
    text = "```\n# Example\n```\n\n## STEP 1: A\n```\n## x\n```\n## STEP 2: B\nb\n"
    reading = parse(Source.of(text))
    assert reading.playbook is not None
    assert reading.playbook.title == "Example"
    assert [step.number for step in reading.playbook.steps] == [1, 2]
