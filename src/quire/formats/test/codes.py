"""Every kind of finding about a test, with the page that `quire check --explain` prints.

TS0xx are found by reading a test file and its document, TS10x and TS11x by running cases, TS12x in snapshots, TS13x in
cassettes, TS14x by coverage, mutation and exploration, TS15x by live runs. Ids are never reused.
"""

from __future__ import annotations

import sys
from functools import partial

from quire.diagnostics import Code, Severity, codes_in, make


def codes() -> tuple[Code, ...]:
    """Return all codes, in the order of their ids."""
    return tuple(sorted(codes_in(sys.modules[__name__]), key=lambda code: code.id))


_error = partial(make, Severity.ERROR)

SYNTAX = _error(
    "TS001",
    "test-syntax",
    "A part of a test file has the wrong kind, or is missing.",
    "A test file is one YAML mapping with a list of `cases`; each case is a mapping with a `name`. The finding says\n"
    "which kind of value belongs there. `quire test --schema` prints the whole form.",
    "cases:\n  - model: [5]\n    expect: completed",
    'cases:\n  - name: a number as a reply\n    model: ["5"]\n    expect: {status: completed}',
)
UNKNOWN_KEY = _error(
    "TS002",
    "test-unknown-key",
    "A key that test files do not have.",
    "It would have no effect, and a case would pass that tests less than it seems to. The nearest known key is named.",
    "cases:\n  - name: greets\n    expects: {output: Hello.}",
    "cases:\n  - name: greets\n    expect: {output: Hello.}",
)
NO_DOCUMENT = _error(
    "TS003",
    "no-document",
    "The document of a test is not found, or cannot be read.",
    "`document` is a path beside the test file, or a name as for `quire run`. Without it the document has the name of\n"
    "the test file: `x.test.yaml` tests `x.playbook.md`, `x.yaml`, or the directive `x`.",
    "document: tag-line.playbook.md\ncases: [{name: greets, expect: {output: Hello.}}]",
    "document: tagline.playbook.md\ncases: [{name: greets, expect: {output: Hello.}}]",
)
DUPLICATE_CASE = _error(
    "TS004",
    "duplicate-case",
    "Two cases have the same name.",
    "Results, snapshots and cassettes are kept under the name of their case.",
    "cases:\n  - {name: greets, expect: {output: Hello.}}\n  - {name: greets, expect: {exit: 0}}",
    "cases:\n  - {name: greets, expect: {output: Hello.}}\n  - {name: ends well, expect: {exit: 0}}",
)
UNKNOWN_STEP = _error(
    "TS005",
    "test-unknown-step",
    "A label that is not a step of the document.",
    "Steps are named as `quire show` prints them: `2`, `3a`, `1.do`. A step inside a called document is named by the\n"
    "way to it: `2/1`.",
    'cases:\n  - name: greets\n    model: {"9": Hello.}\n    expect: {output: Hello.}',
    'cases:\n  - name: greets\n    model: {"1": Hello.}\n    expect: {output: Hello.}',
)
UNKNOWN_TOOL = _error(
    "TS006",
    "test-unknown-tool",
    "A tool that the document never calls.",
    "A script for it cannot be used, and `calls` of it are always 0 unless a model asks for it by name.",
    "cases:\n  - name: looks it up\n    tools: {serch: {returns: []}}\n    expect: {output: nothing found}",
    "cases:\n  - name: looks it up\n    tools: {search: {returns: []}}\n    expect: {output: nothing found}",
)
NEVER_ASKS = _error(
    "TS007",
    "never-asks",
    "An answer for a step that never asks a person.",
    "The answer would not be used, and the question that it is meant for would stay open.",
    'cases:\n  - name: a yes\n    answers: {"1": "yes"}\n    expect: {output: Hello.}',
    'cases:\n  - name: a yes\n    answers: {"2": "yes"}\n    expect: {output: Hello.}',
)
ORDER_IN_FAN = _error(
    "TS008",
    "order-in-fan",
    "Replies in order, for a document that asks the model several things at a time.",
    "Which call comes first is not decided there, so the test would pass on one day and fail on another. Give each\n"
    "reply its step and its item, or a text that its prompt contains.",
    "cases:\n  - name: two readers\n    inputs: {readers: [ann, bob]}\n    model: [fine, too long]\n"
    "    expect: {stores: {reviews: [fine, too long]}}",
    "cases:\n  - name: two readers\n    inputs: {readers: [ann, bob]}\n"
    "    model: [{step: 1.do, item: 0, reply: fine}, {step: 1.do, item: 1, reply: too long}]\n"
    "    expect: {stores: {reviews: [fine, too long]}}",
)
IMPOSSIBLE_CONTAINS = _error(
    "TS009",
    "impossible-contains",
    "A text that no prompt of the document can contain.",
    "The prompts are fixed texts without placeholders, and the text is in none of them.",
    "cases:\n  - name: greets\n    model: [{contains: Helo, reply: Hi.}]\n    expect: {output: Hi.}",
    "cases:\n  - name: greets\n    model: [{contains: Hello, reply: Hi.}]\n    expect: {output: Hi.}",
)
MATCHER = _error(
    "TS010",
    "matcher",
    "An expectation that cannot be understood.",
    "A value stands for itself. A mapping is a matcher if all its keys are `contains`, `not_contains`, `matches`,\n"
    "`json`, `schema`, `most`, `least`, `any`, `all` or `absent`; a mapping that mixes them with other keys is\n"
    "refused, because either half could be meant. `matches` is an RE2 pattern, `most` and `least` are numbers.",
    "cases:\n  - name: greets\n    expect: {output: {contains: Hello, topic: bread}}",
    "cases:\n  - name: greets\n    expect: {output: {contains: Hello, json: {topic: bread}}}",
)
ROWS = _error(
    "TS011",
    "rows",
    "The rows of a case cannot be read, or have no such column.",
    "`each` is a list of mappings, or the name of a `.csv` or `.jsonl` file beside the test; `matrix` is a mapping of\n"
    "lists. `{row.x}` in a text, and `row.x` in an expression, need a column `x` in every row.",
    'cases:\n  - name: rows\n    each: [{text: a}]\n    inputs: {doc: "{row.txt}"}\n    expect: {output: a}',
    'cases:\n  - name: rows\n    each: [{text: a}]\n    inputs: {doc: "{row.text}"}\n    expect: {output: a}',
)
OUTSIDE = _error(
    "TS012",
    "outside-folder",
    "A path that leaves the folder of the test.",
    "A test reads only files below its own folder, and the files of a case are in a folder made for it. An absolute\n"
    "path, `..` and a drive letter are refused, because a test file may come from somewhere else. Only the document\n"
    "may be above it, inside of the workspace.",
    "cases:\n  - name: reads\n    files: {../notes.txt: a}\n    expect: {output: a}",
    "cases:\n  - name: reads\n    files: {notes.txt: a}\n    expect: {output: a}",
)
NEVER_MADE = _error(
    "TS014",
    "never-made",
    "An expectation about a value that the document never makes.",
    "Values of playbooks are `named`, those of pipelines are in `stores`, those of directives are `outputs`. If it is\n"
    "meant that the value is missing, write `{absent: true}`.",
    "cases:\n  - name: greets\n    expect: {named: {bst: Bread.}}",
    "cases:\n  - name: greets\n    expect: {named: {best: Bread.}}",
)
DRAFT = _error(
    "TS013",
    "draft",
    "A case that says `expect: todo`.",
    "`quire new test` writes cases without expectations, because only an author knows them. Such a case is not run,\n"
    "and fails until its expectations are written.",
    "cases:\n  - name: greets\n    expect: todo",
    "cases:\n  - name: greets\n    expect: {output: Hello.}",
)


