"""Hooks of a directive in words: when they act, under which condition, and what they can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.directive.completion_values import declared_inputs, declared_outputs
from quire.lsp.directive.hook_values import EVENTS, paths_of
from quire.lsp.directive.tags import scan
from quire.lsp.markdown import code

if TYPE_CHECKING:
    from quire.formats.directive.syntax import Hook
    from quire.lsp.answers import Name
    from quire.lsp.directive.tags import Tagged
    from quire.lsp.views import View

_SHOWN = 20


def hook_markdown(view: View, tag: Tagged) -> str:
    """Return what a hook does, or the hook around a condition, to be put behind the meaning of the element."""
    around = tag if tag.tag == "hook" else next((one for one in tag.around() if one.tag == "hook"), None)
    if around is None:
        return ""
    text = view.source.text
    event = around.value("event")
    lines = [f"\n\n**when**: {_event(event)}"]
    found = hook_of(view, around.start)
    if found is not None:
        lines.append(f"**if**: {condition_of(found) or 'always'}")
        if actions := _actions(found):
            lines.append(f"**then**: {actions}")
    paths = paths_of(event, declared_inputs(text), declared_outputs(text))
    readable = ", ".join(code(one) for one in list(paths)[:_SHOWN])
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    lines.append(f"Conditions and `${{…}}` can read {readable}{more}.")
    return "\n\n".join(lines)


def hook_named(view: View, name: Name) -> str:
    """Return what the hook of a name does. It may be one of a directive that this one extends."""
    home = view.folder.view(name.document) if name.document else view
    tags = scan(home.source.text).tags if home else ()
    tag = next((one for one in tags if one.tag == "hook" and one.value("id") == name.text), None)
    if home is None or tag is None:
        return f"**hook** {code(name.text)}\n\nNo directive of the chain has it."
    return f"**hook** {code(name.text)}{hook_markdown(home, tag)}"


def hook_of(view: View, start: int) -> Hook | None:
    """Return the hook whose element begins at an offset, as far as it could be read."""
    hooks: tuple[Hook, ...] = view.reading.partial.hooks
    return next((one for one in hooks if one.span.start == start), None)


def condition_of(hook: Hook) -> str:
    from quire.display.outline_directive import condition_words
    from quire.formats.directive.lower import condition

    return condition_words(condition(hook.tests))


def _event(event: str) -> str:
    if not event:
        return "it has no event, so it never acts"
    return f"{code(event)}, {EVENTS[event]}" if event in EVENTS else f"{code(event)}, which is not sent here"


def _actions(hook: Hook) -> str:
    parts = []
    for one in hook.actions:
        given = ", ".join(f"{name} = {value}" for name, value in one.parameters[:4])
        what = f"{one.primary} {one.attribute('item_type')} {one.attribute('item_id')}"
        parts.append(code(what) + (f" with {code(given)}" if given else ""))
    return "; ".join(parts)
