"""A run from what it pinned: its document, all that this one can call, and the walk through them.

The loop of threads is imported where it is needed: it takes longer than all that most runs do before their first step.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, cast

from quire.documents import Document, read
from quire.engine.call_document import opener
from quire.engine.interpret import interpret
from quire.engine.pipeline import Profile, Setting, interpret_pipeline
from quire.engine.pure_work import PureWork
from quire.engine.records import RunRow
from quire.engine.requests import Walk
from quire.engine.thread.bundle import Bundle
from quire.errors import RunState
from quire.plan.nodes import KNOWN_VERSIONS, Plan
from quire.runtime.callees import opened, read_directive, unpinned
from quire.runtime.loading import open_document
from quire.runtime.pins import Pins
from quire.source import Source
from quire.trust.capabilities import Grants
from quire.values import Value
from quire.workspace.settings import AgentSettings

if TYPE_CHECKING:
    from quire.engine.thread.setup import Setup

Texts: TypeAlias = Callable[[str], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Pinned:
    pins: Pins
    document: Document
    setting: Setting

    @property
    def plan(self) -> Plan:
        return self.document.runnable()

    @property
    def plans(self) -> tuple[Plan, ...]:
        """That of the document, and those of all that it can call."""
        return (self.plan, *self.setting.documents.values())

    @property
    def bundle(self) -> Bundle | None:
        """What the directive is composed from, where the document is one."""
        return self.setting.bundles.get("")

    def walk(self, work: PureWork) -> Walk:
        """From the start; whoever drives it answers what is recorded. Pure work is counted in `work`."""
        pins, setting = self.pins, replace(self.setting, work=work)
        match self.plan.format:
            case "pipeline":
                return interpret_pipeline(self.plan, pins.inputs, setting)
            case "directive":
                from quire.engine.thread.interpret import interpret_directive

                return interpret_directive(self._thread(setting))
        inputs = cast("Mapping[str, str]", pins.inputs)
        return interpret(self.plan, inputs, context_budget=pins.context_budget, setting=setting)

    def thread(self) -> Setup | None:
        """The outermost thread as it starts, where the document is a directive."""
        return self._thread(self.setting) if self.plan.format == "directive" else None

    def _thread(self, setting: Setting) -> Setup:
        from quire.engine.thread.interpret import PATH
        from quire.engine.thread.start import Above, set_up

        pins = self.pins
        return set_up(
            setting.bundles[""],
            pins.inputs,
            PATH,
            overrides=pins.limits,
            above=Above(Grants.of(pins.grants), open_document=opener(setting)),
        )


async def read_pinned(text: Texts, row: RunRow, *, repairs: int, fan_out_depth: int) -> Pinned:
    """`text` gives a pinned text by its hash. Raises `RunState` for a run of other rules than these."""
    pins = Pins.of(row.pins)
    if pins.semantics_version not in KNOWN_VERSIONS:
        raise RunState(
            f"run {row.id} was started under version {pins.semantics_version} of the rules of running; "
            f"this Quire knows the versions {' and '.join(map(str, KNOWN_VERSIONS))}"
        )
    documents: dict[str, Plan] = {}
    bundles: dict[str, Bundle] = {}
    try:
        document = _document(row, pins, await text(pins.document))
        for name, stored in pins.callees.items():
            callee = cast("Mapping[str, str]", stored)
            documents[name], bundle = opened(callee, await text(callee["sha256"]))
            if bundle is not None:
                bundles[name] = bundle
        if pins.bundle:
            bundles[""] = Bundle.of(await text(pins.bundle))
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
        # A run may come from a file or a store that others wrote: its texts need not be those of its pins.
        raise RunState(f"the documents of run {row.id} cannot be read: {type(error).__name__} {error}") from None
    if document.format == "playbook" and not all(isinstance(value, str) for value in pins.inputs.values()):
        raise RunState(f"the inputs of run {row.id} are not those of a playbook, which are texts")
    if document.format == "directive" and "" not in bundles:
        raise RunState(f"run {row.id} has no text of its directive")
    profiles = read_profiles(pins.profiles)
    setting = Setting(
        documents,
        pins.identity,
        profiles,
        repairs,
        fan_out_depth,
        bundles,
        open_document=open_document,
        context_budget=pins.callee_context_budget,
        rules=pins.semantics_version,
    )
    return Pinned(pins, document, setting)


def pinned_profiles(agents: Mapping[str, AgentSettings]) -> dict[str, Value]:
    """What a run keeps of the identities that its agents can have."""
    return {name: [one.model or "", one.system, list(one.tools), one.turns] for name, one in agents.items()}


def read_profiles(stored: Mapping[str, Value]) -> dict[str, Profile]:
    """The identities that a run keeps."""
    entries = cast("Mapping[str, tuple[str, str, list[str], int]]", stored)
    return {name: _profile(*entry) for name, entry in entries.items()}


def _profile(model: str, system: str, tools: list[str], turns: int | None = None) -> Profile:
    """Those of 0.1.0 do not say how many turns there are."""
    if turns is None:
        return Profile(model, system, tuple(tools), stops_repetition=False)
    return Profile(model, system, tuple(tools), turns)


def _document(row: RunRow, pins: Pins, text: str) -> Document:
    source = Source.of(text, row.document)
    if row.format == "directive":
        return Document(source, "directive", read_directive(source), ())
    if pins.declared:
        plan = unpinned(pins.declared, pins.key, source)
        return Document(source, "pipeline", plan, (), pins.declared, pins.key)
    return read(source)
