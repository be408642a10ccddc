"""PL2xx: advice of `check`."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_lint = partial(make, Severity.LINT)

LITERAL_REFERENCE = _lint(
    "PL201",
    "literal-reference",
    "An argument without `!expr` holds what looks like a reference.",
    "Only prompts are filled in. An argument is passed on as it stands, braces and all, unless it is tagged `!expr`.",
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
    "Each item and each branch works on a copy of the stores, which ends with it. The `output` of the whole step\n"
    "keeps the result.",
    "- for_each:\n    over: ctx.xs\n    on_error: abort\n    do: {transform: {value: item, output: x}}\n"
    "    collect: {transform: {value: pipe}}",
    "- for_each:\n    over: ctx.xs\n    on_error: abort\n    do: {transform: {value: item}}\n"
    "    collect: {transform: {value: pipe}}\n    output: x",
)
HIDDEN_STORE = _lint(
    "PL204",
    "hidden-store",
    "A store has the name of a binding.",
    "`pipe`, `item`, `acc` and `ctx` always mean the binding, so that store can only be read as `ctx.pipe`. A store\n"
    "named `errors` hides the failures that a `collect` reads under this name.",
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
    "Mostly the callee reads another spelling of it.",
    "- call: {pipeline: report, pass: [review, review]}",
    "- call: {pipeline: report, pass: [review]}",
)
LIKELY_SLIP = _lint(
    "PL207",
    "likely-slip",
    "A name that no step writes is nearly that of a store.",
    "It is taken as an input of the pipeline, which is most likely not what is meant; a bare `{name}` in a prompt\n"
    "that is not a store is sent to the model as it stands, so there it is a warning.",
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
    "A step reads a store that may not be there, because the step that writes it can be skipped.",
    "A step with `when` and without a `default` writes nothing if its condition does not hold, and of the blocks of a\n"
    "`match` one runs. A prompt or an expression that reads the store then fails; `get` gives null or a default.",
    "pipeline: p\ndialect: quire\nsteps:\n- transform: {value: ctx.n * 2, when: ctx.n > 1, output: twice}\n"
    "- transform: {value: twice + 1}",
    "pipeline: p\ndialect: quire\nsteps:\n- transform: {value: ctx.n * 2, when: ctx.n > 1, output: twice}\n"
    "- transform: {value: \"get(ctx, 'twice', 0) + 1\"}",
)
FOREIGN = _lint(
    "PL211",
    "foreign-reference",
    "A prompt refers to a value as another format does: `{{item}}`, `{input:x}`, or `{inputs.x}` for `{ctx.x}`.",
    "The model is sent it as it stands. References are `{ctx.x}`, `{item}`, `{pipe}` and `{store}`. Braces are\n"
    "reported only around names that the pipeline has; `{{ctx.x}}` is the escape of `{ctx.x}` (PL202).",
    "- for_each:\n    over: ctx.docs\n    on_error: abort\n    do: {agent: {prompt: 'Summarise {{item}}.'}}\n"
    "    collect: {transform: {value: pipe}}",
    "- for_each:\n    over: ctx.docs\n    on_error: abort\n    do: {agent: {prompt: 'Summarise {item}.'}}\n"
    "    collect: {transform: {value: pipe}}",
    stops=True,
)
