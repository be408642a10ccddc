"""The scripts of people and tools in a case: which answer a question or a call gets, and which were not used."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct
from msgspec.structs import replace

from quire.runs.adapters import option_by_number
from quire.testing.observation import SeenQuestion
from quire.trust.capabilities import canonical, flat_name

if TYPE_CHECKING:
    from quire.engine.records import Question
    from quire.formats.test.syntax import GivenAnswer, ScriptedError, ToolScript, When
    from quire.values import Value


class Answers:
    """The answers that a case gives. One that is written once answers every question of its step; those of a list are
    given one after the other, and an empty list gives none."""

    def __init__(self, answers: Mapping[str, tuple[GivenAnswer, ...]]) -> None:
        self._answers = dict(answers)
        self._used: dict[str, int] = {}
        self._given: dict[str, tuple[str, GivenAnswer]] = {}

    def add(self, answers: Mapping[str, tuple[GivenAnswer, ...]]) -> None:
        for name, listed in answers.items():
            self._answers[name] = listed
            self._used.pop(name, None)

    def take(self, path: str, way: str, label: str) -> GivenAnswer | None:
        """Return the answer to a question; the same one if the question is asked again before it was recorded."""
        name = next((name for name in (path, way, label) if name in self._answers), None)
        if name is None:
            return None
        if path in self._given and self._given[path][0] == name:
            return self._given[path][1]
        listed, at = self._answers[name], self._used.get(name, 0)
        if len(listed) != 1 and at >= len(listed):
            return None
        self._used[name] = at + 1
        answer = listed[0] if len(listed) == 1 else listed[at]
        self._given[path] = name, answer
        return answer

    def refused(self, path: str) -> None:
        """Note that the answer to a question did not fit: the next one, if there is one, is for the same question."""
        self._given.pop(path, None)

    def unused(self) -> list[tuple[str, GivenAnswer]]:
        """Return the answers of the case itself that no question took."""
        return [
            (name, answer)
            for name, listed in self._answers.items()
            for number, answer in enumerate(listed)
            if number >= self._used.get(name, 0) and not answer.shared
        ]


class CasePeople:
    """The `People` port. A question without an answer, or with one that comes later, waits."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.seen: dict[str, SeenQuestion] = {}
        self._by: dict[str, str] = {}
        self._last: dict[str, str] = {}

    async def ask(self, question: Question, problem: str) -> str | None:
        self.see(question)
        if problem:
            self.answers.refused(question.path)
        answer = self.answers.take(question.path, question.way, question.label)
        if answer is None or answer.after is not None:
            return None
        if problem and answer.value == self._last.get(question.path):
            return None  # it stands for all questions of a step, and would not fit again
        self._last[question.path] = answer.value
        self._by[question.path] = answer.by or "test"
        return option_by_number(question.kind, question.options, answer.value)

    def answered_by(self, question: Question) -> str:
        return self._by.get(question.path, "")

    def see(self, question: Question) -> None:
        if question.path not in self.seen:
            self.seen[question.path] = SeenQuestion(
                question.path, question.way, question.kind, question.prompt, question.options
            )


class Played(Struct, frozen=True):
    """The answer to one call."""

    value: Value = None
    error: ScriptedError | None = None
    delay: float = 0.0
    crash: When | None = None
    real: bool = False
    """True if the tool itself answers."""


class Unanswered(Exception):
    """A scripted tool has no answer for a call."""


