"""How a pipeline of the Quire dialect is written."""

from __future__ import annotations

TEXT = """\
# How to write a pipeline in the Quire dialect

A pipeline is YAML. It begins with the line `pipeline:` and a name, then the line `dialect: quire`, perhaps its inputs,
and the list `steps:`. A small one:

```yaml
pipeline: describe
dialect: quire
input:
  country: {type: string}
  cups: {type: number, minimum: 1, default: 2}
steps:
  - transform: {value: "text(ctx.cups) + ' cups of tea from ' + ctx.country", output: title}
  - agent: {prompt: "Write a sentence about {title}.", output: sentence}
  - tool: {name: file__write, args: {path: tea.txt, content: !expr sentence}}
```

One with a typed reply, a loop that ends when the reply is good enough, and an early end; schemas come first, with a
line of `---` after each:

```yaml
schema: Draft
fields:
  text: {type: string, max_length: 500}
  score: {type: number, minimum: 0, maximum: 10, description: "How good it is."}
---
pipeline: write_well
dialect: quire
input: {topic: {type: string}, least: {type: number, default: 8}}
steps:
  - repeat:
      init: "{text: '', score: 0}"
      do:
        steps:
          - agent: {prompt: "Improve this text on {ctx.topic}: {acc.text}", schema: Draft, on_error: retry(2)}
      until: "acc.score >= ctx.least"
      max: 4
      on_max: keep
      output: best
  - stop: {value: "best.text", when: "best.score >= ctx.least"}
  - fail: {message: !expr "'only ' + text(best.score) + ' points after four rounds'"}
```

## Steps

Each step is an item of the list and has one key, its kind. All other keys stand inside the braces of the kind. Those in
[ ] may be left out. Every kind also takes `when: EXPR`: if that is false the step is skipped.

- `transform: {value: EXPR, [output: NAME]}` computes a value.
- `tool: {name: TEXT, [args: {NAME: ARG}], [schema: NAME], [output: NAME], [on_error: ON_ERROR], [default: EXPR],
  [timeout: 30s]}` calls a tool: `file__read` (path), `file__write` (path, content), `ask` (a person: prompt; type:
  input, confirm or select; options), or another by its name.
- `shell: {command: ARG, [stdin: ARG], [env: [NAME]], [cwd: ARG], [check: false], [text: true], [schema: NAME],
  [output: NAME], [on_error: ON_ERROR], [default: EXPR], [timeout: 30s]}` runs a command, if that is allowed; with
  `check: false` its value has `code`, `out` and `err`.
- `agent: {prompt: TEMPLATE, [schema: NAME], [capabilities: {tools: [NAME]}], [identity: NAME], [output: NAME],
  [model: NAME], [turns: NUMBER], [max_tokens: NUMBER], [temperature: NUMBER], [on_error: ON_ERROR], [default: EXPR],
  [timeout: 5m]}` asks a model. The reply is text; with a schema it is an object with those fields.
- `call: {pipeline: NAME, [pass: [NAME]], [output: NAME], [on_error: ON_ERROR], [default: EXPR], [timeout: 5m]}` runs a
  registered pipeline.
- `match: {on: EXPR, cases: {LABEL: TARGET}, [default: TARGET], [output: NAME], [on_error: ON_ERROR]}` runs the target
  whose label is the value; a TARGET is `{steps: [STEP]}` or `{pipeline: NAME, pass: [NAME]}`; labels of a bool are
  "True" and "False".
- `steps: {do: [STEP], [output: NAME], [on_error: ON_ERROR], [default: EXPR]}` is a block where one step is expected;
  its value is the last step's. `steps: [STEP]` is the short form.
- `repeat: {[init: EXPR], do: STEP, until: EXPR, max: NUMBER, [on_max: fail or keep], [output: NAME]}` does a step
  again, until the expression holds; `acc` is the last result, `round` counts from 1.
- `fold: {[over: EXPR | items: [VALUE]], init: EXPR, do: STEP, output: NAME, [max_items: NUMBER]}` goes through a list
  in order; `do` is a step whose value is the next `acc`: `{transform: {value: "acc + item"}}`.
- `for_each: {[over: EXPR | items: [VALUE]], on_error: ON_ERROR, do: STEP, collect: STEP, [max_parallel: NUMBER],
  [max_items: NUMBER], [default: EXPR], [output: NAME]}` does a step for each `item`, side by side; in `collect`, `pipe`
  is the list of results.
- `parallel: {branches: {NAME: STEP}, collect: STEP, [on_error: ON_ERROR], [default: EXPR], [output: NAME]}` does
  different steps side by side; in `collect`, their results are read by name.
- `fail: {message: ARG}` fails the run.
- `stop: {[value: EXPR]}` ends the pipeline well, with that result.

ON_ERROR is `continue`, `abort`, `retry(2)` or `"retry(2), continue"`; `default` is the value after a failure that is
survived. A field or an input is `{type: string}`, `{type: number}`, `{type: bool}`, `{type: enum, values: [a, b]}`,
`{type: list, of: {type: string}}`, `{type: object, fields: {…}}` or `{type: ref, schema: NAME}`, and may have
`description`, `required: false`, `minimum`, `maximum`, `max_length`, `pattern`, `max_items`; an input also `default`.

## Values

EXPR is an expression, always in double quotes; a text in it stands in single quotes. `ctx.NAME` is an input or the
output of an earlier step, `pipe` the result of the step before, `errors.NAME` the survived failure of the step with
that output. Operators: `and or not == != < > <= >= + - * /`; a choice is `"test and 'this' or 'that'"`. Functions:

- `map(list, x -> x.name)`, `filter`, `find`, `any`, `all`; `count(list)`, `sum(list)`, `join(list, ', ')`,
  `get(ctx, 'a.b', default)`
- texts: `text(5)` makes a text, `number('5')`, `json(value)`, `parse(text)`, `format('{} of {}', a, b)`, `split`,
  `trim`, `lower`, `upper`, `replace(text, old, new)`, `contains`, `starts_with`, `ends_with`
- lists: `first`, `last`, `slice(list, from, to)`, `sort(list, x -> key)`, `reverse`, `distinct`,
  `group(list, x -> key)`, `flatten`, `zip`, `range(3)`; maps: `keys`, `values`, `entries`, `merge(a, b)`
- numbers: `min`, `max`, `abs`, `round(number, 2)`, `floor`, `ceil`

TEMPLATE is plain text with `{ctx.NAME}`, `{NAME}`, `{pipe}`, `{item}` or `{acc.NAME}` in it. Only prompts are filled in
like that. ARG is a plain value, or `!expr EXPR`, before the whole value, for a computed one.

## Rules

1. Every definition has `pipeline:`, `dialect: quire` and `steps:`. A step never stands outside of a list of steps.
2. Names of pipelines, schemas and tools are written out, never computed. A schema that a step names is defined in the
   same text. A result that a later step reads has an `output`.
3. With `input:`, steps read no other inputs. A called pipeline sees only what `pass` names.
4. `repeat` needs `until` and `max`; `for_each` needs `on_error` and `collect`; `fold` needs `init` and `output`.
5. Items and branches do not see each other; only `collect` sees all results. `stop` does not stand in them.
6. The result of the pipeline is the result of its last step, or that of `stop`.
7. An `agent` of an inline definition has no `model`, and no `identity` but the caller's own. A `tool` does not launch
   pipelines: use `call`.
"""
