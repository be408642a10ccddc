"""Read keys and values of a pipeline document, and report what is wrong with them.

`PipelineFindings` decides where a finding points, what it quotes and what it suggests. The methods of `Fields` report a
problem and return None, so that a caller can read all parts of a step before it gives up on it.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from quire.diagnostics import Code, Edit, Findings, Fix
from quire.expr import Expression, ExprSyntaxError, NeedsDialect
from quire.expr import parse as parse_expression
from quire.expr.errors import EXPRESSION_SYNTAX
from quire.formats.near_names import word_fix
from quire.formats.pipeline.codes import errors as codes
from quire.formats.pipeline.syntax import RULE, Argument, ExpressionText, Literal, Name, Pass, Target, Text, is_name
from quire.formats.yaml import EXPR, Entry, Mapping, Node, Scalar, Sequence, describe, literal, named, place, text_of
from quire.formats.yaml.codes import MISPLACED_TAG
from quire.source import Source, Span
from quire.wording import did_you_mean, quoted


class PipelineFindings(Findings):
    """The findings of one reading."""

    def suggestion(self, name: str, known: Collection[str]) -> str:
        """Return a `did you mean`, else an empty text."""
        return did_you_mean(self.suggestions.nearest(name, known))

    def described(self, node: Node) -> str:
        """Return a text in quotes, and the description of any other value."""
        text = text_of(node)
        return quoted(text) if text is not None else describe(node)

    def quoting(self, node: Node) -> str:
        """Return how to write a value that is not text but may be meant as one."""
        is_plain = isinstance(node, Scalar) and not node.tag and node.text
        return f'write "{node.text}" if it is meant as text' if isinstance(node, Scalar) and is_plain else ""


MAX_PLACING = 3_000_000
_MAX_GUESSES = 100
ADD_DIALECT = "write dialect: quire beside pipeline: to use it"
MEANT_KEYS = {
    "inputs": "write input:, and dialect: quire beside pipeline:",
    **dict.fromkeys(("retries", "retry"), "write on_error: retry(2), and dialect: quire beside pipeline:"),
    "properties": "write fields:, a mapping of field names to types",
}


@lru_cache(maxsize=4_000)
def _parsed_expression(text: str, dialect: bool) -> Expression:
    """Parse an expression. Cached, because an editor reads a text again after every key."""
    return parse_expression(text, dialect=dialect)


class Fields(PipelineFindings):
    """One reading: its source and its findings."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source
        self.dialect = False
        """True if the document that is being read says `dialect: quire`."""
        self.placing = 0
        """Characters of the texts in which places were looked for."""
        self._guesses = _MAX_GUESSES

    def at(self, text: Text, part: Span) -> Span:
        """Return the position of a part of a text.

        Finding it takes time proportional to the length of the text: after many findings in long texts, the whole text
        is returned.
        """
        self.placing += len(text.text)
        return text.place(self.source, part) if self.placing <= MAX_PLACING else text.span

    def entries(
        self, node: Mapping, known: tuple[str, ...], what: str, code: Code, more: tuple[str, ...] = ()
    ) -> dict[str, Entry]:
        """Return the entries by key; unknown keys are reported. The keys in `more` belong to the Quire dialect."""
        entries: dict[str, Entry] = {}
        for entry in node.entries:
            name = entry.key.value
            if isinstance(name, str) and (name in known or (self.dialect and name in more)):
                entries[name] = entry
            elif name in more:
                self.report(code, f"{name} of {what} belongs to the Quire dialect", entry.key.span, ADD_DIALECT)
            else:
                text = entry.key.text
                help = MEANT_KEYS.get(text) or self.suggestion(text, known)
                # A key that is already present cannot be what another one was meant to be.
                fix = word_fix(text, known, entry.key.span) if help else None
                if fix and any(node.get(edit.new) is not None for edit in fix.edits):
                    fix = None
                help = help or f"the keys are {', '.join(known)}"
                self.report(code, f"{quoted(text)} is not a key of {what}", entry.key.span, help, fix)
        return entries

    def key_fix(self, node: Mapping, key: str, value: str) -> Fix | None:
        """Return the edit that adds a key to a mapping: at the end of one in braces, else as its first line."""
        source, entries = self.source.text, node.entries
        if not entries:
            return None
        if source.startswith("{", node.span.start):
            at, new = entries[-1].value.span.end, f", {key}: {value}"
        else:
            at = entries[0].key.span.start
            before = source[source.rfind("\n", 0, at) + 1 : at]
            if before.strip():
                return None
            new = f"{key}: {value}\n{before}"
        return Fix(f"add {key}: {value}", (Edit(Span(at, at), "", new),), safe=False)

    def name(self, entry: Entry, what: str) -> Name | None:
        return self.name_of(entry.value, what, entry.visible)

    def name_of(self, node: Node, what: str, span: Span | None = None) -> Name | None:
        if isinstance(node, Scalar) and isinstance(node.value, str) and not node.tag:
            if is_name(node.value):
                return Name(node.value, node.span)
            self.report(codes.NAME, f"{quoted(node.value)} cannot be {what}", node.span, RULE)
        elif not self.tagged(node, what):
            message = f"{what} must be text, not {describe(node)}"
            self.report(codes.NAME, message, span or node.span, self.quoting(node))
        return None

    def text(self, entry: Entry, what: str, *, empty: bool = False) -> str | None:
        """Return the text of a value; without `empty` it must not be empty."""
        node = entry.value
        if isinstance(node, Scalar) and isinstance(node.value, str) and not node.tag:
            if node.value or empty:
                return node.value
            self.report(codes.VALUE, f"{what} is empty", node.span)
        elif not self.tagged(node, what):
            help = self.quoting(node) or ("put the text in quotes" if isinstance(node, Mapping) else "")
            self.report(codes.VALUE, f"{what} must be text, not {describe(node)}", entry.visible, help)
        return None

    def placed_text(self, entry: Entry, what: str) -> Text | None:
        text = self.text(entry, what, empty=True)
        if text is None or not isinstance(entry.value, Scalar):
            return None
        return Text(text, entry.value.body, entry.value)

    def expression(self, entry: Entry, what: str) -> ExpressionText | None:
        """Read a value that is always an expression, and so needs no tag."""
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
        self.report(codes.NOT_AN_EXPRESSION, message, entry.visible, quotes)
        return None

    def argument(self, node: Node) -> Argument | None:
        """Read a literal, or an expression if the whole value is tagged as one."""
        if isinstance(node, Scalar) and node.tag == EXPR:
            return self._parsed(node)
        before = len(self.diagnostics)
        value = literal(node, self.diagnostics)
        return Literal(value, node.span) if len(self.diagnostics) == before else None

    def count(self, entry: Entry | None, what: str) -> tuple[bool, int | None]:
        """Return whether the entry is valid, and its number if there is one."""
        if entry is None:
            return True, None
        node = entry.value
        if isinstance(node, Scalar) and type(node.value) is int and node.value > 0:
            return True, node.value
        shown = describe(node) if not isinstance(node, Scalar) or node.value is None else quoted(node.text)
        self.report(codes.LIMIT, f"{what} must be a whole number of at least 1, not {shown}", entry.visible)
        return False, None

    def tagged(self, node: Node, what: str) -> bool:
        """Tell whether the value has a tag where none is allowed, and report it."""
        if not isinstance(node, Scalar) or not node.tag:
            return False
        message = f"{node.tag} cannot stand here: {what} is always written out"
        self.report(MISPLACED_TAG, message, node.span, f"leave {node.tag} out")
        return True

    def _parsed(self, scalar: Scalar) -> ExpressionText | None:
        text = scalar.text
        try:
            expression = _parsed_expression(text, self.dialect)
        except ExprSyntaxError as error:
            # An error about the end of the text points one character after it, which is not part of the text.
            help = ADD_DIALECT if isinstance(error, NeedsDialect) else self._meant(text) or error.help
            part = Span(min(error.span.start, len(text)), min(error.span.end, len(text)))
            where = place(self.source, scalar, part)
            self.report(EXPRESSION_SYNTAX, error.message, where, help, self._function_fix(text, error, where))
            return None
        return ExpressionText(text, scalar.body, scalar, expression=expression)

    def _function_fix(self, text: str, error: ExprSyntaxError, where: Span) -> Fix | None:
        """Return the edit that corrects the misspelled name of a function, if that is all that is wrong."""
        name = text[error.span.start : error.span.end]
        if error.message != f"unknown function {name}" or self._guesses <= 0:
            return None
        from quire.expr.functions import FUNCTIONS  # Only a wrong document needs them.
        from quire.expr.parse import SEED_FUNCTIONS

        fix = word_fix(name, (*SEED_FUNCTIONS, *FUNCTIONS) if self.dialect else SEED_FUNCTIONS, where)
        if fix is None:
            return None
        try:
            parse_expression(text[: error.span.start] + fix.edits[0].new + text[error.span.end :], dialect=self.dialect)
        except ExprSyntaxError:
            return None
        return fix

    def _meant(self, text: str) -> str:
        """Return what may be meant by a text that is not an expression; for the first ones of a document only."""
        if self._guesses <= 0:
            return ""
        self._guesses -= 1
        from quire.expr.suggestions import meant  # Only a wrong document needs it.

        return meant(text, dialect=self.dialect)


