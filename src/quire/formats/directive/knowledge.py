"""Knowledge files: metadata in a `yaml` fence and a body for a prompt, or plain YAML that is both.

A file without metadata has no body: text that goes into a prompt must have a name, a title and a version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath

from msgspec import Struct

from quire.diagnostics import Code, Diagnostic, Severity
from quire.formats import YAML
from quire.formats.directive import codes as kinds
from quire.formats.directive.codes import knowledge_codes as codes
from quire.formats.directive.syntax import shown
from quire.formats.directive.validate import VERSION
from quire.formats.markdown import Missing, find_fence, signature_line
from quire.source import MAX_DOCUMENT_BYTES, NOWHERE, Source, Span
from quire.values import Value, clean

__all__ = ["check", "check_knowledge", "codes", "knowledge_issues", "read_knowledge"]

REQUIRED = ("name", "title", "version", "entry_type")


class Knowledge(Struct, frozen=True):
    """A knowledge file."""

    source: Source
    metadata: Mapping[str, Value]
    """All values of the fence."""
    body: str
    """The text that goes into a prompt."""
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(diagnostic for diagnostic in self.diagnostics if diagnostic.severity is Severity.ERROR)


def read_knowledge(source: Source, *, limit: int = MAX_DOCUMENT_BYTES) -> Knowledge:
    """Parse a knowledge file.

    Never raises because of its content. A source whose name ends in `.yaml` is YAML as a whole.
    """
    if source.exceeds(limit):
        return _refused(source, kinds.KNOWLEDGE_TOO_LARGE, f"the file is larger than {limit:,} bytes", NOWHERE)
    if PurePath(source.name).suffix.lower() in YAML:
        return _yaml_file(source)
    text = source.text
    begin = len(signature_line(text))
    head = text[begin:].lstrip()
    if head.startswith("---") and head.partition("\n")[0].rstrip() == "---":
        at = len(text) - len(head)
        message = "the metadata stands in --- frontmatter, which is not read"
        help = "put it between a line ```yaml and a line ```"
        return _refused(source, kinds.FRONT_MATTER, message, Span(at, at + 3), help)
    fence = find_fence(text, "yaml")
    if isinstance(fence, Missing):
        if fence.reason == "unclosed":
            message, help = "the yaml fence is never closed", "close it with a line of ```"
            return _refused(source, kinds.KNOWLEDGE_UNCLOSED, message, fence.near or NOWHERE, help)
        if _is_plain_yaml(text[begin:]):
            return _yaml_file(source)
        message = "this file has no yaml fence, so it has no metadata and no body"
        return _refused(source, kinds.NO_METADATA, message, NOWHERE, _SHAPE)
    metadata, findings = _metadata(source, fence.content)
    before = text[begin : fence.whole.start]
    if before.strip():
        start = begin + len(before) - len(before.lstrip())
        message = "the text before the yaml fence is not part of the body"
        span = Span(start, begin + len(before.rstrip()))
        findings.append(Diagnostic(kinds.BEFORE, message, span, "", "move it below the fence"))
    return Knowledge(source, metadata, clean(text[fence.whole.end :].strip()), tuple(findings))


def knowledge_issues(source: Source, path: PurePath) -> list[str]:
    """Return the reasons why a knowledge file cannot be signed. `path` is the file's path below `.ai/knowledge`."""
    knowledge = read_knowledge(Source(path.name, source.text, source.stored))
    if knowledge.errors:
        return [f"line {source.position(error.span.start).line}: {error.message}" for error in knowledge.errors]
    return [*field_problems(knowledge.metadata), *place_problems(knowledge.metadata, path).values()]


def place_problems(metadata: Mapping[str, Value], path: PurePath) -> dict[str, str]:
    """Return the mismatches with the file's path below `.ai/knowledge`, by field."""
    problems: dict[str, str] = {}
    folder = path.parent.as_posix().strip("/")
    folder = "" if folder == "." else folder
    name, category = metadata.get("name"), metadata.get("category")
    if isinstance(name, str) and name and name != path.stem:
        problems["name"] = f"the name '{shown(name)}' must equal the name of the file, '{path.stem}'"
    if category is not None and (not isinstance(category, str) or category.strip("/") != folder):
        problem = f"the category '{shown(str(category))}' must equal the folder below .ai/knowledge, '{folder}'"
        problems["category"] = problem
    return problems


