"""Numbers that a user assumes for the sizes in a bound: `readers = 20`, `doc = "40 KB"`, `‖doc‖ = 4000`.

They come from `[assume]` of `quire.toml`, from `--assume NAME=N`, or from stored runs. A bound with assumed sizes is an
estimate, never a proof.

A name is that of an input, or of a part of one (`order.lines`), with or without `ctx.` before it. Bars say which size
is meant: `|readers|` the items of a list, `‖doc‖` (or `||doc||`) the bytes of a text in UTF-8. Without bars a number
stands for the items where a formula has them and for the bytes elsewhere; `40 KB` always stands for bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quire.errors import CannotStart
from quire.patterns import late_pattern
from quire.schema_types import ListOf, Object, Ref, Simple
from quire.units import Size, size_of
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.plan.nodes import Plan
    from quire.schema_types import FieldType

Kind = Literal["items", "bytes", ""]

OPTION = "--assume"
FILE = "[assume]"
LONGEST_NAME = 200
_NAME = late_pattern(r"[^\W\d][\w-]*(?:\[\]|\.[\w-]+)*")
_HOW = "write NAME=NUMBER, such as readers=20 or doc=40KB"
_BARS: Mapping[str, Kind] = {"||": "bytes", "‖": "bytes", "|": "items"}


class Assumption(Struct, frozen=True):
    """A number for one size, or for all sizes of a name."""

    name: str
    """Without bars and without `ctx.`."""
    size: Size
    kind: Kind = ""
    """Empty if the user did not say which size of the name is meant."""
    source: str = OPTION
    """Where the number comes from, for people."""

    @property
    def written(self) -> str:
        """The name as a user would write it."""
        bars = {"items": "|", "bytes": "‖", "": ""}[self.kind]
        return f"{bars}{self.name}{bars}"

    def __str__(self) -> str:
        return f"{self.written}={self.size}"


class Assumptions(Struct, frozen=True):
    """The assumptions about one document, the strongest first."""

    all: tuple[Assumption, ...] = ()

    def __str__(self) -> str:
        return ", ".join(map(str, self.all))

    def sizes(self, symbols: Iterable[str]) -> dict[str, int]:
        """Return the numbers of those of a formula's sizes that are assumed, by their symbols."""
        return {symbol: found.size.count for symbol, found in self._fitting(symbols).items()}

    def used(self, symbols: Iterable[str]) -> Assumptions:
        """Return the assumptions that give a number to one of these sizes."""
        fitting = self._fitting(symbols).values()
        return Assumptions(tuple(one for one in self.all if any(one is other for other in fitting)))

    def unused(self, symbols: Iterable[str]) -> Iterator[str]:
        """Yield a line for each `--assume` that fits none of these sizes."""
        known = sorted(set(symbols))
        used = self.used(known).all
        for one in self.all:
            if one.source != OPTION or any(one is other for other in used):
                continue
            names = {symbol.strip("|‖"): symbol for symbol in known}
            close = names.get(nearest(one.name, names) or "")
            there = f"there are {', '.join(known[:10])}" if known else "no bound depends on a size"
            yield f"{OPTION} {one}: no bound depends on {one.written}; {did_you_mean(close, there)}"

    def _fitting(self, symbols: Iterable[str]) -> dict[str, Assumption]:
        known = set(symbols)
        found: dict[str, Assumption] = {}
        for symbol in sorted(known):
            for one in self.all:
                if _fits(one, symbol, known):
                    found[symbol] = one
                    break
        return found


def _fits(one: Assumption, symbol: str, known: set[str]) -> bool:
    if symbol.strip("|‖") != one.name:
        return False
    if symbol.startswith("|"):
        return one.kind == "items" or (one.kind == "" and not one.size.is_text)
    return one.kind == "bytes" or (one.kind == "" and (one.size.is_text or f"|{one.name}|" not in known))


