"""Expectations that would notice a mutant, written as YAML to paste into a case.

The values come from an observation of the unchanged document, if there is one. Without it a placeholder in angle
brackets says what to write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct, UnsetType

from quire.patterns import late_pattern
from quire.values import Value, text_or_json

if TYPE_CHECKING:
    from quire.formats.test.expected import Subject
    from quire.testing.observation import Observation, SeenPrompt

_PLAIN = late_pattern(r"[A-Za-z_][A-Za-z0-9_-]*")
_NOT_TEXT = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_PLAIN_TEXTS = frozenset({"completed", "skipped", "failed"})
LONGEST = 60
"""Characters of a value that is looked for in a prompt."""


class Kill(Struct, frozen=True):
    """An expectation. `name` is the step, the capture, the tool or the hook that it is about."""

    subject: Subject
    name: str = ""
    reference: str = ""
    """The name whose value the text must contain: of an input, a result or a store."""
    value: Value | UnsetType = UNSET
    """The expected value, or the text to look for, if the document says it."""
    absent: bool = False
    """True if the text must not be there."""
    fresh: bool = False
    """True if it takes a case of its own: one in which the step fails, is skipped, or reaches a limit. Then `value` is
    what that case expects."""

    def expectation(self, seen: Observation | None = None) -> str:
        """Return one line of YAML below `expect:`."""
        seen = None if self.fresh else seen
        return f"{self.subject}: {flow(self._expected(seen))}"

    def _expected(self, seen: Observation | None) -> Value:
        match self.subject:
            case "prompts":
                if self.absent:
                    return {self.name: {"not_contains": self._or("<a result that it must not see>")}}
                return {self.name: {"contains": self._text(seen, [_last(one) for one in _prompts(seen, self.name)])}}
            case "asked":
                prompts = [one.prompt for one in seen.asked if one.is_of(self.name)] if seen else []
                if prompts and self.value is UNSET and not self.reference:
                    return {self.name: prompts[0]}
                return {self.name: {"contains": self._text(seen, prompts)}}
            case "steps":
                found = seen.steps.get(self.name) if seen else None
                return {self.name: found or self._or("completed")}
            case "refused":
                refused: list[Value] = [*seen.refused] if seen else []
                return refused if self.value is UNSET else [*refused, self.value]
            case "named" | "stores" | "outputs":
                values: Mapping[str, Value] = getattr(seen, self.subject) if seen else {}
                return {self.name: values.get(self.name, self._or(f"<the value of {self.name}>"))}
            case "calls":
                return {self.name: self._calls(seen)}
            case "hooks":
                return {self.name: seen.hooks.get(self.name, 0) if seen else self._or(1)}
            case "used":
                return {self.name: seen.used.as_value().get(self.name) if seen else self._or(f"<{self.name}>")}
            case "output":
                return seen.output if seen is not None and seen.output is not None else self._or("<the output>")
            case "status":
                return seen.status if seen is not None else self._or("completed")
            case "error":
                message = seen.error.get("message") if seen is not None and seen.error is not None else None
                return {"contains": message if isinstance(message, str) else self._or("<the text>")}
            case "warnings":
                return [self._or("<the text>")]
            case _:
                return {"contains": self._or("<the text>")}

    def _or(self, placeholder: Value) -> Value:
        return placeholder if self.value is UNSET else self.value

    def _text(self, seen: Observation | None, texts: list[str]) -> Value:
        """Return a text that stands in one of the texts: the value that was inserted there."""
        if self.value is not UNSET:
            return self.value
        found = _value_of(self.reference, seen) if seen is not None else None
        text = "" if found is None else text_or_json(found)
        line = next((line for line in text.splitlines() if line.strip()), "")[:LONGEST]
        if line and (not texts or any(line in text for text in texts)):
            return line
        written = [line.strip() for text in texts for line in text.splitlines() if line.strip()]
        if written:
            return written[-1][:LONGEST]
        return f"<the value of {self.reference}>" if self.reference else "<a part of the prompt>"

    def _calls(self, seen: Observation | None) -> Value:
        if seen is None:
            return [self._or({"<argument>": "<value>"})]
        return [dict(call.arguments) for call in seen.calls if self.name in (call.tool, call.name)]


def _prompts(seen: Observation | None, step: str) -> list[SeenPrompt]:
    return [one for one in seen.prompts if one.is_of(step)] if seen is not None else []


def _last(prompt: SeenPrompt) -> str:
    """Return the last message of a prompt, in which the text of the step stands."""
    return prompt.messages[-1][1] if prompt.messages else prompt.system


def _value_of(name: str, seen: Observation) -> Value:
    root, *rest = name.removeprefix("ctx.").split(".")
    value: Value = None
    for values in (seen.stores, seen.inputs, seen.named):
        if root in values:
            value = values[root]
            break
    for part in rest:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def flow(value: Value) -> str:
    """Return a value as YAML on one line. Texts are written as in JSON, which YAML reads too, or in single quotes."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(name)}: {flow(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow(one) for one in value) + "]"
    if isinstance(value, str) and value in _PLAIN_TEXTS:
        return value
    if isinstance(value, str) and '"' in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    plain = _PLAIN.fullmatch(name) and name.lower() not in _NOT_TEXT
    return name if plain else json.dumps(name, ensure_ascii=False)
