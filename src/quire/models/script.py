"""Reading a script of replies: JSON, and YAML where PyYAML is installed. Every mistake is said with its line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quire.engine.records import Usage
from quire.errors import CannotStart
from quire.plan.ways import typed_way
from quire.source import read_bytes
from quire.values import InvalidValue, Value, encode

KEYS = ("step", "contains", "reply", "default", "error", "tool_calls", "text", "finish_reason", "delay_ms", "usage")
_TEXTS = ("step", "contains", "reply", "default", "text", "finish_reason")


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """Compared by identity: two entries that say the same are still two. `calls` are names and arguments of tools."""

    step: str | None = None
    contains: str | None = None
    reply: str = ""
    calls: tuple[tuple[str, Mapping[str, Value]], ...] = ()
    error: tuple[str, str, bool] | None = None
    delay_ms: float = 0.0
    usage: Usage = field(default_factory=Usage)
    is_default: bool = False
    only_delay: bool = False
    finish_reason: str = ""

    @property
    def in_order(self) -> bool:
        return self.step is None and self.contains is None and not self.is_default

    def fits(self, step: str | None, prompt: str) -> bool:
        """`step` is a label, or the way to a step; None for an entry that names none."""
        return self.step == step and (self.contains is None or self.contains in prompt)

    def same_rule(self, other: Entry) -> bool:
        return (self.step, self.contains) == (other.step, other.contains)


class EntryError(ValueError):
    """What is wrong with one entry; the reader adds where it stands."""


def entries_of(values: Sequence[Value] | Sequence[Entry]) -> list[Entry]:
    """Raises `CannotStart` naming the entry by its number."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise CannotStart(f"a script is a list of entries, not {values!r}")
    entries = []
    for number, value in enumerate(values, 1):
        try:
            entries.append(value if isinstance(value, Entry) else entry_of(value))
        except EntryError as error:
            raise CannotStart(f"script entry {number}: {error}") from None
    return entries


def entry_of(value: Value) -> Entry:
    if isinstance(value, str):
        return Entry(reply=value)
    if not isinstance(value, Mapping):
        raise EntryError("is neither a text nor a mapping")
    unknown = [key for key in value if key not in KEYS]
    if unknown:
        raise EntryError(f"does not know {unknown[0]!r}; it can have {', '.join(KEYS)}")
    answers = [key for key in ("reply", "default", "error", "tool_calls") if key in value]
    if len(answers) > 1:
        raise EntryError(f"has both {answers[0]} and {answers[1]}")
    if "text" in value and "tool_calls" not in value:
        raise EntryError("has a text beside no tool_calls; what is said alone is a reply")
    if not answers and "delay_ms" not in value:
        raise EntryError("needs a reply, a default or an error")
    if not answers and len(value) > 1:
        raise EntryError("has a delay_ms but no reply")
    if "default" in value and ("step" in value or "contains" in value):
        raise EntryError("is a default, so it cannot have step or contains")
    step, contains = (str(value[key]) if key in value else None for key in ("step", "contains"))
    return Entry(
        step=None if step is None else typed_way(step),
        contains=contains,
        reply=_text(next((value[key] for key in ("reply", "default", "text") if key in value), "")),
        calls=_calls(value["tool_calls"]) if "tool_calls" in value else (),
        error=_error(value["error"]) if "error" in value else None,
        delay_ms=_number(value.get("delay_ms", 0), "delay_ms"),
        usage=_usage(value.get("usage", {})),
        is_default="default" in value,
        only_delay=not answers,
        finish_reason=_finish_reason(value),
    )


_PIPES: dict[Path, bytes] = {}
"""What was read from pipes: a run asks for its script more than once, and a pipe gives it once."""


def _bytes(path: Path) -> bytes:
    if path in _PIPES:
        return _PIPES[path]
    data = read_bytes(path, pipes=True)
    if path.is_fifo():
        _PIPES[path] = data
    return data


