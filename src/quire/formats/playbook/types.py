"""The words of the format: types with their other names, and the kinds of artifact."""

from __future__ import annotations

from quire.formats.playbook.syntax import ElicitKind

INPUT_TYPES = {
    "string": "string",
    "text": "text",
    "number": "number",
    "num": "number",
    "int": "number",
    "float": "number",
    "boolean": "boolean",
    "bool": "boolean",
    "enum": "enum",
    "select": "enum",
    "choice": "enum",
}
OUTPUT_TYPES = {**INPUT_TYPES, "json": "json"}
ARTIFACT_TYPES = ("markdown", "json", "mermaid", "chartjs", "html_css", "javascript", "typescript")
ELICIT_KINDS: dict[str, ElicitKind] = {"input": "input", "confirm": "confirm", "select": "select"}
DIRECTIVES = ("output", "elicit", "prompt", "tool")