class TargetReader:
    """Reads the targets of `call` and of `match` cases: a pipeline by its static name, and the values passed to it."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def of(self, entries: dict[str, Entry]) -> Target | None:
        """Read a target from the entries of a call or a case. A missing `pipeline` has already been reported."""
        name = self._pipeline(entries["pipeline"]) if "pipeline" in entries else None
        passes = self._passes(entries.get("pass"))
        return Target(name, passes) if name else None

    def nested(self, entry: Entry, what: str) -> Target | None:
        """Read a target that is the value of an entry."""
        node = entry.value
        report = self._fields.report
        if not isinstance(node, Mapping):
            text = text_of(node)
            help = f"write {{pipeline: {text}}}" if text else "write {pipeline: NAME}"
            message = f"{what} needs a target, a mapping with the key pipeline, not {describe(node)}"
            report(codes.VALUE, message, entry.visible, help)
            return None
        entries = self._fields.entries(node, ("pipeline", "pass"), what, codes.KEY)
        if "pipeline" not in entries:
            report(codes.MISSING, f"{what} needs the key pipeline", entry.key.span)
        return self.of(entries)

    def _pipeline(self, entry: Entry) -> Name | None:
        node = entry.value
        if isinstance(node, Scalar) and node.tag:
            message = f"the name of the pipeline to call is static, never {describe(node)}"
            self._fields.report(codes.TARGET, message, node.span, "match chooses among static targets by a value")
            return None
        text = text_of(node)
        if text is not None and text.count(".") == 1 and all(map(is_name, text.split("."))):
            return Name(text, node.span)
        if text is not None and "." in text:
            help = f"it is the name of a pipeline or KEY.NAME; {RULE}"
            self._fields.report(codes.NAME, f"{quoted(text)} cannot be a target", node.span, help)
            return None
        return self._fields.name(entry, "the name of a pipeline")

    def _passes(self, entry: Entry | None) -> tuple[Pass, ...]:
        if entry is None or (isinstance(entry.value, Scalar) and entry.value.value is None and not entry.value.tag):
            return ()
        node = entry.value
        passes: list[Pass] = []
        if isinstance(node, Sequence):
            for item in node.items:
                name = self._fields.name_of(item, "a name to pass")
                if name:
                    passes.append(Pass(name))
        elif isinstance(node, Mapping):
            for key, value_entry in named(node, self._fields.diagnostics):
                name = self._fields.name_of(value_entry.key, "a name to pass")
                value = self._fields.expression(value_entry, f"{key} of pass")
                if name and value:
                    passes.append(Pass(name, value))
        else:
            message = f"pass must be a list of names or a mapping of names to expressions, not {describe(node)}"
            text = text_of(node)
            help = f"write [{text}]" if text and is_name(text) else ""
            self._fields.report(codes.VALUE, message, node.span, help)
        return tuple(passes)
