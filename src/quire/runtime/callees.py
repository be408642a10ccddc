"""The documents that a document can reach by calling: found before it runs, and pinned with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quire.errors import BadDocument
from quire.plan.nodes import Call, Plan, Select
from quire.source import Source
from quire.values import Value
from quire.workspace.pipelines import Registered, read_pipelines


def reachable(plan: Plan, registered: Mapping[str, Registered]) -> dict[str, Registered]:
    """Callees by name, at any depth. A name that nobody has is left out: the step that reaches it fails.

    Raises `BadDocument` when a document can reach itself.
    """
    found: dict[str, Registered] = {}
    _follow(plan, registered, found, (plan.title,))
    return found


def pinned(callees: Mapping[str, Registered]) -> dict[str, Value]:
    """What the run keeps of them; the texts go to the store by their hash."""
    return {
        name: {
            "sha256": one.source.sha256,
            "document": one.source.name,
            "declared": one.declared,
            "key": name.partition(".")[0],
        }
        for name, one in callees.items()
    }


def unpinned(declared: str, key: str, source: Source) -> Plan:
    """The plan of a registered pipeline from its pinned text."""
    found, _ = read_pipelines(key, source)
    return next(one.plan for one in found if one.declared == declared)


def called(plan: Plan) -> Iterator[str]:
    """The full names of what a plan calls."""
    for _, step in plan.steps():
        match step.work:
            case Call():
                yield step.work.document
            case Select():
                yield from (call.document for _, call in step.work.cases)
                if step.work.default:
                    yield step.work.default.document


def _follow(
    plan: Plan, registered: Mapping[str, Registered], found: dict[str, Registered], way: tuple[str, ...]
) -> None:
    for name in called(plan):
        if name in way:
            circle = " → ".join((*way[way.index(name) :], name))
            raise BadDocument(f"the pipeline {name} can reach itself: {circle}")
        callee = registered.get(name)
        if callee is not None and name not in found:
            found[name] = callee
            _follow(callee.plan, registered, found, (*way, name))
