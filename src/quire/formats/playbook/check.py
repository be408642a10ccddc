"""Run all checks of a playbook that go beyond reading it: the advice that `check` adds to the findings of the reader.

Each lint is one function over the tree or the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.diagnostics import Code, Diagnostic, Fix, Severity, replacing
from quire.formats.near_names import name_fix, name_guess, word_fix
from quire.formats.playbook import syntax
from quire.formats.playbook.codes import codes, lints
from quire.formats.playbook.lint_text import lint_text
from quire.formats.playbook.names import Facts, asked_names, family, gather
from quire.formats.playbook.parse import parse_scanned
from quire.formats.playbook.scan import may_be_quire_only
from quire.source import NOWHERE, PLACEHOLDER, Source, Span
from quire.wording import Suggestions, did_you_mean

if TYPE_CHECKING:
    from quire.formats.playbook.scan import Scan
    from quire.formats.playbook.syntax import ParseResult, Playbook, Step
    from quire.formats.resolver import DocumentResolver


__all__ = ["check", "codes"]


def check(source: Source, resolver: DocumentResolver | None = None) -> tuple[Diagnostic, ...]:
    """Return all findings about a playbook, but for prompt files that are missing."""
    return check_reading(*parse_scanned(source), resolver)


def check_reading(
    reading: ParseResult,
    scanned: Scan | None,
    resolver: DocumentResolver | None = None,
    has_file: HasFile | None = None,
) -> tuple[Diagnostic, ...]:
    """Return all findings about a playbook. `has_file` tells whether a file exists beside the playbook."""
    findings = [*reading.diagnostics, *lint(reading, resolver, scanned)]
    if has_file is not None and reading.playbook is not None:
        findings += missing_prompt_files(reading.playbook, has_file)
    return tuple(sorted(findings, key=attrgetter("span.start")))


_INPUT_TYPE = re.compile(r"-[^\S\n]++`[A-Za-z0-9_]++`[^\S\n]++\(([^):\n]*+)")
_OUTPUT_TYPE = re.compile(r"@output\([A-Za-z0-9_]++[^\S\n]*+(?::[^\S\n]*+([A-Za-z0-9_]++))?")
_MEANT = {"integer": "number", "decimal": "number", "str": "string", "yes/no": "boolean", "date": "string"}
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)

_BOOLEANS = ("true", "false", "yes", "no", "on", "off", "1", "0")
_MISSPELT = replace(lints.UNRESOLVED, severity=Severity.WARNING)
HasFile = Callable[[str], bool]


def lint(
    reading: ParseResult, resolver: DocumentResolver | None = None, scanned: Scan | None = None
) -> tuple[Diagnostic, ...]:
    """Return the lints of a document; if it cannot be read, only those about its text.

    With a resolver, calls of other documents are checked too, and the circles that they lead into. `scanned` are the
    lines of the text, if they are known.
    """
    findings = list(lint_text(reading, scanned))
    if reading.playbook:
        findings += _Lint(reading.playbook, reading.source).all()
        if may_be_quire_only(reading.source.text):
            from quire.formats.playbook.extensions import quire_only

            findings += quire_only(reading.playbook)
        if resolver is not None:
            from quire.formats.playbook.check_calls import check_calls

            findings += check_calls(reading.playbook, resolver, reading.source)
    return tuple(sorted(findings, key=attrgetter("span.start")))


class _Missing(Struct, frozen=True):
    """The words about a name that nothing sets, the same for all places that read it."""

    code: Code
    message: str
    help: str
    fix: Fix | None
    """The edit that writes the name that is probably meant, without its place."""


class _Lint:
    def __init__(self, playbook: Playbook, source: Source) -> None:
        self._playbook = playbook
        self._source = source
        self._facts: Facts = gather(playbook)
        self._suggestions = Suggestions.wide()
        self._names = self._facts.names
        self._read: set[str] = set()
        self._listed: dict[str, tuple[dict[str, str], str]] = {}
        self._missing: dict[str, _Missing] = {}

    def all(self) -> Iterator[Diagnostic]:
        available = set(self._facts.inputs)
        for parent in self._playbook.steps:
            yield from self._step(parent, available, asked_names(parent))
            if parent.arms:
                yield from self._arms(parent, available)
                for step in family(parent):
                    available |= _set_by(step)
                yield from _labels(parent)
            elif parent.output or parent.elicitation:
                available |= _set_by(parent)
        if self._playbook.artifact:
            yield from self._artifact(self._playbook.artifact)
        for declared in self._playbook.inputs:
            yield from self._input(declared)
        yield from self._unused_outputs()

    def _step(self, step: Step, available: set[str], own: set[str]) -> Iterator[Diagnostic]:
        for place in step.placeholders:
            self._read.add(place.name)
            if place.default is None and place.name not in available and place.name not in own:
                yield self._unset(place.name, place.span, available, own)
        if step.output:
            yield from self._output(step.output)
        if step.elicitation:
            yield from _question(step.elicitation)
        if step.tool:
            yield from _tool(step.tool)
        if step.prompt and step.prompt.ref.startswith("file:") and leaves_folder(step.prompt.ref[5:]):
            message = f"{step.prompt.ref[5:]} is outside of the playbook's folder"
            yield Diagnostic(lints.PROMPT_FILE, message, step.prompt.span, "refused when the run starts")
        if step.context or step.model:
            yield from self._model_call(step)
        if not (step.has_text or step.prompt or step.elicitation or step.tool or step.arms):
            yield Diagnostic(lints.EMPTY_STEP, f"Step {step.label} does nothing", step.span, "no text follows")

    def _model_call(self, step: Step) -> Iterator[Diagnostic]:
        if step.context:
            self._read.update(step.context.names)
        for word, choice in (("@context", step.context), ("@model", step.model)):
            if choice and not _asks_model(step):
                message = f"Step {step.label} asks no model, so its {word} does nothing"
                yield Diagnostic(lints.NO_MODEL_CALL, message, choice.span)

    def _unset(self, name: str, span: Span, *available: set[str]) -> Diagnostic:
        if name in self._facts.outputs or name in self._facts.asked:
            label = self._facts.outputs.get(name, "")
            message = f"{{{{{name}}}}} is read before it is set"
            help = f"step {label} captures it" if label else "the question is asked later"
            return Diagnostic(lints.READ_EARLY, message, span, "has no value yet", help)
        missing = self._missing.get(name) or self._look_for(name)
        fix: Fix | None = None
        if missing.fix is not None and any(missing.fix.edits[0].new in names for names in available):
            edit = replace(missing.fix.edits[0], span=Span(span.start + 2, span.start + 2 + len(name)))
            fix = replace(missing.fix, edits=(edit,))
        return Diagnostic(missing.code, missing.message, span, "sent to the model literally", missing.help, fix)

    def _look_for(self, name: str) -> _Missing:
        """Note what to say of a name that nothing sets: it may be read at many places."""
        close = self._suggestions.nearest(name, self._names)
        help = did_you_mean(close, "declare an input, or capture it with @output before", form="{{{{{}}}}}")
        fix = name_guess(name, self._names, NOWHERE) if close else None
        code, message = _MISSPELT if close else lints.UNRESOLVED, f"Nothing sets {{{{{name}}}}}"
        return self._missing.setdefault(name, _Missing(code, message, help, fix))

    def _arms(self, parent: Step, available: set[str]) -> Iterator[Diagnostic]:
        for arm in parent.arms:
            if arm.condition:
                self._read.add(arm.condition.variable)
                yield from self._condition(arm.condition)
            here = _set_by(parent)
            for step in arm.steps:
                here |= asked_names(step)
                yield from self._step(step, available, here)
                here |= _set_by(step)

    def _condition(self, condition: syntax.Condition) -> Iterator[Diagnostic]:
        name, values = condition.variable, self._facts.values.get(condition.variable)
        if values is not None and condition.value not in values:
            always = "always" if condition.operator == "!=" else "never"
            spellings, options = self._known(name, values)
            close = spellings.get(condition.value.lower()) or self._suggestions.nearest(condition.value, values)
            message = f'This condition {always} holds: "{name}" is never "{condition.value}"'
            help = did_you_mean(close, f"it can be {options}", form='"{}"')
            at = self._source.text.rfind(f'"{condition.value}"', condition.start, condition.end) + 1
            fix = name_fix(condition.value, values, Span(at, at + len(condition.value))) if at and close else None
            yield Diagnostic(lints.IMPOSSIBLE, message, condition.span, "", help, fix)
        elif name in self._facts.untyped and name not in self._facts.inputs:
            message = f'"{name}" has no type, so the whole reply must be exactly "{condition.value}"'
            help = f'capture it as @output({name}: enum, "{condition.value}", …)'
            yield Diagnostic(lints.UNTYPED_COMPARISON, message, condition.variable_span, "", help)

    def _known(self, name: str, values: set[str]) -> tuple[dict[str, str], str]:
        """Return the values of a name by their lower case, and a list of the first ones.

        They are cached, because there may be many conditions.
        """
        if name not in self._listed:
            first = sorted(values)
            self._listed[name] = ({value.lower(): value for value in reversed(first)}, ", ".join(first[:8]))
        return self._listed[name]

    def _output(self, output: syntax.OutputCapture) -> Iterator[Diagnostic]:
        if output.name in self._facts.inputs:
            message = f'The output "{output.name}" has the name of an input'
            yield Diagnostic(lints.SHADOWS_INPUT, message, output.name_span, "can never be read")
        if not output.name[0].isalpha():
            message = f'The name "{output.name}" does not begin with a letter'
            yield Diagnostic(lints.OUTPUT_NAME, message, output.name_span)
        yield from self._unknown_type(output, _OUTPUT_TYPE, syntax.OUTPUT_TYPES)
        if output.options and output.type != "enum":
            message = f'Options without the type enum on "{output.name}"'
            help = f"write @output({output.name}: enum, …)"
            yield Diagnostic(lints.OPTIONS_WITHOUT_ENUM, message, output.span, "", help)
        if output.type == "enum" and not output.options:
            message = f'The enum "{output.name}" has no options'
            help = f'write @output({output.name}: enum, "a", "b")'
            yield Diagnostic(lints.NO_OPTIONS, message, output.span, "", help)
        yield from _twice(output.options, output.span)

    def _input(self, declared: syntax.InputDeclaration) -> Iterator[Diagnostic]:
        if declared.name not in self._read:
            message = f'The input "{declared.name}" is never read'
            help = f"write {{{{{declared.name}}}}} in a step"
            yield Diagnostic(lints.UNUSED_INPUT, message, declared.name_span, "", help)
        yield from self._unknown_type(declared, _INPUT_TYPE, syntax.INPUT_TYPES)
        if declared.type == "enum" and not declared.options:
            message = f'The enum "{declared.name}" has no options'
            yield Diagnostic(lints.NO_OPTIONS, message, declared.span, "", "write (enum: one, two)")
        yield from _twice(declared.options, declared.span)
        default = declared.default
        if default is not None and (
            (declared.type == "number" and not _NUMBER.fullmatch(default))
            or (declared.type == "boolean" and default.lower() not in _BOOLEANS)
        ):
            message = f'The default "{default}" is not a {declared.type}'
            help = "" if declared.type == "number" else "true and false are"
            yield Diagnostic(lints.DEFAULT_TYPE, message, declared.span, "", help)

    def _unknown_type(
        self, named: syntax.InputDeclaration | syntax.OutputCapture, written: re.Pattern[str], known: Mapping[str, str]
    ) -> Iterator[Diagnostic]:
        """Report a type that does not exist.

        The tree only has the type that it was read as, so the source is searched.
        """
        match = written.match(self._source.text, named.start, named.end)
        kind = match[1].strip() if match and match[1] else ""
        if not match or not kind or kind.lower() in known:
            return
        close = _MEANT.get(kind.lower().split()[0].strip(",")) or self._suggestions.nearest(kind.lower(), known)
        first = kind.split(",")[0].strip().lower()
        if first in known and first != kind.lower():
            help = f"write ({first}), or ({first}: VALUE) for a default"
        else:
            help = did_you_mean(close, f"the types are {', '.join(dict.fromkeys(known.values()))}")
        message = f'"{kind}" is not a type: "{named.name}" is read as a string'
        start = match.start(1) + match[1].index(kind)
        place = Span(start, start + len(kind))
        fix = word_fix(kind, known, place) if close else None
        if kind.lower() in _MEANT:
            fix = replacing(place, kind, _MEANT[kind.lower()])
        yield Diagnostic(lints.UNKNOWN_TYPE, message, Span(*match.span(1)), "", help, fix)

    def _artifact(self, artifact: syntax.ArtifactDeclaration) -> Iterator[Diagnostic]:
        self._read.add(artifact.source)
        match = PLACEHOLDER.fullmatch(artifact.type)
        if match:
            self._read.add(match[1])
            if match[1] not in self._names and match[3] is None:
                yield self._unset(match[1], artifact.span, self._names)

    def _unused_outputs(self) -> Iterator[Diagnostic]:
        """Report outputs that are never read, once for each name, however many arms capture it.

        An output counts as read if a model is asked later, because the model sees every result.
        """
        names = self._facts.inputs | self._read
        steps = self._playbook.steps
        last = next((at for at in reversed(range(len(steps))) if any(map(_asks_model, family(steps[at])))), 0)
        for parent in steps[last:-1]:
            members = list(family(parent))
            for at, step in enumerate(members):
                output = step.output
                if output and output.name not in names and not any(map(_asks_model, members[at + 1 :])):
                    names.add(output.name)
                    message = f'The output "{output.name}" is never read'
                    yield Diagnostic(lints.UNUSED_OUTPUT, message, output.name_span)


def _asks_model(step: Step) -> bool:
    return not step.tool and bool(step.has_text or step.prompt)


def _set_by(step: Step) -> set[str]:
    return asked_names(step) | ({step.output.name} if step.output else set())


def _labels(parent: Step) -> Iterator[Diagnostic]:
    labels: set[str] = set()
    for arm in parent.arms:
        for step in arm.steps:
            if step.label in labels:
                yield Diagnostic(lints.SUBSTEP_LABEL, f"The label {step.label} is here twice", step.span)
            elif step.label[:-1].lstrip("0") != str(parent.number).lstrip("0") and step.title:
                message = f"The label {step.label} does not belong to step {parent.number}"
                yield Diagnostic(lints.SUBSTEP_LABEL, message, step.span, "", f"begin it with {parent.number}")
            labels.add(step.label)


def _question(elicitation: syntax.Elicitation) -> Iterator[Diagnostic]:
    if not elicitation.prompt.strip():
        message = "This question has no text"
        yield Diagnostic(lints.NO_QUESTION, message, elicitation.span, "", "add it in double quotes")
    if elicitation.kind == "select" and len(elicitation.options) < 2:
        count = "one option" if elicitation.options else "no options"
        help = "each option is a quoted text of its own"
        yield Diagnostic(lints.FEW_OPTIONS, f"A select with {count}", elicitation.span, "nothing to choose", help)
    if elicitation.kind == "input" and elicitation.options:
        message = "Options on an input are not shown"
        yield Diagnostic(lints.FEW_OPTIONS, message, elicitation.span, "", "a select has options")
    yield from _twice(elicitation.options, elicitation.span)


def _twice(options: Sequence[str], span: Span) -> Iterator[Diagnostic]:
    earlier: set[str] = set()
    for option in options:
        if option in earlier:
            yield Diagnostic(lints.DUPLICATE_OPTIONS, f'The option "{option}" is here twice', span)
            return
        earlier.add(option)


def _tool(tool: syntax.ToolCall) -> Iterator[Diagnostic]:
    if not tool.arguments:
        return
    from quire.formats.playbook.lower import arguments
    from quire.plan.uses import OWN, SHELLS, has_values

    try:
        tree = arguments(tool.arguments)
    except ValueError as error:
        message = f"The tool could never be called: {error}"
        yield Diagnostic(lints.TOOL_JSON, message, tool.span, "", 'arguments look like {"key": "value"}')
        return
    if tool.connection == OWN and tool.tool in SHELLS and has_values(tree):
        help = 'write it as a list: {"command": ["ls", "{{name}}"]}'
        yield Diagnostic(lints.SHELL_TEXT, "No shell ever reads a value", tool.span, "", help)


def missing_prompt_files(playbook: Playbook, has_file: HasFile) -> Iterator[Diagnostic]:
    """Report prompt files that do not exist.

    A path with `{{name}}` is known if the name has only certain values. A path that leaves the folder is reported by
    another lint.
    """
    values: dict[str, set[str]] | None = None
    for parent in playbook.steps:
        for step in family(parent):
            if step.prompt is None or not step.prompt.ref.startswith("file:"):
                continue
            path = step.prompt.ref.removeprefix("file:")
            if values is None and "{{" in path:
                values = gather(playbook).values
            inside = [choice for choice in _paths(path, values or {}) if not leaves_folder(choice)]
            missing = [choice for choice in inside if not has_file(choice.replace("\\", "/"))]
            if missing:
                message = f"the file {missing[0]} does not exist beside the playbook"
                label = "refused when the run starts" if missing == [path] else "the step fails with this value"
                yield Diagnostic(lints.PROMPT_FILE, message, step.prompt.span, label)


_MOST_PATHS = 50


def _paths(path: str, values: Mapping[str, set[str]]) -> list[str]:
    """Return the paths that a path can become; none if that is not known."""
    paths = [path]
    for name in dict.fromkeys(match[1] for match in PLACEHOLDER.finditer(path)):
        choices = sorted(values.get(name, ()))
        if not choices or len(paths) * len(choices) > _MOST_PATHS:
            return []
        paths = [_filled(path, name, value) for path in paths for value in choices]
    return paths


def _filled(path: str, name: str, value: str) -> str:
    return PLACEHOLDER.sub(lambda match: value if match[1] == name else match[0], path)


def leaves_folder(path: str) -> bool:
    """Tell whether a path leads out of the playbook's folder."""
    parts = path.replace("\\", "/").split("/")
    return ".." in parts or path.startswith(("/", "\\", "~")) or path[1:2] == ":"
