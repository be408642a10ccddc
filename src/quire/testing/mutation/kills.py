"""Expectations that would notice a mutant, written as YAML to paste into a case.

A mutant that survives often does change something; the tests only do not look there. Then the expectation comes from
the difference of two observations, so it is known to notice the mutant. Else it is a `Kill` of its operator: where the
document does not say the value, a placeholder in angle brackets says what to write.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct, UnsetType

from quire.patterns import late_pattern
from quire.text_diff import common_prefix
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.formats.test.expected import Subject
    from quire.testing.observation import Observation

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
    """True if the text must be absent."""

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
        return "{" + ", ".join(f"{_key(name)}: {flow(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow(part) for part in value) + "]"
    if isinstance(value, str) and value in _PLAIN_TEXTS:
        return value
    if isinstance(value, str) and '"' in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    plain = _PLAIN.fullmatch(name) and name.lower() not in _NOT_TEXT
    return name if plain else json.dumps(name, ensure_ascii=False)


_LONGEST_TEXT = 80
_LARGEST = 400
"""Characters of a value that is offered whole."""
_TABLES = ("stores", "named", "outputs", "hooks", "files")


def telling_expectation(before: Observation, after: Observation, subject: str = "") -> str | None:
    """Return one line of YAML that holds before and not after; None if nothing that can be expected differs.

    An expectation about `subject` is preferred.
    """
    candidates = [(about, flow(expected)) for about, expected in _differences(before, after)]
    candidates = [(about, text) for about, text in candidates if len(text) <= _LARGEST]
    candidates.sort(key=lambda pair: pair[0] != subject)
    return ": ".join(candidates[0]) if candidates else None


def _differences(before: Observation, after: Observation) -> Iterator[tuple[str, Value]]:
    yield from _of_prompts(before, after)
    yield from _of_questions(before, after)
    yield from _of_calls(before, after)
    for label, status in before.steps.items():
        if after.steps.get(label) != status:
            yield "steps", {label: status}
    if after.refused != before.refused:
        yield "refused", list(before.refused)
    for subject in _TABLES:
        old, new = getattr(before, subject), getattr(after, subject)
        for name, value in old.items():
            if value is not None and new.get(name) != value:
                yield subject, {name: _shortened(value, new.get(name))}
    if after.output != before.output and before.output is not None:
        yield "output", _shortened(before.output, after.output)
    yield from _of_error(before.error, after.error)
    if after.status != before.status:
        yield "status", before.status
    if after.warnings != before.warnings and before.warnings:
        yield "warnings", [{"contains": message[:_LONGEST_TEXT]} for _, message in before.warnings]
    spent, spends = before.used.as_value(), after.used.as_value()
    for name in ("model_calls", "tool_calls", "turns", "threads", "seconds"):
        if spends[name] != spent[name]:
            yield "used", {name: spent[name]}


def _of_prompts(before: Observation, after: Observation) -> Iterator[tuple[str, Value]]:
    """Yield lines of prompts that are missing afterwards, or must be absent."""
    for way in dict.fromkeys(prompt.way for prompt in before.prompts):
        old = [prompt.text for prompt in before.prompts if prompt.way == way]
        new = [prompt.text for prompt in after.prompts if prompt.way == way]
        if old == new:
            continue
        if (line := _line_only_in(old, new)) is not None:
            yield "prompts", {way: {"contains": line}}
        elif new and (line := _line_only_in(new, old)) is not None:
            yield "prompts", {way: {"not_contains": line}}
        elif new:
            yield "prompts", {way: list(old)}


def _of_questions(before: Observation, after: Observation) -> Iterator[tuple[str, Value]]:
    for way in dict.fromkeys(question.way for question in before.asked):
        old = [question.prompt for question in before.asked if question.way == way]
        new = [question.prompt for question in after.asked if question.way == way]
        if old != new:
            yield "asked", {way: old[0] if len(old) == 1 else list(old)}


def _of_calls(before: Observation, after: Observation) -> Iterator[tuple[str, Value]]:
    for tool, name in _tools(before).items():
        old: list[Value] = [dict(call.arguments) for call in before.calls if call.tool == tool]
        new: list[Value] = [dict(call.arguments) for call in after.calls if call.tool == tool]
        if old != new:
            yield "calls", {name: len(old) if len(old) != len(new) else old}
    others = _tools(after)
    for tool in sorted(others.keys() - _tools(before).keys()):
        yield "calls", {others[tool]: 0}


def _tools(observation: Observation) -> dict[str, str]:
    """Return the tools that were called, each with the name by which the document calls it."""
    return {call.tool: call.name for call in reversed(observation.calls)}


def _of_error(old: Mapping[str, Value] | None, new: Mapping[str, Value] | None) -> Iterator[tuple[str, Value]]:
    if old is None or old == new:
        return
    message, other = (str(error.get("message", "")) if error is not None else "" for error in (old, new))
    if message != other:
        short = message[:_LONGEST_TEXT]
        yield "error", message if short in other else {"contains": short}
        return
    for name in ("kind", "step"):
        if new is not None and old.get(name) != new.get(name):
            yield "error", {name: old.get(name)}


def _shortened(old: Value, new: Value) -> Value:
    """Return a value as it is expected: of a long text, a line that the other one does not have."""
    if not isinstance(old, str) or len(encode(old)) <= _LONGEST_TEXT:
        return old
    line = _line_only_in([old], [new if isinstance(new, str) else ""])
    return {"contains": line} if line is not None else old


def _line_only_in(old: list[str], new: list[str]) -> str | None:
    """Return the first line of the old texts that no new one contains; of a long line, the part that differs."""
    for text in old:
        for line in text.splitlines():
            written = line.strip()
            if written and not any(written in other for other in new):
                return written if len(written) <= _LONGEST_TEXT else _window(written, new)
    return None


def _window(line: str, new: list[str]) -> str:
    """Return the part of a line around the first character that is different in the most similar new line."""
    others = [other.strip() for text in new for other in text.splitlines()]
    at = max((common_prefix(line, other, min(len(line), len(other))) for other in others), default=0)
    for before, after in ((20, 40), (60, 80), (200, 200)):
        start = max(0, at - before)
        if start:
            start += next((number for number, sign in enumerate(line[start:at], 1) if sign in " ,{["), 0)
        piece = line[start : at + after].strip()
        if not any(piece in text for text in new):
            return piece
    return line
