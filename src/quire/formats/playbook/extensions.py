"""Read Quire's extensions of playbooks: `@context`, `@model`, `from:` of the artifact, and escapes in questions.

Other implementations send the two directives to the model as text, skip `from:`, and show escapes as they are written.
Each use is a note. None of them is read in the documents of runs that were started before Quire had them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from quire.diagnostics import Diagnostic
from quire.formats.near_names import name_fix
from quire.formats.playbook.codes import reader
from quire.formats.playbook.names import asked_names, family
from quire.formats.playbook.syntax import ContextChoice, ModelChoice
from quire.patterns import late_pattern
from quire.source import Span
from quire.wording import Suggestions, did_you_mean

if TYPE_CHECKING:
    from quire.formats.playbook.syntax import ArtifactDeclaration, Playbook, Step

NONE = "none"
"""The only argument of a `@context` that leaves all earlier results out."""

_CONTEXT = late_pattern(r"@context\(([^\S\n]*+[A-Za-z0-9_]++[^\S\n]*+(?:,[^\S\n]*+[A-Za-z0-9_]++[^\S\n]*+)*)\)")
_MODEL = late_pattern(r"@model\(([A-Za-z0-9_-]++)\)")
_WORD = late_pattern(r"[A-Za-z0-9_]++")
_FROM = late_pattern(r"\n[^\S\n]*+from:[^\S\n]*+(\S++)[^\S\n]*+(?![^\n])", re.IGNORECASE)
_BREAK = late_pattern(r"\\(\\n|n)")


def read_extension(text: str, at: int) -> ContextChoice | ModelChoice | None:
    """Read a line that begins with `@context(` or `@model(`. Return None if it is text."""
    if context := _CONTEXT.fullmatch(text):
        names = tuple(dict.fromkeys(_WORD.findall(context[1])))
        return ContextChoice(() if names == (NONE,) else names, at, at + len(text))
    if model := _MODEL.fullmatch(text):
        return ModelChoice(model[1], at, at + len(text))
    return None


def read_source(text: str, start: int, end: int) -> tuple[str, int] | None:
    """Return the name after the first `from:` of a section, and its place."""
    match = _FROM.search(text, start, end)
    return (match[1], match.start(1)) if match else None


def with_line_breaks(text: str) -> str:
    """Return a text of `@elicit` with a line break in place of each `\\n`; `\\\\n` stands for the two characters."""
    return _BREAK.sub(lambda match: "\n" if match[1] == "n" else match[1], text) if "\\n" in text else text


def quire_only(playbook: Playbook) -> list[Diagnostic]:
    """Return a note for each use of what only Quire has."""
    findings: list[Diagnostic] = []
    for parent in playbook.steps:
        for step in family(parent):
            for word, choice in (("@context", step.context), ("@model", step.model)):
                if choice:
                    _note(word, "send this line to the model", choice.span, findings)
            for directive in (step.output, step.elicitation, step.prompt, step.tool):
                if directive and directive.start and step.document[directive.start - 1] in " \t":
                    _note("An indented directive", "send this line to the model", directive.span, findings)
            question = step.elicitation
            written = step.document[question.start : question.end] if question else ""
            if question and ("\\n" in written or any('"' in text for text in question.texts)):
                elsewhere = "take the backslash as a character of the text"
                _note("An escape in a question", elsewhere, question.span, findings)
    if playbook.artifact and playbook.artifact.source:
        _note("from:", "skip this line", playbook.artifact.source_span, findings)
    return findings


def _note(what: str, elsewhere: str, span: Span, findings: list[Diagnostic]) -> None:
    message = f"{what} is Quire's own: other implementations {elsewhere}"
    findings.append(Diagnostic(reader.QUIRE_ONLY, message, span))


def beyond_format(playbook: Playbook) -> list[Diagnostic]:
    """Return notes about places that the format does not describe, and that other implementations may read otherwise.

    The format leaves prompt references to implementations, so an ordinary check does not note these.
    """
    findings: list[Diagnostic] = []
    for parent in playbook.steps:
        for step in family(parent):
            if step.prompt and not step.prompt.ref.startswith("library:"):
                _note("A prompt that is not in a library", "send this line to the model", step.prompt.span, findings)
            if step.elicitation and step.elicitation.default is not None:
                _note("The default of a question", "do not know it", step.elicitation.span, findings)
            for place in step.placeholders:
                if place.type is not None:
                    _note("A placeholder with a type", "leave it as it is", place.span, findings)
    return findings


def check_names(playbook: Playbook, findings: list[Diagnostic]) -> None:
    """Report names of `@context` and `from:` that mean no result."""
    names = _Results(playbook.steps)
    for parent in playbook.steps:
        before = names.before(parent)
        names.check(parent, before, set(), findings)
        for arm in parent.arms:
            here = _results(parent)
            for step in arm.steps:
                names.check(step, before, here, findings)
                here |= _results(step)
    if playbook.artifact and playbook.artifact.source:
        names.check_source(playbook.artifact, findings)


class _Results:
    """The names of all results of a playbook."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._suggestions = Suggestions.wide()
        self._set_by: dict[str, str] = {}
        self._before: set[str] = set()
        self._passed: list[Step] = []
        for parent in steps:
            for step in family(parent):
                for name in _results(step):
                    self._set_by.setdefault(name, step.label)

    def before(self, parent: Step) -> set[str]:
        """Return the names of the results before a step. Steps have to be asked for in their order."""
        for step in self._passed:
            self._before |= _results(step)
        self._passed = list(family(parent))
        return self._before

    def check(self, step: Step, before: set[str], here: set[str], findings: list[Diagnostic]) -> None:
        """Check the names of a step that sees the results `before` its parent, and those `here`, in its arm."""
        chosen = step.context
        if chosen is None:
            return
        visible = before | here if self._suggestions.allow(len(before) + len(here)) else set()
        for word in _WORD.finditer(step.document, chosen.start + len("@context("), chosen.end - 1):
            if (name := word[0]) in before or name in here or not chosen.names:
                continue
            close = self._suggestions.nearest(name, visible)
            help = did_you_mean(close, "name an output or the number of a step before this one", form='"{}"')
            if name in self._set_by:
                help = "a step sees only results that come before it in every run that reaches it"
            span = Span(*word.span())
            fix = name_fix(name, visible, span) if close and name not in self._set_by else None
            message = f'No earlier result is named "{name}"'
            findings.append(Diagnostic(reader.UNKNOWN_CONTEXT, message, span, "the model is shown nothing", help, fix))

    def check_source(self, artifact: ArtifactDeclaration, findings: list[Diagnostic]) -> None:
        name = artifact.source
        if name in self._set_by:
            return
        close = self._suggestions.nearest(name, self._set_by)
        help = did_you_mean(close, "name an @output, or the number of a step", form='"{}"')
        message = f'The artifact comes from "{name}", which is neither an output nor a step'
        fix = name_fix(name, self._set_by, artifact.source_span) if close else None
        span, label = artifact.source_span, "the result of the last step is taken"
        findings.append(Diagnostic(reader.ARTIFACT_SOURCE, message, span, label, help, fix))


def _results(step: Step) -> set[str]:
    """Return the names under which the results of a step can be chosen."""
    return {step.label, *asked_names(step), *((step.output.name,) if step.output else ())}
