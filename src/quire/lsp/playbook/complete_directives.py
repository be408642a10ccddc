"""Complete directives of playbooks: their words, their forms, and what stands in their parentheses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.formats.playbook.names import family
from quire.formats.playbook.syntax import ELICIT_KINDS, OUTPUT_TYPES
from quire.lsp.answers import Completion, snippet
from quire.lsp.playbook.complete_references import complete_model, complete_prompt, complete_tool
from quire.lsp.playbook.complete_values import result_names
from quire.lsp.playbook.directive_forms import FORMS
from quire.lsp.playbook.index import KnownNames
from quire.lsp.playbook.layout import ASKED
from quire.patterns import late_pattern
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.views import View

_WORD = late_pattern(r"[A-Za-z0-9_-]*+$")
_OUTPUT_TYPE = late_pattern(r"[A-Za-z0-9_]++\s*+:\s*+([A-Za-z0-9_]*+)$")
_AFTER_COMMA = late_pattern(r",\s*+([a-z]*+)$")
_DEFAULT = late_pattern(r'default:"([^"\n]*+)$')
_MOST_MISSING = 50


def directive_names(view: View, start: int, offset: int) -> list[Completion]:
    """Return all forms of all directives. The plainest form of each stands first."""
    span = Span(start, offset)
    return [
        snippet(form.label, form.snippet, form.meaning, 3 if at else 1, span)
        for forms in FORMS.values()
        for at, form in enumerate(forms)
    ]


def complete_directive(view: View, word: str, start: int, offset: int) -> list[Completion]:
    """Return what can stand in the parentheses of a directive; `start` is the start of the line."""
    text = view.source.text
    begin = text.index("(", start, offset) + 1
    typed = text[begin:offset]
    match word:
        case "output":
            return _output(view, typed, begin, offset)
        case "elicit":
            return _elicit(typed, begin, offset)
        case "prompt":
            return complete_prompt(view, typed, begin, offset)
        case "tool":
            return complete_tool(view, start, offset)
        case "context":
            return _context(view, typed, offset)
        case "model":
            return complete_model(view, Span(begin, offset))
    return []


def _output(view: View, typed: str, begin: int, offset: int) -> list[Completion]:
    if typed.count('"') % 2:
        return []
    if found := _OUTPUT_TYPE.match(typed):
        span = Span(offset - len(found[1]), offset)
        kinds = [Completion(one, "keyword", span=span, order=2) for one in dict.fromkeys(OUTPUT_TYPES.values())]
        return [snippet('enum, "a", "b"', 'enum, "${1:a}", "${2:b}"', "one of a few texts", 1, span), *kinds]
    if found := _AFTER_COMMA.search(typed):
        span = Span(offset - len(found[1]), offset)
        return [snippet('extract:"field"', 'extract:"${1:field}"', "one field of the reply", 5, span)]
    if ":" in typed or "," in typed:
        return []
    span, about = Span(begin, offset), "read, but set by nothing"
    close = "" if ")" in view.line_after(offset) else ")"
    inside = slice(len("@output("), -1)
    return [
        *(Completion(name, "variable", name + close, detail=about, order=1, span=span) for name in _missing(view)),
        *(snippet(form.label[inside], form.snippet[inside] + close, form.meaning, 3, span) for form in FORMS["output"]),
    ]


def _missing(view: View) -> list[str]:
    """Return the names that placeholders and conditions read, and that nothing sets."""
    tree = view.reading.partial
    if tree is None:
        return []
    known = KnownNames(tree)
    found: dict[str, None] = {}
    for parent in tree.steps:
        for step in family(parent):
            found |= {one.name: None for one in step.placeholders if not known.is_known(one.name)}
        for arm in parent.arms:
            if arm.condition and not known.is_known(arm.condition.variable):
                found[arm.condition.variable] = None
        if len(found) > _MOST_MISSING:
            break
    return [name for name in found if not name.startswith(ASKED) and not name[0].isdigit()]


def _elicit(typed: str, begin: int, offset: int) -> list[Completion]:
    if found := _DEFAULT.search(typed):
        kind = typed.partition(",")[0].strip().lower()
        options = ["yes", "no"] if kind == "confirm" else typed[: found.start()].split('"')[3::2]
        span = Span(offset - len(found[1]), offset)
        return [Completion(one, "enum", span=span) for one in options if one] if kind != "input" else []
    if "," not in typed:
        span = Span(begin, offset)
        forms = {form.label.partition("(")[2].partition(",")[0]: form for form in FORMS["elicit"]}
        return [
            Completion(kind, "keyword", forms[kind].snippet[len("@elicit(") : -1], True, forms[kind].meaning, span=span)
            for kind in ELICIT_KINDS
        ]
    found = _AFTER_COMMA.search(typed)
    if found and typed.count('"') % 2 == 0 and '"' in typed:
        span = Span(offset - len(found[1]), offset)
        return [snippet('default:"…"', 'default:"$1"', "the answer without people", 5, span)]
    return []


def _context(view: View, typed: str, offset: int) -> list[Completion]:
    found = _WORD.search(typed)
    span = Span(offset - len(found[0] if found else ""), offset)
    none = [Completion("none", "keyword", detail="no earlier result", order=1, span=span)] if "," not in typed else []
    return [*none, *result_names(view, offset, span)]
