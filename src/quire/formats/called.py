"""A document as another one sees it that calls it: what it takes and what it gives, whatever its format.

`check` needs no more than this to follow a call across formats; whoever knows the workspace makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from quire.schema import FieldType
from quire.values import Value
from quire.wording import nearest

_SHOWN = 8


def _fine(name: str, value: Value) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Called:
    """`required` has to be passed; `known` are all names that it takes, None where it takes any. `gives` is the type of
    what it returns, None where nobody knows. `wrong` says what is wrong with a value for an input, or nothing."""

    format: str
    name: str
    required: tuple[str, ...] = ()
    known: tuple[str, ...] | None = None
    gives: FieldType | None = None
    wrong: Callable[[str, Value], str] = _fine

    def missing(self, names: Mapping[str, object]) -> str:
        """What is required and not among the names, as a sentence; empty where nothing is."""
        owed = [name for name in self.required if name not in names]
        more = len(owed) - _SHOWN
        listed = ", ".join(owed[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        return f"the {self.format} {self.name} needs {listed}, which it is not given" if owed else ""

    def unknown(self, names: Mapping[str, object]) -> list[tuple[str, str]]:
        """The names that it does not take, each with what could be meant."""
        known = self.known
        if known is None:
            return []
        return [(name, self._hint(name, known)) for name in names if name not in known]

    def _hint(self, name: str, known: tuple[str, ...]) -> str:
        close = nearest(name, known)
        if close:
            return f"did you mean {close}?"
        return f"it takes {', '.join(known[:_SHOWN])}" if known else "it takes none"
