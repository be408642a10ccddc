"""The environment of a pipeline: the documents that it calls, its identity, and its limits; all pinned at the start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.engine.premises import REPAIRS
from quire.engine.pure_work import PureWork
from quire.plan.nodes import SEMANTICS_VERSION, Plan

if TYPE_CHECKING:
    from quire.engine.interpreter.call_document import Opened
    from quire.engine.interpreter.thread.compose import Bundle
    from quire.engine.interpreter.thread.setup import ParentContext


class Profile(Struct, frozen=True):
    """An identity: the model and the system prompt of its agents, their tools, and the settings of their calls."""

    model: str = ""
    system: str = ""
    tools: tuple[str, ...] = ()
    turns: int | None = None
    """None if the profile does not set it."""
    temperature: float | None = None
    max_tokens: int | None = None
    reasoning: str = ""
    timeout: float | None = None
    stops_repetition: bool = True
    """False in runs of 0.1.0, where an agent could make a failing call again and again."""


class Environment(Struct, frozen=True, eq=False):
    """The environment that a walk runs in."""

    documents: Mapping[str, Plan] = field(default_factory=dict)
    """The callees by name, of any format."""
    identity: str = "default"
    profiles: Mapping[str, Profile] = field(default_factory=lambda: {"default": Profile()})
    repairs: int = REPAIRS
    """How often a reply that does not fit its schema is sent back."""
    fan_out_depth: int = 5
    """0 means no limit."""
    bundles: Mapping[str, Bundle] = field(default_factory=dict)
    """The texts of the callees that are directives."""
    above: ParentContext | None = None
    """The bounds of the calling thread; None if no thread calls."""
    open_document: Callable[[str, Environment], Opened] | None = None
    """Reads the documents that a directive among the callees loads when it runs."""
    context_budget: int | None = None
    """Characters of earlier results that the playbooks among the callees send to a model; None for all."""
    work: PureWork = field(default_factory=PureWork)
    """Counts the pure work of the walk in this setting."""
    one_model: bool = False
    """True if the user has named the model: then those that steps of pipelines name do not count."""
    rules: int = SEMANTICS_VERSION
    """The version of the rules of running that the run was started under."""
