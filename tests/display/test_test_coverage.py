"""Coverage of documents as people and programs see it."""

from __future__ import annotations

from tests.testing.coverage.measured import decisions
from tests.testing.coverage.test_report import NO, YES, measured
from tests.walks.test_pure_walk import TAGLINE

from quire.display.test_measures import coverage_data, coverage_measure, coverage_page
from quire.source import Source
from quire.testing.coverage.report import DocumentCoverage


def test_a_row_for_each_document_then_the_missing_decisions() -> None:
    assert coverage_page([measured(YES, looks=("1/model", "3/case[1]/1/model"))]) == [
        "coverage             all  steps  arms  answers  fans  errors  conditions  hooks  grants  prompts",
        "tagline.playbook.md  64%    80%   50%      50%     -       -         50%      -       -      66%",
        "",
        "not covered in tagline.playbook.md:",
        "  tagline.playbook.md:16  answers     step 2 answered no",
        '  tagline.playbook.md:20  conditions  step 3: `__elicit_step_2 == "yes"` false',
        "  tagline.playbook.md:26  arms        step 3: else",
        "  tagline.playbook.md:28  steps       step 3b: Again",
        "  tagline.playbook.md:28  prompts     step 3b: its prompt is looked at",
    ]
    assert coverage_page([]) == []


def test_all_of_it() -> None:
    looks = ("1/model", "3/case[1]/1/model", "3/case[2]/1/model")
    (_, row) = coverage_page([measured(YES, NO, looks=looks)])
    assert row.split()[1:] == ["100%", "100%", "100%", "100%", "-", "-", "100%", "-", "-", "100%"]


def test_as_json() -> None:
    data = coverage_data(measured(YES, NO))
    assert data["document"] == "tagline.playbook.md"
    assert data["kinds"]["arms"] == {"taken": 2, "total": 2, "percent": 100}  # type: ignore[index, call-overload]
    assert data["missing"][0] == {  # type: ignore[index]
        "kind": "prompts",
        "id": "prompts:1",
        "label": "step 1: its prompt is looked at",
        "line": 8,
    }


def test_annotations_beside_arms() -> None:
    assert coverage_measure([measured(YES)]).text("github") == (
        "::warning file=tagline.playbook.md,line=26,col=1,endColumn=11,title=TS140 coverage-below::"
        "not covered by any case: step 3: else\n"
    )


def test_a_document_cannot_write_to_the_terminal() -> None:
    text = TAGLINE.replace("Draft", "Dra\x1b[2Jft\u202e")
    source = Source.of(text, "t\x1b[31m.md")
    page = "\n".join(coverage_page([DocumentCoverage(source, decisions(text), {})]))
    assert "\x1b" not in page and "\u202e" not in page


def test_a_long_list_ends_early() -> None:
    text = TAGLINE + "".join(f"\n## STEP {number}: S\n\nSay {number}.\n" for number in range(4, 60))
    lines = coverage_page([DocumentCoverage(Source.of(text, "t.md"), decisions(text), {})])
    assert lines[-1] == "  and 66 more decisions: --format json lists all of them"
