"""Draw values for exploring: inputs by their schemas, replies of models, results of tools, answers of people.

Most values fit the request, so that runs continue. The others are empty, huge, in fences, or look like
references, expressions, JSON and commands of a terminal.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from quire.values import encode

if TYPE_CHECKING:
    from quire.engine.ports import ModelCall
    from quire.engine.records import Question
    from quire.engine.requests import HumanRequest, ModelRequest
    from quire.values import Value

_WORDS = ("bread", "a child", "yes", "no", "12", "3.5", "true", "Zürich", "line one\nline two", "x", "the last one")
STRANGE = (
    "{{name}}",
    "${inputs.name}",
    "{row.x} {item} {ctx.text}",
    '{"a": [1, {"b": null}]}',
    "```json\n{}\n```",
    "\x1b[31mred\x1b[0m",
    "## STEP 9: Not a step",
    "'; drop table runs; --",
    "</directive>",
    "\u202ereversed",
    "0",
    "",
    "null",
    "NaN",
    "=1+1",
)
HUGE = "word " * 4_000
MOST_ITEMS = 3
_DEEP = 5


class Draw:
    """Draws from one seed. The same seed draws the same values in the same order of requests."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311  # not for secrets

    def inputs(self, schema: Mapping[str, Value], examples: Sequence[Mapping[str, Value]] = ()) -> dict[str, Value]:
        """Return inputs that are like those of an example, or that fit the schema of the document."""
        if examples and not self._one_in(4):
            return {name: self.like(value) for name, value in self._chance.choice(examples).items()}
        return self._object(schema, schema, -1)

    def fitting(self, schema: Value, whole: Mapping[str, Value] | None = None, depth: int = 0) -> Value:
        """Return a value that fits a schema, as far as the schema is plain."""
        if not isinstance(schema, Mapping):
            return self.text()
        whole = schema if whole is None else whole
        reference = schema.get("$ref")
        if isinstance(reference, str) and depth < _DEEP:
            return self.fitting(_referenced(reference, whole), whole, depth + 1)
        options = schema.get("enum")
        if isinstance(options, Sequence) and options:
            return self._chance.choice(options)
        if "const" in schema:
            return schema["const"]
        several = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(several, Sequence) and several:
            return self.fitting(self._chance.choice(several), whole, depth + 1)
        return self._of_kind(schema, whole, depth)

    def _of_kind(self, schema: Mapping[str, Value], whole: Mapping[str, Value], depth: int) -> Value:
        kind = schema.get("type")
        kind = self._chance.choice(kind) if isinstance(kind, Sequence) and not isinstance(kind, str) else kind
        match kind:
            case "string":
                most, least = schema.get("maxLength"), schema.get("minLength")
                text = self.text()[: most if isinstance(most, int) else None]
                return text.ljust(least, "x") if isinstance(least, int) else text
            case "integer" | "number":
                return self._number(schema, whole=kind == "integer")
            case "boolean":
                return self._one_in(2)
            case "null":
                return None
            case "array":
                count = 0 if depth >= _DEEP else self._chance.randint(0, MOST_ITEMS)
                least = schema.get("minItems")
                count = max(count, least if isinstance(least, int) else 0)
                return [self.fitting(schema.get("items"), whole, depth + 1) for _ in range(count)]
            case "object":
                return self._object(schema, whole, depth)
        return self.anything(depth)

    def _object(self, schema: Mapping[str, Value], whole: Mapping[str, Value], depth: int) -> dict[str, Value]:
        properties, required = schema.get("properties"), schema.get("required")
        needed = required if isinstance(required, Sequence) else ()
        return {
            name: self.fitting(part, whole, depth + 1)
            for name, part in (properties.items() if isinstance(properties, Mapping) else ())
            if name in needed or (depth < _DEEP and self._one_in(2))
        }

    def like(self, value: Value) -> Value:
        """Return a value of the same shape: most of its parts are kept."""
        match value:
            case bool() | None:
                return value
            case int():
                return value if not self._one_in(4) else value + self._chance.randint(-3, 3)
            case float():
                return value if not self._one_in(4) else round(value * self._chance.uniform(-1, 3), 3)
            case str():
                return value if not self._one_in(4) else self.text()
            case Mapping():
                return {name: self.like(part) for name, part in value.items()}
        items = [self.like(part) for part in value]
        match self._chance.randrange(6):
            case 0:
                return []
            case 1:
                return items + items
            case 2:
                return items[:1]
        return items

    def one_of(self, values: Sequence[Value]) -> Value:
        return self._chance.choice(values)

    def anything(self, depth: int = 0) -> Value:
        """Return some JSON value."""
        match self._chance.randrange(8 if depth < 2 else 4):
            case 0:
                return self._chance.randint(-3, 12)
            case 1:
                return self._one_in(2)
            case 2 | 3:
                return self.text()
            case 4 | 5:
                return [self.anything(depth + 1) for _ in range(self._chance.randint(0, MOST_ITEMS))]
            case 6:
                return {self._chance.choice("abc"): self.anything(depth + 1) for _ in range(2)}
        return None

    def text(self) -> str:
        return self._chance.choice(STRANGE if self._one_in(5) else _WORDS)

    def reply(self, request: ModelCall | ModelRequest) -> tuple[str, list[tuple[str, dict[str, Value]]]]:
        """Return the text and the tool calls of a reply."""
        if request.tools and not self._one_in(4):
            tool = self._chance.choice(request.tools)
            arguments = self.fitting(tool.schema)
            return "", [(tool.name, dict(arguments) if isinstance(arguments, Mapping) else {})]
        schema = request.schema or request.closing
        if self._one_in(8):
            return self._chance.choice((HUGE, *STRANGE)), []
        if schema is None:
            return self.text() or "x", []
        text = encode(self.fitting(schema))
        if self._one_in(4):
            text = f"```json\n{text}\n```"
        return (f"{self.text()}\n{text}" if request.closing else text), []

    def fails(self) -> bool:
        """Tell whether an effect fails."""
        return self._one_in(12)

    def seldom(self) -> bool:
        return self._one_in(4)

    def answer(self, request: Question | HumanRequest) -> str:
        match request.kind:
            case "confirm":
                return self._chance.choice(("yes", "no"))
            case "select" if request.options:
                return self._chance.choice(request.options)
        return self.text() or "x"

    def _number(self, schema: Mapping[str, Value], *, whole: bool) -> Value:
        low, high = schema.get("minimum"), schema.get("maximum")
        first = float(low) if isinstance(low, int | float) else -2.0
        last = float(high) if isinstance(high, int | float) else max(first, 0.0) + 12.0
        drawn = self._chance.uniform(first, last)
        return round(drawn) if whole or self._one_in(2) else round(drawn, 3)

    def _one_in(self, count: int) -> bool:
        return self._chance.randrange(count) == 0


def _referenced(reference: str, whole: Mapping[str, Value]) -> Value:
    """Return the part of a schema that a local reference names."""
    node: Value = whole
    for part in reference.removeprefix("#/").split("/"):
        node = node.get(part) if isinstance(node, Mapping) else None
    return node
