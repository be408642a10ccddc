"""Numbers that say how sure a measurement is: intervals of rates, comparisons of two models, agreement with people.

All intervals are of 95 %, and two models differ if p < 0.05. Everything is computed exactly or in closed form, so the
same counts always print the same line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

Z = 1.959963984540054
"""The quantile of the normal distribution for 95 %."""
Z_POWER = 0.8416212335729143
"""The quantile for a power of 80 %: the chance to see a difference that exists."""
ALPHA = 0.05
WORTH_KNOWING = 0.05
"""The smallest difference that rows are planned for: 5 points."""
MOST_MORE = 1_000_000


class Interval(Struct, frozen=True):
    """Both ends belong to it."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


WHOLE = Interval(0.0, 1.0)


def wilson(passed: float, tried: float, z: float = Z) -> Interval:
    """Return the Wilson score interval of a rate. Nothing tried gives the whole range."""
    if tried <= 0:
        return WHOLE
    rate = passed / tried
    center = rate + z * z / (2 * tried)
    half = z * math.sqrt(rate * (1 - rate) / tried + z * z / (4 * tried * tried))
    whole = 1 + z * z / tried
    # At the ends the sums are exact only on paper.
    low = 0.0 if passed <= 0 else max(0.0, (center - half) / whole)
    high = 1.0 if passed >= tried else min(1.0, (center + half) / whole)
    return Interval(low, high)


def excluded(passed: float, tried: float, rate: float) -> bool:
    """Tell whether the results so far exclude a rate, however often they are looked at.

    An interval of 95 % that is looked at after each try excludes a rate that is right in a third of long runs. This
    compares the likelihood of the rate with the mean over all rates; the quotient reaches 20 in at most one of
    20 runs, however long they are (Ville).
    """
    failed = tried - passed
    if (rate <= 0 and passed > 0) or (rate >= 1 and failed > 0):
        return True
    likelihood = (passed * math.log(rate) if passed else 0.0) + (failed * math.log1p(-rate) if failed else 0.0)
    mixture = math.lgamma(passed + 1) + math.lgamma(failed + 1) - math.lgamma(tried + 2)
    return mixture - likelihood >= math.log(1 / ALPHA)


class Tally(Struct, frozen=True):
    """How often one row passed."""

    passed: int
    tried: int


def rate_interval(rows: Sequence[Tally]) -> Interval:
    """Return the Wilson interval of the rate over rows that were repeated.

    Repeats of one row resemble each other, so they count for less than as many rows: the number of tries is divided by
    the design effect, which is the variance between rows over the variance that independent tries would have. A single
    row has nothing to compare, and its tries count fully.
    """
    return wilson(*_independent(rows))


def rate_excluded(rows: Sequence[Tally], rate: float) -> bool:
    """Tell whether the results of repeated rows exclude a rate, however often they are looked at."""
    return excluded(*_independent(rows), rate)


def _independent(rows: Sequence[Tally]) -> tuple[float, float]:
    """Return how often rows passed and were tried, in tries that are worth as much as independent ones."""
    rows = [row for row in rows if row.tried]
    effect = design_effect(rows)
    return sum(row.passed for row in rows) / effect, sum(row.tried for row in rows) / effect


def design_effect(rows: Sequence[Tally]) -> float:
    """Return how many repeated tries are worth one independent try: between 1 and the number of repeats."""
    passed, tried = sum(row.passed for row in rows), sum(row.tried for row in rows)
    most = max((row.tried for row in rows), default=1)
    if len(rows) < 2 or most == 1 or passed in (0, tried):
        return 1.0
    rate = passed / tried
    between = len(rows) / (len(rows) - 1) * math.fsum((row.passed - rate * row.tried) ** 2 for row in rows)
    return min(float(most), max(1.0, between / (tried * rate * (1 - rate))))


def pass_all(rows: Sequence[Tally], times: int) -> float | None:
    """Return pass^n: the estimated chance that a row passes `times` times out of as many tries.

    It is the mean over rows, unbiased for rows with more tries than that. Rows with fewer tries say nothing about it;
    None if there are no others.
    """
    enough = [row for row in rows if row.tried >= times]
    if not enough:
        return None
    return math.fsum(math.comb(row.passed, times) / math.comb(row.tried, times) for row in enough) / len(enough)


def mcnemar(first_only: int, second_only: int) -> float:
    """Return the two-sided p value of the exact McNemar test, for the pairs of which only one member passed."""
    fewer, total = min(first_only, second_only), first_only + second_only
    term = ways = 1
    for place in range(fewer):
        term = term * (total - place) // (place + 1)
        ways += term
    return min(1.0, 2 * ways / (1 << total)) if total else 1.0


class Comparison(Struct, frozen=True):
    """Two models on the same rows."""

    rows: int
    first_only: int
    """Rows that the first model passed more often; without repeats, the rows that only it passed."""
    second_only: int
    first_rate: float
    second_rate: float

    @property
    def p(self) -> float:
        return mcnemar(self.first_only, self.second_only)

    @property
    def decided(self) -> bool:
        return self.p < ALPHA

    @property
    def difference(self) -> float:
        """How much better the second model is, by rows."""
        return (self.second_only - self.first_only) / self.rows if self.rows else 0.0


def compared(pairs: Sequence[tuple[Tally, Tally]]) -> Comparison:
    """Compare two models by rows. A row counts for the model that passed it more often, or for neither."""
    pairs = [(first, second) for first, second in pairs if first.tried and second.tried]
    # Products instead of quotients, so equal rates are equal.
    signs = [second.passed * first.tried - first.passed * second.tried for first, second in pairs]
    first_rate = _mean([first.passed / first.tried for first, _ in pairs])
    second_rate = _mean([second.passed / second.tried for _, second in pairs])
    return Comparison(
        len(pairs), sum(sign < 0 for sign in signs), sum(sign > 0 for sign in signs), first_rate, second_rate
    )


