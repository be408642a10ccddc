"""What a directive says, as a node of the Plan: an agent that follows a document, and all that it is held to.

It has a room of its own because the engine composes threads from these parts (a directive with its ancestors, its
hooks with those of the project) long before there is a plan to walk.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping

from msgspec import Struct, field

from quire.source import NOWHERE, Span

if typing.TYPE_CHECKING:
    from quire.values import Value


THREAD_PATH = "thread"
"""The path of the outermost thread of a run."""

THREAD_RULES = 2
"""The rules that threads follow. 1 are those of 0.1.0: there an empty `<permissions>` block inherited, hooks at
`directive_return` let through what they could not judge, and texts were filled in differently. A bundle keeps the
number that it was made under, so a recorded thread replays as it ran."""


class Permission(Struct, frozen=True):
    """A capability that a directive asks for, in its dotted form. `span` is where it stands."""

    capability: str
    span: Span = NOWHERE


class Acknowledgement(Struct, frozen=True):
    """`risk` is the tier that the author knows about: safe, write, elevated or unrestricted."""

    risk: str
    reason: str


class Parameter(Struct, frozen=True):
    """An input or an output of a directive. `type` is as written; `default` is text, None where there is none."""

    name: str
    type: str = "string"
    required: bool = False
    default: str | None = None
    description: str = ""


class HookAction(Struct, frozen=True):
    """What a hook asks for. `parameters` may hold `${…}` in their texts and in the item's id."""

    primary: str
    item_type: str
    item_id: str
    parameters: tuple[tuple[str, Value], ...] = ()


class Hook(Struct, frozen=True):
    """`condition` is in its JSON form: `{path, op, value}`, `{any: […]}`, `{all: […]}`, `{not: …}`; empty always holds.

    `position` says where the text goes that a `thread_started` hook brings: `system`, `before` or `after`. `origin` is
    the id of the directive, or the file, that declares the hook.
    """

    id: str
    event: str
    condition: Mapping[str, Value]
    actions: tuple[HookAction, ...]
    position: str = "before"
    origin: str = ""
    span: Span = NOWHERE


class Context(Struct, frozen=True):
    """Ids of knowledge items, by where their text goes; `suppress` are those that are left out everywhere."""

    system: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    suppress: tuple[str, ...] = ()


class Thread(Struct, frozen=True):
    """An agent that follows a document: what one directive says by itself, before its ancestors are looked at.

    `permissions_text` is the element as it stands in the file, for the model; `has_permissions` is true where the block
    is there, even an empty one, which grants nothing. `limits` holds the canonical names
    (`turns`, `tokens`, `spend`, `spend_currency`, `spawns`, `depth`, `duration_seconds`), those of `<cost>`
    included. `body` is the text after the fence; `inside` the process and the criteria that stand in the fence, as text
    with action elements written as calls.
    """

    name: str
    version: str = ""
    description: str = ""
    category: str = ""
    author: str = ""
    extends: str = ""
    permissions: tuple[Permission, ...] = ()
    permissions_text: str = ""
    acknowledged: tuple[Acknowledgement, ...] = ()
    model: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, Value] = field(default_factory=dict)
    inputs: tuple[Parameter, ...] = ()
    outputs: tuple[Parameter, ...] = ()
    success: str = ""
    failure: str = ""
    hooks: tuple[Hook, ...] = ()
    context: Context = Context()
    body: str = ""
    inside: str = ""
    has_permissions: bool = False
    problems: tuple[str, ...] = ()
    """What keeps it from starting, beyond the values of single limits."""

    def grants_itself(self, rules: int = THREAD_RULES) -> bool:
        """Whether its own permissions count, and not those of an ancestor."""
        return bool(self.permissions) or (self.has_permissions and rules > 1)
