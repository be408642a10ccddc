"""Say which lines make a gate, and write them into a document where their place is certain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.diagnostics import Edit, Fix
from quire.patterns import late_pattern
from quire.plan.pipeline_work import Agent
from quire.source import Span

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quire.analysis.facts import EffectFact, QuestionFact, StoreFact
    from quire.source import Source

_KEYS = late_pattern(r":[ ]*(?:\{[ ]*|\n([ ]+)(?=\S))")
"""Matches from the end of the name of a step to its first key."""
_ARGUMENTS = late_pattern(r"\bargs:[ ]*(?:\{[ ]*|\n([ ]+)(?=\S))")
_ELICIT = late_pattern(r'@elicit\((?:confirm|select),[^\n]*?("\s*)\)[ ]*$', 8)
"""Matches a question of a playbook that ends with a text on its line (8: `re.MULTILINE`)."""
_DIALECT = late_pattern(r"""^dialect[ ]*:[ ]*["']?quire\b""", 8)
_FAR = 2_000
"""Characters after the name of a step in which its arguments begin."""
_UNATTENDED = 'in a job without people, write out all that it is given, or `quire: allow GA101 because "…"`'


def help_for(effect: EffectFact) -> str:
    """Return the lines that put a person's yes before an effect."""
    way = effect.place.step.label
    if effect.place.format == "playbook":
        asking = (
            'ask in a step before it: `@elicit(confirm, "…", default:"no")`, and put '
            f'step {way} between ` ```if __elicit_step_N == "yes"``` ` and ` ```endif``` `'
        )
        return f"{asking}; {_UNATTENDED}"
    ask = '`- tool: {name: ask, args: {prompt: …, type: confirm, default: "no"}, output: approved}`'
    more = "; or leave the tool out of its `capabilities`" if isinstance(effect.place.step.work, Agent) else ""
    return f"ask before it: {ask}, and add `when: approved == 'yes'` to step {way}{more}; {_UNATTENDED}"


def condition_help(effect: EffectFact, question: QuestionFact) -> str:
    """Return the condition that makes a question a gate of an effect."""
    name, step = _answer(question), effect.place.step.label
    if effect.place.format == "playbook":
        return f'put step {step} between ` ```if {name} == "yes"``` ` and ` ```endif``` `'
    if not name:
        return f"keep the answer with `output: approved`, and add `when: approved == 'yes'` to step {step}"
    read = _read(name)
    return f"add `when: {read} == 'yes'` to step {step}, or `- stop: {{when: {read} != 'yes'}}` after the question"


def _read(name: str) -> str:
    """Return the expression that reads a store."""
    return name if name.isidentifier() else f"get(ctx, '{name}')"


def _answer(question: QuestionFact) -> str:
    step = question.place.step
    if step.capture is not None:
        return step.capture.name
    return f"__elicit_step_{step.label}" if step.ask is not None else ""


def condition_fix(
    effect: EffectFact, question: QuestionFact, source: Source, stores: Iterable[StoreFact]
) -> Fix | None:
    """Return the edit that lets a step run after a yes only: of a step of the pipeline itself without a condition. The
    pipeline has to be in the dialect that has conditions, and no other step may write the store of the answer."""
    name, place = _answer(question), effect.place
    guard = place.step.guard
    if any(one.name == name and one.place.way != question.place.way for one in stores):
        return None
    if not _in_dialect(source.text, place.span.end):
        return None
    if not name or place.document or question.place.document or place.format != "pipeline":
        return None
    if guard is not None and guard.when is not None:
        return None
    test = f"{_read(name)} == 'yes'"
    line = f"when: {test}" if name.isidentifier() else f'when: "{test}"'
    return _inserted(source, place.span.end, place.span.end, line, f"run step {place.step.label} after a yes only")


def _in_dialect(text: str, at: int) -> bool:
    """Tell whether the YAML document around a place says that it is in the Quire dialect."""
    start, end = text.rfind("\n---", 0, at) + 1, text.find("\n---", at)
    return _DIALECT.search(text, start, end if end >= 0 else len(text)) is not None


def default_help(question: QuestionFact, answer: str) -> str:
    from quire.analysis.gates import has_default

    said = f'`default:"{answer}"`' if question.place.format == "playbook" else f'`default: "{answer}"`'
    return f"let it have {said}" if has_default(question) else f"add {said} to the question"


def default_fix(question: QuestionFact, answer: str, source: Source) -> Fix | None:
    """Return the edit that gives a question without a default one that stops the effect."""
    from quire.analysis.gates import has_default

    place = question.place
    if place.document or has_default(question) or '"' in answer or "\\" in answer:
        return None
    title = f"answer “{answer}” if no person does"
    if place.format == "playbook":
        found = _ELICIT.search(source.text, place.span.end, place.span.end + _FAR)
        between = source.text[place.span.end : found.start()] if found else ""
        if found is None or "\n#" in between:
            return None
        at = found.end(1)
        return Fix(title, (Edit(Span(at, at), "", f', default:"{answer}"'),), safe=False)
    keys = _KEYS.match(source.text, place.span.end)
    found = _ARGUMENTS.search(source.text, place.span.end, place.span.end + _FAR) if keys else None
    if found is None or "\n-" in source.text[place.span.end : found.start()].replace(" ", ""):
        return None
    return _at(source, found.end(), found[1], f'default: "{answer}"', title)


def show_help(question: QuestionFact, used: frozenset[str]) -> str:
    name = next(iter(sorted(used)), "value")
    if question.place.format == "playbook":
        return f"put {{{{{name}}}}} into the text of the question"
    return f"add `show: !expr {name}` to its args, or put it into the prompt"


def _inserted(source: Source, start: int, end: int, line: str, title: str) -> Fix | None:
    found = _KEYS.match(source.text, start)
    return _at(source, found.end(), found[1], line, title) if found else None


def _at(source: Source, at: int, indent: str | None, line: str, title: str) -> Fix:
    """Return the fix that inserts a key: before the others of a flow mapping, or as a line of its own."""
    new = f"{line}, " if indent is None else f"{line}\n{indent}"
    return Fix(title, (Edit(Span(at, at), "", new),), safe=False)
