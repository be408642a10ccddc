"""What reading finds wrong, and how it is told: where it points, what it quotes, what it suggests.

Keys and values of a pipeline document: what may stand there, and what is said about what may not.

Everything here reports and returns None, so that a caller can look at all parts of a step before it gives up on it.
"""

from __future__ import annotations

from collections.abc import Collection

from quire.diagnostics import Code, Diagnostic, Fix
from quire.expr import Expression, ExprSyntaxError
from quire.expr import parse as parse_expression
from quire.expr.errors import EXPRESSION_SYNTAX
from quire.formats.near_names import word_fix
from quire.formats.pipeline.codes import errors as codes
from quire.formats.pipeline.names import RULE, is_name
from quire.formats.pipeline.syntax import Argument, ExpressionText, Literal, Name, Text
from quire.formats.yaml import Entry, Mapping, Node, Scalar, describe, literal, place
from quire.formats.yaml.codes import MISPLACED_TAG
from quire.source import Source, Span
from quire.wording import nearest

LONGEST = 60
"""Characters of a name that somebody may have misspelt, and of a text that is quoted."""

_MAX_SUGGESTIONS = 50
_MAX_KNOWN = 200


class Findings:
    """Those of one reading."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self._suggested = 0

    def report(self, code: Code, message: str, span: Span, help: str = "", fix: Fix = ()) -> None:
        self.found.append(Diagnostic(code, message, span, "", help, fix))

    @property
    def suggests(self) -> bool:
        """Whether there are suggestions left to make."""
        return self._suggested < _MAX_SUGGESTIONS

    def suggestion(self, name: str, known: Collection[str]) -> str:
        """`did you mean`, for so many names as a person makes slips; likeness is dear to compute."""
        if len(name) > LONGEST or len(known) > _MAX_KNOWN or not self.suggests:
            return ""
        self._suggested += 1
        meant = nearest(name, known)
        return f"did you mean {meant}?" if meant else ""

    def visible(self, entry: Entry) -> Span:
        """Where to point at a value: at its key if it is empty."""
        return entry.value.span if entry.value.span.start < entry.value.span.end else entry.key.span

    def shown(self, text: str) -> str:
        return f'"{text}"' if len(text) <= LONGEST else f'"{text[: LONGEST - 3]}…"'


_MAX_PLACING = 3_000_000


class Fields(Findings):
    """One reading: its source, what was found so far, and the expressions that were met before."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source
        self._placing = 0
        self._expressions: dict[str, Expression] = {}

    def at(self, text: Text, part: Span) -> Span:
        """The place of a part of a text. Finding it takes time with the length of the text: after so many findings in
        so long texts only the whole is pointed at."""
        self._placing += len(text.text)
        return text.place(self.source, part) if self._placing <= _MAX_PLACING else text.span

    def entries(self, node: Mapping, known: tuple[str, ...], what: str, code: Code) -> dict[str, Entry]:
        """The entries by key; keys that do not belong there are reported."""
        found: dict[str, Entry] = {}
        for entry in node.entries:
            name = entry.key.value
            if name in known and isinstance(name, str):
                found[name] = entry
            else:
                text = entry.key.text
                help = self.suggestion(text, known)
                # A key that is there is not what another one was meant to be.
                fix = word_fix(text, known, entry.key.span) if help else ()
                fix = tuple(edit for edit in fix if node.get(edit.new) is None)
                help = help or f"the keys are {', '.join(known)}"
                self.report(code, f"{self.shown(text)} is not a key of {what}", entry.key.span, help, fix)
        return found

    def name(self, entry: Entry, what: str) -> Name | None:
        return self.name_of(entry.value, what, self.visible(entry))

    def name_of(self, node: Node, what: str, span: Span | None = None) -> Name | None:
        if isinstance(node, Scalar) and isinstance(node.value, str) and not node.tag:
            if is_name(node.value):
                return Name(node.value, node.span)
            self.report(codes.NAME, f"{self.shown(node.value)} cannot be {what}", node.span, RULE)
        elif not self.tagged(node, what):
            message = f"{what} must be text, not {describe(node)}"
            self.report(codes.NAME, message, span or node.span, self.quoting(node))
        return None

    def text(self, entry: Entry, what: str, *, empty: bool = False) -> str | None:
        """The text of a value; without `empty` it must have some."""
        node = entry.value
        if isinstance(node, Scalar) and isinstance(node.value, str) and not node.tag:
            if node.value or empty:
                return node.value
            self.report(codes.VALUE, f"{what} is empty", node.span)
        elif not self.tagged(node, what):
            help = self.quoting(node) or ("put the text in quotes" if isinstance(node, Mapping) else "")
            self.report(codes.VALUE, f"{what} must be text, not {describe(node)}", self.visible(entry), help)
        return None

    def placed_text(self, entry: Entry, what: str) -> Text | None:
        text = self.text(entry, what, empty=True)
        if text is None or not isinstance(entry.value, Scalar):
            return None
        return Text(text, entry.value.body, entry.value)

    def expression(self, entry: Entry, what: str) -> ExpressionText | None:
        """A value that is always an expression, and so needs no tag."""
        node = entry.value
        if isinstance(node, Scalar):
            if node.tag:
                message = f"{node.tag} cannot stand here: {what} is always an expression"
                self.report(MISPLACED_TAG, message, node.span, f"leave {node.tag} out")
                return None
            if isinstance(node.value, str):
                return self._parsed(node)
        written = f'write "{node.text}"' if isinstance(node, Scalar) and node.text else ""
        quotes = "put the expression in quotes" if not isinstance(node, Scalar) else written
        message = f"{what} must be text that holds an expression, not {describe(node)}"
        self.report(codes.NOT_AN_EXPRESSION, message, self.visible(entry), quotes)
        return None

    def argument(self, node: Node) -> Argument | None:
        """A literal, or an expression where the whole value is tagged as one."""
        if isinstance(node, Scalar) and node.tag:
            return self._parsed(node)
        before = len(self.found)
        value = literal(node, self.found)
        return Literal(value, node.span) if len(self.found) == before else None

    def count(self, entry: Entry | None, what: str) -> tuple[bool, int | None]:
        """Whether it is right, and the number where there is one."""
        if entry is None:
            return True, None
        node = entry.value
        if isinstance(node, Scalar) and type(node.value) is int and node.value > 0:
            return True, node.value
        shown = describe(node) if not isinstance(node, Scalar) or node.value is None else self.shown(node.text)
        self.report(codes.LIMIT, f"{what} must be a whole number of at least 1, not {shown}", self.visible(entry))
        return False, None

    def tagged(self, node: Node, what: str) -> bool:
        """Whether a tag is what is wrong with a value; then that is reported."""
        if not isinstance(node, Scalar) or not node.tag:
            return False
        message = f"{node.tag} cannot stand here: {what} is always written out"
        self.report(MISPLACED_TAG, message, node.span, f"leave {node.tag} out")
        return True

    def quoting(self, node: Node) -> str:
        return f'write "{node.text}" if it is meant as text' if isinstance(node, Scalar) and node.text else ""

    def _parsed(self, scalar: Scalar) -> ExpressionText | None:
        text = scalar.text
        expression = self._expressions.get(text)
        if expression is None:
            try:
                expression = self._expressions[text] = parse_expression(text)
            except ExprSyntaxError as error:
                # What is missing at the end is said to stand one place behind it, which is in no text.
                part = Span(min(error.span.start, len(text)), min(error.span.end, len(text)))
                self.report(EXPRESSION_SYNTAX, error.message, place(self.source, scalar, part), error.help)
                return None
        return ExpressionText(text, scalar.body, scalar, expression=expression)
