"""Run all checks of a directive that go beyond reading it: its values, its place, and the files around it.

Without a resolver only the file itself is checked. Trust is checked elsewhere, except that the directives a hook runs
must have a valid signature if they have one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec.structs import replace

from quire.diagnostics import Code, Diagnostic, Edit, replacing
from quire.errors import BadConfiguration, QuireError
from quire.formats.directive import codes as all_codes
from quire.formats.directive.codes import codes
from quire.formats.directive.item_references import documents_called
from quire.formats.directive.parse import parse
from quire.formats.directive.syntax import (
    Combined,
    Directive,
    Text,
    conflicting_limits,
    cost_values,
    leaves_no_room,
    limit_problem,
    shown,
)
from quire.formats.directive.validate import identity_problems, missing_fields, parallel_problem, practice
from quire.formats.near_names import name_fix, word_fix
from quire.plan.templates import InputReference, can_be_inserted, is_static, references
from quire.plan.vocabulary import EVERYTHING, HOOK_VALUES, LIMIT_ALIASES, LIMITS, adds_context, judges
from quire.source import Span
from quire.wording import Suggestions, did_you_mean, nearest

if TYPE_CHECKING:
    from quire.formats.directive.syntax import Parameter, ParseResult, Test
    from quire.formats.resolver import DocumentResolver
    from quire.source import Source


__all__ = ["check", "check_reading", "codes", "errors_of", "fatal", "foreign"]

_SPLIT = re.compile(r"[^\w-]++")
FOREIGN_OPENINGS = ("{{", "${", "{input:")
"""A text without any of these has no finding of `foreign`."""
# Code is left out: a shell and other templates write `${name}` and `{{name}}` too.
_FOREIGN = re.compile(r"`[^`]++`|\{\{([\w-]++)\}\}|\$\{([\w-]++)\}|\{input:([\w-]++)\}")


def check(
    source: Source, resolver: DocumentResolver | None = None, place: PurePath | None = None
) -> tuple[Diagnostic, ...]:
    """Return all findings about a directive. `place` is the path of its file below `.ai/directives`."""
    return check_reading(parse(source), resolver, place)


def check_reading(
    reading: ParseResult, resolver: DocumentResolver | None = None, place: PurePath | None = None
) -> tuple[Diagnostic, ...]:
    """Return the findings of a reading and of all checks, in the order of the text."""
    if not reading.whole:
        return reading.diagnostics
    directive = reading.partial
    findings = [*reading.diagnostics, *fatal(directive), *_warnings(directive), *_no_room(directive)]
    findings += [*practice(directive), *foreign(directive, reading.source), *check_signing(directive, place)]
    if resolver is not None and place is not None:
        findings += check_items(directive, reading.source, resolver, place)
    return tuple(sorted(findings, key=lambda finding: (finding.span.start, finding.span.end)))


def fatal(directive: Directive) -> Iterator[Diagnostic]:
    """Yield the errors of a directive that can be read but not run."""
    suggestions = Suggestions()
    if directive.name is None:
        yield Diagnostic(all_codes.NAME, "the directive has no name", directive.root, "", 'write <directive name="…">')
    for name, value in directive.limits or ():
        if LIMIT_ALIASES.get(name, name) not in LIMITS:
            close = suggestions.nearest(name, LIMITS)
            help = did_you_mean(close, f"limits are {', '.join(LIMITS)}")
            written = Span(value.span.start - len(f'{name}="'), value.span.start - len('="'))
            fix = word_fix(name, LIMITS, written) if close else None
            yield Diagnostic(all_codes.UNKNOWN_LIMIT, f"{shown(name)} is not a limit", value.span, "", help, fix)
        elif problem := limit_problem(name, value.text):
            yield Diagnostic(all_codes.LIMIT, f"the limit {name} {problem}", value.span)
    for message, value in conflicting_limits(directive):
        yield Diagnostic(all_codes.LIMIT, message, value.span, "", "leave one of them out")
    for name, value in cost_values(directive.cost) if directive.cost else ():
        if problem := limit_problem(name, value.text):
            yield Diagnostic(all_codes.LIMIT, f"the cost for {name} {problem}", value.span)
    yield from _names("input", directive.inputs)
    yield from _names("output", directive.outputs)


def _no_room(directive: Directive) -> Iterator[Diagnostic]:
    """Report limits that are reached before the first turn, if no hook could raise them."""
    if any(hook.event == "limit" for hook in directive.hooks):
        return
    declared = dict(cost_values(directive.cost)) if directive.cost else {}
    for name, value in {**declared, **dict(directive.limits or ())}.items():
        if leaves_no_room(name, value.text):
            yield Diagnostic(all_codes.NO_ROOM, f"{name} is 0, which leaves no room for a first turn", value.span)


def errors_of(reading: ParseResult) -> tuple[Diagnostic, ...]:
    """Return the findings of a reading, and the errors that stop it from running."""
    return (*reading.diagnostics, *fatal(reading.partial)) if reading.whole else reading.diagnostics


def _names(what: str, declared: tuple[Parameter, ...]) -> Iterator[Diagnostic]:
    names: set[str] = set()
    for parameter in declared:
        if not parameter.name:
            message, help = f"an {what} has no name", f'write <{what} name="…">'
            yield Diagnostic(all_codes.PARAMETER, message, parameter.span, "", help)
        elif parameter.name in names:
            message = f"the {what} {shown(parameter.name)} is declared twice"
            yield Diagnostic(all_codes.PARAMETER, message, parameter.span)
        names.add(parameter.name)


def _warnings(directive: Directive) -> Iterator[Diagnostic]:
    root = directive.root
    does_something = bool(directive.body or any(section.tag == "process" for section in directive.sections))
    missing = missing_fields(directive)
    if does_something and "model" in missing:
        help = 'write <model tier="low" /> in <metadata>'
        yield Diagnostic(all_codes.NO_MODEL, "no model is asked for", root, "", help)
    if does_something and "permissions" in missing:
        message = "it requests no permissions, and has no parent to inherit them from"
        yield Diagnostic(all_codes.NO_PERMISSIONS, message, root, "", "write <permissions> in <metadata>, or extends")
    yield from _unacknowledged(directive)
    for hook in directive.hooks:
        yield from _unknown_paths(hook.tests)
    if not does_something and (directive.model is not None or directive.inputs or directive.outputs):
        message = "it has no instructions for the model"
        yield Diagnostic(all_codes.EMPTY, message, root, "", "write them after the fence")
    rest = [name for name in missing if name not in ("name", "model", "permissions")]
    if rest:
        yield Diagnostic(all_codes.UNSIGNABLE, f"signing requires {', '.join(rest)}", root)
    yield from _inputs(directive)


def _unacknowledged(directive: Directive) -> Iterator[Diagnostic]:
    """Report unrestricted permissions that the author has not acknowledged.

    The risk table of the project may raise other capabilities to this tier: that is known only when the directive runs.
    """
    permissions = directive.permissions
    if permissions is None or any(acknowledge.risk == "unrestricted" for acknowledge in permissions.acknowledged):
        return
    everything = next((grant for grant in permissions.grants if grant.capability == EVERYTHING), None)
    if everything is not None:
        message = "the permissions cover everything, and that is not acknowledged: it does not start"
        help = 'if it is meant, write <acknowledge risk="unrestricted">why</acknowledge> into <permissions>'
        yield Diagnostic(all_codes.UNACKNOWLEDGED, message, everything.span, "", help)


def _unknown_paths(tests: Iterable[Test]) -> Iterator[Diagnostic]:
    """Report conditions of hooks on values that no event has."""
    for test in tests:
        if isinstance(test, Combined):
            yield from _unknown_paths(test.parts)
        elif test.path:
            head, _, member = test.path.partition(".")
            members = HOOK_VALUES.get(head)
            if head not in HOOK_VALUES or (members and member and member not in members):
                names = HOOK_VALUES if head not in HOOK_VALUES else [f"{head}.{member}" for member in members or ()]
                message = f"the path {shown(test.path)} never has a value"
                help = did_you_mean(nearest(test.path, names), f"known: {', '.join(names)}")
                yield Diagnostic(all_codes.HOOK_WORD, message, test.span, "", help)


def _inputs(directive: Directive) -> Iterator[Diagnostic]:
    declared = {parameter.name: parameter for parameter in directive.inputs if parameter.name}
    used: set[str] = set()
    suggestions = Suggestions()
    for reference, span in _references(directive):
        used.add(reference.name)
        if reference.name not in declared and not reference.optional:
            close = suggestions.nearest(reference.name, declared)
            help = did_you_mean(close, "declare it in <inputs>, or give it a default")
            written = Span(span.start + len("{input:"), span.start + len("{input:") + len(reference.name))
            message = f"no input is called {shown(reference.name)}"
            fix = name_fix(reference.name, declared, written) if close else None
            yield Diagnostic(all_codes.UNKNOWN_INPUT, message, span, "", help, fix)
    words: set[str] | None = None
    for name, parameter in declared.items():
        # A reference to it is reported where it stands.
        if not can_be_inserted(name) and name not in {match[3] for match, _ in _foreign(directive)}:
            help = "use letters, digits and _ for its name"
            message = f"{{input:{shown(name)}}} is not replaced by its value"
            yield Diagnostic(all_codes.INPUT_NAME, message, parameter.span, "", help)
        if name in used:
            continue
        if words is None:
            words = _words(directive)
        if name not in words:
            message, help = f"the input {shown(name)} is never used", _USE.format(name)
            yield Diagnostic(all_codes.UNUSED_INPUT, message, parameter.span, "", help)


def foreign(directive: Directive, source: Source) -> Iterator[Diagnostic]:
    """Report references to declared inputs in the syntax of other formats, or with a name that no reference can
    hold."""
    declared = {parameter.name: parameter for parameter in directive.inputs if parameter.name}
    for match, base in _foreign(directive) if declared else ():
        name = match[1] or match[2] or match[3]
        if name not in declared or (match[3] and can_be_inserted(name)):
            continue
        new = name.replace("-", "_")
        span, meant = Span(base + match.start(), base + match.end()), f"{{input:{new}}}"
        fix, place = replacing(span, match[0], meant), declared[name].span
        if new not in declared and (at := source.text.find(f'"{name}"', place.start, place.end) + 1):
            fix = replace(fix, edits=(*fix.edits, Edit(Span(at, at + len(name)), name, new)), safe=False)
        message = f"{shown(match[0])} is not how a directive refers to an input: it is sent to the model literally"
        yield Diagnostic(all_codes.FOREIGN, message, span, "", f"write {meant}", fix)


def _foreign(directive: Directive) -> Iterator[tuple[re.Match[str], int]]:
    """Yield the braces outside of code, and where the line of each begins."""
    for text, at in _instructions(directive):
        fenced = False
        for line in text.split("\n") if "{" in text else ():
            if line.lstrip().startswith(("```", "~~~")):
                fenced = not fenced
            elif not fenced:
                yield from ((match, at) for match in _FOREIGN.finditer(line))
            at += len(line) + 1


def _instructions(directive: Directive) -> list[tuple[str, int]]:
    """Return the texts for the model, and where each begins."""
    texts = [(directive.body, directive.body_span.start)]
    return texts + [(section.raw, section.span.start) for section in directive.sections]


def _references(directive: Directive) -> Iterator[tuple[InputReference, Span]]:
    for text, base in _instructions(directive):
        for reference in references(text):
            yield reference, Span(base + reference.span.start, base + reference.span.end)
    for hook in directive.hooks:
        for action in hook.actions:
            for _, value in (*action.attributes, *action.parameters):
                # `${inputs.x}` may have no value there: then it is empty.
                yield from ((read, action.span) for read in references(value) if value[read.span.start] == "{")
    for text, span in ((directive.success, directive.success_span), (directive.failure, directive.failure_span)):
        for reference in references(text):
            yield reference, span


def _words(directive: Directive) -> set[str]:
    """Return all words of the instructions.

    An input that is only mentioned is used as well: the model knows its value.
    """
    texts = [directive.body, *(section.raw for section in directive.sections)]
    texts += [value for hook in directive.hooks for action in hook.actions for _, value in action.parameters]
    return {word for text in texts for word in _SPLIT.split(text)}


_USE = "put {{input:{}}} where it goes, or leave it out"


When: TypeAlias = Literal["start", "return", "event"]
"""When an item is needed: before the thread starts, when its outputs are judged, or at another event."""

_SIGNING = {
    "form": all_codes.NAME_FORM,
    "place": all_codes.MISPLACED,
    "version": all_codes.VERSION_FORM,
    "parallel": all_codes.PARALLEL,
}
_POINTED = 8
_LOOKED = 200
"""Maximum number of items that are looked up: each takes time, and a hostile file names thousands."""


def check_signing(directive: Directive, place: PurePath | None) -> Iterator[Diagnostic]:
    """Report the problems that signing refuses besides missing fields; without a place only those independent of it."""
    parallel = parallel_problem(directive)
    for problem in (*identity_problems(directive, place), *([parallel] if parallel else ())):
        yield Diagnostic(_SIGNING[problem.kind], problem.message, problem.span, "", problem.help)


def check_items(
    directive: Directive, source: Source, resolver: DocumentResolver, place: PurePath
) -> Iterator[Diagnostic]:
    """Check the items that a directive refers to, and the circles that its calls lead into."""
    yield from _Items(directive, resolver, place).all()
    calls = documents_called(directive)
    spans = dict(reversed(calls))
    for circle in resolver.circles(source, list(dict.fromkeys(target for target, _ in calls))) if calls else ():
        help = "the call that closes it would fail; leave one of them out"
        yield Diagnostic(all_codes.CIRCLE, str(circle), spans[circle.call], "", help)


class _Items:
    """Checks the chain of parents, and the knowledge that goes into the prompt."""

    def __init__(self, directive: Directive, resolver: DocumentResolver, place: PurePath) -> None:
        self._directive = directive
        self._resolver = resolver
        self._place = place
        self._suggestions = Suggestions()
        self._suppressed: set[str] = set()
        self._layers = set(layers(directive))
        self._whole_chain = True

    def all(self) -> Iterator[Diagnostic]:
        directive = self._directive
        context = directive.context.items if directive.context else ()
        self._suppressed.update(item.text for position, item in context if position == "suppress")
        if directive.extends:
            yield from self._parents(directive.extends)
        problems: dict[tuple[str, When], tuple[Code, str, str] | None] = {}
        for item, when in self._needed():
            key = item.text, when
            if key not in problems and len(problems) < _LOOKED:
                problems[key] = self._knowledge(item.text, when)
            if problem := problems.get(key):
                code, message, help = problem
                yield Diagnostic(code, message, item.span, "", help)
        yield from self._hook_directives()
        if self._whole_chain:
            yield from self._suppressing(context)

    def _suppressing(self, context: Sequence[tuple[str, Text]]) -> Iterator[Diagnostic]:
        texts = [item for position, item in context if position == "suppress" and item.text not in self._layers]
        present = {*self._layers, *self._resolver.project_layers()} if texts else ()
        for item in texts:
            if item.text not in present:
                close = self._suggestions.nearest(item.text, present)
                help = did_you_mean(close, f"there are: {', '.join(sorted(present)[:_POINTED]) or 'none'}")
                message = f"nothing brings the layer {shown(item.text)}, so nothing is suppressed"
                yield Diagnostic(all_codes.SUPPRESSES_NOTHING, message, item.span, "", help)

    def _hook_directives(self) -> Iterator[Diagnostic]:
        """Check the directives that hooks run.

        If one judges the outputs and cannot be used, the thread cannot start.
        """
        problems: dict[str, tuple[str, str] | None] = {}
        for hook in self._directive.hooks:
            code = all_codes.CHECKER if _when(hook.event) == "return" else all_codes.HOOK_TARGET
            for action in hook.actions:
                item_id = action.attribute("item_id")
                is_directive = action.primary == "execute" and action.attribute("item_type") == "directive"
                if not is_directive or not is_static(item_id):
                    continue
                if item_id not in problems and len(problems) < _LOOKED:
                    problems[item_id] = self._hook_directive(item_id)
                if problem := problems.get(item_id):
                    yield Diagnostic(code, problem[0], action.span, "", problem[1])

    def _hook_directive(self, item_id: str) -> tuple[str, str] | None:
        try:
            if self._resolver.directive(item_id) is None:
                help = self._hint("directives", item_id, self._resolver.ids("directive"))
                return f"unknown directive {shown(item_id)}", help
            problem = self._resolver.distrust(item_id)
        except BadConfiguration:
            raise
        except QuireError as error:
            return str(error), _MEND
        return (problem, "look at it, then sign it again") if problem else None

    def _parents(self, extends: Text) -> Iterator[Diagnostic]:
        chain = [self._place.with_suffix("").as_posix()]
        parent_id = extends.text
        while parent_id:
            try:
                parent = self._resolver.directive(parent_id)
            except BadConfiguration:
                raise  # not a problem of this file
            except QuireError as error:
                yield Diagnostic(all_codes.PARENT, str(error), extends.span, "", _MEND)
                self._whole_chain = False
                return
            if parent is None:
                self._whole_chain = False
                through = f", which {chain[-1]} extends" if len(chain) > 1 else ""
                message = f"unknown directive {shown(parent_id)}{through}"
                others = [item_id for item_id in self._resolver.ids("directive") if item_id not in chain]
                help = self._hint("directives", parent_id, others)
                yield Diagnostic(all_codes.PARENT, message, extends.span, "", help)
                return
            if parent.id in chain:
                circle = [*chain[chain.index(parent.id) :], parent.id]
                way = circle if len(circle) <= _POINTED else [*circle[: _POINTED - 1], "…", parent.id]
                message = f"extends goes round in a circle: {' → '.join(way)}"
                help = "let one of them extend none of these"
                yield Diagnostic(all_codes.EXTENDS_CIRCLE, message, extends.span, "", help)
                return
            self._suppressed.update(parent.suppress)
            self._layers.update(parent.layers)
            chain.append(parent.id)
            parent_id = parent.extends

    def _needed(self) -> Iterator[tuple[Text, When]]:
        """Yield the ids that are known before the thread starts, and when they are needed."""
        directive = self._directive
        items = directive.context.items if directive.context else ()
        named: list[tuple[Text, When]] = [(item, "start") for position, item in items if position != "suppress"]
        for hook in directive.hooks:
            if hook.id not in self._suppressed:
                named += [
                    (Text(action.attribute("item_id"), action.span), _when(hook.event))
                    for action in hook.actions
                    if action.attribute("item_type") == "knowledge" and action.primary in ("execute", "fetch")
                ]
        for item, when in named:
            if is_static(item.text) and item.text not in self._suppressed:
                yield item, when

    def _knowledge(self, item_id: str, when: When) -> tuple[Code, str, str] | None:
        """Return the finding about an item.

        A hook that cannot load it does not stop the thread, unless it judges the outputs.
        """
        missing: Code = all_codes.CHECKER if when == "return" else all_codes.UNKNOWN_KNOWLEDGE
        try:
            if self._resolver.has_knowledge(item_id):
                return None
        except BadConfiguration:
            raise
        except QuireError as error:
            return all_codes.KNOWLEDGE if when == "start" else missing, str(error), _MEND
        message = f"unknown knowledge {shown(item_id)}: it is not in the project folder, the user folder or built in"
        return missing, message, self._hint("knowledge", item_id, self._resolver.ids("knowledge"))

    def _hint(self, folder: str, name: str, known: Collection[str]) -> str:
        close = self._suggestions.nearest(name, known)
        return did_you_mean(close, f"it would be at .ai/{folder}/{shown(name)}.md")


def layers(directive: Directive) -> Iterator[str]:
    """Yield the ids that `<suppress>` can name: those of the layers that a directive adds to prompts."""
    for position, item in directive.context.items if directive.context else ():
        if position != "suppress":
            yield item.text
    for hook in directive.hooks:
        if adds_context(hook.event):
            yield from (
                action.attribute("item_id") for action in hook.actions if action.attribute("item_type") == "knowledge"
            )
            yield hook.id


def _when(event: str) -> When:
    if adds_context(event):
        return "start"
    return "return" if judges(event) else "event"


_MEND = "correct the id, or the file that it means"
