"""Check documents against their workspaces: collect the findings that `quire check` and editors show, whichever room
reports them. Nothing is started, and the user is not asked.

A workspace is loaded only for a document that may name something in it, and then once for all its documents.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire import formats
from quire.diagnostics import Diagnostic, Severity
from quire.library.collect import has_file_beside
from quire.source import real_path

if TYPE_CHECKING:
    from quire.diagnostics import Code
    from quire.formats.pipeline.syntax import ParseResult, Pipeline, PipelineFile
    from quire.formats.suppressions import Hidden
    from quire.library.document import Places
    from quire.library.proven_findings import ProvenFindings
    from quire.library.snapshot import Snapshot
    from quire.plan.nodes import Plan
    from quire.source import Source
    from quire.workspace.locate import Workspace
    from quire.workspace.settings import Settings


_REACHES_OUT = ("@tool(", "@prompt(", "@model(", "-----BEGIN ")
_KEY_HEADS = ("sk", "ghp", "gho", "xoxb", "xoxp", "AKIA", "AIza")
"""The first letters of keys; a sign, a digit or a capital follows."""

_PROMPT_FILE = "@prompt(file:"
_ALLOW = "quire:"
"""The word of comments that hide findings."""


def _calls_out(text: str) -> bool:
    """Tell whether a playbook calls another document or a tool of the workspace, or asks for a model."""
    return "@tool(" in text or "@model(" in text


def is_alone(source: Source) -> bool:
    """Tell whether the findings about a document depend on its own text only."""
    named = _calls_out(source.text) or _PROMPT_FILE in source.text
    return not named and formats.format_of(source) == "playbook"


class FileFindings(Struct, frozen=True, kw_only=True):
    """The findings about a file, or the reason why it cannot be read."""

    findings: tuple[Diagnostic, ...] = ()
    error: str = ""
    """Why it cannot be read at all."""

    def count(self, *severities: Severity) -> int:
        return sum(finding.severity in severities for finding in self.findings)

    @property
    def errors(self) -> int:
        return self.count(Severity.ERROR) + bool(self.error)

    @property
    def warnings(self) -> int:
        return self.count(Severity.WARNING)


class QuickFindings(Struct, frozen=True):
    """The findings of `DocumentCheck.quick`."""

    diagnostics: tuple[Diagnostic, ...]
    can_run: bool
    """True if none is an error."""
    has_more: bool
    """True if `DocumentCheck.thorough` may find more."""


class DocumentCheck:
    """Collects all findings about documents, each in its own workspace."""

    def __init__(self, *, portable: bool = False, imports: bool = True, places: Places | None = None) -> None:
        """`portable` adds a note for each place of a pipeline or a playbook that only Quire understands. Without
        `imports` no Python tool is imported, and nothing is known about them."""
        self._portable = portable
        self._imports = imports
        self._given_places = places
        self._libraries: dict[Path, Snapshot] = {}
        self._registered: dict[str, bool] = {}
        """By the name of a document: true if its file may hold several pipelines."""
        self._rules: dict[int, ProvenFindings] = {}
        """By the identity of the library, which lives as long as this."""

    def of(self, source: Source, hidden: list[Hidden] | None = None) -> tuple[Diagnostic, ...]:
        """Return all findings about a document of any format. Those that its comments hide are added to `hidden`."""
        return self.shown(source, self._all(source), hidden)

    def quick(self, source: Source) -> QuickFindings:
        """Return the findings about a document that need neither a plan nor a proof, before its comments are
        applied."""
        if formats.format_of(source) == "pipeline":
            reading, library = self._pipelines(source)
            findings = formats.invisible.added(source, _pipeline_findings(source, reading, library, plans=False))
            has_plan = reading.file is not None
        else:
            findings, has_plan = self._written(source), False
        can_run = not any(finding.severity is Severity.ERROR for finding in findings)
        return QuickFindings(findings, can_run, has_plan or (can_run and self._is_proven(source)))

    def thorough(self, source: Source, *, can_run: bool) -> tuple[Diagnostic, ...]:
        """Return the findings that `quick` leaves out, before comments are applied. `can_run` tells that none of the
        quick ones is an error."""
        findings = self._plan_limits(source) if formats.format_of(source) == "pipeline" else []
        return (*findings, *(self._proven(source) if can_run else ()))

    def shown(
        self, source: Source, findings: tuple[Diagnostic, ...], hidden: list[Hidden] | None = None
    ) -> tuple[Diagnostic, ...]:
        """Return the findings that are left when the comments of the document are applied."""
        if _ALLOW not in source.text:
            return findings
        from quire.formats.suppressions import applied

        result = applied(source, findings, all_codes, self._was_searched)
        if hidden is not None:
            hidden += result.hidden
        return result.diagnostics

    def _was_searched(self, code: Code) -> bool:
        """Tell whether findings of a code would have been found. Without imports nothing is known of Python tools."""
        return self._imports and (self._portable or code.portable)

    def _all(self, source: Source) -> tuple[Diagnostic, ...]:
        """Return all findings about a document before its comments are applied. The rules of the analysis are for
        documents that can run."""
        findings = self._written(source)
        if any(finding.severity is Severity.ERROR for finding in findings):
            return findings
        proven = self._proven(source)
        return _in_order(findings, proven) if proven else findings

    def _proven(self, source: Source) -> tuple[Diagnostic, ...]:
        """Return the findings of the rules of the analysis. Most playbooks only ask a model and people, which is
        nothing that the rules look at: those are not worth the time to load them."""
        if not self._is_proven(source):
            return ()
        from quire.library.proven_findings import ProvenFindings

        library = self._around(source)
        if id(library) not in self._rules:
            self._rules[id(library)] = ProvenFindings(library)
        return self._rules[id(library)].of(source)

    def _is_proven(self, source: Source) -> bool:
        format = formats.format_of(source)
        return format in formats.RUNNABLE and (format != "playbook" or _reaches_out(source.text))

    def _written(self, source: Source) -> tuple[Diagnostic, ...]:
        """Return the findings of the rules of the format."""
        match formats.format_of(source):
            case "directive":
                findings = self.directive(source)
            case "knowledge":
                findings = self.knowledge(source)
            case "pipeline":
                findings = self.pipeline(source)
            case "test":
                findings = self.test(source)
            case "playbook" if self._portable or _calls_out(source.text) or _PROMPT_FILE in source.text:
                findings = self.playbook(source)
            case _:
                return formats.check(source)
        return formats.invisible.added(source, findings)

    def playbook(self, source: Source) -> tuple[Diagnostic, ...]:
        from quire.formats.playbook.check import check_reading
        from quire.library.document import parse_playbook, unnamed

        library = self._around(source) if _calls_out(source.text) else None
        reading, lines = parse_playbook(unnamed(source), True)
        findings = check_reading(replace(reading, source=source), lines, library, has_file_beside(source))
        if not self._portable or reading.playbook is None:
            return findings
        from quire.formats.playbook.extensions import beyond_format

        return _in_order(findings, beyond_format(reading.playbook))

    def pipeline(self, source: Source) -> tuple[Diagnostic, ...]:
        reading, library = self._pipelines(source)
        findings = _pipeline_findings(source, reading, library, plans=True)
        if not self._portable:
            return findings
        from quire.formats.pipeline.portable import beyond_format

        return _in_order(findings, beyond_format(reading))

    def _plan_limits(self, source: Source) -> list[Diagnostic]:
        """Return the limits that runs of a file of pipelines would exceed."""
        from quire.formats.pipeline.check import check_plans
        from quire.formats.pipeline.fields import Fields
        from quire.formats.pipeline.lower import lower
        from quire.library.document import read

        def lowered(file: PipelineFile, pipeline: Pipeline) -> Plan:
            # The plan of a file with one pipeline is proven as well: it is made once.
            plan = read(source).plan if len(file.pipelines) == 1 else None
            return plan or lower(file, pipeline)

        (reading, library), fields = self._pipelines(source), Fields(source)
        if reading.file is not None:
            check_plans(reading.file, library, fields, lowered)
        return fields.diagnostics

    def directive(self, source: Source) -> tuple[Diagnostic, ...]:
        from quire.formats.directive.check import check_reading
        from quire.formats.directive.parse import parse
        from quire.library.document import place_of
        from quire.trust.risk import NO_RULES, project_risk, unacknowledged

        reading, place = parse(source), place_of(Path(source.name), "directives")
        if place is None:
            findings, project = check_reading(reading), NO_RULES
        else:
            folder, path = place
            library = self._library(folder, lambda: _settings(folder))
            findings, project = check_reading(reading, library, path), project_risk(folder)
        risks = unacknowledged(reading.partial.permissions, project) if reading.whole else ()
        return tuple(sorted((*findings, *risks), key=lambda finding: (finding.span.start, finding.span.end)))

    def knowledge(self, source: Source) -> tuple[Diagnostic, ...]:
        from quire.formats.directive.knowledge import check_knowledge
        from quire.library.document import place_of

        place = place_of(Path(source.name), "knowledge")
        return check_knowledge(source, place[1] if place else None)

    def test(self, source: Source) -> tuple[Diagnostic, ...]:
        from quire.formats.test.parse import parse
        from quire.library.tested_document import check_test

        reading = parse(source)
        findings = check_test(source, reading.file, self._around(source)) if reading.file else []
        return _in_order(reading.diagnostics, findings)

    def _around(self, source: Source) -> Snapshot:
        """Return the library of the workspace that a run of a playbook or a pipeline would have."""
        workspace = self._places.workspace(source)
        if workspace is None:
            return self._shelf
        return self._library(workspace.folder, lambda: _settings_of(workspace))

    @cached_property
    def _places(self) -> Places:
        from quire.library.document import Places

        return Places() if self._given_places is None else self._given_places

    @cached_property
    def _shelf(self) -> Snapshot:
        """The library of documents on the user's shelf; their agents and tools are those of the current workspace."""
        from quire.library.registered import shelf_settings

        return self._snapshot(lambda: shelf_settings(_settings(Path.cwd())))

    def _library(self, folder: Path, settings: Callable[[], Settings]) -> Snapshot:
        """Return the library of a workspace. Its settings are read when something is looked up."""
        if folder not in self._libraries:
            self._libraries[folder] = self._snapshot(settings)
        return self._libraries[folder]

    def _snapshot(self, settings: Callable[[], Settings]) -> Snapshot:
        from quire.library.snapshot import Snapshot

        return Snapshot(settings, imports=self._imports)

    def _pipelines(self, source: Source) -> tuple[ParseResult, Snapshot]:
        """Parse a file of pipelines, in the library around it. Its trees are copies: circles are found by comparing
        them with those of registered files."""
        from quire.library.document import parse_pipelines, unnamed

        library = self._around(source)
        result = parse_pipelines(unnamed(source), self._is_registered(source, library))
        return replace(result, source=source, file=_copied(result.file), partial=_copied(result.partial)), library

    def _is_registered(self, source: Source, library: Snapshot) -> bool:
        """Tell whether a file may hold several pipelines. An unregistered file is only run by itself, and holds
        one."""
        if source.name not in self._registered:
            self._registered[source.name] = self._has_a_name(source, library.settings)
        return self._registered[source.name]

    def _has_a_name(self, source: Source, settings: Settings) -> bool:
        from quire.library.registered import PIPELINES_FOLDER, in_folder

        folder, real = str(settings.workspace.folder), self._places.real
        at = real(source.name)
        if any(real(os.path.join(folder, entry.path)) == at for entry in settings.pipelines.values()):  # noqa: PTH118
            return True
        return in_folder(at, real(os.path.join(folder, PIPELINES_FOLDER)))  # noqa: PTH118


