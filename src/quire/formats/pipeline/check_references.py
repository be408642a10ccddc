"""Check the texts, names and arguments of a pipeline.

Texts: references where none are filled in, mistakes in expressions, and commands that cannot run. Names: schemas, tools
and identities that steps refer to. Arguments of built-in tools: unknown and missing names, and literals of the wrong
type; the value of `!expr` is known only when the step runs, so only its name is checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, cast

from quire.diagnostics import replacing
from quire.expr.suggestions import slips
from quire.formats.near_names import name_fix, word_fix
from quire.formats.pipeline import syntax
from quire.formats.pipeline.codes import warnings
from quire.formats.pipeline.inline import ALWAYS_THERE
from quire.formats.pipeline.inputs import further_inputs, needed_inputs
from quire.formats.pipeline.prompt_references import attempts, foreign, references
from quire.formats.pipeline.syntax import Literal, Pipeline, PipelineFile, Step, Text
from quire.formats.pipeline.walks import expressions, holes, in_role, inner_expressions, own_prompts, schema_of, walk
from quire.plain_schema import plainly_fits
from quire.plan.built_in_tools import MEANT_TOOLS
from quire.schema import Schema, refs
from quire.wording import did_you_mean, quoted

if TYPE_CHECKING:
    from quire.formats.pipeline.fields import Fields
    from quire.formats.resolver import DocumentResolver
    from quire.source import Span
    from quire.values import Value

_ROOTS = ("ctx", "pipe", "item", "acc")


def check_texts(pipeline: Pipeline, fields: Fields) -> None:
    """Check the expressions, prompts, arguments and commands of a pipeline."""
    names = _mistakable(pipeline)
    for _, step in walk(pipeline):
        _check_step(step, names, fields)


def _check_step(step: Step, names: Collection[str], fields: Fields) -> None:
    """Check the texts of one step. `names` are those that double braces in prompts may be meant for."""
    for expression in (*expressions(step), *inner_expressions(step)):
        for slip in slips(expression.expression):
            fields.report(slip.code, slip.message, fields.at(expression, slip.span), slip.help)
    for prompt in own_prompts(step):
        _check_prompt(prompt, names, fields)
    tools = [name.text for name in in_role(step, "tool")]
    named = [argument for arguments in in_role(step, "arguments") for argument in arguments]
    commands = [value for name, value in named if "shell" in tools and name.text == "command"]
    commands += in_role(step, "command")
    for value in (*(value for _, value in named), *in_role(step, "command"), *in_role(step, "argument")):
        _check_argument(value, fields)
    for command in commands:
        _check_command(command, fields)


def _mistakable(pipeline: Pipeline) -> Collection[str]:
    """Return the names that foreign references may be meant for. `ctx` is among them if no prompt has a reference in
    single braces: then its author may not know that double braces are an escape."""
    steps = [step for _, step in walk(pipeline)]
    prompts = [prompt.text for step in steps for prompt in in_role(step, "prompt")]
    if not any(True for prompt in prompts for _ in foreign(prompt)):
        return ()
    names = {*needed_inputs(pipeline), *further_inputs(pipeline), "pipe"}
    names.update(step.output.text for step in steps if step.output)
    if any(isinstance(step.body, syntax.ForEachBody | syntax.FoldBody) for step in steps):
        names.add("item")
    if any(isinstance(step.body, syntax.FoldBody | syntax.RepeatBody) for step in steps):
        names.add("acc")
    return names if any(True for prompt in prompts for _ in references(prompt)) else {*names, "ctx"}


def _check_prompt(prompt: Text, names: Collection[str], fields: Fields) -> None:
    if not prompt.text.strip():
        fields.report(warnings.EMPTY_PROMPT, "the prompt is empty", prompt.span)
    for part in attempts(prompt.text):
        text = prompt.text[part.start : part.end]
        inside = text[1:-1].strip()
        is_path = any(reference.span.end == len(inside) + 2 for reference in references(f"{{{inside}}}"))
        help = f"write {{{inside}}}" if is_path else "compute it in a transform step, and refer to its output"
        message = f"{quoted(text)} is not a reference: it is sent to the model literally"
        place = fields.at(prompt, part)
        fix = replacing(place, text, f"{{{inside}}}") if is_path else None
        fields.report(warnings.NO_REFERENCE, message, place, help, fix)
    single = {".".join(reference.path) for reference in references(prompt.text)} if names else set[str]()
    for part, path in foreign(prompt.text):
        _check_foreign(prompt, part, path, names, single, fields)


def _check_foreign(
    prompt: Text, part: Span, path: str, names: Collection[str], single: Set[str], fields: Fields
) -> None:
    """Report references in the syntax of other formats, to one of the `names`. `{{ctx.x}}` is an escape, and meant as
    one where `x` is among the `single` references of the prompt."""
    text, code = prompt.text[part.start : part.end], warnings.NO_REFERENCE
    root, _, rest = path.partition(".")
    exists = (rest.partition(".")[0] if root == "ctx" else root) in names
    if text.startswith("{{"):
        is_meant = root == "ctx" and not single.isdisjoint((path, rest))
        if is_meant or not (exists or root in names):
            return
        message = f"{quoted(text)} is an escape: the model is sent {quoted(text[1:-1])}"
        code = warnings.NO_REFERENCE if root == "ctx" else warnings.FOREIGN
    elif text.startswith("$"):
        if root not in _ROOTS:
            return
        message = f"the $ before {quoted(text[1:])} is text: the model is sent it before the value"
    else:
        is_foreign = exists or text[:5].lower() == "{ctx."
        if text[1:].partition(".")[0] in names or not (is_foreign or text.startswith("{input:")):
            return  # a store or an input has the name of the root; or other braces
        message = f"{quoted(text)} is not how a pipeline refers to a value: it is sent to the model literally"
        code = warnings.FOREIGN if is_foreign else warnings.NO_REFERENCE
    place = fields.at(prompt, part)
    fix = replacing(place, text, f"{{{path}}}") if code is warnings.FOREIGN else None
    help = f"write {{{path}}}" + (", with one brace on each side" if text.startswith("{{") else "")
    fields.report(code, message, place, help, fix)


def _check_argument(value: syntax.Argument | None, fields: Fields) -> None:
    if not isinstance(value, Literal):
        return
    for text in _texts(value.value):
        for reference in references(text):
            if reference.path[0] not in _ROOTS:
                continue
            path = ".".join(reference.path)
            whole = text == f"{{{path}}}" and text == value.value
            help = f"write !expr {path}" if whole else "write the whole value as an expression after !expr"
            message = f"{{{path}}} is not filled in here: only prompts have references"
            fields.report(warnings.LITERAL_REFERENCE, message, value.span, help)
            return


def _check_command(value: syntax.Argument, fields: Fields) -> None:
    if not isinstance(value, Literal):
        return
    command = value.value
    is_list = isinstance(command, list) and all(isinstance(word, str) for word in command)
    if not command or not (is_list or isinstance(command, str)):
        message = "a command is a text, or a list of texts with at least one"
        fields.report(warnings.COMMAND, message, value.span, 'write numbers in quotes: [sleep, "1"]')


def _texts(value: Value) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def check_schema_names(file: PipelineFile, fields: Fields) -> None:
    defined = [schema.name for schema in file.schemas]
    names = [name for step in _steps(file) if (name := schema_of(step))]
    for name in names:
        if name.text not in defined and name.text not in file.unread:
            message = f"the schema {quoted(name.text)} is not defined in this file"
            help = fields.suggestion(name.text, defined)
            fix = name_fix(name.text, defined, name.span) if help else None
            fields.report(warnings.UNKNOWN_SCHEMA, message, name.span, help, fix)
    if not any(holes(pipeline) for pipeline in file.pipelines):
        _check_unused_schemas(file, {name.text for name in names}, fields)


def _steps(file: PipelineFile) -> Iterator[Step]:
    return (step for pipeline in file.pipelines for _, step in walk(pipeline))


def _check_unused_schemas(file: PipelineFile, used: Collection[str], fields: Fields) -> None:
    """Report schemas that neither steps, which use those in `used`, nor inputs nor other schemas refer to. All steps
    have been read."""
    if file.unread:
        return  # a part that cannot be read may refer to it
    referred = {ref.schema for schema in file.schemas for ref in refs(schema)}
    for pipeline in file.pipelines:
        referred |= {ref.schema for ref in refs(Schema(pipeline.name.text, pipeline.input or ()))}
    for schema in file.schemas:
        if schema.name not in used and schema.name not in referred:
            fields.report(warnings.UNUSED_SCHEMA, f"nothing refers to the schema {schema.name}", schema.span)


def check_tool_names(file: PipelineFile, known: Collection[str], fields: Fields) -> None:
    there = frozenset({*known, *ALWAYS_THERE, "shell"})
    for step in _steps(file):
        offered = [name for names in in_role(step, "tools") for name in names]
        for name in (*in_role(step, "tool"), *offered):
            # An agent may name several tools with `*`.
            is_pattern = name in offered and "*" in name.text
            if not (any(fnmatchcase(tool, name.text) for tool in there) if is_pattern else name.text in there):
                message = f"unknown tool {quoted(name.text)} in this workspace"
                help = did_you_mean(MEANT_TOOLS.get(name.text)) or fields.suggestion(name.text, there)
                fields.report(warnings.UNKNOWN_TOOL, message, name.span, help)


def check_python_tools(file: PipelineFile, resolver: DocumentResolver, fields: Fields) -> None:
    for step in _steps(file):
        for name in in_role(step, "tool"):
            if problem := resolver.python_problem(name.text):
                message = f"{quoted(name.text)} cannot be used: {problem}"
                fields.report(warnings.PYTHON_TOOL, message, name.span)


def check_identities(file: PipelineFile, known: Collection[str] | None, fields: Fields) -> None:
    if known is None:
        return
    for identity in (identity for step in _steps(file) for identity in in_role(step, "identity")):
        if identity.text not in known:
            message = f"unknown identity {quoted(identity.text)} in this workspace"
            help = fields.suggestion(identity.text, known) or f"[agents.{identity.text}] in quire.toml declares it"
            fields.report(warnings.UNKNOWN_IDENTITY, message, identity.span, help)


_COMMAND = ("shell", "command")
"""The argument that PL111 checks."""


def check_arguments(file: PipelineFile, resolver: DocumentResolver, fields: Fields) -> None:
    for step in _steps(file):
        arguments = [argument for arguments in in_role(step, "arguments") for argument in arguments]
        for name in in_role(step, "tool"):
            schema = resolver.parameters(name.text)
            if schema is not None:
                _check(name, arguments, schema, fields)


def _check(
    called: syntax.Name,
    arguments: list[tuple[syntax.Name, syntax.Argument]],
    schema: Mapping[str, Value],
    fields: Fields,
) -> None:
    tool = called.text
    properties = cast("Mapping[str, Mapping[str, Value]]", schema.get("properties", {}))
    written = {name.text for name, _ in arguments}
    missing = [name for name in cast("list[str]", schema.get("required", [])) if name not in written]
    if missing:
        message = f"{tool} needs {', '.join(missing)}"
        fields.report(warnings.ARGUMENTS, message, called.span, f"it takes {', '.join(properties)}")
    for name, value in arguments:
        parameter = properties.get(name.text)
        if parameter is None:
            if schema.get("additionalProperties") is False:
                help = fields.suggestion(name.text, properties)
                unset = [key for key in properties if key not in written]
                fix = word_fix(name.text, unset, name.span) if help else None
                help = help or f"it takes {', '.join(properties)}"
                fields.report(warnings.ARGUMENTS, f"{tool} takes no {quoted(name.text)}", name.span, help, fix)
        elif isinstance(value, Literal) and (tool, name.text) != _COMMAND and (problem := _problem(value, parameter)):
            fields.report(warnings.ARGUMENTS, f"{name.text} of {tool} is wrong: {problem}", value.span)


def _problem(argument: Literal, schema: Mapping[str, Value]) -> str:
    """Return the first thing that is wrong with an argument.

    Most values are clearly right, and then no library is loaded.
    """
    if plainly_fits(schema, argument.value):
        return ""
    import jsonschema_rs

    error = next(iter(jsonschema_rs.validator_for(dict(schema)).iter_errors(argument.value)), None)
    return error.message if error else ""
