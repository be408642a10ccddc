"""TS14x and TS15x: findings of coverage, mutation, exploration and live runs, which measure a test or a model."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_error = partial(make, Severity.ERROR)
_warning = partial(make, Severity.WARNING)
_note = partial(make, Severity.NOTE)

COVERAGE_BELOW = _error(
    "TS140",
    "coverage-below",
    "The cases cover less than `coverage` asks for.",
    "What counts is decisions: arms, answers, errors, and prompts that some case looks at. Those that no case takes\n"
    "are listed with their lines.",
    "coverage: {arms: 100}   # no case answers no",
    'coverage: {arms: 100}\ncases:\n  - {name: a no, answers: {"2": "no"}, expect: {output: Another.}}',
)
MUTANT_SURVIVES = _error(
    "TS141",
    "mutant-survives",
    "The document was changed, and every case still passes.",
    "The cases do not look at the part that changed. The finding names an expectation that would fail.",
    'model: {"1": Hello.}\nexpect: {output: Hello.}   # {{product}} may be missing from the prompt',
    'model: {"1": Hello.}\nexpect: {output: Hello., prompts: {"1": {contains: a bakery}}}',
)
BOUND_BROKEN = _error(
    "TS142",
    "bound-broken",
    "A run did more than `quire show` proves possible for its inputs.",
    "`quire show --why` prints how the bound was counted. This is a mistake in Quire, not in your document: please\n"
    "report it with the document and the case.",
    "bound: at most 3 calls of a model; seen: 4",
    "bound: at most 3 calls of a model; seen: 3",
)
OUTSIDE_ENVELOPE = _error(
    "TS143",
    "outside-envelope",
    "A run had an effect outside of what the document may reach.",
    "This is a mistake in Quire, not in your document: please report it with the case that is printed.",
    "envelope: read notes.txt; seen: write notes.txt",
    "envelope: read notes.txt; seen: read notes.txt",
)
COUNTEREXAMPLE = _error(
    "TS144",
    "counterexample",
    "Exploring found a run in which a property does not hold.",
    "It was made as small as possible, and is printed as a case to paste into the test file.",
    'always: [!expr "count(stores.reviews) > 0"]   # no readers, no reviews',
    'always: [!expr "count(stores.reviews) == count(inputs.readers)"]',
)
JUDGE_NOT_CALIBRATED = _warning(
    "TS150",
    "judge-not-calibrated",
    "A judge that was not measured against people. Its verdict is advice only.",
    "`quire test --calibrate JUDGE` compares it with at least 50 labels of people. It may fail a case if the lower\n"
    "bound of Cohen's kappa is 0.6 or more, for the same rubric and the same model.",
    "judge: {rubric: judges/tone.judge.yaml}   # changed since it was calibrated",
    "judge: {rubric: judges/tone.judge.yaml}   # after quire test --calibrate judges/tone.judge.yaml",
)
UNDECIDED = _note(
    "TS151",
    "undecided",
    "The runs do not decide whether one model is better than the other.",
    "The intervals overlap, or the paired test does not exclude chance. The finding says how many more rows would be\n"
    "needed.",
    "live: {repeat: 1}   # 9 of 10 against 8 of 10",
    "live: {repeat: 5}",
)
FLAKY = _warning(
    "TS152",
    "flaky",
    "A case passes on some repeats and fails on others.",
    "With `pass` it counts as passed if the share is large enough. Without it, one failure fails the case.",
    "live: {repeat: 5}   # 4 of 5 pass",
    "live: {repeat: 5, pass: 0.8}",
)
