"""Usage that earlier runs of a document had: calls, tokens, money and time, and the sizes of their inputs.

Only runs that were completed count, the newest 200 at most, and one journal is read at a time, without values. The
numbers stand beside bounds as facts about the past; they prove nothing about the next run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from quire.analysis.written_sizes import text_length
from quire.engine.records import EffectRecord, Status
from quire.stores.run_pages import RunFilters, newest_runs
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.engine.ports import Store
    from quire.engine.records import RunRow
    from quire.library.document import Document


MOST_RUNS = 200
MOST_LISTED = 2_000
"""Rows that are looked at to find them: other folders may have documents of the same name."""
MOST_EFFECTS = 200_000
"""Effects after which no further journal is read."""
MOST_BYTES = 20_000_000
"""Bytes of inputs after which no further run is looked at."""
_PAGE = 20
_MOST_SIZES = 200
_DEEPEST = 6
_TIMED = frozenset(("model", "tool", "load", "offer"))
"""Effects that take time by themselves. Questions wait for people, and other kinds for effects."""

Rank = Literal["p50", "p95", "most"]


class Spread(Struct, frozen=True):
    """A number of several runs: half of them had at most `p50`, 95 of 100 at most `p95`."""

    p50: float
    p95: float
    most: float

    @classmethod
    def of(cls, numbers: Iterable[float]) -> Spread:
        """Return the spread of at least one number. Each of its numbers was seen in a run."""
        ranked = sorted(numbers)
        return cls(_ranked(ranked, 50), _ranked(ranked, 95), ranked[-1])


def _ranked(numbers: Sequence[float], percent: int) -> float:
    return numbers[-(-len(numbers) * percent // 100) - 1]


class UsageSeen(Struct, frozen=True):
    """The usage of earlier runs of one document."""

    runs: int = 0
    of_this_text: int = 0
    """The runs of the document as it is now; the others were of an earlier text."""
    amounts: Mapping[str, Spread] = field(default_factory=dict)
    """By `model_calls`, `tool_calls`, `questions`, `threads`, `input_tokens`, `output_tokens`, `cost` (in dollars),
    `seconds` not counting people, and `work` in seconds, if nothing had run side by side. Without `cost` if the price
    of a run is not known."""
    sizes: Mapping[str, Spread] = field(default_factory=dict)
    """By symbol: `|readers|` items of a list or a map, `‖doc‖` bytes of a text, or of other values as JSON;
    `‖readers[]‖` those of the longest item."""

    def assumed(self, rank: Rank = "p95") -> dict[str, int]:
        """Return the sizes as numbers, for `assumptions_of`."""
        return {symbol: int(getattr(spread, rank)) for symbol, spread in self.sizes.items()}

    @property
    def told(self) -> str:
        """The runs in words, such as `31 runs`."""
        return f"{self.runs:,} run{'s' if self.runs != 1 else ''}"


async def usage_seen(store: Store, document: Document, folder: str | None) -> UsageSeen:
    """Return the usage of the newest completed runs of a document. `folder` is that of its file;
    without one, only runs of the same text count."""
    amounts: dict[str, list[float]] = {}
    sizes: dict[str, list[float]] = {}
    runs = same = read = measured = 0
    priced = True
    async for row in _runs_of(store, document, folder):
        effects = [brief.record for brief in await store.journal().effects(row.id)]
        read += len(effects)
        runs += 1
        same += row.pins.get("document") == document.sha256
        used = _amounts(row, effects)
        priced = priced and "cost" in used
        for name, amount in used.items():
            amounts.setdefault(name, []).append(amount)
        sizes_of_run = input_sizes(row.pins.get("inputs"))
        measured += sum(size for symbol, size in sizes_of_run.items() if symbol.startswith("‖"))
        for symbol, size in sizes_of_run.items():
            if symbol in sizes or len(sizes) < _MOST_SIZES:
                sizes.setdefault(symbol, []).append(size)
        if runs >= MOST_RUNS or read >= MOST_EFFECTS or measured >= MOST_BYTES:
            break
    if not priced:
        amounts.pop("cost", None)
    return UsageSeen(
        runs,
        same,
        {name: Spread.of(numbers) for name, numbers in amounts.items()},
        {symbol: Spread.of(numbers) for symbol, numbers in sizes.items()},
    )


async def _runs_of(store: Store, document: Document, folder: str | None) -> AsyncIterator[RunRow]:
    file = Path(document.name).name
    filters = RunFilters((Status.COMPLETED,), file, document.format)
    async for row in newest_runs(store, filters, MOST_LISTED, _PAGE):
        if row.pins.get("declared", "") != document.declared or row.pins.get("imported"):
            continue
        at = row.pins.get("folder")
        same_file = folder is not None and at == folder and Path(row.document).name == file
        if same_file or row.pins.get("document") == document.sha256:
            yield row


def _amounts(row: RunRow, effects: Sequence[EffectRecord]) -> dict[str, float]:
    effects = [effect for effect in effects if not effect.reused_from]
    usages = [effect.usage for effect in effects if effect.usage is not None]
    timed = [effect for effect in effects if effect.kind in _TIMED and effect.elapsed > 0]
    amounts: dict[str, float] = {
        "model_calls": sum(effect.is_model_call for effect in effects),
        "tool_calls": sum(effect.kind == "tool" for effect in effects),
        "questions": sum(effect.kind == "ask" for effect in effects),
        "threads": len(child_threads(effect.path for effect in effects)),
        # The row counts calls that were made again as well, the journal those that a fork has taken over.
        "input_tokens": max(row.input_tokens, sum(usage.input_tokens for usage in usages)),
        "output_tokens": max(row.output_tokens, sum(usage.output_tokens for usage in usages)),
        "seconds": busy_seconds((record.at, record.ended_at) for record in timed),
        "work": sum(record.elapsed for record in timed),
    }
    costs = [usage.cost for usage in usages if usage.cost is not None]
    if row.cost is not None and len(costs) == len(usages):
        amounts["cost"] = max(row.cost, sum(costs))
    return amounts


def child_threads(paths: Iterable[str]) -> set[str]:
    """Return the paths of the threads that other threads started."""
    children: set[str] = set()
    for path in paths:
        parts = path.split("/")
        threads = [at for at, part in enumerate(parts) if part == "thread"]
        children.update("/".join(parts[: at + 1]) for at in threads[1:])
    return children


def busy_seconds(spans: Iterable[tuple[float, float]]) -> float:
    """Return for how long at least one of the spans of time lasted."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def input_sizes(inputs: Value) -> dict[str, int]:
    """Return the sizes of the inputs of a run by their symbols, of the first 200 at most."""
    sizes: dict[str, int] = {}
    for name, value in inputs.items() if isinstance(inputs, Mapping) else ():
        for symbol, size in _sizes(name, value, 0):
            if symbol in sizes or len(sizes) < _MOST_SIZES:
                sizes[symbol] = max(size, sizes.get(symbol, 0))
    return sizes


def _sizes(name: str, value: Value, depth: int) -> Iterator[tuple[str, int]]:
    if isinstance(value, str):
        yield f"‖{name}‖", text_length(value)
        return
    yield f"‖{name}‖", text_length(encode(value))
    if isinstance(value, Mapping):
        yield f"|{name}|", len(value)
        parts = [(f"{name}.{key}", part) for key, part in value.items()]
    elif isinstance(value, list | tuple):
        yield f"|{name}|", len(value)
        parts = [(f"{name}[]", part) for part in value]
    else:
        return
    if depth < _DEEPEST:
        for below, part in parts:
            yield from _sizes(below, part, depth + 1)
