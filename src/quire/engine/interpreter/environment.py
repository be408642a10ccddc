"""What a pipeline runs in: the documents that it calls, who it runs as, and its limits; all pinned at the start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.pure_work import PureWork
from quire.plan.nodes import SEMANTICS_VERSION, Plan

if TYPE_CHECKING:
    from quire.engine.interpreter.call_document import Opened
    from quire.engine.interpreter.thread.compose import Bundle
    from quire.engine.interpreter.thread.setup import Above

MAX_TURNS = 25


class Profile(Struct, frozen=True):
    """An identity: the model and the system prompt that its agents have, the tools that they may use, and for how many
    turns. `stops_repetition` is false in runs of 0.1.0, where an agent could make a failing call again and again."""

    model: str = ""
    system: str = ""
    tools: tuple[str, ...] = ()
    turns: int = MAX_TURNS
    stops_repetition: bool = True


@dataclass(frozen=True, slots=True)
class Setting:
    """`documents` are the callees by name, of any format; `bundles` the texts of those that are directives.

    `repairs` is how often a reply that does not fit its schema is sent back. `fan_out_depth` of 0 sets no limit.

    `above` is the thread that called, None where no thread did. `open_document` reads what a directive among the
    callees loads when it runs. `work` counts what the walk in this setting computes. `rules` is the version of the
    rules of running that the run was started under.
    """

    documents: Mapping[str, Plan] = field(default_factory=dict)
    identity: str = "default"
    profiles: Mapping[str, Profile] = field(default_factory=lambda: {"default": Profile()})
    repairs: int = 2
    fan_out_depth: int = 5
    bundles: Mapping[str, Bundle] = field(default_factory=dict)
    above: Above | None = None
    open_document: Callable[[str, Setting], Opened] | None = None
    context_budget: int | None = None
    """How many characters of earlier results the playbooks among the callees tell a model; None for all."""
    work: PureWork = field(default_factory=PureWork, compare=False)
    rules: int = SEMANTICS_VERSION
