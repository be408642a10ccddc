"""Placeholders for a scaffolded test: values that fit their types and schemas, and are obviously not real.

Where a value may be one of several, such as a boolean or an enum, `Choices` decides which, and remembers that there
were others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.engine.capture import JSON
from quire.plan.nodes import Plan, Think, UseTool
from quire.plan.pipeline_work import Agent, Invoke, Select
from quire.safe_regex import BadPattern, matches
from quire.testing.input_shapes import input_shapes
from quire.values import encode

if TYPE_CHECKING:
    from quire.plan.nodes import Capture, Step
    from quire.plan.thread import Parameter
    from quire.values import Value

TODO = "TODO"
MOST_CHOICES = 20
_MOST_DEPTH = 8


class Choices:
    """The choices of one draft by name, such as `reply 1 best`. A choice that was not made takes the first option."""

    def __init__(self, made: Mapping[str, Value]) -> None:
        self.made = made
        self.offered: dict[str, list[Value]] = {}

    def pick(self, name: str, options: Sequence[Value]) -> Value:
        self.offered[name] = list(options)[:MOST_CHOICES]
        return self.made.get(name, options[0])


class Placeholders:
    """Makes placeholders for the steps of a document."""

    def __init__(self, plan: Plan, choices: Choices) -> None:
        self._plan = plan
        self._choices = choices
        self._tested = tested_values(plan)

    def inputs(self, schema: Mapping[str, Value]) -> dict[str, Value]:
        """Return values for the inputs that a document requires, and for those with several known values."""
        required, fields = schema.get("required", []), schema.get("properties", {})
        if not isinstance(required, list) or not isinstance(fields, Mapping):
            return {}
        shapes = input_shapes(self._plan) if self._plan.format == "pipeline" else {}
        found: dict[str, Value] = {}
        for name, part in fields.items():
            known = isinstance(part, Mapping) and ("enum" in part or part.get("type") == "boolean")
            if name not in required and not known and name not in self._tested:
                continue
            typed = isinstance(part, Mapping) and bool(part.keys() & {"type", "enum", "$ref", "anyOf"})
            shape = shapes.get(name)
            if not typed and shape is not None and (shape.fields or shape.items or shape.is_number or shape.is_flag):
                found[name] = shape.value(name, TODO)
            else:
                found[name] = self.of_schema(part if isinstance(part, Mapping) else {}, name, f"input {name}", schema)
        return found

    def reply(self, step: Step, way: str) -> Value:
        """Return a reply to a step: a text as it is sent, or a value that is sent as JSON."""
        match step.work:
            case Think(closing=closing) if closing:
                fields = {one.field or one.name: self._captured(one, way) for one in closing}
                if self._is_json_artifact():
                    return encode({TODO: f"a reply to step {way}", **fields})
                return f"{TODO}: a reply to step {way} {encode(fields)}"
            case Think() if step.capture is not None and step.capture.field is None:
                value = self._captured(step.capture, way)
                return value if isinstance(value, str) else encode(value)
            case Agent(schema=name) if name and (schema := self._plan.schemas.get(name)):
                made = schema.json_schema(self._plan.schemas.get)
                return self.of_schema(made, name, f"reply {way}", made)
            case Agent() if step.capture is not None:
                return self._word(step.capture.name, f"reply {way}", f"{TODO}: a reply to step {way}", "pipe")
        if isinstance(step.work, Think) and self._is_json_artifact():
            return encode({TODO: f"a reply to step {way}"})
        return self._word("pipe", f"reply {way}", f"{TODO}: a reply to step {way}")

    def _is_json_artifact(self) -> bool:
        """Tell whether the artifact of a playbook has to be JSON, or may be."""
        artifact = self._plan.artifact
        parts = artifact.type.parts if artifact else ()
        return any(not isinstance(part, str) or part.strip() in JSON for part in parts)

    def outputs(self, parameters: Sequence[Parameter]) -> dict[str, Value]:
        """Return the arguments with which a thread returns."""
        return {one.name: _parameter(one) for one in parameters}

    def result(self, tool: str, names: Sequence[str]) -> Value:
        """Return the result of a tool: one that fits the schema of a step that calls it, or has the members that
        expressions read."""
        if captured := self._captured_of(tool):
            return captured
        steps = [step for _, step in self._plan.steps() if isinstance(step.work, Invoke) and step.work.tool in names]
        for step in steps:
            schema = self._plan.schemas.get(step.work.schema or "") if isinstance(step.work, Invoke) else None
            if schema is not None:
                made = schema.json_schema(self._plan.schemas.get)
                return self.of_schema(made, schema.name, f"result {tool}", made)
        shapes = input_shapes(self._plan) if steps else {}
        stores = [step.capture.name for step in steps if step.capture]
        members = {name: one for store in stores if store in shapes for name, one in shapes[store].fields.items()}
        if members:
            return {name: shape.value(name, TODO) for name, shape in members.items()}
        return f"{TODO}: the result of {tool}"

    def _captured_of(self, tool: str) -> dict[str, Value]:
        """Return the fields that the steps of a playbook take out of the results of a tool."""
        found: dict[str, Value] = {}
        for _, step in self._plan.steps():
            match step.work:
                case UseTool(tool=called) if called == tool.rpartition("/")[2] and step.capture is not None:
                    if step.capture.field:
                        found[step.capture.field] = self._captured(step.capture, step.label)
                    elif step.capture.type == "json":
                        found[TODO] = step.capture.name
        return found

    def of_schema(
        self, schema: Mapping[str, Value], name: str, key: str, root: Mapping[str, Value], depth: int = 0
    ) -> Value:
        """Return a value that fits a JSON Schema of ours."""
        reference = schema.get("$ref")
        if isinstance(reference, str) and depth < _MOST_DEPTH:
            target = root.get("$defs", {})
            part = target.get(reference.rpartition("/")[2]) if isinstance(target, Mapping) else None
            return self.of_schema(part, name, key, root, depth + 1) if isinstance(part, Mapping) else None
        options = schema.get("enum")
        if isinstance(options, list) and options:
            return self._choices.pick(key, options)
        match schema.get("type"):
            case "boolean":
                return self._choices.pick(key, [True, False])
            case "number" | "integer":
                least = schema.get("minimum")
                return least if isinstance(least, int | float) else 1
            case "array":
                items = schema.get("items")
                inner = items if isinstance(items, Mapping) else {}
                if depth >= _MOST_DEPTH or self._choices.pick(f"{key} count", [1, 0]) == 0:
                    return []
                return [self.of_schema(inner, name, f"{key} item", root, depth + 1)]
            case "object":
                fields = schema.get("properties", {})
                inside = fields.items() if isinstance(fields, Mapping) and depth < _MOST_DEPTH else ()
                return {
                    one: self.of_schema(part, one, f"{key} {one}", root, depth + 1)
                    for one, part in inside
                    if isinstance(part, Mapping)
                }
        pattern = schema.get("pattern")
        if isinstance(pattern, str):
            return next((one for one in _SAMPLES if _matches(pattern, one)), f"{TODO} {name}")
        word = self._word(name, key, f"{TODO} {name}")
        longest = schema.get("maxLength")
        return word[:longest] if isinstance(longest, int) and isinstance(word, str) else word

    def _word(self, name: str, key: str, otherwise: str, *more: str) -> Value:
        """Return a text; the texts that the document compares it with are the other choices."""
        options = [otherwise, *(one for each in (name, *more) for one in self._tested.get(each, ()))]
        return self._choices.pick(key, options) if len(options) > 1 else otherwise

    def _captured(self, capture: Capture, way: str) -> Value:
        key = f"reply {way} {capture.name}"
        match capture.type:
            case "enum" if capture.options:
                return self._choices.pick(key, capture.options)
            case "boolean":
                return self._choices.pick(key, [True, False])
            case "number":
                return 1
            case "json":
                return {TODO: capture.name}
        return self._word(capture.name, key, f"{TODO} {capture.name}")


_SAMPLES = ("todo", TODO, "a", "1", "1.0.0", "v1.0.0", "2026-01-01", "todo@example.com", "TODO-1", "00", "0000")
"""Texts that fit many patterns."""


def _matches(pattern: str, text: str) -> bool:
    try:
        return matches(pattern, text)
    except BadPattern:
        return False


def _parameter(parameter: Parameter) -> Value:
    match parameter.type:
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case "array" | "list":
            return [f"{TODO} {parameter.name}"]
        case "object":
            return {TODO: parameter.name}
    return f"{TODO} {parameter.name}"


def tested_values(plan: Plan) -> dict[str, list[str]]:
    """Return the texts that branches compare values with, by the name of the value."""
    found: dict[str, dict[str, None]] = {}
    for name, value in _comparisons(plan):
        found.setdefault(name, {})[value] = None
    return {name: list(values) for name, values in found.items()}


def _comparisons(plan: Plan) -> Iterator[tuple[str, str]]:
    for _, step in plan.steps():
        for case in step.match.cases if step.match else ():
            if case.test is not None:
                yield case.test.variable, case.test.value
        match step.work:
            case Select(on=on, cases=cases):
                for read in on.compiled.reads():
                    yield from ((read.path[-1], label) for label, _ in cases)
