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
LAUNCHES_OF = "launches of "
"""Runs of their own that threads may launch, by the model of these runs: only their money is paid from this run."""
LAUNCHED_MONEY = "money of launches"
"""Picodollars that those runs may spend."""


class Cost:
    """Amounts by kind. It is changed in place while steps are added.

    Thousands of steps spend the same few amounts, and call the same models and tools: it is only counted how often
    (`spend`, `add_known`), and added up when an amount is asked for.
    """

    __slots__ = ("_known", "_spent", "endless", "least", "numbers", "terms")

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        """The part of each amount that no size multiplies: most steps have only this one."""
        self.terms: dict[str, dict[Product, int]] = {}
        """The other products of each amount."""
        self.least: dict[str, int] = {}
        self.endless: dict[str, tuple[Reason, ...]] = {}
        self._spent: dict[tuple[str, Amount], int] = {}
        """How often each amount of a kind was spent since all was added up."""
        self._known: dict[Cost, int] = {}
        """How often each known cost was added since then."""

    @property
    def is_nothing(self) -> bool:
        return not (self.numbers or self.terms or self.least or self.endless or self._spent or self._known)

    def amount(self, kind: str) -> Amount:
        self._add_up()
        if kind in self.endless:
            return Amount(reasons=self.endless[kind])
        terms = {product: count for product, count in self.terms.get(kind, {}).items() if count}
        if constant := self.numbers.get(kind):
            terms[NUMBER] = constant
        return Amount(tuple(sorted(terms.items()))) if len(terms) > MOST_TERMS else bounded(terms)

    def at_least(self, kind: str) -> int:
        self._add_up()
        return self.least.get(kind, 0)

    def kinds(self) -> list[str]:
        self._add_up()
        return sorted({*self.numbers, *self.terms, *self.endless})

    def count(self, kind: str, most: int, least: int = 0) -> None:
        """Add numbers of a kind."""
        self.numbers[kind] = self.numbers.get(kind, 0) + most
        if least:
            self.least[kind] = self.least.get(kind, 0) + least

    def spend(self, kind: str, amount: Amount) -> None:
        if amount.reasons:
            self._unbounded(kind, amount.reasons)
        else:
            key, spent = (kind, amount), self._spent
            spent[key] = spent.get(key, 0) + 1

    def take(self, milliseconds: int) -> None:
        """Add time in which nothing else of this part happens."""
        numbers = self.numbers
        numbers[WORK] = numbers.get(WORK, 0) + milliseconds
        numbers[SPAN] = numbers.get(SPAN, 0) + milliseconds

    def spend_time(self, milliseconds: Amount) -> None:
        """Add an amount of time in which nothing else of this part happens."""
        self.spend(WORK, milliseconds)
        self.spend(SPAN, milliseconds)

    def drop(self, kind: str) -> None:
        """Forget everything of a kind."""
        self._add_up()
        self.endless.pop(kind, None)
        self.numbers.pop(kind, None)
        self.terms.pop(kind, None)

    def add(self, other: Cost) -> None:
        """Add what happens after it."""
        other._add_up()
        self._add_times(other, 1)

    def add_known(self, other: Cost) -> None:
        """Add a cost of `known`, which many steps share."""
        if other.endless:
            # The order of reasons is that of the steps.
            self.add(other)
        else:
            known = self._known
            known[other] = known.get(other, 0) + 1

    def _add_times(self, other: Cost, often: int) -> None:
        """Add a cost that is added up, `often` times."""
        numbers, least = self.numbers, self.least
        for kind, count in other.numbers.items():
            numbers[kind] = numbers.get(kind, 0) + count * often
        for kind, products in other.terms.items():
            terms = self.terms.setdefault(kind, {})
            for product, count in products.items():
                terms[product] = terms.get(product, 0) + count * often
        for kind, count in other.least.items():
            least[kind] = least.get(kind, 0) + count * often
        for kind, reasons in other.endless.items():
            self._unbounded(kind, reasons)

    def _add_up(self) -> None:
        """Add what was only counted so far."""
        if self._spent:
            for (kind, amount), often in self._spent.items():
                for product, count in amount.products:
                    self._add_product(kind, product, count * often)
            self._spent = {}
        if self._known:
            for other, often in self._known.items():
                self._add_times(other, often)
            self._known = {}

    def may_be_left_out(self) -> Cost:
        """Return the cost of something that perhaps does not happen."""
        self._add_up()
        cost = Cost()
        cost.numbers, cost.terms, cost.endless = self.numbers, self.terms, self.endless
        return cost

    def times(self, often: Amount, least: int, span_of: Amount | None = None) -> Cost:
        """Return the cost of repeating it; `span_of` repeats stand on the longest way, all if it is None."""
        self._add_up()
        cost = Cost()
        for kind, reasons in self.endless.items():
            if not often.is_nothing:
                cost.endless[kind] = reasons
        for kind, count in self.numbers.items():
            cost._repeat(kind, NUMBER, count, span_of if kind == SPAN and span_of is not None else often)
        for kind, products in self.terms.items():
            for product, count in products.items():
                cost._repeat(kind, product, count, span_of if kind == SPAN and span_of is not None else often)
        # Give up amounts with too many products: those of loops in each other become twice as many with each loop.
        for kind in [kind for kind, products in cost.terms.items() if len(products) >= MOST_TERMS]:
            if len(cost.terms[kind]) + (kind in cost.numbers) > MOST_TERMS:
                cost.drop(kind)
                cost._unbounded(kind, (TOO_LONG,))
        if least:
            cost.least = {kind: count * least for kind, count in self.least.items()}
        return cost

    def _repeat(self, kind: str, product: Product, count: int, often: Amount) -> None:
        """Add a product `often` times."""
        if often.reasons and count:
            self._unbounded(kind, often.reasons)
        for factor, times in often.products:
            joint = tuple(sorted((*product, *factor))) if product and factor else product or factor
            if len(joint) > MOST_FACTORS or count * times > LARGEST:
                self._unbounded(kind, (TOO_LONG,))
            else:
                self._add_product(kind, joint, count * times)

    def _add_product(self, kind: str, product: Product, count: int) -> None:
        if product:
            terms = self.terms.setdefault(kind, {})
            terms[product] = terms.get(product, 0) + count
        else:
            self.numbers[kind] = self.numbers.get(kind, 0) + count

    def _unbounded(self, kind: str, reasons: Iterable[Reason]) -> None:
        before = self.endless.get(kind, ())
        if len(before) < MOST_REASONS:
            self.endless[kind] = tuple(dict.fromkeys((*before, *reasons)))[:MOST_REASONS]


