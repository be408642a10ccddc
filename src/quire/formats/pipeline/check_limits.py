"""Report limits that every run of a pipeline would exceed, or that a step exceeds whenever it runs."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Mapping
from itertools import islice
from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from quire.formats.pipeline.codes import warnings
from quire.formats.pipeline.lower import lower
from quire.formats.pipeline.syntax import (
    AgentBody,
    CallBody,
    FailBody,
    FoldBody,
    ForEachBody,
    Literal,
    MatchBody,
    ParallelBody,
    Pipeline,
    PipelineFile,
    RepeatBody,
    ShellBody,
    Step,
    StepsBody,
    StopBody,
    ToolBody,
    TransformBody,
)
from quire.formats.pipeline.walks import (
    targets,
    walk,
)
from quire.plan.limits import cap_problem, depth_problem, too_many_items
from quire.plan.nodes import Sequence
from quire.plan.reach import reach

if TYPE_CHECKING:
    from quire.formats.pipeline.fields import Fields
    from quire.formats.resolver import DocumentResolver
    from quire.plan.nodes import Plan
    from quire.plan.nodes import Step as PlanStep

MOST_PIPELINES = 100
MOST_STEPS = 5_000
"""The rest of a bigger file, or of one that calls more, is not checked here but when a run of it starts."""


def check_limits(file: PipelineFile, resolver: DocumentResolver | None, fields: Fields) -> None:
    """Report exceeded limits. Without a resolver only the lists in the file are checked."""
    for pipeline in file.pipelines:
        for _, step in walk(pipeline):
            match step.body:
                case ForEachBody(source=Literal(value=value, span=span), max_items=most):
                    if problem := too_many_items(value, most):
                        fields.report(warnings.TOO_MANY_ITEMS, problem, span)
    if resolver is not None:
        check_plans(file, resolver, fields)


def check_plans(
    file: PipelineFile,
    resolver: DocumentResolver,
    fields: Fields,
    lowered: Callable[[PipelineFile, Pipeline], Plan] = lower,
) -> None:
    """Report limits that runs of the pipelines would exceed with everything that they call. `lowered` returns the plan
    of a pipeline."""
    if len(file.pipelines) > MOST_PIPELINES:
        return
    callees = resolver.plans()
    names = {pipeline.name.text for pipeline in file.pipelines}
    if not any(_can_reach_a_limit(step, names, callees) for pipeline in file.pipelines for _, step in walk(pipeline)):
        return
    calls, fans = resolver.caps()
    own = {pipeline.name.text: lowered(file, pipeline) for pipeline in file.pipelines}
    documents = ChainMap(own, callees)
    for pipeline in file.pipelines:
        plan = own[pipeline.name.text]
        if problem := cap_problem(plan, documents, calls):
            fields.report(warnings.MODEL_CALLS, problem, pipeline.name.span)
        _check_depth(pipeline, plan, documents, fans, fields)


def _can_reach_a_limit(step: Step, own: Collection[str], callees: Collection[str]) -> bool:
    """Tell without lowering whether a step can call a model, fan out, or call a known document."""
    match step.body:
        case AgentBody() | FoldBody() | ForEachBody() | ParallelBody() | RepeatBody():
            return True
        case TransformBody() | ToolBody() | ShellBody() | CallBody() | MatchBody():
            return any(one.pipeline.text in own or one.pipeline.text in callees for one in targets(step))
        case StepsBody() | FailBody() | StopBody():
            return False
        case _:
            assert_never(step.body)


def _check_depth(pipeline: Pipeline, plan: Plan, documents: Mapping[str, Plan], fans: int, fields: Fields) -> None:
    """Report the first step that is nested too deep; all steps below it are as well."""
    nested = replace(plan, body=Sequence(tuple(step for step in plan.body.steps if _leads_on(step))))
    for at in islice(reach(nested, documents), MOST_STEPS):
        if problem := depth_problem(at, documents, fans):
            # A step of another file is reported at the name of this pipeline.
            where = f"step {at.place}: " if at.document else ""
            fields.report(warnings.TOO_DEEP, f"{where}{problem}", pipeline.name.span if at.document else at.step.span)
            return


def _leads_on(step: PlanStep) -> bool:
    """Tell whether a step has others inside, or may call a document."""
    return step.match is not None or not (step.work is None or step.work.is_leaf)
