"""The file of a cassette, `x.cassette.yaml`: the recorded calls of each case, with their prompts as readable text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.errors import CannotStart
from quire.formats.test.syntax import SUFFIX
from quire.source import Source, read_source, real_path
from quire.testing.snapshots import as_text, read_value, write_beside
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.engine.ports import ModelCall
    from quire.testing.observation import SeenPrompt

ENDING = ".cassette.yaml"
MAX_BYTES = 20_000_000
_HEAD = "# Recorded replies of a model. Written by `quire test --record`.\n"
_DAY = 86_400.0


class RecordedCall(Struct, frozen=True):
    """One call of a model, as it was recorded."""

    path: str
    step: str
    request: str
    """The prompt, for people."""
    hash: str
    """Of everything that the model was sent."""
    reply: str
    model: str
    date: str
    """In ISO 8601, in UTC."""
    calls: tuple[tuple[str, Mapping[str, Value]], ...] = ()
    """Names and arguments of the tools that the model wanted called."""
    finish_reason: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0

    def as_value(self) -> dict[str, Value]:
        """Return the call as it stands in the file."""
        value: dict[str, Value] = {
            "step": self.step,
            "path": self.path,
            "model": self.model,
            "date": self.date,
            "hash": self.hash,
            "request": self.request,
            "reply": self.reply,
        }
        if self.calls:
            value["tool_calls"] = [{"name": name, "input": dict(given)} for name, given in self.calls]
        if self.finish_reason:
            value["finish_reason"] = self.finish_reason
        value["usage"] = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens, "cost": self.cost}
        return value


class CassetteFile(Struct, frozen=True):
    """A cassette with the calls of its cases by name."""

    path: Path
    cases: Mapping[str, tuple[RecordedCall, ...]] = field(default_factory=dict)
    max_age: float | None = None
    """Seconds after which a recording is old; None for never."""

    @classmethod
    def beside(cls, test: str, name: str = "") -> CassetteFile:
        """Read the cassette of a test file, which need not be there. Raises `CannotStart`.

        `name` is that of another file in the same folder; empty for the test's own.
        """
        folder = Path(test).parent
        path = folder / (name or Path(test).name.removesuffix(SUFFIX) + ENDING)
        if not real_path(path).is_relative_to(real_path(folder)) or not path.name.endswith(ENDING):
            raise CannotStart(f"{name} is not a cassette beside the test: its name ends in {ENDING}")
        return cls(path) if not path.is_file() else _read(path, read_source(path, limit=MAX_BYTES))

    def write(self, cases: Mapping[str, Sequence[RecordedCall]]) -> None:
        """Replace the file by one with these cases. Raises `CannotStart`."""
        listed: dict[str, Value] = {name: [one.as_value() for one in calls] for name, calls in cases.items() if calls}
        whole: dict[str, Value] = {"cases": listed}
        if self.max_age is not None:
            days = self.max_age % _DAY == 0
            whole = {"max_age": f"{self.max_age / _DAY:.0f}d" if days else f"{self.max_age:.0f}s", **whole}
        write_beside(self.path, _HEAD + as_text(whole))


def request_text(seen: SeenPrompt) -> str:
    """Return a prompt as a cassette keeps it, with the roles of its messages."""
    parts = [f"system:\n{seen.system}"] if seen.system else []
    parts += [f"{role}:\n{text}" for role, text in seen.messages]
    return "\n\n".join(parts)


def call_hash(call: ModelCall) -> str:
    """Return the hash of everything that decides a reply, but for the model itself."""
    content: Value = {
        "system": call.system,
        "messages": [message.as_value() for message in call.messages],
        "closing": call.closing,
        "schema": call.schema,
        "tools": [[tool.name, tool.description, tool.schema] for tool in call.tools],
        "temperature": call.temperature,
        "reasoning": call.reasoning,
    }
    return hashlib.sha256(encode(content).encode()).hexdigest()[:32]


def _read(path: Path, source: Source) -> CassetteFile:
    value = read_value(source)
    if value in (None, {}):
        return CassetteFile(path)
    cases = value.get("cases") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(cases, Mapping):
        raise CannotStart(f"{path} is not a cassette: it needs the key cases")
    listed = {str(name): tuple(_call(path, one) for one in _list(calls)) for name, calls in cases.items()}
    return CassetteFile(path, listed, _age(path, value.get("max_age")))


def _list(value: Value) -> Sequence[Value]:
    return value if isinstance(value, list | tuple) else []


def _call(path: Path, value: Value) -> RecordedCall:
    if not isinstance(value, Mapping):
        raise CannotStart(f"{path}: a recorded call is a mapping")
    texts = {name: value.get(name, "") for name in ("path", "step", "request", "hash", "reply", "model", "date")}
    wrong = next((name for name, one in texts.items() if not isinstance(one, str)), "")
    if wrong or not texts["path"]:
        raise CannotStart(f"{path}: a recorded call has no {wrong or 'path'} that is text")
    usage = value.get("usage")
    used = usage if isinstance(usage, Mapping) else {}
    return RecordedCall(
        **{name: str(one) for name, one in texts.items()},
        calls=tuple(_use(path, one) for one in _list(value.get("tool_calls"))),
        finish_reason=str(value.get("finish_reason", "")),
        input_tokens=int(_number(used.get("input_tokens"))),
        output_tokens=int(_number(used.get("output_tokens"))),
        cost=None if used.get("cost", 0) is None else _number(used.get("cost")),
    )


def _use(path: Path, value: Value) -> tuple[str, Mapping[str, Value]]:
    match value:
        case {"name": str(name), "input": Mapping() as given}:
            return name, given
        case {"name": str(name)}:
            return name, {}
    raise CannotStart(f"{path}: a recorded tool call has a name and an input")


def _number(value: Value) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return float(value) if good else 0.0  # type: ignore[arg-type]


def _age(path: Path, value: Value) -> float | None:
    if value is None:
        return None
    from quire.durations import seconds_of

    seconds = seconds_of(str(value))
    if seconds is None:
        raise CannotStart(f"{path}: max_age is a time such as 90d, not {value}")
    return seconds
