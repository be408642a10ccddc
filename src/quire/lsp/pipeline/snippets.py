"""Texts with places to fill in, for kinds of step and for keys."""

from __future__ import annotations

from quire.formats.pipeline.kinds import NEEDED

_VALUES = {
    "value": '"${{{0}:expression}}"',
    "on": '"${{{0}:expression}}"',
    "over": '"${{{0}:ctx.list}}"',
    "init": '"${{{0}:null}}"',
    "until": '"${{{0}:acc}}"',
    "when": '"${{{0}:expression}}"',
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
_ALSO = {"for_each": ("over", "output"), "agent": ("output",), "tool": ("args", "output"), "transform": ("output",)}
_ALSO |= {"call": ("pass", "output"), "shell": ("output",), "fold": ("over",), "parallel": ("output",)}
_ALSO |= {"repeat": ("output",), "match": (), "steps": (), "stop": ("value",)}
_ORDER = (
    "name",
    "args",
    "prompt",
    "pipeline",
    "pass",
    "command",
    "on",
    "cases",
    "over",
    "max_items",
    "on_error",
    "init",
)


def body_snippet(place: str, step: str, key: str, *, flow: bool) -> str:
    """Return a key with a value to fill in."""
    if place == "document" and key in ("steps", "input", "fields"):
        return f"{key}:\n  " if not flow else f"{key}: "
    if step == "steps" and key == "do":
        return f"{key}: " if flow else f"{key}:\n  - "
    value = _filled(key, 1)[0]
    return f"{key}: {value or '$1'}"


def step_snippet(kind: str, column: int, *, flow: bool, dialect: bool) -> str:
    """Return a step of a kind with the keys that it needs. Steps with other steps in them are written over several
    lines, indented below the column of the kind."""
    keys = list(dict.fromkeys([*NEEDED[kind], *_ALSO.get(kind, ())]))
    keys.sort(key=lambda key: (_ORDER.index(key) if key in _ORDER else len(_ORDER), key == "output"))
    parts: list[str] = []
    number = 1
    for key in keys:
        if kind == "steps":
            value, used = '[{transform: {value: "${1:expression}"}}]', 1
        elif key == "cases" and dialect:
            value, used = (
                f'{{${{{number}:label}}: {{steps: [{{transform: {{value: "${{{number + 1}:expression}}"}}}}]}}}}',
                2,
            )
        else:
            value, used = _filled(key, number)
        parts.append(f"{key}: {value}")
        number += used
    if flow or (len(parts) <= 3 and kind not in ("for_each", "fold", "parallel", "match", "repeat")):
        return f"{kind}: {{{', '.join(parts)}}}"
    # The editor indents the lines of a snippet like the line of the cursor, which begins with a dash in a list.
    lines = "\n".join(f"    {one}" for one in parts)
    return f"{kind}:\n{lines}"


def _filled(key: str, number: int) -> tuple[str, int]:
    """Return the value of a key with places from a number on, and how many there are."""
    form = _VALUES.get(key, "")
    if not form:
        return f"${{{number}}}", 1
    used = 2 if "{{{1}" in form or "{1}" in form else 1 if "{0}" in form else 0
    return form.format(number, number + 1), used
