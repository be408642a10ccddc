"""How a pipeline is written, in the language that every implementation shares."""

from __future__ import annotations

TEXT = """\
# How to write a pipeline

A pipeline is YAML: one document that begins with `pipeline:`, and perhaps `schema:` documents before it, with a line
of `---` between them. Imitate this example.

```yaml
schema: Review
fields:
  passed: {type: bool}
  notes: {type: string}
---
pipeline: review_drafts
description: Review every draft and save what was said about those that passed.
steps:
  - for_each:
      over: ctx.drafts
      on_error: continue
      do:
        agent:
          prompt: "Review this draft for {ctx.reader}: {item}"
          schema: Review
      collect:
        transform: {value: "pipe"}
      output: reviews
  - transform:
      value: "join(map(filter(reviews, r -> r.passed), r -> r.notes), ', ')"
      output: praise
  - tool:
      name: file__write
      args:
        path: praise.txt
        content: !expr "'Passed: ' + praise"
```

## Steps

`steps:` is a list. A step has one key, its kind; the keys below belong inside it. Those in [ ] may be left out.

- `transform: {value: EXPR, [output: NAME]}` computes a value.
- `tool: {name: TEXT, [args: {NAME: ARG}], [schema: NAME], [output: NAME]}` calls a tool: `file__read` (args path),
  `file__write` (path, content), `ask` (prompt; type: input, confirm or select; options), or another by its name.
- `shell: {command: ARG, [schema: NAME], [output: NAME]}` runs a command, if that is allowed.
- `agent: {prompt: TEMPLATE, [schema: NAME], [capabilities: {tools: [NAME]}], [identity: NAME], [output: NAME]}` asks a
  model. With a schema the reply is an object with those fields, else text.
- `call: {pipeline: NAME, [pass: [NAME]], [output: NAME]}` runs a registered pipeline.
- `match: {on: EXPR, cases: {LABEL: {pipeline: NAME, [pass: [NAME]]}}, [default: {pipeline: NAME}], [output: NAME]}`
  runs the pipeline whose label is the value; labels of a bool are "True" and "False".
- `fold: {[over: EXPR | items: [VALUE]], init: EXPR, do: STEP, output: NAME, [max_items: NUMBER]}` goes through a list
  in order: `do` computes the next `acc` from `acc` and `item`.
- `for_each: {[over: EXPR | items: [VALUE]], on_error: ON_ERROR, do: STEP, collect: STEP, [max_parallel: NUMBER],
  [max_items: NUMBER], [output: NAME]}` does a step for each `item`, side by side; in `collect`, `pipe` is the list of
  results.
- `parallel: {branches: {NAME: STEP}, collect: STEP, [on_error: ON_ERROR], [output: NAME]}` does different steps side by
  side; in `collect`, the results are read by the names of the branches.

ON_ERROR is `continue`, `abort` or `retry(2)`. The fields of a schema are `{type: string}`, `{type: number}`,
`{type: bool}`, `{type: enum, values: [a, b]}`, `{type: list, of: {type: string}}`, `{type: object, fields: {…}}` or
`{type: ref, schema: NAME}`.

## Values

EXPR is an expression in double quotes: `value: "'Hello, ' + ctx.name + '!'"`.

- `ctx.NAME` is an input or the output of an earlier step, `pipe` the result of the step before. `NAME` alone works too.
- A text stands in single quotes inside the double quotes. `+` joins texts or lists; a number is not joined to a text.
- Operators: `and or not == != < > <= >= + - * /`. A choice is `test and 'this' or 'that'`.
- Functions, and no others: `map(list, x -> x.name)`, `filter(list, x -> x.n > 5)`, `find`, `any` and `all` alike,
  `count(list)`, `sum(list)`, `join(list, ', ')`, `get(ctx, 'a.b', 'default')`. There is no `|`, no index and no method.
- An object is `"{facts: facts, tone: tone}"`.

TEMPLATE is a text in which `{ctx.NAME}`, `{NAME}`, `{pipe}` and `{item}` are filled in. Only prompts are filled in.
ARG is a value that is passed on as it stands, or `!expr EXPR` for a computed one; `!expr` stands before the whole
value.

## Rules

1. Names of pipelines, schemas and tools are written out, never computed.
2. A called pipeline sees only what `pass` names.
3. `for_each` needs `on_error`; `fold` needs `output`.
4. Items and branches do not see each other; only `collect` sees all results.
5. The result of the pipeline is the result of its last step.
6. An `agent` has no `identity`, or the caller's own. A `tool` does not launch pipelines: use `call`.
"""
