"""Insert keys into steps, and steps before steps, as the text around is written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from quire.diagnostics import Edit
from quire.source import Span

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import Step
    from quire.lsp.views import View

_KEYS = re.compile(r":[ ]*(?:(\{)[ ]*|(?:#[^\n]*)?\n(?:[ ]*(?:#[^\n]*)?\n)*([ ]+)(?=[^\s#-]))")
"""Matches from the end of the name of a step to its first key."""


def key_edit(view: View, step: Step, key: str, value: str) -> Edit | None:
    """Return the edit that adds a key to the body of a step: at the end of braces, else as its first line. None if its
    place is not certain."""
    text = view.source.text
    found = _KEYS.match(text, step.span.end)
    if found is None:
        return None
    if found[1] is None:
        at = found.end()
        return Edit(Span(at, at), "", f"{key}: {value}\n{found[2]}")
    from quire.lsp.yaml_scan import closing

    end = closing(text, found.end())
    if end >= len(text):
        return None
    last = end
    while text[last - 1] in " \n":
        last -= 1
    if text[last - 1] == "{":
        return Edit(Span(last, last), "", f"{key}: {value}")
    return Edit(Span(last, last), "", f"{' ' if text[last - 1] == ',' else ', '}{key}: {value}")


def step_before(view: View, step: Step, line: str) -> Edit | None:
    """Return the edit that puts a step, written in one line, before an item of a list."""
    text = view.source.text
    begin = text.rfind("\n", 0, step.span.start) + 1
    lead = text[begin : step.span.start]
    if lead.strip() != "-":
        return None
    indent = lead[: lead.index("-")]
    return Edit(Span(begin, begin), "", f"{indent}{line}\n")
