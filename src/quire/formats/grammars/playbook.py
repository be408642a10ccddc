"""How a playbook is written."""

from __future__ import annotations

TEXT = """\
# How to write a playbook

A playbook is a Markdown file, `NAME.playbook.md`. A model performs its steps from top to bottom, one call for each
step, and sees the results of all earlier steps. Imitate this example.

`````markdown
# Answer a letter

Writes a reply to a letter and lets a person approve it.

## SYSTEM

You answer letters for a small shop. Be friendly and exact.

## INPUTS

- `letter` (text): The letter to answer
- `tone` (enum: warm, formal): How the reply should sound
- `words` (number: 120): The length of the reply

## STEP 1: Understand the letter

Say what the writer of this letter wants:

{{letter}}

@output(kind: enum, "question", "complaint", extract:"kind")

## STEP 2: Decide

```if kind == "complaint"```

### STEP 2a: Find out what to offer

Name one thing that we can offer the writer.

```else```

### STEP 2b: Find the answer

Answer the question in one sentence.

```endif```

## STEP 3: Ask

@elicit(select, "This is a {{kind}}. Who signs the reply?", "the owner", "the team", default:"the team")
@output(signer)

## STEP 4: Write the reply

Write a {{tone}} reply of about {{words}} words, signed by {{signer}}.

## ARTIFACTS

type: markdown
`````

## Grammar

```text
PLAYBOOK   a title, then sections in any order; a section ends at the next ##
  # TITLE                          required, first; text below it is for people only
  ## SYSTEM                        instructions for every step, used as they stand
  ## INPUTS                        lines of the form  - `NAME` (TYPE): DESCRIPTION
  ## STEP N: TITLE                 at least one; N counts 1, 2, 3
  ## ARTIFACTS                     from: NAME takes the result of that @output; without it, that of the last step
                                   type: markdown | json | mermaid | chartjs | html_css | javascript | typescript
TYPE       string | text | number | boolean, or with a default  string: DEFAULT, or  enum: OPTION, OPTION
STEP       text for the model, and lines that begin with @, at most one of each kind
  @output(NAME)                                    keep the result under a name
  @output(NAME: number | boolean | json)           keep it, and check its type
  @output(NAME: enum, "OPTION", "OPTION")          one of these
  @output(NAME, extract:"FIELD")                   keep one field of a JSON object at the end of the reply
  @elicit(input | confirm, "QUESTION")             ask a person; the answer is the result of the step
  @elicit(select, "QUESTION", "OPTION", "OPTION")  default:"…" may come last
  @tool(SERVER, TOOL, {"NAME": "VALUE"})           call a tool instead of a model; SERVER is quire for built-in tools
  @prompt(file:PATH) | @prompt(library:ID)         put a stored text before the text of the step
  @context(none) | @context(NAME, NAME)            the earlier results that the model of this step sees; without it, all
BRANCH     lines of their own inside a step, each with three backticks on both sides:
  if NAME == "TEXT"   elif NAME != "TEXT"   else   endif
           each arm holds sub-steps:  ### STEP 2a: TITLE, then 2b, 2c
VALUE      {{NAME}} is an input or a kept result, without spaces in the braces
```

## Rules

1. `STEP` is in capitals, with a number, a colon, a space and a title.
2. Keep a result with `@output` before a condition or a `{{NAME}}` reads it. What is kept is text.
3. Conditions know `==` and `!=` and a text in double quotes, nothing else. Branches do not nest; one chain in a step.
4. An input without a default is required, and an enum always is. Do not give an `@output` the name of an input.
5. A step with `@tool` calls no model: its text is ignored. The arguments are one JSON object.
6. A step that has only `@elicit` calls no model. `no` is an answer: branch on it if the run should take another way.
7. The result of the run is the result of the last step that ran, or the one that `from:` names.
"""
