"""Edits of plans: one step of a plan replaced or dropped, with the place in the document and the words for it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from quire.plan.nodes import Reference, Template
from quire.plan.parts import with_inner, with_steps
from quire.source import NOWHERE, Source, Span
from quire.testing.mutation.kills import Kill
from quire.wording import cut

if TYPE_CHECKING:
    from quire.plan.nodes import Plan, Step
    from quire.values import Value

T = TypeVar("T")

_LEAVES = 50
"""Literals of one value that are changed."""


class Edit(Struct, frozen=True):
    """One change of one step."""

    operator: str
    detail: str
    """Tells it apart from other edits of the same operator at the same step; part of the id."""
    change: str
    """A sentence without a subject and a full stop: `drops {{tone}} from the prompt of step 1`."""
    step: Step | None
    """The changed step; None if it is dropped."""
    kill: Kill
    span: Span | None = None
    """None for the place of the step."""


class Site(Struct, frozen=True):
    """A step of a plan, with its place in the document."""

    plan: Plan
    path: str
    step: Step
    source: Source
    region: Span
    """Up to the next step, which may be one inside it."""
    extent: Span
    """Up to the next step that is not inside it."""
    reads: frozenset[str] = frozenset()
    """The names that some step of the plan reads."""

    @property
    def name(self) -> str:
        return f"step {self.step.label}"

    def with_work(self, **fields: object) -> Step:
        """Return the step with other values in the fields of its work."""
        return replace(self.step, work=replace(self.step.work, **fields))  # type: ignore[type-var]  # never None

    @property
    def can_be_dropped(self) -> bool:
        """True for a step of a sequence. A loop, a branch and a `collect` need theirs."""
        return self.path.rpartition("/")[2].isdecimal()

    def key(self, name: str) -> Span | None:
        """Return where a key of the step stands, or None. Steps inside may have the same key: the one before them is
        taken, else the last one, after them."""
        if (own := self.find(f"{name}:")) is not None:
            return Span(own.start, own.end - 1)
        at = self.source.text.rfind(f"{name}:", self.extent.start, self.extent.end)
        return Span(at, at + len(name)) if at >= 0 else None

    def find(self, text: str, number: int = 0) -> Span | None:
        """Return where a text stands in the region, the one with this number if there are several."""
        at = self.region.start - 1
        for _ in range(number + 1):
            at = self.source.text.find(text, at + 1, self.region.end) if text else -1
            if at < 0:
                return None
        return Span(at, at + len(text))


def place_of(source: Source, text: str, start: int = 0) -> Span:
    """Return where a text stands in a document; `NOWHERE` if it does not."""
    at = source.text.find(text, start) if text else -1
    return Span(at, at + len(text)) if at >= 0 else NOWHERE


def prompt_edits(site: Site, prompt: Template, *, defaults: bool = True) -> Iterator[Edit]:
    """Yield the edits that drop one reference from a prompt; without `defaults`, of those that have none."""
    counts: Counter[str] = Counter()
    for number, part in enumerate(prompt.parts):
        if isinstance(part, Reference) and (defaults or part.default is None):
            earlier = counts[part.raw]
            counts[part.raw] += 1
            yield Edit(
                "drop_reference",
                f"{part.name}.{earlier}" if earlier else part.name,
                f"drops {part.raw} from the prompt of {site.name}",
                site.with_work(prompt=Template(without(prompt.parts, number))),
                Kill("prompts", site.step.label, part.name),
                site.find(part.raw, earlier),
            )


def without(items: tuple[T, ...], number: int) -> tuple[T, ...]:
    return items[:number] + items[number + 1 :]


def with_item(items: tuple[T, ...], number: int, item: T) -> tuple[T, ...]:
    """Return the items with another one in the place with this number."""
    return (*items[:number], item, *items[number + 1 :])


def sites(plan: Plan, source: Source, reads: frozenset[str] = frozenset()) -> Iterator[Site]:
    """Yield every step, parents before their sub-steps."""
    placed = sorted((step.span.start, path) for path, step in plan.steps())
    starts = sorted({start for start, _ in placed})
    ends = dict(zip(starts, [*starts[1:], len(source.text)], strict=True))
    for path, step in plan.steps():
        start, inside = step.span.start, f"{path}/"
        later = (placed[at] for at in range(bisect_right(placed, start, key=itemgetter(0)), len(placed)))
        extent = Span(start, next((at for at, other in later if not other.startswith(inside)), len(source.text)))
        yield Site(plan, path, step, source, Span(start, ends[start]), extent, reads)


def with_step(plan: Plan, old: Step, new: Step | None) -> Plan:
    """Return the plan with one of its own steps replaced, or dropped. All other steps keep their positions."""
    place = next((path for path, step in plan.steps() if step is old), "")

    def change(path: str, step: Step) -> Step | None:
        if path == place:
            return new
        return with_inner(step, path, change) if place.startswith(f"{path}/") else step

    return replace(plan, body=with_steps(plan.body, "", change))


def changed_literals(value: Value) -> Iterator[tuple[str, Value, Value, Value]]:
    """Return values that differ in one literal: its place, the whole value, the literal, and the one in its place."""
    return islice(_literals(value, ""), _LEAVES)


def _literals(value: Value, place: str) -> Iterator[tuple[str, Value, Value, Value]]:
    if isinstance(value, Mapping):
        for name, part in value.items():
            for at, changed, old, new in _literals(part, f"{place}.{name}" if place else name):
                yield at, {**value, name: changed}, old, new
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            for at, changed, old, new in _literals(part, f"{place}[{number}]"):
                yield at, [*with_item(tuple(value), number, changed)], old, new
    elif (other := other_literal(value)) is not None:
        yield place, other, value, other


def other_literal(value: Value) -> bool | int | float | str | None:
    """Return another value of the same kind; None for null."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            # A blank that stays one may separate the same words.
            return "~" if value.isspace() else f"{value}~"
    return None


def shown(value: Value) -> str:
    """Return a literal as a sentence about a change quotes it."""
    import json

    return cut(json.dumps(value, ensure_ascii=False), 40)
