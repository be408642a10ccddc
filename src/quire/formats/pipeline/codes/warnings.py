"""Warnings of pipelines (PL1xx), advice of `check` (PL2xx), and notes on how the reader treated a document (PL3xx)."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_warning = partial(make, Severity.WARNING)

UNKNOWN_PIPELINE = _warning(
    "PL101",
    "unknown-pipeline",
    "A `call` or a case names what is neither a registered pipeline nor a playbook or directive of the workspace.",
    "The step fails when it is reached. Pipelines go by their declared names, not by those of files; a file with\n"
    "several registers them as `KEY.NAME`.",
    "- call: {pipeline: reprot}",
    "- call: {pipeline: report}",
)
UNKNOWN_SCHEMA = _warning(
    "PL102",
    "unknown-schema",
    "A step names a schema that the file does not define.",
    "Steps see the schema documents of their own file only. The step fails when it is reached.",
    "pipeline: p\nsteps:\n  - agent: {prompt: hi, schema: Review}",
    "schema: Review\nfields: {passed: {type: bool}}\n---\npipeline: p\nsteps:\n  - agent: {prompt: hi, schema: Review}",
)
UNKNOWN_TOOL = _warning(
    "PL103",
    "unknown-tool",
    "A step names a tool that does not exist in this workspace.",
    "A `tool` step fails when it is reached; an agent is never offered the tool.",
    "- tool: {name: file__raed, args: {path: a.txt}}",
    "- tool: {name: file__read, args: {path: a.txt}}",
)
UNWRITTEN = _warning(
    "PL104",
    "unwritten-store",
    "A step reads a variable that is written only later, or only inside of another step.",
    "It must come from the input then, or the step fails. A value that a `do`, a branch or a `collect` writes to its\n"
    "`output` is not seen outside.",
    '- transform: {value: "total + 1"}\n- transform: {value: "\'0\'", output: total}',
    '- transform: {value: "\'0\'", output: total}\n- transform: {value: "total + 1"}',
)
UNBOUND = _warning(
    "PL105",
    "unbound-name",
    "A step reads `item` or `acc` where it does not exist.",
    "`item` exists in the `do` of a `for_each` and of a `fold`, `acc` only in that of a `fold`; neither in\n"
    "`collect` nor in a called pipeline. The step fails when it is reached.",
    'collect: {transform: {value: "map(pipe, r -> item)"}}',
    'collect: {transform: {value: "map(pipe, r -> r)"}}',
)
NOT_PASSED = _warning(
    "PL106",
    "not-passed",
    "The called pipeline reads a name that is not passed to it.",
    "A called document gets only the values of `pass`: its step that reads the name fails.",
    "- call: {pipeline: report}",
    "- call: {pipeline: report, pass: [review]}",
)
UNREACHABLE = _warning(
    "PL107",
    "unreachable-case",
    "A case of a `match` can never be chosen: the schema of the value has no such value.",
    "Labels are compared as Python writes values, so those of a boolean are `True` and `False`.",
    'on: review.passed\ncases: {"yes": {pipeline: report_pass}, "no": {pipeline: report_fail}}',
    'on: review.passed\ncases: {"True": {pipeline: report_pass}, "False": {pipeline: report_fail}}',
)
NOT_COVERED = _warning(
    "PL108",
    "uncovered-value",
    "A `match` without `default` has no case for a value that the schema allows.",
    "With that value the step fails.",
    'on: review.passed\ncases: {"True": {pipeline: report_pass}}',
    'on: review.passed\ncases: {"True": {pipeline: report_pass}}\ndefault: {pipeline: report_fail}',
)
NO_FIELD = _warning(
    "PL109",
    "unknown-field",
    "An expression or a prompt reads a field that the schema of the value does not have.",
    "A reply may have more fields than its schema asks for, but it does not ask for this one. A path to a missing\n"
    "field fails the step; `get` gives a default.",
    "- agent: {prompt: hi, schema: Review, output: review}\n- transform: {value: review.pased}",
    "- agent: {prompt: hi, schema: Review, output: review}\n- transform: {value: review.passed}",
)
ORDERING = _warning(
    "PL110",
    "ordering",
    "`<`, `>`, `<=` or `>=` compares values of kinds that have no order.",
    "Two numbers or two texts can be ordered (a boolean counts as a number). The step fails when it is reached.",
    "value: \"review.score > 'high'\"",
    'value: "review.score > 5"',
)
COMMAND = _warning(
    "PL111",
    "shell-command",
    "The `command` of a shell step is neither a text nor a list of texts.",
    'A text goes to the shell, a list is run as it is. Quote numbers: `[sleep, "1"]`.',
    "- shell: {command: [head, -5, notes.txt]}",
    '- shell: {command: [head, "-5", notes.txt]}',
)
UNKNOWN_IDENTITY = _warning(
    "PL112",
    "unknown-identity",
    "An agent runs under an identity that this workspace does not have.",
    "Identities are the tables `[agents.NAME]` of `quire.toml`, and `default`. The step fails when it is reached.",
    "- agent: {prompt: hi, identity: reviwer}",
    "- agent: {prompt: hi, identity: reviewer}",
)
ARGUMENTS = _warning(
    "PL113",
    "builtin-arguments",
    "A built-in tool is given what it does not take, or not given what it needs.",
    "The step fails when it is reached. The value of `!expr` is known only then: only the name of such\n"
    "an argument is looked at.",
    "- tool: {name: file__read, args: {file: notes.txt}}",
    "- tool: {name: file__read, args: {path: notes.txt}}",
)
CALLEE_INPUTS = _warning(
    "PL114",
    "document-inputs",
    "A document that declares its inputs is called without what it needs, or with what it does not take.",
    "`pass` is all that it gets, by the names of its inputs. The step fails when it is reached.",
    "- call: {pipeline: greet_guest}",
    "- call: {pipeline: greet_guest, pass: [guest]}",
)
DECIDED_CIRCLE = _warning(
    "PL115",
    "call-by-directive",
    "A called document can call the pipeline again, through a directive whose model calls it.",
    "The run may begin, for the model decides what it calls. If it goes round, the `depth` of the directive ends\n"
    "that: the call that would be one too many fails, and the model is told.",
    "- call: {pipeline: lead_back}",
    "- call: {pipeline: report, pass: [review]}",
)
MODEL_CALLS = _warning(
    "PL116",
    "too-many-model-calls",
    "Every run of the pipeline makes more model calls than a run may make.",
    "The run could not start. `max_pipeline_spawns` under `[safety.spawn]` in `quire.toml` is the limit. Lists that\n"
    "are written in the document, branches and called pipelines are counted, and the least of all cases.",
    "pipeline: p\nsteps:\n  - for_each:\n      items: [a, b, c, d]\n      on_error: abort\n"
    '      do: {agent: {prompt: "{item}"}}\n      collect: {transform: {value: pipe}}',
    "pipeline: p\nsteps:\n  - for_each:\n      items: [a, b]\n      on_error: abort\n"
    '      do: {agent: {prompt: "{item}"}}\n      collect: {transform: {value: pipe}}',
)
TOO_DEEP = _warning(
    "PL117",
    "nested-too-deep",
    "A `for_each` or a `parallel` stands in more of them than a run may nest, or calls are nested too deep.",
    "The step fails when it is reached. `max_pipeline_fan_out_depth` under `[safety.spawn]` in `quire.toml` says how\n"
    "deeply they may nest; those around a `call` count in the called document.",
    "- parallel:\n    branches: {a: {parallel: {branches: {b: {parallel: {branches: {c: {transform: {value: pipe}}},\n"
    "      on_error: abort, collect: {transform: {value: pipe}}}}}, on_error: abort,\n"
    "      collect: {transform: {value: pipe}}}}}\n    on_error: abort\n    collect: {transform: {value: pipe}}",
    "- parallel:\n    branches: {a: {parallel: {branches: {b: {transform: {value: pipe}}}, on_error: abort,\n"
    "      collect: {transform: {value: pipe}}}}}\n    on_error: abort\n    collect: {transform: {value: pipe}}",
)
TOO_MANY_ITEMS = _warning(
    "PL118",
    "more-than-max-items",
    "A `for_each` goes through a list in the document that is longer than it allows.",
    "The step fails when it is reached: a `for_each` does all of its items or none. `max_items` says how many there\n"
    "may be; without it 10,000.",
    "- for_each: {items: [a, b], max_items: 1, on_error: abort, do: {transform: {value: item}},\n"
    "    collect: {transform: {value: pipe}}}",
    "- for_each: {items: [a, b], max_items: 2, on_error: abort, do: {transform: {value: item}},\n"
    "    collect: {transform: {value: pipe}}}",
)
PYTHON_TOOL = _warning(
    "PL119",
    "unusable-python-tool",
    "A step names a Python tool of the workspace that cannot be used.",
    "Its module cannot be loaded, or it has a parameter that cannot be given as JSON. The step fails when it is\n"
    "reached. Modules under `[tools] modules` are loaded for this only in a workspace that you have agreed to\n"
    "(`quire trust workspace`), and only for a document that names one of their tools.",
    "- tool: {name: python__plot, args: {}}",
    "- tool: {name: python__draw, args: {}}",
)
FUNCTION_ARGUMENT = _warning(
    "PL120",
    "function-argument",
    "A function is given a value of a kind that it does not take.",
    "The step fails when it is reached. Kinds are known from schemas, declared inputs and constants.",
    "pipeline: p\ndialect: quire\nsteps:\n- transform: {value: lower(3)}",
    "pipeline: p\ndialect: quire\nsteps:\n- transform: {value: lower(ctx.name)}",
)
DEFAULT_SCHEMA = _warning(
    "PL121",
    "default-schema",
    "The `default` of a step does not fit the `schema` of the step.",
    "The steps after it count on that schema. When the failure is survived, the default fails the step after all.",
    "schema: Review\nfields: {passed: {type: bool}}\n---\npipeline: p\ndialect: quire\nsteps:\n"
    "- agent: {prompt: hi, schema: Review, on_error: continue, default: \"{passed: 'no'}\"}",
    "schema: Review\nfields: {passed: {type: bool}}\n---\npipeline: p\ndialect: quire\nsteps:\n"
    "- agent: {prompt: hi, schema: Review, on_error: continue, default: '{passed: false}'}",
)


_lint = partial(make, Severity.LINT)

LITERAL_REFERENCE = _lint(
    "PL201",
    "literal-reference",
    "An argument without `!expr` holds what looks like a reference.",
    "Only prompts are filled in. An argument is passed on literally, braces included, unless it is tagged `!expr`.",
    '- tool: {name: file__read, args: {path: "{ctx.path}"}}',
    "- tool: {name: file__read, args: {path: !expr ctx.path}}",
)
NO_REFERENCE = _lint(
    "PL202",
    "no-reference",
    "A prompt holds an expression in braces, or a reference as another format writes it.",
    "A reference is a path and nothing else, without spaces: anything else in braces is sent to the model as it\n"
    "stands. Compute the value in a step before. `{{ctx.x}}` is the escape of `{ctx.x}`, and `${ctx.x}` leaves its\n"
    "`$`.",
    '- agent: {prompt: "Write {ctx.n + 1} lines."}',
    '- transform: {value: "ctx.n + 1", output: lines}\n- agent: {prompt: "Write {lines} lines."}',
)
LOST_OUTPUT = _lint(
    "PL203",
    "lost-output",
    "The `output` of a `do`, a branch or a `collect` cannot be read.",
    "Each item and each branch works on a copy of the variables, which ends with it. The `output` of the whole step\n"
    "keeps the result.",
    "- for_each:\n    over: ctx.xs\n    on_error: abort\n    do: {transform: {value: item, output: x}}\n"
    "    collect: {transform: {value: pipe}}",
    "- for_each:\n    over: ctx.xs\n    on_error: abort\n    do: {transform: {value: item}}\n"
    "    collect: {transform: {value: pipe}}\n    output: x",
)
HIDDEN_STORE = _lint(
    "PL204",
    "hidden-store",
    "A variable has the name of a binding.",
    "`pipe`, `item`, `acc` and `ctx` always mean the binding, so that variable can only be read as `ctx.pipe`. A\n"
    "variable named `errors` hides the failures that a `collect` reads under this name.",
    "- transform: {value: '1', output: pipe}",
    "- transform: {value: '1', output: one}",
)
EMPTY_PROMPT = _lint(
    "PL205",
    "empty-prompt",
    "The prompt of an agent is empty.",
    "A model is asked nothing and answers anything.",
    '- agent: {prompt: ""}',
    '- agent: {prompt: "Summarise {ctx.doc}."}',
)
NEEDLESS_PASS = _lint(
    "PL206",
    "needless-pass",
    "A name is passed to a pipeline that never reads it, or is passed twice.",
    "Mostly the called document reads another spelling of it.",
    "- call: {pipeline: report, pass: [review, review]}",
    "- call: {pipeline: report, pass: [review]}",
)
LIKELY_SLIP = _lint(
    "PL207",
    "likely-slip",
    "A name that no step writes is nearly that of a variable.",
    "It is taken as an input of the pipeline, which is most likely not what is meant; a bare `{name}` in a prompt\n"
    "that is not a variable is sent to the model literally, so there it is a warning.",
    "- transform: {value: '1', output: total}\n- transform: {value: totl + 1}",
    "- transform: {value: '1', output: total}\n- transform: {value: total + 1}",
)
UNUSED_SCHEMA = _lint(
    "PL208",
    "unused-schema",
    "No step and no other schema of the file refers to a schema.",
    "Nothing is held to it.",
    "schema: Review\nfields: {passed: {type: bool}}\n---\npipeline: p\nsteps:\n  - agent: {prompt: hi}",
    "schema: Review\nfields: {passed: {type: bool}}\n---\npipeline: p\nsteps:\n  - agent: {prompt: hi, schema: Review}",
)
OPTIONAL_FIELD = _lint(
    "PL209",
    "optional-field",
    "A path reads a field or an input that may be missing: it says `required: false`.",
    "When it is, the step fails. `get` gives null or a default instead.",
    "value: review.notes",
    "value: \"get(review, 'notes', '')\"",
)
MAYBE_UNWRITTEN = _lint(
    "PL210",
    "maybe-unwritten",
    "A step reads a variable that may be missing, because the step that writes it can be skipped.",
    "A step with `when` and without a `default` writes nothing if its condition does not hold, and of the blocks of a\n"
    "`match` one runs. A prompt or an expression that reads the variable then fails; `get` gives null or a default.",
    "pipeline: p\ndialect: quire\nsteps:\n- transform: {value: ctx.n * 2, when: ctx.n > 1, output: twice}\n"
    "- transform: {value: twice + 1}",
    "pipeline: p\ndialect: quire\nsteps:\n- transform: {value: ctx.n * 2, when: ctx.n > 1, output: twice}\n"
    "- transform: {value: \"get(ctx, 'twice', 0) + 1\"}",
)
FOREIGN = _lint(
    "PL211",
    "foreign-reference",
    "A prompt refers to a value as another format does: `{{item}}`, `{input:x}`, or `{inputs.x}` for `{ctx.x}`.",
    "It is sent to the model literally. References are `{ctx.x}`, `{item}`, `{pipe}` and `{variable}`. Braces are\n"
    "reported only around names that the pipeline has; `{{ctx.x}}` is the escape of `{ctx.x}` (PL202).",
    "- for_each:\n    over: ctx.docs\n    on_error: abort\n    do: {agent: {prompt: 'Summarise {{item}}.'}}\n"
    "    collect: {transform: {value: pipe}}",
    "- for_each:\n    over: ctx.docs\n    on_error: abort\n    do: {agent: {prompt: 'Summarise {item}.'}}\n"
    "    collect: {transform: {value: pipe}}",
    stops=True,
)


_note = partial(make, Severity.NOTE)

NOT_PORTABLE = _note(
    "PL301",
    "not-portable",
    "The document uses something that only Quire has.",
    "Other implementations of the format refuse the document, or read it differently. `quire check --portable` lists\n"
    "every such place, and fails if there is one. Without the option nothing is said.",
    'pipeline: p\ndialect: quire\nsteps:\n- transform: {value: "upper(ctx.name)"}',
    "pipeline: p\nsteps:\n- transform: {value: ctx.name}",
    portable=False,
)
