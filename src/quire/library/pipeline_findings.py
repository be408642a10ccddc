"""Find mistakes in a file of pipelines that its format alone cannot know: names that other files declare too, and
headers that the built-in tools do not send."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from quire.diagnostics import Diagnostic
from quire.formats.pipeline.codes.errors import CLAIMED_TWICE
from quire.formats.pipeline.codes.warnings import ARGUMENTS
from quire.formats.pipeline.syntax import Literal, ToolBody
from quire.formats.pipeline.walks import walk
from quire.plan.built_in_tools import FETCH, SEND
from quire.source import real_path
from quire.trust.capabilities import canonical

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import ParseResult, Step
    from quire.library.snapshot import Snapshot
    from quire.source import Source


def claimed_twice(source: Source, library: Snapshot) -> list[Diagnostic]:
    """Return a finding for each name that both this file and another one declare: neither is loaded."""
    findings = []
    claimed = library.registry().claimed
    at = real_path(Path(source.name)) if claimed else Path()
    for name, several in claimed.items():
        others = [one.source.name for one in several if real_path(Path(one.source.name)) != at]
        for one in several if len(others) < len(several) else ():
            if one.source.name not in others:
                message = f"the pipeline {name} is declared by {' and by '.join(others)} too: neither is loaded"
                findings.append(Diagnostic(CLAIMED_TWICE, message, one.tree.name.span, help="rename one of them"))
    return findings


def steps_of(reading: ParseResult) -> Iterator[Step]:
    """Yield all steps of a file that can run."""
    for pipeline in reading.file.pipelines if reading.file else ():
        yield from (step for _, step in walk(pipeline))


def refused_headers(steps: Iterable[Step]) -> list[Diagnostic]:
    """Return a finding for each header written in the document that `http__get` and `http__send` do not send."""
    findings: list[Diagnostic] = []
    for step in steps:
        body = step.body
        if not isinstance(body, ToolBody) or canonical(body.name.text) not in (FETCH, SEND):
            continue
        for name, value in body.args:
            if name.text == "headers" and isinstance(value, Literal) and isinstance(value.value, Mapping):
                from quire.tools.builtin.http import header_problem

                pairs = value.value.items()
                problems = [problem for header, text in pairs if (problem := header_problem(str(header), text))]
                findings += [Diagnostic(ARGUMENTS, problem, value.span) for problem in problems]
    return findings
