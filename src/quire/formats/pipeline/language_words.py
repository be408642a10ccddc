"""Words for the table of the language: meanings of keys, kinds of step and bindings, and texts with places to fill in.

Only the editor and the help load them.
"""

from __future__ import annotations

KIND_MEANINGS = {
    "transform": "Computes a value and does nothing else.",
    "tool": "Calls a tool by its name.",
    "shell": "Runs a command in a sandbox, if that is allowed.",
    "agent": "Gives an agent one turn: asks a model.",
    "call": "Runs another document by its name. It sees only what `pass` lists.",
    "match": "Runs the target whose label is the text of a value.",
    "fold": "Goes through a list one by one; `do` gives the next `acc`.",
    "for_each": "Does one step for each item, side by side, then `collect` once with all results.",
    "parallel": "Does named branches side by side, then `collect` once with their results by name.",
    "steps": "Several steps where one is expected. Its value is that of the last one.",
    "repeat": "Does a step again until an expression holds, at most `max` times.",
    "fail": "Fails the run with a message.",
    "stop": "Ends the pipeline well, before its last step.",
}

KEYS = {
    "pipeline": "The name of the pipeline.",
    "description": "Its purpose, in a sentence.",
    "dialect": "`quire` allows what only Quire has: blocks, conditions, loops, typed inputs, more functions.",
    "input": "The inputs with their types. Without it, every `ctx.NAME` that no step has written is an input.",
    "steps": "The steps, one after the other. Each begins with `- ` and has one key, its kind.",
    "schema": "The name of a schema of this file, which the result has to fit.",
    "fields": "The fields, each with its type.",
    "value": "An expression: the value of the step.",
    "output": "The name of the variable that gets the result.",
    "name": "The name of the tool.",
    "args": "The arguments: literal values, or `!expr` and an expression.",
    "command": "A text for `/bin/sh`, a list of a program and its arguments, or `!expr` and such a list.",
    "prompt": "The text that the model gets. `{path}` is replaced by a value; `!file PATH` takes it from a file.",
    "identity": "The agent of `[agents.NAME]` in quire.toml: its model, its system prompt and its tools.",
    "capabilities": "Reduces the tools of the agent to those that match `tools`.",
    "tools": "Names of tools, or patterns such as `file__*`.",
    "pass": "The values for the called document: a list of variables, or names with expressions.",
    "on": "An expression; its text chooses the case.",
    "cases": "Targets by label. Labels are written as Python writes values: `True`, `None`, `3`.",
    "over": "An expression that gives the list.",
    "items": "The list as literal values.",
    "init": "An expression: `acc` of the first item or round.",
    "do": "The step that is done each time.",
    "collect": "A step on all results, which are its `pipe`.",
    "branches": "Steps by name, done side by side.",
    "max_parallel": "How many items are under way at once; 8 without it.",
    "max_items": "The most items. It bounds the cost of the parallel items.",
    "on_error": "After a failure: `abort`, `continue`, `retry(N)`, or in the dialect `retry(N), continue`.",
    "when": "An expression: if it does not hold, the step is skipped.",
    "title": "A few words that name the step in all views.",
    "timeout": "The time that the step may take: `30s`, `5m`, `1h`.",
    "until": "An expression on `acc`, the result of the round: the loop ends when it holds.",
    "max": "The most rounds.",
    "on_max": "`fail` (without it), or `keep` the last result, if `until` never held.",
    "message": "The message of the failure: a text, or `!expr` and an expression.",
    "stdin": "The input of the command, instead of the incoming value.",
    "env": "Names of environment variables that the command needs. Values are never written into a document.",
    "cwd": "A folder of the workspace.",
    "check": "`false`: the value is `{code, out, err}`, and another code than 0 is not a failure.",
    "text": "`true`: the output stays text even where it is JSON.",
    "model": "A tier, or a model that may be used anyway.",
    "turns": "The most turns of the agent.",
    "max_tokens": "The most tokens of a reply.",
    "temperature": "From 0 to 2.",
    "type": "`string`, `number`, `bool`, `enum`, `list`, `object` or `ref`.",
    "values": "The values of an enum.",
    "of": "The type of the items of a list.",
    "required": "`false` if the field may be missing.",
    "minimum": "The smallest number that fits.",
    "maximum": "The largest number that fits.",
    "max_length": "The most characters.",
    "pattern": "A pattern that occurs in the text.",
}

