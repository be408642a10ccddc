"""Explain the place under the cursor of a directive: elements, permissions, hooks, limits, ids, inputs and calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.answers import Hover, code
from quire.lsp.directive.elements import is_limit, meaning_of
from quire.lsp.directive.grants import permission_at, permission_markdown, permissions_markdown
from quire.lsp.directive.hooks import EVENTS, OPERATOR_MEANINGS, hook_markdown, hook_named, path_meaning
from quire.lsp.directive.instruction_calls import call_markdown, spelled_calls
from quire.lsp.directive.item_words import (
    item_markdown,
    limit_markdown,
    limits_markdown,
    model_markdown,
    parameter_markdown,
    prompt_markdown,
    tool_markdown,
)
from quire.lsp.directive.tags import scan
from quire.trust.risk import Tier

if TYPE_CHECKING:
    from quire.lsp.answers import Name
    from quire.lsp.directive.tags import Attribute, Scan, Tagged
    from quire.lsp.document_view import View
    from quire.source import Span


def hover(view: View, offset: int) -> Hover | None:
    scanned = scan(view.source.text)
    if any(span.start <= offset < span.end for span in scanned.comments):
        return None
    if (title := _title(view, scanned, offset)) is not None:
        return title
    if scanned.holds(offset):
        return _in_fence(view, scanned, offset)
    return _in_body(view, scanned, offset) if offset >= scanned.body_start else None


def _title(view: View, scanned: Scan, offset: int) -> Hover | None:
    """Return the first message to the model, at the name of the directive and at the heading of the file."""
    root = scanned.root
    named = root.attribute("name") if root else None
    if named is not None and named.value_span.holds(offset):
        return Hover(named.value_span, prompt_markdown(view))
    line = view.line(offset)
    before_fence = scanned.opening is not None and offset < scanned.opening.start
    if before_fence and view.source.text.startswith("# ", line.start):
        return Hover(line, prompt_markdown(view))
    return None


def _in_fence(view: View, scanned: Scan, offset: int) -> Hover | None:
    tag = scanned.at(offset)
    if tag is None:
        return None
    if tag.name_span.holds(offset) or (tag.closing is not None and tag.closing.holds(offset)):
        span = tag.name_span if tag.name_span.holds(offset) else tag.closing or tag.name_span
        return _element(view, tag, span)
    if offset < tag.inner_start:
        for attribute in tag.attributes:
            if attribute.name_span.holds(offset):
                return _attribute(view, tag, attribute)
            if attribute.value_span.holds(offset):
                return _value(view, tag, attribute, offset)
        return None
    named = _named(view, offset)
    if (permission := permission_at(tag)) is not None and permission[1].holds(offset):
        item = f"\n\n{named.markdown}" if named is not None and tag.tag != "tool" else ""
        return Hover(permission[1], permission_markdown(view, permission[0]) + item)
    return named


def _element(view: View, tag: Tagged, span: Span) -> Hover | None:
    parent = tag.parent.tag if tag.parent else ""
    if parent == "outputs" and tag.tag not in ("output", "success", "failure"):
        return Hover(span, f"**output** {code(tag.tag)}\n\nThe short form of an output, without a type.")
    element = meaning_of(tag.path)
    if element is None:
        return None
    head = f"{code(f'<{tag.tag}>')} — {element.meaning}"
    match tag.tag:
        case "hook" | "condition" | "any" | "all" | "not":
            head += hook_markdown(view, tag)
        case "limits" | "cost":
            head += limits_markdown(view)
        case "model":
            head += model_markdown(view, tag)
        case "permissions":
            head += permissions_markdown(view)
    if element.attributes and tag.tag != "limits":
        head += "\n\n" + "\n".join(f"- {code(name)}: {meaning}" for name, meaning in element.attributes.items())
    return Hover(span, head)


def _attribute(view: View, tag: Tagged, attribute: Attribute) -> Hover | None:
    meaning = meaning_of(tag.path)
    if meaning is None or attribute.name not in meaning.attributes:
        return None
    if (limit := _limit(tag, attribute.name)) is not None:
        return Hover(attribute.name_span, limit_markdown(limit, attribute.value))
    return Hover(
        attribute.name_span, f"{code(attribute.name)} of {code(f'<{tag.tag}>')} — {meaning.attributes[attribute.name]}"
    )


def _value(view: View, tag: Tagged, attribute: Attribute, offset: int) -> Hover | None:
    value = attribute.value.strip()
    if (named := _named(view, offset)) is not None and named.markdown and tag.tag != "model":
        return named
    match tag.tag, attribute.name:
        case _, name if (limit := _limit(tag, name)) is not None:
            return Hover(attribute.value_span, limit_markdown(limit, value))
        case "model", "tier" | "id" | "fallback":
            return Hover(attribute.value_span, f"**model**{model_markdown(view, tag)}")
        case "hook", "event" if value in EVENTS:
            return Hover(attribute.value_span, f"**event** {code(value)} — {EVENTS[value]}")
        case "condition", "op" if value in OPERATOR_MEANINGS:
            return Hover(attribute.value_span, f"**operator** {code(value)} — {OPERATOR_MEANINGS[value]}")
        case "condition", "path" if meaning := path_meaning(value):
            return Hover(attribute.value_span, f"**value** {code(value)} — {meaning}")
        case "acknowledge", "risk":
            tier = next((tier for tier in Tier if tier.value == value), None)
            return Hover(attribute.value_span, f"**tier** {code(value)} — {tier.meaning}") if tier else None
    return None


def _limit(tag: Tagged, attribute: str) -> str | None:
    """Return the limit that an attribute sets; None if it sets none."""
    if tag.tag == "limits" and is_limit(attribute):
        return attribute
    if tag.path == "cost>context":
        return {"turns": "turns", "spawn_threshold": "spawns"}.get(attribute)
    return None


def _in_body(view: View, scanned: Scan, offset: int) -> Hover | None:
    if (named := _named(view, offset)) is not None:
        return named
    text = view.source.text
    for call in spelled_calls(text, scanned.body_start, len(text)):
        if call.name_span.holds(offset):
            return Hover(call.name_span, call_markdown(call.primary))
        if call.name_span.start <= offset <= call.end:
            for argument in call.arguments:
                if argument.name_span.holds(offset) and (text := call_markdown(call.primary, call, argument)):
                    return Hover(argument.name_span, text)
            return None
    tag = scanned.at(offset)
    if tag is not None and tag.name_span.holds(offset) and (meaning := meaning_of(tag.path)):
        return Hover(tag.name_span, f"{code(f'<{tag.tag}>')} — {meaning.meaning}")
    return None


def _named(view: View, offset: int) -> Hover | None:
    """Return what is known about the name at an offset."""
    name = view.index.at(offset)
    if name is None or not (text := _name_words(view, name)):
        return None
    own = name.kind in ("input", "output") and (not name.document or name.document == view.path)
    return Hover(name.span, text, (f"{name.kind}s", name.text) if own else ())


def _name_words(view: View, name: Name) -> str:
    match name.kind:
        case "input" | "output":
            return parameter_markdown(view, name)
        case "directive" | "knowledge" | "pipeline" | "document":
            return item_markdown(view, name)
        case "tool":
            return tool_markdown(name.text)
        case "hook":
            return hook_named(view, name)
    return ""