def read_script(path: Path) -> list[Entry]:
    """Raises `CannotStart` with the file and, where one can be told, the line."""
    try:
        text = _bytes(path).decode("utf-8-sig")
    except FileNotFoundError:
        raise CannotStart(f"no script at {path}") from None
    except OSError as error:
        raise CannotStart(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise CannotStart(f"{path} is not UTF-8 text (byte {error.start})") from None
    entries = []
    for line, value in _json(path, text) if path.suffix == ".json" else _yaml(path, text):
        try:
            entries.append(entry_of(value))
        except EntryError as error:
            raise CannotStart(f"{path}:{line}: the entry {error}") from None
    return entries


def _json(path: Path, text: str) -> list[tuple[int, Value]]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        raise CannotStart(f"{path}:{line}: not JSON: {str(error).split(':')[0]}") from None
    if isinstance(whole, dict) and isinstance(whole.get("model"), list):
        return [(1, value) for value in whole["model"]]
    if not isinstance(whole, list):
        raise CannotStart(f"{path}:1: a script is a list of replies")
    # The whole is valid, so its items can be read again one by one to learn where each begins.
    found: list[tuple[int, Value]] = []
    scan, at = json.JSONDecoder().raw_decode, text.index("[") + 1
    for _ in whole:
        while text[at] in " \t\r\n,":
            at += 1
        line = text.count("\n", 0, at) + 1
        value, at = scan(text, at)
        found.append((line, value))
    return found


def _yaml(path: Path, text: str) -> list[tuple[int, Value]]:
    try:
        import yaml
    except ImportError:
        if text.lstrip()[:1] in ("[", "{"):
            return _json(path, text)
        raise CannotStart(f"{path}: a script in YAML needs PyYAML (`pip install pyyaml`); JSON needs nothing") from None
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        if isinstance(root, yaml.MappingNode):
            root = next((value for key, value in root.value if key.value == "model"), root)
        if not isinstance(root, yaml.SequenceNode):
            raise CannotStart(f"{path}:{root.start_mark.line + 1 if root else 1}: a script is a list of replies")
        return [(node.start_mark.line + 1, _yaml_entry(loader, node)) for node in root.value]
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise CannotStart(f"{path}:{line}: not YAML: {error.problem}") from None
    finally:
        loader.dispose()


def _yaml_entry(loader: object, node: object) -> Value:
    """A text stays as it is written: `reply: no` and `step: 1` are not a boolean and a number."""
    import yaml

    assert isinstance(loader, yaml.SafeLoader) and isinstance(node, yaml.Node)  # noqa: S101
    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    if not isinstance(node, yaml.MappingNode):
        value: Value = loader.construct_object(node, deep=True)
        return value
    entry: dict[str, Value] = {}
    for key, part in node.value:
        raw = isinstance(part, yaml.ScalarNode) and key.value in _TEXTS
        entry[str(key.value)] = str(part.value) if raw else loader.construct_object(part, deep=True)
    return entry


def _text(value: Value) -> str:
    if isinstance(value, str):
        return value
    try:
        return encode(value)
    except InvalidValue as error:
        raise EntryError(f"has a reply that is not JSON: {error}") from None


def _calls(value: Value) -> tuple[tuple[str, Mapping[str, Value]], ...]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        raise EntryError("has tool_calls that are not a list")
    calls = []
    for one in value:
        match one:
            case {"name": str(name), **rest} if not rest.keys() - {"input"}:
                given = rest.get("input", {})
            case _:
                raise EntryError("has a tool call that is not a mapping of name and input")
        if not isinstance(given, Mapping):
            raise EntryError(f"calls {name} with an input that is not a mapping")
        try:
            encode(given)
        except InvalidValue as error:
            raise EntryError(f"calls {name} with an input that is not JSON: {error}") from None
        calls.append((name, given))
    return tuple(calls)


def _error(value: Value) -> tuple[str, str, bool]:
    if isinstance(value, Mapping):
        kind = str(value.get("kind", "model"))
        return kind, str(value.get("message", f"a scripted failure of kind {kind}")), value.get("transient") is True
    return "model", str(value), False


def _finish_reason(value: Mapping[str, Value]) -> str:
    """Why the reply ends; `length` is one that was cut off."""
    given = value.get("finish_reason", "")
    if not isinstance(given, str) or ("error" in value and given):
        raise EntryError("has a finish_reason that is not a text, or stands beside an error")
    return given


def _number(value: Value, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise EntryError(f"has a {name} that is not a number of 0 or more")
    return float(value)


def _usage(value: Value) -> Usage:
    if not isinstance(value, Mapping) or any(key not in ("input_tokens", "output_tokens", "cost") for key in value):
        raise EntryError("has a usage that is not a mapping of input_tokens, output_tokens and cost")
    read, written, cost = (_number(value.get(key, 0), key) for key in ("input_tokens", "output_tokens", "cost"))
    return Usage(int(read), int(written), cost)
