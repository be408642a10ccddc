"""Gathering what a directive is composed from: itself, its ancestors, the knowledge that they name; all verified."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from quire.engine.thread.bundle import Bundle
from quire.engine.thread.hooks import injects, loses_a_gate, read_hooks_yaml
from quire.engine.thread.start import check_risk
from quire.errors import CannotStart, Refused
from quire.models.tiers import thread_model
from quire.plan.thread import Hook, Thread
from quire.runtime.hook_targets import hook_targets
from quire.source import Source, read_source
from quire.trust.capabilities import Grants
from quire.trust.risk import project_risk
from quire.trust.unsigned import require_granted
from quire.workspace.items import Item, ItemType
from quire.workspace.library import read_body, read_thread
from quire.workspace.requests import HOOKS
from quire.workspace.settings import Settings
from quire.workspace.verified import VerifiedItems


class Gathering:
    """`keys` are the ids of the keys that what was gathered is signed with. `granted` is what the user allows those
    that nobody signed."""

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
        """Whether something was let pass that nobody whom the user trusts has signed."""
        return bool(self._items.warnings)

    def gather(self, item_id: str, leaf: Item | None = None) -> Bundle | None:
        """None where there is no such directive. Raises `Refused` for what is not trusted, `BadDocument` for what
        cannot be read. `leaf` is a directive that is at hand already, and verified like all others."""
        found = leaf or self._find("directive", item_id)
        return self._gathered(found)[0] if found else None

    def called(self, item_id: str) -> Bundle | None:
        """The same for one that another document runs. Nobody looks at its risks later, so that is done here."""
        found = self._find("directive", item_id)
        if found is None:
            return None
        bundle, chain = self._gathered(found)
        granting = next((one for one in chain if one.grants_itself()), chain[0])
        acknowledged = (*granting.acknowledged, *chain[0].acknowledged)
        place = list(bundle.places.values())[chain.index(granting)]
        project = project_risk(self._settings.workspace.folder)
        asked = [one.capability for one in granting.permissions]
        risks = check_risk(asked, acknowledged, project, place)
        if self.unsigned and self._granted is not None:
            reasons = {one.risk: one.reason for one in acknowledged}
            require_granted(bundle.item_id, asked, self._granted, project, reasons)
        return replace(bundle, warnings=(*bundle.warnings, *risks))

    def _gathered(self, found: Item) -> tuple[Bundle, list[Thread]]:
        before = len(self._items.warnings)
        directives: dict[str, str] = {}
        places: dict[str, str] = {}
        chain = self._chain(found, directives, places)
        hooks, text, problems = self._hooks()
        knowledge = self._knowledge(chain, hooks)
        targets = hook_targets([*(hook for one in chain for hook in one.hooks), *hooks], self._items, self._find)
        warnings = (*self._items.warnings[before:], *problems, *targets)
        model = thread_model(chain[0].model, self._settings.models, self._environ).spec if self._model else ""
        return Bundle(found.id, directives, knowledge, text, model, warnings, places), chain

    def _chain(self, leaf: Item, directives: dict[str, str], places: dict[str, str]) -> list[Thread]:
        """The directive and its ancestors. A chain that goes round, or breaks off, is told of when it is composed."""
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
        """Where the permissions of a directive stand, or would have to."""
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
        for hook in (*(hook for one in threads for hook in one.hooks), *hooks):
            if hook.id not in suppressed:
                wanted.update((action.item_id, None) for action in hook.actions if injects(hook, action))
        bodies = {one: self.knowledge(one) for one in wanted if one and one not in suppressed and "${" not in one}
        return {one: body for one, body in bodies.items() if body is not None}

    def knowledge(self, item_id: str) -> str | None:
        """The body of one item. Raises `Refused`."""
        item = self._find("knowledge", item_id)
        if item is None:
            return None
        verified = self._items.require(item)
        self.keys.update(key for key in [verified.verdict.key_id] if key)
        return read_body(verified.item)

    def _find(self, item_type: ItemType, item_id: str) -> Item | None:
        """Raises `Refused` for a link: it would put one signed file in the place of another, which moving it cannot."""
        item = self._items.spaces.find(item_type, item_id)
        if item is not None and item.id != item_id and not item.id.endswith(f"/{item_id}"):
            raise Refused(f"the {item_type} {item_id} is a link to {item.id}; put a file of its own there, and sign it")
        return item

    def _hooks(self) -> tuple[tuple[Hook, ...], str, tuple[str, ...]]:
        """The hooks of the project. The user has confirmed them together with all that the workspace asks for."""
        file = self._settings.workspace.folder / HOOKS
        if not file.is_file():
            return (), "", ()
        text = read_source(file).text
        hooks, problems = read_hooks_yaml(text, HOOKS)
        if problems and loses_a_gate(text, HOOKS):
            listed = "\n".join(f"  {problem}" for problem in problems)
            raise CannotStart(f"a hook that may judge outputs cannot be read, so no outputs could pass it:\n{listed}")
        return hooks, text, tuple(problems)