def unbounded(reason: Reason) -> Cost:
    """Return the cost of work that can do anything: every amount is infinite, also tokens of a model that is not
    known."""
    cost = Cost()
    of_model = (CALLS_OF, BYTES_OF, WINDOW_OF, OUTPUT_OF)
    cost.endless = dict.fromkeys((*COUNTED, *of_model, WORK, SPAN), (reason,))
    return cost


def known(cost: Cost) -> Cost:
    """Return a cost that is not changed any more. It is added up, so proofs of several threads can share it."""
    cost._add_up()
    return cost


def either(parts: list[Cost]) -> Cost:
    """Return the cost of one of several ways, whichever is taken."""
    if len(parts) == 1:
        return parts[0]
    cost = Cost()
    for part in parts:
        part._add_up()
        for kind, count in part.numbers.items():
            if count > cost.numbers.get(kind, 0):
                cost.numbers[kind] = count
        for kind, products in part.terms.items():
            terms = cost.terms.setdefault(kind, {})
            for product, count in products.items():
                if count > terms.get(product, 0):
                    terms[product] = count
        for kind, reasons in part.endless.items():
            cost._unbounded(kind, reasons)
    first, *rest = parts or [Cost()]
    cost.least = {
        kind: least
        for kind, count in first.least.items()
        if (least := min([count, *(part.least.get(kind, 0) for part in rest)]))
    }
    return cost


def lower(first: Cost, other: Cost) -> Cost:
    """Return the lower amount of each kind, of two costs that both bound the same. A kind that cannot be compared, and
    what happens at least, stay those of the first."""
    cost = Cost()
    cost.add(first)
    for kind in first.kinds():
        amount = other.amount(kind)
        if compared(amount, first.amount(kind)) == "lower":
            cost.drop(kind)
            cost.spend(kind, amount)
    return cost


def side_by_side(parts: list[Cost]) -> Cost:
    """Return the cost of ways that are all taken at the same time."""
    cost = Cost()
    longest: dict[Product, int] = {}
    for part in parts:
        cost.add(part)
        for product, count in part.terms.get(SPAN, {}).items():
            longest[product] = max(longest.get(product, 0), count)
    if longest:
        cost.terms[SPAN] = longest
    if SPAN in cost.numbers:
        cost.numbers[SPAN] = max(part.numbers.get(SPAN, 0) for part in parts)
    return cost