def field_problems(metadata: Mapping[str, Value]) -> list[str]:
    """Return what is wrong with the fields of the metadata."""
    problems = [f"missing required field: {name}" for name in REQUIRED if metadata.get(name) in (None, "")]
    version = metadata.get("version")
    if version not in (None, "") and not (isinstance(version, str) and VERSION.fullmatch(version)):
        problems.append(f"the version '{shown(str(version))}' must be three numbers, such as 1.0.0")
    for name in ("name", "title", "entry_type"):
        value = metadata.get(name)
        if value is not None and not isinstance(value, str):
            problems.append(f"{name} must be text, not {shown(str(value))}")
    return problems


def check_knowledge(source: Source, place: PurePath | None = None) -> tuple[Diagnostic, ...]:
    """Return all findings about a knowledge file: those of its reader, and the problems that signing would refuse.

    `place` is the file's path below `.ai/knowledge`.
    """
    knowledge = read_knowledge(source)
    findings = list(knowledge.diagnostics)
    if knowledge.metadata:
        fence = find_fence(source.text, "yaml")
        fenced = not isinstance(fence, Missing) and PurePath(source.name).suffix.lower() not in YAML
        span = Span(fence.whole.start, fence.content.start - 1) if not isinstance(fence, Missing) else NOWHERE
        findings += [Diagnostic(kinds.FIELD, problem, span) for problem in field_problems(knowledge.metadata)]
        content = fence.content if fenced and not isinstance(fence, Missing) else Span(0, len(source.text))
        for key, problem in place_problems(knowledge.metadata, place).items() if place else ():
            at = _value_span(source.text, key, content) or span
            findings.append(Diagnostic(kinds.PLACE, problem, at, "", "change it, or move the file"))
    return tuple(sorted(findings, key=lambda finding: finding.span.start))


check = check_knowledge
"""The check of this format, by the name that all formats give it."""


def _value_span(text: str, key: str, content: Span) -> Span | None:
    """Return where the value of a key at the left margin is."""
    match = re.compile(rf"^{key}[ \t]*:[ \t]*(\S[^\n]*)", re.MULTILINE).search(text, content.start, content.end)
    return Span(match.start(1), match.start(1) + len(match[1].rstrip())) if match else None


def _yaml_file(source: Source) -> Knowledge:
    metadata, findings = _metadata(source, Span(len(signature_line(source.text)), len(source.text)))
    body = metadata.get("body", metadata.get("content"))
    if not isinstance(body, str):
        text = source.text
        body = text[len(signature_line(text, yaml=True) or signature_line(text)) :]
    return Knowledge(source, metadata, clean(body.strip()), tuple(findings))


def _is_plain_yaml(text: str) -> bool:
    """Tell whether a text without a fence consists only of keys and values, with a name among them."""
    if not re.search(r"^name[ \t]*:[ \t]*\S", text, re.MULTILINE):
        return False
    from quire.formats.yaml import Mapping as YamlMapping
    from quire.formats.yaml import read_yaml

    read = read_yaml(Source.of(text))
    return not read.diagnostics and len(read.documents) == 1 and isinstance(read.documents[0], YamlMapping)


def _metadata(source: Source, content: Span) -> tuple[dict[str, Value], list[Diagnostic]]:
    """Read the metadata.

    The text before it is replaced by blank lines, so that positions can be mapped back to the file.
    """
    from quire.formats.yaml import Mapping as YamlMapping
    from quire.formats.yaml import literal, read_yaml

    before = "\n" * source.text.count("\n", 0, content.start)
    shift = content.start - len(before)
    blank = Source(source.name, before + source.text[content.start : content.end])
    yaml = read_yaml(blank)
    if yaml.diagnostics or not yaml.documents:
        lead = "the YAML of the metadata cannot be read: "
        return {}, [_moved(finding, shift, lead) for finding in yaml.diagnostics]
    node = yaml.documents[0]
    if len(yaml.documents) > 1 or not isinstance(node, YamlMapping):
        message = "the metadata is not a list of keys and values"
        span = Span(content.start, content.end)
        return {}, [Diagnostic(kinds.METADATA, message, span, "", "write one key: value a line")]
    problems: list[Diagnostic] = []
    value = literal(node, problems)
    return (dict(value) if isinstance(value, Mapping) else {}), [_moved(problem, shift) for problem in problems]


def _moved(finding: Diagnostic, shift: int, before: str = "") -> Diagnostic:
    span = Span(finding.span.start + shift, finding.span.end + shift)
    return Diagnostic(finding.code, f"{before}{finding.message}", span, finding.label, finding.help)


def _refused(source: Source, code: Code, message: str, span: Span, help: str = "") -> Knowledge:
    return Knowledge(source, {}, "", (Diagnostic(code, message, span, "", help),))


_SHAPE = "begin with a line ```yaml, then name, title, version and entry_type, then a line ```"
