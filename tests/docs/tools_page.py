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

Every built-in tool with its names, its class, its tier and its arguments. Made from the program. [Tools](../guides/tools.md)
explains how documents call them, [permissions](../guides/permissions.md) how they are granted, [limits](limits.md#tools)
how much they may read and write.

- **Class**: `read` changes nothing; `idempotent` may be repeated with the same result; `write` may not. After a crash
  `write` calls follow `runs.on_uncertain`.
- **Tier**: how dangerous the tool is for a signed directive: `safe`, `write`, `elevated`.
- **Granted**: *always*; *in a workspace* (not in the home folder); *on request*: only with `--allow`, `[tools] allow` or
  a directive's permissions. `--allow NAME=DETAIL` narrows a grant.
"""

DETAILS = {"host": "a host", "place": "a protected place", "sandbox": "`unsandboxed`, `network`, `env:NAME,NAME`", "": ""}


def tools_page() -> str:
    rows = [
        f"| [`{tool.name}`](#{tool.name}) | `{tool.id}` | {tool.effect} | {tool.risk} | {tool.granted} "
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
