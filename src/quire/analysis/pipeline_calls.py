"""Walk over the steps of a pipeline that reach outside (tools, questions and agents), and evaluate its literals,
expressions, prompts and replies that fit a schema as far as they are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.analysis.abstract_values import NULL, TEXT, AbstractValue, either, is_narrow, literal, reply_value, sized
from quire.analysis.amounts import NOTHING, Amount, number
from quire.analysis.expressions import computed, label_of, path_value
from quire.analysis.facts import Condition, Place, QuestionFact
from quire.analysis.labels import AUTHORED, MODEL, PRIVATE, Integrity, Label, Trace
from quire.analysis.model_costs import model_calls
from quire.analysis.tool_flows import reading
from quire.analysis.written_sizes import text_length
from quire.engine.premises import REPAIRS
from quire.expr.syntax import Path, path_of
from quire.plan.pipeline_work import Formula, Literal
from quire.plan.uses import OWN_TOOLS
from quire.schema_types import FieldType, ListOf, Object, Ref, Simple
from quire.source import NOWHERE

if TYPE_CHECKING:
    from quire.analysis.costs import Cost
    from quire.analysis.scope import Scope
    from quire.analysis.walk import Walk
    from quire.expr import Read
    from quire.plan.nodes import Template
    from quire.plan.pipeline_work import Agent, Invoke
    from quire.schema import Schema


_SCHEMA_WORDS = 100
"""Bytes of the sentence before a JSON Schema in the system text."""
_MOST_SCHEMAS = 256
_schemas: dict[tuple[int, str], tuple[Mapping[str, Schema], int]] = {}
"""The lengths of JSON Schemas that were measured, with the mapping that the key identifies, so that it stays."""


def invoke(walk: Walk, work: Invoke, place: Place, scope: Scope, cost: Cost) -> AbstractValue:
    arguments: dict[str, AbstractValue] = {}
    label, reads = AUTHORED, []
    for name, written in work.arguments:
        if type(written) is Literal:
            arguments[name] = literal(written.value)
        else:
            value = arguments[name] = computed(written.compiled, scope.names)
            label = label.join(value.label)
            reads += versions_of(written.compiled.reads(), scope)
    name = work.tool
    if name in OWN_TOOLS:
        return _question(walk, work, arguments, place, scope, cost)
    if name == "shell" and work.piped and "stdin" not in arguments:
        arguments["stdin"] = scope.names.pipe
        label = label.join(scope.names.pipe.label)
    results = []
    versions = tuple(dict.fromkeys(reads) if len(reads) > 1 else reads)
    for tool in walk.world.tools("", name):
        if tool.gives_privacy is PRIVATE:  # only that depends on the file
            tool = reading(tool, name, dict(work.arguments), walk.world)
        results.append(walk.note_call(tool, arguments, place, scope, cost, label, given=label, reads=versions))
    result = (results[0] if len(results) == 1 else either(results)) if results else NULL
    scope.names.failures.add(result.label)
    return held_to_schema(work.schema, result, scope)


def _question(
    walk: Walk, work: Invoke, arguments: Mapping[str, AbstractValue], place: Place, scope: Scope, cost: Cost
) -> AbstractValue:
    shown = tuple(arguments[name] for name in ("show", "prompt") if name in arguments)
    kind = arguments["type"].constant if "type" in arguments else "input"
    options = arguments["options"].constant if "options" in arguments else ()
    default = arguments["default"].constant if "default" in arguments else None
    names = tuple(
        dict.fromkeys(
            version
            for name, value in work.arguments
            if name in ("show", "prompt")
            for version in read_versions(value, scope)
        )
    )
    words = tuple(str(option) for option in options) if isinstance(options, list | tuple) else ()
    question = QuestionFact(
        place,
        kind if kind in ("input", "confirm", "select") else "input",
        shown,
        names,
        words,
        default if isinstance(default, str) else None,
        scope.fans,
        scope.often,
        bool(scope.conditions),
    )
    return walk.ask(question, scope, cost)


def _schema_length(name: str, schemas: Mapping[str, Schema]) -> int:
    """Return the bytes of a schema as JSON Schema; 0 if there is no such schema, because then the step fails."""
    key = id(schemas), name
    measured = _schemas.get(key)
    if measured is None:
        from quire.values import encode

        schema = schemas.get(name)
        length = text_length(encode(schema.json_schema(schemas.get))) if schema is not None else 0
        while len(_schemas) >= _MOST_SCHEMAS:
            _schemas.pop(next(iter(_schemas)), None)
        measured = _schemas[key] = schemas, length
    return measured[1]


def agent(walk: Walk, work: Agent, place: Place, scope: Scope, cost: Cost) -> AbstractValue:
    profile = walk.world.agent(work)
    length, label = prompt_of(work.prompt, scope)
    if work.file:
        # The file is read when the step runs, and it may refer to every store.
        everything = scope.names.everything()
        length, label = number(1_000_000).plus(everything.length), label.join(everything.label)
        trace = Trace(work.file, place.way, place.span, place.document)
        label = label.at_least(Integrity.WORKSPACE, trace)
    shape = _schema_length(work.schema, scope.plan.schemas) if work.schema else 0
    calls = model_calls(
        cost,
        profile,
        length.plus(number(_SCHEMA_WORDS + shape)) if shape else length,
        place,
        # A file may refer to a value many times, so its length does not bound the prompt.
        reads_replies=label.chosen >= MODEL or bool(work.file),
        repairs=REPAIRS if work.schema else 0,
        forced=shape,
    )
    output = walk.note_model(profile, walk.told(label, profile.tools, place), calls, place, scope)
    scope.names.failures.add(output)
    reply = reply_value(None if work.schema else TEXT, profile.reply_tokens, output)
    return held_to_schema(work.schema, reply, scope)


def value_of(what: Literal | Formula, scope: Scope) -> AbstractValue:
    """Return what is known about a literal or an expression of the document."""
    if type(what) is Formula:
        return computed(what.compiled, scope.names)
    return literal(what.value)


def read_versions(what: Literal | Formula, scope: Scope) -> list[str]:
    """Return the stores that an expression reads, with their versions."""
    return [] if isinstance(what, Literal) else versions_of(what.compiled.reads(), scope)


def versions_of(reads: Iterable[Read], scope: Scope) -> list[str]:
    """Return the stores among the reads of an expression, with their versions."""
    bound, versions = scope.names.bound, scope.versions
    stores = [read.store for read in reads if read.store is not None and read.path[0] not in bound]
    return [f"{name}#{versions.get(name, 0)}" for name in stores]


def condition_of(formula: Formula, place: Place, scope: Scope) -> Condition:
    """Return an expression as a condition, with the values that it reads."""
    names, root, reads = scope.names, formula.compiled.expression.root, formula.compiled.reads()
    values = {read.name: names.path(read.path) for read in reads}
    versions = tuple(versions_of(reads, scope))
    return Condition(place, root, True, values, label_of(root, names), None, formula.span, (), versions)


def held_to_schema(schema: str | None, value: AbstractValue, scope: Scope) -> AbstractValue:
    """Return a value that was held to a schema: fields that can only be one of a few values are narrow."""
    if schema is None or schema not in scope.plan.schemas:
        return value
    return shaped(Ref(schema), value, scope, 0)


def shaped(type: FieldType, value: AbstractValue, scope: Scope, depth: int) -> AbstractValue:
    resolved = scope.names.resolved(type)
    if depth > 12:
        return value
    if is_narrow(resolved):
        return sized(resolved, value.length, value.label.narrowed())
    if isinstance(resolved, Object):
        fields = {field.name: shaped(field.type, value, scope, depth + 1) for field in resolved.fields}
        return replace(value, type=resolved, fields=fields)
    if isinstance(resolved, ListOf):
        element = shaped(resolved.of, value, scope, depth + 1)
        return replace(sized(resolved, value.length, value.label, value.items), element=element)
    fitting = sized(resolved, value.length, value.label, value.items)
    if isinstance(resolved, Simple) and resolved.pattern is not None:
        from quire.analysis.pattern_inclusion import is_word_pattern  # few schemas have patterns

        return replace(fitting, is_word=is_word_pattern(resolved.pattern))
    return fitting


@lru_cache(maxsize=1024)
def _path(name: str) -> Path:
    return path_of(tuple(name.split(".")), (), NOWHERE)


def prompt_of(prompt: Template, scope: Scope) -> tuple[Amount, Label]:
    """Return the bytes of a prompt with its values filled in, and the label of all of it."""
    names, fixed, length, label = scope.names, 0, NOTHING, AUTHORED
    for part in prompt.parts:
        if isinstance(part, str):
            fixed += len(part) if part.isascii() else text_length(part)
        else:
            value = path_value(_path(part.name), names)
            label = label.join(value.label)
            length = length.plus(value.length) if length is not NOTHING else value.length
            fixed += 4 * len(part.raw)
    return length.plus(number(fixed)), label