_OWN = {
    ("document", "schema"): "The name of the schema.",
    ("body", "default"): "An expression: the value after a failure that is survived.",
    ("field", "default"): "The value of an input that is not given.",
    ("field", "schema"): "The schema that a `ref` means.",
    ("field", "description"): "The meaning of the value; models read it.",
    ("target", "pipeline"): "The name of the pipeline, playbook or directive to run. It is never computed.",
    ("target", "steps"): "Steps to run in this case.",
    ("match", "default"): "The target if no case fits; in the dialect also an expression, the value itself.",
    ("call", "pipeline"): "The name of the pipeline, playbook or directive to run. It is never computed.",
    ("stop", "value"): "An expression: the result of the pipeline; without it, the incoming value.",
    ("steps", "do"): "The steps of the block.",
}

SNIPPETS = {
    "value": '"${{{0}:expression}}"',
    "on": '"${{{0}:expression}}"',
    "over": '"${{{0}:ctx.list}}"',
    "init": '"${{{0}:null}}"',
    "until": '"${{{0}:acc}}"',
    "when": '"${{{0}:expression}}"',
    "title": '"${{{0}:title}}"',
    "default": '"${{{0}:null}}"',
    "prompt": '"${{{0}:prompt}}"',
    "name": "${{{0}:tool}}",
    "command": "${{{0}:command}}",
    "pipeline": "${{{0}:pipeline}}",
    "on_error": "${{{0}|abort,continue,retry(2)|}}",
    "max": "${{{0}:3}}",
    "max_items": "${{{0}:20}}",
    "max_parallel": "${{{0}:4}}",
    "output": "${{{0}:name}}",
    "message": "${{{0}:message}}",
    "args": "{{${{{0}:name}}: ${{{1}:value}}}}",
    "pass": "[${{{0}:name}}]",
    "cases": "{{${{{0}:label}}: {{pipeline: ${{{1}:pipeline}}}}}}",
    "do": '{{transform: {{value: "${{{0}:item}}"}}}}',
    "collect": '{{transform: {{value: "${{{0}:pipe}}"}}}}',
    "branches": '{{${{{0}:name}}: {{agent: {{prompt: "${{{1}:prompt}}"}}}}}}',
    "capabilities": "{{tools: [${{{0}:tool}}]}}",
    "timeout": "${{{0}:30s}}",
    "on_max": "${{{0}|fail,keep|}}",
    "dialect": "quire",
    "type": "${{{0}|string,number,bool,enum,list,object,ref|}}",
    "required": "false",
    "check": "false",
    "text": "true",
    "values": "[${{{0}:value}}]",
    "of": "{{type: ${{{0}:string}}}}",
    "fields": "{{${{{0}:name}}: {{type: ${{{1}:string}}}}}}",
    "schema": "${{{0}:Name}}",
}
"""The value of a key with places to fill in, numbered from `{0}` on."""

IN_SNIPPETS: dict[str, tuple[str, ...]] = {
    "transform": ("output",),
    "tool": ("args", "output"),
    "shell": ("output",),
    "agent": ("output",),
    "call": ("pass", "output"),
    "fold": ("over",),
    "for_each": ("over", "output"),
    "parallel": ("output",),
    "repeat": ("output",),
    "stop": ("value",),
}
"""The keys that the snippet of a kind has beside those that it needs."""

BINDINGS = {
    "ctx": "The variables: the inputs, and the outputs of earlier steps.",
    "pipe": "The value of the step before; in `collect` of a `for_each`, the list of all results.",
    "item": "The item of the `for_each` or `fold` around.",
    "acc": "The result so far: of the items before in a `fold`, of the round before in a `repeat`.",
    "round": "The number of the round, from 1.",
    "errors": "Failures that were survived.",
}

SEED_FUNCTIONS = {
    "map": ("map(list, item -> value)", "The list of the values that the lambda gives."),
    "filter": ("filter(list, item -> test)", "The items for which the test holds."),
    "all": ("all(list, item -> test)", "True if the test holds for all items."),
    "any": ("any(list, item -> test)", "True if the test holds for an item."),
    "find": ("find(list, item -> test)", "The first item for which the test holds; null without one."),
    "count": ("count(value)", "The number of items, keys or characters."),
    "sum": ("sum(list)", "The sum of numbers."),
    "join": ("join(list, separator)", "The items as one text."),
    "get": ("get(map, 'a.b', default)", "The value at a path of keys; null or the default if it is missing."),
}
"""The functions that every pipeline has."""


def meaning(place: str, step: str, key: str) -> str:
    """Return what a key means; `place` is the kind of the mapping, `step` the kind of the step around it."""
    if place == "body" and (step, key) in _OWN:
        return _OWN[step, key]
    return _OWN.get((place, key)) or KEYS.get(key, "")
