"""Which steps of a document, and of all that it calls, every run that completes comes to; and which only some do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from quire.plan.nodes import Call, Fold, ForEach, Formula, Literal, Parallel, Plan, Select, Sequence, Step, UseTool
from quire.plan.uses import OWN
from quire.plan.ways import JOINT

MAX_CALLS = 100


@dataclass(frozen=True, slots=True)
class Reached:
    """`certain` is whether every run that completes performs the step, and fails with it. `name` is for people: a step
    of a callee has the way to it before its label."""

    step: Step
    name: str
    certain: bool
    format: str


def reach(plan: Plan, documents: Mapping[str, Plan]) -> Iterator[Reached]:
    """Every step once for each way to it, but for callees: each of those once as certain and once as not."""
    return _Walk(documents).sequence(plan.body, plan, "", certain=True)


@dataclass(slots=True)
class _Walk:
    documents: Mapping[str, Plan]
    seen: set[tuple[str, bool]]

    def __init__(self, documents: Mapping[str, Plan]) -> None:
        self.documents = documents
        self.seen = set()

    def sequence(self, body: Sequence, plan: Plan, prefix: str, *, certain: bool) -> Iterator[Reached]:
        for step in body.steps:
            yield from self._step(step, plan, prefix, certain=certain)

    def _step(self, step: Step, plan: Plan, prefix: str, *, certain: bool) -> Iterator[Reached]:
        match = step.match
        own = certain and not (match is not None and match.decide_first and all(case.test for case in match.cases))
        yield Reached(step, f"{prefix}{step.label}", own, plan.format)
        for case in match.cases if match else ():
            yield from self.sequence(case.body, plan, prefix, certain=False)
        match step.work:
            case Fold(source=source, do=do):
                yield from self._step(do, plan, prefix, certain=own and _has_items(source))
            case ForEach(source=source, do=do, collect=collect, on_error=on_error):
                each = own and _has_items(source) and on_error.policy != "continue"
                yield from self._step(do, plan, prefix, certain=each)
                yield from self._step(collect, plan, prefix, certain=own)
            case Parallel(branches=branches, collect=collect, on_error=on_error):
                for _, branch in branches:
                    yield from self._step(branch, plan, prefix, certain=own and on_error.policy != "continue")
                yield from self._step(collect, plan, prefix, certain=own)
            case Call(document=document):
                yield from self._callee(document, f"{prefix}{step.label}", certain=own)
            case UseTool(connection=place, tool=tool) if place == OWN:
                yield from self._callee(tool, f"{prefix}{step.label}", certain=own)
            case Select(cases=cases, default=default):
                for call in (*(call for _, call in cases), *((default,) if default else ())):
                    yield from self._callee(call.document, f"{prefix}{step.label}", certain=False)

    def _callee(self, name: str, way: str, *, certain: bool) -> Iterator[Reached]:
        plan = self.documents.get(name)
        if plan is None or (name, certain) in self.seen:
            return
        self.seen.add((name, certain))
        yield from self.sequence(plan.body, plan, f"{way}{JOINT}", certain=certain)


def _has_items(source: Literal | Formula | None) -> bool:
    return isinstance(source, Literal) and isinstance(source.value, list | tuple) and bool(source.value)
