"""TY101 to TY105: values of a type with which a step fails, or a comparison never holds."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_warning = partial(make, Severity.WARNING)

OPERAND_TYPE = _warning(
    "TY101",
    "operand-type",
    "An operator or a combinator gets a value of a kind that it does not take.",
    "`+` needs two numbers, two texts or two lists, the other operators two numbers; `map`, `filter`, `count`, `sum`\n"
    "and `join` need a list. The step fails when it is reached. Kinds are known from schemas, declared inputs and\n"
    "constants. `<` and its relatives are PL110, functions of the dialect PL120.",
    "pipeline: p\ndialect: quire\ninput: {pages: {type: number}}\nsteps:\n"
    "- transform: {value: \"'pages: ' + ctx.pages\"}",
    "pipeline: p\ndialect: quire\ninput: {pages: {type: number}}\nsteps:\n"
    "- transform: {value: \"'pages: ' + text(ctx.pages)\"}",
)
MAY_BE_NULL = make(
    Severity.LINT,
    "TY102",
    "may-be-absent",
    "An operator uses the result of `get` without a default, or of `find`, which is null if there is no such value.",
    "With null the step fails. A third argument of `get` is used instead of null; `or` after `find` does the same. A\n"
    "path to a field that may be missing is PL209, a store that may not be written PL210. Where `and`, `or` or `when`\n"
    "may have looked at the value, nothing is said.",
    "- transform: {value: \"get(ctx, 'count') + 1\"}",
    "- transform: {value: \"get(ctx, 'count', 0) + 1\"}",
)
ARGUMENT_TYPE = _warning(
    "TY103",
    "argument-schema",
    "An argument of a tool has a type that the tool does not take.",
    "The step fails when it is reached. The type of an expression is known from schemas, declared inputs and\n"
    "operators. Arguments that are written out, missing or unknown are PL113; commands that are written out PL111.",
    "pipeline: p\ndialect: quire\ninput: {lines: {type: number}}\nsteps:\n"
    "- tool: {name: file__read, args: {path: !expr ctx.lines}}",
    "pipeline: p\ndialect: quire\ninput: {file: {type: string}}\nsteps:\n"
    "- tool: {name: file__read, args: {path: !expr ctx.file}}",
)
CALLEE_TYPE = _warning(
    "TY104",
    "callee-input-type",
    "No value that is passed to a playbook or a directive fits its input.",
    "The step fails when it is reached. All values of the type are tried: those of an enum, true and false.\n"
    "Constants, and the inputs of called pipelines, are PL114; constants of playbooks PB226.",
    "schema: Mail\nfields: {kind: {type: enum, values: [bill, letter]}}\n---\npipeline: p\nsteps:\n"
    "- agent: {prompt: hi, schema: Mail, output: mail}\n- call: {pipeline: file_it, pass: {tray: mail.kind}}",
    "schema: Mail\nfields: {tray: {type: enum, values: [left, right]}}\n---\npipeline: p\nsteps:\n"
    "- agent: {prompt: hi, schema: Mail, output: mail}\n- call: {pipeline: file_it, pass: {tray: mail.tray}}",
)
NEVER_EQUAL = _warning(
    "TY105",
    "never-equal",
    "`==` or `!=` compares values that are never equal: of two kinds, or with a word that the schema does not have.",
    "The comparison has the same outcome in every run, so what depends on it always or never happens. Labels of\n"
    "`match` are PL107, conditions of playbooks PB206.",
    "schema: Mail\nfields: {kind: {type: enum, values: [bill, letter]}}\n---\npipeline: p\ndialect: quire\nsteps:\n"
    "- agent: {prompt: hi, schema: Mail, output: mail}\n- agent: {prompt: pay it, when: \"mail.kind == 'Bill'\"}",
    "schema: Mail\nfields: {kind: {type: enum, values: [bill, letter]}}\n---\npipeline: p\ndialect: quire\nsteps:\n"
    "- agent: {prompt: hi, schema: Mail, output: mail}\n- agent: {prompt: pay it, when: \"mail.kind == 'bill'\"}",
)
