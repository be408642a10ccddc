"""Prepare directives to run: gather and verify everything they are composed from, compose them, and check permissions
and risks.

A directive is composed from itself, its ancestors, and the knowledge that they name. The items that its hooks name are
looked up and verified as well. A hook that cannot act is a warning; at `directive_return`, where hooks judge the
outputs, a missing or untrusted item prevents the start, since no output could pass. An unsigned item that only a hook
names does not make the directive itself count as unsigned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.interpreter.thread.compose import Bundle
from quire.engine.interpreter.thread.hooks import is_composed, loses_a_gate
from quire.engine.interpreter.thread.setup import Setup, check_risk, set_up
from quire.errors import BadConfiguration, CannotStart, QuireError, Refused
from quire.library.directive_preview import read_project_hooks
from quire.library.items import Item, ItemType
from quire.library.verify import VerifiedItems, read_body, read_thread
from quire.models.tiers import thread_model
from quire.plan.templates import is_static
from quire.plan.thread import THREAD_PATH, Hook, Thread
from quire.plan.vocabulary import judges
from quire.source import Source
from quire.trust.capabilities import Grants
from quire.trust.risk import project_risk, require_granted
from quire.trust.signatures import Verification, verify_text
from quire.trust.trusted_keys import TrustedKeys
from quire.workspace.consent import HOOKS, is_trusted, require_model, require_trusted
from quire.workspace.grants import reaching

if TYPE_CHECKING:
    from quire.library.document import Document
    from quire.library.library import Library
    from quire.models.choose import Choice
    from quire.plan.thread import Acknowledgement, HookAction
    from quire.values import Value
    from quire.workspace.settings import Settings


class BundleBuilder:
    """Collects the texts of directives. `keys` are the ids of the keys that signed them; `granted` are the user's
    grants for unsigned ones."""

    def __init__(
        self,
        settings: Settings,
        items: VerifiedItems,
        environ: Mapping[str, str],
        *,
        model: bool,
        granted: Grants | None = None,
    ) -> None:
        self.keys: set[str] = set()
        self._settings = settings
        self._items = items
        self._environ = environ
        self._model = model
        self._granted = granted

    @property
    def unsigned(self) -> bool:
        """True if an item was used that no trusted key has signed."""
        return bool(self._items.warnings)

    def gather(self, item_id: str) -> Bundle | None:
        """Gather a directive; None if it does not exist. Raises the errors of `gathered`."""
        item = self._find("directive", item_id)
        return self.gathered(item) if item else None

    def called(self, item_id: str) -> Bundle | None:
        """Gather a directive that another document runs. Its risks are not checked later, so they are checked here."""
        item = self._find("directive", item_id)
        if item is None:
            return None
        bundle = self.gathered(item)
        chain = list(bundle.threads.values())
        granting = next((thread for thread in chain if thread.grants_itself()), chain[0])
        acknowledged = (*granting.acknowledged, *chain[0].acknowledged)
        place = list(bundle.places.values())[chain.index(granting)]
        capabilities = [permission.capability for permission in granting.permissions]
        return self.with_risks(bundle, bundle.item_id, capabilities, acknowledged, place, self._granted)

    def with_risks(
        self,
        bundle: Bundle,
        item_id: str,
        capabilities: Sequence[str],
        acknowledged: Sequence[Acknowledgement],
        place: str,
        granted: Grants | None,
    ) -> Bundle:
        """Return a bundle with warnings about its risks. Raises what `check_risk` raises, and `Refused` for an unsigned
        directive that asks for more than the user has `granted`; None to only look at it."""
        project = project_risk(self._settings.workspace.folder)
        risks = check_risk(capabilities, acknowledged, project, place)
        if self.unsigned and granted is not None:
            reasons = {acknowledgement.risk: acknowledgement.reason for acknowledgement in acknowledged}
            require_granted(item_id, capabilities, granted, project, reasons)
        return bundle.with_warnings(risks)

    def gathered(self, leaf: Item) -> Bundle:
        """Gather a directive that was read; it is verified like all others. Raises `Refused` for an item that is not
        trusted, `BadDocument` for one that cannot be read."""
        before = len(self._items.warnings)
        directives: dict[str, str] = {}
        places: dict[str, str] = {}
        chain = self._chain(leaf, directives, places)
        hooks, text, problems = self._hooks()
        knowledge = self._knowledge(chain, hooks)
        targets = hook_targets([*(hook for thread in chain for hook in thread.hooks), *hooks], self._items, self._find)
        warnings = (*self._items.warnings[before:], *problems, *targets)
        bundle = Bundle(leaf.id, directives, knowledge, text, "", warnings, places)
        if self._model:
            choice = thread_model(chain[0].model, self._settings.models, self._environ)
            require_model(self._settings, choice.spec)
            bundle = replace(bundle, model=choice.spec, settings=choice.settings.as_value())
        bundle.threads.update(zip(directives, chain, strict=True))
        return bundle

    def _chain(self, leaf: Item, directives: dict[str, str], places: dict[str, str]) -> list[Thread]:
        """Read the directive and its ancestors. A circular or broken chain is reported when it is composed."""
        chain = []
        name, item = leaf.id, leaf
        while True:
            self._require(item)
            directives[name] = item.text
            chain.append(read_thread(item))
            places[name] = self._place(item, chain[-1])
            name = chain[-1].extends.strip()
            parent = self._find("directive", name) if name and name not in directives else None
            if parent is None:
                return chain
            item = parent

    def _require(self, item: Item) -> None:
        """Verify an item, and remember the key that signed it."""
        if key := self._items.require(item).verdict.key_id:
            self.keys.add(key)

    def _place(self, item: Item, read: Thread) -> str:
        """Return the place where the permissions of a directive are written, or would have to be."""
        folder, path = self._settings.workspace.folder.resolve(), item.path.resolve()
        shown = path.relative_to(folder) if path.is_relative_to(folder) else path
        if not read.permissions:
            return shown.as_posix()
        return f"{shown.as_posix()}:{Source.of(item.text, '').position(read.permissions[0].span.start).line}"

    def _knowledge(self, chain: Sequence[Thread], hooks: Iterable[Hook]) -> dict[str, str]:
        suppressed = {item_id for thread in chain for item_id in thread.context.suppress}
        ids: dict[str, None] = {}
        for thread in chain:
            context = thread.context
            ids.update(dict.fromkeys((*context.system, *context.before, *context.after)))
        for hook in (*(hook for thread in chain for hook in thread.hooks), *hooks):
            if hook.id not in suppressed:
                ids.update((action.item_id, None) for action in hook.actions if is_composed(hook, action))
        fixed = [item_id for item_id in ids if item_id and item_id not in suppressed and "${" not in item_id]
        return {item_id: body for item_id in fixed if (body := self.knowledge(item_id)) is not None}

    def knowledge(self, item_id: str) -> str | None:
        """Return the body of one knowledge item. Raises `Refused`."""
        item = self._find("knowledge", item_id)
        if item is None:
            return None
        self._require(item)
        return read_body(item)

    def _find(self, item_type: ItemType, item_id: str) -> Item | None:
        return self._items.spaces.find_file(item_type, item_id, ", and sign it")

    def _hooks(self) -> tuple[tuple[Hook, ...], str, tuple[str, ...]]:
        """Read the hooks of the project. The user has confirmed them with the other requests of the workspace."""
        hooks, text, problems = read_project_hooks(self._settings)
        if problems and loses_a_gate(text, HOOKS):
            listed = "\n".join(f"  {problem}" for problem in problems)
            raise CannotStart(f"a hook that may judge outputs cannot be read, so no outputs could pass it:\n{listed}")
        return hooks, text, problems


class Started(Struct, frozen=True):
    """A directive that is ready to start."""

    setup: Setup
    bundle: Bundle
    source: Source
    """The text of the bundle, as it is pinned."""
    grants: Grants
    keys: tuple[str, ...]
    """The ids of the keys that signed its contents."""

    @property
    def inputs(self) -> Mapping[str, Value]:
        return self.setup.composed.inputs


class Directives:
    """The directives of one workspace."""

    def __init__(self, library: Library, environ: Mapping[str, str]) -> None:
        self._library = library
        self._settings = library.settings
        self._environ = environ

    def model_of(self, thread: Thread) -> Choice:
        """Return the model that the directive requests, as far as it is available here."""
        return thread_model(thread.model, self._settings.models, self._environ)

    def gathering(self, *, one_model: bool, granted: Grants | None = None) -> BundleBuilder:
        """Return a `BundleBuilder`. `granted` are the user's grants for unsigned directives; None to only look at them.

        Raises `Untrusted` until the user has agreed to the workspace: its files state which keys are trusted.
        """
        require_trusted(self._settings)
        items = VerifiedItems.of(self._settings)
        return BundleBuilder(self._settings, items, self._environ, model=not one_model, granted=granted)

    def start(
        self,
        document: Document,
        inputs: Mapping[str, Value],
        limits: Mapping[str, Value],
        granted: Grants,
        *,
        one_model: bool,
    ) -> Started:
        """Prepare a directive to run. `granted` are the user's grants, which count for unsigned directives. Raises
        `CannotStart` and `Refused`."""
        gathering = self.gathering(one_model=one_model)
        bundle = gathering.gathered(self._library.directive_at(document.name))
        return self._started(bundle, inputs, limits, granted, gathering)

    def again(
        self, bundle: Bundle, inputs: Mapping[str, Value], limits: Mapping[str, Value], granted: Grants
    ) -> Started:
        """Prepare a directive that a run brought from elsewhere: its permissions are those of the same text in this
        workspace.

        Raises `Refused` if this workspace does not have the same text, since then it was not signed or read here.
        """
        gathering = self.gathering(one_model=True)
        here = gathering.gather(bundle.item_id)
        parts = attrgetter("directives", "knowledge", "hooks")
        if here is None or parts(here) != parts(bundle):
            raise Refused(f"the run was made elsewhere, and {bundle.item_id} differs here: it cannot continue")
        return self._started(here, inputs, limits, granted, gathering)

    def _started(
        self,
        bundle: Bundle,
        inputs: Mapping[str, Value],
        limits: Mapping[str, Value],
        granted: Grants,
        gathering: BundleBuilder,
    ) -> Started:
        setup = set_up(bundle, inputs, THREAD_PATH, overrides=limits)
        capabilities = [capability.capability for capability in setup.composed.capabilities]
        acknowledged = setup.composed.acknowledged
        bundle = gathering.with_risks(bundle, setup.id, capabilities, acknowledged, setup.declared, granted)
        grants = Grants(frozenset(setup.grants) | reaching(granted))
        return Started(setup, bundle, Source.of(bundle.encoded(), "bundle"), grants, tuple(sorted(gathering.keys)))

    def compose(self, document: Document, inputs: Mapping[str, Value]) -> tuple[Bundle, Setup]:
        """Compose a directive only to look at it: raises as `start` does, but does not check risks."""
        bundle = self.gathering(one_model=True).gathered(self._library.directive_at(document.name))
        return bundle, set_up(bundle, inputs, THREAD_PATH)

    def granted_now(self, grants: Iterable[str], keys: Iterable[str], now: Grants) -> Grants:
        """Return the grants of the start, without those that reach further than the user allows now.

        `keys` are the keys that signed the directive. Raises `Refused` if one of them is not trusted any more."""
        start = Grants.of(grants)
        if self._requires_signatures():
            trusted = TrustedKeys.load(self._settings)
            for key in keys:
                if trusted.find(key) is None:
                    raise Refused(
                        f"the key {key} that signed this directive is not trusted any more: the run cannot continue"
                    )
        return Grants((start.patterns - reaching(start)) | (reaching(start) & reaching(now)))

    def verify_again(self, bundles: Iterable[Bundle]) -> None:
        """Verify the pinned directives of a run with the keys that are trusted now. Raises `Refused`.

        Their places were verified at the start, with the files as they were then.
        """
        if not self._requires_signatures():
            return
        trusted = TrustedKeys.load(self._settings)
        for item_id, text in (pair for bundle in bundles for pair in bundle.directives.items()):
            verdict = verify_text(text, "directive", item_id, trusted)
            if verdict.ok or verdict.outcome is Verification.MISPLACED:
                continue
            built_in = self._library.spaces.find("directive", item_id, "system")
            if built_in is None or built_in.text != text:
                raise Refused(f"{verdict.message} (the run pinned it: it cannot continue)")

    def _requires_signatures(self) -> bool:
        """Tell whether signatures are required. A workspace that the user has not confirmed cannot switch them off."""
        if self._settings.rehearsal:
            return False
        return self._settings.trust.mode == "require" or not is_trusted(self._settings)


Find = Callable[[ItemType, str], "Item | None"]
ACTIONS: tuple[tuple[ItemType, tuple[str, ...]], ...] = (
    ("directive", ("execute",)),
    ("knowledge", ("execute", "fetch")),
)


def hook_targets(hooks: Iterable[Hook], items: VerifiedItems, find: Find) -> list[str]:
    """Return warnings about the items. Raises `CannotStart` or `Refused` for an item that would judge the outputs."""
    warnings: dict[str, None] = {}
    for hook in hooks:
        for action in hook.actions:
            if is_composed(hook, action) or not is_static(action.item_id):
                continue
            name = f"hook {hook.id or hook.event}"
            try:
                problem = _unusable(action, items, find)
            except BadConfiguration:
                raise
            except QuireError as error:
                problem = str(error)
                if judges(hook.event) and isinstance(error, CannotStart):
                    raise CannotStart(f"{name}: {error}, so no outputs could pass this check") from None
                if judges(hook.event):
                    raise Refused(f"{name}: {error}") from None
            if problem:
                warnings[f"{name}: {problem}"] = None
    return list(warnings)


def _unusable(action: HookAction, items: VerifiedItems, find: Find) -> str:
    """Return the verdict that was accepted in warn mode, or the empty text. Raises `CannotStart` for a missing item,
    `QuireError` for one that must not be used."""
    for item_type, primaries in ACTIONS:
        if action.item_type == item_type and action.primary in primaries:
            item = find(item_type, action.item_id)
            if item is None:
                raise CannotStart(f"unknown {item_type} {action.item_id}")
            return _verified(item, items, find)
    return ""


def _verified(item: Item, items: VerifiedItems, find: Find) -> str:
    """Verify the item and, for a directive, its ancestors."""
    let_pass, ids = "", {item.id}
    while True:
        verdict = items.verdict(item)
        if not verdict.ok:
            if items.mode == "require":
                raise Refused(verdict.message)
            let_pass = let_pass or verdict.message
        if item.type == "knowledge":
            read_body(item)
            return let_pass
        extends = read_thread(item).extends.strip()
        parent = find("directive", extends) if extends else None
        if extends and parent is None:
            raise CannotStart(f"{item.id} extends {extends}, which does not exist")
        if parent is None or parent.id in ids:
            return let_pass
        ids.add(parent.id)
        item = parent
