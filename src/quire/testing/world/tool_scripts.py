"""The scripted tools of a case: which answer a call gets, and which scripts were never called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct

from quire.trust.capabilities import canonical, flat_name

if TYPE_CHECKING:
    from quire.formats.test.syntax import ScriptedError, ToolScript, When
    from quire.values import Value


class Played(Struct, frozen=True):
    """The answer to one call."""

    value: Value = None
    error: ScriptedError | None = None
    delay: float = 0.0
    crash: When | None = None


class Unanswered(Exception):
    """A scripted tool has no answer for a call."""


class _Player:
    """One script with its state: the calls that it has answered."""

    def __init__(self, script: ToolScript) -> None:
        self.script = script
        self.calls = 0
        self._crashed = False
        self._sequence = [_Player(one) for one in script.sequence]
        self._when = [(arguments, _Player(one)) for arguments, one in script.when]
        self._otherwise = _Player(script.otherwise) if script.otherwise else None

    def play(self, arguments: Mapping[str, Value]) -> Played:
        script = self.script
        if script.times is not None and self.calls >= script.times:
            raise Unanswered(f"it answers {script.times} {'call' if script.times == 1 else 'calls'} only")
        self.calls += 1
        found = self._inner(arguments)
        crash = None if self._crashed else script.crash
        self._crashed = self._crashed or crash is not None
        if found is not None:
            return Played(found.value, found.error, script.delay + found.delay, crash or found.crash)
        if script.raises is not None:
            return Played(None, script.raises, script.delay, crash)
        value: Value = dict(arguments) if script.echo else None if script.returns is UNSET else script.returns
        return Played(value, None, script.delay, crash)

    def unplay(self) -> None:
        """Take back the last call: the process died before its result was recorded."""
        self.calls -= 1
        if self._sequence:
            self._sequence[self.calls].unplay()

    def _inner(self, arguments: Mapping[str, Value]) -> Played | None:
        if self._sequence:
            if self.calls > len(self._sequence):
                raise Unanswered(f"its sequence has {len(self._sequence)} answers, and this is call {self.calls}")
            return self._sequence[self.calls - 1].play(arguments)
        if self._when or self._otherwise:
            for wanted, player in self._when:
                if _contains(arguments, wanted):
                    return player.play(arguments)
            if self._otherwise is None:
                raise Unanswered("no `when` fits the arguments, and there is no `else`")
            return self._otherwise.play(arguments)
        return None


class ToolScripts:
    """The scripts of a case by tool. A tool is found by any of its names."""

    def __init__(self, scripts: Mapping[str, ToolScript]) -> None:
        self._players: dict[str, _Player] = {}
        self.add(scripts)

    def add(self, scripts: Mapping[str, ToolScript]) -> None:
        """Replace the scripts of some tools."""
        for name, script in scripts.items():
            self._players[name] = _Player(script)

    def find(self, tool_id: str, name: str = "", connection: str = "") -> ToolScript | None:
        player = self._player(tool_id, name, connection)
        return player.script if player else None

    def play(self, tool_id: str, name: str, connection: str, arguments: Mapping[str, Value]) -> Played | None:
        """Return the answer to a call; None for a tool without a script, or a real one. Raises `Unanswered`."""
        player = self._player(tool_id, name, connection)
        if player is None:
            return None
        if player.script.real:
            player.calls += 1
            return None
        return player.play(arguments)

    def forget(self, tool_id: str, name: str, connection: str) -> None:
        """Take back the last call of a tool, whose process died before the result was recorded."""
        player = self._player(tool_id, name, connection)
        if player is not None and player.calls and not player.script.real:
            player.unplay()

    def unused(self) -> list[tuple[str, ToolScript]]:
        """Return the scripts of the case itself that were never called."""
        return [
            (name, one.script)
            for name, one in self._players.items()
            if not one.calls and not one.script.real and not one.script.shared
        ]

    def names(self) -> list[str]:
        return list(self._players)

    def _player(self, tool_id: str, name: str, connection: str) -> _Player | None:
        for known, player in self._players.items():
            if known in _names(tool_id, name, connection) or canonical(known) == tool_id:
                return player
        return None


def _names(tool_id: str, name: str, connection: str) -> tuple[str, ...]:
    """Return all names under which a test may script a tool."""
    place = (f"{connection}/{name}", f"{connection}__{name}", f"{connection}.{name}") if connection else ()
    return (tool_id, name, flat_name(tool_id), *place)


def _contains(value: Value, wanted: Value) -> bool:
    """Tell whether a value has all the parts that are wanted."""
    if isinstance(wanted, Mapping):
        return isinstance(value, Mapping) and all(
            key in value and _contains(value[key], part) for key, part in wanted.items()
        )
    return value == wanted
