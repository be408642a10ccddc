"""Reports in formats of other programs: findings as SARIF 2.1.0, and results of document tests as JUnit XML and TAP 14.

Strict readers of JUnit take properties only from suites. So a suite has the document, its hash and the sums; the
figures of one case stand in its output, in the form `[[PROPERTY|name=value]]` that several readers know. In TAP every
value is written as JSON in ASCII, which YAML reads, so a text from outside cannot end the block or add a key.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from quire import __version__
from quire.diagnostics import Code, Diagnostic, Fix, Related, Severity, fix_of
from quire.display.test_report import ReportPrinter, problem_text
from quire.display.text import one_line
from quire.display.visible import escaped
from quire.patterns import late_pattern
from quire.source import relative_to_here
from quire.testing.case_results import CaseResult, FileResult, Outcome, Problem, Totals
from quire.values import Value, clean, text_or_json

if TYPE_CHECKING:
    from quire.display.diagnostics import Findings
    from quire.source import Source, Span


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.LINT: "warning",
    Severity.NOTE: "note",
}
_RANKS = {"proven": 100.0, "possible": 50.0}


def render(files: Sequence[Findings], colour: bool = False) -> str:
    """Return findings as SARIF. The path of a flow is a `codeFlow`; every related place is a `relatedLocation` too.
    Findings that a comment hides are results with a `suppression`."""
    findings: list[tuple[Source, Diagnostic, str | None]] = []
    for file in files:
        findings += ((file.source, diagnostic, None) for diagnostic in file.diagnostics)
        findings += ((file.source, diagnostic, reason) for diagnostic, reason in file.hidden)
    codes = sorted({finding.code for _, finding, _ in findings}, key=lambda code: code.id)
    places = {code.id: index for index, code in enumerate(codes)}
    marks = _Fingerprints()
    results: list[Value] = []
    for source, finding, reason in findings:
        results.append(_result(source, finding, reason, places[finding.code.id], marks.of(source, finding)))
    log: Value = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "quire", "version": __version__, "rules": [_rule(code) for code in codes]}},
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }
    return escaped(clean(json.dumps(log, indent=2, ensure_ascii=False))) + "\n"


def _rule(code: Code) -> dict[str, Value]:
    return {
        "id": code.id,
        "name": code.name,
        "shortDescription": {"text": code.explanation.split("\n\n")[0].replace("\n", " ")},
        "fullDescription": {"text": code.explanation},
        "defaultConfiguration": {"level": _LEVELS[code.severity]},
    }


class _Fingerprints:
    """Texts that stay the same when lines are added or removed above a finding, or its line is indented."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._begun: dict[tuple[int, int, str], Any] = {}
        """The hash of a line and a code, by the identity of the source: a long line may have thousands of findings."""

    def of(self, source: Source, finding: Diagnostic) -> str:
        number = source.position(finding.span.start).line
        key = id(source), number, finding.code.id
        if key not in self._begun:
            line = " ".join(source.line(number).split())
            self._begun[key] = hashlib.sha256(_utf8("\0".join((finding.code.id, _uri(source), line))))
        hashed = self._begun[key].copy()
        hashed.update(_utf8("".join(f"\0{place.node}" for place in finding.flow)))
        digest = hashed.hexdigest()[:16]
        self._seen[digest] += 1
        return f"{digest}:{self._seen[digest]}"


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _result(source: Source, finding: Diagnostic, reason: str | None, index: int, fingerprint: str) -> Value:
    text = f"{finding.message}. {finding.help}" if finding.help else finding.message
    result: dict[str, Value] = {
        "ruleId": finding.code.id,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [_location(source, finding.span)],
        "partialFingerprints": {"primaryLocationLineHash": fingerprint},
        "rank": _RANKS[finding.confidence],
        "properties": {"confidence": finding.confidence},
    }
    if finding.related:
        result["relatedLocations"] = [{"id": id, **_related(source, at)} for id, at in enumerate(finding.related, 1)]
    if finding.flow:
        steps: list[Value] = [{"location": _related(source, place)} for place in finding.flow]
        result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    if fix := fix_of(source, finding):
        result["fixes"] = [_fix(source, fix)]
    if reason is not None:
        result["suppressions"] = [{"kind": "inSource", "justification": reason}]
    return result


def _related(source: Source, place: Related) -> dict[str, Value]:
    text = ": ".join(part for part in (place.node, place.message) if part)
    return {**_location(place.source or source, place.span), "message": {"text": text}}


