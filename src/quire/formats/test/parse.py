"""Parse a test file into its tree and findings. Never raises because of the content of a text.

All mistakes are reported, not only the first one: a part that cannot be read is left out, and reading continues after
it. Reading takes linear time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.diagnostics import Severity
from quire.formats.test import codes
from quire.formats.test.acts import ActReader, read_live, read_rows
from quire.formats.test.expectations import ExpectReader
from quire.formats.test.fields import HIDDEN, TestFields, shown, visible
from quire.formats.test.settings import Defaults, SettingReader
from quire.formats.test.syntax import Case, Setting, TestFile, TestReading, Text
from quire.formats.yaml import TEST_TAGS, Entry, Mapping, Node, Sequence, describe, read_yaml, text_of
from quire.formats.yaml import codes as yaml_codes
from quire.source import MAX_TEST_BYTES, NOWHERE, Source, Span

if TYPE_CHECKING:
    from quire.formats.test.script_parts import Entries
    from quire.plan.pipeline_work import Formula

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
    elif not any(found.code in _NOTHING_TO_READ for found in yaml.diagnostics):
        reader.fields.report(codes.SYNTAX, "the file is empty", NOWHERE, _SHAPE)
    diagnostics = yaml.with_findings(reader.fields.diagnostics)
    if any(found.severity is Severity.ERROR for found in diagnostics):
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
        always = self._always(entries["always"]) if "always" in entries else ()
        coverage = entries.get("coverage")
        defaults = self._defaults(entries.get("defaults"))
        cases = self._cases(entries, defaults, node)
        return TestFile(
            document,
            cases,
            about or "",
            always,
            self._coverage(coverage) if coverage else {},
            coverage.key.span if coverage else NOWHERE,
        )

    def _document(self, entry: Entry) -> Text | None:
        text = self.fields.text(entry, "document")
        place = visible(entry)
        return Text(text, place) if text is not None and self.fields.path(text, "the path", place, above=True) else None

    def _always(self, entry: Entry) -> tuple[Formula, ...]:
        found = (self.fields.formula(node, "an entry of always") for node in self.fields.items(entry, "always"))
        return tuple(formula for formula in found if formula is not None)

    def _coverage(self, entry: Entry) -> dict[str, float]:
        node = self.fields.mapping(entry, "coverage", "write {all: 100}, or kinds of decisions")
        if node is None:
            return {}
        found = self.fields.keys(node, "coverage", "coverage")
        numbers = {kind: self.fields.number(one, kind, 100) for kind, one in found.items()}
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
            self.fields.wrong("cases", "a list of at least one case", entry.value, visible(entry), _SHAPE)
            return ()
        found = (self._case(node, defaults) for node in entry.value.items)
        return tuple(case for case in found if case is not None)

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
        span = visible(named) if named else node.span
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
            self._acts.acts(one) if (one := get("then")) else (),
            read_rows(fields, get("each"), get("matrix")),
            bool(fields.choice(one, (EVERYWHERE,), "crash")) if (one := get("crash")) else False,
            read_live(fields, one) if (one := get("live")) else None,
            fields.texts(one, "tags") if (one := get("tags")) else (),
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
            message = f"the case {shown(name)} is here twice"
            self.fields.report(codes.DUPLICATE_CASE, message, entry.value.span, f"the first is on line {line}")
        return name

    def _reason(self, entries: Entries, key: str) -> str | None:
        entry = entries.get(key)
        if entry is None:
            return None
        if reason := text_of(entry.value):
            return reason
        self.fields.wrong(key, "the reason as a text", entry.value, visible(entry), f"write {key}: why")
        return ""
