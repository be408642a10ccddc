"""Upper bounds as formulas in the sizes that an author knows: `6·|readers| + 30`, or `∞` with the reasons for it.

A size is written as it is read: `|readers|` for the items of a list, `‖doc‖` for the bytes of a text. Sizes are
never negative, so of two formulas the larger coefficient of each product is a bound of both. A formula with too many
products is given up, as `∞`: a bound is never guessed low. Numbers for people are rounded up as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from math import prod
from typing import Literal, TypeAlias

from msgspec import Struct

from quire.source import NOWHERE, Span

Product: TypeAlias = tuple[str, ...]
"""Sizes that are multiplied, in alphabetical order: `("|a|", "|a|")` is the square of `|a|`. Empty for a number."""

NUMBER: Product = ()
ENDLESS = "∞"
"""The formula of an amount without a bound."""
MOST_TERMS = 60
"""Products of a formula; a longer one says nothing to a reader."""
MOST_FACTORS = 8
MOST_REASONS = 50
"""Reasons of one infinity that are kept: one is enough, and a thousand would take quadratic time."""
LARGEST = 10**40
"""Larger coefficients are given up."""


class Reason(Struct, frozen=True, gc=False):
    """The reason why a bound is infinite, and a change that makes it finite."""

    why: str
    remedy: str = ""
    """The line that would bound it."""
    span: Span = NOWHERE
    document: str = ""
    """The name of the called document that contains the place; empty for the document itself."""
    step: str = ""
    """The way to the step that is not bounded; empty if it is not that of a step alone."""

    @property
    def text(self) -> str:
        """The reason with its step."""
        return f"step {self.step}: {self.why}" if self.step else self.why


TOO_LONG = Reason("the formula has too many parts to be read")


class Amount(Struct, frozen=True, gc=False, cache_hash=True):
    """A bound. Make it with `number`, `size` or `endless`, and combine it with the functions of its own.

    The walk over a document adds the same few amounts again and again: sums and products of formulas are remembered.
    """

    products: tuple[tuple[Product, int], ...] = ()
    """Products with their coefficients, in order; none has the coefficient 0."""
    reasons: tuple[Reason, ...] = ()
    """Not empty if there is no bound."""
    as_number: int | None = None
    """The number, if no size is left; None for a formula with sizes, and for infinity."""

    @property
    def terms(self) -> dict[Product, int]:
        """The coefficients by product."""
        return dict(self.products)

    @property
    def is_endless(self) -> bool:
        return bool(self.reasons)

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names of the sizes in it, each once."""
        return tuple(sorted({size for product, _ in self.products for size in product}))

    @lru_cache(maxsize=4096)  # noqa: B019  amounts are small, and every proof adds the same ones
    def plus(self, other: Amount) -> Amount:
        mine, theirs = self.as_number, other.as_number
        if mine is not None and theirs is not None:
            return number(mine + theirs)
        if self is NOTHING or other is NOTHING:
            return self if other is NOTHING else other
        if self.reasons or other.reasons:
            return _endless(self, other)
        if theirs is not None:
            return self._with_number(theirs)
        if mine is not None:
            return other._with_number(mine)
        terms = self.terms
        for product, count in other.products:
            terms[product] = terms.get(product, 0) + count
        return _of_sizes(terms)

    def _with_number(self, more: int) -> Amount:
        """Return the sum of a formula and a number. That of the formula is its first product, as it has no size."""
        sizes = self.products
        first, count = sizes[0]
        if first == NUMBER:
            sizes, more = sizes[1:], more + count
        return Amount(((NUMBER, more), *sizes)) if len(sizes) < MOST_TERMS else Amount(reasons=(TOO_LONG,))

    def times(self, other: Amount) -> Amount:
        if other is ONE:
            return self
        if self is ONE:
            return other
        if self.as_number == 0 or other.as_number == 0:
            return NOTHING
        return _product(self, other)

    @lru_cache(maxsize=4096)  # noqa: B019
    def either(self, other: Amount) -> Amount:
        """Return a bound of both."""
        if self is other or other is NOTHING:
            return self
        mine, theirs = self.as_number, other.as_number
        if mine is not None and theirs is not None:
            return self if mine >= theirs else other
        if self.reasons or other.reasons:
            return _endless(self, other)
        terms = self.terms
        for product, count in other.products:
            terms[product] = max(count, terms.get(product, 0))
        return _of_sizes(terms)

    def at_most(self, limit: int) -> Amount:
        """Return the smaller one of the bound and a number. A formula stays: it may be smaller."""
        own = self.as_number
        if self.reasons or (own is not None and own > limit):
            return number(limit)
        return self

    @property
    def formula(self) -> str:
        """The formula for people if it has sizes; empty for a number and for infinity."""
        return "" if self.reasons or self.as_number is not None else self.text()

    @property
    def is_nothing(self) -> bool:
        return self.as_number == 0

    def with_sizes(self, counts: Mapping[str, int]) -> Amount:
        """Return the formula with numbers in place of the sizes that are known."""
        if self.reasons or not counts:
            return self
        terms: dict[Product, int] = {}
        for product, count in self.products:
            rest = tuple(size for size in product if size not in counts)
            terms[rest] = terms.get(rest, 0) + count * prod(counts[size] for size in product if size in counts)
        return _kept(terms)

    def divided(self, by: int) -> Amount:
        """Return the bound of a part, each coefficient rounded up."""
        if by == 1:
            return self
        return self if self.reasons else bounded({product: -(-count // by) for product, count in self.products})

    def __str__(self) -> str:
        return self.text()

    def text(self, written: Callable[[int], str] = "{:,}".format) -> str:
        """Return the formula for people. `written` writes a coefficient."""
        if self.reasons:
            return ENDLESS
        # The longest products come first, the number last.
        terms = sorted(self.products, key=lambda term: (-len(term[0]), term[0]))
        return " + ".join(_term(product, count, written) for product, count in terms) or written(0)


def _term(product: Product, count: int, written: Callable[[int], str]) -> str:
    if not product:
        return written(count)
    powers: dict[str, int] = {}
    for size in product:
        powers[size] = powers.get(size, 0) + 1
    raised = (size if power == 1 else f"{size}{str(power).translate(_RAISED)}" for size, power in powers.items())
    figure, sizes = written(count), "·".join(raised)
    return sizes if figure == "1" else f"{figure}·{sizes}"


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


NOTHING = Amount(as_number=0)
ONE = Amount(((NUMBER, 1),), as_number=1)


@lru_cache(maxsize=4096)
def number(count: int) -> Amount:
    if count == 1:
        return ONE
    return Amount(((NUMBER, count),), (), count) if count else NOTHING


@lru_cache(maxsize=1024)
def size(name: str) -> Amount:
    """Return the bound that is the size of this name."""
    return Amount((((name,), 1),))


def endless(*reasons: Reason) -> Amount:
    return Amount(reasons=tuple(dict.fromkeys(reasons)))


def total(parts: Iterable[Amount], constant: int = 0) -> Amount:
    """Return the sum of all, and of a number."""
    amount, several = NOTHING, list(parts)
    for part in several:
        count = part.as_number
        if count is not None:
            constant += count
        elif part.reasons:
            return endless(*(reason for each in several for reason in each.reasons))
        else:
            amount = part if amount is NOTHING else amount.plus(part)
    return amount.plus(number(constant)) if constant else amount


@lru_cache(maxsize=1024)
def _product(amount: Amount, other: Amount) -> Amount:
    if amount.reasons or other.reasons:
        return _endless(amount, other)
    if len(amount.products) * len(other.products) > MOST_TERMS * MOST_TERMS:
        return Amount(reasons=(TOO_LONG,))
    terms: dict[Product, int] = {}
    for left, count in amount.products:
        for right, often in other.products:
            product = tuple(sorted((*left, *right))) if left and right else left or right
            terms[product] = terms.get(product, 0) + count * often
    return _kept(terms)


def bounded(terms: Mapping[Product, int]) -> Amount:
    """Return the formula of these coefficients, unless it has become too long to mean something."""
    return Amount(reasons=(TOO_LONG,)) if len(terms) > MOST_TERMS else _formula(terms)


def _of_sizes(terms: Mapping[Product, int]) -> Amount:
    """Return the formula of these coefficients, of which none is 0 and one at least is that of a size."""
    return Amount(tuple(sorted(terms.items()))) if len(terms) <= MOST_TERMS else Amount(reasons=(TOO_LONG,))


def _formula(terms: Mapping[Product, int]) -> Amount:
    products = tuple(sorted([term for term in terms.items() if term[1]]))
    if not products or (len(products) == 1 and not products[0][0]):
        return number(products[0][1]) if products else NOTHING
    return Amount(products)


def _endless(amount: Amount, other: Amount) -> Amount:
    reasons = (
        amount.reasons if amount.reasons == other.reasons else tuple(dict.fromkeys((*amount.reasons, *other.reasons)))
    )
    return Amount(reasons=reasons[:MOST_REASONS])


def _kept(terms: Mapping[Product, int]) -> Amount:
    """Return the formula, unless it has become too long or too large to mean something."""
    if any(len(product) > MOST_FACTORS or count > LARGEST for product, count in terms.items()):
        return Amount(reasons=(TOO_LONG,))
    return bounded(terms)


Order: TypeAlias = "Literal['equal', 'lower', 'higher', 'unclear']"


def compared(new: Amount, old: Amount) -> Order:
    """Tell how a bound has changed for all sizes; `unclear` if it is higher for some sizes and lower for others."""
    if new.reasons or old.reasons:
        if new.reasons and old.reasons:
            return "equal"
        return "higher" if new.reasons else "lower"
    mine, theirs = new.terms, old.terms
    products = {*mine, *theirs}
    more = any(mine.get(product, 0) > theirs.get(product, 0) for product in products)
    less = any(mine.get(product, 0) < theirs.get(product, 0) for product in products)
    if more:
        return "unclear" if less else "higher"
    return "lower" if less else "equal"


def parsed(text: str) -> Amount | None:
    """Return the formula that `str` has written, or None. `∞` has no reason then but that it was written so."""
    from quire.plan.vocabulary import number as number_of

    if text.strip() == ENDLESS:
        return endless(Reason("it was recorded so"))
    terms: dict[Product, int] = {}
    for part in text.split(" + "):
        factors = part.strip().split("·")
        count = number_of(factors[0].replace(",", "")) if factors[0][:1].isdigit() else 1
        if not isinstance(count, int) or count < 0:
            return None
        sizes: list[str] = []
        for factor in factors[1:] if factors[0][:1].isdigit() else factors:
            base = factor.rstrip("⁰¹²³⁴⁵⁶⁷⁸⁹")
            power = factor[len(base) :].translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))
            if len(base) < 3 or base[0] not in "|‖" or base[-1] != base[0] or len(power) > 1:
                return None
            sizes += [base] * int(power or 1)
        product = tuple(sorted(sizes))
        terms[product] = terms.get(product, 0) + count
    # A long formula was not given up when it was written, so it is compared as it is.
    return _formula(terms)


Unit = Literal["count", "tokens", "picodollars", "milliseconds"]
_SHORT = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def written(count: int, unit: Unit) -> str:
    """Return an amount in its unit, rounded up."""
    match unit:
        case "count":
            return f"{count:,}"
        case "tokens":
            return short_number(count)
        case "picodollars":
            return money(count)
        case "milliseconds":
            return duration(count)


def money(picodollars: int) -> str:
    """Return dollars, rounded up to cents, or to four decimals below a cent."""
    from quire.models.prices import rounded_dollars

    decimals = 4 if 0 < picodollars < 10**10 else 2
    return f"${rounded_dollars(picodollars, decimals):,}"


def short_number(count: int) -> str:
    """Return a number with at most two digits after its highest three, rounded up: `3.1 M`."""
    for word, size in reversed(_SHORT.items()):
        if count >= size:
            whole, tenth = divmod(-(-count * 10 // size), 10)
            if whole >= 100 or not tenth:
                return f"{-(-count // size):,} {word}"
            return f"{whole:,}.{tenth} {word}"
    return f"{count:,}"


def duration(milliseconds: int) -> str:
    """Return a time in the largest unit that is not too coarse, rounded up."""
    seconds = -(-milliseconds // 1000)
    if seconds < 120:
        return f"{seconds} s"
    minutes = -(-seconds // 60)
    if minutes < 120:
        return f"{minutes} min"
    hours = -(-minutes // 60)
    return f"{hours} h" if hours < 72 else f"{-(-hours // 24):,} days"
