"""Placeholders for a scaffolded test: values that fit their types and schemas, and are obviously not real.

Where a value may be one of several, such as a boolean or an enum, `Choices` decides which, and remembers that there
were others. The shapes of inputs that a pipeline does not declare are guessed from the way in which it uses them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.engine.capture import JSON
from quire.expr.syntax import Arithmetic, Compare, Constant, Each, Get, Join, Node, Path, Total, children
from quire.plan.nodes import Plan, Think, UseTool
from quire.plan.parts import formulas
from quire.plan.pipeline_work import Agent, Fold, ForEach, Formula, Invoke
from quire.safe_regex import BadPattern, matches
from quire.testing.plan_facts import tested_values
from quire.values import encode

if TYPE_CHECKING:
    from quire.plan.nodes import Capture, Step
    from quire.plan.thread import Parameter
    from quire.schema import Schema
    from quire.testing.plan_facts import Tested
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

    def __init__(self, plan: Plan, choices: Choices, callees: Mapping[str, Plan] | None = None) -> None:
        """`callees` are the documents that the document can call, by name."""
        self._plan = plan
        self._plans = (plan, *(callees or {}).values())
        self._choices = choices
        self._tested, self._counts = tested_values(self._plans)

    def _schema(self, name: str) -> Schema | None:
        return next((plan.schemas[name] for plan in self._plans if name in plan.schemas), None)

    def inputs(self, schema: Mapping[str, Value]) -> dict[str, Value]:
        """Return values for the inputs that a document requires, and for those with several known values."""
        required, fields = schema.get("required", []), schema.get("properties", {})
        if not isinstance(required, list) or not isinstance(fields, Mapping):
            return {}
        shapes = input_shapes(self._plan)
        values: dict[str, Value] = {}
        for name, part in fields.items():
            is_closed = isinstance(part, Mapping) and ("enum" in part or part.get("type") == "boolean")
            if name not in required and not is_closed and name not in self._tested:
                continue
            typed = isinstance(part, Mapping) and bool(part.keys() & {"type", "enum", "$ref", "anyOf"})
            shape = shapes.get(name)
            if not typed and shape is not None:
                values[name] = self._of_shape(shape, name, f"input {name}")
            else:
                values[name] = self.of_schema(part if isinstance(part, Mapping) else {}, name, f"input {name}", schema)
        return values

    def reply(self, step: Step, way: str) -> Value:
        """Return a reply to a step: a text as it is sent, or a value that is sent as JSON."""
        match step.work:
            case Think(closing=closing) if closing:
                fields = {capture.field or capture.name: self._captured(capture, way) for capture in closing}
                if self._is_json_artifact():
                    return encode({TODO: f"a reply to step {way}", **fields})
                return f"{TODO}: a reply to step {way} {encode(fields)}"
            case Think() if step.capture is not None and step.capture.field is None:
                value = self._captured(step.capture, way)
                return value if isinstance(value, str) else encode(value)
            case Agent(schema=name) if name and (schema := self._schema(name)):
                made = schema.json_schema(self._schema)
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
        return {parameter.name: _parameter(parameter) for parameter in parameters}

    def result(self, tool: str, names: Sequence[str]) -> Value:
        """Return the result of a tool: one that fits the schema of a step that calls it, or has the members that
        expressions read."""
        if captured := self._captured_of(tool):
            return captured
        steps = [
            step
            for plan in self._plans
            for _, step in plan.steps()
            if isinstance(step.work, Invoke) and step.work.tool in names
        ]
        for step in steps:
            schema = self._schema(step.work.schema or "") if isinstance(step.work, Invoke) else None
            if schema is not None:
                made = schema.json_schema(self._schema)
                return self.of_schema(made, schema.name, f"result {tool}", made)
        shapes = input_shapes(self._plan) if steps else {}
        stores = [step.capture.name for step in steps if step.capture]
        if listed := next((store for store in stores if store in shapes and shapes[store].items), None):
            return self._of_shape(shapes[listed], listed, f"result {tool}")
        members = {name: shape for store in stores if store in shapes for name, shape in shapes[store].fields.items()}
        if members:
            return {name: self._of_shape(shape, name, f"result {tool} {name}") for name, shape in members.items()}
        return self._word("", f"result {tool}", f"{TODO}: the result of {tool}", *stores)

    def answer(self, step: Step | None, way: str) -> str:
        """Return an answer to a question that takes any text."""
        names = [step.capture.name] if step is not None and step.capture is not None else []
        if step is not None:
            names += [f"__elicit_step_{step.label}", f"__elicit_step_{step.number}"]
        return str(self._word("", f"answer {way}", f"{TODO}: an answer to step {way}", *names))

    def _captured_of(self, tool: str) -> dict[str, Value]:
        """Return the fields that the steps of a playbook take out of the results of a tool."""
        fields: dict[str, Value] = {}
        for _, step in self._plan.steps():
            match step.work:
                case UseTool(tool=called) if called == tool.rpartition("/")[2] and step.capture is not None:
                    if step.capture.field:
                        fields[step.capture.field] = self._captured(step.capture, step.label)
                    elif step.capture.type == "json":
                        fields[TODO] = step.capture.name
        return fields

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
                return self._number(schema, name, key)
            case "array":
                items = schema.get("items")
                inner = items if isinstance(items, Mapping) else {}
                count = 0 if depth >= _MOST_DEPTH else self._count(name, key, 1)
                return [self.of_schema(inner, name, f"{key} item", root, depth + 1)] * count
            case "object":
                fields = schema.get("properties", {})
                inside = fields.items() if isinstance(fields, Mapping) and depth < _MOST_DEPTH else ()
                return {
                    member: self.of_schema(part, member, f"{key} {member}", root, depth + 1)
                    for member, part in inside
                    if isinstance(part, Mapping)
                }
        pattern = schema.get("pattern")
        if isinstance(pattern, str):
            return next((sample for sample in _SAMPLES if _matches(pattern, sample)), f"{TODO} {name}")
        word = self._word(name, key, f"{TODO} {name}")
        longest = schema.get("maxLength")
        return word[:longest] if isinstance(longest, int) and isinstance(word, str) else word

    def _of_shape(self, shape: Shape, name: str, key: str, depth: int = 0) -> Value:
        """Return a value of a shape; the values that the document compares it with are the other choices."""
        if depth > _MOST_DEPTH:
            return None
        if shape.items is not None:
            inner, usual = shape.items, shape.value(name, TODO)
            plain = usual if isinstance(usual, list) and not (inner.fields or inner.is_number) else None
            count = self._count(name, key, len(plain) if plain else 1)
            if plain is not None:
                return (plain * count)[:count]
            return [self._of_shape(inner, name, f"{key} item", depth + 1)] * count
        if shape.fields:
            parts = shape.fields.items()
            return {name: self._of_shape(part, name, f"{key} {name}", depth + 1) for name, part in parts}
        first = shape.value(name, TODO)
        others = [value for value in self._tested.get(name, ()) if _fits(value, shape)]
        options = [first, *(other for other in others if other != first)]
        if isinstance(first, bool):
            options = [first, not first]
        return self._choices.pick(key, options) if len(options) > 1 else first

    def _number(self, schema: Mapping[str, Value], name: str, key: str) -> Value:
        """Return a number within the limits of a schema; those that the document compares it with are the other
        choices, as far as they are within the limits."""
        low, high = (end if isinstance(end, int | float) else None for end in map(schema.get, ("minimum", "maximum")))
        first = low if low is not None else 1 if high is None or high >= 1 else high
        options: list[Value] = [first]
        for number in self._tested.get(name, ()):
            if isinstance(number, str | bool) or number in options:
                continue
            whole = schema.get("type") != "integer" or number == int(number)
            if whole and (low is None or number >= low) and (high is None or number <= high):
                options.append(number)
        return self._choices.pick(key, options) if len(options) > 1 else first

    def _count(self, name: str, key: str, usual: int) -> int:
        """Return how many items a list has: `usual`, or as many as the document compares its length with."""
        options = dict.fromkeys([usual, 0, *self._counts.get(name, ())])
        picked = self._choices.pick(f"{key} count", list(options))
        return picked if isinstance(picked, int) else usual

    def _word(self, name: str, key: str, otherwise: str, *more: str) -> Value:
        """Return a text; the texts that the document compares it with are the other choices."""
        tested = [text for each in (name, *more) for text in self._tested.get(each, ()) if isinstance(text, str)]
        options = list(dict.fromkeys([otherwise, *tested]))
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


def _fits(value: Tested, shape: Shape) -> bool:
    """Tell whether a value that something is compared with can stand for a value of a shape."""
    if shape.is_number:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, str | bool)


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


class Shape(Struct):
    """A value by the use that is made of it: members that are read, items that are gone through, numbers."""

    fields: dict[str, Shape] = field(default_factory=dict)
    items: Shape | None = None
    is_number: bool = False
    is_flag: bool = False

    def member(self, name: str) -> Shape:
        return self.fields.setdefault(name, Shape())

    def item(self) -> Shape:
        self.items = self.items or Shape()
        return self.items

    def value(self, name: str, todo: str, depth: int = 0) -> Value:
        """Return a placeholder of this shape."""
        if depth > _MOST_DEPTH:
            return None
        if self.items is not None:
            if self.items.fields or self.items.is_number:
                return [self.items.value(name, todo, depth + 1)]
            return [f"{todo} one", f"{todo} another"]
        if self.fields:
            return {member: shape.value(member, todo, depth + 1) for member, shape in self.fields.items()}
        return 1 if self.is_number else True if self.is_flag else f"{todo} {name}"

    def declaration(self, depth: int = 0) -> str:
        """Return the type of this shape as `input` of a pipeline declares it."""
        if self.items is not None and depth <= _MOST_DEPTH:
            return f"{{type: list, of: {self.items.declaration(depth + 1)}}}"
        if self.fields and depth <= _MOST_DEPTH:
            inside = ", ".join(f"{name}: {shape.declaration(depth + 1)}" for name, shape in self.fields.items())
            return f"{{type: object, fields: {{{inside}}}}}"
        return "{type: number}" if self.is_number else "{type: bool}" if self.is_flag else "{type: string}"


def input_shapes(plan: Plan) -> Mapping[str, Shape]:
    """Return the shape of every value that the expressions and prompts of a pipeline read, by name."""
    root = Shape()
    for step in plan.body.steps:
        _Reader(root, {}).step(step)
    return root.fields


def _is_number(node: Node) -> bool:
    """Tell whether a value can only be a number. `+` also joins texts and lists."""
    match node:
        case Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case Arithmetic(rest=rest):
            return any(operator != "+" for operator, _ in rest)
    return False


class _Reader:
    def __init__(self, root: Shape, scope: Mapping[str, Shape]) -> None:
        self._root = root
        self._scope = scope

    def step(self, step: Step) -> None:
        for _, formula in formulas(step):
            self._visit(formula.compiled.expression.root)
        inner = self._scope
        match step.work:
            case Agent(prompt=prompt):
                for reference in prompt.references():
                    self._resolve(tuple(reference.name.split(".")))
            case ForEach(source=Formula() as source) | Fold(source=Formula() as source):
                shape = self._shape(source.compiled.expression.root)
                inner = {**self._scope, "item": shape.item() if shape else Shape()}
        for _, part in step.work.parts() if step.work else ():
            _Reader(self._root, inner).step(part)

    def _resolve(self, path: tuple[str, ...]) -> Shape:
        first, *rest = path
        shape = self._root if first == "ctx" else self._scope.get(first) or self._root.member(first)
        for name in rest:
            shape = shape.member(name)
        return shape

    def _shape(self, node: Node) -> Shape | None:
        """Return the shape of a value that is read as it is; None for one that is computed."""
        match node:
            case Path(segments=segments):
                return self._resolve(segments)
            case Get(base=Path(segments=segments), keys=keys):
                return self._resolve((*segments, *keys))
        return None

    def _visit(self, node: Node) -> None:
        match node:
            case Path() | Get():
                self._shape(node)
            case Each(source=source, parameter=parameter, body=body):
                shape = self._shape(source)
                item = shape.item() if shape else Shape()
                _Reader(self._root, {**self._scope, parameter: item})._visit(body)
                self._visit(source)
                return
            case Total(name=name, source=source):
                if shape := self._shape(source):
                    shape.item().is_number |= name == "sum"
            case Join(source=source):
                if shape := self._shape(source):
                    shape.item()
            case Arithmetic(first=first, rest=rest):
                operands = [first, *(operand for _, operand in rest)]
                if _is_number(node) or any(map(_is_number, operands)):
                    for shape in filter(None, map(self._shape, operands)):
                        shape.is_number = True
            case Compare(operator=operator, left=left, right=right):
                self._compared(operator, left, right)
        for child in children(node):
            self._visit(child)

    def _compared(self, operator: str, left: Node, right: Node) -> None:
        values = [side.value for side in (left, right) if isinstance(side, Constant)]
        flags = any(isinstance(value, bool) for value in values)
        numbers = any(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        for side in (left, right):
            shape = self._shape(side)
            if shape is not None and flags:
                shape.is_flag = True
            elif shape is not None and (numbers or operator not in ("==", "!=")):
                shape.is_number = True
