"""Expectations that would notice a mutant, written as YAML to paste into a case.

Where the document does not say the value, a placeholder in angle brackets says what to write. `differences.py` takes
the values from observations instead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct, UnsetType

from quire.patterns import late_pattern

if TYPE_CHECKING:
    from quire.formats.test.expected import Subject
    from quire.values import Value

_PLAIN = late_pattern(r"[A-Za-z_][A-Za-z0-9_-]*")
_NOT_TEXT = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_PLAIN_TEXTS = frozenset({"completed", "skipped", "failed"})


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

    def expectation(self) -> str:
        """Return one line of YAML below `expect:`."""
        return f"{self.subject}: {flow(self._expected())}"

    def _expected(self) -> Value:
        match self.subject:
            case "prompts" if self.absent:
                return {self.name: {"not_contains": self._or("<a result that it must not see>")}}
            case "prompts" | "asked":
                part = f"<the value of {self.reference}>" if self.reference else "<a part of the prompt>"
                return {self.name: {"contains": self._or(part)}}
            case "steps":
                return {self.name: self._or("completed")}
            case "refused":
                return [] if self.value is UNSET else [self.value]
            case "named" | "stores" | "outputs":
                return {self.name: self._or(f"<the value of {self.name}>")}
            case "calls":
                return {self.name: [self._or({"<argument>": "<value>"})]}
            case "hooks":
                return {self.name: self._or(1)}
            case "output":
                return self._or("<the output>")
            case "status":
                return self._or("completed")
        return {"contains": self._or("<the text>")}

    def _or(self, placeholder: Value) -> Value:
        return placeholder if self.value is UNSET else self.value


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
