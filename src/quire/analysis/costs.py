"""The cost of a part of a document: a sum of amounts by kind, kept in one table so that thousands of steps add up
quickly.

Kinds are `model_calls`, `tool_calls`, `questions`, `threads` with a least count too; tokens and calls by model; calls
of tools by class; and time: `work` if everything ran one after the other, `span` on the longest way with everything
side by side that can be. Times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable

from quire.analysis.amounts import (
    LARGEST,
    MOST_FACTORS,
    MOST_REASONS,
    MOST_TERMS,
    NUMBER,
    TOO_LONG,
    Amount,
    Product,
    Reason,
)

MODEL_CALLS = "model_calls"
TOOL_CALLS = "tool_calls"
QUESTIONS = "questions"
THREADS = "threads"
COUNTED = (MODEL_CALLS, TOOL_CALLS, QUESTIONS, THREADS)
"""Kinds that have a least count as well."""
ASKED = "asked"
"""Model calls without turns with tools, corrections, further tries and what a thread chooses to start: those that a run
makes if all goes well."""
WORK = "work"
SPAN = "span"
CALLS_OF = "calls of "
"""Before the name of a model."""
BYTES_OF = "bytes of "
"""Bytes that a model reads, by which its input is estimated. Calls with tools are not among them."""
SURE_INPUT_OF = "input of "
"""Tokens that a model reads in calls that read no reply: at most as many as bytes."""
WINDOW_OF = "window of "
"""Calls of a model whose input is bounded by its context window only."""
OUTPUT_OF = "output of "
TOOLS_OF = "tools of class "

Key = tuple[str, Product]
_WORK: Key = (WORK, NUMBER)
_SPAN: Key = (SPAN, NUMBER)


class Cost:
    """Amounts by kind. It is changed in place while steps are added."""

    __slots__ = ("endless", "least", "terms")

    def __init__(self) -> None:
        self.terms: dict[Key, int] = {}
        self.least: dict[str, int] = {}
        self.endless: dict[str, tuple[Reason, ...]] = {}

    @property
    def is_nothing(self) -> bool:
        return not self.terms and not self.least and not self.endless

    def amount(self, kind: str) -> Amount:
        if kind in self.endless:
            return Amount(reasons=self.endless[kind])
        return Amount({product: count for (one, product), count in self.terms.items() if one == kind and count})

    def kinds(self) -> list[str]:
        return sorted({kind for kind, _ in self.terms} | set(self.endless))

    def count(self, kind: str, most: int, least: int = 0) -> None:
        """Add numbers of a kind."""
        key = (kind, NUMBER)
        terms = self.terms
        terms[key] = terms.get(key, 0) + most
        if least:
            self.least[kind] = self.least.get(kind, 0) + least

    def spend(self, kind: str, amount: Amount) -> None:
        if amount.reasons:
            self._unbounded(kind, amount.reasons)
        for product, count in amount.terms.items():
            key = (kind, product)
            self.terms[key] = self.terms.get(key, 0) + count

    def take(self, milliseconds: int) -> None:
        """Add time in which nothing else of this part happens."""
        terms = self.terms
        terms[_WORK] = terms.get(_WORK, 0) + milliseconds
        terms[_SPAN] = terms.get(_SPAN, 0) + milliseconds

    def drop(self, kind: str) -> None:
        """Forget everything of a kind."""
        self.endless.pop(kind, None)
        for key in [key for key in self.terms if key[0] == kind]:
            del self.terms[key]

    def add(self, other: Cost) -> None:
        """Add what happens after it."""
        mine = self.terms
        for key, count in other.terms.items():
            mine[key] = mine.get(key, 0) + count
        for kind, count in other.least.items():
            self.least[kind] = self.least.get(kind, 0) + count
        for kind, reasons in other.endless.items():
            self._unbounded(kind, reasons)

    def may_be_left_out(self) -> Cost:
        """Return the cost of something that perhaps does not happen."""
        found = Cost()
        found.terms, found.endless = self.terms, self.endless
        return found

    def times(self, often: Amount, least: int, span_of: Amount | None = None) -> Cost:
        """Return the cost of repeating it; `span_of` repeats stand on the longest way, all if it is None."""
        found = Cost()
        for kind, reasons in self.endless.items():
            if not often.is_nothing:
                found.endless[kind] = reasons
        for (kind, product), count in self.terms.items():
            repeats = span_of if kind == SPAN and span_of is not None else often
            if repeats.reasons and count:
                found._unbounded(kind, repeats.reasons)
            for factor, times in repeats.terms.items():
                joint = tuple(sorted((*product, *factor))) if product and factor else product or factor
                if len(joint) > MOST_FACTORS or count * times > LARGEST:
                    found._unbounded(kind, (TOO_LONG,))
                    continue
                key = (kind, joint)
                found.terms[key] = found.terms.get(key, 0) + count * times
        if len(found.terms) > MOST_TERMS:
            found._give_up_long()
        if least:
            found.least = {kind: count * least for kind, count in self.least.items()}
        return found

    def _give_up_long(self) -> None:
        """Give up amounts with too many products: those of loops in each other become twice as many with each loop."""
        counted: dict[str, int] = {}
        for kind, _ in self.terms:
            counted[kind] = counted.get(kind, 0) + 1
        for kind, count in counted.items():
            if count > MOST_TERMS:
                self.drop(kind)
                self._unbounded(kind, (TOO_LONG,))

    def _unbounded(self, kind: str, reasons: Iterable[Reason]) -> None:
        known = self.endless.get(kind, ())
        if len(known) < MOST_REASONS:
            self.endless[kind] = tuple(dict.fromkeys((*known, *reasons)))[:MOST_REASONS]


def either(parts: list[Cost]) -> Cost:
    """Return the cost of one of several ways, whichever is taken."""
    if len(parts) == 1:
        return parts[0]
    found = Cost()
    for part in parts:
        for key, count in part.terms.items():
            if count > found.terms.get(key, 0):
                found.terms[key] = count
        for kind, reasons in part.endless.items():
            found._unbounded(kind, reasons)
    first, *rest = parts or [Cost()]
    found.least = {
        kind: least
        for kind, count in first.least.items()
        if (least := min([count, *(part.least.get(kind, 0) for part in rest)]))
    }
    return found


def side_by_side(parts: list[Cost]) -> Cost:
    """Return the cost of ways that are all taken at the same time."""
    found = Cost()
    longest: dict[Product, int] = {}
    for part in parts:
        found.add(part)
        for (kind, product), count in part.terms.items():
            if kind == SPAN:
                longest[product] = max(longest.get(product, 0), count)
    for product, count in longest.items():
        found.terms[SPAN, product] = count
    return found
