"""What is known of a directive only from its place and the files around it: parents, knowledge, where calls lead.

Whoever knows the workspace makes the `Surroundings`; signatures and trust are not looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from msgspec import Struct

from quire.diagnostics import Code, Diagnostic
from quire.errors import BadConfiguration, QuireError
from quire.formats.directive.codes import errors, lints, warnings
from quire.formats.directive.findings import Suggestions, shown
from quire.formats.directive.item_references import documents_called
from quire.formats.directive.syntax import Directive, Text
from quire.formats.directive.validate import identity_problems, parallel_problem
from quire.formats.resolver import Reach, Wanted
from quire.plan.vocabulary import GATE, adds_context

if TYPE_CHECKING:
    from quire.source import Span

Kind: TypeAlias = Literal["directive", "knowledge"]
When: TypeAlias = Literal["start", "return", "event"]
"""Before the thread starts, when its outputs are judged, or at another event."""

_SIGNING = {
    "form": lints.NAME_FORM,
    "place": lints.MISPLACED,
    "version": lints.VERSION_FORM,
    "parallel": lints.PARALLEL,
}
_POINTED = 8
_LOOKED = 200
"""So many items are looked for: each takes time, and a hostile file names thousands."""


class Parent(Struct, frozen=True):
    """A directive that another one extends: its own id, what it extends itself, what it keeps out of prompts, and the
    layers that it brings: ids of knowledge items, and of hooks that bring some."""

    id: str
    extends: str
    suppress: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()


class Surroundings(Reach, Protocol):
    """The items of all spaces as a directive sees them from its place."""

    @property
    def place(self) -> PurePath:
        """Of the file, below `.ai/directives`."""
        ...

    def parent(self, item_id: str) -> Parent | None:
        """None for one that is in no space; raises `QuireError` for one that is there and cannot be used."""
        ...

    def has_knowledge(self, item_id: str) -> bool:
        """Raises `QuireError` for an item that is there and cannot be used."""
        ...

    def ids(self, kind: Kind) -> Collection[str]:
        """All that there are, for suggestions."""
        ...

    def project_layers(self) -> Collection[str]:
        """The layers that the project's own hooks bring."""
        ...

    def distrust(self, item_id: str) -> str:
        """What is wrong with the signature of a directive; empty where there is none yet, or where it holds."""
        ...


def check_signing(directive: Directive, place: PurePath | None) -> Iterator[Diagnostic]:
    """What signing refuses beside missing fields; without a place only what is wrong in every place."""
    found = [*identity_problems(directive, place)]
    if parallel := parallel_problem(directive):
        found.append(parallel)
    for one in found:
        yield Diagnostic(_SIGNING[one.kind], one.message, one.span, "", one.help)


def check_surroundings(directive: Directive, around: Surroundings) -> Iterator[Diagnostic]:
    yield from _Items(directive, around).all()
    calls = documents_called(directive)
    if calls:
        yield from _circles(calls, around)


def _circles(calls: Sequence[tuple[Wanted, Span]], around: Surroundings) -> Iterator[Diagnostic]:
    spans = dict(reversed(calls))
    for circle in around.circles("", list(dict.fromkeys(wanted for wanted, _ in calls))):
        help = "the call that closes it would fail; leave one of them out"
        yield Diagnostic(warnings.CIRCLE, str(circle), spans[circle.call], "", help)


class _Items:
    """The chain of parents, and the knowledge that goes into the prompt."""

    def __init__(self, directive: Directive, around: Surroundings) -> None:
        self._directive = directive
        self._around = around
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
        known = {*self._layers, *self._around.project_layers()} if wanted else ()
        for item in wanted:
            if item.text not in known:
                close = self._suggestions.meant(item.text, known)
                help = (
                    f"did you mean {close}?" if close else f"there are: {', '.join(sorted(known)[:_POINTED]) or 'none'}"
                )
                message = f"nothing brings the layer {shown(item.text)}, so nothing is suppressed"
                yield Diagnostic(warnings.SUPPRESSES_NOTHING, message, item.span, "", help)

    def _hook_directives(self) -> Iterator[Diagnostic]:
        """Directives that hooks run. One that judges the outputs and cannot keeps the thread from starting."""
        told: dict[str, tuple[str, str] | None] = {}
        for hook in self._directive.hooks:
            code = errors.CHECKER if _when(hook.event) == "return" else warnings.HOOK_TARGET
            for action in hook.actions:
                wanted = action.attribute("item_id")
                if (
                    action.primary != "execute"
                    or action.attribute("item_type") != "directive"
                    or not _is_static(wanted)
                ):
                    continue
                if wanted not in told and len(told) < _LOOKED:
                    told[wanted] = self._hook_directive(wanted)
                if found := told.get(wanted):
                    yield Diagnostic(code, found[0], action.span, "", found[1])

    def _hook_directive(self, item_id: str) -> tuple[str, str] | None:
        try:
            if self._around.parent(item_id) is None:
                known = self._around.ids("directive")
                return f"there is no directive {shown(item_id)}", self._hint("directives", item_id, known)
            problem = self._around.distrust(item_id)
        except BadConfiguration:
            raise
        except QuireError as error:
            return str(error), _MEND
        return (problem, "look at it, then sign it again") if problem else None

    def _parents(self, extends: Text) -> Iterator[Diagnostic]:
        own = self._around.place.with_suffix("").as_posix()
        chain = [own]
        wanted = extends.text
        while wanted:
            try:
                parent = self._around.parent(wanted)
            except BadConfiguration:
                raise  # not a matter of this file
            except QuireError as error:
                yield Diagnostic(errors.PARENT, str(error), extends.span, "", _MEND)
                self._whole_chain = False
                return
            if parent is None:
                self._whole_chain = False
                through = f", which {chain[-1]} extends" if len(chain) > 1 else ""
                message = f"there is no directive {shown(wanted)}{through}"
                known = [one for one in self._around.ids("directive") if one not in chain]
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
        """The ids that are known before the thread starts, and when they are looked for."""
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
            if _is_static(item.text) and item.text not in self._suppressed:
                yield item, when

    def _knowledge(self, item_id: str, when: When) -> tuple[Code, str, str] | None:
        """What is to be said about an item. A hook that cannot have it ends nothing, unless it judges the outputs."""
        missing: Code = errors.CHECKER if when == "return" else warnings.UNKNOWN_KNOWLEDGE
        try:
            if self._around.has_knowledge(item_id):
                return None
        except BadConfiguration:
            raise
        except QuireError as error:
            return errors.KNOWLEDGE if when == "start" else missing, str(error), _MEND
        message = f"there is no knowledge {shown(item_id)} in any space"
        return missing, message, self._hint("knowledge", item_id, self._around.ids("knowledge"))

    def _hint(self, folder: str, name: str, known: Collection[str]) -> str:
        close = self._suggestions.meant(name, known)
        return f"did you mean {close}?" if close else f"spaces have it at .ai/{folder}/{shown(name)}.md"


def layers(directive: Directive) -> Iterator[str]:
    """The ids that `<suppress>` can name of what a directive brings into prompts."""
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
    return "return" if event == GATE else "event"


def _is_static(item_id: str) -> bool:
    """Whether an id is known before the thread starts: nothing in it is filled in."""
    return bool(item_id) and "${" not in item_id and "{input:" not in item_id


_MEND = "correct the id, or the file that it means"
