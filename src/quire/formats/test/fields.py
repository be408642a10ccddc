"""Read keys and values of a test file, and ask its published JSON Schema what can stand at a place.

The methods of `TestFields` report a problem and return None or an empty value, so that a reader continues and finds the
next problem too. The reader, editors and the documentation have keys, words and their meanings from the schema.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.json import decode

from quire.diagnostics import Code, Findings
from quire.expr import ExprSyntaxError, compile, reads
from quire.expr import parse as parse_expression
from quire.expr.errors import EXPRESSION_SYNTAX
from quire.formats.near_names import word_fix
from quire.formats.test import codes
from quire.formats.test.expected import EXPRESSION_NAMES
from quire.formats.yaml import EXPR, Entry, Node, Scalar, Sequence, describe, place
from quire.formats.yaml import Mapping as YamlMapping
from quire.formats.yaml.codes import MISPLACED_TAG
from quire.patterns import late_pattern
from quire.plan.pipeline_work import Formula
from quire.source import Source, Span
from quire.units import seconds_of
from quire.wording import LONGEST_QUOTED, did_you_mean, quoted

if TYPE_CHECKING:
    from quire.values import Value


_DRIVE = late_pattern(r"[A-Za-z]:")
HIDDEN = late_pattern("[\x00-\x1f\x7f-\x9f]")
LONGEST_PATH = 1000


class TestFields(Findings):
    """One reading: its source, its findings, and the expressions that were parsed so far."""

    __test__ = False

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source
        self._formulas: dict[str, Formula | None] = {}

    def wrong(self, what: str, kind: str, node: Node, span: Span | None = None, help: str = "") -> None:
        """Report a value of the wrong kind."""
        if not help and isinstance(node, Scalar) and node.text and "text" in kind and not node.tag:
            help = f'write "{node.text}" if it is meant as text' if len(node.text) <= LONGEST_QUOTED else ""
        self.report(codes.SYNTAX, f"{what} must be {kind}, not {describe(node)}", span or node.span, help)

    def keys(self, node: YamlMapping, place: str, what: str, help: str = "") -> dict[str, Entry]:
        """Return the entries by key. Keys that the schema does not have at a place are reported, with the nearest known
        one or `help`."""
        entries: dict[str, Entry] = {}
        known = keys_of(place)
        for entry in node.entries:
            name = entry.key.value
            if isinstance(name, str) and name in known:
                entries[name] = entry
            else:
                self.unknown_key(entry.key, known, what, node, help)
        return entries

    def unknown_key(self, key: Scalar, known: Collection[str], what: str, around: YamlMapping, help: str = "") -> None:
        nearest = self.suggestions.nearest(key.text, known)
        fix = word_fix(key.text, known, key.span) if nearest else None
        # A key that is already present cannot be what another one was meant to be.
        if fix and any(around.get(edit.new) is not None for edit in fix.edits):
            fix = None
        help = did_you_mean(nearest) or help or f"the keys are {', '.join(known)}"
        self.report(codes.UNKNOWN_KEY, f"{quoted(key.text)} is not a key of {what}", key.span, help, fix)

    def missing(
        self, message: str, node: YamlMapping, entries: Collection[str], help: str, span: Span | None = None
    ) -> None:
        """Report a key that is needed, unless one of the unknown keys may be meant for it."""
        if len(entries) == len(node.entries):
            self.report(codes.SYNTAX, message, span or node.span, help)

    def mapping(self, entry: Entry, what: str, help: str = "") -> YamlMapping | None:
        if isinstance(entry.value, YamlMapping):
            return entry.value
        self.wrong(what, "a mapping", entry.value, entry.visible, help)
        return None

    def items(self, entry: Entry, what: str, help: str = "") -> tuple[Node, ...]:
        if isinstance(entry.value, Sequence):
            return entry.value.items
        self.wrong(what, "a list", entry.value, entry.visible, help or "write [ ] around it")
        return ()

    def named(self, mapping: YamlMapping, what: str) -> list[tuple[str, Entry]]:
        """Return the entries by name. A number is taken as it is written: labels of steps often are numbers."""
        entries: list[tuple[str, Entry]] = []
        numbers = False
        for entry in mapping.entries:
            name = entry.key.value
            if isinstance(name, str):
                entries.append((name, entry))
            elif name is None or isinstance(name, bool):
                self.wrong(what, "text", entry.key)
            else:
                entries.append((entry.key.text, entry))
                numbers = True
        return self._distinct(entries) if numbers else entries

    def _distinct(self, entries: list[tuple[str, Entry]]) -> list[tuple[str, Entry]]:
        """Report a name that occurs as a number and as a text, and leave the second one out."""
        distinct: dict[str, Entry] = {}
        for name, entry in entries:
            if distinct.setdefault(name, entry) is not entry:
                self.report(codes.SYNTAX, f"the key {quoted(name)} is here twice", entry.key.span)
        return list(distinct.items())

    def text(self, entry: Entry, what: str, *, empty: bool = False) -> str | None:
        return self.text_of(entry.value, what, entry.visible, empty=empty)

    def text_of(self, node: Node, what: str, span: Span | None = None, *, empty: bool = False) -> str | None:
        if isinstance(node, Scalar) and isinstance(node.value, str) and not node.tag:
            if node.value or empty:
                return node.value
            self.report(codes.SYNTAX, f"{what} is empty", span or node.span)
        else:
            self.wrong(what, "text", node, span)
        return None

    def label(self, entry: Entry, what: str) -> str | None:
        """Return a text, or a number as it is written."""
        node = entry.value
        if isinstance(node, Scalar) and not node.tag and isinstance(node.value, int | float) and node.value is not True:
            return node.text
        return self.text(entry, what)

    def texts(self, entry: Entry, what: str) -> tuple[str, ...]:
        texts = (self.text_of(node, f"an entry of {what}") for node in self.items(entry, what))
        return tuple(text for text in texts if text is not None)

    def flag(self, entry: Entry, what: str) -> bool | None:
        node = entry.value
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        self.wrong(what, "true or false", node, entry.visible)
        return None

    def number(self, entry: Entry, what: str, most: float | None = None) -> float | None:
        """Return a number that is at least 0."""
        node = entry.value
        value = node.value if isinstance(node, Scalar) and not isinstance(node.value, bool) else None
        if isinstance(value, int | float) and 0 <= value <= (1e15 if most is None else most):
            return float(value)
        kind = "a number of at least 0" if most is None else f"a number from 0 to {most:g}"
        self.wrong(what, kind, node, entry.visible)
        return None

    def count(self, entry: Entry, what: str, least: int = 1) -> int | None:
        node = entry.value
        if isinstance(node, Scalar) and type(node.value) is int and least <= node.value <= 10**9:
            return node.value
        self.wrong(what, f"a whole number of at least {least}", node, entry.visible)
        return None

    def choice(self, entry: Entry, options: Collection[str], what: str) -> str | None:
        return self.choice_of(entry.value, options, what, entry.visible)

    def choice_of(self, node: Node, options: Collection[str], what: str, span: Span | None = None) -> str | None:
        value = node.value if isinstance(node, Scalar) and not node.tag else None
        if isinstance(value, str) and value in options:
            return value
        allowed = f"one of {', '.join(options)}" if len(options) > 2 else " or ".join(options)
        if isinstance(value, str):
            nearest = self.suggestions.nearest(value, options)
            message = f"{what} must be {allowed}, not {quoted(value)}"
            fix = word_fix(value, options, node.span) if nearest else None
            self.report(codes.SYNTAX, message, span or node.span, did_you_mean(nearest), fix)
        else:
            self.wrong(what, allowed, node, span)
        return None

    def duration(self, entry: Entry, what: str) -> float | None:
        """Return a duration in seconds."""
        node = entry.value
        if isinstance(node, Scalar) and isinstance(node.value, str) and not node.tag:
            seconds = seconds_of(node.value)
            if seconds is not None:
                return seconds
        text = quoted(node.text) if isinstance(node, Scalar) and node.text else describe(node)
        self.report(codes.SYNTAX, f"{what} must be a time such as 20ms, 30m, 48h or 7d, not {text}", entry.visible)
        return None

    def value(self, node: Node) -> Value:
        """Return the value of a node without tags. The reader's limit on depth bounds the recursion."""
        if isinstance(node, Scalar):
            if node.tag:
                message = f"{node.tag} cannot stand here: it is for expectations"
                self.report(MISPLACED_TAG, message, node.span)
                return None
            return node.value
        if isinstance(node, Sequence):
            return [self.value(item) for item in node.items]
        return {name: self.value(entry.value) for name, entry in self.named(node, "a key")}

    def values(self, entry: Entry, what: str) -> dict[str, Value]:
        node = self.mapping(entry, what)
        return {} if node is None else {name: self.value(entry.value) for name, entry in self.named(node, "a name")}

    def path(self, text: str, what: str, span: Span, *, above: bool = False) -> bool:
        """Tell whether a path stays below the folder that it begins in; report it otherwise. `above` allows `..`."""
        parts = text.replace("\\", "/").split("/")
        outside = text.startswith(("/", "\\", "~")) or (".." in parts and not above) or _DRIVE.match(text)
        if not outside and 0 < len(text) <= LONGEST_PATH and not HIDDEN.search(text):
            return True
        if outside:
            help = "name a file below the folder of the test, without .. and without a leading /"
            self.report(codes.OUTSIDE, f"{what} {quoted(text)} leaves the folder", span, help)
        else:
            self.report(codes.SYNTAX, f"{what} {quoted(text)} cannot be the name of a file", span)
        return False

    def formula(self, node: Node, what: str, code: Code = codes.SYNTAX) -> Formula | None:
        """Read an expression, with or without its tag."""
        if isinstance(node, Scalar) and node.tag in ("", EXPR) and isinstance(node.value, str):
            text = node.text
            if text in self._formulas:
                earlier = self._formulas[text]
                return earlier and Formula(text, earlier.compiled, node.body)
            formula = self._formulas[text] = self._parsed(node)
            return formula
        self.report(code, f"{what} must be an expression, not {describe(node)}", node.span, 'write !expr "…"')
        return None

    def _parsed(self, scalar: Scalar) -> Formula | None:
        text = scalar.text
        try:
            expression = parse_expression(text, dialect=True)
        except ExprSyntaxError as error:
            # An error about the end of the text points one character after it, which is not part of the text.
            part = Span(min(error.span.start, len(text)), min(error.span.end, len(text)))
            self.report(EXPRESSION_SYNTAX, error.message, place(self.source, scalar, part), error.help)
            return None
        for read in reads(expression):
            if read.path[0] not in EXPRESSION_NAMES:
                nearest = self.suggestions.nearest(read.path[0], EXPRESSION_NAMES)
                message = f"{quoted(read.path[0])} is not a name that an expectation can read"
                help = did_you_mean(nearest) or f"there are {', '.join(EXPRESSION_NAMES)}"
                self.report(codes.MATCHER, message, place(self.source, scalar, read.span), help)
                return None
        return Formula(text, compile(expression), scalar.body)


