"""TS1xx: findings about a case that has run: scripts that do not fit, and expectations that do not hold."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_error = partial(make, Severity.ERROR)
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
    "A scripted model answers whatever it is asked. Look at the prompts: `prompts`, `output`, `calls` and `asked`\n"
    "tell whether the document does what it should.",
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
