"""Complete lines of playbooks: headings, branch markers, inputs, the artifact, and comments that hide findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.diagnostics import Severity
from quire.formats.playbook.syntax import ARTIFACT_TYPES, INPUT_TYPES
from quire.lsp.answers import Completion
from quire.lsp.playbook.complete_values import condition_names, condition_values, result_names
from quire.lsp.playbook.directive_forms import MARKER_MEANINGS
from quire.lsp.playbook.layout import Layout, Part, layout_of
from quire.patterns import late_pattern
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.views import View

_CONDITION = late_pattern(r"[^\S\n]*+```(?:if|elif)[^\S\n]++(.*+)$")
_NAME = late_pattern(r"[A-Za-z0-9_]*+$")
_OPERATOR = late_pattern(r"([A-Za-z0-9_]++)[^\S\n]++([=!]*+)$")
_VALUE = late_pattern(r'([A-Za-z0-9_]++)[^\S\n]*+(?:==|!=)[^\S\n]*+("?+)([^"\n]*+)$')
_INPUT_TYPE = late_pattern(r"[^\S\n]*+-[^\S\n]++`[A-Za-z0-9_]++`[^\S\n]++\(([A-Za-z]*+)$")
_ARTIFACT = late_pattern(
    r"[^\S\n]*+(type|from):[^\S\n]*+([A-Za-z0-9_]*+)$",
)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def headings(view: View, start: int, offset: int) -> list[Completion]:
    """Return the headings that the document can have here: the next step, a sub-step of an arm, missing sections."""
    layout = layout_of(view)
    span = Span(start, offset)
    number = _free_number(layout, start)
    found = [
        Completion(
            f"## STEP {number}: ",
            "snippet",
            f"## STEP {number}: ${{1:Title}}\n\n$0",
            True,
            "the next step",
            order=2,
            span=span,
        )
    ]
    if (parent := _in_arm(layout, start)) is not None:
        label = free_label(layout, parent)
        found.append(
            Completion(
                f"### STEP {label}: ",
                "snippet",
                f"### STEP {label}: ${{1:Title}}\n\n$0",
                True,
                "a sub-step of this arm",
                order=1,
                span=span,
            )
        )
    kinds = {section.kind for section in layout.sections if section.start != start}
    more = {
        "system": ("## SYSTEM", "## SYSTEM\n\n$0", "instructions that every step gets"),
        "inputs": ("## INPUTS", "## INPUTS\n\n- `${1:name}` (${2:string}): $0", "what a run is given"),
        "artifacts": ("## ARTIFACTS", "## ARTIFACTS\n\ntype: ${1:markdown}", "what kind of thing comes out"),
    }
    found += [
        Completion(label, "snippet", insert, True, about, order=3, span=span)
        for kind, (label, insert, about) in more.items()
        if kind not in kinds
    ]
    if layout.scan.title is None and not layout.parts:
        found.append(Completion("# ", "snippet", "# ${1:Title}\n\n$0", True, "the title", order=0, span=span))
    return found


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
    return next(
        (f"{parent.number}{one}" for one in _LETTERS if f"{parent.number}{one}" not in taken), f"{parent.number}a"
    )


def markers(view: View, start: int, offset: int) -> list[Completion]:
    """Return branch markers, or the parts of the condition that is being typed."""
    before = view.source.text[start:offset]
    if condition := _CONDITION.match(before):
        return _condition(view, condition[1], offset)
    layout = layout_of(view)
    at = start + len(before) - len(before.lstrip())
    span = Span(at, offset)
    end = view.source.text.find("\n", offset)
    rest = view.source.text[offset : end if end >= 0 else len(view.source.text)]
    # Editors close backticks by themselves, so the line may have some behind the cursor.
    span = Span(at, offset + len(rest)) if rest and not rest.strip("`") else span
    is_open = _in_arm(layout, start) is not None
    whole = '```if ${1:name} == "${2:value}"```\n\n### STEP ${3:1a}: ${4:Title}\n\n$0\n\n```else```\n\n```endif```'
    if (part := layout.part_at(start)) is not None:
        whole = whole.replace("${3:1a}", f"${{3:{free_label(layout, part.top)}}}")
    texts = {"if": '```if ${1:name} == "${2:value}"```', "elif": '```elif ${1:name} == "${2:value}"```'}
    texts |= {"else": "```else```", "endif": "```endif```"}
    fitting = ("elif", "else", "endif") if is_open else ("if",)
    found = [
        Completion(
            f"```{word}", "keyword", text, True, MARKER_MEANINGS[word], order=1 if word in fitting else 4, span=span
        )
        for word, text in texts.items()
    ]
    return (
        found
        if is_open
        else [Completion("```if … else", "snippet", whole, True, "arms with sub-steps", order=2, span=span), *found]
    )


def _condition(view: View, typed: str, offset: int) -> list[Completion]:
    if found := _VALUE.match(typed):
        end = view.source.text.find("\n", offset)
        rest = view.source.text[offset : end if end >= 0 else len(view.source.text)]
        opening, closing = ("", "") if found[2] else ('"', "")
        closing = "" if rest.startswith('"') else '"' + ("" if rest.lstrip().startswith("```") else "```")
        values = condition_values(view, found[1], offset - len(found[3]), offset, closing)
        if not opening:
            return values
        return [
            Completion(one.label, one.kind, opening + one.insert, detail=one.detail, order=1, span=one.span)
            for one in values
        ]
    if found := _OPERATOR.match(typed):
        span = Span(offset - len(found[2]), offset)
        return [
            Completion("==", "operator", '== "', detail="is exactly", order=1, span=span),
            Completion("!=", "operator", '!= "', detail="is not", order=2, span=span),
        ]
    if name := _NAME.fullmatch(typed):
        return condition_names(view, offset - len(name[0]), offset)
    return []


def input_lines(view: View, start: int, offset: int) -> list[Completion]:
    """Return a line of `## INPUTS`, or the types for one."""
    before = view.source.text[start:offset]
    if found := _INPUT_TYPE.match(before):
        span = Span(offset - len(found[1]), offset)
        types = [Completion(one, "keyword", order=2, span=span) for one in dict.fromkeys(INPUT_TYPES.values())]
        return [
            *types,
            Completion("enum: a, b", "snippet", "enum: ${1:a}, ${2:b}", True, "one of a few", order=3, span=span),
        ]
    if before.strip() in ("", "-", "- `"):
        at = start + len(before) - len(before.lstrip())
        span = Span(at, offset)
        return [
            Completion(
                "- `name` (string)",
                "snippet",
                "- `${1:name}` (${2:string}): ${3:description}",
                True,
                "an input",
                order=1,
                span=span,
            ),
            Completion(
                "- `name` (string: default)",
                "snippet",
                "- `${1:name}` (${2:string}: ${3:default}): ${4:description}",
                True,
                "an optional input",
                order=2,
                span=span,
            ),
            Completion(
                "- `name` (enum: a, b)",
                "snippet",
                "- `${1:name}` (enum: ${2:a}, ${3:b}): ${4:description}",
                True,
                "a choice",
                order=3,
                span=span,
            ),
        ]
    return []


def artifact_lines(view: View, start: int, offset: int) -> list[Completion]:
    """Return the keys of `## ARTIFACTS`, or their values."""
    before = view.source.text[start:offset]
    found = _ARTIFACT.match(before)
    if found is None:
        word = before.strip()
        span = Span(offset - len(word), offset)
        texts = {"type: ": "the kind of thing", "from: ": "the output or the step that it is taken from"}
        return (
            [Completion(one, "property", detail=about, span=span) for one, about in texts.items()]
            if word.isalpha() or not word
            else []
        )
    span = Span(offset - len(found[2]), offset)
    if found[1] == "type":
        return [Completion(one, "enum", span=span) for one in ARTIFACT_TYPES]
    return result_names(view, len(view.source.text), span)


def comments(view: View, start: int, offset: int) -> list[Completion]:
    """Return comments before the title that hide the findings of the last check."""
    text = view.source.text
    before = text[start:offset]
    span = Span(start + len(before) - len(before.lstrip()), offset)
    codes = {one.code.id: one for one in view.findings if one.severity is not Severity.ERROR}
    found = [
        Completion(
            f"<!-- quire: allow {id}",
            "snippet",
            f'<!-- quire: allow {id} because "${{1:reason}}" -->',
            True,
            one.message,
            order=1,
            span=span,
        )
        for id, one in codes.items()
    ]
    return [
        *found,
        Completion(
            "<!-- quire: allow CODE",
            "snippet",
            '<!-- quire: allow ${1:CODE} because "${2:reason}" -->',
            True,
            "hide a finding",
            order=2,
            span=span,
        ),
    ]
