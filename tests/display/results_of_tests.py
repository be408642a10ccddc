"""Results of document tests for the printers: one of each kind, and some with hostile texts."""

from __future__ import annotations

from quire.diagnostics import Code, Diagnostic, Severity
from quire.source import NOWHERE, Source, Span
from quire.testing.case_results import CaseResult, FileResult, Outcome, Problem, Totals
from quire.testing.observation import Used

EXPECTATION = Code("TS110", "expectation", Severity.ERROR, "What.\n\nWhy.")
NOTHING = Code("TS112", "asserts-nothing", Severity.LINT, "What.\n\nWhy.")
LOW = Code("TS140", "coverage-below", Severity.ERROR, "What.\n\nWhy.")

TEXT = """\
document: tagline.playbook.md
coverage: {arms: 100}
cases:
  - name: a yes polishes it
    expect:
      output: "Bread, then."
      that: [!expr "count(stores.reviews) == count(inputs.readers)"]
  - name: a no asks for another
    expect: {prompts: {"1": !snapshot}}
"""
NAME = "texts/tagline.test.yaml"
SOURCE = Source.of(TEXT, NAME)


def at(text: str) -> Span:
    start = TEXT.index(text)
    return Span(start, start + len(text))


def failing(code: Code, message: str, text: str = "", help: str = "") -> Diagnostic:
    return Diagnostic(code, message, at(text) if text else NOWHERE, "", help)


PROMPT = "You write taglines.\n\nBe short.\nBe kind.\nBe clear.\n\nThe product is a bakery in a dry tone."
WRONG = Problem(
    failing(EXPECTATION, "the output differs", '"Bread, then."'), '"Bread, now."', (), "Bread, then.", "Bread, now."
)
FALSE = Problem(
    failing(EXPECTATION, "the expression is false", '!expr "count(stores.reviews) == count(inputs.readers)"'),
    "false",
    (("count(stores.reviews)", "1"), ("inputs.readers", '["a child", "a lawyer"]')),
)
CHANGED = Problem(
    failing(EXPECTATION, "the prompt of step 1 is not that of the snapshot", "!snapshot", "write it with --update"),
    "",
    (),
    PROMPT,
    PROMPT.replace("dry", "warm"),
)
USED = Used(model_calls=2, input_tokens=40, output_tokens=8, cost=0.25, seconds=3.5)


def results() -> list[FileResult]:
    """Results of a file with one case of each outcome, of one that cannot be read, and of one that passed."""
    cases = (
        CaseResult("a yes polishes it", 4, Outcome.FAILED, (WRONG, FALSE), 0.0015, USED, ("quick", "smoke")),
        CaseResult("a no asks for another", 8, Outcome.FLAKY, (CHANGED,), 0.001, USED, reason="the clock"),
        CaseResult("rows[row 3]", 8, Outcome.PASSED, (), 0.001, USED),
        CaseResult("later", 8, Outcome.SKIPPED, reason="needs #12"),
        CaseResult("not yet", 8, Outcome.TODO, (WRONG,), 0.001, USED, reason="the arm is missing"),
        CaseResult(
            "looks at nothing",
            8,
            Outcome.PASSED,
            (Problem(failing(NOTHING, "the case expects nothing", "a no")),),
            0.001,
        ),
    )
    return [
        FileResult(NAME, SOURCE, "tagline.playbook.md", cases, (), {"document_sha256": "ab" * 32}),
        FileResult(
            "low.test.yaml",
            Source.of(TEXT, "low.test.yaml"),
            "low.yaml",
            (CaseResult("fine", 4, Outcome.PASSED),),
            (Problem(failing(LOW, "66.7 % of the arms were taken, 100 % are asked for", "arms: 100")),),
        ),
    ]


HOSTILE = "x\x1b[31m\r\n::error file=a::b\n]]> <&\"' # \\ \x00\x07 \u202e \ud800 \ufffe\n  ...\nok 1 - y"


def hostile() -> FileResult:
    """A result with hostile texts wherever a text can come from outside."""
    source = Source.of(f"# {HOSTILE}\ncases: []\n", f"{HOSTILE[:20]}.test.yaml")
    found = Diagnostic(EXPECTATION, HOSTILE, Span(2, 6), HOSTILE, HOSTILE)
    problem = Problem(found, HOSTILE, ((HOSTILE, HOSTILE),), HOSTILE, HOSTILE + "\nmore")
    outcomes = [CaseResult(HOSTILE, 1, outcome, (problem,), 0.0, USED, (HOSTILE,), HOSTILE) for outcome in Outcome]
    return FileResult(source.name, source, HOSTILE, tuple(outcomes), (problem,), {"document_sha256": HOSTILE})


def totals(*files: FileResult) -> Totals:
    count = Totals()
    for file in files:
        count.add(file)
    count.seconds = 0.21
    return count
