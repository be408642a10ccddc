"""Pipelines that an agent writes at run time: the static gate that refuses forbidden ones, and the report of mistakes.

Steps are checked at any depth. The gate comes before anything is spawned, so a refused definition has no effect.
Targets of `call` are not checked: they are registered independently of the agent, and a target that does not exist
fails its step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from msgspec import Struct

from quire.diagnostics import Diagnostic, Severity, edits_of
from quire.formats.pipeline.codes import errors, warnings
from quire.formats.pipeline.language import BODY_KEYS, GUARD_KEYS, Role
from quire.formats.pipeline.syntax import AgentBody, Argument, Name, PipelineFile, Step, Text
from quire.formats.pipeline.walks import walk_file
from quire.source import Source
from quire.wording import LONGEST_QUOTED, Suggestions, cut, cut_line, did_you_mean

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import ParseResult
    from quire.schema import Schema
    from quire.values import Value


LAUNCHING = frozenset({"run_pipeline", "run_pipeline_async", "run_pipeline_inline", "run_pipeline_inline_async"})
DELEGATING = frozenset({"delegate_to_agent", "multi_agent__delegate"})
LAUNCH_PREFIX = "pipeline__"
ALWAYS_THERE = frozenset({"ask"})
"""Tools of the engine itself."""
_MOST_TOLD = 20


class Problem(Struct, frozen=True):
    """One reason to refuse a definition."""

    path: str
    """The path of the step, such as `1.for_each.do`; steps count from 1. Empty in a part that could not be read."""
    finding: Diagnostic

    @property
    def message(self) -> str:
        return self.finding.message

    def __str__(self) -> str:
        step = f"step {self.path}: " if self.path else ""
        return f"{step}{self.message}" + (f" ({self.finding.help})" if self.finding.help else "")


class Refusal(Struct, frozen=True):
    """All reasons to refuse a definition, in the order of the text; there is at least one."""

    problems: tuple[Problem, ...]

    def __str__(self) -> str:
        return told(self.problems)


Hint: TypeAlias = Callable[[str], str]


def gate(
    file: PipelineFile,
    identity: str,
    known_tools: Collection[str],
    shell: bool,
    denied: Collection[str] = (),
    hint: Hint = lambda name: "",
) -> Refusal | None:
    """Check a definition, also one that could be read only in part. Return None if nothing in it is forbidden.

    `known_tools` are all tool names that resolve, `shell` is true if commands may run, and `denied` are more names of
    tools that launch or delegate. `hint` returns what may be meant by a tool name that does not resolve.
    """
    checker = _Checker(file, identity, {*known_tools, *ALWAYS_THERE, *(("shell",) if shell else ())}, denied, hint)
    problems: list[Problem] = []
    for path, step in walk_file(file):
        if finding := _kind(step):
            # The steps inside of it, if it has any, are unknown too.
            return Refusal((*problems, Problem(path, finding)))
        problems += [Problem(path, finding) for finding in checker.findings(step)]
    return Refusal(tuple(problems)) if problems else None


_HARMLESS: frozenset[Role] = frozenset({
    "expression", "argument", "arguments", "items", "tools", "store", "target", "passes", "step", "steps", "branches",
    "cases", "choice", "number", "flag", "word", "policy", "duration",
})  # fmt: skip
"""The roles of keys that reach nothing by themselves: `tools` only reduces those of the invoker. `_Checker` looks at
the others."""


def _kind(step: Step) -> Diagnostic | None:
    """Refuse a kind of step that this gate does not look at: one that the table of the language lacks, or one with a
    key in a role that is neither harmless nor checked."""
    keys = BODY_KEYS.get(type(step.body))
    if keys is not None and all(key.role in _HARMLESS or key.role in _Checker.CHECKS for key in (*keys, *GUARD_KEYS)):
        return None
    return Diagnostic(errors.KIND, f'an inline pipeline has no steps of the kind "{step.kind}"', step.span)


class _Checker:
    """Finds forbidden parts of single steps. Suggestions have a budget: a hostile definition has many wrong names."""

    def __init__(
        self, file: PipelineFile, identity: str, tools: Collection[str], denied: Collection[str], hint: Hint
    ) -> None:
        self._schemas: Mapping[str, Schema] = {schema.name: schema for schema in file.schemas}
        self._unread = file.unread
        self._identity = identity
        self._tools = tools
        self._denied = {*LAUNCHING, *DELEGATING, *denied}
        self._hint = hint
        self._suggestions = Suggestions()

    def findings(self, step: Step) -> Iterator[Diagnostic]:
        for role, check in self.CHECKS.items():
            values = (key.of(step.body) for key in BODY_KEYS[type(step.body)] if key.role == role)
            for value in values:
                yield from check(self, value, step) if value is not None else ()

    def _about_command(self, command: Argument, step: Step) -> Iterator[Diagnostic]:
        return self._about_tool(Name("shell", step.span), step)

    def _about_variables(self, names: tuple[Name, ...], step: Step) -> Iterator[Diagnostic]:
        for name in names:
            message = f"the command asks for the variable {_quoted(name.text)}, which an inline pipeline cannot"
            yield Diagnostic(errors.BEYOND, message, name.span, help="leave env out")

    def _about_identity(self, name: Name, step: Step) -> Iterator[Diagnostic]:
        if name.text != self._identity:
            message = f'the identity {_quoted(name.text)} is not the invoker\'s own, which is "{self._identity}"'
            yield Diagnostic(errors.IDENTITY, message, name.span, help="leave identity out")

    def _about_prompt(self, prompt: Text, step: Step) -> Iterator[Diagnostic]:
        """Refuse a file, which the invoker may not be allowed to read."""
        if isinstance(step.body, AgentBody) and step.body.is_file:
            message = f"the prompt is in the file {_quoted(prompt.text)}, and an inline pipeline has its prompts inside"
            yield Diagnostic(errors.BEYOND, message, prompt.span, help="write the text of the prompt itself")

    def _about_model(self, model: Name, step: Step) -> Iterator[Diagnostic]:
        message = f"an inline pipeline runs on the invoker's model and cannot choose {_quoted(model.text)}"
        yield Diagnostic(errors.BEYOND, message, model.span, help="leave model out")

    def _about_schema(self, name: Name, step: Step) -> Iterator[Diagnostic]:
        schema, missing = self._schemas.get(name.text), name.text
        if schema is None:
            message = f"the schema {_quoted(name.text)} is not defined in this definition"
        else:
            missing = next(iter(schema.undefined(self._schemas.get)), "")
            what = f"the schema {_quoted(name.text)} refers to {_quoted(missing)}"
            message = f"{what}, which this definition does not define"
        if missing and missing not in self._unread:
            near = did_you_mean(self._suggestions.nearest(missing, self._schemas))
            lines = f"schema: {cut(missing, LONGEST_QUOTED)}", "fields: {NAME: {type: string}}", "---"
            help = near or f"leave schema out, or begin with the lines {', '.join(map(_quoted, lines))}"
            yield Diagnostic(warnings.UNKNOWN_SCHEMA, message, name.span, help=help)

    def _about_tool(self, name: Name, step: Step) -> Iterator[Diagnostic]:
        text = name.text
        if text in self._denied or text.startswith(LAUNCH_PREFIX):
            message = f"the tool {_quoted(text)} launches or delegates: an inline pipeline reaches others by call only"
            target = cut(text.removeprefix(LAUNCH_PREFIX), LONGEST_QUOTED) if text not in self._denied else "NAME"
            yield Diagnostic(errors.LAUNCHES, message, name.span, help=f"write call: {{pipeline: {target}}}")
        elif text in self._tools:
            return
        elif text == "shell":
            help = "read and write files with the tools file__read and file__write"
            yield Diagnostic(errors.NO_COMMANDS, 'the tool "shell" is switched off', name.span, help=help)
        else:
            message = f"the tool {_quoted(text)} does not resolve to a registered tool"
            help = self._hint(text) or did_you_mean(self._suggestions.nearest(text, self._tools))
            yield Diagnostic(warnings.UNKNOWN_TOOL, message, name.span, help=help)

    CHECKS: ClassVar[Mapping[Role, Callable[..., Iterator[Diagnostic]]]] = {
        "schema": _about_schema,
        "command": _about_command,
        "variables": _about_variables,
        "tool": _about_tool,
        "identity": _about_identity,
        "prompt": _about_prompt,
        "model": _about_model,
    }
    """The functions that look at the keys in a role, in the order of their findings."""


def _quoted(name: str) -> str:
    return f'"{cut(name, LONGEST_QUOTED)}"'


_FENCE = re.compile(r"\s*```[A-Za-z]*[ \t]*\n(.*?)\n?```\s*", re.DOTALL)
_MOST_LISTED = 50
_LONGEST_LINE = 120


def definition_source(text: str) -> Source:
    """Return the text of a definition.

    Models often put it into a Markdown fence, which is removed: YAML cannot begin with one.
    """
    fenced = _FENCE.fullmatch(text) if text.lstrip().startswith("```") else None
    return Source.of(fenced[1] if fenced else text, "inline.yaml")


class Mistake(Struct, frozen=True):
    """One reason to refuse a definition, as its author is told."""

    code: str
    line: int
    column: int
    message: str
    help: str = ""
    step: str = ""
    """The path of the step, if the step as such could be read."""
    written: str = ""
    """The line of the definition, without its indentation."""
    fix: tuple[Value, ...] = ()
    """Edits that certainly correct it, as `quire check --json` has them."""

    @classmethod
    def of(cls, source: Source, finding: Diagnostic, step: str = "") -> Mistake:
        at = source.position(finding.span.start)
        written = cut_line(source.line(at.line).strip(), _LONGEST_LINE)
        places = ((source.position(edit.span.start), edit) for edit in edits_of(source, finding))
        fix: tuple[Value, ...] = tuple(
            {"line": at.line, "column": at.column, "old": edit.old, "new": edit.new} for at, edit in places
        )
        return cls(finding.code.id, at.line, at.column, finding.message, finding.help, step, written, fix)

    def as_json(self) -> dict[str, Value]:
        step: dict[str, Value] = {"step": self.step} if self.step else {}
        return {
            "code": self.code,
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "help": self.help,
            **step,
            "text": self.written,
            "fix": list(self.fix),
        }

    def __str__(self) -> str:
        step = f"step {self.step}, " if self.step else ""
        help = f" ({self.help})" if self.help else ""
        return f"{step}line {self.line}, column {self.column}: {self.message}{help}"


def mistakes(reading: ParseResult, refusal: Refusal | None = None) -> tuple[Mistake, ...]:
    """Return everything that is wrong with a definition, in the order of its text."""
    errors = [Mistake.of(reading.source, finding) for finding in reading.of(Severity.ERROR)]
    if refusal is not None:
        errors += [Mistake.of(reading.source, problem.finding, problem.path) for problem in refusal.problems]
    return tuple(sorted(errors, key=lambda mistake: (mistake.line, mistake.column)))


def told(mistakes: Sequence[Mistake | Problem]) -> str:
    """Return the mistakes as one line for the author of the definition."""
    more = len(mistakes) - _MOST_TOLD
    return "; ".join(map(str, mistakes[:_MOST_TOLD])) + (f"; and {more} more" if more > 0 else "")


def listed(mistakes: Sequence[Mistake]) -> list[Value]:
    """Return the first mistakes as JSON objects."""
    return [mistake.as_json() for mistake in mistakes[:_MOST_LISTED]]


def as_list(error: str, errors: Sequence[Mapping[str, Value]]) -> str:
    """Return the errors of a refused definition as a text with a line for each, and for its help.

    The lines of the definition are quoted: a small model that is told positions alone repeats what it wrote.
    """
    verdict = error.partition(": ")[0]
    lines = [f"{verdict}; nothing was started. Correct everything in this list, and send the whole definition:"]
    for mistake in errors:
        where = f"line {mistake['line']}, column {mistake['column']}, in `{mistake['text']}`"
        lines.append(f"- {where}: {mistake['message']}")
        if mistake["help"]:
            lines.append(f"  help: {mistake['help']}")
    return "\n".join(lines)
