"""The result of a playbook as the kind of thing that it says it is.

One rule for whoever takes it: stdout, a file, a page, Python, the document that called. Models like to put a fence
around what is no prose; it is no part of the thing, and nothing that reads JSON or JavaScript would take it.
"""

from __future__ import annotations

import re

from quire.values import InvalidValue, decode

FENCED = ("json", "mermaid", "chartjs", "html_css", "javascript", "typescript")
"""Types whose text is taken out of a fence around all of it. In Markdown a fence belongs to the text."""
JSON = ("json", "chartjs")
_FENCE = re.compile(r"`{3,}|~{3,}")


def artifact_text(text: str, artifact_type: str) -> str:
    return unfenced(text) if artifact_type in FENCED else text


def artifact_problem(text: str, artifact_type: str) -> str:
    """Why a text is not what it should be, as far as that can be seen; empty where it may be."""
    if artifact_type not in JSON:
        return ""
    try:
        decode(text)
    except InvalidValue as error:
        return f"the output should be {artifact_type}, but it is not JSON: {error}"
    return ""


def unfenced(text: str) -> str:
    """What is inside, where the whole text is one fenced block; else the text as it is."""
    lines = text.strip().split("\n")
    opening = _FENCE.match(lines[0])
    if len(lines) < 2 or opening is None or lines[-1].strip() != opening[0]:
        return text
    inside = lines[1:-1]
    return text if any(line.lstrip().startswith(opening[0]) for line in inside) else "\n".join(inside)
