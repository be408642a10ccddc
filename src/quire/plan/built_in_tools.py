"""The built-in tools: one row for each, read by capabilities, grants, risks, specs and the connection.

Schemas of the results of built-in tools. Scripted results in document tests are held to them.

A command can print anything, and the state of a workspace is any value: `shell`, `state__get` and `state__set` have no
schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from quire.values import Value


EffectClass = Literal["read", "idempotent", "write"]
GrantedWhen = Literal["always", "in a workspace", "on request"]
Detail = Literal["", "host", "place", "sandbox"]

ASK = "ask"
FETCH = "rye/web/fetch"
SEND = "rye/http/send"
"""Not below `rye/web/`: a grant or a signature of that folder was given when it only read."""

SHELL = "rye/bash"
STATE = ("rye/state/get", "rye/state/set")
WRITE = "rye/file-system/write"
RETURN = "directive_return"
FORK = "rye/agent/threads/thread_directive"

_TEXT: Value = {"type": "string"}
_NAME: Value = {"type": "string", "minLength": 1, "maxLength": 200, "description": "the name of the value"}
_PATH: Value = {"type": "string", "description": "relative to the workspace"}


class BuiltInTool(Struct, frozen=True, kw_only=True):
    """One built-in tool: its names, and how it is described, called, granted and classified."""

    name: str
    id: str
    """The canonical id."""
    aliases: tuple[str, ...] = ()
    """Older ids that mean the same tool."""
    description: str
    schema: Mapping[str, Value]
    """The schema of the arguments."""
    effect: EffectClass
    function: str
    """`PART.METHOD` of `BuiltInConnection`, called in a thread, or the name of one of its coroutines. Empty for a tool
    that the engine itself answers."""
    risk: Literal["safe", "write", "elevated"] = "elevated"
    """The tier of the tool itself. A pattern for a folder of `rye/` counts as the most dangerous tool below it."""
    granted: GrantedWhen = "on request"
    """When a run may use it without a grant of the user: "in a workspace" excludes the home folder."""
    detail: Detail = ""
    """The kind of detail that `--allow NAME=DETAIL` accepts; `workspace/grants.py` reads the detail."""
    from_outside: bool = False
    """True if it brings in content from outside: a thread that has read some must not launch pipelines."""


def _integer(least: int, most: int, description: str) -> Value:
    return {"type": "integer", "minimum": least, "maximum": most, "description": description}


def _objects(most: int, required: list[Value], **properties: Value) -> Value:
    item: Value = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"type": "array", "minItems": 1, "maxItems": most, "items": item}


def _schema(*required: str, unless: str = "", **properties: Value) -> Mapping[str, Value]:
    """Return the schema of arguments. `unless` is a property that replaces all the required ones."""
    schema: dict[str, Value] = {"type": "object", "properties": properties, "additionalProperties": False}
    if unless:
        # Not a top-level `anyOf`, which some providers refuse in the schema of a tool.
        return schema | {"if": {"required": [unless]}, "else": {"required": list(required)}}
    return schema | {"required": list(required)}


BUILT_IN_TOOLS = (
    BuiltInTool(
        name="file__read",
        id="rye/file-system/read",
        aliases=("rye/file-system/fs_read",),
        description="Reads a text file of the workspace. The result is its text, at most 1 MB.",
        schema=_schema(
            "path",
            path=_PATH,
            offset=_integer(1, 1_000_000_000, "the first line to read, from 1"),
            limit=_integer(1, 1_000_000_000, "how many lines to read"),
            line_ids={"type": "boolean", "description": "put an id before each line, for file__edit_lines"},
        ),
        effect="read",
        function="reader.read",
        risk="safe",
        granted="in a workspace",
    ),
    BuiltInTool(
        name="file__write",
        id=WRITE,
        aliases=("rye/file-system/fs_write",),
        description=(
            "Writes a text file of the workspace, in place of what was there; or several, under files. Makes the "
            "folders above."
        ),
        schema=_schema(
            "path",
            "content",
            unless="files",
            path=_PATH,
            content=_TEXT,
            files=_objects(100, ["path", "content"], path=_PATH, content=_TEXT),
        ),
        effect="idempotent",
        function="writer.write",
        risk="write",
        granted="in a workspace",
        detail="place",
    ),
    BuiltInTool(
        name="file__edit",
        id="rye/file-system/edit",
        description=(
            "Replaces a text in a file of the workspace. The old text must be there exactly once, unless all is true."
        ),
        schema=_schema(
            "path",
            "old",
            "new",
            path=_PATH,
            old={"type": "string", "minLength": 1},
            new=_TEXT,
            all={"type": "boolean", "description": "replace every occurrence"},
        ),
        effect="write",
        function="writer.edit",
        risk="write",
        granted="in a workspace",
        detail="place",
    ),
    BuiltInTool(
        name="file__edit_lines",
        id="rye/file-system/edit_lines",
        description=(
            "Replaces lines of a file of the workspace by their ids, which file__read shows with line_ids: true. "
            "All changes are made, or none."
        ),
        schema=_schema(
            "path",
            "changes",
            path=_PATH,
            changes=_objects(
                1000,
                ["new_content"],
                line_id={"type": "string", "description": "the line to replace"},
                start_line_id={"type": "string", "description": "or the first of several lines"},
                end_line_id={"type": "string", "description": "and the last of them"},
                new_content={"type": "string", "description": "the new lines; empty takes them away"},
            ),
        ),
        effect="write",
        function="writer.edit_lines",
        risk="write",
        granted="in a workspace",
        detail="place",
    ),
    BuiltInTool(
        name="file__list",
        id="rye/file-system/ls",
        aliases=("rye/file-system/list",),
        description="Lists a folder of the workspace: the name and the type (file, folder, link, other) of each entry.",
        schema=_schema(path=_PATH),
        effect="read",
        function="finder.list",
        risk="safe",
        granted="in a workspace",
    ),
    BuiltInTool(
        name="file__glob",
        id="rye/file-system/glob",
        description=(
            "Finds files of the workspace by a pattern such as src/**/*.py; ** stands for any number of folders. "
            "Does not look into .git, .venv and .quire unless they are named."
        ),
        schema=_schema(
            "pattern",
            pattern=_TEXT,
            path={"type": "string", "description": "the folder to look in; the whole workspace by default"},
        ),
        effect="read",
        function="finder.glob",
        risk="safe",
        granted="in a workspace",
    ),
    BuiltInTool(
        name="file__grep",
        id="rye/file-system/grep",
        description="Searches the text files of the workspace line by line with a regular expression (RE2 syntax).",
        schema=_schema(
            "pattern",
            pattern=_TEXT,
            path={"type": "string", "description": "a file or a folder of the workspace; all of it by default"},
            glob={"type": "string", "description": "only files whose path in that folder fits, such as *.md"},
            include={"type": "string", "description": "the same as glob"},
            ignore_case={"type": "boolean"},
            limit=_integer(1, 1000, "how many matches to return at most; 200 by default"),
        ),
        effect="read",
        function="finder.grep",
        risk="safe",
        granted="in a workspace",
    ),
    BuiltInTool(
        name="http__get",
        id=FETCH,
        aliases=("rye/web/fetch/fetch",),
        description=(
            "Fetches an http or https address. The result has status, url, headers, and text or json, at most 1 MB."
        ),
        schema=_schema(
            "url",
            url=_TEXT,
            headers={"type": "object", "additionalProperties": {"type": "string"}},
            format={"enum": ["text", "markdown", "html"], "description": "how to give a page; html by default"},
            timeout=_integer(1, 120, "seconds to wait at most; 30 by default"),
        ),
        effect="read",
        function="fetch",
        detail="host",
        from_outside=True,
    ),
    BuiltInTool(
        name="http__send",
        id=SEND,
        description=(
            "Sends a request that changes something to an http or https address: a text as body, or a value as json. "
            "The result has status, url, headers, and text or json, at most 1 MB."
        ),
        schema=_schema(
            "method",
            "url",
            method={"enum": ["POST", "PUT", "PATCH", "DELETE"]},
            url=_TEXT,
            headers={"type": "object", "additionalProperties": {"type": "string"}},
            body={"type": "string", "description": "the text to send; not together with json"},
            json={"description": "the value to send as JSON; not together with body"},
            timeout=_integer(1, 120, "seconds to wait at most; 30 by default"),
        ),
        effect="write",
        function="send",
        detail="host",
        from_outside=True,
    ),
    BuiltInTool(
        name="shell",
        id=SHELL,
        description=(
            "Runs a command in the workspace, sandboxed, for at most 60 seconds unless timeout says more: a text by "
            "/bin/sh, a list of texts without a shell. The result is what it prints, decoded if that is JSON and text "
            "is not true. A status other than 0 is a failure; with check: false the result has code, out and err."
        ),
        schema=_schema(
            "command",
            command={"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]},
            stdin={"description": "what the command reads: a text as it is, any other value as JSON"},
            timeout=_integer(1, 600, "seconds to run at most; 60 by default"),
            working_dir={"type": "string", "description": "the folder of the workspace to run it in"},
            env={
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": 256},
                "maxItems": 100,
                "description": "the granted variables of the environment that it gets; all of them by default",
            },
            check={"type": "boolean", "description": "false: the result has code, out and err, whatever the status is"},
            text={"type": "boolean", "description": "true: what it prints stays text, even if it is JSON"},
        ),
        effect="write",
        function="run_command",
        detail="sandbox",
    ),
    BuiltInTool(
        name="now",
        id="rye/time/now",
        description="Returns the present moment: iso, date, time, weekday, unix seconds and zone, in UTC or in a zone.",
        schema=_schema(zone={"type": "string", "description": "a name of the IANA list, such as Europe/Berlin"}),
        effect="read",
        function="now",
        risk="safe",
        granted="always",
    ),
    BuiltInTool(
        name="state__get",
        id=STATE[0],
        description="Returns a value that a run in this workspace kept; the default, or null, if there is none.",
        schema=_schema("name", name=_NAME, default={"description": "the result where no value is kept"}),
        effect="read",
        function="state.get",
        risk="safe",
        granted="in a workspace",
    ),
    BuiltInTool(
        name="state__set",
        id=STATE[1],
        description=(
            "Keeps a small value for later runs in this workspace, in place of the one of that name; null removes it. "
            "The result is the value."
        ),
        schema=_schema("name", "value", name=_NAME, value={"description": "any JSON value of at most 64 KB"}),
        effect="write",
        function="state.set",
        risk="write",
        granted="in a workspace",
    ),
    BuiltInTool(
        name="ask",
        id=ASK,
        description="Asks a person and waits for the answer.",
        schema=_schema(
            "prompt",
            prompt=_TEXT,
            type={"enum": ["input", "confirm", "select"]},
            options={"type": "array", "items": {"type": "string"}},
            default={"type": "string", "description": "the answer where nobody can be asked"},
            show={"description": "a value that is shown above the question"},
            expiry={"type": "string", "description": "how long the question waits, such as 30m, 2h or 7d"},
        ),
        effect="read",
        function="",
        risk="safe",
        granted="always",
    ),
)

MEANT_TOOLS = {
    "read_file": "file__read",
    "write_file": "file__write",
    "edit_file": "file__edit",
    "fetch": "http__get",
    "bash": "shell",
    "grep": "file__grep",
}
"""Names of common tools in other programs, and the built-in tool that does the same."""

ALIASES = {alias: tool.id for tool in BUILT_IN_TOOLS for alias in (tool.name, *tool.aliases) if alias != tool.id} | {
    "rye_execute": "rye/execute",
    "rye_fetch": "rye/fetch",
    "rye_sign": "rye/sign",
    "thread_directive": FORK,
    "spawn_thread": FORK,
    "rye/agent/threads/spawn_thread": FORK,
    "rye/agent/threads/directive_return": RETURN,
}
"""Other names of a tool and the one id it is known by, also for the tools of threads."""


def built_in_tool(name: str) -> BuiltInTool | None:
    """Return the built-in tool of a name, an id or an older id; None if there is none."""
    identity = ALIASES.get(name, name)
    return next((tool for tool in BUILT_IN_TOOLS if tool.id == identity), None)


_OLD_GRANTS = {
    f"rye.execute.tool.{old.replace('/', '.')}": f"rye.execute.tool.{new.replace('/', '.')}"
    for old, new in ALIASES.items()
}


def canonical_grant(pattern: str) -> str:
    """Write a grant in its one form: dots for slashes, one `*` for several, and the tool's own id for another name."""
    pattern = re.sub(r"\*+", "*", pattern.strip().replace("/", "."))
    stem, tail = (pattern[:-2], ".*") if pattern.endswith(".*") else (pattern, "")
    return _OLD_GRANTS.get(stem, stem) + tail


