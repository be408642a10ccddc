"""Names of schemas, tools and identities that steps refer to."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase

from quire.formats.near_names import name_fix
from quire.formats.pipeline.checks.resolver import Settled
from quire.formats.pipeline.codes import lints, warnings
from quire.formats.pipeline.fields import Fields
from quire.formats.pipeline.gate import ALWAYS_THERE
from quire.formats.pipeline.syntax import AgentBody, PipelineFile, ToolBody
from quire.formats.pipeline.walk import holes, schema_of, walk
from quire.schema import refs


def check_schema_names(file: PipelineFile, fields: Fields) -> None:
    defined = {schema.name: schema for schema in file.schemas}
    used = {ref.schema for schema in file.schemas for ref in refs(schema)}
    for pipeline in file.pipelines:
        for _, step in walk(pipeline):
            name = schema_of(step)
            if name is None:
                continue
            used.add(name.text)
            if name.text not in defined and name.text not in file.unread:
                message = f"the schema {fields.shown(name.text)} is not defined in this file"
                help = fields.suggestion(name.text, defined)
                fix = name_fix(name.text, defined, name.span) if help else ()
                fields.report(warnings.UNKNOWN_SCHEMA, message, name.span, help, fix)
    if file.unread or any(holes(pipeline) for pipeline in file.pipelines):
        return  # who cannot be read may be who refers to it
    for schema in file.schemas:
        if schema.name not in used:
            fields.report(lints.UNUSED_SCHEMA, f"nothing refers to the schema {schema.name}", schema.span)


def check_tool_names(file: PipelineFile, known: Collection[str], fields: Fields) -> None:
    there = {*known, *ALWAYS_THERE, "shell"}
    for pipeline in file.pipelines:
        for _, step in walk(pipeline):
            body = step.body
            named = (body.name,) if isinstance(body, ToolBody) else body.tools if isinstance(body, AgentBody) else None
            for name in named or ():
                if not _is_there(name.text, there, pattern=isinstance(body, AgentBody)):
                    message = f"there is no tool {fields.shown(name.text)} in this workspace"
                    help = fields.suggestion(name.text, there)
                    fields.report(warnings.UNKNOWN_TOOL, message, name.span, help)


def check_python_tools(file: PipelineFile, resolver: Settled, fields: Fields) -> None:
    for pipeline in file.pipelines:
        for _, step in walk(pipeline):
            if isinstance(step.body, ToolBody) and (problem := resolver.python_problem(step.body.name.text)):
                message = f"{fields.shown(step.body.name.text)} cannot be used: {problem}"
                fields.report(warnings.PYTHON_TOOL, message, step.body.name.span)


def _is_there(name: str, known: Collection[str], *, pattern: bool) -> bool:
    """An agent may be left all tools that fit a name with `*`."""
    if pattern and "*" in name:
        return any(fnmatchcase(one, name) for one in known)
    return name in known


def check_identities(file: PipelineFile, known: Collection[str] | None, fields: Fields) -> None:
    if known is None:
        return
    for pipeline in file.pipelines:
        for _, step in walk(pipeline):
            identity = step.body.identity if isinstance(step.body, AgentBody) else None
            if identity is not None and identity.text not in known:
                message = f"there is no identity {fields.shown(identity.text)} in this workspace"
                help = fields.suggestion(identity.text, known) or f"[agents.{identity.text}] in quire.toml declares it"
                fields.report(warnings.UNKNOWN_IDENTITY, message, identity.span, help)
