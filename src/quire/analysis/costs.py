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
    bounded,
    compared,
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


class Cost:
    """Amounts by kind. It is changed in place while steps are added."""

    __slots__ = ("endless", "least", "numbers", "terms")

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        """The part of each amount that no size multiplies: of most steps there is no other."""
        self.terms: dict[str, dict[Product, int]] = {}
        """The other products of each amount."""
        self.least: dict[str, int] = {}
        self.endless: dict[str, tuple[Reason, ...]] = {}

    @property
    def is_nothing(self) -> bool:
        return not (self.numbers or self.terms or self.least or self.endless)

    def amount(self, kind: str) -> Amount:
        if kind in self.endless:
            return Amount(reasons=self.endless[kind])
        found = {product: count for product, count in self.terms.get(kind, {}).items() if count}
        if constant := self.numbers.get(kind):
            found[NUMBER] = constant
        return Amount(tuple(sorted(found.items()))) if len(found) > MOST_TERMS else bounded(found)

    def kinds(self) -> list[str]:
        return sorted({*self.numbers, *self.terms, *self.endless})

    def count(self, kind: str, most: int, least: int = 0) -> None:
        """Add numbers of a kind."""
        self.numbers[kind] = self.numbers.get(kind, 0) + most
        if least:
            self.least[kind] = self.least.get(kind, 0) + least

    def spend(self, kind: str, amount: Amount) -> None:
        if amount.reasons:
            self._unbounded(kind, amount.reasons)
        for product, count in amount.products:
            if product:
                terms = self.terms.setdefault(kind, {})
                terms[product] = terms.get(product, 0) + count
            else:
                self.numbers[kind] = self.numbers.get(kind, 0) + count

    def take(self, milliseconds: int) -> None:
        """Add time in which nothing else of this part happens."""
        numbers = self.numbers
        numbers[WORK] = numbers.get(WORK, 0) + milliseconds
        numbers[SPAN] = numbers.get(SPAN, 0) + milliseconds

    def drop(self, kind: str) -> None:
        """Forget everything of a kind."""
        self.endless.pop(kind, None)
        self.numbers.pop(kind, None)
        self.terms.pop(kind, None)

    def add(self, other: Cost) -> None:
        """Add what happens after it."""
        numbers = self.numbers
        for kind, count in other.numbers.items():
            numbers[kind] = numbers.get(kind, 0) + count
        for kind, products in other.terms.items():
            terms = self.terms.setdefault(kind, {})
            for product, count in products.items():
                terms[product] = terms.get(product, 0) + count
        for kind, count in other.least.items():
            self.least[kind] = self.least.get(kind, 0) + count
        for kind, reasons in other.endless.items():
            self._unbounded(kind, reasons)

    def may_be_left_out(self) -> Cost:
        """Return the cost of something that perhaps does not happen."""
        found = Cost()
        found.numbers, found.terms, found.endless = self.numbers, self.terms, self.endless
        return found

    def times(self, often: Amount, least: int, span_of: Amount | None = None) -> Cost:
        """Return the cost of repeating it; `span_of` repeats stand on the longest way, all if it is None."""
        found = Cost()
        for kind, reasons in self.endless.items():
            if not often.is_nothing:
                found.endless[kind] = reasons
        for kind, count in self.numbers.items():
            found._repeat(kind, NUMBER, count, span_of if kind == SPAN and span_of is not None else often)
        for kind, products in self.terms.items():
            for product, count in products.items():
                found._repeat(kind, product, count, span_of if kind == SPAN and span_of is not None else often)
        found._give_up_long()
        if least:
            found.least = {kind: count * least for kind, count in self.least.items()}
        return found

    def _repeat(self, kind: str, product: Product, count: int, often: Amount) -> None:
        """Add a product so often."""
        if often.reasons and count:
            self._unbounded(kind, often.reasons)
        for factor, times in often.products:
            joint = tuple(sorted((*product, *factor))) if product and factor else product or factor
            if len(joint) > MOST_FACTORS or count * times > LARGEST:
                self._unbounded(kind, (TOO_LONG,))
            elif joint:
                terms = self.terms.setdefault(kind, {})
                terms[joint] = terms.get(joint, 0) + count * times
            else:
                self.numbers[kind] = self.numbers.get(kind, 0) + count * times

    def _give_up_long(self) -> None:
        """Give up amounts with too many products: those of loops in each other become twice as many with each loop."""
        for kind in [kind for kind, products in self.terms.items() if len(products) >= MOST_TERMS]:
            if len(self.terms[kind]) + (kind in self.numbers) > MOST_TERMS:
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
        for kind, count in part.numbers.items():
            if count > found.numbers.get(kind, 0):
                found.numbers[kind] = count
        for kind, products in part.terms.items():
            terms = found.terms.setdefault(kind, {})
            for product, count in products.items():
                if count > terms.get(product, 0):
                    terms[product] = count
        for kind, reasons in part.endless.items():
            found._unbounded(kind, reasons)
    first, *rest = parts or [Cost()]
    found.least = {
        kind: least
        for kind, count in first.least.items()
        if (least := min([count, *(part.least.get(kind, 0) for part in rest)]))
    }
    return found


def lower(one: Cost, other: Cost) -> Cost:
    """Return the lower amount of each kind, of two costs that both bound the same. A kind that cannot be compared, and
    what happens at least, stay those of the first."""
    found = Cost()
    found.add(one)
    for kind in one.kinds():
        amount = other.amount(kind)
        if compared(amount, one.amount(kind)) == "lower":
            found.drop(kind)
            found.spend(kind, amount)
    return found


def side_by_side(parts: list[Cost]) -> Cost:
    """Return the cost of ways that are all taken at the same time."""
    found = Cost()
    longest: dict[Product, int] = {}
    for part in parts:
        found.add(part)
        for product, count in part.terms.get(SPAN, {}).items():
            longest[product] = max(longest.get(product, 0), count)
    if longest:
        found.terms[SPAN] = longest
    if SPAN in found.numbers:
        found.numbers[SPAN] = max(part.numbers.get(SPAN, 0) for part in parts)
    return found
