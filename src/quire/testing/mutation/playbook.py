"""Edits of the steps of playbooks: questions, prompts, captures, arms and arguments of tools.

Known equivalences, for which no edit is made: a capture whose name nothing reads, two arms with the same steps, a
context that leaves no earlier result out, and a system text that is blank. A name counts as read if a prompt comes from
outside, since its text may refer to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.plan.descriptions import condition, written
from quire.plan.nodes import (
    Arguments,
    Capture,
    Case,
    Comparison,
    Match,
    Plan,
    Reference,
    Sequence,
    Step,
    Template,
    Think,
    UseTool,
    ValueSlot,
)
from quire.plan.templates import template
from quire.runs.why import step_references
from quire.testing.mutation.edits import Edit, prompt_edits, shown, with_item, without
from quire.testing.mutation.kills import Kill
from quire.trust.capabilities import canonical

if TYPE_CHECKING:
    from quire.testing.mutation.edits import Site


def playbook_edits(site: Site) -> Iterator[Edit]:
    """Yield every edit of one step of a playbook."""
    step, label = site.step, site.step.label
    if site.can_be_dropped:
        kill = Kill("steps", label, value="completed")
        yield Edit("drop_step", "", f"drops {site.name}", None, kill, step.span)
    yield from _question(site)
    match step.work:
        case Think():
            yield from _think(site, step.work)
        case UseTool():
            yield from _tool(site, step.work)
    if step.capture is not None:
        yield from _capture(site, step.capture)
    if step.match is not None:
        yield from _match(site, step.match)


def _question(site: Site) -> Iterator[Edit]:
    step, label = site.step, site.step.label
    ask = step.ask
    if ask is None:
        return
    yield Edit("drop_question", "", f"drops the question of {site.name}", replace(step, ask=None), Kill("asked", label))
    for number, name, prompt in _without_references(ask.prompt):
        reference = _raw(ask.prompt, number)
        yield Edit(
            "drop_reference",
            f"question.{name}.{number}",
            f"drops {reference} from the question of {site.name}",
            replace(step, ask=replace(ask, prompt=prompt)),
            Kill("asked", label, name),
            site.find(reference),
        )
    for number, option in enumerate(ask.options if len(ask.options) > 1 else ()):
        text = written(option)
        yield Edit(
            "drop_option",
            str(number),
            f"drops the option {shown(text)} of {site.name}",
            replace(step, ask=replace(ask, options=without(ask.options, number))),
            Kill("steps", label, value="completed"),
            site.find(text),
        )


def _think(site: Site, work: Think) -> Iterator[Edit]:
    label = site.step.label
    yield from prompt_edits(site, work.prompt)
    if work.preamble is not None and not work.prompt.empty:
        where = work.preamble.where
        name = where if work.preamble.scheme == "variable" else ""
        yield Edit(
            "drop_preamble",
            "",
            f"drops the prompt {where} of {site.name}",
            site.with_work(preamble=None),
            Kill("prompts", label, name),
            site.find("@prompt"),
        )
    if work.context is not None and _hides_something(site, work.context):
        yield Edit(
            "drop_context",
            "",
            f"sends all earlier results to {site.name}",
            site.with_work(context=None),
            Kill("prompts", label, absent=True),
            site.find("@context"),
        )


def _hides_something(site: Site, names: tuple[str, ...]) -> bool:
    """Tell whether a context leaves out some result of the steps before."""
    for path, step in site.plan.steps():
        if path == site.path:
            return False
        has_result = step.ask is not None or isinstance(step.work, Think | UseTool)
        if has_result and (step.capture is None or step.capture.name not in names):
            return True
    return False


def _capture(site: Site, capture: Capture) -> Iterator[Edit]:
    name = capture.name
    if name in site.reads:
        yield Edit(
            "drop_capture",
            name,
            f"drops the capture {name} of {site.name}",
            _with_capture(replace(site.step, capture=None), capture, None),
            Kill("named", name),
            site.find("@output"),
        )
    for option in capture.options if len(capture.options) > 1 else ():
        fewer = replace(capture, options=tuple(value for value in capture.options if value != option))
        yield Edit(
            "drop_option",
            f"{name}.{option}",
            f"drops the value {shown(option)} of {name}",
            _with_capture(replace(site.step, capture=fewer), capture, fewer),
            Kill("named", name),
            site.find(option),
        )


def _match(site: Site, match: Match) -> Iterator[Edit]:
    step, cases = site.step, match.cases

    def changed(edited: tuple[Case, ...]) -> Step:
        return replace(step, match=replace(match, cases=edited))

    for number, case in enumerate(cases):
        kill = Kill("steps", case.body.steps[0].label if case.body.steps else step.label)
        words = _words(case.test)
        span = site.find(case.test.value if case.test else "else")
        sentence = f"drops the branch {words} of {site.name}"
        yield Edit("drop_arm", str(number + 1), sentence, changed(without(cases, number)), kill, span)
        if case.test is not None:
            negated = replace(case.test, operator="!=" if case.test.operator == "==" else "==")
            other = replace(case.test, value=f"{case.test.value}~")
            for operator, test in (("negate_condition", negated), ("change_condition", other)):
                arms = with_item(cases, number, replace(case, test=test))
                sentence = f"asks {_words(test)} instead of {words} in {site.name}"
                yield Edit(operator, str(number + 1), sentence, changed(arms), kill, span)
        if number + 1 < len(cases) and case.body != cases[number + 1].body:
            after = cases[number + 1]
            both = (replace(case, body=after.body), replace(after, body=case.body))
            arms = (*cases[:number], *both, *cases[number + 2 :])
            sentence = f"swaps the branches {words} and {_words(after.test)} of {site.name}"
            yield Edit("swap_arms", str(number + 1), sentence, changed(arms), kill, span)


def _tool(site: Site, work: UseTool) -> Iterator[Edit]:
    kill = Kill("calls", canonical(work.tool))
    for place, sentence, arguments, text in _argument_edits(work.arguments, ""):
        operator = "drop_reference" if sentence.startswith("drops") else "change_argument"
        yield Edit(
            operator,
            f"argument.{place}",
            f"{sentence} of {site.name}",
            site.with_work(arguments=arguments),
            kill,
            site.find(text),
        )


def _argument_edits(tree: Arguments, place: str) -> Iterator[tuple[str, str, Arguments, str]]:
    """Yield arguments with one change: its place, the sentence, the arguments, and the text in the document."""
    where = f"the argument {place}" if place else "the arguments"
    match tree:
        case Template(parts=parts):
            if next(tree.references(), None) is None:
                text = "".join(part for part in parts if isinstance(part, str))
                other = f"{text}~"
                yield place, f"gives {shown(other)} instead of {shown(text)} in {where}", template(other), text
            for number, name, fewer in _without_references(tree):
                raw = _raw(tree, number)
                yield f"{place}.{name}.{number}", f"drops {raw} from {where}", fewer, raw
        case ValueSlot(reference=reference):
            yield f"{place}.{reference.name}", f"drops {reference.raw} from {where}", None, reference.raw
        case tuple():
            for number, part in enumerate(tree):
                for at, sentence, changed, text in _argument_edits(part, f"{place}[{number}]"):
                    yield at, sentence, with_item(tree, number, changed), text
        case dict():
            for name, part in tree.items():
                for at, sentence, changed, text in _argument_edits(part, f"{place}.{name}" if place else name):
                    yield at, sentence, {**tree, name: changed}, text
        case None:
            return
        case bool() | int() | float():
            literal = not tree if isinstance(tree, bool) else tree + 1
            yield place, f"gives {shown(literal)} instead of {shown(tree)} in {where}", literal, shown(tree)


def _without_references(text: Template) -> Iterator[tuple[int, str, Template]]:
    """Yield the template without one of its references: the number of the part, the name, and the rest."""
    for number, part in enumerate(text.parts):
        if isinstance(part, Reference):
            yield number, part.name, Template(without(text.parts, number))


def _raw(text: Template, number: int) -> str:
    part = text.parts[number]
    return part.raw if isinstance(part, Reference) else ""


def _words(test: Comparison | None) -> str:
    return condition(test) if test else "else"


def _with_capture(step: Step, old: Capture, new: Capture | None) -> Step:
    """Replace a capture in the closings that ask a model for it: of the step, and of the last steps of its arms."""
    work = step.work
    if isinstance(work, Think) and old in work.closing:
        closing = tuple(new if capture == old else capture for capture in work.closing)
        step = replace(step, work=replace(work, closing=tuple(capture for capture in closing if capture is not None)))
    if step.match is None:
        return step
    cases = tuple(
        replace(case, body=Sequence(tuple(_with_capture(inner, old, new) for inner in case.body.steps)))
        for case in step.match.cases
    )
    return replace(step, match=replace(step.match, cases=cases))


def reads_of_playbook(plan: Plan) -> frozenset[str]:
    """Return the names that some step reads, or may read."""
    names = {reference.name for _, step in plan.steps() for reference in step_references(step)}
    if plan.artifact is not None:
        names |= {plan.artifact.source, *(reference.name for reference in plan.artifact.type.references())}
    for think in (step.work for _, step in plan.steps() if isinstance(step.work, Think)):
        names.update(think.context or ())
        if think.preamble is not None and think.preamble.scheme != "variable":
            names |= plan.written
    return frozenset(names)
