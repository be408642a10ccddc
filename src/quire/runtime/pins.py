"""What a run holds on to from its start: an edit on disk never changes a run under way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import cast

from quire.errors import RunState
from quire.plan.nodes import KNOWN_VERSIONS, SEMANTICS_VERSION
from quire.runtime.pin_shapes import misshapen_pin
from quire.values import Value


@dataclass(frozen=True, slots=True)
class Pins:
    """`document` is the sha256 of the text; `folder` is where its files are looked for.

    `grants` are the capabilities of the start: on resume a run has those of them that are still granted. `budget` and
    `limits`, those of the outermost thread, are the user's own: `quire.runtime.agreed` has what was given since.
    `callees` are the documents that this one can call, by name, with their hashes; `profiles` the identities that its
    agents can have. `model` is empty where no step asks one. Whoever is
    named by `reply_to` gets a letter when the run ends. `declared` and `key` are those of `Document`. `bundle` is the
    sha256 of all that a directive is composed from, `keys` are those that signed it; with `one_model` every thread asks
    the run's own model, whatever its directive says. `origin`
    says which run this one was forked from and where; `imported` that it comes from a file, and as what. `instead` is
    a model that is asked in place of every other: requests go on naming those that they named. `queue` is
    the task queue of the cluster that has the run; it is empty where whoever starts a run also drives it. `out` is
    where its output was to be written when it was started. `warnings` are what the look before the start found that may
    not work.
    """

    document: str
    folder: str | None
    model: str
    inputs: Mapping[str, Value]
    breakpoints: tuple[str, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    unattended: bool = False
    allow: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()
    budget: float | None = None
    context_budget: int | None = None
    callee_context_budget: int | None = None
    """The same for the playbooks that are called. None in runs of 0.1.0, which told them everything."""
    callees: Mapping[str, Value] = field(default_factory=dict)
    identity: str = "default"
    profiles: Mapping[str, Value] = field(default_factory=dict)
    reply_to: str = ""
    declared: str = ""
    key: str = ""
    bundle: str = ""
    keys: tuple[str, ...] = ()
    one_model: bool = False
    limits: Mapping[str, Value] = field(default_factory=dict)
    origin: Mapping[str, Value] = field(default_factory=dict)
    imported: Mapping[str, Value] = field(default_factory=dict)
    instead: str = ""
    queue: str = ""
    out: str = ""
    warnings: tuple[str, ...] = ()
    semantics_version: int = SEMANTICS_VERSION

    def as_json(self) -> dict[str, Value]:
        return cast("dict[str, Value]", asdict(self))

    @classmethod
    def of(cls, stored: Mapping[str, Value]) -> Pins:
        """Raises `RunState` for what `as_json` has not written."""
        if wrong := misshapen_pin(stored):
            raise RunState(f"the run cannot be read: what it was started with has no proper {wrong!r}")
        known = {name: stored[name] for name in cls.__dataclass_fields__ if name in stored}
        known.setdefault("semantics_version", KNOWN_VERSIONS[0])
        for name in ("breakpoints", "allow", "grants", "keys", "warnings"):
            known[name] = tuple(cast("list[str]", known.get(name, [])))
        return cls(**known)  # type: ignore[arg-type]  # written by `as_json`
