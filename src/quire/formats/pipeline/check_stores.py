"""Check the stores and the declared inputs of a pipeline.

Stores: read before they are written, written where no step can read them, and names that are nearly another. Inputs:
names that steps read without a declaration, inputs that no step reads, and the values that callers pass. A pipeline
without `input:` takes anything.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, assert_never

from msgspec import UNSET
from msgspec.structs import replace

from quire.diagnostics import Edit, Fix, Severity
from quire.expr import RESERVED
from quire.formats.pipeline.codes import errors as codes
from quire.formats.pipeline.codes import warnings
from quire.formats.pipeline.inputs import Use, unread_inputs, uses
from quire.formats.pipeline.syntax import FoldBody, MatchBody, Pipeline, RepeatBody, Step, StepsBody
from quire.formats.pipeline.walks import holes, parts, walk
from quire.schema import Enum, Field, FieldType, ListOf, Object, Ref, Simple, type_words, violations
from quire.wording import MOST_CHOICES

if TYPE_CHECKING:
    from quire.formats.pipeline.fields import Fields
    from quire.formats.pipeline.inputs import Written
    from quire.source import Span
    from quire.values import Value


HIDES_ERRORS = "this variable hides the errors that a collect can read"
_MISSPELT = replace(warnings.LIKELY_SLIP, severity=Severity.WARNING)
_WHERE = {
    "item": "item exists in the do of a for_each or a fold; pass: {NAME: item} hands it on",
    "acc": "acc exists in the do of a fold or a repeat",
}


def _place(use: Use, fields: Fields) -> Span:
    return use.span if use.text is None else fields.at(use.text, use.span)


def check_stores(pipeline: Pipeline, fields: Fields) -> None:
    """Check where the stores of a pipeline are read and written."""
    inner = {step.output.text for top in pipeline.steps for step, _ in _inside(top) if step.output}
    check = _StoreCheck(pipeline, inner, any(hole.output is None for hole in holes(pipeline)), fields)
    for use in uses(pipeline):
        check.use(use)
    for top in pipeline.steps:
        for step, lost in ((top, False), *_inside(top)):
            _check_output(step, lost, fields)


class _StoreCheck:
    """Checks the places of one pipeline that read stores, one after the other."""

    def __init__(self, pipeline: Pipeline, inner: Collection[str], any_store: bool, fields: Fields) -> None:
        """`inner` are the stores that are written inside of other steps. `any_store` tells that a step that cannot be
        read may write any store, because its output is not known."""
        self.declared = None if pipeline.input is None else {name.text for name in pipeline.input_names}
        self._inner = inner
        self._any_store = any_store
        self._fields = fields
        self._stores = _WrittenStores()

    def use(self, use: Use) -> None:
        root = use.path[0]
        if root in _WHERE and root not in use.bindings:
            message = f"{root} does not exist here"
            self._fields.report(warnings.UNBOUND, message, _place(use, self._fields), _WHERE[root])
        name = use.store
        if name is None or use.optional or self._any_store or name in (self.declared or ()):
            return
        if not use.written(name):
            self._read(name, use)
        elif not use.certainly_written(name):
            _check_uncertain(name, use, self._fields)

    def _read(self, name: str, use: Use) -> None:
        """Report a read of a store that is not written. Names without a declaration are left to `check_inputs`."""
        fields, at = self._fields, use.first.get(name)
        # A step that reads and writes the same name works on an input.
        if at is not None and at.begins > use.index:
            message = f"{name} is read here, but step {at.label} writes it, later"
            fields.report(warnings.UNWRITTEN, message, _place(use, fields), "else it has to be an input")
        elif at is None and name in self._inner:
            message = f"{name} is written only inside of another step, and does not exist here"
            help = "give the whole step an output, or read it with get(ctx, …)"
            fields.report(warnings.UNWRITTEN, message, _place(use, fields), help)
        elif at is None and fields.suggestions.are_left:
            help = fields.suggestion(name, [*self._stores.before(use), *(self.declared or ())])
            if help and use.in_prompt and use.path[0] != "ctx":
                sent = f"{{{'.'.join(use.path)}}} is sent to the model literally"
                message = f"no step writes {name}: unless it is an input, {sent}"
                fields.report(_MISSPELT, message, _place(use, fields), help)
            elif help and self.declared is None:
                message = f"no step writes {name}, so it is an input"
                fields.report(warnings.LIKELY_SLIP, message, _place(use, fields), help)


class _WrittenStores:
    """Lists the stores that are written before a place. Those of a scope are sorted once: a document may have thousands
    of stores, and as many places that read."""

    def __init__(self) -> None:
        self._sorted: dict[int, tuple[Mapping[str, Written], list[tuple[int, int, str]]]] = {}
        """By the identity of the stores of a scope, with these: when each is written, its number and its name."""

    def before(self, use: Use) -> list[str]:
        """Return the stores in their order, or too many to compare with in any order."""
        first, stores = self._sorted.get(id(use.first), ({}, []))
        if first is not use.first:
            stores = sorted((written.ends, at, name) for at, (name, written) in enumerate(use.first.items()))
            self._sorted[id(use.first)] = use.first, stores
        earlier = stores[: bisect_left(stores, (use.index, -1, ""))]
        if len(earlier) <= MOST_CHOICES:
            earlier.sort(key=itemgetter(1))
        return [name for _, _, name in earlier[: MOST_CHOICES + 1]]


def _check_uncertain(name: str, use: Use, fields: Fields) -> None:
    """Report a variable that may be missing, because the step that writes it can be skipped."""
    at, guard = use.first[name], use.step.guard
    when = guard.when if guard is not None else None
    if when is not None and when.text == at.when and use.text is not when:
        return
    message = f"{name} may be missing: step {at.label}, which writes it, can be skipped"
    help = f"give step {at.label} a default if its kind has one, or let the step that reads it have the same when"
    help = help if use.in_prompt else f"read it with get(ctx, '{name}'), {help}"
    where = _place(use, fields)
    fields.report(warnings.MAYBE_UNWRITTEN, message, where, help, _get_fix(use, where, fields))


def _get_fix(use: Use, where: Span, fields: Fields) -> Fix | None:
    """Return the edit that reads a store with `get`. A prompt has no functions, and a null there is another text."""
    if use.in_prompt or use.text is None:
        return None
    path = use.path[1:] if use.path[0] == "ctx" else use.path
    quote = '"' if fields.source.text.startswith("'", use.text.span.start) else "'"
    new = f"get(ctx, {quote}{'.'.join(path)}{quote})"
    return Fix(f"read it with {new}", (Edit(where, ".".join(use.path), new),), safe=False)


def _inside(step: Step) -> Iterator[tuple[Step, bool]]:
    """Yield the nested steps of a step, and whether their outputs are lost: a loop keeps them for its next item."""
    keeps = isinstance(step.body, FoldBody | RepeatBody | StepsBody | MatchBody)
    for _, part in parts(step):
        yield part, not keeps
        yield from _inside(part)


def _check_output(step: Step, lost: bool, fields: Fields) -> None:
    if step.output is None:
        return
    # The output of a fold is mandatory.
    if lost and not isinstance(step.body, FoldBody):
        message = f"{step.output.text} cannot be read: the copy of the variables that it is written to ends here"
        fields.report(warnings.LOST_OUTPUT, message, step.output.span, "the output of the whole step keeps the result")
    _check_hidden(step.output.text, "store", step.output.span, fields)


def _check_hidden(name: str, what: str, span: Span, fields: Fields) -> None:
    """Report a store or an input whose name alone means something else."""
    if name in RESERVED:
        message = f"{name} alone never means this {what}"
        fields.report(warnings.HIDDEN_STORE, message, span, f"it is read as ctx.{name}")
    elif name == "errors":
        fields.report(warnings.HIDDEN_STORE, HIDES_ERRORS, span, "give it another name")


def check_inputs(pipeline: Pipeline, fields: Fields) -> None:
    if pipeline.input is None:
        return
    # Stores that are written inside of other steps are checked with the other stores.
    inner = {step.output.text for path, step in walk(pipeline) if step.output and "." in path}
    unread = holes(pipeline)
    check = _InputCheck(pipeline, inner, any(hole.output is None for hole in unread), fields)
    for use in uses(pipeline):
        check.use(use)
    if not unread:
        for name in unread_inputs(pipeline, check.names):
            fields.report(codes.UNREAD, f"no step reads the input {name}", check.names[name])
    for name, span in check.names.items():
        _check_hidden(name, "input", span, fields)


class _InputCheck:
    """Checks the places of one pipeline that read its declared inputs, one after the other."""

    def __init__(self, pipeline: Pipeline, inner: Collection[str], any_store: bool, fields: Fields) -> None:
        """`inner` and `any_store` are as in `check_stores`."""
        self.declared = {field.name: field for field in pipeline.input or ()}
        self.names = {name.text: name.span for name in pipeline.input_names}
        self._inner = inner
        self._any_store = any_store
        self._fields = fields

    def use(self, use: Use) -> None:
        name, fields = use.store, self._fields
        if name is None or use.written(name):
            return
        if name in self.declared:
            _check_optional(self.declared[name], use, fields)
        elif name not in self.names and name not in self._inner and not self._any_store and not _is_other(use, name):
            message = f"{name} is not a declared input, and no step writes it"
            # Collecting the names takes as long as looking through them, so both are limited.
            written = (store for store in use.first if use.written(store))
            names = [*self.names, *written] if fields.suggestions.are_left else []
            help = fields.suggestion(name, names) or f"declare it under input, as in {name}: {{type: string}}"
            fields.report(codes.UNDECLARED, message, _place(use, fields), help)


def _is_other(use: Use, name: str) -> bool:
    """Tell whether a place is plain text of a prompt, or reads a store that only a later step writes."""
    later = use.first.get(name)
    return (use.in_prompt and use.path[0] != "ctx") or (later is not None and later.begins > use.index)


def _check_optional(field: Field, use: Use, fields: Fields) -> None:
    if field.required or field.default is not UNSET or use.optional:
        return
    message = f"the input {field.name} may be missing: it says required: false"
    help = f"get(ctx, '{field.name}') gives null instead of failing; or give it a default"
    fields.report(warnings.OPTIONAL_FIELD, message, _place(use, fields), help)


def wrong_value(field: Field, value: Value) -> str:
    """Return what is certainly wrong with a value for an input of a callee, whose schemas are not known here."""
    violation = next(violations((field,), {field.name: value}, lambda name: ()), None)
    return str(violation) if violation else ""


def wrong_type(field: Field, type: FieldType | None) -> str:
    """Return why no value of a type fits an input; empty if one may, or if the type is not known."""
    if type is None or _overlap(type, field.type):
        return ""
    return f"it takes {type_words(field.type)}, and this is {type_words(type)}"


def _overlap(type: FieldType, other: FieldType) -> bool:
    if isinstance(type, Enum) and isinstance(other, Enum):
        return any(value in other for value in type.values)
    if isinstance(type, ListOf) and isinstance(other, ListOf):
        return True  # both may be empty
    return not set(_kinds(type)).isdisjoint(_kinds(other))


def _kinds(type: FieldType) -> Iterator[str]:
    match type:
        case Simple(kind=kind):
            yield kind.value
        case ListOf():
            yield "list"
        case Object() | Ref():
            yield "object"
        case Enum(values=values):
            yield from map(_kind, values)
        case _:
            assert_never(type)


def _kind(value: Value) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    return "null" if value is None else "object" if hasattr(value, "keys") else "list"
