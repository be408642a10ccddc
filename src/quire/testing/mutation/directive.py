"""Edits of the thread of a directive: permissions, limits, hooks, outputs, knowledge and references to inputs.

The text of the permissions that the model reads stays as it is: only what the thread may do changes, so that only a
call or a refusal can show it.

Known equivalences, for which no edit is made: dropping a permission that another one covers, widening one where
everything is granted already, dropping a limit whose value is the default, and negating a condition that always holds,
which is the same as dropping the hook.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.engine.interpreter.thread.limits import DEFAULTS
from quire.plan.built_in_tools import BUILT_IN_TOOLS, SHELL
from quire.plan.templates import references
from quire.testing.mutation.edits import Edit
from quire.testing.mutation.kills import Kill
from quire.trust.capabilities import Grants, capability

if TYPE_CHECKING:
    from quire.plan.nodes import Step
    from quire.plan.thread import Hook, Thread
    from quire.testing.mutation.edits import Site

EVERYTHING = "*"
_FIRST_TURN = "turn 1"


def directive_edits(site: Site, thread: Thread) -> Iterator[Edit]:
    """Yield every edit of a thread."""
    yield from _permissions(site, thread)
    yield from _limits(site, thread)
    yield from _hooks(site, thread)
    for number, output in enumerate(thread.outputs):
        if output.required:
            outputs = (*thread.outputs[:number], replace(output, required=False), *thread.outputs[number + 1 :])
            yield Edit(
                "make_optional",
                output.name,
                f"does not require the output {output.name}",
                _with(site, replace(thread, outputs=outputs)),
                Kill("error", value=output.name),
                site.find(f'"{output.name}"'),
            )
    yield from _knowledge(site, thread)
    yield from _references(site, thread)


def _with(site: Site, thread: Thread) -> Step:
    return replace(site.step, work=thread)


def _permissions(site: Site, thread: Thread) -> Iterator[Edit]:
    granted = Grants.of(one.capability for one in thread.permissions)
    for number, permission in enumerate(thread.permissions):
        others = thread.permissions[:number] + thread.permissions[number + 1 :]
        detail, span = permission.capability, permission.span
        if not Grants.of(one.capability for one in others).covers(permission.capability):
            yield Edit(
                "drop_permission",
                detail,
                f"drops the permission {permission.capability}",
                _with(site, replace(thread, permissions=others)),
                Kill("refused"),
                span,
            )
        if not granted.covers(EVERYTHING):
            wider = (*thread.permissions[:number], replace(permission, capability=EVERYTHING))
            yield Edit(
                "widen_permission",
                detail,
                f"widens the permission {permission.capability} to {EVERYTHING}",
                _with(site, replace(thread, permissions=(*wider, *thread.permissions[number + 1 :]))),
                Kill("refused", value=_not_granted(granted)),
                span,
            )


def _not_granted(granted: Grants) -> str:
    """Return the capability of a tool that the thread must not use: the shell, or the first built-in one."""
    tools = (SHELL, *(tool.id for tool in BUILT_IN_TOOLS))
    named = (capability("execute", "tool", tool) for tool in tools)
    return next((one for one in named if not granted.covers(one)), "<a capability that it must not have>")


def _limits(site: Site, thread: Thread) -> Iterator[Edit]:
    for name, value in thread.limits.items():
        if name == "spend_currency" or value == DEFAULTS.get(name):
            continue
        limits = {other: amount for other, amount in thread.limits.items() if other != name}
        yield Edit(
            "drop_limit",
            name,
            f"drops the limit {name}, which is {value}",
            _with(site, replace(thread, limits=limits)),
            Kill("error", value=f"limit reached: {name}"),
            site.find(name),
        )


def _hooks(site: Site, thread: Thread) -> Iterator[Edit]:
    for number, hook in enumerate(thread.hooks):
        name = hook.id or f"{hook.event}.{number}"
        others = thread.hooks[:number] + thread.hooks[number + 1 :]
        kill = Kill("hooks", hook.id)
        sentence = f"drops the hook {name} at {hook.event}"
        yield Edit("drop_hook", name, sentence, _with(site, replace(thread, hooks=others)), kill, hook.span)
        if hook.condition:
            hooks = (*thread.hooks[:number], _negated(hook), *thread.hooks[number + 1 :])
            sentence = f"negates the condition of the hook {name}"
            yield Edit("negate_condition", name, sentence, _with(site, replace(thread, hooks=hooks)), kill, hook.span)


def _negated(hook: Hook) -> Hook:
    inner = hook.condition.get("not") if len(hook.condition) == 1 else None
    return replace(hook, condition=inner if isinstance(inner, dict) else {"not": dict(hook.condition)})


def _knowledge(site: Site, thread: Thread) -> Iterator[Edit]:
    for place in ("system", "before", "after"):
        ids: tuple[str, ...] = getattr(thread.context, place)
        for number, item in enumerate(ids):
            context = replace(thread.context, **{place: ids[:number] + ids[number + 1 :]})
            yield Edit(
                "drop_knowledge",
                f"{place}.{item}",
                f"drops the knowledge {item} from {place}",
                _with(site, replace(thread, context=context)),
                Kill("prompts", _FIRST_TURN),
                site.find(item),
            )


def _references(site: Site, thread: Thread) -> Iterator[Edit]:
    """Yield edits that drop a reference to an input from the text of the directive."""
    for name in ("body", "inside"):
        text: str = getattr(thread, name)
        for number, reference in enumerate(references(text)):
            span = reference.span
            written = text[span.start : span.end]
            fewer = text[: span.start] + text[span.end :]
            yield Edit(
                "drop_reference",
                f"{name}.{reference.name}.{number}",
                f"drops {written} from the text",
                _with(site, replace(thread, **{name: fewer})),
                Kill("prompts", _FIRST_TURN, reference.name),
                site.find(written),
            )