ITEM = "-"
Schema: TypeAlias = Mapping[str, Any]


def schema_text() -> str:
    """Return the schema, as `quire test --schema` prints it."""
    return files("quire.formats.test").joinpath("schema.json").read_text(encoding="utf-8")


@cache
def _root() -> Schema:
    schema: Schema = decode(schema_text())
    return schema


@lru_cache(maxsize=512)
def schemas_at(path: tuple[str, ...]) -> tuple[Schema, ...]:
    """Return the schemas of the value at a path, without references and alternatives. Their first one has the
    description of the place."""
    schemas = tuple(_plain(_root()))
    for part in path:
        schemas = tuple(inner for schema in schemas for below in _below(schema, part) for inner in _plain(below))
        if not schemas:
            return ()
    return schemas


def _below(schema: Schema, part: str) -> Iterator[Schema]:
    if part == ITEM:
        if isinstance(items := schema.get("items"), Mapping):
            yield items
    elif part in (properties := schema.get("properties", {})):
        yield properties[part]
    elif isinstance(more := schema.get("additionalProperties"), Mapping):
        yield more


def _plain(schema: Schema) -> Iterator[Schema]:
    """Yield a schema and its alternatives, each without references. The description at the place comes first."""
    if "description" in schema and "$ref" in schema:
        yield {"description": schema["description"]}
    if "$ref" in schema:
        referred: Any = _root()
        for part in schema["$ref"].removeprefix("#/").split("/"):
            referred = referred[part]
        yield from _plain(referred)
        return
    yield schema
    for key in ("oneOf", "anyOf"):
        for alternative in schema.get(key, ()):
            if "required" not in alternative or "properties" in alternative:
                yield from _plain(alternative)


