"""The places of the steps, sections, markers and captures of a playbook.

Steps and sections are found by their headings alone, so that they are available while the text between them is typed.
The work and the captures of a step come from the tree of the reader, which reads broken text as far as it can.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from quire.formats.playbook.names import family
from quire.formats.playbook.scan import CONDITION, LABEL, MARKER, NUMBER, SECTION, STEP, SUBSTEP, Scan, line_span, scan
from quire.formats.playbook.sections import section_kind
from quire.source import Span

if TYPE_CHECKING:
    from re import Match

    from quire.formats.playbook.syntax import Directive, Elicitation, InputDeclaration, OutputCapture, Playbook, Step
    from quire.lsp.document_view import View

ASKED = "__elicit_step_"
"""The names under which answers are kept begin with it; the label of a step follows."""

How: TypeAlias = Literal["reply", "field", "answer", "result"]
HOW_WORDS: dict[How, str] = {
    "reply": "the reply of the model",
    "field": "a field of the model's reply",
    "answer": "the answer of a person",
    "result": "the result of a tool",
}


class Capture(Struct, frozen=True):
    """A place that gives a value to a name."""

    name: str
    label: str
    """The label of its step."""
    title: str
    """The title of its step."""
    how: How
    type: str
    """The type as the format names it; empty if none is written."""
    options: tuple[str, ...]
    """The only texts that it can be; empty if that is not known."""
    span: Span
    field: str = ""
    """The field of a reply that is kept."""

    @property
    def type_words(self) -> str:
        """The type for people: `number`, `"yes" | "no"`, or `text`."""
        if self.options and self.type in ("", "enum", "string"):
            return " | ".join(f'"{option}"' for option in self.options)
        return self.type or "text"


def steps_of(tree: Playbook | None) -> Iterator[Step]:
    """Yield all steps and sub-steps of a playbook."""
    return (step for parent in (tree.steps if tree else ()) for step in family(parent))


def directives_of(step: Step) -> Iterator[Directive]:
    """Yield the directives of a step that have an effect. Others are text, or are replaced by a later one."""
    written = (step.prompt, step.output, step.elicitation, step.tool, step.context, step.model)
    return (directive for directive in written if directive is not None)


def captures_of(step: Step) -> Iterator[Capture]:
    """Yield the captures of one step: its answer, and its result."""
    question = None if step.tool else step.elicitation
    if question is not None:
        word = Span(question.start + 1, question.start + len("@elicit"))
        for label in dict.fromkeys((step.label, str(step.number))):
            yield Capture(ASKED + label, step.label, step.title, "answer", "", _answers(question), word)
    if step.output is not None:
        alone = None if step.has_text or step.prompt else question
        yield _result(step, step.output, alone)


def _result(step: Step, output: OutputCapture, alone: Elicitation | None) -> Capture:
    """Return the result of a step; `alone` is its question if it does nothing else."""
    how: How = "result" if step.tool else "field" if output.field else "reply"
    options = output.options
    if alone is not None:
        how, options = "answer", _answers(alone)
    type, field = output.type or "", output.field or ""
    return Capture(output.name, step.label, step.title, how, type, options, output.name_span, field)


def _answers(question: Elicitation) -> tuple[str, ...]:
    """Return the only answers to a question; empty if they are not known."""
    if question.kind == "confirm":
        return ("yes", "no")
    return (
        question.options if question.kind == "select" and not any("{{" in option for option in question.options) else ()
    )


class Section(Struct):
    """A part of the document under a `##` heading that is not a step."""

    line: Match[str]
    end: int

    @property
    def start(self) -> int:
        return self.line.start()

    @property
    def name(self) -> str:
        return self.line[SECTION].rstrip()

    @property
    def kind(self) -> str:
        """`system`, `inputs`, `artifacts`, or empty for a section that is skipped."""
        return section_kind(self.name) or ""

    @property
    def heading(self) -> Span:
        return line_span(self.line)


class Part(Struct, eq=False):
    """The heading of a step or a sub-step, and the lines below it."""

    line: Match[str]
    end: int
    """Where the next part or section begins; of a sub-step also the next marker."""
    parent: Part | None = None
    arm: int = -1
    """The number of the arm that a sub-step is in; -1 for a step."""
    branches: Span | None = None
    """From the first marker of a step to the end of its last one."""

    @property
    def start(self) -> int:
        return self.line.start()

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

    @property
    def heading(self) -> Span:
        return line_span(self.line)

    @property
    def label_span(self) -> Span:
        """The place of the label in the heading. Zeros before a number belong to it."""
        end = self.line.end(LABEL if self.parent else NUMBER) - 1
        written = self.line[0][: end + 1 - self.line.start()]
        return Span(end - len(written) + len(written.rstrip("0123456789abcdefghijklmnopqrstuvwxyz")), end)


class Marker(Struct, frozen=True):
    """A branch marker in a step."""

    line: Match[str]
    step: Part

    @property
    def word(self) -> str:
        return self.line[MARKER]

    @property
    def span(self) -> Span:
        return line_span(self.line)


class Layout:
    """The layout of one text."""

    def __init__(self, text: str, tree: Playbook | None) -> None:
        self._last = len(text)
        self._tree = tree
        self.scan: Scan = scan(text)
        self.sections: list[Section] = []
        self.parts: list[Part] = []
        self.markers: list[Marker] = []
        self._read()
        self._starts = [part.start for part in self.parts]

    @cached_property
    def inputs(self) -> dict[str, InputDeclaration]:
        """The declared inputs. Of several declarations of a name, the first."""
        return {declared.name: declared for declared in self._tree.inputs} if self._tree else {}

    @cached_property
    def captures(self) -> list[Capture]:
        """All places that give a value to a name, in their order."""
        return [capture for part in self.parts for capture in self._captures_of(part)]

    @cached_property
    def _steps(self) -> dict[int, Step]:
        """The steps of the tree by the places of their headings."""
        return {step.start: step for step in steps_of(self._tree)}

    def _captures_of(self, part: Part) -> Iterator[Capture]:
        step = self._steps.get(part.heading.start)
        return captures_of(step) if step is not None else iter(())

    def part_at(self, offset: int) -> Part | None:
        """Return the step or sub-step around an offset; None outside of steps."""
        at = bisect_right(self._starts, offset) - 1
        around = (self.parts[at], self.parts[at].parent) if at >= 0 else ()
        return next((part for part in around if part and (offset < part.end or part.end == self._last)), None)

    def section_at(self, offset: int) -> Section | None:
        fitting = (section for section in reversed(self.sections) if section.start <= offset)
        return next((section for section in fitting if offset < section.end or section.end == self._last), None)

    def readable(self, offset: int, *, own: bool = False) -> Iterator[Capture]:
        """Yield the captures whose values can exist at an offset, the nearest first. With `own`, the result of the
        step itself counts too, as in its conditions."""
        here = self.part_at(offset)
        top = here.top if here else None
        for at in range(bisect_right(self._starts, offset) - 1, -1, -1):
            part = self.parts[at]
            if part is here:
                yield from (capture for capture in self._captures_of(part) if own or capture.name.startswith(ASKED))
            elif here is None or part.top is not top or part.parent is None or part.arm == here.arm:
                yield from self._captures_of(part)

    def _read(self) -> None:
        section: Section | None = None
        top: Part | None = None
        part: Part | None = None
        arm = -1
        for kind, line in zip(self.scan.kinds, self.scan.lines, strict=True):
            if kind <= SECTION:
                for ended in (section, top, part):
                    if ended is not None:
                        ended.end = min(ended.end, line.start())
                section, top, part, arm = None, None, None, -1
                if kind == STEP:
                    top = Part(line, self._last)
                    self.parts.append(top)
                else:
                    section = Section(line, self._last)
                    self.sections.append(section)
            elif top is not None and kind in (MARKER, CONDITION, SUBSTEP):
                if part is not None:
                    part.end = line.start()
                    part = None
                if kind == SUBSTEP:
                    part = Part(line, self._last, top, arm)
                    self.parts.append(part)
                else:
                    arm += 1
                    begin = top.branches.start if top.branches else line.start()
                    top.branches = Span(begin, line.end())
                    self.markers.append(Marker(line, top))


@lru_cache(maxsize=8)
def layout_of(view: View) -> Layout:
    """Return the layout of a playbook. It is kept for some texts, because several requests ask for it."""
    return Layout(view.source.text, view.reading.partial)
