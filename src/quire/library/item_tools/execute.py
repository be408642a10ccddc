"""Execute the items that are texts: the directions of a directive, the body of a knowledge item; and dry runs.

Tools, pipelines, playbooks and directives in their own threads are run by the engine, which calls `impossible` first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.inputs import resolve_inputs
from quire.errors import BadInputs, ToolFailed
from quire.library.item_tools import error, item_type_of, missing
from quire.library.items import ITEM_TYPES, ItemType
from quire.library.verify import VerifiedItems, read_body, read_thread
from quire.tools.arguments import Arguments, Unusable

if TYPE_CHECKING:
    from quire.plan.thread import Thread
    from quire.tools.registry import ToolSpec
    from quire.trust.capabilities import Grants
    from quire.values import Value

MODES = ("inline", "fork")
FOR_THREADS = ("model", "limit_overrides")
"""Parameters that control how a directive is run, and are not its inputs."""


def impossible(arguments: Mapping[str, Value]) -> str | None:
    """Return the reason why no item at all can be executed with these arguments, or None."""
    item_type, mode = item_type_of(arguments.get("item_type")), mode_of(arguments)
    if item_type is None:
        return f"unknown item type {arguments.get('item_type')!r}; it is one of {', '.join(ITEM_TYPES)}"
    if mode.startswith("remote"):
        return "there are no remote threads here; leave thread out, or use fork"
    if mode not in MODES:
        return f'there is no thread mode "{mode[:40]}"; it is inline or fork'
    if mode == "fork" and item_type != "directive":
        return f"thread: fork is for directives; a {item_type} has no thread of its own, so leave it out"
    if arguments.get("async") is not True:
        return None
    if arguments.get("dry_run") is True:
        return "async and dry_run do not go together: a check is over at once"
    if item_type == "knowledge":
        return "async is not for knowledge: its text is there at once"
    if item_type == "directive" and mode == "inline":
        return "async is not for a directive inline: its directions are there at once; use thread: fork"
    return None


def mode_of(arguments: Mapping[str, Value]) -> str:
    given = arguments.get("thread")
    return "inline" if given is None else str(given)


def is_text(arguments: Mapping[str, Value]) -> bool:
    """Tell whether `Execute` handles these arguments; otherwise the engine does."""
    item_type, dry_run = arguments.get("item_type"), arguments.get("dry_run") is True
    if item_type == "directive":
        return dry_run or mode_of(arguments) == "inline"
    return item_type == "knowledge" or (item_type == "tool" and dry_run)


class Execute(Struct, frozen=True):
    """The action `execute`. `tools` finds a tool that can be described without starting anything."""

    items: VerifiedItems
    grants: Grants
    tools: Callable[[str], ToolSpec | None]

    def run(self, arguments: Mapping[str, Value]) -> dict[str, Value]:
        item_id = str(arguments["item_id"])
        if problem := impossible(arguments):
            return error(problem, item_id=item_id)
        if arguments["item_type"] == "tool" and is_text(arguments):
            return self._check_tool(item_id, arguments)
        if not is_text(arguments):
            raise ToolFailed(f"a {arguments['item_type']} is executed by a thread, not from here", kind="dispatch")
        item_type: ItemType = "directive" if arguments["item_type"] == "directive" else "knowledge"
        item = self.items.spaces.find(item_type, item_id)
        if item is None:
            return missing(self.grants, "execute", item_type, item_id, None)
        self.grants.require("execute", item_type, item.id)
        self.items.require(item)
        head: dict[str, Value] = {"item_type": item_type, "item_id": item.id, "source": item.space}
        if item_type == "knowledge":
            body = read_body(item)
            if arguments.get("dry_run") is True:
                return {"status": "validation_passed", **head, "inputs": {}}
            return {"status": "success", **head, "content": body}
        thread = read_thread(item)
        try:
            inputs = resolve_inputs(thread.inputs, _given(thread, arguments))
        except BadInputs as problems:
            return error(str(problems), **head, issues=list(problems.problems))
        if arguments.get("dry_run") is True:
            return {"status": "validation_passed", **head, "inputs": inputs}
        return {"status": "success", **head, "your_directions": directions(thread, inputs), "inputs": inputs}

    def _check_tool(self, item_id: str, arguments: Mapping[str, Value]) -> dict[str, Value]:
        spec = self.tools(item_id)
        if spec is None:
            return missing(self.grants, "execute", "tool", item_id, None)
        self.grants.require("execute", "tool", spec.id)
        given = arguments.get("parameters")
        inputs: dict[str, Value] = dict(given) if isinstance(given, Mapping) else {}
        try:
            problems = Arguments().problems(spec, inputs)
        except Unusable as unusable:
            problems = [f"{spec.id} cannot be used: {unusable}"]
        if problems:
            return error("\n".join(problems), item_id=spec.id, issues=list(problems))
        return {"status": "validation_passed", "item_type": "tool", "item_id": spec.id, "inputs": inputs}


def directions(thread: Thread, inputs: Mapping[str, Value]) -> str:
    """Return the directions for following a directive inside an existing thread."""
    from quire.plan.templates import fill

    return "\n\n".join(fill(part, inputs) for part in (thread.body, thread.inside) if part)


def _given(thread: Thread, arguments: Mapping[str, Value]) -> dict[str, Value]:
    parameters = arguments.get("parameters")
    declared = {one.name for one in thread.inputs}
    given = parameters if isinstance(parameters, Mapping) else {}
    return {name: value for name, value in given.items() if name in declared or name not in FOR_THREADS}