class MoreRows(Struct, frozen=True):
    """How many more rows would decide a difference of some points."""

    rows: int
    """0 if these rows were enough to show such a difference, so that there probably is none."""
    difference: float


def rows_to_decide(comparison: Comparison) -> MoreRows:
    """Return about how many more rows would decide, with a power of 80 %, the difference that was seen.

    A difference below 5 points is planned for as 5 points: fewer are seldom worth the calls. If these rows would have
    shown 5 points with that power, no more are needed. Rows on which the models differ are assumed to stay as
    frequent as they were.
    """
    difference = max(abs(comparison.difference), WORTH_KNOWING)
    rows = comparison.rows
    differing = max((comparison.first_only + comparison.second_only + 1) / (rows + 2), difference)
    spread = math.sqrt(max(0.0, differing - difference * difference))
    needed = ((Z * math.sqrt(differing) + Z_POWER * spread) / difference) ** 2
    if needed <= rows and abs(comparison.difference) < WORTH_KNOWING:
        return MoreRows(0, difference)
    more = math.ceil(min(MOST_MORE, max(needed - rows, 0.1 * rows, 1)))
    while more < MOST_MORE and mcnemar(*_expected(rows + more, differing, difference)) >= ALPHA:
        more += 1 + more // 20
    return MoreRows(_about(more), difference)


def _expected(rows: int, differing: float, difference: float) -> tuple[int, int]:
    """Return how many rows would count for each model."""
    return round(rows * (differing - difference) / 2), round(rows * (differing + difference) / 2)


def _about(count: float) -> int:
    """Round up to two digits: more would pretend to be exact."""
    unit = int(10 ** max(0, len(str(math.ceil(count))) - 2))
    return math.ceil(count / unit) * unit


class Agreement(Struct, frozen=True):
    """How often a judge and a person said pass and fail about the same texts."""

    both_pass: int
    only_judge: int
    """The judge passed a text that the person failed."""
    only_person: int
    both_fail: int

    @property
    def count(self) -> int:
        return self.both_pass + self.only_judge + self.only_person + self.both_fail

    @property
    def base_rate(self) -> float:
        """The part of the texts that the person passed."""
        return _rate(self.both_pass + self.only_person, self.count)

    @property
    def observed(self) -> float:
        return _rate(self.both_pass + self.both_fail, self.count)

    @property
    def true_pass_rate(self) -> float | None:
        """TPR: of the texts that the person passed, the part that the judge passed; None if there are none."""
        passed = self.both_pass + self.only_person
        return self.both_pass / passed if passed else None

    @property
    def true_fail_rate(self) -> float | None:
        """TNR: of the texts that the person failed, the part that the judge failed; None if there are none."""
        failed = self.both_fail + self.only_judge
        return self.both_fail / failed if failed else None


class Kappa(Struct, frozen=True):
    """Cohen's κ with its interval."""

    value: float
    interval: Interval


def kappa(agreement: Agreement) -> Kappa | None:
    """Return Cohen's κ; None if all texts have one label, because then agreement by chance is complete.

    The interval is the wider of two at each end: that of the asymptotic standard error (Fleiss, Cohen and Everitt), and
    that which follows from the Wilson interval of the observed agreement. The first one alone would be a point for
    a judge that never differed, also after ten texts, and also if all but one of them had the same label.
    """
    chance = _by_chance(agreement)
    if not agreement.count or chance >= 1:
        return None
    value = (agreement.observed - chance) / (1 - chance)
    error = kappa_error(agreement)
    interval = wilson(agreement.both_pass + agreement.both_fail, agreement.count)
    low = min(value - Z * error, (interval.low - chance) / (1 - chance))
    high = max(value + Z * error, (interval.high - chance) / (1 - chance))
    return Kappa(value, Interval(max(-1.0, low), min(1.0, high)))


def kappa_error(agreement: Agreement) -> float:
    """Return the asymptotic standard error of κ."""
    count, chance = agreement.count, _by_chance(agreement)
    cells = [
        [agreement.both_pass / count, agreement.only_judge / count],
        [agreement.only_person / count, agreement.both_fail / count],
    ]
    judge_says = [cells[0][0] + cells[0][1], cells[1][0] + cells[1][1]]
    person_says = [cells[0][0] + cells[1][0], cells[0][1] + cells[1][1]]
    value = (cells[0][0] + cells[1][1] - chance) / (1 - chance)
    agreeing = math.fsum(cells[i][i] * (1 - (judge_says[i] + person_says[i]) * (1 - value)) ** 2 for i in (0, 1))
    differing = (1 - value) ** 2 * math.fsum(
        cells[i][1 - i] * (person_says[i] + judge_says[1 - i]) ** 2 for i in (0, 1)
    )
    rest = (value - chance * (1 - value)) ** 2
    return math.sqrt(max(0.0, agreeing + differing - rest) / count) / (1 - chance)


def _by_chance(agreement: Agreement) -> float:
    judge = _rate(agreement.both_pass + agreement.only_judge, agreement.count)
    person = agreement.base_rate
    return judge * person + (1 - judge) * (1 - person)


def percentile(values: Sequence[float], part: float) -> float | None:
    """Return the value below which a part (0 to 1) of the values lies, between two of them if need be."""
    if not values:
        return None
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _rate(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0
