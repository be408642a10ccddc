"""Parse a test file into its tree and findings. Never raises because of the content of a text.

All mistakes are reported, not only the first one: a part that cannot be read is left out, and reading continues after
it. Reading takes linear time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from quire.diagnostics import Severity
from quire.formats.test import codes
from quire.formats.test.case_settings import Defaults, SettingReader
from quire.formats.test.expectations import ExpectReader
from quire.formats.test.fields import HIDDEN, TestFields
from quire.formats.test.syntax import Act, ActKind, Case, Judge, Live, Rows, Setting, TestFile, TestReading, Text
from quire.formats.yaml import TEST_TAGS, Entry, Mapping, Node, Scalar, Sequence, describe, read_yaml, text_of
from quire.formats.yaml import codes as yaml_codes
from quire.source import MAX_TEST_BYTES, NOWHERE, Source, Span
from quire.wording import quoted

if TYPE_CHECKING:
    from quire.formats.test.scripts import Entries
    from quire.values import Value


LONGEST_NAME = 200
TODO = "todo"
EVERYWHERE = "everywhere"
_NOTHING_TO_READ = (yaml_codes.SYNTAX, yaml_codes.TOO_LARGE, yaml_codes.TOO_DEEP, yaml_codes.CHARACTER)


def parse(source: Source) -> TestReading:
    """Parse the text of a test file."""
    yaml = read_yaml(source, limit=MAX_TEST_BYTES, tags=TEST_TAGS)
    reader = _FileReader(source)
    file: TestFile | None = None
    if yaml.documents:
        file = reader.file(yaml.documents[0])
        for other in yaml.documents[1:]:
            reader.fields.report(codes.SYNTAX, "a test file is one YAML document", other.span, "leave --- out")
    elif not any(diagnostic.code in _NOTHING_TO_READ for diagnostic in yaml.diagnostics):
        reader.fields.report(codes.SYNTAX, "the file is empty", NOWHERE, _SHAPE)
    diagnostics = yaml.with_findings(reader.fields.diagnostics)
    if any(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics):
        file = None
    return TestReading(source, file, diagnostics, yaml.documents[0] if yaml.documents else None)


_SHAPE = "a test file has the key cases, a list of cases that each have a name"


class _FileReader:
    def __init__(self, source: Source) -> None:
        self.fields = TestFields(source)
        self._settings = SettingReader(self.fields)
        self._expect = ExpectReader(self.fields)
        self._acts = ActReader(self.fields, self._settings, self._expect)
        self._names: dict[str, Span] = {}

    def file(self, node: Node) -> TestFile | None:
        if not isinstance(node, Mapping):
            self.fields.report(codes.SYNTAX, f"a test file is a mapping, not {describe(node)}", node.span, _SHAPE)
            return None
        entries = self.fields.keys(node, "", "a test file")
        document = self._document(entries["document"]) if "document" in entries else None
        about = self.fields.text(entries["about"], "about", empty=True) if "about" in entries else ""
        nodes = self.fields.items(entries["always"], "always") if "always" in entries else ()
        always = (self.fields.formula(node, "an entry of always") for node in nodes)
        coverage = entries.get("coverage")
        defaults = self._defaults(entries.get("defaults"))
        cases = self._cases(entries, defaults, node)
        return TestFile(
            document,
            cases,
            about or "",
            tuple(formula for formula in always if formula is not None),
            self._coverage(coverage) if coverage else {},
            coverage.key.span if coverage else NOWHERE,
        )

    def _document(self, entry: Entry) -> Text | None:
        text = self.fields.text(entry, "document")
        place = entry.visible
        return Text(text, place) if text is not None and self.fields.path(text, "the path", place, above=True) else None

    def _coverage(self, entry: Entry) -> dict[str, float]:
        node = self.fields.mapping(entry, "coverage", "write {all: 100}, or kinds of decisions")
        if node is None:
            return {}
        entries = self.fields.keys(node, "coverage", "coverage")
        numbers = {kind: self.fields.number(share, kind, 100) for kind, share in entries.items()}
        return {kind: number for kind, number in numbers.items() if number is not None}

    def _defaults(self, entry: Entry | None) -> Defaults:
        node = self.fields.mapping(entry, "defaults") if entry else None
        if node is None:
            return Defaults(self.fields, Setting())
        entries = self.fields.keys(node, "defaults", "defaults")
        return Defaults(self.fields, SettingReader(self.fields, shared=True).setting(entries))

    def _cases(self, entries: Entries, defaults: Defaults, file: Mapping) -> tuple[Case, ...]:
        entry = entries.get("cases")
        if entry is None:
            first = file.entries[0].key.span if file.entries else file.span
            self.fields.missing("the file has no cases", file, entries, _SHAPE, first)
            return ()
        if not isinstance(entry.value, Sequence) or not entry.value.items:
            self.fields.wrong("cases", "a list of at least one case", entry.value, entry.visible, _SHAPE)
            return ()
        cases = (self._case(node, defaults) for node in entry.value.items)
        return tuple(case for case in cases if case is not None)

    def _case(self, node: Node, defaults: Defaults) -> Case | None:
        fields = self.fields
        if not isinstance(node, Mapping):
            fields.wrong("a case", "a mapping with a name", node)
            return None
        entries = fields.keys(node, "cases.-", "a case")
        named = entries.get("name")
        name = self._name(named) if named else None
        if named is None:
            place = node.entries[0].key.span if node.entries else node.span
            fields.missing("the case has no name", node, entries, "write name: before its other keys", place)
        span = named.visible if named else node.span
        setting = defaults.complete(self._settings.setting(entries), span)
        get = entries.get
        expected = get("expect")
        draft = expected is not None and text_of(expected.value) == TODO
        return Case(
            name or "",
            span,
            setting,
            self._expect.expect(expected) if expected and not draft else None,
            draft,
            self._acts.acts(entry) if (entry := get("then")) else (),
            read_rows(fields, get("each"), get("matrix")),
            bool(fields.choice(entry, (EVERYWHERE,), "crash")) if (entry := get("crash")) else False,
            read_live(fields, entry) if (entry := get("live")) else None,
            fields.texts(entry, "tags") if (entry := get("tags")) else (),
            self._reason(entries, "todo"),
            self._reason(entries, "skip"),
            self._reason(entries, "flaky"),
        )

    def _name(self, entry: Entry) -> str | None:
        name = self.fields.text(entry, "the name of a case")
        if name is None:
            return None
        if len(name) > LONGEST_NAME or HIDDEN.search(name) or not name.strip():
            message = f"the name of a case is one line of at most {LONGEST_NAME} characters"
            self.fields.report(codes.SYNTAX, message, entry.value.span)
            return name
        first = self._names.setdefault(name, entry.value.span)
        if first is not entry.value.span:
            line = self.fields.source.position(first.start).line
            message = f"the case {quoted(name)} is here twice"
            self.fields.report(codes.DUPLICATE_CASE, message, entry.value.span, f"the first is on line {line}")
        return name

    def _reason(self, entries: Entries, key: str) -> str | None:
        entry = entries.get(key)
        if entry is None:
            return None
        if reason := text_of(entry.value):
            return reason
        self.fields.wrong(key, "the reason as a text", entry.value, entry.visible, f"write {key}: why")
        return ""


KINDS = tuple(kind.value for kind in ActKind)
ROW_FILES = (".csv", ".jsonl")


class ActReader:
    """Reads `then`."""

    def __init__(self, fields: TestFields, settings: SettingReader, expect: ExpectReader) -> None:
        self._fields = fields
        self._settings = settings
        self._expect = expect

    def acts(self, entry: Entry) -> tuple[Act, ...]:
        acts = (self._act(node) for node in self._fields.items(entry, "then"))
        return tuple(act for act in acts if act is not None)

    def _act(self, node: Node) -> Act | None:
        fields = self._fields
        if not isinstance(node, Mapping):
            fields.wrong("an entry of then", f"a mapping with one of {', '.join(KINDS)}", node)
            return None
        entries = fields.keys(node, "cases.-.then.-", "an entry of then")
        kinds = [kind for kind in KINDS if kind in entries]
        if len(kinds) != 1:
            if kinds:
                message = f"the entry of then has both {kinds[0]} and {kinds[1]}"
                place = entries[kinds[1]].key.span
                fields.report(codes.SYNTAX, message, place, "write two entries, one after the other")
            else:
                fields.missing("the entry of then does nothing", node, entries, f"add one of {', '.join(KINDS)}")
            return None
        kind, entry, get = ActKind(kinds[0]), entries[kinds[0]], entries.get
        if kind is ActKind.CANCEL and fields.flag(entry, "cancel") is False:
            fields.report(codes.SYNTAX, "cancel can only be true", entry.visible, "leave the entry out")
        expected = get("expect")
        return Act(
            kind,
            entry.key.span,
            self._settings.answers(entry) if kind is ActKind.ANSWER else {},
            self._options(kind, entry) if kind in (ActKind.RESUME, ActKind.FORK) else {},
            (fields.duration(entry, "advance") or 0.0) if kind is ActKind.ADVANCE else 0.0,
            self._settings.files(entry) if kind is ActKind.EDIT else {},
            self._settings.model(part) if (part := get("model")) else None,
            self._settings.tools(part) if (part := get("tools")) else {},
            self._expect.expect(expected) if expected else None,
        )

    def _options(self, kind: ActKind, entry: Entry) -> dict[str, Value]:
        fields, node = self._fields, entry.value
        if kind is ActKind.RESUME and isinstance(node, Scalar) and node.value in (None, True) and not node.tag:
            return {}
        mapping = fields.mapping(entry, kind.value)
        if mapping is None:
            return {}
        entries = fields.keys(mapping, f"cases.-.then.-.{kind.value}", kind.value)
        if kind is ActKind.FORK and "from" not in entries:
            fields.missing("fork needs the step that it continues from", mapping, entries, "write {from: STEP}")
        return {key: self._option(key, option) for key, option in entries.items()}

    def _option(self, key: str, entry: Entry) -> Value:
        if key in ("set", "limit"):
            return self._fields.values(entry, key)
        if key == "budget":
            return self._fields.number(entry, key)
        return self._fields.label(entry, key)


def read_rows(fields: TestFields, each: Entry | None, matrix: Entry | None) -> Rows | None:
    """Read `each` and `matrix`; None if a case has neither."""
    if each is None and matrix is None:
        return None
    file, rows = _each(fields, each) if each else ("", ())
    axes = _matrix(fields, matrix) if matrix else {}
    return Rows(rows, file, axes, (each or matrix).key.span)  # type: ignore[union-attr]


def _each(fields: TestFields, entry: Entry) -> tuple[str, tuple[dict[str, Value], ...]]:
    node = entry.value
    text = text_of(node)
    if text is not None:
        if not text.endswith(ROW_FILES):
            fields.report(codes.ROWS, f"{quoted(text)} is not a .csv or .jsonl file", entry.visible)
        elif fields.path(text, "the path", node.span):
            return text, ()
        return "", ()
    if not isinstance(node, Sequence) or not node.items:
        message = f"each must be a list of rows, or the name of a file, not {describe(node)}"
        if isinstance(node, Sequence):
            message = "each has no rows, so the case never runs"
        fields.report(codes.ROWS, message, entry.visible)
        return "", ()
    rows: list[dict[str, Value]] = []
    for item in node.items:
        if isinstance(item, Mapping):
            rows.append({name: fields.value(cell.value) for name, cell in fields.named(item, "a column")})
        else:
            message = f"a row is a mapping of columns to values, not {describe(item)}"
            fields.report(codes.ROWS, message, item.span, "write {column: value}")
    return "", tuple(rows)


def _matrix(fields: TestFields, entry: Entry) -> dict[str, tuple[Value, ...]]:
    node = entry.value
    if not isinstance(node, Mapping) or not node.entries:
        fields.report(codes.ROWS, f"matrix must be a mapping of lists, not {describe(node)}", entry.visible)
        return {}
    axes: dict[str, tuple[Value, ...]] = {}
    for name, axis in fields.named(node, "a column"):
        if isinstance(axis.value, Sequence) and axis.value.items:
            axes[name] = tuple(fields.value(item) for item in axis.value.items)
        else:
            what = "an empty list" if isinstance(axis.value, Sequence) else describe(axis.value)
            fields.report(codes.ROWS, f"{name} of matrix must be a list of values, not {what}", axis.visible)
    return axes


def read_live(fields: TestFields, entry: Entry) -> Live | None:
    """Read the terms of live runs."""
    node = fields.mapping(entry, "live")
    if node is None:
        return None
    get = fields.keys(node, "cases.-.live", "live").get
    tools = fields.choice(part, ("scripted", "real"), "tools of live") if (part := get("tools")) else None
    return Live(
        fields.number(part, "pass", 1) if (part := get("pass")) else None,
        fields.count(part, "repeat") if (part := get("repeat")) else None,
        _judge(fields, part) if (part := get("judge")) else None,
        _similar(fields, part) if (part := get("similar")) else {},
        fields.number(part, "cost") if (part := get("cost")) else None,
        fields.number(part, "seconds") if (part := get("seconds")) else None,
        cast('Literal["scripted", "real"]', tools or "scripted"),
        entry.key.span,
    )


def _similar(fields: TestFields, entry: Entry) -> dict[str, Value]:
    node = fields.mapping(entry, "similar")
    if node is None:
        return {}
    entries = fields.keys(node, "cases.-.live.similar", "similar")
    if "to" not in entries:
        fields.missing("similar needs a text to compare with", node, entries, "write {to: TEXT, least: 0.7}")
        return {}
    least = fields.number(share, "least", 1) if (share := entries.get("least")) else None
    return {"to": fields.text(entries["to"], "to") or "", "least": 0.7 if least is None else least}


def _judge(fields: TestFields, entry: Entry) -> Judge | None:
    entries: Entries = {"rubric": entry}
    if isinstance(entry.value, Mapping):
        entries = fields.keys(entry.value, "cases.-.live.judge", "judge")
        if "rubric" not in entries:
            fields.missing("judge needs a rubric", entry.value, entries, "write {rubric: FILE}")
            return None
    rubric = entries["rubric"]
    text = fields.text(rubric, "rubric")
    return Judge(text, entry.value.span) if text and fields.path(text, "the path", rubric.visible) else None
