"""Arguments and results of functions: the checks that all functions share, with messages that say what was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from quire.expr.errors import EvalError
from quire.expr.values import MAX_ITEMS, MAX_TEXT, NUMBERS, is_list, is_map, kind

if TYPE_CHECKING:
    from quire.expr.values import Run
    from quire.source import Span


class At(NamedTuple):
    """The place of a call, for messages."""

    name: str
    span: Span
    places: tuple[Span, ...]
    """The span of each argument."""

    def fails(self, message: str, position: int | None = None, help: str = "") -> EvalError:
        """Return an error about an argument, or about the whole call."""
        return EvalError(message, self.span if position is None else self.places[position], help)

    def wants(self, what: str, value: object, position: int) -> EvalError:
        return self.fails(f"{self.name} needs {what}, not {kind(value)}", position)


def needs_text(value: object, at: At, position: int) -> str:
    if not isinstance(value, str):
        raise at.wants("a text", value, position)
    return value


def needs_number(value: Any, at: At, position: int) -> int | float:
    if type(value) not in NUMBERS:
        raise at.wants("a number", value, position)
    number: int | float = value
    return number


def needs_whole(value: Any, at: At, position: int, least: int | None = None, most: int | None = None) -> int:
    """Return a whole number between two bounds. One that is written with decimals, `2.0`, is whole too."""
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is int and (least is None or most is None or least <= value <= most):
        return value
    bounds = "" if least is None else f" from {least} to {most}"
    if type(value) is int:
        raise at.fails(f"{at.name} needs a whole number{bounds}", position)
    shown = "one with decimals" if type(value) is float else kind(value)
    raise at.fails(f"{at.name} needs a whole number{bounds}, not {shown}", position)


def needs_list(value: object, at: At, position: int = 0) -> Sequence[Any]:
    if not is_list(value):
        raise at.wants("a list", value, position)
    return value


def needs_map(value: object, at: At, position: int = 0) -> Mapping[str, Any]:
    if not is_map(value):
        raise at.wants("a map", value, position)
    return value


def charge_text(length: int, run: Run, at: At) -> None:
    """Charge a text of some length before it is built. Raises `EvalError` if it is too long."""
    if length > MAX_TEXT:
        raise at.fails(f"the text has more than {MAX_TEXT:,} characters")
    run.charge(length >> 4, at.span)


def charge_list(length: int, run: Run, at: At, each: int = 1) -> None:
    """Charge a list of some length before it is built, with `each` steps for each item.

    Raises `EvalError` if it is too long.
    """
    if length > MAX_ITEMS:
        raise at.fails(f"the list has more than {MAX_ITEMS:,} items")
    run.charge(length * each, at.span)
