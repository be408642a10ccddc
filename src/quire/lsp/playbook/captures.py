"""The values that a step of a playbook keeps under a name: its result, and the answer to its question."""

from __future__ import annotations

from re import Match
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from quire.formats.playbook.scan import AT, ELICIT, FIELD, KIND, NAME, OPTIONS, OUTPUT, TEXTS, TYPE
from quire.formats.playbook.syntax import ELICIT_KINDS, OUTPUT_TYPES, Elicitation, PromptReference, ToolCall
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.playbook.layout import Layout, Part

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
            return " | ".join(f'"{one}"' for one in self.options)
        return self.type or "text"


class PartContent(Struct, frozen=True):
    """The directives and the captures of a step or a sub-step."""

    captures: tuple[Capture, ...] = ()
    has_text: bool = False
    has_tool: bool = False
    has_prompt: bool = False
    asks: bool = False

    @property
    def asks_model(self) -> bool:
        return (self.has_text or self.has_prompt) and not self.has_tool


class _Question(Struct, frozen=True):
    answers: tuple[str, ...]
    span: Span


def read_content(layout: Layout, part: Part) -> PartContent:
    """Read the lines of one step. Of several directives of a kind, the last one counts."""
    text, after = layout.source.text, part.line.end()
    output: Match[str] | None = None
    question: _Question | None = None
    has_text = has_tool = has_prompt = False
    for kind, line in layout.lines_of(part):
        has_text = has_text or _is_text(text, after, line.start(), part)
        after = line.end()
        if kind == OUTPUT:
            output = line
        elif kind == ELICIT:
            at = line.start(KIND) - 1 - len("elicit(")
            question = _Question(_answers(line[KIND], (line[TEXTS] or "").split('"')[3::2]), Span(at, at + 6))
        elif kind == AT:
            read = _directive(line)
            has_tool = has_tool or isinstance(read, ToolCall)
            has_prompt = has_prompt or isinstance(read, PromptReference)
            has_text = has_text or read is None
            if isinstance(read, Elicitation):
                question = _Question(_answers(read.kind, read.options), Span(read.start + 1, read.start + 7))
        else:
            has_text = True
    has_text = has_text or _is_text(text, after, part.end, part)
    question = None if has_tool else question
    only_asks = question is not None and not (has_text or has_prompt)
    captures = [*_asked(part, question)] if question else []
    if output:
        captures.append(_kept(part, output, question if only_asks else None, has_tool))
    return PartContent(tuple(captures), has_text, has_tool, has_prompt, question is not None)


def _is_text(text: str, start: int, end: int, part: Part) -> bool:
    """Tell whether a range has text of a step itself, and not only of its branches."""
    if (branches := part.branches) and start <= branches.start < end:
        return _is_text(text, start, branches.start, part) or _is_text(text, branches.end, end, part)
    return start < end and not text[start:end].isspace()


def _directive(line: Match[str]) -> object | None:
    """Return the directive of a line that begins with `@`, as its reader makes it; None if it is text."""
    from quire.formats.playbook.annotations import read_directive

    return read_directive(line[0].strip(), line.start(AT) - 1 - len("@"), [])


def _answers(kind: str, options: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """Return the only answers to a question; empty if they are not known."""
    known = ELICIT_KINDS.get(kind.lower())
    if known == "confirm":
        return ("yes", "no")
    return tuple(options) if known == "select" and not any("{{" in one for one in options) else ()


def _asked(part: Part, question: _Question) -> list[Capture]:
    names = dict.fromkeys((part.label, str(part.number)))
    return [
        Capture(ASKED + one, part.label, part.title, "answer", "", question.answers, question.span) for one in names
    ]


def _kept(part: Part, output: Match[str], alone: _Question | None, has_tool: bool) -> Capture:
    name, type, quoted, field = output.group(NAME, TYPE, OPTIONS, FIELD)
    type = OUTPUT_TYPES.get(type.lower(), "string") if type else ""
    how: How = "result" if has_tool else "field" if field else "reply"
    options = tuple(quoted.split('"')[1::2]) if quoted else ()
    if alone is not None:
        how, options = "answer", alone.answers
    at = output.start(NAME) - 1
    return Capture(name, part.label, part.title, how, type, options, Span(at, at + len(name)), field or "")
