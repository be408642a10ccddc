"""The inputs and the result of a document as its callers see them, and its inputs as JSON Schema for forms and clients
of MCP."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from quire.engine.inputs import converted, kind_of
from quire.errors import QuireError
from quire.formats.resolver import DocumentInterface
from quire.schema import Field, FieldType, Kind, Object, Ref, Schema, Simple

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import Pipeline
    from quire.library.document import Document
    from quire.library.library import Library
    from quire.plan.nodes import Input, Plan
    from quire.plan.thread import Parameter, Thread
    from quire.values import Value


_ANY = Ref("")
"""The type of an unknown value: a schema that no file has."""

_TEXT = Simple(Kind.STRING)
_KINDS: Mapping[str, FieldType] = {
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

    declared = {field.name: field for field in inputs}

    def wrong(key: str, value: Value) -> str:
        return problem_of(plan, declared[key], value) if key in declared and value is not None else ""

    return DocumentInterface("pipeline", name, tuple(_needed(inputs)), tuple(declared), None, wrong)


def _playbook(name: str, plan: Plan) -> DocumentInterface:
    """Describe a playbook for its callers. Its captures are texts; without a capture its result is a text."""
    from quire.engine.inputs import checked_input, text_of_input

    inputs = {declared.name: declared for declared in plan.inputs}

    def wrong(key: str, value: Value) -> str:
        text = text_of_input(value)
        if key not in inputs or not text.strip():
            return ""  # a blank means the default
        return _problem(lambda: checked_input(inputs[key], text, one_line=False))

    captured = dict.fromkeys(step.capture.name for _, step in plan.steps() if step.capture)
    gives: FieldType = _TEXT
    if captured:
        gives = Object(tuple(Field(name, _TEXT) for name in {**captured, "output": None}))
    return DocumentInterface("playbook", name, tuple(_needed(plan.inputs)), tuple(inputs), gives, wrong)


def _directive(name: str, thread: Thread) -> DocumentInterface:
    inputs = {parameter.name: parameter for parameter in thread.inputs}

    def wrong(key: str, value: Value) -> str:
        return _problem(lambda: converted(inputs[key].type, value)) if key in inputs and value is not None else ""

    taken = tuple(inputs) if inputs else None
    return DocumentInterface("directive", name, tuple(_needed(thread.inputs)), taken, _outputs(thread.outputs), wrong)


def _needed(inputs: Iterable[Field | Input | Parameter]) -> list[str]:
    return [declared.name for declared in inputs if declared.is_needed]


def _outputs(outputs: tuple[Parameter, ...]) -> FieldType:
    """Return the type of the outputs. An output declared as `string` takes any value: only other types are checked."""
    if not outputs:
        return _TEXT
    return Object(
        tuple(Field(output.name, _KINDS.get(output.type, _ANY), required=output.required) for output in outputs)
    )


def _problem(check: Callable[[], object]) -> str:
    """Run a check and return the message of its error, or an empty text."""
    try:
        check()
    except ValueError as error:
        return str(error)
    return ""


def input_schema(document: Document) -> dict[str, Value]:
    """Return the schema of the inputs of a document. Raises `BadDocument` for one that cannot run."""
    plan = document.runnable()
    if not plan.infers_inputs:
        return declared_schema(plan)
    from quire.library.lookup import tree_of

    return pipeline_schema(plan, tree_of(document))


def pipeline_schema(plan: Plan, tree: Pipeline) -> dict[str, Value]:
    """Return the schema of a pipeline. Without a declaration inputs are inferred from what it reads before it writes,
    take any JSON, and additional ones are accepted."""
    if not plan.infers_inputs:
        return declared_schema(plan)
    from quire.formats.pipeline.inputs import inferred_inputs, optional_inputs

    required, optional = inferred_inputs(tree), optional_inputs(tree)
    properties: dict[str, Value] = {name: {"description": f"Read as ctx.{name}; any JSON."} for name in required}
    properties |= {name: {"description": f"Read as ctx.{name} if it is given; any JSON."} for name in optional}
    return _object(properties, required, more=True)


def _fields_schema(plan: Plan, fields: tuple[Field, ...]) -> dict[str, Value]:
    """Return the schema of declared inputs, with the schemas that they refer to."""
    made = Schema("", fields).json_schema(plan.schemas.get)
    properties, required = made["properties"], made["required"]
    assert isinstance(properties, dict)  # noqa: S101  # as `json_schema` writes it
    assert isinstance(required, list)  # noqa: S101
    schema = _object(properties, [str(name) for name in required], more=False)
    return {**schema, "$defs": made["$defs"]} if "$defs" in made else schema


def declared_schema(plan: Plan) -> dict[str, Value]:
    """Return the schema of the inputs that a document declares."""
    if plan.declared is not None:
        return _fields_schema(plan, plan.declared)
    if thread := plan.thread:
        parameters: dict[str, Value] = {parameter.name: _parameter(parameter) for parameter in thread.inputs}
        # A directive that declares no inputs takes any.
        return _object(parameters, _needed(thread.inputs), more=not thread.inputs)
    properties: dict[str, Value] = {declared.name: _property(declared) for declared in plan.inputs}
    return _object(properties, _needed(plan.inputs), more=False)


def _object(properties: Mapping[str, Value], required: Collection[str], *, more: bool) -> dict[str, Value]:
    schema: dict[str, Value] = {"type": "object", "properties": dict(properties), "additionalProperties": more}
    return {**schema, "required": list(required)} if required else schema


def _parameter(parameter: Parameter) -> dict[str, Value]:
    kind = kind_of(parameter.type)
    schema: dict[str, Value] = {"type": kind} if kind else {}
    if parameter.description:
        schema["description"] = parameter.description
    if parameter.default is not None:
        try:
            schema["default"] = converted(parameter.type, parameter.default)
        except ValueError:
            schema["default"] = parameter.default
    return schema


def _property(declared: Input) -> dict[str, Value]:
    kind = declared.type if declared.type in ("number", "boolean") else "string"
    schema: dict[str, Value] = {"type": kind}
    if declared.type == "enum" and declared.options:
        schema["enum"] = list(declared.options)
    if declared.description:
        schema["description"] = declared.description
    if declared.default is not None:
        schema["default"] = _default(kind, declared.default)
    return schema


def _default(kind: str, text: str) -> Value:
    """Convert the default to its type; a default that does not fit its type stays a text."""
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "number":
        try:
            return float(text) if "." in text or "e" in text.lower() else int(text)
        except ValueError:
            return text
    return text
