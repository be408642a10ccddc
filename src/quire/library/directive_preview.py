"""The plans of directives with everything that they inherit, for estimates before a run. Nothing is verified.

A directive is composed when it runs: its own limits, model and inputs, the permissions of the nearest ancestor that has
some, the context of all ancestors, and their hooks with those of the project. An ancestor that is missing, broken or
circular stays named in `extends`: its additions are not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.engine.interpreter.thread.hooks import in_order, read_hooks_yaml
from quire.errors import QuireError
from quire.library.verify import read_thread
from quire.plan.nodes import Plan, Sequence
from quire.plan.thread import Context
from quire.source import read_source
from quire.workspace.consent import HOOKS

if TYPE_CHECKING:
    from quire.library.items import Spaces
    from quire.plan.thread import Hook, Thread
    from quire.workspace.settings import Settings


def composed_plan(plan: Plan, spaces: Spaces, project: tuple[Hook, ...] = ()) -> Plan:
    """Return the plan of a directive with the permissions and hooks that it inherits, and the hooks of the project;
    the plan of any other format as it is."""
    leaf = plan.thread
    if leaf is None:
        return plan
    chain, missing = _chain(leaf, spaces)
    granting = next((thread for thread in chain if thread.grants_itself()), leaf)
    whole = replace(
        leaf,
        extends=missing,
        permissions=granting.permissions,
        permissions_text=granting.permissions_text,
        has_permissions=granting.has_permissions,
        hooks=in_order(*(thread.hooks for thread in reversed(chain)), project),
        context=_context(chain),
    )
    steps = tuple(replace(step, work=whole) if step.work is leaf else step for step in plan.body.steps)
    return replace(plan, body=Sequence(steps))


def _context(chain: list[Thread]) -> Context:
    """Return the context of a directive and all of its ancestors, leaf first, without what one of them suppresses."""
    contexts = [thread.context for thread in reversed(chain)]
    left_out = dict.fromkeys(item for context in contexts for item in context.suppress)
    return Context(
        tuple(item for context in contexts for item in context.system if item not in left_out),
        tuple(item for context in contexts for item in context.before if item not in left_out),
        tuple(item for context in contexts for item in context.after if item not in left_out),
        tuple(left_out),
    )


def read_project_hooks(settings: Settings) -> tuple[tuple[Hook, ...], str, tuple[str, ...]]:
    """Return the hooks that the project adds to every directive, their text, and what is wrong with others in it.
    Raises `Unreadable`."""
    file = settings.workspace.folder / HOOKS
    if not file.is_file():
        return (), "", ()
    text = read_source(file).text
    hooks, problems = read_hooks_yaml(text, HOOKS)
    return hooks, text, problems


def _chain(leaf: Thread, spaces: Spaces) -> tuple[list[Thread], str]:
    """Return the directive and its ancestors, leaf first, and the ancestor that could not be followed, if any."""
    chain, followed = [leaf], set[str]()
    while name := chain[-1].extends.strip():
        try:
            item = spaces.find("directive", name) if name not in followed else None
            if item is None:
                return chain, name
            chain.append(read_thread(item))
        except QuireError:
            return chain, name
        followed.add(name)
    return chain, ""
