"""What built-in tools are given: names that they do not take, some that they need, and literals of a wrong kind.

What `!expr` gives is known only when the step runs, so that its name alone is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from quire.formats.near_names import word_fix
from quire.formats.pipeline.checks.resolver import Resolver
from quire.formats.pipeline.codes import warnings
from quire.formats.pipeline.fields import Fields
from quire.formats.pipeline.syntax import Literal, PipelineFile, ToolBody
from quire.formats.pipeline.walk import walk
from quire.schema.plain import plainly_fits
from quire.values import Value

_COMMAND = ("shell", "command")
"""What PL111 looks at."""


def check_arguments(file: PipelineFile, resolver: Resolver, fields: Fields) -> None:
    for pipeline in file.pipelines:
        for _, step in walk(pipeline):
            if isinstance(step.body, ToolBody):
                schema = resolver.parameters(step.body.name.text)
                if schema is not None:
                    _check(step.body, schema, fields)


def _check(body: ToolBody, schema: Mapping[str, Value], fields: Fields) -> None:
    tool = body.name.text
    properties = cast("Mapping[str, Mapping[str, Value]]", schema.get("properties", {}))
    given = {name.text for name, _ in body.args}
    missing = [name for name in cast("list[str]", schema.get("required", [])) if name not in given]
    if missing:
        message = f"{tool} needs {', '.join(missing)}"
        fields.report(warnings.ARGUMENTS, message, body.name.span, f"it takes {', '.join(properties)}")
    for name, value in body.args:
        known = properties.get(name.text)
        if known is None:
            if schema.get("additionalProperties") is False:
                help = fields.suggestion(name.text, properties)
                unset = [one for one in properties if one not in given]
                fix = word_fix(name.text, unset, name.span) if help else ()
                help = help or f"it takes {', '.join(properties)}"
                fields.report(warnings.ARGUMENTS, f"{tool} takes no {fields.shown(name.text)}", name.span, help, fix)
        elif isinstance(value, Literal) and (tool, name.text) != _COMMAND:
            problem = _problem(value.value, known)
            if problem:
                message = f"{name.text} of {tool} is wrong: {problem}"
                fields.report(warnings.ARGUMENTS, message, value.span)


def _problem(value: Value, schema: Mapping[str, Value]) -> str:
    """The first thing that is wrong with a value. Most values are plainly right, and then no library is loaded."""
    if plainly_fits(schema, value):
        return ""
    import jsonschema_rs

    error = next(iter(jsonschema_rs.validator_for(dict(schema)).iter_errors(value)), None)
    return error.message if error else ""
