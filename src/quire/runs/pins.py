"""Pins: everything that a run holds on to from its start, so that an edit on disk never changes a run under way.

This module checks the shape of stored pins, which may come from a file or a store that others wrote, and reads a run
back from them: its document, all documents that this one can call, and the walk through them.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never, cast

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from quire.engine.interpreter.callees import Environment, Profile, opener
from quire.engine.records import Status
from quire.errors import RunState
from quire.library.callees import callee_from_pin, document_from_pin
from quire.library.texts import open_document
from quire.models.choose import NO_SETTINGS, CallSettings
from quire.plan.nodes import KNOWN_VERSIONS, SEMANTICS_VERSION, Plan
from quire.plan.vocabulary import is_named, typed_way
from quire.source import Source
from quire.trust.capabilities import Grants
from quire.values import Value

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.compose import Bundle
    from quire.engine.interpreter.thread.setup import Setup
    from quire.engine.premises import PureWork
    from quire.engine.records import RunRow
    from quire.engine.requests import Walk
    from quire.library.document import Document
    from quire.workspace.settings import AgentSettings


Shape: TypeAlias = Callable[[Value], bool]

_LIST = (list, tuple)  # Python would build a union anew each time that it is asked for.


def _is_a(kind: type) -> Shape:
    return lambda value: isinstance(value, kind)


_is_text, _is_flag, _is_map = _is_a(str), _is_a(bool), _is_a(Mapping)


def _is_count(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def _is_amount(value: Value) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -(1 << 53) < value < 1 << 53 and math.isfinite(value)


def _or_none(shape: Shape) -> Shape:
    return lambda value: value is None or shape(value)


def _are_texts(value: Value) -> bool:
    return isinstance(value, _LIST) and all(map(_is_text, value))


def _is_map_of(shape: Shape) -> Shape:
    return lambda value: isinstance(value, Mapping) and all(map(shape, value.values()))


_CALL_SETTINGS: Mapping[str, Shape] = {
    "temperature": _is_amount,
    "max_tokens": _is_count,
    "reasoning": _is_text,
    "timeout": _is_amount,
}


def _are_call_settings(value: Value) -> bool:
    return isinstance(value, Mapping) and all(
        name in _CALL_SETTINGS and _CALL_SETTINGS[name](setting) for name, setting in value.items()
    )


def _is_profile(value: Value) -> bool:
    if not isinstance(value, _LIST) or not 3 <= len(value) <= 5:
        return False
    if not (_are_texts(value[:2]) and _are_texts(value[2]) and all(map(_or_none(_is_count), value[3:4]))):
        return False
    return len(value) < 5 or _are_call_settings(value[4])


def _is_step_model(value: Value) -> bool:
    if not isinstance(value, _LIST) or len(value) != 5:
        return False
    return _are_texts(value[:3]) and _are_texts(value[3]) and _or_none(_is_count)(value[4])


SHAPES: Mapping[str, Shape] = {
    "document": _is_text,
    "folder": _or_none(_is_text),
    "model": _is_text,
    "model_settings": _are_call_settings,
    "inputs": _is_map,
    "breakpoints": _are_texts,
    "answers": _is_map_of(_is_text),
    "unattended": _is_flag,
    "allow": _are_texts,
    "grants": _are_texts,
    "budget": _or_none(_is_amount),
    "context_budget": _or_none(_is_count),
    "callee_context_budget": _or_none(_is_count),
    "callees": _is_map_of(_is_map_of(_is_text)),
    "identity": _is_text,
    "profiles": _is_map_of(_is_profile),
    "reply_to": _is_text,
    "declared": _is_text,
    "key": _is_text,
    "bundle": _is_text,
    "keys": _are_texts,
    "one_model": _is_flag,
    "limits": _is_map_of(lambda value: value is None or _is_text(value) or _is_amount(value)),
    "origin": _is_map,
    "imported": _is_map,
    "instead": _is_text,
    "queue": _is_text,
    "out": _is_text,
    "door": _is_text,
    "reuse": _is_text,
    "shelf": _is_flag,
    "warnings": _are_texts,
    "steps": _is_map_of(_is_map_of(_is_step_model)),
    "semantics_version": _is_count,
    "files": _is_map_of(_is_text),
    "reply_tokens": _or_none(_is_count),
    "proven": _is_map_of(_is_amount),
    "forced": _are_texts,
    "until": _is_text,
    "source": _is_text,
    "lane": _is_text,
    "trace": _is_text,
}
"""The shape of each pin by name. Other names are not checked."""

_LEFT_OUT = ("reuse", "model_settings", "shelf", "steps", "proven", "forced", "until", "source", "lane", "trace")
"""Pins that are stored only if they are set, as most runs have none of them."""

NEEDED = ("document", "folder", "model", "inputs")


def misshapen_pin(stored: Mapping[str, Value]) -> str:
    """Return the name of the first pin that is missing or has the wrong shape; empty if all are right."""
    for name in NEEDED:
        if name not in stored:
            return name
    for name, value in stored.items():
        shape = SHAPES.get(name)
        if shape is not None and not shape(value):
            return name
    return ""


class PinnedState(Struct, frozen=True):
    """The pins of a run, as they were at its start. `quire.runs.drives` has the changes since."""

    document: str
    """The sha256 of the text."""
    folder: str | None
    """The folder in which files of the document are looked up."""
    model: str
    """Empty if no step calls a model."""
    inputs: Mapping[str, Value]
    breakpoints: tuple[str, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    unattended: bool = False
    allow: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()
    """The capabilities at the start; on resume the run has those of them that are still granted."""
    budget: float | None = None
    """The user's own budget for the run."""
    context_budget: int | None = None
    """The number of characters of earlier results that a model is given."""
    callee_context_budget: int | None = None
    """The same for playbooks that are called. None in runs of 0.1.0, which gave them everything."""
    callees: Mapping[str, Value] = field(default_factory=dict)
    """The documents that this one can call, by name, with their hashes."""
    identity: str = "default"
    profiles: Mapping[str, Value] = field(default_factory=dict)
    """The identities that its agents can have."""
    reply_to: str = ""
    """The recipient of a letter when the run ends."""
    declared: str = ""
    """See `Document`."""
    key: str = ""
    bundle: str = ""
    """The sha256 of all texts that a directive is composed from."""
    keys: tuple[str, ...] = ()
    """The ids of the keys that signed the directive."""
    one_model: bool = False
    """If true, every thread uses the run's own model, and its directive's choice is ignored."""
    limits: Mapping[str, Value] = field(default_factory=dict)
    """The user's own limits of the outermost thread."""
    origin: Mapping[str, Value] = field(default_factory=dict)
    """The run from which this one was forked, and the step."""
    imported: Mapping[str, Value] = field(default_factory=dict)
    """Not empty if the run comes from a file; contains the status it had there."""
    instead: str = ""
    """A model that is called in place of every other. Requests keep the names of the original models."""
    queue: str = ""
    """The task queue of the cluster that has the run; empty if the process that starts it also drives it."""
    out: str = ""
    """The place for the output, as given at the start."""
    warnings: tuple[str, ...] = ()
    """Warnings of the check before the start."""
    steps: Mapping[str, Value] = field(default_factory=dict)
    """The models of the steps of playbooks, by called document and path; the name of the document itself is empty."""
    door: str = ""
    """See `RunOptions`."""
    reuse: str = ""
    """The run whose replies are taken; empty for most runs."""
    model_settings: Mapping[str, Value] = field(default_factory=dict)
    """Settings of the tier that the run's own model was chosen by."""
    shelf: bool = False
    """True for a document of the user's document list: its names mean documents and prompts of that list."""
    semantics_version: int = SEMANTICS_VERSION
    files: Mapping[str, str] = field(default_factory=dict)
    """The texts of the prompt files that agents name (`!file`), by name."""
    reply_tokens: int | None = None
    """The longest reply where an agent or tier sets none. None in runs that were started before there was one."""
    proven: Mapping[str, Value] = field(default_factory=dict)
    """`ProvenBounds` of the run as it was started."""
    forced: tuple[str, ...] = ()
    """Codes of findings that would have stopped the run."""
    until: str = ""
    """The path of the step after which a try ends; empty for other runs."""
    source: str = ""
    """Its origin, unless a person started it at a terminal: `id`, `trigger:NAME`, `token:NAME` or `person:NAME`."""
    lane: str = ""
    trace: str = ""
    """The `traceparent` of the work that started the run."""

    def settings_of(self, spec: str) -> CallSettings:
        """Return the settings of the run's own model; none for one that is called in its place."""
        return CallSettings(**cast("dict[str, Any]", self.model_settings)) if spec == self.model else NO_SETTINGS

    def as_json(self) -> dict[str, Value]:
        stored = cast("dict[str, Value]", asdict(self))
        return {name: value for name, value in stored.items() if value or name not in _LEFT_OUT}

    @classmethod
    def of(cls, stored: Mapping[str, Value]) -> PinnedState:
        """Read stored pins. Raises `RunState` for anything that `as_json` would not write."""
        if wrong := misshapen_pin(stored):
            raise RunState(f"the run cannot be read: its start record has no valid {wrong!r}")
        pins = {name: stored[name] for name in cls.__struct_fields__ if name in stored}
        pins.setdefault("semantics_version", KNOWN_VERSIONS[0])
        for name in ("breakpoints", "allow", "grants", "keys", "warnings", "forced"):
            pins[name] = tuple(cast("list[str]", pins.get(name, [])))
        return cls(**pins)  # type: ignore[arg-type]  # written by `as_json`