def contradictions(found: Assumptions, plan: Plan) -> Iterator[str]:
    """Yield a line for each assumption above the most that the document declares for an input."""
    for one in found.all:
        type = _type_of(one.name, plan)
        if isinstance(type, ListOf) and _kind(one) != "bytes":
            most, takes = type.max_items, "items"
        elif isinstance(type, Simple) and type.max_length is not None and one.kind != "items":
            most, takes = 4 * type.max_length, f"bytes ({type.max_length:,} characters)"
        else:
            continue
        if most is not None and one.size.count > most:
            yield f"{one.source} {one}: the document takes at most {most:,} {takes} of {one.name}"


def _type_of(name: str, plan: Plan) -> FieldType | None:
    first, *rest = name.replace("[]", ".[]").split(".")
    type = next((one.type for one in plan.declared or () if one.name == first), None)
    for part in rest:
        if isinstance(type, Ref):
            schema = plan.schemas.get(type.schema)
            type = Object(schema.fields) if schema else None
        if part == "[]":
            type = type.of if isinstance(type, ListOf) else None
        else:
            fields = type.fields if isinstance(type, Object) else ()
            type = next((field.type for field in fields if field.name == part), None)
    return type


def parse_assumption(text: str) -> Assumption:
    """Return the assumption that `--assume NAME=N` makes. Raises `CannotStart` with one line."""
    name, equals, number = text.partition("=")
    size = size_of(number)
    if not equals or size is None:
        raise CannotStart(f"{OPTION} {text[:LONGEST_NAME]!r}: {_HOW}")
    return _assumption(name, size, OPTION)


def assumptions_of(
    file: Mapping[str, Size], options: Sequence[str] = (), seen: Mapping[str, int] | None = None, runs: str = ""
) -> Assumptions:
    """Return what is assumed: by options first, then by stored runs if `seen` has their sizes, then by the file.

    `runs` says which runs those are. Raises `CannotStart` for a text that is not an assumption, and for two that
    contradict each other."""
    of_options = _agreeing(map(parse_assumption, options))
    of_runs = _agreeing(_assumption(name, Size(count), runs) for name, count in (seen or {}).items())
    of_file = _agreeing(_assumption(name, size, FILE) for name, size in file.items())
    return Assumptions((*of_options, *of_runs, *of_file))


def _assumption(written: str, size: Size, source: str) -> Assumption:
    name = written.strip()
    kind: Kind = ""
    for bars, meant in _BARS.items():
        if name.startswith(bars) and name.endswith(bars) and len(name) > 2 * len(bars):
            name, kind = name[len(bars) : -len(bars)].strip(), meant
            break
    name = name.removeprefix("ctx.")
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise CannotStart(f"{source} {written[:LONGEST_NAME]!r} is not the name of an input; {_HOW}")
    if kind == "items" and size.is_text:
        raise CannotStart(f"{source} {written}: {size} is the size of a text, and |{name}| are the items of a list")
    return Assumption(name, size, kind, source)


def _agreeing(found: Iterable[Assumption]) -> tuple[Assumption, ...]:
    kept: list[Assumption] = []
    for one in found:
        for other in kept:
            if other.name == one.name and other.size.count != one.size.count and _same_size(one, other):
                raise CannotStart(f"{one.source} says both {other} and {one}: leave one of them out")
        if one not in kept:
            kept.append(one)
    # One with bars is meant for that size, whatever else is said about the name.
    return tuple(sorted(kept, key=lambda one: not one.kind))


def _same_size(one: Assumption, other: Assumption) -> bool:
    """Tell whether two assumptions about one name are about the same size. A number without bars stands beside one for
    the bytes: then it is for the items."""
    kinds = {_kind(one), _kind(other)}
    return len(kinds) == 1 or kinds == {"", "items"}


def _kind(one: Assumption) -> Kind:
    return "bytes" if one.size.is_text else one.kind
