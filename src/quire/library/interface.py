"""The inputs and the result of a document, as its callers see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from quire.errors import QuireError
from quire.formats.resolver import DocumentInterface
from quire.schema import Field, FieldType, Kind, Object, Ref, Simple

if TYPE_CHECKING:
    from quire.library.library import Library
    from quire.plan.nodes import Plan
    from quire.plan.thread import Parameter, Thread
    from quire.values import Value


_ANY = Ref("")
"""The type of an unknown value: a schema that no file has."""

_TEXT = Simple(Kind.STRING)
_KINDS = {
    "string": _TEXT,
    "integer": Simple(Kind.NUMBER),
    "number": Simple(Kind.NUMBER),
    "boolean": Simple(Kind.BOOL),
}


def interface_of(name: str, library: Library) -> DocumentInterface | None:
    """Describe the document that a name means; None if there is none."""
    registered = library.registry().pipelines.get(name)
    if registered is not None:
        if registered.plan.declared is not None:
            return _pipeline(name, registered.plan, registered.plan.declared)
        # A pipeline that declares no inputs needs the values that it reads.
        from quire.formats.pipeline.check_calls import needs_of

        needed, read = needs_of(registered.tree)
        return DocumentInterface("pipeline", name, needed, None if read is None else tuple(sorted(read)))
    try:
        document = library.find(name)
    except QuireError:
        return DocumentInterface("document", name)  # it exists but cannot be read; the run reports why
    if document is None:
        return None
    if document.plan is None:
        return DocumentInterface(document.format, name)
    return interface_of_plan(name, document.plan)


def interface_of_plan(name: str, plan: Plan) -> DocumentInterface:
    """Describe a playbook or a directive."""
    return _directive(name, plan.thread) if plan.thread else _playbook(name, plan)


def _pipeline(name: str, plan: Plan, inputs: tuple[Field, ...]) -> DocumentInterface:
    from quire.engine.declared_inputs import problem_of

    declared = {one.name: one for one in inputs}

    def wrong(given: str, value: Value) -> str:
        return problem_of(plan, declared[given], value) if given in declared and value is not None else ""

    required = tuple(one.name for one in inputs if one.is_needed)
    return DocumentInterface("pipeline", name, required, tuple(declared), None, wrong)


def _playbook(name: str, plan: Plan) -> DocumentInterface:
    """Describe a playbook for its callers. Its captures are texts; without a capture its result is a text."""
    from quire.engine.inputs import checked_input, text_of_input

    inputs = {one.name: one for one in plan.inputs}

    def wrong(given: str, value: Value) -> str:
        text = text_of_input(value)
        if given not in inputs or not text.strip():
            return ""  # a blank means the default
        return _said(lambda: checked_input(inputs[given], text, one_line=False))

    required = tuple(one.name for one in plan.inputs if one.required and one.default is None)
    captured = dict.fromkeys(step.capture.name for _, step in plan.steps() if step.capture)
    gives: FieldType = _TEXT
    if captured:
        gives = Object(tuple(Field(one, _TEXT) for one in {**captured, "output": None}))
    return DocumentInterface("playbook", name, required, tuple(inputs), gives, wrong)


def _directive(name: str, thread: Thread) -> DocumentInterface:
    from quire.engine.inputs import converted

    inputs = {one.name: one for one in thread.inputs}

    def wrong(given: str, value: Value) -> str:
        if given not in inputs or value is None:
            return ""
        return _said(lambda: converted(inputs[given].type, value))

    required = tuple(one.name for one in thread.inputs if one.required and one.default is None)
    return DocumentInterface(
        "directive", name, required, tuple(inputs) if inputs else None, _outputs(thread.outputs), wrong
    )


def _outputs(outputs: tuple[Parameter, ...]) -> FieldType:
    """Return the type of the outputs. An output declared as `string` takes any value: only other types are checked."""
    if not outputs:
        return _TEXT
    kinds: Mapping[str, FieldType] = {name: kind for name, kind in _KINDS.items() if kind != _TEXT}
    return Object(tuple(Field(one.name, kinds.get(one.type, _ANY), required=one.required) for one in outputs))


def _said(check: Callable[[], object]) -> str:
    """Run a check and return the message of its error, or an empty text."""
    try:
        check()
    except ValueError as error:
        return str(error)
    return ""
