"""Mutants of a plan: the same document with one small change that its tests should notice.

The list is the same every time. An id names the operator, the step and the place, so an edit elsewhere in the document
does not change it. The modules of the operators say which changes are left out because they cannot change behaviour:
`playbook.py`, `pipeline.py`, `expressions.py`, `directive.py`. Mutants of inputs are not made: the inputs of a run are
complete before its plan is walked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.plan.nodes import Plan, Think
from quire.testing.mutation.edits import Edit, Site, place_of, sites, with_step
from quire.testing.mutation.kills import Kill

if TYPE_CHECKING:
    from quire.source import Source, Span


class Operator(Struct, frozen=True):
    """One kind of change."""

    change: str
    """The changed document, in words."""
    case: str = "in which {step} runs"
    """The kind of case that would notice it, as far as that can be said of all of them."""


OPERATORS: Mapping[str, Operator] = {
    "drop_step": Operator("a step is removed"),
    "drop_question": Operator("a question is not asked"),
    "drop_option": Operator("an option of a question, or a value of a capture, is removed", "that gives that answer"),
    "drop_capture": Operator("a result is not kept under its name"),
    "drop_reference": Operator("a value is missing from a prompt, a question or an argument"),
    "drop_preamble": Operator("the prompt before a step's own text is missing"),
    "drop_context": Operator(
        "a step sees all earlier results, not only those that it names",
        "in which an earlier step has a result that {step} must not see",
    ),
    "drop_system": Operator("the system text is missing"),
    "drop_artifact": Operator("the artifact is the last result, not the one that is named"),
    "drop_arm": Operator("a branch of an `if`, or a case of a `match`, is removed", "that takes the branch"),
    "swap_arms": Operator("two branches are swapped", "that takes the branch"),
    "drop_branch": Operator("a branch of a `parallel` is removed"),
    "negate_condition": Operator("a condition, or that of a hook, is negated", "in which the condition holds"),
    "change_condition": Operator("a condition compares with another text", "in which the condition holds"),
    "drop_condition": Operator("a `when` is removed", "in which {step} is skipped"),
    "change_argument": Operator("an argument of a tool has another value"),
    "drop_pass": Operator("a value is not passed to a called document"),
    "change_on_error": Operator(
        "a failure is dropped, ends the run, or is tried less often", "in which {step} fails every time"
    ),
    "drop_default": Operator(
        "the value in place of a failure, or of a missing key, is removed", "in which the default is used"
    ),
    "drop_timeout": Operator("a step may take any time", "in which {step} takes too long (`delay_ms`)"),
    "drop_max_items": Operator("a list may have any length", "with too many items"),
    "change_max_items": Operator("a list may have one item less", "with as many items as are allowed"),
    "change_max": Operator("a `repeat` goes one round less", "in which {step} needs its last round"),
    "change_on_max": Operator(
        "a `repeat` fails after its last round, or does not", "in which {step} never comes to its end"
    ),
    "change_comparison": Operator("`<` is `<=`, `==` is `!=`, and so on", "in which both sides are equal"),
    "change_logic": Operator("`and` is `or`, and the other way round", "in which only one of the parts is true"),
    "change_quantifier": Operator(
        "`all` is `any`, and the other way round", "in which some items fit, and some do not"
    ),
    "change_arithmetic": Operator("`+` is `-`, `*` is `/`, and the other way round"),
    "change_constant": Operator("a literal of an expression is another one"),
    "drop_not": Operator("a `not` is removed", "in which {step} comes to the other decision"),
    "drop_filter": Operator("a `filter` keeps everything", "in which an item is left out"),
    "drop_schema": Operator("a result or a reply may have any shape", "in which the result does not fit its schema"),
    "make_optional": Operator(
        "a field of a schema, or an output of a directive, may be missing", "in which that is missing"
    ),
    "drop_enum_value": Operator("a value of an enum does not fit", "with that value"),
    "drop_schema_limit": Operator("a field has no limit or pattern", "in which the limit is exceeded"),
    "drop_permission": Operator("a permission is removed", "in which the permission is used"),
    "widen_permission": Operator("a permission is `*`", "that calls a tool which is not allowed"),
    "drop_limit": Operator("a limit of a thread is the default", "in which the limit is reached"),
    "drop_hook": Operator("a hook is removed", "in which the hook acts"),
    "drop_knowledge": Operator("a text of the context is missing"),
}


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


def mutants(plan: Plan, source: Source, *, most: int = MOST_MUTANTS) -> list[Mutant]:
    """Return the mutants of a document, in the order of its text."""
    numbers: dict[str, int] = {}
    numbered: list[Mutant] = []
    for mutant in islice(_all(plan, source), most):
        number = numbers[mutant.id] = numbers.get(mutant.id, 0) + 1
        numbered.append(mutant if number == 1 else replace(mutant, id=f"{mutant.id}#{number}"))
    return numbered


def _all(plan: Plan, source: Source) -> Iterator[Mutant]:
    yield from _of_document(plan, source)
    edits, reads = _edits_of(plan)
    for site in sites(plan, source, reads):
        label = site.step.label
        for edit in edits(site):
            id = ":".join(part for part in (edit.operator, label, edit.detail) if part)
            changed = with_step(plan, site.step, edit.step)
            yield Mutant(id, edit.operator, label, edit.span or site.step.span, edit.change, changed, edit.kill)


def _edits_of(plan: Plan) -> tuple[Callable[[Site], Iterator[Edit]], frozenset[str]]:
    """Return the function that edits the steps of a format, and the names that some step reads."""
    match plan.format:
        case "playbook":
            from quire.testing.mutation.playbook import playbook_edits, reads_of_playbook

            return playbook_edits, reads_of_playbook(plan)
        case "pipeline":
            from quire.testing.mutation.pipeline import pipeline_edits, reads_of_pipeline

            return pipeline_edits, reads_of_pipeline(plan)
        case "directive":
            from quire.testing.mutation.directive import directive_edits

            return directive_edits, frozenset()


def _of_document(plan: Plan, source: Source) -> Iterator[Mutant]:
    """Yield the mutants of the parts outside of the steps: the system text, the artifact and the schemas. The type of
    an artifact shows in no observation."""
    if plan.system.strip():
        first = next((step.label for _, step in plan.steps() if isinstance(step.work, Think)), "")
        line = next(line for line in plan.system.splitlines() if line.strip()).strip()
        kill, span = Kill("prompts", first, value=line[:60]), place_of(source, line)
        yield Mutant("drop_system", "drop_system", "", span, "drops the system text", replace(plan, system=""), kill)
    if plan.artifact is not None and plan.artifact.source:
        changed = replace(plan, artifact=replace(plan.artifact, source=""))
        sentence = f"takes the result of the last step instead of {plan.artifact.source}"
        span = place_of(source, plan.artifact.source, max(0, source.text.find("ARTIFACT")))
        yield Mutant("drop_artifact:source", "drop_artifact", "", span, sentence, changed, Kill("output"))
    if plan.schemas:
        from quire.testing.mutation.directive import schema_mutants

        yield from schema_mutants(plan, source)
