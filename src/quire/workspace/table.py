"""A reader of one settings table that keeps every problem instead of stopping at the first."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from quire.wording import nearest

T = TypeVar("T")
C = TypeVar("C", bound=str)

_DURATION = re.compile(r"(\d{1,9})\s*(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(slots=True)
class Table:
    """`name` is how the table is written in its file (`[runs]`), empty for the top; `problems` is shared."""

    file: str
    name: str
    data: Mapping[str, object]
    problems: list[str]
    _known: list[str] = field(default_factory=list)

    def text(self, key: str) -> str | None:
        return self._take(key, "text", lambda value: value if isinstance(value, str) and value.strip() else None)

    def texts(self, key: str) -> tuple[str, ...]:
        return self._take(key, "a list of texts", _texts) or ()

    def count(self, key: str) -> int | None:
        return self._take(
            key,
            "a whole number, 0 or more",
            lambda value: value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None,
        )

    def flag(self, key: str, default: bool) -> bool:
        found = self._take(key, "true or false", lambda value: value if isinstance(value, bool) else None)
        return default if found is None else found

    def choice(self, key: str, options: tuple[C, ...]) -> C | None:
        wanted = " or ".join(f'"{option}"' for option in options)
        return self._take(key, wanted, lambda value: next((option for option in options if option == value), None))

    def duration(self, key: str) -> float | None:
        return self._take(key, 'a time like "30s", "30m", "24h" or "7d"', _duration)

    def amount(self, key: str) -> float | None:
        return self._take(key, "a number, 0 or more", _amount)

    def table(self, key: str) -> Table:
        self._known.append(key)
        value = self.data.get(key, {})
        name = f"{self.name}.{key}" if self.name else key
        if isinstance(value, Mapping):
            return Table(self.file, name, value, self.problems)
        self._wrong(key, "a table", value)
        return Table(self.file, name, {}, self.problems)

    def tables(self, key: str) -> dict[str, Table]:
        """The tables of a table whose keys are names of the user's."""
        outer = self.table(key)
        return {name: outer.table(name) for name in outer.data}

    def all_texts(self) -> dict[str, str]:
        """Every key of this table, each a text."""
        found = {key: self.text(key) for key in self.data}
        return {key: value for key, value in found.items() if value is not None}

    def end(self) -> None:
        """Call when all keys were asked for: what is left is unknown."""
        for key in self.data:
            if key not in self._known:
                close = nearest(key, self._known)
                meant = f'did you mean "{close}"?' if close else f"known are: {', '.join(sorted(self._known))}"
                self.problems.append(f"{self.file}: {self._place(key)} is not a setting; {meant}")

    def _take(self, key: str, wanted: str, read: Callable[[object], T | None]) -> T | None:
        self._known.append(key)
        if key not in self.data:
            return None
        found = read(self.data[key])
        if found is None:
            self._wrong(key, wanted, self.data[key])
        return found

    def _wrong(self, key: str, wanted: str, value: object) -> None:
        self.problems.append(f"{self.file}: {self._place(key)} must be {wanted}, not {value!r}")

    def _place(self, key: str) -> str:
        return f"[{self.name}] {key}" if self.name else f'"{key}"'


def _texts(value: object) -> tuple[str, ...] | None:
    if isinstance(value, list) and all(isinstance(item, str) and item.strip() for item in value):
        return tuple(value)
    return None


def _amount(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        return None
    return float(value)


def _duration(value: object) -> float | None:
    found = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(int(found[1]) * _SECONDS[found[2]]) if found and int(found[1]) else None
