"""Complete documents of the guides that the formats come from, with tests of ours: every decision, and every mutant."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.formats.test.parse import parse
from quire.source import read_source
from quire.testing.file_run import FileOptions, run_file
from quire.testing.mutation.mutation_run import mutate_file

SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
pytestmark = pytest.mark.skipif(not SEEDS.is_dir(), reason="the guides are not here: ../shared/seeds")

MATRIX = r"""
coverage: {all: 100}
defaults:
  inputs:
    {technology: SQLite, criteria: "speed, upkeep", constraints: One server., evaluation_depth: thorough}
  model:
    "1": 'Few needs. {"priority_level": "low"}'
    "4": "# Go"
  answers: {"3": "yes"}
cases:
  - name: a thorough look
    model: {"2": Fours and fives., "2a": Many people use it.}
    expect:
      output: "# Go"
      named: {requirements_summary: low}
      steps: {"2a": completed, "2b": skipped}
      asked: {"3": "Does the assessment look right? Proceed to recommendation?"}
      prompts:
        "1": {contains: [One server., senior technical architect]}
        "2": {contains: ["Evaluate SQLite against these criteria: speed, upkeep", Few needs.]}
        "2a": {contains: detailed analysis of SQLite including}
        "4": {contains: [Go/No-Go decision, Many people use it., "answer of the user]\nyes"]}
  - name: a quick look, and a no goes on too
    inputs: {evaluation_depth: quick}
    answers: {"3": "no"}
    model: {"2": Threes., "2b": Strong and small.}
    expect:
      artifact: "# Go"
      steps: {"2a": skipped, "2b": completed}
      prompts: {"2b": {contains: "SWOT analysis of SQLite for"}, "4": {contains: Strong and small.}}
  - name: killed anywhere
    model: {"2": Fours., "2a": Many.}
    crash: everywhere
"""

REVIEW_INDENTS = (
    ("fields:", 0),
    ("passed:", 2),
    ("notes:", 2),
    ("---", 0),
    ("pipeline:", 0),
    ("description:", 0),
    ("steps:", 0),
    ("- agent:", 2),
    ("prompt:", 6),
    ("schema: Review", 6),
    ("output: review", 6),
    ("- transform:", 2),
    ("value:", 6),
    ("output: verdict", 6),
    ("- tool:", 2),
    ("name:", 6),
    ("args:", 6),
    ("output: written", 6),
)
"""The guide has lost the indentation of its last example: how far each line goes in."""

REVIEW = """
coverage: {all: 100}
cases:
  - name: a document that passes
    inputs: {doc: the text}
    model: {"1": {reply: {passed: true, notes: fine}}}
    expect:
      stores: {verdict: OK}
      files: {verdict.txt: OK}
      prompts: {"1": {contains: Review the text. Reply with passed}}
  - name: one that does not, after a reply that has to be repaired
    inputs: {doc: another}
    model: {"1": ["no JSON", {reply: {passed: false, notes: short}}]}
    expect:
      stores: {verdict: NEEDS WORK, review: {passed: false, notes: short}}
      calls: {file__write: [{path: verdict.txt, content: NEEDS WORK}]}
      used: {model_calls: 2}
  - name: a reply without a field, until the repairs are used up
    each: [{field: notes, reply: '{"passed": true}'}, {field: passed, reply: '{"notes": "x"}'}]
    inputs: {doc: another}
    model: {"1": {reply: "{row.reply}", times: 3}}
    expect: {status: failed, error: {contains: "{row.field}"}, calls: {file__write: 0}}
"""


def seed(number: str) -> str:
    return next(SEEDS.glob(f"{number}*.txt")).read_text(encoding="utf-8")


def check_all(folder: Path, name: str, document: str, test: str) -> None:
    (folder / name).write_text(document)
    path = folder / (name.removesuffix(".playbook.md").removesuffix(".yaml") + ".test.yaml")
    path.write_text(test)
    result = run_file(parse(read_source(path)), FileOptions(coverage=True))
    problems = [one.finding.message for case in result.cases for one in case.problems]
    assert problems + [one.finding.message for one in result.problems] == []
    mutants = mutate_file(str(path))
    assert mutants is not None
    assert [one.change for one in mutants.survivors] == []


def test_the_decision_matrix(tmp_path: Path) -> None:
    guide = seed("001")
    begins = guide.index("# Technical Decision Matrix")
    document = guide[begins : guide.index("What happens when this playbook runs", begins)]
    check_all(tmp_path, "matrix.playbook.md", document, MATRIX)


def test_the_review(tmp_path: Path) -> None:
    guide = seed("003")
    begins = guide.rindex("fields:\npassed:")
    lines = guide[begins : guide.index("Note: this uses file__write", begins)].strip().split("\n")
    assert len(lines) == len(REVIEW_INDENTS)
    indented = []
    for line, (start, indent) in zip(lines, REVIEW_INDENTS, strict=True):
        assert line.startswith(start), line
        indented.append(" " * indent + line)
    check_all(tmp_path, "review.yaml", "schema: Review\n" + "\n".join(indented) + "\n", REVIEW)
