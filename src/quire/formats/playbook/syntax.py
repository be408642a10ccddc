"""The syntax tree of a playbook with positions, the placeholders in it, and the words of the format.

Nodes are never changed once the reader has returned them. Some are not frozen, because the reader completes them later.
Positions are kept as plain offsets into the text, and become a `Span` only on request, because that is faster.

The pattern of placeholders is that of `quire.plan.templates`, which a test ensures. It is repeated here because `quire
check` builds no plan, and importing the plan would take a tenth of its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quire.source import PLACEHOLDER, Source, Span

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic, Severity


class _Placed:
    """A node that covers a range of the text."""

    __slots__ = ()
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


class Placeholder(_Placed, Struct, frozen=True):
    """A `{{name}}`, `{{name:type}}` or `{{name:type:default}}` in any text that is rendered."""

    name: str
    type: str | None
    default: str | None
    start: int
    end: int


def find(text: str, places: Sequence[tuple[int, int]]) -> tuple[Placeholder, ...]:
    """Return the placeholders in these ranges of the text, in order."""
    return tuple(
        [
            Placeholder(match[1], match[2], match[3], match.start(), match.end())
            for start, end in places
            for match in PLACEHOLDER.finditer(text, start, end)
        ]
    )


def join(text: str, pieces: Sequence[tuple[int, int]]) -> str:
    """Join the text of a step from the pieces that are left without directives and branches.

    White space at the end of lines is removed; blank lines around a line that was taken out become one.
    """
    if len(pieces) == 1:
        start, end = pieces[0]
        return _tidied(text[start:end]).strip()
    parts: list[str] = []
    blank = False
    for start, end in pieces:
        piece = _tidied(text[start:end])
        body = piece.strip("\n")
        if not body:
            blank = True
            continue
        if parts:
            parts.append("\n\n" if blank or piece[0] == "\n" else "\n")
        parts.append(body)
        blank = piece.endswith("\n\n")
    return "".join(parts).strip()


def _tidied(text: str) -> str:
    if " \n" in text or "\t" in text:
        return "\n".join([line.rstrip(" \t") for line in text.split("\n")])
    return text


ElicitKind = Literal["input", "confirm", "select"]
Operator = Literal["==", "!="]
ConditionSource = Literal["input", "step_output"]


class InputDeclaration(_Placed, Struct, frozen=True):
    """A line of `## INPUTS`. `default` is text as written; enum inputs have options but no default."""

    name: str
    type: str
    default: str | None
    options: tuple[str, ...]
    description: str
    required: bool
    start: int
    end: int
    name_start: int

    @property
    def name_span(self) -> Span:
        return Span(self.name_start, self.name_start + len(self.name))


class PromptReference(_Placed, Struct, frozen=True):
    """`@prompt(library:ID)` and its variants."""

    ref: str
    """The reference with its scheme, or one `{{variable}}`."""
    start: int
    end: int


class OutputCapture(_Placed, Struct, frozen=True):
    """`@output(name: type, "option", extract:"field")`."""

    name: str
    type: str | None
    """None if none is written."""
    options: tuple[str, ...]
    field: str | None
    start: int
    end: int

    @property
    def name_span(self) -> Span:
        at = self.start + len("@output(")
        return Span(at, at + len(self.name))


class Elicitation(_Placed, Struct):
    kind: ElicitKind
    prompt: str
    options: tuple[str, ...]
    default: str | None
    start: int
    end: int

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.prompt, *self.options, self.default or "")


class ToolCall(_Placed, Struct, frozen=True):
    """`@tool(connection, tool, {…})`."""

    connection: str
    tool: str
    arguments: str
    """The JSON text as written, including placeholders."""
    start: int
    end: int


class ContextChoice(_Placed, Struct, frozen=True):
    """`@context(none)` or `@context(name, 2, 3a)`: the earlier results that the model of this step sees."""

    names: tuple[str, ...]
    """Names of outputs and labels of steps; empty for `none`."""
    start: int
    end: int


class ModelChoice(_Placed, Struct, frozen=True):
    """`@model(name)`: a tier or a profile of the settings, never a model itself."""

    name: str
    start: int
    end: int

    @property
    def name_span(self) -> Span:
        return Span(self.end - len(self.name) - 1, self.end - 1)


Directive = PromptReference | OutputCapture | Elicitation | ToolCall | ContextChoice | ModelChoice


class Condition(_Placed, Struct):
    variable: str
    operator: Operator
    value: str
    source: ConditionSource
    start: int
    end: int
    variable_start: int

    @property
    def variable_span(self) -> Span:
        return Span(self.variable_start, self.variable_start + len(self.variable))


class Arm(_Placed, Struct):
    """One arm of a branch. `span` covers its marker."""

    condition: Condition | None
    """None for `else`."""
    steps: tuple[Step, ...]
    start: int
    end: int


class Step(_Placed, Struct):
    """A `## STEP N:` or `### STEP Na:` with its text and directives. `span` covers the heading line."""

    number: int
    label: str
    title: str
    start: int
    end: int
    document: str
    pieces: list[tuple[int, int]]
    """The ranges of `document` that `content` is joined from."""
    prompt: PromptReference | None = None
    output: OutputCapture | None = None
    elicitation: Elicitation | None = None
    tool: ToolCall | None = None
    context: ContextChoice | None = None
    model: ModelChoice | None = None
    arms: tuple[Arm, ...] = ()

    @property
    def content(self) -> str:
        """The prompt text without directives, joined on each request: a check needs only `has_text`."""
        return join(self.document, self.pieces)

    @property
    def has_text(self) -> bool:
        for start, end in self.pieces:  # noqa: SIM110  # for every step of a document: half the time of `all`
            if not self.document[start:end].isspace():
                return True
        return False

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        """The placeholders in the content and the directives of this step, but not of its sub-steps.

        They are searched only on request: few readers of a document need them.
        """
        if not (self.prompt or self.elicitation or self.tool):
            return find(self.document, self.pieces)  # they are in order
        directives = (self.prompt, self.elicitation, self.tool)
        places = [(directive.start, directive.end) for directive in directives if directive]
        return find(self.document, sorted([*self.pieces, *places]))


class ArtifactDeclaration(_Placed, Struct, frozen=True):
    """The `type:` and the `from:` of `## ARTIFACTS`; at least one of them is present."""

    type: str
    """In lower case, or a `{{variable}}` that is resolved when the run ends; empty if none is written."""
    start: int
    end: int
    source: str = ""
    """The output or the step that the artifact is taken from; empty for the last step."""
    source_start: int = 0

    @property
    def source_span(self) -> Span:
        return Span(self.source_start, self.source_start + len(self.source))


class Playbook(Struct, frozen=True):
    title: str
    description: str
    system: str
    inputs: tuple[InputDeclaration, ...]
    steps: tuple[Step, ...]
    artifact: ArtifactDeclaration | None
    title_start: int
    title_end: int


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
EXTENSIONS = ("context", "model")
"""Directives that only Quire has."""


class ParseResult(Struct, frozen=True):
    """The result of parsing one document. Diagnostics are in the order of the text."""

    source: Source
    playbook: Playbook | None
    """None exactly if there is an error."""
    diagnostics: tuple[Diagnostic, ...]
    partial: Playbook | None = None
    """The tree as far as the text could be read, also with errors; None for a text that is empty or too large."""

    def of(self, severity: Severity) -> tuple[Diagnostic, ...]:
        return tuple(diagnostic for diagnostic in self.diagnostics if diagnostic.severity is severity)
