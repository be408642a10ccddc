"""Survey a directive as it would start, for commands that only look: nothing is refused, asked, started or written.

Signatures are verified as for a run, but always in `warn` mode: items that would be refused are shown with their
verdict. Required inputs without a value are replaced by their name in brackets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.interpreter.thread.budgets import Limits, resolve_limits
from quire.engine.interpreter.thread.compose import Bundle, BundleResolver, Composed, compose, read_chain
from quire.engine.interpreter.thread.hooks import is_composed
from quire.library.directives import BundleBuilder
from quire.library.verify import VerifiedItems
from quire.models.choose import MODEL_BY_KEY, Choice
from quire.models.downloads import preferred_model
from quire.models.tiers import thread_model
from quire.plan.vocabulary import POSITIONS
from quire.source import Source
from quire.trust.risk import Tier, project_risk, tier_of
from quire.trust.signatures import Verification
from quire.workspace.consent import HOOKS

if TYPE_CHECKING:
    from quire.library.document import Document
    from quire.library.items import Item, ItemType
    from quire.library.library import Library
    from quire.plan.thread import Hook, Thread
    from quire.values import Value
    from quire.workspace.settings import Settings

_LATER = "?"


class File(Struct, frozen=True):
    """An item that the directive is composed from. `space` is empty for a missing one."""

    id: str
    type: str
    space: str = ""
    path: str = ""
    verdict: str = "missing"
    message: str = ""


class ContextText(Struct, frozen=True):
    """A text of the context."""

    position: str
    """The place of the text in the context."""
    item_id: str
    who: str
    """The directive or hook that adds it."""
    suppressed: str = ""
    """The directive that leaves it out."""


class Capability(Struct, frozen=True):
    """A permission of the directive. `tier` is None if no risk is known; `acknowledged` is false if an acknowledgement
    is missing."""

    capability: str
    origin_id: str
    path: str
    line: int
    tier: Tier | None
    acknowledged: bool


class HookSource(Struct, frozen=True):
    """A hook and the place where it is declared."""

    hook: Hook
    path: str
    line: int


class DirectiveSurvey(Struct, frozen=True):
    """Everything that is known about a directive before it starts. `chain` is from the leaf to the root; `files` are
    all verified files, the chain first."""

    thread: Thread
    item_id: str
    composed: Composed
    limits: Limits
    model: Choice
    chain: tuple[File, ...]
    files: tuple[File, ...]
    context: tuple[ContextText, ...]
    capabilities: tuple[Capability, ...]
    hooks: tuple[HookSource, ...]
    missing: tuple[str, ...]
    risk_problem: str


def survey(
    library: Library, environ: Mapping[str, str], document: Document, inputs: Mapping[str, Value]
) -> DirectiveSurvey:
    """Survey a directive. Raises `CannotStart` for one that cannot be composed: a circular chain, wrong inputs, a
    missing item."""
    settings = library.settings
    items = replace(VerifiedItems.of(settings), mode="warn")
    bundle = BundleBuilder(settings, items, environ, model=False).gathered(library.directive_at(document.name))
    return _Looking(settings, environ, items, bundle, inputs).survey()


class _Looking:
    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        items: VerifiedItems,
        bundle: Bundle,
        inputs: Mapping[str, Value],
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._items = items
        self._bundle = bundle
        self._inputs = inputs
        self._items_read: dict[tuple[str, str], Item | None] = {}
        self._chain = read_chain(bundle.item_id, BundleResolver(bundle))
        self._suppressed = {name: item_id for item_id, thread in self._chain for name in thread.context.suppress}
        """Ids of items and hooks, with the directive that leaves each out."""

    def survey(self) -> DirectiveSurvey:
        bundle, chain = self._bundle, self._chain
        resolver = _StandIns(bundle, self._inputs)
        composed = compose(bundle.item_id, resolver, self._inputs, bundle.project_hooks())
        context = tuple(self._context())
        ancestors = tuple(self._file("directive", item_id) for item_id, _ in chain)
        knowledge = dict.fromkeys(layer.item_id for layer in context if not layer.suppressed)
        return DirectiveSurvey(
            thread=chain[0][1],
            item_id=bundle.item_id,
            composed=replace(composed, warnings=(*bundle.warnings, *composed.warnings)),
            limits=resolve_limits(composed.limits_declared, {}, None),
            model=model_here(chain[0][1].model, self._settings, self._environ),
            chain=ancestors,
            files=(*ancestors, *(self._file("knowledge", item_id) for item_id in knowledge)),
            context=context,
            capabilities=tuple(self._capabilities(composed)),
            hooks=tuple(self._hooks()),
            missing=resolver.missing,
            risk_problem=project_risk(self._settings.workspace.folder).problem,
        )

    def _item(self, item_type: ItemType, item_id: str) -> Item | None:
        key = (item_type, item_id)
        if key not in self._items_read:
            self._items_read[key] = self._items.spaces.find(item_type, item_id) if item_id else None
        return self._items_read[key]

    def _file(self, item_type: ItemType, item_id: str) -> File:
        item = self._item(item_type, item_id)
        if item is None:
            return File(item_id, item_type)
        verdict = self._items.verdict(item)
        word = "signed" if verdict.outcome is Verification.OK else verdict.outcome.value
        if item.space == "system" and verdict.ok:
            word = "built in"
        return File(item.id, item_type, item.space, str(item.path), word, verdict.message)

    def _place(self, item_id: str, at: int) -> tuple[str, int]:
        item = self._item("directive", item_id)
        line = Source.of(self._bundle.directives.get(item_id, ""), "").position(at).line
        return (str(item.path) if item else item_id), line

    def _context(self) -> Iterator[ContextText]:
        """Yield the texts in the order of composing: texts from hooks are outside those that the chain declares, each
        text once."""
        declared = [
            ContextText(position, knowledge, item_id)
            for item_id, thread in reversed(self._chain)
            for position in POSITIONS
            for knowledge in getattr(thread.context, position)
        ]
        brought = list(self._brought())
        for position in POSITIONS:
            layers = [*declared, *brought] if position == "after" else [*brought, *declared]
            shown: set[str] = set()
            for layer in layers:
                if layer.position == position and layer.item_id not in shown:
                    shown.add(layer.item_id)
                    yield replace(layer, suppressed=layer.suppressed or self._suppressed.get(layer.item_id, ""))

    def _brought(self) -> Iterator[ContextText]:
        for placed in self._hooks():
            hook = placed.hook
            position = hook.position if hook.position in POSITIONS else "before"
            if hook.event == "build_system_prompt":
                position = "system"
            for action in hook.actions:
                if is_composed(hook, action):
                    who = f"hook {hook.id or hook.event} at {placed.path}:{placed.line}"
                    yield ContextText(position, action.item_id, who, self._suppressed.get(hook.id, ""))

    def _hooks(self) -> Iterator[HookSource]:
        for item_id, thread in reversed(self._chain):
            for hook in thread.hooks:
                yield HookSource(hook, *self._place(item_id, hook.span.start))
        source = Source.of(self._bundle.hooks, HOOKS)
        for hook in self._bundle.project_hooks():
            yield HookSource(hook, source.name, source.position(hook.span.start).line)

    def _capabilities(self, composed: Composed) -> Iterator[Capability]:
        project = project_risk(self._settings.workspace.folder)
        acknowledged = {acknowledgement.risk for acknowledgement in composed.acknowledged}
        for capability in composed.capabilities:
            tier = tier_of(capability.capability, project)
            fine = tier not in (Tier.ELEVATED, Tier.UNRESTRICTED) or tier.value in acknowledged
            path, line = self._place(capability.origin_id, capability.span.start)
            yield Capability(capability.capability, capability.origin_id, path, line, tier, fine)


def model_here(attributes: Mapping[str, str], settings: Settings, environ: Mapping[str, str]) -> Choice:
    """Return the model that `<model>` with these attributes would be. Ollama is not looked for, because that would open
    a connection."""
    models = settings.models
    if models.default is None and not any(environ.get(name) for name in MODEL_BY_KEY):
        models = replace(models, default=_LATER)
    choice = thread_model(attributes, models, environ)
    if choice.spec != _LATER:
        return choice
    pulled = preferred_model(environ)
    here = f"the embedded model {pulled.name}" if pulled else "no model, until one is named or fetched"
    return Choice("", f"a local Ollama if one answers, else {here}")


class _StandIns(BundleResolver):
    """Replaces missing required inputs of the leaf by a text, for any type."""

    def __init__(self, bundle: Bundle, inputs: Mapping[str, Value]) -> None:
        super().__init__(bundle)
        self.missing: tuple[str, ...] = ()
        self._leaf = bundle.item_id
        self._inputs = inputs

    def directive(self, item_id: str) -> Thread | None:
        thread = super().directive(item_id)
        if thread is None or item_id != self._leaf:
            return thread
        names = (parameter.name for parameter in thread.inputs if parameter.is_needed)
        self.missing = tuple(name for name in names if self._inputs.get(name) is None)
        inputs = (
            replace(each, type="any", default=f"[{each.name}]") if each.name in self.missing else each
            for each in thread.inputs
        )
        return replace(thread, inputs=tuple(inputs))