def _location(source: Source, span: Span) -> dict[str, Value]:
    region = _region(source, span)
    if span.end <= span.start:
        region = {"startLine": region["startLine"], "startColumn": region["startColumn"]}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(source)}, "region": region}}


def _region(source: Source, span: Span) -> dict[str, Value]:
    start, end = source.position(span.start), source.position(span.end)
    return {"startLine": start.line, "startColumn": start.column, "endLine": end.line, "endColumn": end.column}


def _uri(source: Source) -> str:
    return _address(source.name, os.getcwd())  # noqa: PTH109


@lru_cache(maxsize=100)
def _address(name: str, here: str) -> str:
    """Return the address of a file in the current folder, which is asked for at each finding."""
    return quote(clean(PurePath(relative_to_here(name) or name).as_posix()))


def _fix(source: Source, fix: Fix) -> Value:
    # Without its end a region would be the rest of the line, which an insertion must not replace.
    replacements: list[Value] = [
        {"deletedRegion": _region(source, edit.span), "insertedContent": {"text": edit.new}} for edit in fix.edits
    ]
    change: Value = {"artifactLocation": {"uri": _uri(source)}, "replacements": replacements}
    return {"description": {"text": fix.title}, "artifactChanges": [change], "properties": {"safe": fix.safe}}


_ILLEGAL = late_pattern("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not have, not even as references, and the controls that it advises against."""
_SUMMED = ("cost", "input_tokens", "output_tokens", "model_calls", "tool_calls")


def junit(results: Iterable[FileResult], started: str, host: str = "localhost") -> str:
    """Return the whole file. `started` is the moment of the start in ISO 8601, without a time zone."""
    files = list(results)
    counts = [_counts(file) for file in files]
    totals = {name: sum(count[name] for count in counts) for name in ("tests", "failures", "errors")}
    seconds = sum(case.seconds for file in files for case in file.cases)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites{_attributes(name='quire', **totals, time=f'{seconds:.6f}')}>",
    ]
    for number, (file, count) in enumerate(zip(files, counts, strict=True)):
        lines += _suite(file, count, number, started, host)
    return "\n".join([*lines, "</testsuites>", ""])


def _counts(file: FileResult) -> dict[str, int]:
    outcomes = [case.outcome for case in file.cases]
    broken = int(any(problem.fails for problem in file.problems))
    return {
        "tests": len(outcomes) + broken,
        "failures": outcomes.count(Outcome.FAILED),
        "errors": broken,
        "skipped": sum(outcome in (Outcome.SKIPPED, Outcome.TODO, Outcome.FLAKY) for outcome in outcomes),
    }


def _suite(file: FileResult, counts: dict[str, int], number: int, started: str, host: str) -> Iterator[str]:
    seconds = sum(case.seconds for case in file.cases)
    yield (
        "  <testsuite"
        + _attributes(name=file.path, id=number, **counts, time=f"{seconds:.6f}", timestamp=started, hostname=host)
        + ">"
    )
    yield "    <properties>"
    for name, value in _properties(file):
        yield f"      <property{_attributes(name=name, value=value)}/>"
    yield "    </properties>"
    failing = [problem for problem in file.problems if problem.fails]
    if failing:
        yield f"    <testcase{_attributes(name=file.path, classname=file.path, time='0.000000')}>"
        yield from _failure("error", file, failing)
        yield "    </testcase>"
    for case in file.cases:
        yield from _case(file, case)
    yield "  </testsuite>"


def _properties(file: FileResult) -> Iterator[tuple[str, str]]:
    yield "document", file.document
    for name, value in file.details.items():
        if value is None or isinstance(value, str | int | float):
            yield name, "" if value is None else str(value)
    used = [case.used for case in file.cases if case.used is not None]
    for name in _SUMMED:
        values = [getattr(usage, name) for usage in used]
        if None not in values:
            yield name, f"{sum(values):g}"


def _case(file: FileResult, case: CaseResult) -> Iterator[str]:
    yield f"    <testcase{_attributes(name=case.name, classname=file.path, time=f'{case.seconds:.6f}')}>"
    if case.outcome is Outcome.FAILED:
        yield from _failure("failure", file, case.problems)
    elif case.outcome is not Outcome.PASSED:
        word = {Outcome.TODO: "to do: ", Outcome.FLAKY: "failed, flaky: "}.get(case.outcome, "")
        yield f"      <skipped>{_xml_text(word + case.reason)}</skipped>"
    yield f"      <system-out>{_xml_text(chr(10).join(_output(file, case)))}</system-out>"
    yield "    </testcase>"


