"""Prints `docs/reference/tools-list.md`: every built-in tool, from the table in the program.

python -m tests.docs.tools_page > docs/reference/tools-list.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from quire.plan.built_in_tools import BUILT_IN_TOOLS, MEANT_TOOLS, RESULTS, BuiltInTool
from quire.trust.capabilities import capability, flat_name

INTRODUCTION = """\
# Built-in tools

Every built-in tool with its names, its class, its tier and its arguments. Made from the program.
[Tools](../guides/tools.md) explains how documents call them, [permissions](../guides/permissions.md) how they are
granted, [limits](limits.md#tools) how much they may read and write.

- **Class**: `read` changes nothing; `idempotent` may be repeated with the same result; `write` may not. After a crash
  `write` calls follow `runs.on_uncertain`.
- **Tier**: how dangerous the tool is for a signed directive: `safe`, `write`, `elevated`.
- **Granted**: *always*; *in a project folder* (not in the home folder); *on request*: only with `--allow`,
  `[tools] allow` or a directive's permissions. `--allow NAME=DETAIL` narrows a grant.
"""

GRANTED = {"always": "always", "in a workspace": "in a project folder", "on request": "on request"}
DETAILS = {
    "host": "a host",
    "place": "a protected place",
    "sandbox": "`unsandboxed`, `network`, `env:NAME,NAME`",
    "": "",
}


_FILES = "Does not follow links. Files are UTF-8; a file with zero bytes is not text."
_HTTP = """\
- A host is looked up once, and all its addresses are checked: loopback, private, link-local and reserved ones are
  refused, at redirects too, unless granted as `HOST[:PORT]`. Proxy settings of the environment are ignored.
- Headers whose name sounds like a key, `Host` and the like, and line breaks are refused in documents (PL113);
  [`[http."HOST"]`](configuration.md#keys) adds keys. HOST is an https host at its usual port, or `HOST:PORT`; http
  counts too on this machine, and elsewhere as `[http."http://HOST"]`. Such headers stay with their origin and do not
  return at a later redirect."""
_STATE = """\
The values are a file in the user folder, `state/`, one for each path of a project folder; in a cluster each worker
has its own. Concurrent runs change it one after the other, so reading and then writing may overwrite. A directive
needs `rye.state.get` or `rye.state.set`. A file that cannot be read fails the step and stays."""

NOTES = {
    "file__edit_lines": "A line that changed since it was read has another id. Empty `new_content` removes the lines.",
    "file__glob": _FILES,
    "file__grep": f"{_FILES} Does not look into `.git`, `.venv` and `.quire` unless the pattern names them.",
    "http__get": _HTTP,
    "http__send": """\
After a redirect with 301 or 302 a POST continues as GET without a body, after 303 every method; all other redirects
repeat method and body, to granted hosts only. A `json` body is sent as `application/json`, a text as `text/plain`,
unless `headers` have a `Content-Type`. A grant for all hosts does not exist. The other rules are those of
[`http__get`](#http__get).""",
    "shell": """\
A signal counts as 128 more than its number; `err` is the last 20,000 characters. A command that takes too long,
prints too much or cannot be started fails even with `check: false`. [The sandbox](../guides/tools.md#the-sandbox).""",
    "now": "The machine must know the zone. The result is recorded like every other.",
    "state__get": _STATE,
    "state__set": "See [`state__get`](#state__get).",
}


def tools_page() -> str:
    rows = [
        f"| [`{tool.name}`](#{tool.name}) | `{tool.id}` | {tool.effect} | {tool.risk} | {GRANTED[tool.granted]} "
        f"| {DETAILS[tool.detail]} |"
        for tool in BUILT_IN_TOOLS
    ]
    heads = ["| tool | id | class | tier | granted | detail of a grant |", "| --- | --- | --- | --- | --- | --- |"]
    meant = ", ".join(f"`{name}` → `{tool}`" for name, tool in MEANT_TOOLS.items())
    parts = ["\n".join([INTRODUCTION, *heads, *rows]), f"Messages about unknown names suggest these: {meant}."]
    return "\n\n".join([*parts, *("\n".join(_section(tool)) for tool in BUILT_IN_TOOLS)]) + "\n"


def _section(tool: BuiltInTool) -> Iterator[str]:
    yield from (f"## {tool.name}", "", tool.description, "")
    names = [tool.name, tool.id, *tool.aliases, flat_name(tool.id)]
    yield f"- Names: {', '.join(f'`{name}`' for name in dict.fromkeys(names))}"
    yield f"- Capability: `{capability('execute', 'tool', tool.id)}`"
    if tool.from_outside:
        yield "- Its result counts as text from outside."
    yield f"- Result: {_result(RESULTS.get(tool.id))}"
    properties: Any = tool.schema["properties"]
    if properties:
        unless, required = _required(tool.schema)
        yield from ("", "| argument | type | meaning |", "| --- | --- | --- |")
        for name, schema in properties.items():
            marks = f", required{unless}" if name in required else ""
            yield f"| `{name}` | {_kind(schema)}{marks} | {schema.get('description', '')} |"
    if tool.name in NOTES:
        yield from ("", NOTES[tool.name])


def _required(schema: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the required arguments, and the words about the argument that replaces them."""
    if "else" in schema:
        return f" without `{schema['if']['required'][0]}`", schema["else"]["required"]
    return "", list(schema.get("required", ()))


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    match schema.get("type"):
        case "array":
            return f"list of {_kind(schema['items'])}"
        case "object" if "properties" in schema:
            return "{" + ", ".join(f"`{name}`" for name in schema["properties"]) + "}"
        case "object":
            return "map"
        case "integer" if "maximum" in schema:
            return f"{schema['minimum']:,} to {schema['maximum']:,}"
        case kind:
            return {"string": "text", "integer": "whole number", None: "any value"}.get(kind, str(kind))


def _result(schema: Mapping[str, Any] | None) -> str:
    return "any value" if schema is None else _kind(schema)


if __name__ == "__main__":
    print(tools_page(), end="")
