"""Results of document tests as JUnit XML: a suite for each file, a case for each case and row.

Strict readers take properties only from suites. So a suite has the document, its hash and the sums; the figures of
one case stand in its output, in the form `[[PROPERTY|name=value]]` that several readers know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from quire.display.test_full import problem_text
from quire.patterns import late_pattern
from quire.testing.results import CaseResult, FileResult, Outcome, Problem
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.testing.observation import Used

_ILLEGAL = late_pattern("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not have, not even as references, and the controls that it advises against."""
_SUMMED = ("cost", "input_tokens", "output_tokens", "model_calls", "tool_calls")


def junit(results: Iterable[FileResult], started: str, host: str = "localhost") -> str:
    """Return the whole file. `started` is the moment of the start in ISO 8601, without a time zone."""
    files = list(results)
    counts = [_counts(file) for file in files]
    totals = {name: sum(one[name] for one in counts) for name in ("tests", "failures", "errors")}
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
        values = [getattr(one, name) for one in used]
        if None not in values:
            yield name, f"{sum(values):g}"


def _case(file: FileResult, case: CaseResult) -> Iterator[str]:
    head = f"    <testcase{_attributes(name=case.name, classname=file.path, time=f'{case.seconds:.6f}')}"
    yield f"{head}>"
    match case.outcome:
        case Outcome.FAILED:
            yield from _failure("failure", file, case.problems)
        case Outcome.SKIPPED:
            yield f"      <skipped>{_text(case.reason)}</skipped>"
        case Outcome.TODO:
            yield f"      <skipped>{_text(f'to do: {case.reason}')}</skipped>"
        case Outcome.FLAKY:
            yield f"      <skipped>{_text(f'failed, flaky: {case.reason}')}</skipped>"
        case Outcome.PASSED:
            pass
    yield f"      <system-out>{_text(chr(10).join(_output(file, case)))}</system-out>"
    yield "    </testcase>"


def _failure(tag: str, file: FileResult, problems: Iterable[Problem]) -> Iterator[str]:
    listed = list(problems)
    first = next((problem for problem in listed if problem.fails), None) or next(iter(listed), None)
    message = first.finding.message if first else ""
    kind = f"{first.finding.code.id} {first.finding.code.name}" if first else ""
    body = "\n".join(problem_text(file.source, problem) for problem in listed)
    yield f"      <{tag}{_attributes(message=message, type=kind)}>{_text(body)}</{tag}>"


def _output(file: FileResult, case: CaseResult) -> Iterator[str]:
    figures: dict[str, Value] = {"file": f"{file.path}:{case.line}"}
    if case.tags:
        figures["tags"] = ", ".join(case.tags)
    figures |= _used(case.used) if case.used else {}
    for name, value in figures.items():
        text = value if isinstance(value, str) else encode(value)
        yield f"[[PROPERTY|{name}={' '.join(text.replace(']]', '] ]').split())}]]"


def _used(used: Used) -> dict[str, Value]:
    return {name: value for name, value in used.as_value().items() if value}


def _attributes(**values: str | int) -> str:
    return "".join(f" {name}={_quoted(str(value))}" for name, value in values.items())


def _quoted(text: str) -> str:
    return quoteattr(_legal(text), {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})


def _text(text: str) -> str:
    return escape(_legal(text))


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)
