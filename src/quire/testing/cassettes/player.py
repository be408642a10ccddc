"""A model that replies from a cassette, as long as it is sent what was recorded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.diagnostics import Diagnostic
from quire.engine.records import Usage
from quire.errors import ModelFailed
from quire.formats.test import codes
from quire.testing.cassettes.file import CassetteFile, RecordedCall, call_hash, request_text
from quire.testing.results import Problem
from quire.testing.world.model import NO_REPLY, CaseModel, Meter, reply_of
from quire.testing.world.replies import ModelAsked, Replies

if TYPE_CHECKING:
    from quire.engine.ports import ModelCall, ModelReply
    from quire.source import Span
    from quire.testing.observation import SeenPrompt

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
        self._calls = {one.path: one for one in calls}
        self._keep = keep

    async def _reply(self, call: ModelCall, seen: SeenPrompt, on_delta: Callable[[str], None]) -> ModelReply:
        recorded = self._calls.get(call.path)
        if recorded is None or self.replies.answers(ModelAsked(call.path, call.label, seen.text)):
            return await super()._reply(call, seen, on_delta)
        self.used.add(call.path)
        if recorded.hash != call_hash(call):
            self.drifts.append(Drift(recorded, request_text(seen)))
            if not self._keep:
                raise ModelFailed(f"the prompt of step {seen.label} is not the recorded one", kind=DRIFT)
        if recorded.reply:
            on_delta(recorded.reply)
        usage, name = Usage(recorded.input_tokens, recorded.output_tokens, recorded.cost), recorded.model or NO_REPLY
        return reply_of(call, name, recorded.reply, recorded.calls, recorded.finish_reason, usage)

    def unused(self) -> list[RecordedCall]:
        """Return the recorded calls that the case did not make."""
        return [one for path, one in self._calls.items() if path not in self.used]


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

        A prompt that differs explains all others. A call that was not made is a problem only if there is no other.
        """
        if player.drifts and not self._keep:
            return [_drift(one, where) for one in player.drifts[:1]]
        left = player.unused() if not problems else []
        return [*problems, *([_partial(left, where)] if left else [])]

    def orphans(self, asked: Mapping[str, Collection[str]], where: Span) -> list[Problem]:
        """Return the cases that the cassettes have and the test no longer has. `asked` are the cases of the test by
        the name of their cassette. Raises `CannotStart`."""
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
            for name, cases in asked.items()
            for file in [self.file(name)]
            for case in file.cases
            if case not in cases
        ]

    def old(self, where: Span) -> list[Diagnostic]:
        """Return warnings about recordings that are older than their cassette allows."""
        found = []
        for file in self._files.values():
            for case, calls in file.cases.items():
                days = max((self._age(one) for one in calls), default=0.0)
                if file.max_age is not None and days * 86_400 > file.max_age:
                    message = f"{file.path.name}: the case {case!r} was recorded {days:.0f} days ago"
                    help = "quire test --record all records it again"
                    found.append(Diagnostic(codes.CASSETTE_OLD, message, where, "", help))
        return found

    def _age(self, call: RecordedCall) -> float:
        """Return the age of a recording in days; 0 if its date cannot be read."""
        try:
            at = datetime.fromisoformat(call.date)
        except ValueError:
            return 0.0
        return (self._now - (at if at.tzinfo else at.replace(tzinfo=UTC))).total_seconds() / 86_400


def _drift(one: Drift, where: Span) -> Problem:
    step, model = one.recorded.step, one.recorded.model
    help = (
        "record it again (quire test --record all), keep the old reply (--keep), or undo the edit; "
        f"it was recorded on {one.recorded.date} with {model}"
    )
    message = f"the prompt of step {step} is not the recorded one"
    return Problem(
        Diagnostic(codes.CASSETTE_DRIFT, message, where, "", help), "", (), one.recorded.request, one.request
    )


def _partial(left: Sequence[RecordedCall], where: Span) -> Problem:
    steps = ", ".join(dict.fromkeys(one.step for one in left))
    message = f"the case did not make {len(left)} of its recorded calls (step {steps})"
    return Problem(Diagnostic(codes.CASSETTE_PARTIAL, message, where, "", "quire test --record all records it again"))
