"""How a pipeline is written, in the language that every implementation shares."""

from __future__ import annotations

TEXT = """\
# How to write a pipeline

A pipeline is YAML. It begins with the line `pipeline:` and a name, and goes on with the list `steps:`. A small one:

```yaml
pipeline: describe
steps:
  - transform: {value: "'Tea from ' + ctx.country", output: title}
  - agent: {prompt: "Write a sentence about {title}.", output: text}
  - tool: {name: file__write, args: {path: tea.txt, content: !expr text}}
```

A pipeline with a typed reply and a loop; schemas come first, with a line of `---` after each:

```yaml
schema: Review
fields: {passed: {type: bool}, notes: {type: string}}
---
pipeline: review_drafts
description: Review every draft and join the notes on those that passed.
steps:
  - for_each:
      over: ctx.drafts
      max_items: 20
      on_error: continue
      do: {agent: {prompt: "Review this draft: {item}", schema: Review}}
      collect: {transform: {value: "filter(pipe, r -> r.passed)"}}
      output: good
  - transform: {value: "count(good) > 0 and join(map(good, r -> r.notes), ', ') or 'nothing passed'"}
```

A pipeline that asks a person, then two agents at the same time:

```yaml
pipeline: two_views
steps:
  - tool: {name: ask, args: {prompt: "Which plan?", type: input, default: tea}, output: plan}
  - parallel:
      branches:
        good: {agent: {prompt: "What is good about {plan}?"}}
        bad: {agent: {prompt: "What is bad about {plan}?"}}
      collect: {transform: {value: "{good: good, bad: bad}"}}
```

## Steps

Each step is an item of the list and has one key, its kind. All other keys stand inside the braces of the kind. Those in
[ ] may be left out.

- `transform: {value: EXPR, [output: NAME]}` computes a value.
- `tool: {name: TEXT, [args: {NAME: ARG}], [schema: NAME], [output: NAME]}` calls a tool: `file__read` (args: path),
  `file__write` (path, content), `ask` (a person: prompt; type: input, confirm or select; options), or another by its
  name. For example `tool: {name: file__read, args: {path: notes.txt}, output: notes}`.
- `shell: {command: ARG, [schema: NAME], [output: NAME]}` runs a command, if that is allowed.
- `agent: {prompt: TEMPLATE, [schema: NAME], [capabilities: {tools: [NAME]}], [identity: NAME], [output: NAME]}` asks a
  model, not a person. The reply is text; with a schema it is an object with those fields. Most agents need no schema.
- `call: {pipeline: NAME, [pass: [NAME]], [output: NAME]}` runs a registered pipeline.
- `match: {on: EXPR, cases: {LABEL: {pipeline: NAME, [pass: [NAME]]}}, [default: {pipeline: NAME}], [output: NAME]}`
  runs the pipeline whose label is the value; labels of a bool are "True" and "False".
- `fold: {[over: EXPR | items: [VALUE]], init: EXPR, do: STEP, output: NAME, [max_items: NUMBER]}` goes through a list
  in order; `do` is a step whose value is the next `acc`: `{transform: {value: "acc + item"}}`.
- `for_each: {[over: EXPR | items: [VALUE]], on_error: ON_ERROR, do: STEP, collect: STEP, [max_parallel: NUMBER],
  [max_items: NUMBER], [output: NAME]}` does a step for each `item`, side by side; in `collect`, `pipe` is the list of
  results.
- `parallel: {branches: {NAME: STEP}, collect: STEP, [on_error: ON_ERROR], [output: NAME]}` does different steps side by
  side; in `collect`, their results are read by name.

ON_ERROR is `continue`, `abort` or `retry(2)`. A field of a schema is `{type: string}`, `{type: number}`,
`{type: bool}`, `{type: enum, values: [a, b]}`, `{type: list, of: {type: string}}`, `{type: object, fields: {…}}` or
`{type: ref, schema: NAME}`.

## Values

EXPR is an expression, always in double quotes; a text in it stands in single quotes.

- `ctx.NAME` is an input or the output of an earlier step, `pipe` the result of the step before; the first step has no
  `pipe`. A value has no `=`: the result of a step gets its name from `output`.
- `"'Hello, ' + ctx.name + '!'"`: `+` joins texts or lists, and adds numbers. A number is not joined to a text.
- `"ctx.review.passed and 'yes' or 'no'"` is a choice. Operators: `and or not == != < > <= >= + - * /`.
- `"map(ctx.rows, r -> r.name)"`, `"filter(ctx.rows, r -> r.n > 5)"`, `find`, `any` and `all` alike,
  `"count(ctx.rows)"`, `"sum(ctx.numbers)"`, `"join(ctx.words, ', ')"`, `"get(ctx, 'a.b', 'default')"`. Other functions,
  `|`, indexes and methods do not exist.

TEMPLATE is plain text with `{ctx.NAME}`, `{NAME}`, `{pipe}` or `{item}` in it. Only prompts are filled in like that.
ARG is a plain value, or `!expr EXPR`, before the whole value, for a computed one.

## Rules

1. Every definition has `pipeline:` and `steps:`; a step never stands outside of `steps`.
2. Names of pipelines, schemas and tools are written out, never computed. A schema that a step names is defined in the
   same text. A result that a later step reads has an `output`.
3. A called pipeline sees only what `pass` names.
4. `for_each` needs `on_error` and `collect`, `parallel` needs `collect`, `fold` needs `init` and `output`.
5. Items and branches do not see each other; only `collect` sees all results.
6. The result of the pipeline is the result of its last step.
7. An `agent` has no `identity`, or the caller's own. A `tool` does not launch pipelines: use `call`.
"""
