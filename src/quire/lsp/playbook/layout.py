"""The steps, sections and captures of a playbook with their places, found by a scan of its lines alone.

A document that is being typed is often not well-formed, and a large one takes too long to read after every letter. So
completions look at this. What a document means is told by its tree (`view.reading`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property, lru_cache
from re import Match
from typing import TYPE_CHECKING

from quire.formats.playbook.scan import CONDITION, LABEL, MARKER, NUMBER, SECTION, STEP, SUBSTEP, VARIABLE, Scan, scan
from quire.formats.playbook.sections import read_inputs, section_kind
from quire.lsp.playbook.captures import ASKED, Capture, PartContent, read_content
from quire.source import Source, Span

if TYPE_CHECKING:
    from quire.formats.playbook.syntax import InputDeclaration


class Section:
    """A part of the document under a `##` heading that is not a step."""

    __slots__ = ("end", "line", "start")

    def __init__(self, line: Match[str], end: int) -> None:
        self.line = line
        self.start = line.start()
        self.end = end

    @property
    def name(self) -> str:
        return self.line[SECTION].rstrip()

    @property
    def kind(self) -> str:
        """`system`, `inputs`, `artifacts`, or empty for a section that is skipped."""
        return section_kind(self.name) or ""

    @property
    def heading(self) -> Span:
        return heading_span(self.line)


class Part:
    """A step or a sub-step."""

    def __init__(self, line: Match[str], end: int, first: int, parent: Part | None, arm: int) -> None:
        self.line = line
        self.start = line.start()
        self.end = end
        """Where the next part or section begins; of a sub-step also the next marker."""
        self.first = first
        """The number of the first line after its heading."""
        self.parent = parent
        self.arm = arm
        """The number of the arm that a sub-step is in; -1 for a step."""
        self.branches: Span | None = None
        """From the first marker of a step to the end of its last one."""
        self.content: PartContent | None = None

    @property
    def top(self) -> Part:
        """The step that it belongs to, or itself."""
        return self.parent or self

    @property
    def label(self) -> str:
        return self.line[LABEL] if self.parent else self.line[NUMBER] or "0"

    @property
    def number(self) -> int:
        return int(self.top.line[NUMBER] or 0)

    @property
    def title(self) -> str:
        return self.line[SUBSTEP if self.parent else STEP].rstrip()

    @cached_property
    def heading(self) -> Span:
        return heading_span(self.line)

    @property
    def label_span(self) -> Span:
        """The place of the label in the heading. Zeros before a number belong to it."""
        end = self.line.end(LABEL if self.parent else NUMBER) - 1
        written = self.line[0][: end + 1 - self.line.start()]
        return Span(end - len(written) + len(written.rstrip("0123456789abcdefghijklmnopqrstuvwxyz")), end)


class Marker:
    """A branch marker in a step."""

    __slots__ = ("line", "step")

    def __init__(self, line: Match[str], step: Part) -> None:
        self.line = line
        self.step = step

    @property
    def word(self) -> str:
        return self.line[MARKER]

    @property
    def variable(self) -> str:
        return self.line[VARIABLE] or ""

    @property
    def span(self) -> Span:
        return heading_span(self.line)


class Layout:
    """The layout of one text."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.scan: Scan = scan(source.text)
        self.sections: list[Section] = []
        self.parts: list[Part] = []
        self.markers: list[Marker] = []
        self._read()
        self._starts = [part.start for part in self.parts]

    @cached_property
    def inputs(self) -> dict[str, InputDeclaration]:
        """The declared inputs. Of several declarations of a name, the first."""
        declared: dict[str, InputDeclaration] = {}
        for section in self.sections:
            if section.kind == "inputs":
                read_inputs(self.source, section.heading.end, section.end, declared, [])
        return declared

    @cached_property
    def captures(self) -> list[Capture]:
        """All places that give a value to a name, in their order."""
        return [capture for part in self.parts for capture in self.captures_of(part)]

    def captures_of(self, part: Part) -> tuple[Capture, ...]:
        """Return the captures of one step: its answer, and its result."""
        return self.content_of(part).captures

    def content_of(self, part: Part) -> PartContent:
        if part.content is None:
            part.content = read_content(self, part)
        return part.content

    def lines_of(self, part: Part) -> Iterator[tuple[int, Match[str]]]:
        """Yield the special lines of a step that belong to the step itself, with their kinds."""
        lines, kinds = self.scan.lines, self.scan.kinds
        in_arm = False
        for at in range(part.first, len(lines)):
            kind, line = kinds[at], lines[at]
            if kind <= SECTION or line.start() >= part.end:
                return
            if part.parent is None:
                if kind in (MARKER, CONDITION):
                    in_arm = line[MARKER] != "endif"
                elif not in_arm and kind != SUBSTEP:
                    yield kind, line
            else:
                yield kind, line

    def part_at(self, offset: int) -> Part | None:
        """Return the step or sub-step around an offset; None outside of steps."""
        at = bisect_right(self._starts, offset) - 1
        if at < 0:
            return None
        part, last = self.parts[at], len(self.source.text)
        if offset < part.end or part.end == last:
            return part
        return part.parent if part.parent and (offset < part.parent.end or part.parent.end == last) else None

    def section_at(self, offset: int) -> Section | None:
        last = len(self.source.text)
        fitting = (one for one in reversed(self.sections) if one.start <= offset)
        return next((one for one in fitting if offset < one.end or one.end == last), None)

    def readable(self, offset: int, *, own: bool = False) -> Iterator[Capture]:
        """Yield the captures whose values can be there at an offset, the nearest first. With `own`, the result of the
        step itself counts too, as in its conditions."""
        here = self.part_at(offset)
        top = here.top if here else None
        for at in range(bisect_right(self._starts, offset) - 1, -1, -1):
            part = self.parts[at]
            if part is here:
                yield from (one for one in self.captures_of(part) if own or one.name.startswith(ASKED))
            elif here is None or part.top is not top or part.parent is None or part.arm == here.arm:
                yield from self.captures_of(part)

    def _read(self) -> None:
        last = len(self.source.text)
        section: Section | None = None
        top: Part | None = None
        part: Part | None = None
        arm = -1
        for number, kind in enumerate(self.scan.kinds):
            if kind <= SECTION:
                line = self.scan.lines[number]
                at = line.start()
                for ended in (section, top, part):
                    if ended is not None:
                        ended.end = min(ended.end, at)
                section, top, part, arm = None, None, None, -1
                if kind == STEP:
                    top = Part(line, last, number + 1, None, -1)
                    self.parts.append(top)
                else:
                    section = Section(line, last)
                    self.sections.append(section)
            elif top is not None and kind in (MARKER, CONDITION, SUBSTEP):
                line = self.scan.lines[number]
                if part is not None:
                    part.end = line.start()
                    part = None
                if kind == SUBSTEP:
                    part = Part(line, last, number + 1, top, arm)
                    self.parts.append(part)
                else:
                    arm += 1
                    begin = top.branches.start if top.branches else line.start()
                    top.branches = Span(begin, line.end())
                    self.markers.append(Marker(line, top))


def heading_span(line: Match[str]) -> Span:
    """Return the place of a line of the scan in the text, without the white space around it."""
    text = line[0]
    start = line.start() - 1 + len(text) - len(text.lstrip())
    return Span(start, start + len(text.strip()))


@lru_cache(maxsize=8)
def layout_of(source: Source) -> Layout:
    """Return the layout of a text. It is kept for some texts, because several requests ask for it."""
    return Layout(source)
