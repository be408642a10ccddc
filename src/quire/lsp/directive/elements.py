"""The elements of a directive: their meanings, their attributes, and the elements that stand in them.

An element is looked up by its tag with that of its parent, `cost>context`, then by its tag alone. Words that the format
itself lists come from there.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from quire.formats.directive.hooks import TESTS
from quire.formats.directive.parse import METADATA, ROOT
from quire.plan.vocabulary import (
    CONTEXT,
    DECISIONS,
    ITEM_TYPES,
    LIMIT_ALIASES,
    LIMITS,
    OPERATORS,
    PARAMETER_TYPES,
    POSITIONS,
    PRIMARIES,
    SENT_EVENTS,
    TIERS,
)

TRUTH = ("true", "false")
OWN_CONTENT = (*ROOT[:3], *METADATA)
"""Elements that the engine reads. The others below the root are texts for the model."""


class ElementMeaning(Struct, frozen=True):
    """An element of the format."""

    meaning: str
    attributes: Mapping[str, str] = {}
    """The attributes with their meanings, the most useful first."""
    children: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    """Attributes that are written with a new element."""
    empty: bool = False
    """True if it is written as one tag: `<limits />`."""


_ITEM = "a pattern of ids: `*` is any text, `?` one character; `/` and `.` are the same"
_ID = "the id of the item, `category/name`; `${…}` is filled in when the hook acts"
_ACTION_ATTRIBUTES = {
    "item_type": f"the type of the item: {', '.join(ITEM_TYPES)}",
    "item_id": _ID,
}
LIMIT_MEANINGS: Mapping[str, str] = {
    "turns": "replies of the model",
    "tokens": "input and output together",
    "spend": "money, in US dollars; reserved before each call, so it is never exceeded where prices are known",
    "spend_currency": "always USD",
    "spawns": "child threads; reaching it fails that call, not the thread",
    "depth": "threads in threads; reaching it fails that call, not the thread",
    "duration_seconds": "seconds, without waiting for people",
}
_PARAMETER = {
    "name": "the name",
    "type": f"one of {', '.join(PARAMETER_TYPES[:6])}; `string` without it",
    "required": "`true` if it must have a value",
}

ELEMENTS: Mapping[str, ElementMeaning] = {
    "directive": ElementMeaning(
        "One directive: the engine reads it and enforces it.",
        {
            "name": "the name of the file, in snake_case; begin with a verb",
            "version": "three numbers: `1.0.0`",
            "extends": "the id of a parent, whose context and hooks come first; without `<permissions>` also those",
        },
        ROOT[:5],
        ("name", "version"),
    ),
    "metadata": ElementMeaning("Name, model, limits and permissions of the directive.", {}, METADATA),
    "description": ElementMeaning("Its purpose, in a sentence; the model sees it. Needed to sign."),
    "category": ElementMeaning("The folder below `.ai/directives`; empty for that folder itself. Needed to sign."),
    "author": ElementMeaning("The person or team to ask. Needed to sign."),
    "model": ElementMeaning(
        "The model that follows the directive.",
        {
            "tier": "a size of model, which the workspace chooses: `low`, `general`, `orchestrator`",
            "id": "one model, if its provider can be reached",
            "fallback": "the tier if neither is given",
            "provider": "the provider of the model `id`",
            "parallel": "`true` or `false`",
        },
        (),
        ("tier",),
        empty=True,
    ),
    "limits": ElementMeaning(
        "How much the thread may use. A limit that is reached ends the run with exit code 5, unless a `limit` hook "
        "asks a person.",
        {**LIMIT_MEANINGS, **{alias: f"another name of `{name}`" for alias, name in LIMIT_ALIASES.items()}},
        (),
        ("turns",),
        empty=True,
    ),
    "cost": ElementMeaning(
        "Another way to write limits; `<limits>` wins, name by name.", {}, ("context", "duration", "spend")
    ),
    "cost>context": ElementMeaning(
        "The text is the limit `tokens`.",
        {
            "turns": "the limit `turns`",
            "spawn_threshold": "the limit `spawns`",
            "estimated_usage": "shown, without an effect",
        },
    ),
    "cost>duration": ElementMeaning("The limit `duration_seconds`."),
    "cost>spend": ElementMeaning("The limit `spend`.", {"currency": "always USD"}),
    "permissions": ElementMeaning(
        "The permissions of the directive. Anything that is not granted is refused; an empty block grants nothing and "
        "inherits nothing. A `*` right in it is everything.",
        {},
        (*PRIMARIES, "acknowledge"),
    ),
    "permissions>execute": ElementMeaning("Items that it may run.", {}, ITEM_TYPES),
    "permissions>fetch": ElementMeaning("Items that it may read, and search for.", {}, ITEM_TYPES),
    "permissions>sign": ElementMeaning("Items that it may sign with your key.", {}, ITEM_TYPES),
    "acknowledge": ElementMeaning(
        "Says that the author knows what a capability of this tier can do, and why it is needed.",
        {"risk": f"the tier: {', '.join(TIERS)}"},
        (),
        ("risk",),
    ),
    "context": ElementMeaning("Knowledge that goes into the prompt.", {}, CONTEXT),
    "context>system": ElementMeaning("The id of knowledge that goes into the system message."),
    "context>before": ElementMeaning("The id of knowledge that stands before the instructions."),
    "context>after": ElementMeaning("The id of knowledge that stands after the instructions."),
    "context>suppress": ElementMeaning(
        "The id of knowledge, or of a hook that brings some, that is left out, in all directives of the chain."
    ),
    "hooks": ElementMeaning("Actions at events of the thread.", {}, ("hook",)),
    "hook": ElementMeaning(
        "An action at an event, if all its conditions hold.",
        {
            "id": "its name, for `<suppress>` and for people",
            "event": f"one of {', '.join(SENT_EVENTS)}",
            "position": f"where the text of its knowledge goes: {', '.join(POSITIONS)}",
        },
        (*TESTS, "action"),
        ("id", "event"),
    ),
    "condition": ElementMeaning(
        "A test of a value. Several side by side must all hold.",
        {
            "path": "the value, such as `cost.spend` or `outputs.price`",
            "op": f"one of {', '.join(OPERATORS)}",
            "value": "compared as a number or a boolean if it is one; for `in` a list in JSON",
        },
        TESTS,
        ("path", "op", "value"),
        empty=True,
    ),
    "any": ElementMeaning("Holds if one of the tests in it holds.", {}, TESTS),
    "all": ElementMeaning("Holds if all tests in it hold.", {}, TESTS),
    "not": ElementMeaning("Holds if the tests in it do not all hold.", {}, TESTS),
    "action": ElementMeaning(
        "The request of the hook: one action by its attributes, or several elements inside.",
        {"primary": f"one of {', '.join(PRIMARIES)}", **_ACTION_ATTRIBUTES},
        ("param", *PRIMARIES),
        ("primary", "item_type", "item_id"),
    ),
    "execute": ElementMeaning("Runs an item.", _ACTION_ATTRIBUTES, ("param",), ("item_type", "item_id")),
    "fetch": ElementMeaning(
        "Reads an item by its id, or searches.",
        {**_ACTION_ATTRIBUTES, "scope": "the item type to search", "query": "words to look for"},
        ("param",),
        ("item_type", "item_id"),
        empty=True,
    ),
    "sign": ElementMeaning("Signs an item.", _ACTION_ATTRIBUTES, (), ("item_type", "item_id"), empty=True),
    "param": ElementMeaning(
        "A parameter of the action: its text, or the attribute `value`.",
        {"name": "the name of the parameter", "value": "its value, in place of the text"},
        (),
        ("name",),
    ),
    "inputs": ElementMeaning("Values that the directive is started with.", {}, ("input",)),
    "input": ElementMeaning(
        "An input. `{input:name}` in the instructions stands for its value; the text says what it is.",
        {**_PARAMETER, "default": "the value if none is given"},
        (),
        ("name", "type", "required"),
    ),
    "outputs": ElementMeaning(
        "Values that the model returns by name. A child of any other name is the short form of an output.",
        {},
        ("output", "success", "failure"),
    ),
    "output": ElementMeaning("An output; the text tells the model what it is.", _PARAMETER, (), ("name", "type")),
    "success": ElementMeaning("The message when the thread succeeded."),
    "failure": ElementMeaning("The message when the thread failed."),
    "process": ElementMeaning("The steps, for the model. They are better placed after the fence.", {}, ("step",)),
    "step": ElementMeaning(
        "A step of the instructions, for the model.",
        {"name": "the name of the step"},
        ("description", *PRIMARIES),
        ("name",),
    ),
    "success_criteria": ElementMeaning("Checks at the end, for the model.", {}, ("criterion",)),
    "criterion": ElementMeaning("One thing that can be seen: a file, a number, a text."),
}

VALUES: Mapping[str, tuple[str, ...]] = {
    "input.type": PARAMETER_TYPES,
    "output.type": PARAMETER_TYPES,
    "input.required": TRUTH,
    "output.required": TRUTH,
    "model.parallel": TRUTH,
    "acknowledge.risk": TIERS,
    "hook.event": SENT_EVENTS,
    "hook.position": POSITIONS,
    "condition.op": OPERATORS,
    "action.primary": PRIMARIES,
    "action.item_type": ITEM_TYPES,
    "execute.item_type": ITEM_TYPES,
    "fetch.item_type": ITEM_TYPES,
    "fetch.scope": ITEM_TYPES,
    "sign.item_type": ITEM_TYPES,
    "limits.spend_currency": ("USD",),
    "spend.currency": ("USD",),
    "param.action": DECISIONS,
}
"""The words that an attribute can have, by tag and attribute. `param.action` is the text of a control action."""

_PERMITTED = ElementMeaning(f"A permission: {_ITEM}.")


def meaning_of(path: str) -> ElementMeaning | None:
    """Return the meaning of an element by its tag with that of its parent, `cost>context`; None if it has none."""
    parent, _, tag = path.rpartition(">")
    if parent in PRIMARIES and tag in ITEM_TYPES:
        return _PERMITTED
    if path in ELEMENTS:
        return ELEMENTS[path]
    return ELEMENTS.get(tag)


def children_of(tag: str, parent: str) -> tuple[str, ...]:
    """Return the elements that can stand in an element, which itself stands in `parent`."""
    meaning = meaning_of(f"{parent}>{tag}" if parent else tag)
    return meaning.children if meaning else ()


def is_limit(name: str) -> bool:
    return LIMIT_ALIASES.get(name, name) in LIMITS
