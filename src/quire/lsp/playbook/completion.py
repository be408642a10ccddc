"""Complete the text before the cursor in a playbook. Only its line is read, so the rest may be broken.

Lines are completed here: headings, branch markers, inputs, the artifact, and comments that hide findings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.diagnostics import Severity
from quire.formats.playbook.syntax import ARTIFACT_TYPES, INPUT_TYPES
from quire.lsp.answers import Completion, snippet
from quire.lsp.playbook.complete_directives import (
    complete_directive,
    condition_names,
    condition_values,
    directive_names,
    placeholder_names,
    placeholder_types,
    result_names,
    tool_page,
)
from quire.lsp.playbook.directive_forms import MARKER_MEANINGS
from quire.lsp.playbook.layout import Layout, Part, layout_of
from quire.patterns import late_pattern
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.document_view import View

_PLACEHOLDER = late_pattern(r"\{\{([A-Za-z0-9_]*+)$")
_PLACEHOLDER_TYPE = late_pattern(r"\{\{[A-Za-z0-9_]++:([A-Za-z0-9_]*+)$")
_AT = late_pattern(r"[^\S\n]*+(@[a-z]*+)$")
_DIRECTIVE = late_pattern(r"[^\S\n]*+@(output|elicit|prompt|tool|context|model)\(")
_TICKS = late_pattern(r"[^\S\n]*+`{1,3}+")
_HASH = late_pattern(r"[^\S\n]*+#{1,3}+")
_COMMENT = late_pattern(r"[^\S\n]*+<")
_CONDITION = late_pattern(r"[^\S\n]*+```(?:if|elif)[^\S\n]++(.*+)$")
_NAME = late_pattern(r"[A-Za-z0-9_]*+$")
_OPERATOR = late_pattern(r"([A-Za-z0-9_]++)[^\S\n]++([=!]*+)$")
_VALUE = late_pattern(r'([A-Za-z0-9_]++)[^\S\n]*+(?:==|!=)[^\S\n]*+("?+)([^"\n]*+)$')
_INPUT_TYPE = late_pattern(r"[^\S\n]*+-[^\S\n]++`[A-Za-z0-9_]++`[^\S\n]++\(([A-Za-z]*+)$")
_ARTIFACT = late_pattern(r"[^\S\n]*+(type|from):[^\S\n]*+([A-Za-z0-9_]*+)$")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SECTIONS = {
    "system": ("## SYSTEM", "## SYSTEM\n\n$0", "instructions that every step gets"),
    "inputs": ("## INPUTS", "## INPUTS\n\n- `${1:name}` (${2:string}): $0", "the inputs of a run"),
    "artifacts": ("## ARTIFACTS", "## ARTIFACTS\n\ntype: ${1:markdown}", "the kind of result"),
}
_MARKERS = {
    "if": '```if ${1:name} == "${2:value}"```',
    "elif": '```elif ${1:name} == "${2:value}"```',
    "else": "```else```",
    "endif": "```endif```",
}
_BRANCHES = '```if ${1:name} == "${2:value}"```\n\n### STEP ${3:%s}: ${4:Title}\n\n$0\n\n```else```\n\n```endif```'
_INPUTS = (
    ("- `name` (string)", "- `${1:name}` (${2:string}): ${3:description}", "an input"),
    ("- `name` (string: default)", "- `${1:name}` (${2:string}: ${3:default}): ${4:description}", "an optional input"),
    ("- `name` (enum: a, b)", "- `${1:name}` (enum: ${2:a}, ${3:b}): ${4:description}", "a choice"),
)


def complete(view: View, offset: int) -> list[Completion]:
    """Return the texts that can stand at an offset."""
    before = view.line_before(offset)
    start = offset - len(before)
    layout = layout_of(view)
    section = layout.section_at(offset)
    in_step = layout.part_at(offset) is not None or not layout.parts
    if section is not None and section.kind == "system":
        return _headings(view, start, offset) if _HASH.match(before) else []
    if match := _PLACEHOLDER.search(before):
        return placeholder_names(view, offset - len(match[1]), offset) if in_step or section else []
    if match := _PLACEHOLDER_TYPE.search(before):
        return placeholder_types(offset - len(match[1]), offset)
    if _HASH.match(before):
        return [] if _is_fenced(view, start) else _headings(view, start, offset)
    if section is not None:
        if section.kind == "inputs":
            return _input_lines(view, start, offset)
        return _artifact_lines(view, start, offset) if section.kind == "artifacts" else []
    if layout.scan.title is None or start < layout.scan.title.start():
        return _comments(view, start, offset) if _COMMENT.match(before) else []
    if not in_step or _is_fenced(view, start):
        return []
    if match := _AT.match(before):
        return directive_names(view, start + match.start(1), offset)
    if match := _DIRECTIVE.match(before):
        return complete_directive(view, match[1], start, offset)
    return _markers(view, start, offset) if _TICKS.match(before) else []


def resolve(view: View, what: str) -> str:
    """Return the page of a completion that is looked at."""
    kind, _, name = what.partition(":")
    return tool_page(view, name) if kind == "tool" else ""


def _is_fenced(view: View, start: int) -> bool:
    """Tell whether a line is inside of a code fence. A line that is being typed may have opened it itself."""
    return any(first < start < last for first, last in layout_of(view).scan.blocks)


def _headings(view: View, start: int, offset: int) -> list[Completion]:
    """Return the headings that the document can have here: the next step, a sub-step of an arm, missing sections."""
    layout, span = layout_of(view), Span(start, offset)

    def step(heading: str, about: str, order: int) -> Completion:
        return snippet(heading, heading + "${1:Title}\n\n$0", about, order, span)

    completions = [step(f"## STEP {_free_number(layout, start)}: ", "the next step", 2)]
    if (parent := _in_arm(layout, start)) is not None:
        completions.append(step(f"### STEP {free_label(layout, parent)}: ", "a sub-step of this branch", 1))
    kinds = {section.kind for section in layout.sections if section.start != start}
    completions += [snippet(*form, 3, span) for kind, form in _SECTIONS.items() if kind not in kinds]
    return [*completions, step("# ", "the title", 0)] if layout.scan.title is None and not layout.parts else completions


def _free_number(layout: Layout, start: int) -> int:
    """Return the number for a step at an offset: the one after the step before, or one after all if that is taken."""
    before = [part.number for part in layout.parts if part.start < start]
    taken = {part.number for part in layout.parts if part.start != start}
    number = before[-1] + 1 if before else 1
    return number if number not in taken else max(taken) + 1


def _in_arm(layout: Layout, offset: int) -> Part | None:
    """Return the step whose branches are open at an offset."""
    open_in: Part | None = None
    for marker in layout.markers:
        if marker.line.start() >= offset:
            break
        open_in = None if marker.word == "endif" else marker.step
    return open_in if open_in is not None and open_in.start <= offset <= open_in.end else None


def free_label(layout: Layout, parent: Part) -> str:
    """Return the first label that no sub-step of a step has."""
    taken = {part.label for part in layout.parts if part.parent is parent}
    labels = [f"{parent.number}{letter}" for letter in _LETTERS]
    return next((label for label in labels if label not in taken), labels[0])


def _markers(view: View, start: int, offset: int) -> list[Completion]:
    """Return branch markers, or the parts of the condition that is being typed."""
    before, rest = view.source.text[start:offset], view.line_after(offset)
    if condition := _CONDITION.match(before):
        return _condition(view, condition[1], offset)
    layout = layout_of(view)
    # Editors close backticks by themselves, so the line may have some behind the cursor.
    span = Span(offset - len(before.lstrip()), offset if rest.strip("`") else offset + len(rest))
    is_open = _in_arm(layout, start) is not None
    fitting = ("elif", "else", "endif") if is_open else ("if",)
    completions = [
        Completion(f"```{word}", "keyword", text, True, MARKER_MEANINGS[word], "", 1 if word in fitting else 4, span)
        for word, text in _MARKERS.items()
    ]
    if is_open:
        return completions
    part = layout.part_at(start)
    label = free_label(layout, part.top) if part is not None else "1a"
    return [snippet("```if … else", _BRANCHES % label, "branches with sub-steps", 2, span), *completions]


def _condition(view: View, typed: str, offset: int) -> list[Completion]:
    if match := _VALUE.match(typed):
        rest = view.line_after(offset)
        closing = "" if rest.startswith('"') else '"' if rest.lstrip().startswith("```") else '"```'
        opening = "" if match[2] else '"'
        return condition_values(view, match[1], Span(offset - len(match[3]), offset), opening, closing)
    if match := _OPERATOR.match(typed):
        span = Span(offset - len(match[2]), offset)
        return [
            Completion("==", "operator", '== "', detail="is exactly", order=1, span=span),
            Completion("!=", "operator", '!= "', detail="is not", order=2, span=span),
        ]
    if name := _NAME.fullmatch(typed):
        return condition_names(view, offset - len(name[0]), offset)
    return []


def _input_lines(view: View, start: int, offset: int) -> list[Completion]:
    """Return a line of `## INPUTS`, or the types for one."""
    before = view.source.text[start:offset]
    if match := _INPUT_TYPE.match(before):
        span = Span(offset - len(match[1]), offset)
        types = [Completion(type, "keyword", order=2, span=span) for type in dict.fromkeys(INPUT_TYPES.values())]
        return [*types, snippet("enum: a, b", "enum: ${1:a}, ${2:b}", "one of a few", 3, span)]
    if before.strip() not in ("", "-", "- `"):
        return []
    span = Span(offset - len(before.lstrip()), offset)
    return [snippet(*form, order, span) for order, form in enumerate(_INPUTS, 1)]


def _artifact_lines(view: View, start: int, offset: int) -> list[Completion]:
    """Return the keys of `## ARTIFACTS`, or their values."""
    before = view.source.text[start:offset]
    match = _ARTIFACT.match(before)
    if match is None:
        word = before.strip()
        if word and not word.isalpha():
            return []
        span = Span(offset - len(word), offset)
        texts = {"type: ": "the kind of thing", "from: ": "the output or the step that it is taken from"}
        return [Completion(word, "property", detail=about, span=span) for word, about in texts.items()]
    span = Span(offset - len(match[2]), offset)
    if match[1] == "type":
        return [Completion(word, "enum", span=span) for word in ARTIFACT_TYPES]
    return result_names(view, len(view.source.text), span)


def _comments(view: View, start: int, offset: int) -> list[Completion]:
    """Return comments before the title that hide the findings of the last check."""
    span = Span(offset - len(view.source.text[start:offset].lstrip()), offset)
    codes = {finding.code.id: finding.message for finding in view.findings if finding.severity is not Severity.ERROR}
    head = "<!-- quire: allow"
    return [
        *(snippet(f"{head} {id}", f'{head} {id} because "${{1:reason}}" -->', codes[id], 1, span) for id in codes),
        snippet(f"{head} CODE", head + ' ${1:CODE} because "${2:reason}" -->', "hide a finding", 2, span),
    ]