Texts: TypeAlias = Callable[[str], Awaitable[str]]


class PinnedRun(Struct, frozen=True):
    pins: PinnedState
    document: Document
    setting: Environment

    @property
    def plan(self) -> Plan:
        return self.document.runnable()

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plan of the document, and those of all documents that it can call."""
        return (self.plan, *self.setting.documents.values())

    @property
    def bundle(self) -> Bundle | None:
        """The texts that the directive is composed from; None for other formats."""
        return self.setting.bundles.get("")

    def walk(self, work: PureWork) -> Walk:
        """Return the walk through the document from its start; the driver answers recorded effects from the journal.
        Pure work is counted in `work`."""
        walk = self._walk(replace(self.setting, work=work))
        if not self.pins.until:
            return walk
        from quire.engine.interpreter.until import ends_after

        temperature = self.pins.origin.get("temperature")
        return ends_after(walk, self.pins.until, temperature if isinstance(temperature, int | float) else None)

    def _walk(self, setting: Environment) -> Walk:
        pins = self.pins
        match self.plan.format:
            case "pipeline":
                from quire.engine.interpreter.pipeline.interpret import interpret_pipeline

                return interpret_pipeline(self.plan, pins.inputs, setting)
            case "directive":
                from quire.engine.interpreter.thread.loop import interpret_directive

                return interpret_directive(self._thread(setting))
            case "playbook":
                from quire.engine.interpreter.playbook.interpret import interpret

                inputs = cast("Mapping[str, str]", pins.inputs)
                return interpret(self.plan, inputs, context_budget=pins.context_budget, setting=setting)
            case _:
                assert_never(self.plan.format)

    def with_plan(self, plan: Plan) -> PinnedRun:
        """Return the same run of another plan."""
        return replace(self, document=replace(self.document, plan=plan))

    def thread(self, work: PureWork | None = None) -> Setup | None:
        """Return the outermost thread as it starts; None if the document is not a directive."""
        setting = self.setting if work is None else replace(self.setting, work=work)
        return self._thread(setting) if self.plan.thread else None

    def _thread(self, setting: Environment) -> Setup:
        from quire.engine.interpreter.thread.setup import ParentContext, set_up
        from quire.plan.thread import THREAD_PATH

        pins = self.pins
        return set_up(
            setting.bundles[""],
            pins.inputs,
            THREAD_PATH,
            overrides=pins.limits,
            above=ParentContext(Grants.of(pins.grants), open_document=opener(setting)),
        )


async def read_pinned(text: Texts, row: RunRow, *, repairs: int, fan_out_depth: int) -> PinnedRun:
    """Read a run from its pins; `text` returns a pinned text by its hash. Raises `RunState` for a run with unknown
    rules or unreadable documents."""
    pins = PinnedState.of(row.pins)
    if pins.semantics_version not in KNOWN_VERSIONS:
        raise RunState(
            f"run {row.id} was started under version {pins.semantics_version} of the rules of running; "
            f"this Quire knows the versions {' and '.join(map(str, KNOWN_VERSIONS))}"
        )
    documents: dict[str, Plan] = {}
    bundles: dict[str, Bundle] = {}
    try:
        source = Source.of(await text(pins.document), row.document)
        document = document_from_pin(source, row.format, pins.declared, pins.key, pins.semantics_version)
        for name, stored in pins.callees.items():
            callee = cast("Mapping[str, str]", stored)
            documents[name], bundle = callee_from_pin(callee, await text(callee["sha256"]), pins.semantics_version)
            if bundle is not None:
                bundles[name] = bundle
        if pins.steps:
            document = _with_step_models(document, documents, pins.steps)
        if pins.bundle:
            from quire.engine.interpreter.thread.compose import Bundle

            bundles[""] = Bundle.of(await text(pins.bundle))
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
        # The run may come from a file or a store that others wrote: its texts need not match its pins.
        raise RunState(f"the documents of run {row.id} cannot be read: {type(error).__name__} {error}") from None
    if document.format == "playbook" and not all(isinstance(value, str) for value in pins.inputs.values()):
        raise RunState(f"the inputs of run {row.id} are not those of a playbook, which are texts")
    if document.format == "directive" and "" not in bundles:
        raise RunState(f"run {row.id} has no text of its directive")
    profiles = read_profiles(pins.profiles)
    setting = Environment(
        documents,
        pins.identity,
        profiles,
        repairs,
        fan_out_depth,
        bundles,
        open_document=open_document,
        context_budget=pins.callee_context_budget,
        one_model=pins.one_model,
        rules=pins.semantics_version,
    )
    return PinnedRun(pins, document, setting)


def _with_step_models(document: Document, documents: dict[str, Plan], steps: Mapping[str, Value]) -> Document:
    """Give the steps of the playbooks of a run their models."""
    from quire.library.step_models import read_step_models, with_step_models

    for name, stored in steps.items():
        models = read_step_models(stored)
        if not name:
            document = replace(document, plan=with_step_models(document.runnable(), models))
        elif name in documents:
            documents[name] = with_step_models(documents[name], models)
    return document


def pinned_profiles(agents: Mapping[str, AgentSettings]) -> dict[str, Value]:
    """Return the identities that its agents can have, in the form in which a run pins them."""
    return {
        name: [settings.model or "", settings.system, list(settings.tools), settings.turns, settings.call.as_value()]
        for name, settings in agents.items()
    }


def read_profiles(stored: Mapping[str, Value]) -> dict[str, Profile]:
    """Return the identities that a run has pinned. Those of 0.1.0 do not contain the number of turns."""
    entries = cast("Mapping[str, list[Any]]", stored)
    return {
        name: Profile(
            entry[0],
            entry[1],
            tuple(entry[2]),
            entry[3] if len(entry) > 3 else None,
            **(entry[4] if len(entry) > 4 else {}),
            stops_repetition=len(entry) > 3,
        )
        for name, entry in entries.items()
    }


def at_breakpoint(row: RunRow) -> bool:
    """Return True if the run is paused at a breakpoint of its user."""
    breakpoints = [typed_way(label) for label in PinnedState.of(row.pins).breakpoints]
    return row.status is Status.PAUSED and row.wake_at is None and is_named(row.position, breakpoints)


def starts_now(row: RunRow) -> bool:
    """Tell whether a run that was just asked for is to be driven. One that the same request has started earlier may
    have an owner, wait, or have ended."""
    paused = row.status is Status.PAUSED and not at_breakpoint(row)
    return paused or row.status in (Status.PENDING, Status.INTERRUPTED)
