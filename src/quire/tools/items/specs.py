"""The three actions as the gate and a model see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from quire.engine.ports import EffectClass
from quire.tools.registry import ToolSpec
from quire.trust.capabilities import Primary
from quire.values import Value
from quire.workspace.items import ITEM_TYPES, SPACES
from quire.workspace.search import LIMIT, MAX_LIMIT

_ID: Value = {"type": "string", "description": "category/name, or the name alone where it is unique"}
_TYPE: Value = {"enum": list(ITEM_TYPES)}


def _spec(
    name: Primary, description: str, effect: EffectClass, required: tuple[str, ...], **properties: Value
) -> tuple[str, ToolSpec]:
    schema: Mapping[str, Value] = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return name, ToolSpec(f"rye/{name}", name, description, schema, effect)


FOR_DOCUMENTS = ("dry_run", "thread", "async")
"""Arguments of `execute` that only mean something for what is not a tool."""


def for_tools_only(spec: ToolSpec) -> ToolSpec:
    """`execute` as a model is told of it that may execute tools and nothing else: small models fill in every field."""
    fields = spec.schema["properties"]
    assert isinstance(fields, Mapping)  # noqa: S101  # written above
    left = {name: field for name, field in fields.items() if name not in FOR_DOCUMENTS}
    left["item_type"] = {"enum": ["tool"]}
    left["parameters"] = {"type": "object", "description": "the arguments of the tool, by name"}
    return replace(spec, description="Runs a tool by its id.", schema={**spec.schema, "properties": left})


ACTIONS: Mapping[str, ToolSpec] = dict(
    (
        _spec(
            "fetch",
            "Reads an item by its id, or searches for items by words (query and scope). With destination the item is "
            "also copied to that space.",
            "read",
            (),
            item_type=_TYPE,
            item_id=_ID,
            query={"type": "string", "description": "words to look for"},
            scope={"type": "string", "description": "the item type to search, such as directive or knowledge"},
            source={"enum": [*SPACES, "all"], "description": "look in this space only"},
            destination={"enum": ["project", "user"], "description": "copy the item to this space"},
            limit={
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_LIMIT,
                "description": f"how many results of a query; {LIMIT} by default",
            },
        ),
        _spec(
            "execute",
            "Executes an item: runs a tool, pipeline or playbook with parameters, gives the directions of a directive "
            "(or runs it as a thread of its own with thread: fork), gives the text of a knowledge item.",
            "read",
            ("item_type", "item_id"),
            item_type=_TYPE,
            item_id=_ID,
            parameters={"type": "object", "description": "the inputs of the item, by name"},
            dry_run={"type": "boolean", "description": "only check the item and its inputs"},
            thread={"type": "string", "description": "inline (the default), or fork to run a directive by itself"},
            **{"async": {"type": "boolean", "description": "do not wait for a forked directive"}},
        ),
        _spec(
            "sign",
            "Checks a directive or knowledge item and signs it with the user's key. An id with * signs all that fit.",
            "write",
            ("item_type", "item_id"),
            item_type=_TYPE,
            item_id={"type": "string", "description": "category/name, or a pattern such as category/*"},
            source={"enum": list(SPACES), "description": "the space the item is in"},
        ),
    )
)
