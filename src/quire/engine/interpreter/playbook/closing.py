"""The object that the reply of a playbook step has to end with: the sentences that ask for it, and its JSON Schema.

The proof of a document measures both, so this module loads nothing that a proof does not need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.plan.nodes import SEMANTICS_VERSION, Capture
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.values import Value


def closing_instruction(captures: tuple[Capture, ...], rules: int = SEMANTICS_VERSION) -> str:
    """Return the sentences that ask a model to end its reply with the object; empty if no field is read from it."""
    if not captures:
        return ""
    fields = ", ".join(f'"{capture.field}"{_hint(capture)}' for capture in captures)
    example = ", ".join(f'"{capture.field}": …' for capture in captures)
    noun = pluralize("field", len(captures))
    before = "First do all that is asked above, in full." if rules > 1 else "Write the answer freely."
    return (
        f"{before} Then end the reply with one JSON object on a line of its own that holds the {noun} "
        f"{fields}, in the form {{{example}}}. Write nothing after it."
    )


def _hint(capture: Capture) -> str:
    match capture.type:
        case "enum" if capture.options:
            return f" (one of {', '.join(capture.options)})"
        case "number" | "boolean":
            return f" (a {capture.type})"
    return ""


def closing_schema(captures: tuple[Capture, ...]) -> dict[str, Value] | None:
    """Return the JSON Schema of the object; None if no field is read from it."""
    if not captures:
        return None
    properties: dict[str, Value] = {str(capture.field): _schema(capture) for capture in captures}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _schema(capture: Capture) -> Value:
    match capture.type:
        case "enum" if capture.options:
            return {"type": "string", "enum": list(capture.options)}
        case "number" | "boolean":
            return {"type": capture.type}
        case "json":
            return {}
    return {"type": "string"}
