"""Run all checks of a pipeline file that go beyond reading it, those of limits that its runs would exceed among them.

Without a resolver only the file itself is considered: a target that is not in it may be registered elsewhere.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Mapping
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.formats.pipeline.check_calls import CallChecker, Find, call_cycles, finder
from quire.formats.pipeline.check_references import (
    check_arguments,
    check_identities,
    check_python_tools,
    check_schema_names,
    check_texts,
    check_tool_names,
)
from quire.formats.pipeline.check_stores import check_inputs, check_stores
from quire.formats.pipeline.check_types import check_types
from quire.formats.pipeline.codes import codes, warnings
from quire.formats.pipeline.fields import Fields
from quire.formats.pipeline.lower import lower
from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.syntax import ForEachBody, Literal, Pipeline, PipelineFile, Step
from quire.formats.pipeline.walks import all_targets, in_role, targets, walk
from quire.plan.nodes import Sequence
from quire.plan.reach import cap_problem, depth_problem, reach, too_many_items

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.formats.pipeline.syntax import ParseResult
    from quire.formats.resolver import DocumentResolver
    from quire.plan.nodes import Plan
    from quire.schema import Field, FieldType
    from quire.source import Source


__all__ = ["call_cycles", "check", "check_reading", "codes", "finder"]


def check(source: Source) -> tuple[Diagnostic, ...]:
    return check_reading(parse(source))


def check_reading(
    reading: ParseResult, resolver: DocumentResolver | None = None, *, plans: bool = True
) -> tuple[Diagnostic, ...]:
    """Return the findings of a reading and of all checks, in the order of the text. Without `plans`, those of
    `check_plans` are left out, which takes as long as all others together.

    If there are errors, the rest of the file is checked all the same; the findings then hold for any content of the
    unread parts.
    """
    file = reading.file or reading.partial
    if file is None:
        return reading.diagnostics
    fields = Fields(reading.source)
    find = finder(file, resolver)
    tools = resolver.tools() if resolver else None
    calls = CallChecker(find, fields, resolver, unread=file.unread)
    check_schema_names(file, fields)
    if tools is not None:
        check_tool_names(file, tools, fields)
    if resolver is not None:
        check_identities(file, resolver.identities(), fields)
        check_arguments(file, resolver, fields)
        check_python_tools(file, resolver, fields)
    if reading.file is not None:
        check_limits(reading.file, resolver if plans else None, fields)
    for pipeline in file.pipelines:
        calls.check(pipeline)
        check_stores(pipeline, fields)
        check_texts(pipeline, fields)
        check_inputs(pipeline, fields)
        gives, takes = _interfaces(pipeline, find, resolver)
        check_types(pipeline, file.schemas, fields, gives, takes, resolver)
    reported = set() if reading.file else {finding.span.start for finding in reading.diagnostics}
    fresh = (finding for finding in dict.fromkeys(fields.diagnostics) if finding.span.start not in reported)
    return tuple(sorted([*reading.diagnostics, *fresh], key=attrgetter("span.start", "span.end")))


def _interfaces(
    pipeline: Pipeline, find: Find, resolver: DocumentResolver | None
) -> tuple[dict[str, FieldType], dict[str, dict[str, Field]]]:
    """Return the known result types of the other documents that a pipeline calls, and the inputs that the called
    pipelines declare, by name."""
    gives: dict[str, FieldType] = {}
    takes: dict[str, dict[str, Field]] = {}
    for name in {target.pipeline.text for target in all_targets(pipeline)}:
        callee = find(name, pipeline)
        if callee is not None and callee.input is not None:
            takes[name] = {field.name: field for field in callee.input}
        interface = resolver.document(name) if resolver and callee is None else None
        if interface is not None and interface.gives is not None:
            gives[name] = interface.gives
    return gives, takes


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
    if in_role(step, "prompt") or in_role(step, "step") or in_role(step, "branches"):
        return True
    return any(target.pipeline.text in own or target.pipeline.text in callees for target in targets(step))


def _check_depth(pipeline: Pipeline, plan: Plan, documents: Mapping[str, Plan], fans: int, fields: Fields) -> None:
    """Report the first step that is nested too deep; all steps below it are as well."""
    # Only steps that have others inside, or may call a document, lead deeper.
    leading = (step for step in plan.body.steps if step.match is not None or (step.work and not step.work.is_leaf))
    nested = replace(plan, body=Sequence(tuple(leading)))
    for at in islice(reach(nested, documents), MOST_STEPS):
        if problem := depth_problem(at, documents, fans):
            # A step of another file is reported at the name of this pipeline.
            where = f"step {at.place}: " if at.document else ""
            fields.report(warnings.TOO_DEEP, f"{where}{problem}", pipeline.name.span if at.document else at.step.span)
            return