def _failure(tag: str, file: FileResult, problems: Iterable[Problem]) -> Iterator[str]:
    listed = list(problems)
    first = next((problem for problem in listed if problem.fails), None) or next(iter(listed), None)
    message = first.finding.message if first else ""
    kind = f"{first.finding.code.id} {first.finding.code.name}" if first else ""
    body = "\n".join(problem_text(file.source, problem) for problem in listed)
    yield f"      <{tag}{_attributes(message=message, type=kind)}>{_xml_text(body)}</{tag}>"


def _output(file: FileResult, case: CaseResult) -> Iterator[str]:
    figures: dict[str, Value] = {"file": f"{file.path}:{case.line}"}
    if case.tags:
        figures["tags"] = ", ".join(case.tags)
    used = case.used.as_value() if case.used else {}
    figures |= {name: value for name, value in used.items() if value}
    for name, value in figures.items():
        yield f"[[PROPERTY|{name}={' '.join(text_or_json(value).replace(']]', '] ]').split())}]]"


def _attributes(**values: str | int) -> str:
    blanks = {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"}
    return "".join(f" {name}={quoteattr(_legal(str(value)), blanks)}" for name, value in values.items())


def _xml_text(text: str) -> str:
    return escape(_legal(text))


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)


_DIRECTIVES = {Outcome.SKIPPED: "SKIP ", Outcome.TODO: "TODO ", Outcome.FLAKY: "TODO flaky: "}


class TapPrinter(ReportPrinter):
    """Prints the plan last, when the number of cases is known."""

    def __init__(self) -> None:
        self.count = 0

    def begin(self) -> str:
        return "TAP version 14\n"

    def file(self, result: FileResult) -> str:
        lines: list[str] = []
        failing = [problem for problem in result.problems if problem.fails]
        if failing:
            lines += [self._point(False, result.path), *_block(result.source, failing)]
        for case in result.cases:
            ok = case.outcome in (Outcome.PASSED, Outcome.SKIPPED)
            word = _DIRECTIVES.get(case.outcome)
            directive = f" # {word}{_escaped(case.reason)}".rstrip() if word else ""
            lines.append(self._point(ok, f"{result.path} :: {case.name}", directive))
            lines += _block(result.source, case.problems)
        return "".join(f"{line}\n" for line in lines)

    def end(self, totals: Totals) -> str:
        return f"1..{self.count}\n"

    def _point(self, ok: bool, description: str, directive: str = "") -> str:
        self.count += 1
        return f"{'ok' if ok else 'not ok'} {self.count} - {_escaped(description)}{directive}"


def _escaped(text: str) -> str:
    return one_line(clean(text)).replace("\\", "\\\\").replace("#", "\\#")


def _block(source: Source, problems: tuple[Problem, ...] | list[Problem]) -> Iterator[str]:
    if not problems:
        return
    yield "  ---"
    first = problems[0]
    yield f"  message: {_ascii_json(first.finding.message)}"
    yield f"  severity: {'fail' if first.fails else 'comment'}"
    yield "  findings:"
    for problem in problems:
        place = source.position(problem.finding.span.start)
        fields: dict[str, Value] = {
            "code": problem.finding.code.id,
            "message": problem.finding.message,
            "file": source.name,
            "line": place.line,
            "column": place.column,
            "help": problem.finding.help,
            "got": problem.value if problem.actual is None else problem.actual,
            "expected": problem.expected,
            "values": dict(problem.parts),
        }
        mark = "-"
        for name, value in fields.items():
            if value not in ("", None, {}):
                yield f"    {mark} {name}: {_ascii_json(value)}"
                mark = " "
    yield "  ..."


def _ascii_json(value: Value) -> str:
    """Write a value as JSON in ASCII. YAML takes neither a lone surrogate nor half of a pair as an escape."""
    encoded = json.dumps(_plain(value), ensure_ascii=False)
    return "".join(character if " " <= character <= "~" else _escape(character) for character in encoded)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _plain(value: Value) -> Value:
    if isinstance(value, str):
        return clean(value)
    return {clean(str(name)): _plain(part) for name, part in value.items()} if isinstance(value, dict) else value
