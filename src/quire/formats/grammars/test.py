"""How a test of a document is written."""

from __future__ import annotations

TEXT = """\
# How to write a test of a document

A test is a YAML file `x.test.yaml` beside the document `x.playbook.md`, `x.yaml` or the directive `x`. It lists cases.
Each case scripts the model, the tools and the people, runs the document with them, and says what must be seen. Nothing
is asked of a real model. For this playbook

````text
# Tagline

## INPUTS

- `product` (string): The product

## STEP 1: Draft

Write a tagline for {{product}}.

@output(line)

## STEP 2: Choose

@elicit(confirm, "Take {{line}}?")

@output(choice)

## STEP 3: Polish

```if choice == "yes"```

### STEP 3a: Polish

Polish this line: {{line}}

```endif```
````

a test is:

```yaml
document: tagline.playbook.md
defaults:
  inputs: {product: a bakery}
  model: {"1": Bread.}
cases:
  - name: a yes polishes the line
    answers: {"2": "yes"}
    model: {"3a": "Bread, then."}
    expect:
      output: "Bread, then."
      asked: {"2": Take Bread.?}
      prompts: {"1": {contains: a bakery}, "3a": {contains: Bread.}}
  - name: a no keeps it
    answers: {"2": "no"}
    expect: {steps: {"3a": skipped}, named: {line: Bread.}, prompts: {"1": {contains: a bakery}}}
  - name: the model fails
    model: {"1": {error: {kind: overloaded}}}
    expect: {status: failed, exit: 3, error: {contains: overloaded}}
  - name: an answer comes two days later
    model: {"3a": x}
    expect: {status: awaiting_input, exit: 4}
    then:
      - {answer: {"2": "yes"}, expect: {output: x, prompts: {"3a": {contains: Bread.}}}}
```

## Keys

- of the file: `document` (a path or a name), `defaults` (what every case begins with), `cases`, `always` (expressions),
  `coverage: {arms: 100, prompts: 100}`, `about`
- of a case: `name`, `expect`, `then`, `each` (rows, or a .csv or .jsonl file; `{row.x}` in texts), `matrix`, `crash:
  everywhere`, `tags`, `todo`, `skip`, `flaky`, `live`; and the keys of `defaults`:
- `inputs`, `answers: {STEP: ANSWER}`, `files: {PATH: TEXT}`, `allow`, `limits`, `config`, `unattended`, `clock`,
  `cassette`
- `model: {STEP: REPLY}`; a list for a step that asks again. Or a list of `{step, path, contains, turn, thread, item,
  default}` with `reply`, or `text` and `tool_calls: [{name, input}]`, or `error: {kind, message, transient}`; each may
  have `delay_ms`, `crash`, `usage`, `finish_reason` and `times`. A reply that is not text is sent as JSON.
- `tools: {NAME: TOOL}`: TOOL is `real`, or one of `{returns: VALUE}`, `{echo: true}`, `{raises: TEXT}`,
  `{sequence: [TOOL]}`, `{when: [{args: {…}, returns: VALUE}], else: TOOL}`, with `delay_ms`, `crash`, `times`, `class`.
- `expect`: `status` (completed unless said), `exit`, `output`, `artifact`, `error`, `named`, `stores`, `outputs`,
  `steps: {STEP: completed or skipped or failed}`, `prompts: {STEP: MATCH}`, `asked: {STEP: MATCH}`, `calls: {TOOL: 0 or
  [{…}]}`, `refused`, `hooks`, `files: {PATH: MATCH}`, `events`, `warnings`, `used: {model_calls: {most: 4}}`,
  `that: [!expr EXPR]`; or `expect: todo`
- each entry of `then` has one of `answer`, `resume`, `fork`, `cancel`, `advance: 48h`, `edit`, and `model`, `tools`,
  `expect`
- MATCH is a value, or `{contains, not_contains, matches, json: {"a.b": MATCH}, schema, most, least, any, all, absent}`,
  or `!expr "value == row.x"`, or `!snapshot`.

## Rules

1. Labels of steps are those of the document, in quotes: "1", "3a"; in a pipeline 1.do; in a directive the turn.
2. Look at the prompt of every step that asks a model: the scripted model answers whatever it is asked.
3. Every reply, answer and tool of a case is used; those of `defaults` may stay unused. A reply answers one call.
4. In a `for_each` or a `parallel`, replies have a step and an item: `{step: 1.do, item: 0, reply: x}`.
5. A warning of the run fails the case, unless `warnings: [{contains: TEXT}]` expects it.
6. All tools but those for files need a script. Write one case for every arm, every answer and every error.
7. Values of a playbook are `named`, those of a pipeline `stores`, those of a directive `outputs`.
"""