def _reaches_out(text: str) -> bool:
    """Tell whether a playbook calls a tool, fetches a prompt, chooses a model, or seems to hold a key.

    Texts are searched, and a pattern only where its first letters occur: one pattern of all takes longer than all
    other rules, because it is tried at each letter."""
    if any(word in text for word in _REACHES_OUT):
        return True
    return any(head in text and re.search(rf"{head}(?<=\b{head})[-_A-Z0-9]", text) for head in _KEY_HEADS)


def _settings(folder: Path) -> Settings:
    from quire.workspace.locate import find_workspace

    return _settings_of(find_workspace(folder))


def _settings_of(workspace: Workspace) -> Settings:
    from quire.workspace.configuration import load_settings

    return load_settings(workspace)


def _in_order(*several: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    return tuple(sorted((finding for findings in several for finding in findings), key=attrgetter("span.start")))


def _pipeline_findings(
    source: Source, reading: ParseResult, library: Snapshot, *, plans: bool
) -> tuple[Diagnostic, ...]:
    """Return the findings about a file of pipelines; without `plans`, those that need no plan."""
    from quire.formats.pipeline.check import check_reading

    return (
        *_claimed_twice(source, library),
        *check_reading(reading, library, plans=plans),
        *_refused_headers(reading),
    )


def _claimed_twice(source: Source, library: Snapshot) -> Iterator[Diagnostic]:
    """Yield a finding for each name that both this file and another one declare: neither is loaded."""
    from quire.formats.pipeline.codes.errors import CLAIMED_TWICE

    claimed = library.registry().claimed
    at = real_path(Path(source.name)) if claimed else Path()
    for name, pipelines in claimed.items():
        files = [pipeline.source.name for pipeline in pipelines]
        others = [file for file in files if real_path(Path(file)) != at]
        for pipeline in (pipeline for pipeline in pipelines if pipeline.source.name not in others):
            message = f"the pipeline {name} is declared by {' and by '.join(others)} too: neither is loaded"
            yield Diagnostic(CLAIMED_TWICE, message, pipeline.tree.name.span, help="rename one of them")


def _refused_headers(reading: ParseResult) -> Iterator[Diagnostic]:
    """Yield a finding for each header written in the document that `http__get` and `http__send` do not send."""
    from quire.formats.pipeline.codes.warnings import ARGUMENTS
    from quire.formats.pipeline.syntax import Literal, ToolBody
    from quire.formats.pipeline.walks import walk
    from quire.plan.built_in_tools import FETCH, SEND
    from quire.trust.capabilities import canonical

    steps = [step for pipeline in (reading.file.pipelines if reading.file else ()) for _, step in walk(pipeline)]
    bodies = [step.body for step in steps if isinstance(step.body, ToolBody)]
    for body in bodies:
        for name, value in body.args if canonical(body.name.text) in (FETCH, SEND) else ():
            if name.text == "headers" and isinstance(value, Literal) and isinstance(value.value, Mapping):
                from quire.tools.builtin.http_request import header_problem

                problems = [header_problem(str(header), text) for header, text in value.value.items()]
                yield from (Diagnostic(ARGUMENTS, problem, value.span) for problem in problems if problem)


def _copied(file: PipelineFile | None) -> PipelineFile | None:
    return file and replace(file, pipelines=tuple(replace(pipeline) for pipeline in file.pipelines))


def all_codes() -> tuple[Code, ...]:
    """Return all codes, in the order of their ids."""
    from quire.analysis.lock.read import CODES
    from quire.analysis.rules import rule_codes
    from quire.workspace.codes import CODES as SETTINGS

    return tuple(sorted((*formats.all_codes(), *rule_codes(), *CODES, *SETTINGS), key=lambda code: code.id))
