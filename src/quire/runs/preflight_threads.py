"""Check directives before a run starts. The model of a thread decides which tools it calls, so a problem with such a
call is a warning; only problems before the first turn are certain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote

from msgspec import Struct, field

from quire.engine.interpreter.thread.budgets import Cost, Limits, exceeded, resolve_limits
from quire.engine.interpreter.thread.compose import Bundle, BundleResolver, read_chain
from quire.errors import CannotStart, Denied, QuireError, ToolFailed
from quire.plan.built_in_tools import SHELL
from quire.runs.static_failures import least_price
from quire.source import Source
from quire.tools.registry import is_disabled
from quire.trust.capabilities import Grants, capability, fixed_head
from quire.workspace.grants import denied_tools, reach_of, reaching

if TYPE_CHECKING:
    from quire.plan.reach import Reached
    from quire.plan.thread import Thread
    from quire.runs.adapters import Models
    from quire.runs.preflight import Find, Findings, Start
    from quire.tools.gate import Gate
    from quire.workspace.settings import Settings

_TOOL = "rye.execute.tool."
_SERVER = f"{_TOOL}mcp."


class ThreadLook(Struct):
    """Checks the threads of one start. Each directive is checked once as certain and once as not certain."""

    settings: Settings
    start: Start
    gate: Gate
    models: Models
    find: Find | None
    found: Findings
    _seen: set[tuple[str, bool]] = field(default_factory=set)

    async def at(self, at: Reached) -> None:
        bundle = self.start.bundles.get(at.document)
        if bundle is None or (at.document, at.certain) in self._seen:
            return
        self._seen.add((at.document, at.certain))
        try:
            chain = [thread for _, thread in read_chain(bundle.item_id, BundleResolver(bundle))]
            if chain[0].problems:
                raise CannotStart("\n".join(f"{bundle.item_id}: {problem}" for problem in chain[0].problems))
            overrides = {} if at.document else self.start.overrides
            limits = resolve_limits(chain[0].limits, overrides, None)
        except CannotStart as error:
            self.found.add(str(error), at)
            return
        granting = next((thread for thread in chain if thread.grants_itself()), chain[0])
        capabilities = [permission.capability for permission in granting.permissions]
        self._look_at_start(at, bundle, chain, limits)
        for line in (*self._missing(at, capabilities), *self._servers(capabilities), *self._children(bundle)):
            self.found.warnings[f"{bundle.item_id}: {line}"] = None
        await self._look_at_tools(at, bundle, Grants.of(capabilities).narrow(self.start.grants))

    def _look_at_start(self, at: Reached, bundle: Bundle, chain: list[Thread], limits: Limits) -> None:
        """Check the model, and limits that leave no room for a first turn. A hook for limits may raise them."""
        reached = exceeded(limits, Cost())
        hooks = (*(hook for thread in chain for hook in thread.hooks), *bundle.project_hooks())
        if reached is not None and not any(hook.event == "limit" for hook in hooks):
            self.found.add(f"{bundle.item_id}: {reached.message}", at)
        model = bundle.model or self.start.model
        try:
            priced = not model or least_price(self.models, model) is not None
        except QuireError as error:
            self.found.add(f"{bundle.item_id}: {error}", at)
            return
        if not priced and limits.spend is not None and limits.tokens is None:
            self.found.warnings[
                f"{bundle.item_id}: the price of {model} is not known, so its spend limit of {limits.spend:g} "
                "cannot be held: set a limit of tokens"
            ] = None

    def _missing(self, at: Reached, permissions: list[str]) -> Iterator[str]:
        """Yield the permissions of the directive that the run does not grant."""
        denied = denied_tools(self.settings)
        for permission in permissions:
            if not permission.startswith(_TOOL):
                continue
            if denied.includes(permission):
                yield f"it goes without {permission}, which is under [tools] deny in quire.toml"
            elif not Grants.of([permission]).narrow(self.start.grants).patterns and not _always(permission):
                way_on = f": --allow {permission}" if at.document else ""
                yield f"it goes without {permission}, which this run is not allowed{way_on}"

    def _servers(self, permissions: list[str]) -> Iterator[str]:
        """Yield the MCP servers that its permissions name and that are not configured."""
        for permission in permissions:
            name, dot, _ = permission.removeprefix(_SERVER).partition(".")
            if not permission.startswith(_SERVER) or not dot or fixed_head(name) != name:
                continue
            server = unquote(name)
            if server in self.settings.disabled_servers:
                yield is_disabled(server)
            elif server not in self.settings.servers:
                yield f'its permissions name the MCP server "{server}", which is not in .mcp.json'

    def _children(self, bundle: Bundle) -> Iterator[str]:
        """Yield the documents that its instructions tell the model to run and that do not exist or may not be used."""
        from quire.formats.directive.item_references import calls_of
        from quire.formats.directive.parse import parse

        read = parse(Source.of(bundle.directives[bundle.item_id], "")).directive
        targets = [call.document for call in calls_of(read)] if read is not None and self.find is not None else []
        for target in dict.fromkeys(filter(None, targets)):
            try:
                missing = self.find is not None and self.find(target.name, target.kind) is None
            except QuireError as error:
                yield f"its instructions run {target.name}: {error}"
                continue
            if missing:
                yield f"its instructions run {target.name}, which does not exist as a {target.kind or 'document'}"

    async def _look_at_tools(self, at: Reached, bundle: Bundle, grants: Grants) -> None:
        """Check the tools of a thread. It is offered all of them before its first turn, so a server that cannot list
        its tools ends it."""
        if self.settings.servers or self.settings.tools.modules:
            try:
                await self.gate.offers_under(sorted(grants.patterns))
            except ToolFailed as error:
                self.found.add(f"{bundle.item_id}: {error}", at)
        free = reach_of(Grants(reaching(self.start.grants))).unsandboxed
        if free or not grants.covers(capability("execute", "tool", SHELL)):
            return
        from quire.tools.blocking import in_thread
        from quire.tools.sandbox import require_sandbox

        try:
            await in_thread(lambda: require_sandbox(self.settings.workspace.folder))
        except Denied as denied:
            self.found.warnings[f"{bundle.item_id} may run commands, and could not: {denied}"] = None


def _always(needed: str) -> bool:
    """Tell whether a capability is for one of the engine's own tools, which need no grant of the user."""
    return needed.startswith(f"{_TOOL}rye.agent.threads.")
