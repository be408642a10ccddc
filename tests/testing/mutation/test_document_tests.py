"""Test files of every format against the mutants of their documents: the score, the survivors, and what kills them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.testing.bench import DOCUMENTS, run
from tests.testing.cassettes.test_player import TEST as CASSETTE
from tests.testing.cassettes.test_player import known, record, taped
from tests.testing.test_prepared_start import BOARD, FILES, TIDY

from quire.errors import CannotStart
from quire.formats.test.parse import parse
from quire.source import Source, read_source
from quire.testing.mutation.mutation_run import MutationReport, mutate_opened, opened

__all__ = ["known"]

TAGLINE = """
defaults:
  inputs: {product: a bakery, tone: dry}
  model: {"1": 'Three of them. {"best": "Bread."}'}
cases:
  - name: a yes
    answers: {"2": "yes"}
    model: {"3a": "Bread, then."}
    expect: {output: "Bread, then."}
  - name: a no
    answers: {"2": "no"}
    model: {"3b": "Flour power."}
    expect: {output: "Flour power."}
  - name: not yet
    skip: it is not finished
    expect: {output: never}
"""


def mutated(folder: Path, name: str, test: str) -> MutationReport:
    run(folder, name, test)
    return mutate_opened(opened(parse(read_source(folder / f"{name}.test.yaml"))))


@pytest.mark.parametrize(
    ("name", "test", "survivors"),
    [
        ("tagline", TAGLINE, {"drop_system", "drop_reference:1:product", "drop_reference:2:question.best.1"}),
        ("board", BOARD, {"change_on_error:1:survives", "drop_reference:1.do:item"}),
        ("files", FILES, set()),
        ("tidy", TIDY, {"drop_limit:thread:turns"}),
    ],
)
def test_survivors(name: str, test: str, survivors: set[str], tmp_path: Path) -> None:
    report = mutated(tmp_path, name, test)
    assert survivors <= {one.id for one in report.survivors}
    assert (report.left_out, report.total > 2, report.score > 0.2) == ((), True, True)


def test_a_wider_permission_is_noticed_by_a_refusal_alone(tmp_path: Path) -> None:
    blind = TIDY.replace("refused: [rye.execute.tool.rye.bash], ", "")
    blind = blind.replace("cases:", "defaults: {tools: {rye/bash: {returns: done}}}\ncases:")
    widened = {one.operator for one in mutated(tmp_path / "blind", "tidy", blind).survivors}
    noticed = {id.partition(":")[0] for id in mutated(tmp_path / "seeing", "tidy", TIDY).killed}
    assert "widen_permission" in widened & noticed


def test_the_offered_expectations_kill_the_survivors(tmp_path: Path) -> None:
    """Every expectation that is offered for a case is pasted into it: then none of these mutants survives."""
    first = mutated(tmp_path / "before", "tagline", TAGLINE)
    offered = [one for one in first.survivors if one.case]
    assert len(offered) >= 5
    test = TAGLINE
    for name, status in (("a yes", "Bread, then."), ("a no", "Flour power.")):
        by_subject: dict[str, list[str]] = {}
        for one in offered:
            if one.case == name:
                subject, _, expected = one.expectation.partition(": ")
                by_subject.setdefault(subject, []).append(expected)
        # One case for each expectation, since two about the same step cannot stand in one mapping.
        rows = [
            f"{subject}: {expected}" for subject, listed in by_subject.items() for expected in dict.fromkeys(listed)
        ]
        answer, step = ("yes", "3a") if name == "a yes" else ("no", "3b")
        for number, row in enumerate(rows):
            test += (
                f'  - name: {name} {number}\n    answers: {{"2": "{answer}"}}\n    model: {{"{step}": "{status}"}}\n'
                f"    expect: {{{row}}}\n"
            )
    second = mutated(tmp_path / "after", "tagline", test)
    left = {one.id for one in second.survivors}
    assert second.left_out == ()
    assert left & {one.id for one in offered} == set()


def test_a_survivor_without_a_difference_says_which_case_is_missing(tmp_path: Path) -> None:
    survivors = {one.id: one for one in mutated(tmp_path, "board", BOARD).survivors}
    found = survivors["change_on_error:1:survives"]
    assert (found.case, found.new_case) == ("", "in which step 1 fails every time")


def test_the_acts_of_a_case_notice_mutants(tmp_path: Path) -> None:
    """Step 3b runs only in the fork that the case makes."""
    act = (
        'then: [{fork: {from: "3", set: {choice: "no"}}, model: {"3b": Flour power.}, expect: {output: Flour power.}}]'
    )
    alone = TAGLINE.partition("  - name: a no")[0]
    before = mutated(tmp_path / "without", "tagline", alone)
    after = mutated(tmp_path / "with", "tagline", f"{alone}    {act}\n")
    assert (before.left_out, after.left_out) == ((), ())
    assert "drop_step:3b" in {one.id for one in before.survivors}
    assert "drop_step:3b" in after.killed


def test_a_case_that_fails_is_left_out(tmp_path: Path) -> None:
    report = mutated(tmp_path, "tagline", TAGLINE.replace('output: "Flour power."', "output: Something else."))
    assert report.left_out == ("a no: it fails on the unchanged document",)
    assert report.cases == ("a yes",)


def test_snapshots_count(tmp_path: Path) -> None:
    test = TAGLINE.replace('output: "Bread, then."', "prompts: !snapshot , asked: !snapshot ")
    first = mutated(tmp_path, "tagline", TAGLINE)
    kept = _snapshots(tmp_path, test)
    second = mutate_opened(opened(parse(read_source(tmp_path / "tagline.test.yaml"))))
    assert second.score > first.score
    assert (tmp_path / "tagline.test.snap.yaml").read_text() == kept


def _snapshots(folder: Path, test: str) -> str:
    from quire.testing.snapshots import SnapshotFile, SnapshotMode

    result = run(folder, "tagline", test)
    SnapshotFile.beside(str(folder / "tagline.test.yaml")).settle(result.cases, SnapshotMode(), complete=True)
    return (folder / "tagline.test.snap.yaml").read_text()


def test_a_file_with_errors_cannot_be_mutated() -> None:
    with pytest.raises(CannotStart):
        opened(parse(Source.of("cases: 5", "x.test.yaml")))


def test_recorded_replies_notice_every_changed_prompt(tmp_path: Path, known: dict[str, str]) -> None:
    first, second = known
    record(tmp_path, [taped(first, '{"best": "Bread."}', known[first]), taped(second, "Bread!", known[second])])
    report = mutated(tmp_path, "tagline", CASSETTE)
    assert report.left_out == ()
    noticed = set(report.killed)
    assert {"drop_system", "drop_reference:1:product", "drop_reference:1:tone", "drop_reference:3a:best"} <= noticed


@pytest.mark.parametrize(
    ("name", "id", "old", "new"),
    [
        ("tagline", "drop_system", "You write short lines.", ""),
        ("tagline", "drop_reference:1:tone", " in a {{tone}} tone", " in a  tone"),
        ("tagline", "drop_reference:2:question.best.1", "one: {{best}}?", "one: ?"),
        ("tagline", "negate_condition:3:1", 'choice == "yes"', 'choice != "yes"'),
        ("tagline", "change_condition:3:1", 'choice == "yes"', 'choice == "yes~"'),
        ("tagline", "drop_capture:1:best", '@output(best, extract:"best")', ""),
        ("board", "change_on_error:1:no_retry", "on_error: retry(2)", "on_error: abort"),
        ("board", "change_on_error:1:fewer", "on_error: retry(2)", "on_error: retry(1)"),
        ("board", "drop_reference:1.do:item", "as {item}.", "as ."),
        ("board", "drop_schema:1.do", "          schema: Verdict\n", ""),
        ("files", "drop_reference:2:text", "lines: {{text}}", "lines: "),
        ("files", "drop_reference:3:argument.content.sorted.0", '"{{sorted}}"', '""'),
        ("tidy", "widen_permission:thread:rye.execute.tool.rye.file-system.*", "rye.file-system.*", "rye.*"),
        ("tidy", "drop_limit:thread:turns", 'turns="4" ', ""),
        ("tidy", "drop_reference:thread:body.file.0", "Read {input:file},", "Read ,"),
    ],
)
def test_a_mutant_is_what_an_edit_of_the_document_is(
    name: str, id: str, old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cases are driven on a document that was edited in the same way: they fail if the mutant was noticed."""
    test = {"tagline": TAGLINE, "board": BOARD, "files": FILES, "tidy": TIDY}[name]
    report = mutated(tmp_path, name, test)
    verdicts = dict.fromkeys(report.killed, True) | {one.id: False for one in report.survivors}
    path, text = DOCUMENTS[name]
    assert old in text
    monkeypatch.setitem(DOCUMENTS, name, (path, text.replace(old, new)))
    assert run(tmp_path, name, test).failed is verdicts[id]
