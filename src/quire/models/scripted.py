"""A model that replies from a script: for `--script FILE`, for document tests, for trying a run without a key.

A script is JSON, or YAML if PyYAML is installed; every mistake is reported with its line. An entry is a text, or a
mapping with `reply`, `error`, `default`, or `tool_calls` (each with `name` and `input`, and beside them the `text` that
the model says with them). A `finish_reason` of `length` makes it a reply that was cut off.

For each call the first of these answers: an entry whose `step` is the way to the call's step (`3 › 1`, or `3>1`, in a
called document); one whose `step` is its label; one whose `contains` occurs in the prompt; the next entry in order that
has neither; the `default`. Entries for the same step, or with the same `contains`, are used one after the other, and
the last of them stays. `delay_ms` waits before the answer; an entry that is only a delay belongs to the one after it.

A script covers the whole run: when a run is resumed, the entries that its calls used, failed ones too, are skipped
(`pass_over`), and the next call gets the entry that it would have got without the interruption.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct, field

from quire.engine.conversation import ToolUse
from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import Usage
from quire.errors import CannotStart, ModelFailed
from quire.plan.vocabulary import JOINT, last_label, typed_way
from quire.source import read_bytes
from quire.values import InvalidValue, Value, encode

KEYS = ("step", "contains", "reply", "default", "error", "tool_calls", "text", "finish_reason", "delay_ms", "usage")
_TEXTS = ("step", "contains", "reply", "default", "text", "finish_reason")


class Entry(Struct, frozen=True, eq=False):
    """One entry of a script. Compared by identity: two entries with the same content are still two."""

    step: str | None = None
    contains: str | None = None
    reply: str = ""
    calls: tuple[tuple[str, Mapping[str, Value]], ...] = ()
    """Names and arguments of tools."""
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
        """Tell whether the entry answers a prompt.

        `step` is a label, or the way to a step; None matches an entry that names no step.
        """
        return self.step == step and (self.contains is None or self.contains in prompt)

    def same_rule(self, other: Entry) -> bool:
        return (self.step, self.contains) == (other.step, other.contains)


class EntryError(ValueError):
    """A problem with one entry; the reader adds its location."""


def entries_of(values: Sequence[Value] | Sequence[Entry]) -> list[Entry]:
    """Convert values into entries. Raises `CannotStart`, naming the entry by its number."""
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
        raise EntryError("has a text without tool_calls; write a text alone as a reply")
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
"""Content read from pipes: a run reads its script more than once, but a pipe can be read only once."""


def _bytes(path: Path) -> bytes:
    if path in _PIPES:
        return _PIPES[path]
    data = read_bytes(path, pipes=True)
    if path.is_fifo():
        _PIPES[path] = data
    return data


def read_script(path: Path) -> list[Entry]:
    """Read a script. Raises `CannotStart` with the file and, if known, the line."""
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
    # The whole is valid, so its items can be read again one by one to find where each begins.
    entries: list[tuple[int, Value]] = []
    scan, at = json.JSONDecoder().raw_decode, text.index("[") + 1
    line = text.count("\n", 0, at) + 1
    for _ in whole:
        while text[at] in " \t\r\n,":
            line += text[at] == "\n"
            at += 1
        began = at
        value, at = scan(text, began)
        entries.append((line, value))
        line += text.count("\n", began, at)
    return entries


def _yaml(path: Path, text: str) -> list[tuple[int, Value]]:
    import yaml

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
    """Build an entry and keep texts as they are written: `reply: no` and `step: 1` are not a boolean and a number."""
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
    """Return why the reply ends; `length` marks one that was cut off."""
    reason = value.get("finish_reason", "")
    if not isinstance(reason, str) or ("error" in value and reason):
        raise EntryError("has a finish_reason that is not a text, or stands beside an error")
    return reason


def _number(value: Value, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise EntryError(f"has a {name} that is not a number of 0 or more")
    return float(value)


def _usage(value: Value) -> Usage:
    if not isinstance(value, Mapping) or any(key not in ("input_tokens", "output_tokens", "cost") for key in value):
        raise EntryError("has a usage that is not a mapping of input_tokens, output_tokens and cost")
    read, written, cost = (_number(value.get(key, 0), key) for key in ("input_tokens", "output_tokens", "cost"))
    return Usage(int(read), int(written), cost)


NO_REPLY = "the script has no reply for"


SHORT = 60
"""A reply of at most this many characters is streamed in two pieces."""


class ScriptedModel:
    """Replies from a script.

    `calls` are the calls that it received, in order; in a long run they use much memory, so keeping them is optional.
    """

    def __init__(
        self,
        entries: Sequence[Value] | Sequence[Entry],
        *,
        name: str = "script",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        keep_calls: bool = True,
    ) -> None:
        parsed = entries_of(entries)
        self.calls: list[ModelCall] = []
        self._name = name
        self._sleep = sleep
        self._keep_calls = keep_calls
        self._count = 0
        self._queue = deque(entry for entry in parsed if entry.in_order)
        self._matching = [entry for entry in parsed if not entry.in_order and not entry.is_default]
        self._default = next((entry for entry in parsed if entry.is_default), None)

    @classmethod
    def from_file(cls, path: Path, *, keep_calls: bool = True) -> ScriptedModel:
        return cls(read_script(path), name=f"script:{path}", keep_calls=keep_calls)

    @property
    def name(self) -> str:
        return self._name

    @property
    def ways(self) -> list[str]:
        """Return the ways to steps of called documents that entries are for."""
        return [entry.step for entry in self._matching if entry.step is not None and JOINT in entry.step]

    def pass_over(self, call: ModelCall) -> None:
        """Use up the entry that answered this call in an earlier drive of the run."""
        with contextlib.suppress(ModelFailed):
            self._next(call)

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        self._count += 1
        if self._keep_calls:
            self.calls.append(call)
        entry, delay_ms = self._next(call)
        if delay_ms:
            await self._sleep(delay_ms / 1000)
        if entry.error is not None:
            kind, message, transient = entry.error
            raise ModelFailed(message, kind=kind, transient=transient)
        for piece in _pieces(entry.reply):
            on_delta(piece)
            await asyncio.sleep(0)
        earlier = sum(len(message.uses) for message in call.messages)
        uses = tuple(ToolUse(f"call_{earlier + n}", *use) for n, use in enumerate(entry.calls, 1))
        finish = entry.finish_reason or ("tool_call" if uses else "stop")
        return ModelReply(entry.reply, self._name, entry.usage, finish, uses=uses)

    def _next(self, call: ModelCall) -> tuple[Entry, float]:
        reads = any(entry.contains is not None for entry in self._matching)
        prompt = "\n".join((call.system, *(message.content for message in call.messages))) if reads else ""
        for step in (call.label, last_label(call.label), None):
            fitting = [entry for entry in self._matching if entry.fits(step, prompt)]
            if not fitting:
                continue
            entry = fitting[0]
            if any(other.same_rule(entry) for other in fitting[1:]):
                self._matching.remove(entry)
            return entry, entry.delay_ms
        delay = 0.0
        while self._queue:
            entry = self._queue.popleft()
            delay += entry.delay_ms
            if not entry.only_delay:
                return entry, delay
        if self._default is not None:
            return self._default, delay + self._default.delay_ms
        where = f"step {call.label}" if call.label else f"call {self._count}"
        raise ModelFailed(f"{NO_REPLY} {where}", kind="script")


@lru_cache(maxsize=64)  # a default answers many calls
def _pieces(text: str) -> list[str]:
    """Split a text between words: a short one into up to two pieces, others into up to four.

    Joined they are the text.
    """
    words = re.findall(r"\s*\S+\s*", text) or ([text] if text else [])
    size = max(1, -(-len(words) // (4 if len(text) > SHORT else 2)))
    return ["".join(words[at : at + size]) for at in range(0, len(words), size)]
