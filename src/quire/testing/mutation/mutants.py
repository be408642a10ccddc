"""Mutants of a plan: the same document with one small change that its tests should notice.

The list is the same every time. An id names the operator, the step and the place, so an edit elsewhere in the document
does not change it. The modules of the operators say which changes are left out because they cannot change behaviour:
`playbook.py`, `pipeline.py`, `expressions.py`, `schemas.py`, `directive.py`. Mutants of inputs are not made: the inputs
of a run are complete before its plan is walked.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from quire.plan.nodes import Plan, Think
from quire.source import NOWHERE, Source, Span
from quire.testing.mutation.edits import Edit, Site, sites, with_step
from quire.testing.mutation.kills import Kill

MOST_MUTANTS = 5_000
"""Mutants of one document. A longer document is tested as far as these go."""


class Mutant(Struct, frozen=True):
    """A plan with one change."""

    id: str
    """Such as `drop_reference:1:tone`."""
    operator: str
    step: str
    """The label of the step; empty for a change of the document itself."""
    span: Span
    """In the document."""
    change: str
    """A sentence without a subject: `drops {{tone}} from the prompt of step 1`."""
    plan: Plan
    kill: Kill

    def expectation(self) -> str:
        """Return the expectation that would notice it, as YAML."""
        return self.kill.expectation()


def mutants(plan: Plan, source: Source, *, most: int = MOST_MUTANTS) -> list[Mutant]:
    """Return the mutants of a document, in the order of its text."""
    numbers: dict[str, int] = {}
    found: list[Mutant] = []
    for mutant in islice(_all(plan, source), most):
        number = numbers[mutant.id] = numbers.get(mutant.id, 0) + 1
        found.append(mutant if number == 1 else replace(mutant, id=f"{mutant.id}#{number}"))
    return found


def _all(plan: Plan, source: Source) -> Iterator[Mutant]:
    yield from _of_document(plan, source)
    for site in sites(plan, source, _reads(plan)):
        for edit in _edits(site):
            label = site.step.label
            parts = (edit.operator, label, edit.detail)
            yield Mutant(
                ":".join(part for part in parts if part),
                edit.operator,
                label,
                edit.span or site.step.span,
                edit.change,
                with_step(plan, site.step, edit.step),
                edit.kill,
            )


def _reads(plan: Plan) -> frozenset[str]:
    """Return the names that some step reads."""
    match plan.format:
        case "playbook":
            from quire.testing.mutation.playbook import reads_of_playbook

            return reads_of_playbook(plan)
        case "pipeline":
            from quire.testing.mutation.pipeline import reads_of_pipeline

            return reads_of_pipeline(plan)
    return frozenset()


def _edits(site: Site) -> Iterator[Edit]:
    match site.plan.format:
        case "playbook":
            from quire.testing.mutation.playbook import playbook_edits

            yield from playbook_edits(site)
        case "pipeline":
            from quire.testing.mutation.pipeline import pipeline_edits

            yield from pipeline_edits(site)
        case "directive":
            thread = site.plan.thread
            if thread is not None:
                from quire.testing.mutation.directive import directive_edits

                yield from directive_edits(site, thread)


def _of_document(plan: Plan, source: Source) -> Iterator[Mutant]:
    """Yield the mutants of what stands outside of the steps: the system text, the artifact and the schemas."""
    if plan.system.strip():
        first = next((step.label for _, step in plan.steps() if isinstance(step.work, Think)), "")
        line = next(line for line in plan.system.splitlines() if line.strip()).strip()
        kill = Kill("prompts", first, value=line[:60])
        without = replace(plan, system="")
        yield Mutant("drop_system", "drop_system", "", _find(source, line), "drops the system text", without, kill)
    yield from _of_artifact(plan, source)
    if plan.schemas:
        from quire.testing.mutation.schemas import schema_edits

        for edit in schema_edits(plan):
            yield Mutant(
                ":".join(part for part in (edit.operator, edit.schema, edit.field, edit.detail) if part),
                edit.operator,
                "",
                _find(source, edit.field.rpartition(".")[2].removesuffix("[]"), _find(source, edit.schema).start),
                edit.change,
                edit.plan,
                edit.kill,
            )


def _of_artifact(plan: Plan, source: Source) -> Iterator[Mutant]:
    """Yield the mutant whose artifact comes from the last step. The type of an artifact shows in no observation."""
    if plan.artifact is not None and plan.artifact.source:
        changed = replace(plan, artifact=replace(plan.artifact, source=""))
        sentence = f"takes the result of the last step instead of {plan.artifact.source}"
        span = _find(source, plan.artifact.source, max(0, source.text.find("ARTIFACT")))
        yield Mutant("drop_artifact:source", "drop_artifact", "", span, sentence, changed, Kill("output"))


def _find(source: Source, text: str, start: int = 0) -> Span:
    at = source.text.find(text, start) if text else -1
    return Span(at, at + len(text)) if at >= 0 else NOWHERE
