"""Executing the items that are texts: the directions of a directive, the body of a knowledge item.

Tools, pipelines, playbooks and directives in threads of their own are run by the engine, which asks `impossible` first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quire.engine.thread.inputs import resolve_inputs
from quire.errors import BadInputs, ToolFailed
from quire.plan.nodes import Thread
from quire.tools.items.answers import error, item_type_of, missing
from quire.trust.capabilities import Grants
from quire.values import Value
from quire.workspace.items import ItemType
from quire.workspace.library import read_body, read_thread
from quire.workspace.verified import VerifiedItems

MODES = ("inline", "fork")
FOR_THREADS = ("model", "limit_overrides")
"""Parameters that say how to run a directive, not what it is given."""


def impossible(arguments: Mapping[str, Value]) -> str | None:
    """Why no item at all can be executed like this, or None."""
    item_type, mode = item_type_of(arguments.get("item_type")), mode_of(arguments)
    if item_type is None:
        return f"there is no item type {arguments.get('item_type')!r}"
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
        return "async needs thread: fork; the directions of a directive are there at once"
    return None


def mode_of(arguments: Mapping[str, Value]) -> str:
    given = arguments.get("thread")
    return "inline" if given is None else str(given)


def is_text(arguments: Mapping[str, Value]) -> bool:
    """Whether this is for `Execute`, and not for the engine."""
    item_type = arguments.get("item_type")
    if item_type == "directive":
        return mode_of(arguments) == "inline" or arguments.get("dry_run") is True
    return item_type == "knowledge"


@dataclass(frozen=True, slots=True)
class Execute:
    items: VerifiedItems
    grants: Grants

    def run(self, arguments: Mapping[str, Value]) -> dict[str, Value]:
        item_id = str(arguments["item_id"])
        if problem := impossible(arguments):
            return error(problem, item_id=item_id)
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


def directions(thread: Thread, inputs: Mapping[str, Value]) -> str:
    """What somebody reads who follows a directive in a thread that is already there."""
    from quire.formats.directive.interpolate import fill

    return "\n\n".join(fill(part, inputs) for part in (thread.body, thread.inside) if part)


def _given(thread: Thread, arguments: Mapping[str, Value]) -> dict[str, Value]:
    parameters = arguments.get("parameters")
    declared = {one.name for one in thread.inputs}
    given = parameters if isinstance(parameters, Mapping) else {}
    return {name: value for name, value in given.items() if name in declared or name not in FOR_THREADS}