class _Player:
    """One script with its state: the calls that it has answered."""

    def __init__(self, script: ToolScript) -> None:
        self.script = script
        self.calls = 0
        self.was_called = False
        self._crashed = False
        self._sequence = [_Player(inner) for inner in script.sequence]
        self._when = [(arguments, _Player(inner)) for arguments, inner in script.when]
        self._otherwise = _Player(script.otherwise) if script.otherwise else None
        self._inside: list[_Player] = []
        """The inner scripts that answered the calls, one by one."""

    def play(self, arguments: Mapping[str, Value]) -> Played:
        script = self.script
        if script.times is not None and self.calls >= script.times:
            raise Unanswered(f"it answers {script.times} {'call' if script.times == 1 else 'calls'} only")
        self.calls += 1
        self.was_called = True
        inner = self._inner(arguments)
        crash = None if self._crashed else script.crash
        self._crashed = self._crashed or crash is not None
        if inner is not None:
            return replace(inner, delay=script.delay + inner.delay, crash=crash or inner.crash)
        if script.real:
            return Played(delay=script.delay, crash=crash, real=True)
        if script.raises is not None:
            return Played(None, script.raises, script.delay, crash)
        value: Value = dict(arguments) if script.echo else None if script.returns is UNSET else script.returns
        return Played(value, None, script.delay, crash)

    def unplay(self) -> None:
        """Take back the last call: the process died before its result was recorded."""
        self.calls -= 1
        if self._inside:
            self._inside.pop().unplay()

    def _inner(self, arguments: Mapping[str, Value]) -> Played | None:
        """Return the answer of the inner script that is next, or that fits; None if there are no inner scripts."""
        if self._sequence:
            if self.calls > len(self._sequence):
                raise Unanswered(f"its sequence has {len(self._sequence)} answers, and this is call {self.calls}")
            inner = self._sequence[self.calls - 1]
        elif self._when or self._otherwise:
            fitting = next((player for part, player in self._when if _contains(arguments, part)), self._otherwise)
            if fitting is None:
                raise Unanswered("no `when` fits the arguments, and the script has no `else`")
            inner = fitting
        else:
            return None
        played = inner.play(arguments)
        self._inside.append(inner)
        return played


class ToolScripts:
    """The scripts of a case by tool. A tool is found by any of its names."""

    def __init__(self, scripts: Mapping[str, ToolScript]) -> None:
        self._players: dict[str, _Player] = {}
        self._given: dict[str, _Player] = {}
        """The script that answered each effect."""
        self.add(scripts)

    def add(self, scripts: Mapping[str, ToolScript]) -> None:
        """Replace the scripts of some tools."""
        for name, script in scripts.items():
            self._players[name] = _Player(script)

    def find(self, tool_id: str, name: str = "", connection: str = "") -> ToolScript | None:
        player = self._player(tool_id, name, connection)
        return player.script if player else None

    def play(
        self, tool_id: str, name: str, connection: str, arguments: Mapping[str, Value], effect_id: str = ""
    ) -> Played | None:
        """Return the answer to a call; None for a tool without a script. Raises `Unanswered`."""
        player = self._player(tool_id, name, connection)
        if player is None:
            return None
        played = player.play(arguments)
        if effect_id:
            self._given[effect_id] = player
        return played

    def forget(self, recorded: Collection[str]) -> None:
        """Take back the answers of a dead process whose effects are not in the journal."""
        for effect_id in [effect for effect in self._given if effect not in recorded]:
            self._given.pop(effect_id).unplay()

    def unused(self) -> list[tuple[str, ToolScript]]:
        """Return the scripts of the case itself that were never called."""
        return [
            (name, player.script)
            for name, player in self._players.items()
            if not player.was_called and not player.script.real and not player.script.shared
        ]

    def names(self) -> list[str]:
        return list(self._players)

    def _player(self, tool_id: str, name: str, connection: str) -> _Player | None:
        """Return the script of a tool, which a test may give under any of its names."""
        place = (f"{connection}/{name}", f"{connection}__{name}", f"{connection}.{name}") if connection else ()
        names = (tool_id, name, flat_name(tool_id), *place)
        players = self._players.items()
        return next((player for own, player in players if own in names or canonical(own) == tool_id), None)


def _contains(value: Value, expected: Value) -> bool:
    """Tell whether a value has all the parts that are wanted."""
    if isinstance(expected, Mapping):
        return isinstance(value, Mapping) and all(
            key in value and _contains(value[key], part) for key, part in expected.items()
        )
    return value == expected