_lint = partial(make, Severity.LINT)

UNUSED_REPLY = _error(
    "TS101",
    "unused-reply",
    "A reply of the case that no call of the model used.",
    "The case did not go the way that its author had in mind. Entries of the defaults need not be used by every case.",
    'model: {"1": Hello., "2": never asked}',
    'model: {"1": Hello.}',
)
NO_REPLY = _error(
    "TS102",
    "no-reply",
    "The document asked the model something for which the case has no reply.",
    "Each entry answers one call unless it says `times`. The nearest entry is shown, and why it did not fit.",
    'model: {"1": Hello.}   # step 1 is run twice',
    'model: {"1": [Hello., Good morning.]}',
)
UNUSED_ANSWER = _error(
    "TS103",
    "unused-answer",
    "An answer of the case that no question took.",
    "The step was not reached, or it asked less often than the case has answers.",
    'answers: {"2": ["yes", "no"]}   # step 2 asks once',
    'answers: {"2": "yes"}',
)
NO_ANSWER = _error(
    "TS104",
    "no-answer",
    "The document asked a person, and the case has no answer.",
    "Give the answer under the label of the step, or expect that the run waits: `status: awaiting_input`.",
    "expect: {status: completed}",
    'answers: {"2": "yes"}\nexpect: {status: completed}',
)
UNUSED_TOOL = _error(
    "TS105",
    "unused-tool",
    "A scripted tool of the case that was never called.",
    "Say so if that is meant: `calls: {search: 0}`.",
    "tools: {search: {returns: []}}",
    "tools: {search: {returns: []}}\nexpect: {calls: {search: 0}}",
)
UNSCRIPTED_TOOL = _error(
    "TS106",
    "unscripted-tool",
    "The document called a tool for which the case has no script.",
    "Nothing was called: a test never reaches the network and never starts a process. File tools and `ask` work in a\n"
    "fresh folder without a script; every other tool needs one.",
    "tools: {}",
    "tools: {http: {returns: {status: 200, body: ok}}}",
)
UNFIT_STUB = _error(
    "TS107",
    "stub-does-not-fit",
    "The scripted result does not fit the schema that the tool promises.",
    "The real tool cannot return it, so a test with it says nothing. The schema is built in, the tool's own, or\n"
    "the one in `quire.lock`.",
    "tools: {rye/file-system/write: {returns: done}}",
    "tools: {rye/file-system/write: {returns: {path: notes.txt, bytes: 4, created: false}}}",
)
CANNOT_START = _error(
    "TS108",
    "case-cannot-start",
    "The document, or the case, cannot start.",
    "A document with errors does not run, and neither does one without its required inputs. If that is what the case\n"
    "tests, it says `exit: 2`.",
    "inputs: {}   # the document requires `product`",
    "inputs: {product: a bakery}",
)
EXPECTATION = _error(
    "TS110",
    "expectation",
    "An expectation does not hold.",
    "The finding shows the expectation, the value, and the values inside of an expression.",
    "expect: {output: Hello.}   # the output is Good morning.",
    "expect: {output: Good morning.}",
)
UNEXPECTED_WARNING = _error(
    "TS111",
    "unexpected-warning",
    "The run warned about something, and the case does not expect it.",
    "Many mistakes are only warnings while a document runs: a value that was not found in a reply, a hook that\n"
    "failed. A case that should see the warning lists it.",
    "expect: {output: Hello.}",
    "expect: {output: Hello., warnings: [{contains: best}]}",
)
ASSERTS_NOTHING = _lint(
    "TS112",
    "asserts-nothing",
    "A case expects nothing but that its run completes.",
    "A scripted model gives the same answers to any prompt. Check the prompts: `prompts`, `output`, `calls` and\n"
    "`asked` tell whether the document does what it should.",
    'model: {"1": Hello.}\nexpect: {status: completed}',
    'model: {"1": Hello.}\nexpect: {prompts: {"1": {contains: a bakery}}}',
)
CRASH_DIFFERS = _error(
    "TS113",
    "crash-differs",
    "The run came to another end after it was killed and resumed.",
    "`crash: everywhere` runs the case again for each moment before and after each record. The output has to be the\n"
    "same, and no write may happen twice unless its policy allows it.",
    "crash: everywhere   # a step appends to a file, and is not idempotent",
    "crash: everywhere   # the step writes the whole file",
)
TODO_PASSES = _error(
    "TS114",
    "todo-passes",
    "A case that is marked `todo` passes.",
    "`todo` says why a case is expected to fail. Once it passes, the mark hides the next failure: take it out.",
    "todo: waits for the new prompt   # and all expectations hold",
    "expect: {output: Hello.}",
)
ALWAYS = _error(
    "TS115",
    "always",
    "A property of `always` does not hold.",
    "Properties hold after every case and every explored run.",
    'always: [!expr "count(stores.reviews) > 3"]   # in every case, also in the one with two readers',
    'always: [!expr "count(stores.reviews) == count(inputs.readers)"]',
)


