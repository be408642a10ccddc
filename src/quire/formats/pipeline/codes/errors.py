"""PL001 to PL039: errors that stop a pipeline from running."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_error = partial(make, Severity.ERROR)

NO_PIPELINE = _error(
    "PL001",
    "no-pipeline",
    "No document of the file has the key `pipeline`.",
    "Schemas alone do nothing. A file has one `pipeline:` document, and any number of `schema:` documents beside it.",
    "schema: Review\nfields: {passed: {type: bool}}",
    "schema: Review\nfields: {passed: {type: bool}}\n---\npipeline: review\nsteps:\n"
    '  - agent: {prompt: "Review {ctx.doc}.", schema: Review}',
)
DOCUMENT = _error(
    "PL002",
    "document-kind",
    "A document is neither a pipeline nor a schema.",
    "Documents are separated by `---` lines. Each has the key `pipeline` or the key `schema`, which is its name.",
    "name: greet\nsteps:\n  - transform: {value: \"'hello'\"}",
    "pipeline: greet\nsteps:\n  - transform: {value: \"'hello'\"}",
)
SEVERAL = _error(
    "PL003",
    "several-pipelines",
    "A file that is run directly has more than one `pipeline:` document.",
    "It would not be clear which one is meant. Only files that are registered in a workspace may have several.",
    "pipeline: one\nsteps: [{transform: {value: '1'}}]\n---\npipeline: two\nsteps: [{transform: {value: '2'}}]",
    "pipeline: one\nsteps: [{transform: {value: '1'}}]",
)
DUPLICATE = _error(
    "PL004",
    "duplicate-pipeline",
    "Two pipelines of one file have the same name.",
    "A `call` of that name could mean either.",
    "pipeline: clean\nsteps: [{transform: {value: pipe}}]\n---\npipeline: clean\nsteps: [{transform: {value: '1'}}]",
    "pipeline: clean\nsteps: [{transform: {value: pipe}}]\n---\npipeline: count\nsteps: [{transform: {value: '1'}}]",
)
DOCUMENT_KEY = _error(
    "PL005",
    "pipeline-key",
    "A pipeline document has a key that does not belong there.",
    "Its keys are `pipeline`, `description`, `dialect` and `steps`, and in the Quire dialect `input`. Anything else\n"
    "would have no effect.",
    "pipeline: greet\ndescripton: Says hello.\nsteps: [{transform: {value: \"'hello'\"}}]",
    "pipeline: greet\ndescription: Says hello.\nsteps: [{transform: {value: \"'hello'\"}}]",
)
PLANNED = _error(
    "PL006",
    "not-yet-supported",
    "`input`, `defaults` and `refine` belong to the format but are not yet supported.",
    "They are refused rather than ignored. Inputs need no declaration: they are what a step reads as `ctx.NAME`\n"
    "before a step has written it. `get` gives a default. A pipeline that says `dialect: quire` may declare `input`.",
    "pipeline: greet\ndefaults: {name: you}\nsteps: [{transform: {value: \"'Hello, ' + ctx.name\"}}]",
    "pipeline: greet\nsteps: [{transform: {value: \"'Hello, ' + get(ctx, 'name', 'you')\"}}]",
)
NAME = _error(
    "PL007",
    "pipeline-name",
    "The name of a pipeline, a store, a branch, an identity or a passed value is not a name.",
    "A name begins with a letter or `_` and goes on with letters, digits, `_` and `-`. Names stand in expressions\n"
    "and in the paths of steps, where a space or a dot would mean something else. A target may also be `KEY.NAME`.",
    "- transform: {value: '1', output: a.b}",
    "- transform: {value: '1', output: a_b}",
)
STEP = _error(
    "PL008",
    "step-shape",
    "A step is not a mapping with exactly one key.",
    "The key says what kind of step it is, and everything else is inside its value. Keys that stand beside the kind\n"
    "are mostly those of its body, not indented far enough.",
    "- transform:\n  value: '1'\n  output: one",
    "- transform:\n    value: '1'\n    output: one",
)
KIND = _error(
    "PL009",
    "step-kind",
    "The kind of the step is unknown.",
    "The kinds are `transform`, `tool`, `shell`, `agent`, `call`, `match`, `fold`, `for_each` and `parallel`.",
    '- llm: {prompt: "Summarise {ctx.doc}."}',
    '- agent: {prompt: "Summarise {ctx.doc}."}',
)
BODY = _error(
    "PL010",
    "step-body",
    "The value of a step is not a mapping.",
    "Even a step with one key names it.",
    '- agent: "Summarise {ctx.doc}."',
    '- agent: {prompt: "Summarise {ctx.doc}."}',
)
KEY = _error(
    "PL011",
    "step-key",
    "A step has a key that does not belong to its kind.",
    "It would have no effect, and most often it is a slip.",
    "- transform: {value: '1', outptu: one}",
    "- transform: {value: '1', output: one}",
)
MISSING = _error(
    "PL012",
    "missing-key",
    "A key that cannot be left out is missing.",
    "`on_error` of a `for_each` has no default on purpose: its author decides what happens to the other items\n"
    "when one fails. The `output` of a `fold` is where its result goes.",
    '- for_each:\n    over: ctx.docs\n    do: {agent: {prompt: "Read {item}."}}\n'
    "    collect: {transform: {value: pipe}}",
    "- for_each:\n    over: ctx.docs\n    on_error: continue\n"
    '    do: {agent: {prompt: "Read {item}."}}\n    collect: {transform: {value: pipe}}',
)
VALUE = _error(
    "PL013",
    "wrong-value",
    "A key has a value of another kind than it takes.",
    "A text in braces that lacks its quotes is a mapping, and a single name in place of a list needs brackets.",
    "- call: {pipeline: report, pass: review}",
    "- call: {pipeline: report, pass: [review]}",
)
NOT_AN_EXPRESSION = _error(
    "PL014",
    "expression-not-text",
    "`value`, `on`, `over`, `init` or a passed value is not text.",
    "These are always expressions, and an expression is text: a number or a list is written in quotes, and a text in\n"
    "quotes inside of quotes.",
    '- fold: {over: ctx.xs, init: 0, do: {transform: {value: "acc + item"}}, output: total}',
    '- fold: {over: ctx.xs, init: "0", do: {transform: {value: "acc + item"}}, output: total}',
)
TARGET = _error(
    "PL015",
    "static-target",
    "The target of a `call` or of a case is an expression.",
    "Which pipelines can run is known before anything does. `match` chooses among static targets by a value.",
    "- call: {pipeline: !expr ctx.handler}",
    "- match: {on: ctx.handler, cases: {mail: {pipeline: by_mail}, post: {pipeline: by_post}}}",
)
SOURCE = _error(
    "PL016",
    "list-source",
    "A `fold` or a `for_each` has both `over` and `items`.",
    "`over` is an expression, `items` a list as it stands; without either the incoming `pipe` is the list.",
    '- fold: {over: ctx.xs, items: [1, 2], init: "0", do: {transform: {value: "acc + item"}}, output: total}',
    '- fold: {over: ctx.xs, init: "0", do: {transform: {value: "acc + item"}}, output: total}',
)
ON_ERROR = _error(
    "PL017",
    "on-error",
    "`on_error` is not `continue`, `abort` or `retry(N)`.",
    "`continue` drops what failed, `abort` fails the step, `retry(N)` tries up to N more times and then aborts. N\n"
    "has up to six digits and no spaces around it.",
    "on_error: retry",
    "on_error: retry(2)",
)
LIMIT = _error(
    "PL018",
    "limit",
    "`max_items` or `max_parallel` is not a whole number of at least 1.",
    "Zero would mean that nothing is ever done. Leave the key out for the default.",
    "max_parallel: 0",
    "max_parallel: 4",
)
LABEL = _error(
    "PL019",
    "duplicate-label",
    "Two cases of a `match` have the same label.",
    "Labels are compared as text, as Python writes values: unquoted, `true` is the label `True`, `null` is `None`.",
    'cases: {true: {pipeline: a}, "True": {pipeline: b}}',
    "cases: {true: {pipeline: a}, false: {pipeline: b}}",
)
CYCLE = _error(
    "PL020",
    "call-cycle",
    "A pipeline can reach itself through `call` or `match`, or calls a playbook that can.",
    "Recursion is not allowed, so every run ends. This also holds for a case that may never be chosen, and for a call\n"
    "through a playbook. Use `fold` or `for_each` to walk a list.",
    "pipeline: walk\nsteps:\n  - call: {pipeline: walk}",
    "pipeline: walk\nsteps:\n  - for_each:\n      over: ctx.parts\n      on_error: abort\n"
    "      do: {call: {pipeline: one_part, pass: {part: item}}}\n      collect: {transform: {value: pipe}}",
)
CLAIMED_TWICE = _error(
    "PL021",
    "claimed-twice",
    "Two registered files of a workspace declare pipelines of one name.",
    "Neither is loaded: a name must mean one pipeline, whichever file is read first. Here `pipelines/report.yaml` and\n"
    "`pipelines/old/report.yaml` begin alike.",
    "pipeline: report\nsteps:\n  - transform: {value: '1'}",
    "pipeline: report_of_last_year\nsteps:\n  - transform: {value: '1'}",
)
DIALECT = _error(
    "PL022",
    "dialect",
    "The document asks for a dialect that does not exist.",
    "Without `dialect:` a pipeline is in the language of its format, which every implementation reads.\n"
    "`dialect: quire` adds what Quire can do beyond it; `quire check --portable` lists what a document uses of that.",
    "pipeline: greet\ndialect: quier\nsteps: [{transform: {value: \"'hello'\"}}]",
    "pipeline: greet\ndialect: quire\nsteps: [{transform: {value: \"'hello'\"}}]",
)
UNUSED_DEFAULT = _error(
    "PL023",
    "unused-default",
    "A step has a `default`, but no failure of it is survived, and nothing leaves it out.",
    "`default` is the value of a step that failed and whose `on_error` lets the run go on, or that its `when` leaves\n"
    "out. Without one of these it would have no effect.",
    "pipeline: p\ndialect: quire\nsteps:\n- tool: {name: file__read, args: {path: notes.md}, default: \"''\"}",
    "pipeline: p\ndialect: quire\nsteps:\n"
    "- tool: {name: file__read, args: {path: notes.md}, on_error: continue, default: \"''\"}",
)
TIMEOUT = _error(
    "PL024",
    "timeout",
    "`timeout` is not a duration, or a longer one than such a step may have.",
    "A duration is a number and a unit: `500ms`, `30s`, `5m`, `1h`. A command may take ten minutes, anything else\n"
    "a day.",
    "pipeline: p\ndialect: quire\nsteps:\n- shell: {command: make test, timeout: 5}",
    "pipeline: p\ndialect: quire\nsteps:\n- shell: {command: make test, timeout: 5m}",
)
STOP_IN_FAN = _error(
    "PL025",
    "stop-in-fan",
    "A `stop` is inside the items of a `for_each` or the branches of a `parallel`.",
    "It would end the whole pipeline while other items are under way, and which of them had ended would depend on\n"
    "chance. Let the item return a value, and stop after the fan.",
    "pipeline: p\ndialect: quire\nsteps:\n- for_each:\n    over: ctx.xs\n    on_error: abort\n"
    "    do: {stop: {value: item}}\n    collect: {transform: {value: pipe}}",
    "pipeline: p\ndialect: quire\nsteps:\n- for_each:\n    over: ctx.xs\n    on_error: abort\n"
    "    do: {transform: {value: item}}\n    collect: {transform: {value: pipe}}\n    output: found\n"
    "- stop: {when: count(found) > 0, value: found}",
)
