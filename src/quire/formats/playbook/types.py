"""The words of the format: types with their other names, and the kinds of artifact."""

from __future__ import annotations

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
ELICIT_KINDS = ("input", "confirm", "select")
DIRECTIVES = ("output", "elicit", "prompt", "tool")