_warning = partial(make, Severity.WARNING)
_note = partial(make, Severity.NOTE)

COVERAGE_BELOW = _error(
    "TS140",
    "coverage-below",
    "The cases cover less than `coverage` asks for.",
    "Coverage counts decisions: branches, answers, errors, and prompts that some case checks. Those that no case\n"
    "takes are listed with their lines.",
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


SNAPSHOT_DIFFERS = _error(
    "TS120",
    "snapshot-differs",
    "A value differs from its snapshot.",
    "Look at the difference. If it is meant, `quire test --update` writes the new value.",
    "prompts: !snapshot   # the prompt of step 1 has changed",
    "prompts: !snapshot   # after quire test --update, and a look at the difference",
)
SNAPSHOT_NEW = _error(
    "TS121",
    "snapshot-new",
    "A snapshot that does not exist yet.",
    "`quire test` writes it on your machine. Under CI nothing is written, and the case fails: commit the file\n"
    "`x.test.snap.yaml`.",
    "output: !snapshot   # and no x.test.snap.yaml in the repository",
    "output: !snapshot   # and its entry in x.test.snap.yaml",
)
SNAPSHOT_UNREFERENCED = _error(
    "TS122",
    "snapshot-unreferenced",
    "A snapshot that no case looks at.",
    "Its case was renamed or removed, so it protects nothing. `quire test --update` removes it.",
    "a case that no longer exists:\n  output: Hello.",
    "greets:\n  output: Hello.",
)
CASSETTE_DRIFT = _error(
    "TS130",
    "cassette-drift",
    "The document asks something else than what was recorded.",
    "The recorded reply answers another question. Record again, keep the old reply with `--keep`, which marks it as\n"
    "stale, or undo the change. The finding shows the words that differ.",
    "cassette: true   # the prompt of step 1 has changed",
    "cassette: true   # after quire test --record",
)
CASSETTE_PARTIAL = _error(
    "TS131",
    "cassette-partial",
    "A recorded reply was not used.",
    "The document asks less than it did when the cassette was made.",
    "cassette: true   # step 3 no longer asks a model",
    "cassette: true   # after quire test --record",
)
CASSETTE_ORPHAN = _error(
    "TS132",
    "cassette-orphan",
    "Recordings of a case that does not exist.",
    "The case was renamed or removed. `quire test --record` takes them out.",
    "a case that no longer exists: [...]",
    "greets: [...]",
)
CASSETTE_OLD = _warning(
    "TS133",
    "cassette-old",
    "A recording is older than its `max_age`.",
    "Models change. Record it again, or raise `max_age`.",
    "max_age: 30d   # recorded 41 days ago",
    "max_age: 90d",
)
