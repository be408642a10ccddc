"""The values of a pipeline as far as they are known: literals, expressions, prompts, replies that fit a schema, and
answers of people."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.analysis.abstract_values import AbstractValue, is_narrow, literal, sized
from quire.analysis.amounts import NOTHING, Amount, number
from quire.analysis.expressions import computed, label_of, path_value
from quire.analysis.facts import Condition, Place
from quire.analysis.labels import AUTHORED, Label
from quire.analysis.written_sizes import text_length
from quire.expr.syntax import Path, path_of
from quire.plan.pipeline_work import Formula, Literal
from quire.schema_types import FieldType, ListOf, Object, Ref, Simple
from quire.source import NOWHERE

if TYPE_CHECKING:
    from quire.analysis.scope import Scope
    from quire.expr import Read
    from quire.plan.nodes import Template


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
    bound, versions, found = scope.names.bound, scope.versions, []
    for one in reads:
        name = one.store
        if name is not None and one.path[0] not in bound:
            found.append(f"{name}#{versions.get(name, 0)}")
    return found


def condition_of(formula: Formula, place: Place, scope: Scope) -> Condition:
    """Return an expression as a condition, with the values that it reads."""
    compiled, names, written = formula.compiled, scope.names, scope.versions
    root, bound = compiled.expression.root, names.bound
    values, versions = {}, []
    for one in compiled.reads():
        name, path = one.store, one.path
        values[one.name] = names.path(path)
        if name is not None and path[0] not in bound:
            versions.append(f"{name}#{written.get(name, 0)}")
    return Condition(place, root, True, values, label_of(root, names), None, formula.span, (), tuple(versions))


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
        fields = {one.name: shaped(one.type, value, scope, depth + 1) for one in resolved.fields}
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
