"""Check a directive against its place and the files around it: parents, knowledge, and circles of calls.

Trust is not checked here, except that the
directives a hook runs must have a valid signature if they have one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, TypeAlias

from quire.diagnostics import Code, Diagnostic
from quire.errors import BadConfiguration, QuireError
from quire.formats.directive.codes import errors, lints, warnings
from quire.formats.directive.findings import shown
from quire.formats.directive.item_references import documents_called
from quire.formats.directive.syntax import Directive, Text
from quire.formats.directive.validate import identity_problems, parallel_problem
from quire.plan.templates import is_static
from quire.plan.vocabulary import adds_context, judges
from quire.wording import Suggestions, did_you_mean

if TYPE_CHECKING:
    from quire.formats.resolver import DocumentResolver
    from quire.source import Source

When: TypeAlias = Literal["start", "return", "event"]
"""When an item is needed: before the thread starts, when its outputs are judged, or at another event."""

_SIGNING = {
    "form": lints.NAME_FORM,
    "place": lints.MISPLACED,
    "version": lints.VERSION_FORM,
    "parallel": lints.PARALLEL,
}
_POINTED = 8
_LOOKED = 200
"""Maximum number of items that are looked up: each takes time, and a hostile file names thousands."""


def check_signing(directive: Directive, place: PurePath | None) -> Iterator[Diagnostic]:
    """Report what signing refuses besides missing fields; without a place only problems that do not depend on it."""
    found = [*identity_problems(directive, place)]
    if parallel := parallel_problem(directive):
        found.append(parallel)
    for one in found:
        yield Diagnostic(_SIGNING[one.kind], one.message, one.span, "", one.help)


def check_items(
    directive: Directive, source: Source, resolver: DocumentResolver, place: PurePath
) -> Iterator[Diagnostic]:
    """Check the items that a directive refers to, and the circles that its calls lead into."""
    yield from _Items(directive, resolver, place).all()
    calls = documents_called(directive)
    spans = dict(reversed(calls))
    for circle in resolver.circles(source, list(dict.fromkeys(wanted for wanted, _ in calls))) if calls else ():
        help = "the call that closes it would fail; leave one of them out"
        yield Diagnostic(warnings.CIRCLE, str(circle), spans[circle.call], "", help)


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
        told: dict[tuple[str, When], tuple[Code, str, str] | None] = {}
        for item, when in self._wanted():
            key = item.text, when
            if key not in told and len(told) < _LOOKED:
                told[key] = self._knowledge(item.text, when)
            if found := told.get(key):
                code, message, help = found
                yield Diagnostic(code, message, item.span, "", help)
        yield from self._hook_directives()
        if self._whole_chain:
            yield from self._suppressing(context)

    def _suppressing(self, context: Sequence[tuple[str, Text]]) -> Iterator[Diagnostic]:
        wanted = [item for position, item in context if position == "suppress" and item.text not in self._layers]
        known = {*self._layers, *self._resolver.project_layers()} if wanted else ()
        for item in wanted:
            if item.text not in known:
                close = self._suggestions.nearest(item.text, known)
                help = did_you_mean(close, f"there are: {', '.join(sorted(known)[:_POINTED]) or 'none'}")
                message = f"nothing brings the layer {shown(item.text)}, so nothing is suppressed"
                yield Diagnostic(warnings.SUPPRESSES_NOTHING, message, item.span, "", help)

    def _hook_directives(self) -> Iterator[Diagnostic]:
        """Check the directives that hooks run.

        If one judges the outputs and cannot be used, the thread cannot start.
        """
        told: dict[str, tuple[str, str] | None] = {}
        for hook in self._directive.hooks:
            code = errors.CHECKER if _when(hook.event) == "return" else warnings.HOOK_TARGET
            for action in hook.actions:
                wanted = action.attribute("item_id")
                if action.primary != "execute" or action.attribute("item_type") != "directive" or not is_static(wanted):
                    continue
                if wanted not in told and len(told) < _LOOKED:
                    told[wanted] = self._hook_directive(wanted)
                if found := told.get(wanted):
                    yield Diagnostic(code, found[0], action.span, "", found[1])

    def _hook_directive(self, item_id: str) -> tuple[str, str] | None:
        try:
            if self._resolver.directive(item_id) is None:
                known = self._resolver.ids("directive")
                return f"there is no directive {shown(item_id)}", self._hint("directives", item_id, known)
            problem = self._resolver.distrust(item_id)
        except BadConfiguration:
            raise
        except QuireError as error:
            return str(error), _MEND
        return (problem, "look at it, then sign it again") if problem else None

    def _parents(self, extends: Text) -> Iterator[Diagnostic]:
        own = self._place.with_suffix("").as_posix()
        chain = [own]
        wanted = extends.text
        while wanted:
            try:
                parent = self._resolver.directive(wanted)
            except BadConfiguration:
                raise  # not a problem of this file
            except QuireError as error:
                yield Diagnostic(errors.PARENT, str(error), extends.span, "", _MEND)
                self._whole_chain = False
                return
            if parent is None:
                self._whole_chain = False
                through = f", which {chain[-1]} extends" if len(chain) > 1 else ""
                message = f"there is no directive {shown(wanted)}{through}"
                known = [one for one in self._resolver.ids("directive") if one not in chain]
                yield Diagnostic(errors.PARENT, message, extends.span, "", self._hint("directives", wanted, known))
                return
            if parent.id in chain:
                circle = [*chain[chain.index(parent.id) :], parent.id]
                way = circle if len(circle) <= _POINTED else [*circle[: _POINTED - 1], "…", parent.id]
                message = f"extends goes round in a circle: {' → '.join(way)}"
                yield Diagnostic(
                    errors.EXTENDS_CIRCLE, message, extends.span, "", "let one of them extend none of these"
                )
                return
            self._suppressed.update(parent.suppress)
            self._layers.update(parent.layers)
            chain.append(parent.id)
            wanted = parent.extends

    def _wanted(self) -> Iterator[tuple[Text, When]]:
        """Yield the ids that are known before the thread starts, and when they are needed."""
        directive = self._directive
        items = directive.context.items if directive.context else ()
        named: list[tuple[Text, When]] = [(item, "start") for position, item in items if position != "suppress"]
        for hook in directive.hooks:
            if hook.id not in self._suppressed:
                named += [
                    (Text(one.attribute("item_id"), one.span), _when(hook.event))
                    for one in hook.actions
                    if one.attribute("item_type") == "knowledge" and one.primary in ("execute", "fetch")
                ]
        for item, when in named:
            if is_static(item.text) and item.text not in self._suppressed:
                yield item, when

    def _knowledge(self, item_id: str, when: When) -> tuple[Code, str, str] | None:
        """Return the finding about an item.

        A hook that cannot load it does not stop the thread, unless it judges the outputs.
        """
        missing: Code = errors.CHECKER if when == "return" else warnings.UNKNOWN_KNOWLEDGE
        try:
            if self._resolver.has_knowledge(item_id):
                return None
        except BadConfiguration:
            raise
        except QuireError as error:
            return errors.KNOWLEDGE if when == "start" else missing, str(error), _MEND
        message = f"there is no knowledge {shown(item_id)} in any space"
        return missing, message, self._hint("knowledge", item_id, self._resolver.ids("knowledge"))

    def _hint(self, folder: str, name: str, known: Collection[str]) -> str:
        close = self._suggestions.nearest(name, known)
        return did_you_mean(close, f"spaces have it at .ai/{folder}/{shown(name)}.md")


def layers(directive: Directive) -> Iterator[str]:
    """Yield the ids that `<suppress>` can name: those of the layers that a directive adds to prompts."""
    for position, item in directive.context.items if directive.context else ():
        if position != "suppress":
            yield item.text
    for hook in directive.hooks:
        if adds_context(hook.event):
            yield from (one.attribute("item_id") for one in hook.actions if one.attribute("item_type") == "knowledge")
            yield hook.id


def _when(event: str) -> When:
    if adds_context(event):
        return "start"
    return "return" if judges(event) else "event"


_MEND = "correct the id, or the file that it means"
