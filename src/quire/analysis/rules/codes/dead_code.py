"""DD101 to DD104: parts of documents that never run, never decide, or are never read."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_lint = partial(make, Severity.LINT)

DEAD_ARM = _lint(
    "DD101",
    "dead-arm",
    "An arm of a choice can never be taken, because of the arms before it or the choice around it.",
    "Its steps never run. A `default` is meant too where the cases name every value that the schema allows: leave it\n"
    "out, and `check` says so when the schema gets another value. A case whose label the schema does not have is\n"
    "PL107, and a condition of a playbook on a value that the variable cannot have is PB206.",
    "- match:\n    on: ctx.kind\n    cases:\n      bill:\n"
    "        steps:\n          - match: {on: ctx.kind, cases: {letter: {pipeline: reply}}}",
    "- match:\n    on: ctx.kind\n    cases:\n      bill: {pipeline: pay}\n      letter: {pipeline: reply}",
)
UNREACHABLE = _lint(
    "DD102",
    "unreachable-step",
    "A step stands after one that always ends the pipeline.",
    "`stop` and `fail` without `when` end it each time, so the steps after them never run.",
    "- stop: {value: ctx.draft}\n- agent: {prompt: 'Improve {ctx.draft}'}",
    "- stop: {value: ctx.draft, when: ctx.is_good}\n- agent: {prompt: 'Improve {ctx.draft}'}",
)
CONSTANT_CONDITION = _lint(
    "DD103",
    "constant-condition",
    "A condition has the same outcome in every run.",
    "It reads nothing, compares a value with itself, or repeats a condition around it. Leave the condition out, or\n"
    "what it guards. A loop that says `until: false` and keeps its last value runs a number of rounds, and is\n"
    "not meant.",
    "- agent: {prompt: hi, when: \"'a' == 'b'\"}",
    "- agent: {prompt: hi, when: \"ctx.kind == 'b'\"}",
)
UNREAD_STORE = _lint(
    "DD104",
    "unread-store",
    "The `output` of a step is read by no expression, no prompt and no call.",
    "The next step gets the value as `pipe` without it. Often another step reads a different name than was meant. The\n"
    "last step is left out, and so are pipelines that read `ctx` as a whole or a prompt from a file. PB204 says the\n"
    "same of playbooks; PL203 of an `output` inside of a `for_each` or a branch.",
    "- agent: {prompt: 'Sum up {ctx.text}', output: sumary}\n- agent: {prompt: 'Translate {ctx.text}'}",
    "- agent: {prompt: 'Sum up {ctx.text}', output: summary}\n- agent: {prompt: 'Translate {ctx.summary}'}",
)
