"""Prepare directives to run: gather and verify everything they are composed from, compose them, and check permissions
and risks.

A directive is composed from itself, its ancestors, and the knowledge that they name.

Look up and verify the items that the hooks of a directive name, before the thread starts.

A hook that cannot act is a warning. At `directive_return` hooks judge the outputs: there a missing or untrusted item
prevents the start, since no output could pass. An unsigned item that only a hook names does not make the directive
itself count as unsigned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.interpreter.thread.compose import Bundle
from quire.engine.interpreter.thread.hooks import is_composed, loses_a_gate, read_hooks_yaml
from quire.engine.interpreter.thread.setup import Setup, check_risk, set_up
from quire.errors import BadConfiguration, CannotStart, QuireError, Refused
from quire.library.items import Item, ItemType
from quire.library.verify import VerifiedItems, read_body, read_thread
from quire.models.tiers import thread_model
from quire.plan.templates import is_static
from quire.plan.thread import THREAD_PATH, Hook, Thread
from quire.plan.vocabulary import judges
from quire.source import Source, read_source
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
    from quire.plan.thread import HookAction
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

    def gather(self, item_id: str, leaf: Item | None = None) -> Bundle | None:
        """Gather a directive; None if it does not exist. Raises `Refused` for an item that is not trusted,
        `BadDocument` for one that cannot be read. `leaf` is a directive that was already read; it is verified like all
        others."""
        item = leaf or self._find("directive", item_id)
        return self._gathered(item) if item else None

    def called(self, item_id: str) -> Bundle | None:
        """Gather a directive that another document runs. Its risks are not checked later, so they are checked here."""
        item = self._find("directive", item_id)
        if item is None:
            return None
        bundle = self._gathered(item)
        chain = list(bundle.threads.values())
        granting = next((thread for thread in chain if thread.grants_itself()), chain[0])
        acknowledged = (*granting.acknowledged, *chain[0].acknowledged)
        place = list(bundle.places.values())[chain.index(granting)]
        project = project_risk(self._settings.workspace.folder)
        asked = [permission.capability for permission in granting.permissions]
        risks = check_risk(asked, acknowledged, project, place)
        if self.unsigned and self._granted is not None:
            reasons = {acknowledgement.risk: acknowledgement.reason for acknowledgement in acknowledged}
            require_granted(bundle.item_id, asked, self._granted, project, reasons)
        return bundle.with_warnings(risks)

    def _gathered(self, found: Item) -> Bundle:
        before = len(self._items.warnings)
        directives: dict[str, str] = {}
        places: dict[str, str] = {}
        chain = self._chain(found, directives, places)
        hooks, text, problems = self._hooks()
        knowledge = self._knowledge(chain, hooks)
        targets = hook_targets([*(hook for thread in chain for hook in thread.hooks), *hooks], self._items, self._find)
        warnings = (*self._items.warnings[before:], *problems, *targets)
        bundle = Bundle(found.id, directives, knowledge, text, "", warnings, places)
        if self._model:
            choice = thread_model(chain[0].model, self._settings.models, self._environ)
            require_model(self._settings, choice.spec)
            bundle = replace(bundle, model=choice.spec, settings=choice.settings.as_value())
        bundle.threads.update(zip(directives, chain, strict=True))
        return bundle

    def _chain(self, leaf: Item, directives: dict[str, str], places: dict[str, str]) -> list[Thread]:
        """Read the directive and its ancestors. A circular or broken chain is reported when it is composed."""
        chain = []
        wanted, item = leaf.id, leaf
        while True:
            verified = self._items.require(item)
            self.keys.update(key for key in [verified.verdict.key_id] if key)
            directives[wanted] = item.text
            chain.append(read_thread(item))
            places[wanted] = self._place(item, chain[-1])
            wanted = chain[-1].extends.strip()
            if not wanted or wanted in directives:
                return chain
            parent = self._find("directive", wanted)
            if parent is None:
                return chain
            item = parent

    def _place(self, item: Item, read: Thread) -> str:
        """Return the place where the permissions of a directive are written, or would have to be."""
        folder, path = self._settings.workspace.folder.resolve(), item.path.resolve()
        shown = path.relative_to(folder) if path.is_relative_to(folder) else path
        if not read.permissions:
            return shown.as_posix()
        return f"{shown.as_posix()}:{Source.of(item.text, '').position(read.permissions[0].span.start).line}"

    def _knowledge(self, chain: Iterable[Thread], hooks: Iterable[Hook]) -> dict[str, str]:
        threads = list(chain)
        suppressed = {one for thread in threads for one in thread.context.suppress}
        wanted: dict[str, None] = {}
        for one in threads:
            wanted.update(dict.fromkeys((*one.context.system, *one.context.before, *one.context.after)))
        for hook in (*(hook for thread in threads for hook in thread.hooks), *hooks):
            if hook.id not in suppressed:
                wanted.update((action.item_id, None) for action in hook.actions if is_composed(hook, action))
        bodies = {one: self.knowledge(one) for one in wanted if one and one not in suppressed and "${" not in one}
        return {one: body for one, body in bodies.items() if body is not None}

    def knowledge(self, item_id: str) -> str | None:
        """Return the body of one knowledge item. Raises `Refused`."""
        item = self._find("knowledge", item_id)
        if item is None:
            return None
        verified = self._items.require(item)
        self.keys.update(key for key in [verified.verdict.key_id] if key)
        return read_body(verified.item)

    def _find(self, item_type: ItemType, item_id: str) -> Item | None:
        return self._items.spaces.find_file(item_type, item_id, ", and sign it")

    def _hooks(self) -> tuple[tuple[Hook, ...], str, tuple[str, ...]]:
        """Read the hooks of the project. The user has confirmed them with the other requests of the workspace."""
        file = self._settings.workspace.folder / HOOKS
        if not file.is_file():
            return (), "", ()
        text = read_source(file).text
        hooks, problems = read_hooks_yaml(text, HOOKS)
        if problems and loses_a_gate(text, HOOKS):
            listed = "\n".join(f"  {problem}" for problem in problems)
            raise CannotStart(f"a hook that may judge outputs cannot be read, so no outputs could pass it:\n{listed}")
        return hooks, text, tuple(problems)


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
        given: Mapping[str, Value],
        limits: Mapping[str, Value],
        granted: Grants,
        *,
        one_model: bool,
    ) -> Started:
        """Prepare a directive to run. `granted` are the user's grants, which count for unsigned directives. Raises
        `CannotStart` and `Refused`."""
        gathering = self.gathering(one_model=one_model)
        bundle = gathering.gather("", self._library.directive_at(document.name))
        if bundle is None:
            raise CannotStart(f"there is no directive {document.name}")
        return self._started(bundle, given, limits, granted, gathering)

    def again(
        self, bundle: Bundle, given: Mapping[str, Value], limits: Mapping[str, Value], granted: Grants
    ) -> Started:
        """Prepare a directive that a run brought from elsewhere: its permissions are those of the same text in this
        workspace.

        Raises `Refused` if this workspace does not have the same text, since then it was not signed or read here.
        """
        gathering = self.gathering(one_model=True)
        here = gathering.gather(bundle.item_id)
        if here is None or (here.directives, here.knowledge, here.hooks) != (
            bundle.directives,
            bundle.knowledge,
            bundle.hooks,
        ):
            raise Refused(f"the run comes from elsewhere, and {bundle.item_id} is not the same here: it does not go on")
        return self._started(here, given, limits, granted, gathering)

    def _started(
        self,
        bundle: Bundle,
        given: Mapping[str, Value],
        limits: Mapping[str, Value],
        granted: Grants,
        gathering: BundleBuilder,
    ) -> Started:
        setup = set_up(bundle, given, THREAD_PATH, overrides=limits)
        project, composed = project_risk(self._settings.workspace.folder), setup.composed
        asked = [capability.capability for capability in composed.capabilities]
        risks = check_risk(asked, composed.acknowledged, project, setup.declared)
        if gathering.unsigned:
            reasons = {acknowledgement.risk: acknowledgement.reason for acknowledgement in composed.acknowledged}
            require_granted(setup.id, asked, granted, project, reasons)
        bundle = bundle.with_warnings(risks)
        grants = Grants(frozenset(setup.grants) | reaching(granted))
        return Started(setup, bundle, Source.of(bundle.encoded(), "bundle"), grants, tuple(sorted(gathering.keys)))

    def compose(self, document: Document, given: Mapping[str, Value]) -> tuple[Bundle, Setup]:
        """Compose a directive only to look at it: raises as `start` does, but does not check risks."""
        bundle = self.gathering(one_model=True).gather("", self._library.directive_at(document.name))
        if bundle is None:
            raise CannotStart(f"there is no directive {document.name}")
        return bundle, set_up(bundle, given, THREAD_PATH)

    def granted_now(self, grants: Iterable[str], keys: Iterable[str], now: Grants) -> Grants:
        """Return the grants of the start, without those that reach further than the user allows now.

        `keys` are the keys that signed the directive. Raises `Refused` if one of them is not trusted any more."""
        start = Grants.of(grants)
        if self._requires_signatures():
            trusted = TrustedKeys.load(self._settings)
            for key in keys:
                if trusted.find(key) is None:
                    raise Refused(
                        f"the key {key} that signed this directive is not trusted any more: it does not go on"
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
                raise Refused(f"{verdict.message} (the run pinned it so: it does not go on)")

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
                found = _unusable(action, items, find)
            except BadConfiguration:
                raise
            except CannotStart as error:
                if judges(hook.event):
                    raise CannotStart(f"{name}: {error}, so no outputs could pass this check") from None
                found = str(error)
            except QuireError as error:
                if judges(hook.event):
                    raise Refused(f"{name}: {error}") from None
                found = str(error)
            if found:
                warnings[f"{name}: {found}"] = None
    return list(warnings)


def _unusable(action: HookAction, items: VerifiedItems, find: Find) -> str:
    """Return the verdict that was accepted in warn mode, or the empty text. Raises `CannotStart` for a missing item,
    `QuireError` for one that must not be used."""
    for item_type, primaries in ACTIONS:
        if action.item_type == item_type and action.primary in primaries:
            item = find(item_type, action.item_id)
            if item is None:
                raise CannotStart(f"there is no {item_type} {action.item_id}")
            return _verified(item, items, find)
    return ""


def _verified(item: Item, items: VerifiedItems, find: Find) -> str:
    """Verify the item and, for a directive, its ancestors."""
    let_pass, seen = "", {item.id}
    while True:
        verdict = items.verdict(item)
        if not verdict.ok:
            if items.mode == "require":
                raise Refused(verdict.message)
            let_pass = let_pass or verdict.message
        if item.type == "knowledge":
            read_body(item)
            return let_pass
        wanted = read_thread(item).extends.strip()
        parent = find("directive", wanted) if wanted else None
        if wanted and parent is None:
            raise CannotStart(f"{item.id} extends {wanted}, which is not there")
        if parent is None or parent.id in seen:
            return let_pass
        seen.add(parent.id)
        item = parent
