"""Read the expectations of a case: which part of a run is looked at, and the matcher that it has to fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from quire.formats.test import codes, expected
from quire.formats.test.expected import Check, Matcher, Subject
from quire.formats.yaml import EXPR, Entry, Mapping, Node, Scalar, Sequence, describe
from quire.safe_regex import MAX_PATTERN, can_match
from quire.schema_limits import problem_of
from quire.wording import did_you_mean, quoted

if TYPE_CHECKING:
    from quire.formats.test.fields import TestFields
    from quire.source import Span
    from quire.values import Value

_TESTS = frozenset(expected.TESTS)
_WHOLE: tuple[Subject, ...] = ("output", "artifact", "error")
_LISTS: tuple[Subject, ...] = ("events", "warnings")


class ExpectReader:
    """Reads `expect`."""

    def __init__(self, fields: TestFields) -> None:
        self._fields = fields
        self._matchers = MatcherReader(fields)

    def expect(self, entry: Entry) -> expected.Expect | None:
        """Read all expectations; None if the value is not a mapping."""
        help = "write expect: {status: …}, or expect: todo for a draft"
        node = self._fields.mapping(entry, "expect", help)
        if node is None:
            return None
        checks: list[Check] = []
        for key, part in self._fields.keys(node, "cases.-.expect", "expect").items():
            self._subject(key, part, checks)  # type: ignore[arg-type]
        return expected.Expect(tuple(checks), entry.key.span)

    def _subject(self, subject: Subject, entry: Entry, checks: list[Check]) -> None:
        if subject == "that":
            for node in self._fields.items(entry, "that"):
                if formula := self._fields.formula(node, "an entry of that", codes.MATCHER):
                    checks.append(Check(subject, expected.Holds(formula, node.span), "", node.span))
        elif subject in _WHOLE:
            self._add(subject, "", self._matchers.matcher(entry.value), entry, checks)
        elif subject in ("status", "exit"):
            self._add(subject, "", self._ending(subject, entry), entry, checks)
        elif subject == "refused":
            names = list(self._fields.texts(entry, "refused"))
            self._add(subject, "", expected.Equal(names, entry.value.span), entry, checks)
        elif subject in _LISTS:
            self._add(subject, "", self._list(subject, entry), entry, checks)
        elif self._as_whole(subject, entry.value):
            matcher = self._listed(entry.value) if isinstance(entry.value, Sequence) else None
            self._add(subject, "", matcher or self._matchers.matcher(entry.value), entry, checks)
        else:
            self._named(subject, entry, checks)

    def _as_whole(self, subject: Subject, node: Node) -> bool:
        """Tell whether a matcher stands instead of the names of a subject."""
        if isinstance(node, Scalar):
            return bool(node.tag)
        return subject == "asked" and (isinstance(node, Sequence) or _is_matcher(node))

    def _named(self, subject: Subject, entry: Entry, checks: list[Check]) -> None:
        node = self._fields.mapping(entry, subject)
        if node is None:
            return
        if subject == "prompts" and _is_matcher(node):
            test = node.entries[0].key
            help = 'write the step before it: {"1": {contains: …}}'
            self._fields.report(codes.MATCHER, f"{test.text} needs the step whose prompt is meant", test.span, help)
            return
        entries = self._fields.named(node, "a name")
        if subject == "used":
            entries = list(self._fields.keys(node, "cases.-.expect.used", "used").items())
        for name, part in entries:
            matcher: Matcher | None
            if subject == "steps":
                status = self._fields.choice(part, expected.STEP_STATUSES, f"the status of step {quoted(name)}")
                matcher = None if status is None else expected.Equal(status, part.value.span)
            elif subject == "calls":
                matcher = self._calls(part)
            elif subject in ("prompts", "asked") and isinstance(part.value, Sequence):
                matcher = self._listed(part.value)
            elif subject == "files":
                matcher = self._file(name, part)
            else:
                matcher = self._matchers.matcher(part.value)
            self._add(subject, name, matcher, part, checks)

    def _add(self, subject: Subject, name: str, matcher: Matcher | None, entry: Entry, checks: list[Check]) -> None:
        if matcher is not None:
            checks.append(Check(subject, matcher, name, entry.key.span))

    def _ending(self, subject: Subject, entry: Entry) -> Matcher | None:
        if subject == "exit":
            exit = self._fields.count(entry, "exit", 0)
            return None if exit is None else expected.Equal(exit, entry.value.span)
        status = self._fields.choice(entry, expected.STATUSES, "status")
        return None if status is None else expected.Equal(status, entry.value.span)

    def _list(self, subject: Subject, entry: Entry) -> Matcher | None:
        node = entry.value
        if isinstance(node, Sequence):
            return self._listed(node)
        if _is_matcher(node) or (isinstance(node, Scalar) and node.tag):
            return self._matchers.matcher(node)
        self._fields.wrong(subject, "a list", node, entry.visible, "write [ ] around it")
        return None

    def _listed(self, node: Sequence) -> expected.Listed:
        return expected.Listed(self._matchers.matchers(node.items), node.span)

    def _calls(self, entry: Entry) -> Matcher | None:
        node = entry.value
        if isinstance(node, Scalar) and node.tag:
            return self._matchers.matcher(node)
        if isinstance(node, Scalar):
            count = self._fields.count(entry, "the number of calls", 0)
            return None if count is None else expected.Equal(count, node.span)
        return self._listed(node) if isinstance(node, Sequence) else self._matchers.matcher(node)

    def _file(self, path: str, entry: Entry) -> Matcher | None:
        if not self._fields.path(path, "the path", entry.key.span):
            return None
        if isinstance(entry.value, Scalar) and entry.value.value is None and not entry.value.tag:
            return expected.Absent(True, entry.key.span)
        return self._matchers.matcher(entry.value)


def _is_matcher(node: Node) -> bool:
    return isinstance(node, Mapping) and bool(node.entries) and all(entry.key.value in _TESTS for entry in node.entries)


class MatcherReader:
    """Reads matchers. The limit of the YAML reader on depth bounds the recursion."""

    def __init__(self, fields: TestFields) -> None:
        self._fields = fields

    def matchers(self, nodes: Iterable[Node]) -> tuple[Matcher, ...]:
        """Read several matchers; those that cannot be read are left out."""
        return tuple(matcher for node in nodes if (matcher := self.matcher(node)) is not None)

    def _by_name(self, entries: list[tuple[str, Entry]]) -> tuple[tuple[str, Matcher], ...]:
        matchers = ((name, self.matcher(entry.value)) for name, entry in entries)
        return tuple((name, matcher) for name, matcher in matchers if matcher is not None)

    def matcher(self, node: Node) -> Matcher | None:
        if isinstance(node, Scalar):
            return self._tagged(node) if node.tag else expected.Equal(node.value, node.span)
        if isinstance(node, Sequence):
            return self._sequence(node)
        tests = [entry for entry in node.entries if entry.key.value in _TESTS]
        if not tests:
            return self._mapping(node)
        if len(tests) == len(node.entries):
            matchers = [matcher for matcher in map(self._test, tests) if matcher is not None]
            return matchers[0] if len(matchers) == 1 else expected.AllOf(tuple(matchers), node.span)
        other = next(entry.key for entry in node.entries if entry.key.value not in _TESTS)
        nearest = self._fields.suggestions.nearest(other.text, expected.TESTS)
        named = tests[0].key.text
        hint = f'all keys are matchers, or none; for a key that is named {named}: json: {{"{named}.KEY": …}}'
        help = did_you_mean(nearest, hint)
        message = f"{quoted(other.text)} stands beside the matcher {tests[0].key.text}"
        self._report(message, other.span, help)
        return None

    def _report(self, message: str, span: Span, help: str = "") -> None:
        self._fields.report(codes.MATCHER, message, span, help)

    def _tagged(self, node: Scalar) -> Matcher | None:
        if node.tag == EXPR:
            formula = self._fields.formula(node, EXPR)
            return None if formula is None else expected.Holds(formula, node.span)
        if node.text:
            self._report("nothing stands after !snapshot", node.body, "the value is kept beside the test")
            return None
        return expected.Snapshot(node.span)

    def _sequence(self, node: Sequence) -> Matcher | None:
        matchers = self.matchers(node.items)
        values = [matcher.value for matcher in matchers if isinstance(matcher, expected.Equal)]
        is_plain = len(values) == len(matchers)
        return expected.Equal(values, node.span) if is_plain else expected.Listed(matchers, node.span)

    def _mapping(self, node: Mapping) -> Matcher | None:
        matchers = self._by_name(self._fields.named(node, "a key"))
        values = {name: matcher.value for name, matcher in matchers if isinstance(matcher, expected.Equal)}
        is_plain = len(values) == len(matchers)
        return expected.Equal(values, node.span) if is_plain else expected.Fields(matchers, node.span)

    def _test(self, entry: Entry) -> Matcher | None:
        node, key = entry.value, entry.key.value
        match key:
            case "contains" | "not_contains":
                return expected.Contains(self._parts(node, str(key)), key == "not_contains", node.span)
            case "matches":
                return self._matches(entry)
            case "json":
                paths = self._fields.mapping(entry, "json", 'write {json: {"a.b": …}}')
                named = self._fields.named(paths, "a path") if paths else []
                return expected.JsonAt(self._by_name(named), node.span) if paths else None
            case "schema":
                return self._schema(entry)
            case "most" | "least":
                return self._limit(entry, str(key))
            case "any" | "all":
                return self._several(entry, str(key))
            case _:
                absent = self._fields.flag(entry, "absent")
                return None if absent is None else expected.Absent(absent, node.span)

    def _parts(self, node: Node, key: str) -> tuple[Value, ...]:
        nodes = node.items if isinstance(node, Sequence) else (node,)
        if not nodes or any(isinstance(part, Scalar) and part.value in ("", None) and not part.tag for part in nodes):
            self._report(f"{key} is empty, so it says nothing", node.span)
        return tuple(self._fields.value(part) for part in nodes)

    def _matches(self, entry: Entry) -> Matcher | None:
        pattern = self._fields.text(entry, "matches")
        if pattern is None:
            return None
        if not can_match(pattern):
            if len(pattern) > MAX_PATTERN:
                self._report(f"the pattern is longer than {MAX_PATTERN:,} characters", entry.visible)
            else:
                help = "RE2 has no look-around and no back references; a bracket itself is written \\("
                self._report("the pattern is not valid", entry.visible, help)
            return None
        return expected.Matches(pattern, entry.value.span)

    def _schema(self, entry: Entry) -> Matcher | None:
        before = len(self._fields.diagnostics)
        schema = self._fields.values(entry, "schema")
        if len(self._fields.diagnostics) > before:
            return None
        if problem := problem_of(schema):
            self._report(f"the schema cannot be used: {problem}", entry.key.span)
            return None
        return expected.FitsSchema(schema, entry.value.span)

    def _limit(self, entry: Entry, key: str) -> Matcher | None:
        node = entry.value
        value = node.value if isinstance(node, Scalar) and not isinstance(node.value, bool) else None
        if isinstance(value, int | float) and abs(value) <= 1e15:
            return expected.Limit(float(value), key == "least", node.span)
        self._report(f"{key} must be a number, not {describe(node)}", entry.visible)
        return None

    def _several(self, entry: Entry, key: str) -> Matcher | None:
        node = entry.value
        if not isinstance(node, Sequence):
            matcher = self.matcher(node)
            return None if matcher is None else expected.Items(matcher, key == "all", node.span)
        if not node.items:
            self._report(f"{key} is empty, so it says nothing", node.span)
        matchers = self.matchers(node.items)
        return expected.OneOf(matchers, node.span) if key == "any" else expected.AllOf(matchers, node.span)
