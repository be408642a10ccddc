"""Collect the facts of documents that go into `quire.lock`, as texts that are the same on every machine.

Only the workspace counts: the settings, documents and trust of the user are left out, so two users write the same lock.
A model that the workspace does not name is `default`, and a called document that is only in a user folder is unknown.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.analysis.labels import OUTSIDE
from quire.analysis.lock.file import (
    ENDLESS,
    OPENS,
    OPENS_WITHOUT,
    STAYS_SHUT,
    UNPRICED,
    Lock,
    LockedCapability,
    LockedDocument,
    LockedTool,
    fitting,
    pinned_capability,
    shortened,
)
from quire.analysis.lock.read import LONGEST
from quire.analysis.quantities import quantities
from quire.errors import QuireError
from quire.formats import YAML
from quire.library.document import load
from quire.library.foresight import Foresight
from quire.models.choose import Unpriced
from quire.plan.digest import plan_digest
from quire.plan.nodes import only_thinks
from quire.source import Source, real_path, relative_to_here
from quire.workspace.configuration import load_settings

if TYPE_CHECKING:
    from quire.analysis.approvals import Gate, GateSearch
    from quire.analysis.proof import Proof
    from quire.analysis.quantities import RateOf
    from quire.diagnostics import Diagnostic
    from quire.engine.premises import Premises
    from quire.models.prices import ModelRate, Rate
    from quire.plan.envelope import CapabilityEnvelope
    from quire.plan.nodes import Plan
    from quire.workspace.locate import Workspace
    from quire.workspace.settings import Settings


NO_USER = {"QUIRE_HOME": f"{__file__}.none"}
"""The environment of a user without a user folder: a folder that does not exist."""


class LockableDocument(Struct, frozen=True):
    """A document of the workspace under its key. `plan` is None if it has errors."""

    key: str
    source: Source
    plan: Plan | None
    errors: tuple[Diagnostic, ...] = ()
    outside: tuple[str, ...] = ()
    """Inputs that get text from outside."""


class LockFacts:
    """The facts of the documents of one workspace. Each file is read once."""

    def __init__(
        self,
        workspace: Workspace,
        tools: Mapping[str, LockedTool] | None = None,
        prices: Mapping[str, str] | None = None,
    ) -> None:
        """`tools` are pinned tools with the classes of their effects; `prices` are those of a lock, which need no price
        list."""
        self._workspace = workspace
        self._folder = real_path(workspace.folder)
        self.tools = tools or {}
        self._prices = prices
        self._source = ""
        self.rates: dict[str, Rate] = {}
        """The prices that were used, by model."""
        self.unreadable: dict[str, str] = {}
        """The keys of files that could not be read, with the reasons."""

    @classmethod
    def with_lock(cls, workspace: Workspace, lock: Lock | None) -> LockFacts:
        """Return facts with the tools and the prices of a lock: nothing is started, and no price list is loaded."""
        lock = lock or Lock()
        facts = cls(workspace, lock.tools, lock.prices)
        facts._source = lock.price_source
        return facts

    @cached_property
    def settings(self) -> Settings:
        """The settings of the workspace alone."""
        return load_settings(self._workspace, NO_USER)

    def key_of(self, path: Path) -> str | None:
        """Return the key of a file; None if it is outside of the workspace."""
        whole = real_path(path.parent) / path.name
        if not whole.is_relative_to(self._folder):
            return None
        # A name that is not UTF-8 has halves of letters in it, which no file of text can hold.
        return whole.relative_to(self._folder).as_posix().encode("utf-8", "backslashreplace").decode()

    def documents(self, paths: Iterable[Path]) -> Iterator[LockableDocument]:
        """Yield the documents in some files. Files that cannot be read are left out, and noted in `unreadable`; so are
        those outside of the workspace, without a note."""
        for path in paths:
            key = self.key_of(path)
            if key is not None:
                yield from self._in_file(key, path)

    def missed(self, paths: Iterable[Path], locked: Iterable[str] = ()) -> list[Path]:
        """Return the files of documents that a search did not find although they exist: those with the given keys
        in a lock, and registered pipelines of the workspace."""
        keys = {self.key_of(path) for path in paths}
        names = [*locked, *(entry.path for entry in self.settings.pipelines.values() if entry.enabled)]
        missing: dict[str, Path] = {}
        for name in names:
            for file in dict.fromkeys((name, name.rpartition("#")[0])):
                path = self._folder / file
                if file and (key := self.key_of(path)) and key not in keys and path.is_file():
                    missing[key] = path
                    break
        return [Path(relative_to_here(path) or path) for path in missing.values()]

    def facts(self, document: LockableDocument) -> LockedDocument | None:
        """Return the facts of a document; None for one that cannot run."""
        plan, name, foresight = document.plan, document.source.name, self._foresight
        if plan is None:
            return None
        proof = foresight.proof(plan, name, outside=document.outside)
        # Without needs, no table of tools is loaded.
        envelope = None if only_thinks(proof.plan) else foresight.envelope(plan, name, self._classes)
        servers = self._servers(envelope) if envelope is not None else []
        return LockedDocument(
            plan=f"sha256:{plan_digest(plan)}",
            may=tuple(_capabilities(envelope)) if envelope is not None else (),
            unknown=tuple(
                sorted(map(shortened, {*(envelope.unknown if envelope is not None else ()), *proof.unknown}))
            ),
            models=tuple(sorted({fact.model or "default" for fact in proof.model_calls})),
            servers=tuple(servers),
            variables=tuple(sorted({name for server in servers for name in self.settings.servers[server].variables()})),
            most=locked_bounds(proof, foresight.world().premises, self._rate),
            gates=locked_gates(proof),
            flows=locked_flows(proof),
            allows=tuple(_allows(document.source)),
        )

    def lock(self, documents: Iterable[LockableDocument]) -> Lock:
        """Return the lock of some documents."""
        locked = {document.key: facts for document in documents if (facts := self.facts(document)) is not None}
        assumed = {name: str(size) for name, size in self.settings.assume.items()}
        prices, source = self._used_prices() if self._prices is None else (dict(self._prices), self._source)
        return Lock(locked, dict(self.tools), prices, source, assumed)

    def prices_now(self, models: Iterable[str]) -> dict[str, str]:
        """Return the prices of models by the price list that is installed, which is loaded for that."""
        fresh = LockFacts(self._workspace)
        for model in models:
            fresh._rate(model)
        return fresh._used_prices()[0]

    def old_prices(self) -> list[str]:
        """Return a note for each price that was used and was last looked at long ago (BD107)."""
        from quire.analysis.money import noted_rate
        from quire.models.prices import ModelRate

        today = datetime.date.today()
        used = [rate for _, rate in sorted(self.rates.items()) if isinstance(rate, ModelRate) and rate.is_old(today)]
        noted = (noted_rate(rate, today) for rate in used)
        return [rate.premises[-1] for rate in noted if isinstance(rate, ModelRate)]

    def _used_prices(self) -> tuple[dict[str, str], str]:
        """Return the prices that were used, and where they come from."""
        from quire.models.prices import ModelRate

        rates = [rate for rate in self.rates.values() if isinstance(rate, ModelRate)]
        sources = sorted({rate.source for rate in rates if rate.source})
        return {rate.spec: _rate_line(rate) for rate in rates}, ", ".join(sources)

    def _in_file(self, key: str, path: Path) -> Iterator[LockableDocument]:
        # The library is not searched for a file that cannot hold a pipeline.
        registered = self._registered.get(real_path(path), []) if path.suffix in YAML else []
        if len(registered) > 1:
            yield from (LockableDocument(f"{key}#{name}", source, plan) for name, source, plan in registered)
            return
        try:
            document = load(path)
        except QuireError as error:
            self.unreadable[key] = str(error)
            return
        plan = registered[0][2] if registered and registered[0][1].text == document.source.text else document.plan
        yield LockableDocument(key, document.source, plan, document.errors)

    @cached_property
    def _registered(self) -> dict[Path, list[tuple[str, Source, Plan]]]:
        """The registered pipelines by their files."""
        from quire.library.library import Library

        registered: dict[Path, list[tuple[str, Source, Plan]]] = {}
        for pipeline in Library(self.settings).registry().pipelines.values():
            path = real_path(Path(pipeline.source.name))
            registered.setdefault(path, []).append((pipeline.declared, pipeline.source, pipeline.plan))
        return registered

    @cached_property
    def _foresight(self) -> Foresight:
        return Foresight(self.settings)

    @cached_property
    def _classes(self) -> dict[str, str]:
        return effect_classes(self.tools)

    def _servers(self, envelope: CapabilityEnvelope) -> list[str]:
        """Return the servers that a document may use. One that a pattern may mean counts."""
        if not envelope.needs:
            return []
        from quire.trust.capabilities import Grants

        needed = list(Grants.of(envelope.capabilities).patterns)
        return [name for name in sorted(self.settings.servers) if any(_meets(pattern, name) for pattern in needed)]

    def _rate(self, model: str) -> Rate:
        if model not in self.rates:
            written = (self._prices or {}).get(model)
            if not model:
                self.rates[model] = Unpriced(model, "the workspace does not say which model it is")
            elif written is not None:
                from quire.models.prices import ModelRate

                reads, writes, *window = written.split()
                context = int(window[0]) if window else None
                self.rates[model] = ModelRate(model, Decimal(reads), Decimal(writes), context=context)
            elif self._prices is not None:
                self.rates[model] = Unpriced(model, "the lock has no price of it")
            else:
                from quire.models.prices import rate_of

                self.rates[model] = rate_of(model, self.settings.models, datetime.date.today(), {})
        return self.rates[model]


def effect_classes(pins: Mapping[str, LockedTool]) -> dict[str, str]:
    """Return the classes of effects that pins know, by capability. Those of built-in tools are known anyway."""
    effects = ((pinned_capability(key), pin.effect) for key, pin in pins.items() if pin.effect != "unknown")
    return {name: effect for name, effect in effects if name}


def _capabilities(envelope: CapabilityEnvelope) -> Iterator[LockedCapability]:
    for need in envelope.needs:
        from quire.trust.capabilities import Grants  # a document without needs loads no table of tools

        for pattern in Grants.of([need.capability]).patterns:
            for details, steps in need.calls:
                yield from fitting(LockedCapability(pattern, need.tier, need.effect, details, steps))


def _meets(pattern: str, server: str) -> bool:
    """Tell whether a pattern may match a tool or a prompt of a server."""
    from quire.trust.capabilities import fixed_head, glob, mcp_tool

    for kind in ("execute.tool", "fetch.prompt"):
        head, fixed = f"rye.{kind}.{mcp_tool(server, '').replace('/', '.')}", fixed_head(pattern)
        if fixed.startswith(head) or (fixed != pattern and head.startswith(fixed)) or glob(pattern, head):
            return True
    return False


def _rate_line(rate: ModelRate) -> str:
    """Return the highest price per million tokens, read and written, and the window."""
    prices = " ".join(f"{price.normalize():f}" for price in rate.at())
    return f"{prices} {rate.context}" if rate.context is not None else prices


def _allows(source: Source) -> Iterator[str]:
    if "quire:" not in source.text:
        return
    from quire.formats.suppressions import allows_of

    for allow in allows_of(source):
        where = f" at step {allow.step}" if allow.step else ""
        yield shortened(f"{allow.code}{where}: {allow.reason}")


_MICRODOLLAR = 10**6
"""Picodollars. Money in a lock is rounded up to these."""
_MINUTE = 60_000


def locked_bounds(proof: Proof, premises: Premises, rate_of: RateOf) -> dict[str, str]:
    """Return the bounds of a proof as formulas. Caps of the engine are left out: they end a run, and bound no
    document."""
    most: dict[str, str] = {}
    for quantity in quantities(proof, premises, rate_of, longest=premises.prompt_characters * 4):
        if quantity.name == "time":
            most["minutes"] = str(quantity.most.divided(_MINUTE))
        elif quantity.name == "money":
            most["money"] = UNPRICED if quantity.unpriced else quantity.most.text(_dollars)
        elif quantity.name == "input_tokens":
            most["input_tokens"] = quantity.most.text(lambda count: f"{rounded_up(count, 1):,}")
        else:
            most[quantity.name] = str(quantity.most)
    # A formula of that length tells a reader as little as none.
    return {name: text if len(text) <= LONGEST else ENDLESS for name, text in most.items()}


def rounded_up(count: int, digits: int) -> int:
    """Return a number with `digits` significant digits, not below `count`: a prompt that is some words longer has the
    same bound."""
    step = int(10 ** max(0, len(str(count)) - digits))
    return -(-count // step) * step


def locked_gates(proof: Proof) -> dict[str, str]:
    """Return the question before each effect that changes something, by the effect; `none` without one. Effects that no
    run reaches are left out. The effects of a tool have their details only if their gates differ."""
    if not proof.effects:
        return {}  # and the expressions, by which gates are judged, are not loaded
    from quire.analysis.approvals import GateSearch, gates_of
    from quire.analysis.lock.approvals import unnumbered_gate

    search = GateSearch()
    gates = [(gate, _unattended(gate, search)) for gate in gates_of(proof) if gate.verdict != "never"]
    kinds: dict[str, set[str]] = {}
    for gate, note in gates:
        kinds.setdefault(gate.tool, set()).add(unnumbered_gate(gate.text_with(note)))
    locked: dict[str, str] = {}
    openness: dict[str, int] = {}
    for gate, note in gates:
        key = shortened(_detailed(gate) if len(kinds[gate.tool]) > 1 else gate.key)
        how_open = 2 if gate.verdict != "gated" else int(note in (OPENS, OPENS_WITHOUT))
        if how_open >= openness.get(key, 0):  # of several calls of a step, the one that is gated least is written
            openness[key], locked[key] = how_open, shortened(gate.text_with(note))
    return locked


def _detailed(gate: Gate) -> str:
    """Return an effect in one line with how far it goes: `4 path=a.md file__write`."""
    from quire.plan.nodes import UseTool
    from quire.plan.pipeline_work import Invoke
    from quire.plan.tool_details import any_details, details_of, together
    from quire.plan.uses import OWN

    work = gate.effect.place.step.work
    details: tuple[str, ...] = ()
    if gate.effect.by_model:
        details = any_details(gate.effect.tool.capability)
    elif isinstance(work, Invoke):
        details = details_of(work.tool, dict(work.arguments), piped=work.piped)
    elif isinstance(work, UseTool) and work.connection == OWN:
        details = details_of(work.tool, work.arguments)
    named = (detail for detail in together(details) if not detail.startswith("words="))
    return " ".join((gate.way, *named, gate.tool))


def _unattended(gate: Gate, search: GateSearch) -> str:
    """Return the note of a gate about runs in which no person answers."""
    from quire.analysis.approvals import can_open_without_default, has_default, may_open_by_itself

    if gate.verdict != "gated":
        return ""
    if may_open_by_itself(gate, search):
        return OPENS if any(map(has_default, gate.questions)) else OPENS_WITHOUT
    return STAYS_SHUT if any(map(can_open_without_default, gate.questions)) else ""


def locked_flows(proof: Proof) -> tuple[str, ...]:
    """Return all flows of a document. A model is written with each tool by which it can act: one more is a change."""
    if not proof.effects and not any(call.told.integrity >= OUTSIDE for call in proof.model_calls):
        return ()
    from quire.analysis.flow_paths import flows_of

    flows = flows_of(proof, most=sys.maxsize)
    named = (replace(flow, sink=f"model with {', '.join(flow.tools)}") if flow.tools else flow for flow in flows)
    return tuple(sorted({shortened(flow.text) for flow in named}))


def _dollars(picodollars: int) -> str:
    """Return a coefficient of a formula of money, rounded up to two digits that count."""
    return f"{Decimal(rounded_up(-(-picodollars // _MICRODOLLAR), 2)).scaleb(-6).normalize():f}"
