"""Cassettes, `x.cassette.yaml`: the recorded calls of each case with their prompts as readable text, and the model that
replies from them, as long as it is sent what was recorded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.diagnostics import Diagnostic
from quire.engine.records import Usage
from quire.errors import CannotStart, ModelFailed
from quire.formats import TEST_SUFFIX
from quire.formats.test import codes
from quire.source import Source, read_source, real_path
from quire.testing.case_results import Problem
from quire.testing.snapshots import as_text, read_value, write_beside
from quire.testing.world.model import NO_REPLY, CaseModel, Meter, ModelAsked, Replies, reply_of
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.engine.ports import ModelCall, ModelReply
    from quire.source import Span
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
        """Return the call in the form of the file."""
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
            value["tool_calls"] = [{"name": name, "input": dict(arguments)} for name, arguments in self.calls]
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
        """Read the cassette of a test file, which need not exist. Raises `CannotStart`.

        `name` is that of another file in the same folder; empty for the test's own.
        """
        folder = Path(test).parent
        path = folder / (name or Path(test).name.removesuffix(TEST_SUFFIX) + ENDING)
        if not real_path(path).is_relative_to(real_path(folder)) or not path.name.endswith(ENDING):
            raise CannotStart(f"{name} is not a cassette beside the test: its name ends in {ENDING}")
        return cls(path) if not path.is_file() else _read(path, read_source(path, limit=MAX_BYTES))

    def write(self, cases: Mapping[str, Sequence[RecordedCall]]) -> None:
        """Replace the file by one with these cases. Raises `CannotStart`."""
        listed: dict[str, Value] = {name: [call.as_value() for call in calls] for name, calls in cases.items() if calls}
        whole: dict[str, Value] = {"cases": listed}
        if self.max_age is not None:
            days = self.max_age % _DAY == 0
            whole = {"max_age": f"{self.max_age / _DAY:.0f}d" if days else f"{self.max_age:.0f}s", **whole}
        write_beside(self.path, _HEAD + as_text(whole))


def request_text(prompt: SeenPrompt) -> str:
    """Return a prompt as a cassette keeps it, with the roles of its messages."""
    parts = [f"system:\n{prompt.system}"] if prompt.system else []
    parts += [f"{role}:\n{text}" for role, text in prompt.messages]
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
    listed = {str(name): tuple(_call(path, call) for call in _list(calls)) for name, calls in cases.items()}
    return CassetteFile(path, listed, _age(path, value.get("max_age")))


def _list(value: Value) -> Sequence[Value]:
    return value if isinstance(value, list | tuple) else []


def _call(path: Path, value: Value) -> RecordedCall:
    if not isinstance(value, Mapping):
        raise CannotStart(f"{path}: a recorded call is a mapping")
    texts = {name: value.get(name, "") for name in ("path", "step", "request", "hash", "reply", "model", "date")}
    wrong = next((name for name, text in texts.items() if not isinstance(text, str)), "")
    if wrong or not texts["path"]:
        raise CannotStart(f"{path}: a recorded call has no {wrong or 'path'} that is text")
    usage = value.get("usage")
    used = usage if isinstance(usage, Mapping) else {}
    return RecordedCall(
        **{name: str(text) for name, text in texts.items()},
        calls=tuple(_use(path, use) for use in _list(value.get("tool_calls"))),
        finish_reason=str(value.get("finish_reason", "")),
        input_tokens=int(_number(used.get("input_tokens"))),
        output_tokens=int(_number(used.get("output_tokens"))),
        cost=None if used.get("cost", 0) is None else _number(used.get("cost")),
    )


def _use(path: Path, value: Value) -> tuple[str, Mapping[str, Value]]:
    match value:
        case {"name": str(name), "input": Mapping() as arguments}:
            return name, arguments
        case {"name": str(name)}:
            return name, {}
    raise CannotStart(f"{path}: a recorded tool call has a name and an input")


def _number(value: Value) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return float(value) if good else 0.0  # type: ignore[arg-type]


def _age(path: Path, value: Value) -> float | None:
    if value is None:
        return None
    from quire.units import seconds_of

    seconds = seconds_of(str(value))
    if seconds is None:
        raise CannotStart(f"{path}: max_age is a time such as 90d, not {value}")
    return seconds


DRIFT = "cassette_drift"
"""The kind of a failure of which the case is told: the prompt is not the recorded one."""


class Drift(Struct, frozen=True):
    """A prompt that differs from the recorded one."""

    recorded: RecordedCall
    request: str


class CassettePlayer(CaseModel):
    """The model of a case with a cassette. Replies that the case writes itself come first.

    With `keep`, a reply is used although its prompt has changed.
    """

    def __init__(self, replies: Replies, meter: Meter, calls: Sequence[RecordedCall], *, keep: bool) -> None:
        super().__init__(replies, meter)
        self.drifts: list[Drift] = []
        self.used: set[str] = set()
        self._calls = {call.path: call for call in calls}
        self._keep = keep

    async def _reply(self, call: ModelCall, prompt: SeenPrompt, on_delta: Callable[[str], None]) -> ModelReply:
        recorded = self._calls.get(call.path)
        if recorded is None or self.replies.answers(ModelAsked(call.path, call.label, prompt.text)):
            return await super()._reply(call, prompt, on_delta)
        self.used.add(call.path)
        if recorded.hash != call_hash(call):
            self.drifts.append(Drift(recorded, request_text(prompt)))
            if not self._keep:
                raise ModelFailed(f"the prompt of step {prompt.label} is not the recorded one", kind=DRIFT)
        if recorded.reply:
            on_delta(recorded.reply)
        usage, name = Usage(recorded.input_tokens, recorded.output_tokens, recorded.cost), recorded.model or NO_REPLY
        return reply_of(call, name, recorded.reply, recorded.calls, recorded.finish_reason, usage)

    def unused(self) -> list[RecordedCall]:
        """Return the recorded calls that the case did not make."""
        return [call for path, call in self._calls.items() if path not in self.used]


class Cassettes:
    """The cassettes of one test file, each read once. `now` is the real time, for the age of recordings."""

    def __init__(self, test: str, *, keep: bool = False, now: datetime | None = None) -> None:
        self._test = test
        self._keep = keep
        self._now = now or datetime.now(UTC)
        self._files: dict[str, CassetteFile] = {}

    def player(self, which: str | bool, case: str, replies: Replies, meter: Meter) -> CassettePlayer:
        """Return the model of a case. Raises `CannotStart` for a cassette that cannot be read."""
        name = which if isinstance(which, str) else ""
        return CassettePlayer(replies, meter, self.file(name).cases.get(case, ()), keep=self._keep)

    def file(self, name: str) -> CassetteFile:
        if name not in self._files:
            self._files[name] = CassetteFile.beside(self._test, name)
        return self._files[name]

    def problems(self, player: CassettePlayer, where: Span, problems: Sequence[Problem]) -> list[Problem]:
        """Return the problems of a case with those of its cassette.

        A prompt that differs explains all others. A call that was not made is a problem only without another one.
        """
        if player.drifts and not self._keep:
            return [_drift(drift, where) for drift in player.drifts[:1]]
        left = player.unused() if not problems else []
        if not left:
            return list(problems)
        steps = ", ".join(dict.fromkeys(call.step for call in left))
        message = f"the case did not make {len(left)} of its recorded calls (step {steps})"
        help = "quire test --record all records it again"
        return [Problem(Diagnostic(codes.CASSETTE_PARTIAL, message, where, "", help))]

    def orphans(self, by_cassette: Mapping[str, Collection[str]], where: Span) -> list[Problem]:
        """Return the cases that the cassettes have and the test no longer has. `by_cassette` are the cases of the test.
        Raises `CannotStart`."""
        return [
            Problem(
                Diagnostic(
                    codes.CASSETTE_ORPHAN,
                    f"{file.path.name} has recorded the case {case!r}, which is not here",
                    where,
                    "",
                    "remove it from the cassette, or give the case its old name",
                )
            )
            for name, cases in by_cassette.items()
            for file in [self.file(name)]
            for case in file.cases
            if case not in cases
        ]

    def old(self, where: Span) -> list[Diagnostic]:
        """Return warnings about recordings that are older than their cassette allows."""
        findings = []
        for file in self._files.values():
            for case, calls in file.cases.items():
                days = max((self._age(call) for call in calls), default=0.0)
                if file.max_age is not None and days * 86_400 > file.max_age:
                    message = f"{file.path.name}: the case {case!r} was recorded {days:.0f} days ago"
                    help = "quire test --record all records it again"
                    findings.append(Diagnostic(codes.CASSETTE_OLD, message, where, "", help))
        return findings

    def _age(self, call: RecordedCall) -> float:
        """Return the age of a recording in days; 0 if its date cannot be read."""
        try:
            at = datetime.fromisoformat(call.date)
        except ValueError:
            return 0.0
        return (self._now - (at if at.tzinfo else at.replace(tzinfo=UTC))).total_seconds() / 86_400


def _drift(drift: Drift, where: Span) -> Problem:
    step, model = drift.recorded.step, drift.recorded.model
    help = (
        "record it again (quire test --record all), keep the old reply (--keep), or undo the edit; "
        f"it was recorded on {drift.recorded.date} with {model}"
    )
    message = f"the prompt of step {step} is not the recorded one"
    return Problem(
        Diagnostic(codes.CASSETTE_DRIFT, message, where, "", help), "", (), drift.recorded.request, drift.request
    )
