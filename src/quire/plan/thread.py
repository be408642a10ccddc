"""A directive as a node of the Plan: an agent that follows a document, with its permissions, limits and hooks.

This is a separate module because the engine composes threads from these parts (a directive with its ancestors, its
hooks with those of the project) before there is a plan to walk.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping

from msgspec import Struct, field

from quire.plan.nodes import StepWork
from quire.plan.vocabulary import THREAD_RULES as THREAD_RULES
from quire.source import NOWHERE, Span

if typing.TYPE_CHECKING:
    from quire.values import Value


THREAD_PATH = "thread"
"""The path of the outermost thread of a run."""


class Permission(Struct, frozen=True):
    """A capability that a directive requests, in its dotted form."""

    capability: str
    span: Span = NOWHERE
    """Where it is in the document."""


class Acknowledgement(Struct, frozen=True):
    """A risk that the author of a directive acknowledges."""

    risk: str
    """A tier: safe, write, elevated or unrestricted."""
    reason: str


class Parameter(Struct, frozen=True):
    """An input or an output of a directive."""

    name: str
    type: str = "string"
    """The type as written in the document."""
    required: bool = False
    default: str | None = None
    """The default as text; None if there is none."""
    description: str = ""

    @property
    def is_needed(self) -> bool:
        """True if a thread does not start without a value for it."""
        return self.required and self.default is None


class HookAction(Struct, frozen=True):
    """An action that a hook requests. The texts in `parameters` and the item's id may contain `${…}`."""

    primary: str
    item_type: str
    item_id: str
    parameters: tuple[tuple[str, Value], ...] = ()


class Hook(Struct, frozen=True):
    """A reaction of a directive or a project to an event of a thread."""

    id: str
    event: str
    condition: Mapping[str, Value]
    """The JSON form: `{path, op, value}`, `{any: […]}`, `{all: […]}` or `{not: …}`. An empty condition always holds."""
    actions: tuple[HookAction, ...]
    position: str = "before"
    """Where the text of a `thread_started` hook goes: `system`, `before` or `after`."""
    origin: str = ""
    """The id of the directive, or the file, that declares the hook."""
    span: Span = NOWHERE


class Context(Struct, frozen=True):
    """Ids of knowledge items, grouped by the place where their text goes."""

    system: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    suppress: tuple[str, ...] = ()
    """Ids that are left out everywhere."""


class Thread(StepWork, frozen=True):
    """An agent that follows a document: the content of one directive, without its ancestors."""

    name: str
    version: str = ""
    description: str = ""
    category: str = ""
    author: str = ""
    extends: str = ""
    permissions: tuple[Permission, ...] = ()
    permissions_text: str = ""
    """The element as it is in the file, for the model."""
    acknowledged: tuple[Acknowledgement, ...] = ()
    model: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, Value] = field(default_factory=dict)
    """Limits by canonical name, including those of `<cost>`.

    The names are `turns`, `tokens`, `spend`, `spend_currency`, `spawns`, `depth` and `duration_seconds`.
    """
    inputs: tuple[Parameter, ...] = ()
    outputs: tuple[Parameter, ...] = ()
    success: str = ""
    failure: str = ""
    hooks: tuple[Hook, ...] = ()
    context: Context = Context()
    body: str = ""
    """The text after the fence."""
    inside: str = ""
    """The process and the criteria that are inside the fence, as text; action elements are written as calls."""
    has_permissions: bool = False
    """True if there is a permissions block. An empty block grants nothing."""
    problems: tuple[str, ...] = ()
    """Reasons why the thread cannot start, besides invalid values of single limits."""
    asks_model: typing.ClassVar[bool] = True

    def grants_itself(self, rules: int = THREAD_RULES) -> bool:
        """Tell whether the thread's own permissions apply, rather than those of an ancestor."""
        return bool(self.permissions) or (self.has_permissions and rules > 1)
