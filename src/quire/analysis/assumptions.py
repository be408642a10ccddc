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
        return {symbol: assumption.size.count for symbol, assumption in self._fitting(symbols).items()}

    def used(self, symbols: Iterable[str]) -> Assumptions:
        """Return the assumptions that give a number to one of these sizes."""
        fitting = self._fitting(symbols).values()
        return Assumptions(
            tuple(assumption for assumption in self.all if any(assumption is other for other in fitting))
        )

    def unused(self, symbols: Iterable[str]) -> Iterator[str]:
        """Yield a line for each `--assume` that fits none of these sizes."""
        symbols = sorted(set(symbols))
        used = self.used(symbols).all
        for assumption in self.all:
            if assumption.source != OPTION or any(assumption is other for other in used):
                continue
            names = {symbol.strip("|‖"): symbol for symbol in symbols}
            close = names.get(nearest(assumption.name, names) or "")
            there = f"there are {', '.join(symbols[:10])}" if symbols else "no bound depends on a size"
            yield f"{OPTION} {assumption}: no bound depends on {assumption.written}; {did_you_mean(close, there)}"

    def _fitting(self, symbols: Iterable[str]) -> dict[str, Assumption]:
        symbols = set(symbols)
        fitting = {
            symbol: next((assumption for assumption in self.all if _fits(assumption, symbol, symbols)), None)
            for symbol in sorted(symbols)
        }
        return {symbol: assumption for symbol, assumption in fitting.items() if assumption is not None}


def _fits(assumption: Assumption, symbol: str, symbols: set[str]) -> bool:
    if symbol.strip("|‖") != assumption.name:
        return False
    if symbol.startswith("|"):
        return assumption.kind == "items" or (assumption.kind == "" and not assumption.size.is_text)
    return assumption.kind == "bytes" or (
        assumption.kind == "" and (assumption.size.is_text or f"|{assumption.name}|" not in symbols)
    )


def contradictions(assumptions: Assumptions, plan: Plan) -> Iterator[str]:
    """Yield a line for each assumption above the most that the document declares for an input."""
    for assumption in assumptions.all:
        type = _type_of(assumption.name, plan)
        if isinstance(type, ListOf) and _kind(assumption) != "bytes":
            most, takes = type.max_items, "items"
        elif isinstance(type, Simple) and type.max_length is not None and assumption.kind != "items":
            most, takes = 4 * type.max_length, f"bytes ({type.max_length:,} characters)"
        else:
            continue
        if most is not None and assumption.size.count > most:
            yield f"{assumption.source} {assumption}: the document takes at most {most:,} {takes} of {assumption.name}"


def _type_of(name: str, plan: Plan) -> FieldType | None:
    first, *rest = name.replace("[]", ".[]").split(".")
    type = next((field.type for field in plan.declared or () if field.name == first), None)
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


def _agreeing(assumptions: Iterable[Assumption]) -> tuple[Assumption, ...]:
    several: list[Assumption] = []
    for assumption in assumptions:
        for other in several:
            is_other = other.size.count != assumption.size.count
            if other.name == assumption.name and is_other and _same_size(assumption, other):
                raise CannotStart(f"{assumption.source} says both {other} and {assumption}: leave one of them out")
        if assumption not in several:
            several.append(assumption)
    # An assumption with bars is meant for that size, so it comes before others about the name.
    return tuple(sorted(several, key=lambda assumption: not assumption.kind))


def _same_size(assumption: Assumption, other: Assumption) -> bool:
    """Tell whether two assumptions about one name are about the same size. A number without bars stands beside one for
    the bytes: then it is for the items."""
    kinds = {_kind(assumption), _kind(other)}
    return len(kinds) == 1 or kinds == {"", "items"}


def _kind(assumption: Assumption) -> Kind:
    return "bytes" if assumption.size.is_text else assumption.kind
