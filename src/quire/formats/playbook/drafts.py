"""Steps on their way: their text and their directives.

A draft is filled while the special lines go by and becomes a `Step` at the end, when it is known which names a
condition may read. What is text is kept as ranges of the document; the gaps between the ranges are the lines that
were taken out.
"""

from __future__ import annotations

from collections.abc import Sequence
from re import Match

from quire.diagnostics import Diagnostic
from quire.formats.playbook.codes import notes, warnings
from quire.formats.playbook.directives import read_directive
from quire.formats.playbook.flat import capture
from quire.formats.playbook.markers import Marker
from quire.formats.playbook.scan import AT, CAPTURE
from quire.formats.playbook.syntax import Elicitation, OutputCapture, PromptReference, ToolCall


class Draft:
    """`start` and `end` are those of the heading, `stop` is where the last line ends; `plain` is true while every line
    that was taken out is a directive that counts."""

    prompt: PromptReference | None = None
    output: OutputCapture | None = None
    elicitation: Elicitation | None = None
    tool: ToolCall | None = None
    arms: list[DraftArm] | None = None
    plain = True

    def __init__(self, number: int, label: str, title: str, start: int, end: int) -> None:
        self.number = number
        self.label = label
        self.title = title
        self.start = start
        self.end = end
        self.stop = end
        self.ranges: list[tuple[int, int]] = []

    def family(self) -> list[Draft]:
        """This one, then its sub-steps."""
        return [self, *(step for arm in self.arms for step in arm.steps)] if self.arms else [self]


class DraftArm:
    def __init__(self, marker: Marker, lead: Draft) -> None:
        self.marker = marker
        self.steps = [lead]


def read_flat(draft: Draft, lines: Sequence[Match[str]], begin: int, end: int, found: list[Diagnostic]) -> None:
    """Reads a step without branch markers: its text from `begin` to `end`, in which these lines are special."""
    ranges = draft.ranges
    for line in lines:
        if take_directive(draft, line, found):
            start = line.start()
            if begin < start:
                ranges.append((begin, start))
            begin = line.end()
    if begin < end:
        ranges.append((begin, end))
    draft.stop = end
    if draft.tool:
        check_company(draft, found)


def take_directive(draft: Draft, line: Match[str], found: list[Diagnostic]) -> bool:
    """Gives the draft the directive of a line, if it is one; True when the line is no text."""
    kind = line.lastindex
    replaced: PromptReference | OutputCapture | Elicitation | ToolCall | None = None
    if kind == CAPTURE:
        replaced, draft.output = draft.output, capture(line)
    elif kind != AT:
        return False
    else:
        directive = read_directive(line[AT].rstrip(), line.start(AT) - 1, found)
        if directive is None:
            return False
        if isinstance(directive, OutputCapture):
            replaced, draft.output = draft.output, directive
            draft.plain = draft.plain and not directive.options
        elif isinstance(directive, Elicitation):
            replaced, draft.elicitation = draft.elicitation, directive
        elif isinstance(directive, PromptReference):
            replaced, draft.prompt = draft.prompt, directive
        elif isinstance(directive, ToolCall):
            replaced, draft.tool = draft.tool, directive
        else:
            draft.plain = False
    if replaced:
        draft.plain = False
        name = line[0].strip().partition("(")[0]
        message = f"{name} is here twice: the last one counts"
        found.append(Diagnostic(notes.REPLACED, message, replaced.span, "this one is dropped"))
    return True


def check_company(draft: Draft, found: list[Diagnostic]) -> None:
    """A tool is alone in its step."""
    if not draft.tool or not (draft.elicitation or draft.prompt):
        return
    others = " and ".join(name for name, there in (("@elicit", draft.elicitation), ("@prompt", draft.prompt)) if there)
    found.append(
        Diagnostic(
            warnings.TOOL_COMPANY,
            f"@tool next to {others}: only the tool runs",
            draft.tool.span,
            f"{others} ignored in this step",
            "ask, or refer to a prompt, in a step before",
        )
    )
