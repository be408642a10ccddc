"""The built-in tools as the gate and a model see them: names, descriptions, schemas, effect classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.tools.registry import ToolSpec
from quire.trust.capabilities import canonical

if TYPE_CHECKING:
    from quire.engine.ports import EffectClass
    from quire.values import Value

_TEXT: Value = {"type": "string"}
_PATH: Value = {"type": "string", "description": "relative to the workspace"}


def _integer(least: int, most: int, description: str) -> Value:
    return {"type": "integer", "minimum": least, "maximum": most, "description": description}


def _spec(
    name: str,
    description: str,
    effect: EffectClass,
    required: tuple[str, ...],
    unless: str = "",
    **properties: Value,
) -> tuple[str, ToolSpec]:
    """Make the spec of a tool. `unless` is a property that replaces all the required ones."""
    schema: dict[str, Value] = {"type": "object", "properties": properties, "additionalProperties": False}
    if unless:
        # Not a top-level `anyOf`, which some providers refuse in the schema of a tool.
        schema |= {"if": {"required": [unless]}, "else": {"required": list(required)}}
    else:
        schema["required"] = list(required)
    return name, ToolSpec(canonical(name), name, description, schema, effect)


SPECS: Mapping[str, ToolSpec] = dict(
    (
        _spec(
            "file__read",
            "Reads a text file of the workspace. The result is its text, at most 1 MB.",
            "read",
            ("path",),
            path=_PATH,
            offset=_integer(1, 1_000_000_000, "the first line to read, from 1"),
            limit=_integer(1, 1_000_000_000, "how many lines to read"),
            line_ids={"type": "boolean", "description": "put an id before each line, for file__edit_lines"},
        ),
        _spec(
            "file__write",
            "Writes a text file of the workspace, in place of what was there; or several, under files. Makes the "
            "folders above.",
            "idempotent",
            ("path", "content"),
            unless="files",
            path=_PATH,
            content=_TEXT,
            files={
                "type": "array",
                "minItems": 1,
                "maxItems": 100,
                "items": {
                    "type": "object",
                    "properties": {"path": _PATH, "content": _TEXT},
                    "required": ["path", "content"],
                    "additionalProperties": False,
                },
            },
        ),
        _spec(
            "file__edit",
            "Replaces a text in a file of the workspace. The old text must be there exactly once, unless all is true.",
            "write",
            ("path", "old", "new"),
            path=_PATH,
            old={"type": "string", "minLength": 1},
            new=_TEXT,
            all={"type": "boolean", "description": "replace every occurrence"},
        ),
        _spec(
            "file__edit_lines",
            "Replaces lines of a file of the workspace by their ids, which file__read shows with line_ids: true. "
            "All changes are made, or none.",
            "write",
            ("path", "changes"),
            path=_PATH,
            changes={
                "type": "array",
                "minItems": 1,
                "maxItems": 1000,
                "items": {
                    "type": "object",
                    "properties": {
                        "line_id": {"type": "string", "description": "the line to replace"},
                        "start_line_id": {"type": "string", "description": "or the first of several lines"},
                        "end_line_id": {"type": "string", "description": "and the last of them"},
                        "new_content": {"type": "string", "description": "the new lines; empty takes them away"},
                    },
                    "required": ["new_content"],
                    "additionalProperties": False,
                },
            },
        ),
        _spec(
            "file__list",
            "Lists a folder of the workspace: the name and the type (file, folder, link, other) of each entry.",
            "read",
            (),
            path=_PATH,
        ),
        _spec(
            "file__glob",
            "Finds files of the workspace by a pattern such as src/**/*.py; ** stands for any number of folders. "
            "Does not look into .git, .venv and .quire unless they are named.",
            "read",
            ("pattern",),
            pattern=_TEXT,
            path={"type": "string", "description": "the folder to look in; the whole workspace by default"},
        ),
        _spec(
            "file__grep",
            "Searches the text files of the workspace line by line with a regular expression (RE2 syntax).",
            "read",
            ("pattern",),
            pattern=_TEXT,
            path={"type": "string", "description": "a file or a folder of the workspace; all of it by default"},
            glob={"type": "string", "description": "only files whose path in that folder fits, such as *.md"},
            include={"type": "string", "description": "the same as glob"},
            ignore_case={"type": "boolean"},
            limit=_integer(1, 1000, "how many matches to return at most; 200 by default"),
        ),
        _spec(
            "http__get",
            "Fetches an http or https address. The result has status, url, headers, and text or json, at most 1 MB.",
            "read",
            ("url",),
            url=_TEXT,
            headers={"type": "object", "additionalProperties": {"type": "string"}},
            format={"enum": ["text", "markdown", "html"], "description": "how to give a page; html by default"},
            timeout=_integer(1, 120, "seconds to wait at most; 30 by default"),
        ),
        _spec(
            "shell",
            "Runs a command in the workspace, sandboxed, for at most 60 seconds unless timeout says more: a text by "
            "/bin/sh, a list of texts without a shell. The result is what it prints, decoded if that is JSON.",
            "write",
            ("command",),
            command={"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]},
            stdin={"description": "what the command reads: a text as it is, any other value as JSON"},
            timeout=_integer(1, 600, "seconds to run at most; 60 by default"),
            working_dir={"type": "string", "description": "the folder of the workspace to run it in"},
        ),
        _spec(
            "ask",
            "Asks a person and waits for the answer.",
            "read",
            ("prompt",),
            prompt=_TEXT,
            type={"enum": ["input", "confirm", "select"]},
            options={"type": "array", "items": {"type": "string"}},
            default={"type": "string", "description": "the answer where nobody can be asked"},
        ),
    )
)

NAMES: Mapping[str, str] = {spec.id: name for name, spec in SPECS.items()}
"""The name of each tool by its canonical id."""
