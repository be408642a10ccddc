"""Run all checks of a pipeline file that go beyond reading it.

Without a resolver only the file itself is considered: a target that is not in it may be registered elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING

from quire.formats.pipeline.check_calls import CallChecker, Find, call_cycles, finder
from quire.formats.pipeline.check_inputs import check_inputs
from quire.formats.pipeline.check_limits import check_limits
from quire.formats.pipeline.check_references import (
    check_arguments,
    check_identities,
    check_python_tools,
    check_schema_names,
    check_texts,
    check_tool_names,
)
from quire.formats.pipeline.check_stores import check_stores
from quire.formats.pipeline.check_types import check_types
from quire.formats.pipeline.codes import codes
from quire.formats.pipeline.fields import Fields
from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.walks import (
    targets,
    walk,
)

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.formats.pipeline.syntax import (
        ParseResult,
        Pipeline,
    )
    from quire.formats.resolver import DocumentResolver
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

    If there are errors, the rest of the file is checked all the same; the findings then hold whatever the unread parts
    are.
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
        gives = _result_types(pipeline, find, resolver)
        check_types(pipeline, file.schemas, fields, gives, _declared_inputs(pipeline, find), resolver)
    known = {one.span.start for one in reading.diagnostics}
    fresh = (one for one in dict.fromkeys(fields.diagnostics) if reading.file or one.span.start not in known)
    found = [*reading.diagnostics, *fresh]
    return tuple(sorted(found, key=attrgetter("span.start", "span.end")))


def _declared_inputs(pipeline: Pipeline, find: Find) -> Mapping[str, Mapping[str, Field]]:
    """Return the inputs that the called pipelines declare, by name."""
    names = {target.pipeline.text for _, step in walk(pipeline) for target in targets(step)}
    callees = {name: find(name, pipeline) for name in names}
    declaring = {name: callee.input for name, callee in callees.items() if callee and callee.input is not None}
    return {name: {one.name: one for one in inputs} for name, inputs in declaring.items()}


def _result_types(pipeline: Pipeline, find: Find, resolver: DocumentResolver | None) -> Mapping[str, FieldType]:
    """Return the known result types of the documents that a pipeline calls, by name."""
    if resolver is None:
        return {}
    names = {target.pipeline.text for _, step in walk(pipeline) for target in targets(step)}
    called = {name: resolver.document(name) for name in names if find(name, pipeline) is None}
    return {name: one.gives for name, one in called.items() if one and one.gives is not None}
