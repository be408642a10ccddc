"""Shares, missing decisions and gates of coverage, and its tracefile."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.documents import draw_scenario
from tests.documents.draw import Draw
from tests.testing.coverage.measured import Case, decisions, taken
from tests.testing.coverage.tracefile import read_tracefile
from tests.testing.scripted import Scripted
from tests.walks.test_pure_walk import INPUTS, REPLIES, TAGLINE

from quire.diagnostics import Severity
from quire.errors import CannotStart
from quire.formats import belongs_to_test
from quire.formats.test.expected import Check, Equal, Expect
from quire.library.document import load, read
from quire.source import NOWHERE, Source, Span
from quire.testing.coverage.decisions import decisions_of
from quire.testing.coverage.report import (
    CoverageCount,
    DocumentCoverage,
    Share,
    gate_problems,
    lcov,
    merged,
    prompts_looked_at,
    read_gates,
    uncovered_findings,
)
from quire.testing.observation import Observation, SeenPrompt

YES, NO = ((INPUTS, Scripted(REPLIES, people={"2": answer})) for answer in ("yes", "no"))
EXAMPLES = Path(__file__).parents[3] / "examples"


def measured(*cases: Case, looks: tuple[str, ...] = (), text: str = TAGLINE) -> DocumentCoverage:
    count = CoverageCount(Source.of(text, "tagline.playbook.md"), decisions(text))
    for case in cases:
        count.add_run(taken(text, case))
    count.add_looks(looks)
    return count.result()


def test_shares_are_those_of_all_runs_together() -> None:
    one, both = measured(YES), measured(YES, NO, looks=("1/model", "3/case[1]/1/model"))
    assert (one.share("arms"), one.share("steps")) == (Share(1, 2), Share(4, 5))
    assert (both.share("arms"), both.share("prompts"), both.share("fans")) == (Share(2, 2), Share(2, 3), Share(0, 0))
    assert [(both.line(missing), missing.label) for missing in both.missing()] == [
        (28, "step 3b: its prompt is looked at")
    ]
    assert both.counts["steps:1"] == 2


@pytest.mark.parametrize(
    ("taken", "total", "percent", "gate", "reached"),
    [(0, 0, 100, 100, True), (999, 1000, 99, 100, False), (1, 3, 33, 33.3, True), (1, 3, 33, 33.4, False)],
)
def test_only_all_of_them_are_100_percent(taken: int, total: int, percent: int, gate: float, reached: bool) -> None:
    share = Share(taken, total)
    assert (share.percent, share.reaches(gate)) == (percent, reached)


def test_parts_of_several_processes_add_up() -> None:
    (whole,) = merged([measured(YES), measured(NO)])
    assert whole == measured(YES, NO)


@pytest.mark.parametrize(
    ("texts", "under", "gates"),
    [
        (["arms=100", "prompts = 50"], None, {"arms": 100.0, "prompts": 50.0}),
        (["answers=0"], 80, {"all": 80.0, "answers": 0.0}),
        ([], None, {}),
    ],
)
def test_gates_of_the_command_line(texts: list[str], under: float | None, gates: dict[str, float]) -> None:
    assert read_gates(texts, under) == gates


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arm=100", "'arm' is not a kind of coverage: did you mean arms?"),
        ("arms=much", "'much' is not a percentage: write a number from 0 to 100, such as arms=100"),
        ("arms=101", "'101' is not a percentage"),
        ("arms=nan", "'nan' is not a percentage"),
    ],
)
def test_a_gate_that_cannot_be_meant(text: str, message: str) -> None:
    with pytest.raises(CannotStart) as raised:
        read_gates([text])
    assert str(raised.value).startswith(message)


def test_a_gate_that_is_not_reached_names_the_places() -> None:
    span = Span(3, 9)
    (problem,) = gate_problems(measured(YES), {"arms": 100, "steps": 80, "fans": 100}, span)
    found = problem.finding
    assert (found.code.id, found.span) == ("TS140", span)
    assert found.message == "1 of 2 arms are covered, 50 %, and 100 % is asked for"
    assert found.help == "not covered: tagline.playbook.md:26 step 3: else"
    (everything,) = gate_problems(measured(), {"all": 1}, NOWHERE)
    assert everything.finding.message == "0 of 14 decisions are covered, 0 %, and 1 % is asked for"
    assert everything.finding.help.endswith("; and 9 more")


def test_missing_arms_are_findings_about_the_document() -> None:
    (found,) = uncovered_findings(measured(YES))
    assert (found.severity, found.message) == (Severity.WARNING, "not covered by any case: step 3: else")
    assert TAGLINE[found.span.start : found.span.end] == "```else```"


def test_prompts_that_expectations_look_at() -> None:
    prompts = [
        SeenPrompt("1/for_each[0]/model", "1.do", "", ()),
        SeenPrompt("2/turn[2]/model", "2", "", ()),
        SeenPrompt("3/call/1/model", "3 › 1", "", ()),
    ]
    seen = Observation("completed", 0, prompts=prompts)

    def looked(*names: str) -> frozenset[str]:
        return prompts_looked_at(Expect(tuple(Check("prompts", Equal("x"), name) for name in names)), seen)

    assert looked("1.do") == {"1/for_each[0]/model"}
    assert looked("") == {one.path for one in prompts}
    assert prompts_looked_at(Expect((Check("output", Equal("x")),)), seen) == frozenset()
    text = (
        "pipeline: p\nsteps:\n- for_each: {items: [1], on_error: abort, do: {agent: {prompt: a}},"
        " collect: {transform: {value: pipe}}}\n- agent: {prompt: b}\n- call: {pipeline: q, pass: []}\n"
    )
    assert measured(looks=tuple(looked("")), text=text).share("prompts") == Share(2, 2)


def test_the_tracefile_of_a_playbook() -> None:
    assert lcov([measured(YES, YES, looks=("1/model",))]) == (
        "TN:quire\n"
        "SF:tagline.playbook.md\n"
        "BRDA:8,0,0,1\n"
        "BRDA:16,0,0,2\n"
        "BRDA:16,0,1,0\n"
        "BRDA:20,0,0,2\n"
        "BRDA:20,1,0,2\n"
        "BRDA:20,1,1,0\n"
        "BRDA:22,0,0,0\n"
        "BRDA:26,0,0,0\n"
        "BRDA:28,0,0,-\n"
        "BRF:9\nBRH:4\n"
        "DA:8,2\nDA:14,2\nDA:16,2\nDA:18,2\nDA:20,2\nDA:22,2\nDA:26,0\nDA:28,0\n"
        "LF:8\nLH:6\n"
        "end_of_record\n"
    )


@pytest.mark.parametrize("format", ["playbook", "pipeline", "directive", "dialect"])
@pytest.mark.parametrize("seed", range(10))
def test_tracefiles_are_well_formed(format: str, seed: int) -> None:
    scenario = draw_scenario(Draw.seeded(f"lcov {seed}"), format)
    source = Source.of(scenario.files[scenario.document], scenario.document)
    plan = read(source).plan
    if plan is None:
        pytest.skip("a registered file of several pipelines")
    count = CoverageCount(source, decisions_of(plan, source))
    empty = count.result()
    count.add_run(one.id for number, one in enumerate(empty.decisions) if number % 3)
    (record,) = read_tracefile(lcov([count.result()]))
    assert record.path == scenario.document
    assert set(record.lines) == {empty.line(one) for one in empty.decisions}
    assert len(record.branches) == sum(1 for one in empty.decisions if one.kind != "steps")


def test_a_name_cannot_begin_a_record() -> None:
    source = Source.of(TAGLINE, "a\nSF:b.md")
    (record,) = read_tracefile(lcov([DocumentCoverage(source, decisions(TAGLINE), {})]))
    assert record.path == "a SF:b.md"


PIPELINES = [path for path in EXAMPLES.rglob("pipelines/*.yaml") if not belongs_to_test(path.name)]
DOCUMENTS = [*EXAMPLES.rglob("*.playbook.md"), *PIPELINES]


@pytest.mark.parametrize("path", sorted(path for path in DOCUMENTS if not path.name.endswith(".test.yaml")))
def test_every_decision_of_the_examples_has_a_place_and_an_id_of_its_own(path: Path) -> None:
    document = load(path)
    if document.plan is None:
        pytest.skip("a registered file of several pipelines")
    found = decisions_of(document.plan, document.source)
    assert len({one.id for one in found}) == len(found)
    assert [one.label for one in found if one.span == NOWHERE] == []