def keys_at(path: tuple[str, ...]) -> dict[str, str]:
    """Return the keys that a mapping at a path can have, with their meaning."""
    return {name: description_of((*path, name)) for schema in schemas_at(path) for name in schema.get("properties", {})}


@cache
def keys_of(place: str) -> tuple[str, ...]:
    """Return the keys of the mapping at a place: `cases.-.live`, with any name where the author of a test chooses
    one."""
    return tuple(keys_at(tuple(filter(None, place.split(".")))))


def words_at(path: tuple[str, ...]) -> list[str]:
    """Return the words that can stand at a path: status words, `todo`, `real`, `true`."""
    words: list[str] = []
    for schema in schemas_at(path):
        words += [_word(word) for word in schema.get("enum", ())]
        if "const" in schema:
            words.append(_word(schema["const"]))
        if schema.get("type") == "boolean":
            words += ["true", "false"]
    return list(dict.fromkeys(words))


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def description_of(path: tuple[str, ...]) -> str:
    """Return the meaning of the value at a path; empty if the schema does not say it."""
    return next((str(schema["description"]) for schema in schemas_at(path) if "description" in schema), "")


def takes_mapping(path: tuple[str, ...]) -> bool:
    """Tell whether the value at a path is a mapping and nothing else."""
    kinds = [schema.get("type", "object") for schema in schemas_at(path) if "type" in schema or "properties" in schema]
    return bool(kinds) and all(kind == "object" for kind in kinds)


def takes_matcher(path: tuple[str, ...]) -> bool:
    """Tell whether an expectation stands at a path, which may be a matcher, `!expr` or `!snapshot`."""
    return any({"contains", "not_contains"} <= schema.get("properties", {}).keys() for schema in schemas_at(path))


def takes_expression(path: tuple[str, ...]) -> bool:
    """Tell whether only an expression can stand at a path."""
    return description_of(path).startswith("An expression of pipelines")