_COUNT: Value = {"type": "integer", "minimum": 0}


def _object(**properties: Value) -> dict[str, Value]:
    """Return the schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_WRITTEN = _object(path=_TEXT, bytes=_COUNT, created={"type": "boolean"})
_ANSWER: dict[str, Value] = {
    "type": "object",
    "properties": {
        "status": {"type": "integer", "minimum": 100, "maximum": 599},
        "url": _TEXT,
        "headers": {"type": "object", "additionalProperties": _TEXT},
        "text": _TEXT,
        "json": {},
    },
    "required": ["status", "url", "headers"],
    "additionalProperties": False,
}

RESULTS: Mapping[str, Mapping[str, Value]] = {
    "rye/file-system/read": {"type": "string"},
    WRITE: {
        "anyOf": [
            _WRITTEN,
            _object(files_written=_COUNT, files_total=_COUNT, results={"type": "array", "items": _WRITTEN}),
        ]
    },
    "rye/file-system/edit": _object(path=_TEXT, replaced=_COUNT),
    "rye/file-system/edit_lines": _object(path=_TEXT, changes_applied=_COUNT, lines_changed=_COUNT, output=_TEXT),
    "rye/file-system/ls": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"name": _TEXT, "type": {"enum": ["file", "folder", "link", "other"]}, "bytes": _COUNT},
            "required": ["name", "type"],
            "additionalProperties": False,
        },
    },
    "rye/file-system/glob": {"type": "array", "items": _TEXT},
    "rye/file-system/grep": _object(matches={"type": "array"}, truncated={"type": "boolean"}),
    FETCH: _ANSWER,
    SEND: _ANSWER,
    "rye/time/now": _object(iso=_TEXT, date=_TEXT, time=_TEXT, weekday=_TEXT, unix={"type": "integer"}, zone=_TEXT),
}
"""By the canonical id of the tool."""
