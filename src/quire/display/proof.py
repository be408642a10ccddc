"""Print the numbers of a proof: proven, assumed and seen side by side, with the premises as footnotes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.analysis.amounts import duration, short_number, written
from quire.display.text import one_line, paragraph, section, table

if TYPE_CHECKING:
    from quire.analysis.amounts import Amount, Reason, Unit
    from quire.analysis.approvals import Gate
    from quire.analysis.assumptions import Assumptions
    from quire.analysis.contributions import Contribution
    from quire.analysis.flow_paths import Flow
    from quire.analysis.quantities import Quantity
    from quire.values import Value


NAMES = {
    "model_calls": "model calls",
    "tool_calls": "tool calls",
    "questions": "questions",
    "threads": "threads",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "money": "money",
    "time": "time, not counting people",
}
_SEEN = {"money": "cost", "time": "seconds"}


NO_QUESTION = "no question before it"
_VERDICTS = {
    "ignored": "it is asked, and a no comes through",
    "open": NO_QUESTION,
    "never": "no run reaches it",
}
_MOST_TERMS = 12
"""Terms of a formula that are printed."""


class Footnotes:
    """Notes under a table, each with a number. Equal notes share it."""

    def __init__(self) -> None:
        self.notes: dict[str, int] = {}

    def mark(self, *notes: str) -> str:
        return "".join(f" [{self.notes.setdefault(note, len(self.notes) + 1)}]" for note in notes if note)

    def lines(self) -> list[str]:
        return [f"[{number}] {one_line(note)}" for note, number in self.notes.items()]


def bound_lines(
    quantities: Sequence[Quantity], assumed: Assumptions | None = None, seen: Seen | None = None
) -> Iterator[str]:
    """Yield the section `bounds`: a row for each number that is not certainly 0, with a column for what is assumed and
    one for what earlier runs needed, if there are any."""
    notes = Footnotes()
    sizes = assumed.sizes(size for quantity in quantities for size in quantity.most.sizes) if assumed else {}
    header = ["", "proven"]
    if assumed and sizes:
        used = assumed.used(size for quantity in quantities for size in quantity.most.sizes)
        header.append(str(used))
    if seen is not None and seen.runs:
        header.append(f"seen in {seen.runs:,} {'run' if seen.runs == 1 else 'runs'} (95 of 100)")
    rows = []
    for quantity in quantities:
        if quantity.name in ("threads",) and quantity.most.is_nothing:
            continue
        row = [NAMES.get(quantity.name, quantity.name), proven_text(quantity, notes)]
        if sizes:
            row.append(assumed_text(quantity, sizes))
        if seen is not None and seen.runs:
            row.append(seen.text(quantity.name))
        rows.append(row)
    lines = table(rows, header if len(header) > 2 else ())
    yield from paragraph("bounds", [*lines, *notes.lines()])


class Seen:
    """The numbers of earlier runs, by the names of quantities."""

    def __init__(self, runs: int, amounts: Mapping[str, float]) -> None:
        self.runs = runs
        self._amounts = amounts

    def text(self, name: str) -> str:
        amount = self._amounts.get(_SEEN.get(name, name))
        if amount is None:
            return ""
        if name == "money":
            return f"${amount:.2f}" if amount >= 0.01 or not amount else f"${amount:.4f}"
        if name == "time":
            return duration(round(amount * 1000))
        return short_number(round(amount)) if name.endswith("tokens") else f"{round(amount):,}"


def proven_text(quantity: Quantity, notes: Footnotes) -> str:
    """Return the proven bound of a number, with the marks of its footnotes."""
    if quantity.unpriced:
        return "unpriced" + notes.mark(*quantity.unpriced)
    premises = notes.mark(*quantity.premises)
    if quantity.most.is_endless:
        why = notes.mark(*map(reason_text, quantity.most.reasons[:4]))
        if quantity.ceiling is None:
            return f"∞{why}"
        if quantity.unit == "count":
            # A run that reaches the cap fails, so the cap is not shown as a bound.
            return f"∞{why}{_stopped(quantity, notes)}{premises}"
        sign = "≤" if quantity.sure else "~"
        return f"{sign} {written(quantity.ceiling.most, quantity.unit)}{notes.mark(quantity.ceiling.why)}{premises}"
    own = quantity.most.as_number
    if quantity.unit == "count":
        least = f"{quantity.least:,} to " if quantity.least != own else ""
        return f"{least}{_plain(quantity.most, quantity.unit)}{_stopped(quantity, notes)}{premises}"
    if own == 0 and quantity.name == "money":
        return f"free{premises}"
    sign = "≤" if quantity.sure else "~"
    if quantity.ceiling is not None and (own is None or own > quantity.ceiling.most):
        return f"{sign} {written(quantity.ceiling.most, quantity.unit)}{notes.mark(quantity.ceiling.why)}{premises}"
    return f"{sign} {_plain(quantity.most, quantity.unit)}{premises}"


def _stopped(quantity: Quantity, notes: Footnotes) -> str:
    return f", stopped at {quantity.ceiling.most:,}{notes.mark(quantity.ceiling.why)}" if quantity.ceiling else ""


def assumed_text(quantity: Quantity, sizes: Mapping[str, int]) -> str:
    """Return the estimate of a number at assumed sizes."""
    if quantity.unpriced:
        return ""
    amount = (quantity.about if quantity.about is not None else quantity.most).with_sizes(sizes)
    if amount.is_endless:
        return ""
    most = amount.as_number
    if most is None:
        return "" if quantity.ceiling else f"~ {_plain(amount, quantity.unit)}"
    about = f"~ {written(most, quantity.unit)}"
    if quantity.ceiling is None or most <= quantity.ceiling.most:
        return about
    limit = written(quantity.ceiling.most, quantity.unit)
    return f"{about}, stopped at {limit}" if quantity.name == "model_calls" else f"≤ {limit}"


def reason_text(reason: Reason) -> str:
    return f"{reason.text}; bound it with {reason.remedy}" if reason.remedy else reason.text


def gate_text(gate: Gate) -> str:
    """Return the approval of an effect in words: `after a yes in step 2 (confirm)`."""
    from quire.analysis.approvals import decider

    if gate.verdict != "gated":
        who = decider(gate.effect) if gate.verdict == "open" and not gate.effect.by_model else ""
        return _VERDICTS[gate.verdict] + (f", and {who} decides whether" if who else "")
    joint = " or " if gate.jointly else " and "
    questions = joint.join(f"step {question.place.way} ({question.kind})" for question in gate.questions)
    return f"after a yes in {questions}"


def gate_lines(gates: Sequence[Gate]) -> Iterator[str]:
    """Yield the section `gates`: each effect that changes something, and the question before it; nothing without
    one."""
    rows = [
        (f"step {gate.key}", f"{gate.effect.tool.effect}, {gate.effect.tool.tier}", gate_text(gate)) for gate in gates
    ]
    yield from section("approvals (effects that a person must agree to)", table(rows))


def flow_lines(flows: Sequence[Flow]) -> Iterator[str]:
    """Yield the section `flows`: the ways of text from outside; nothing without one."""
    yield from section("data flows (where text from outside goes)", [one_line(flow.text) for flow in flows])


def why_lines(quantity: Quantity, shares: Sequence[Contribution]) -> Iterator[str]:
    """Yield the arithmetic of one number: the steps that make it up, its premises, and reasons for infinity."""
    rows = [(f"step {part.way}", part.what, share_text(part), "in a branch" if part.chosen else "") for part in shares]
    notes = Footnotes()
    total = proven_text(quantity, notes)
    lines = table(rows) if rows else []
    for name, amount in quantity.parts.items():
        lines.append(one_line(f"{name}: {_plain(amount, quantity.unit)}"))
    if any(part.chosen for part in shares):
        lines.append("of the branches of one choice, only the most expensive counts")
    yield from paragraph(f"{NAMES.get(quantity.name, quantity.name)}: {total}", [*lines, *notes.lines()])


def share_text(part: Contribution) -> str:
    """Return what a step adds to a number: `3 × 2·|readers|`, `4,096 × $15/M = $0.07`."""
    often, amount = str(part.often), part.each.as_number
    if part.product and often == "1":
        return part.product if amount is None else f"{part.product} = {written(amount, part.unit)}"
    each = part.product or part.each.text(lambda count: written(count, part.unit))
    if often == "1":
        return each
    each = f"({each})" if " + " in each and not part.product else each
    return f"{each} × ({often})" if " + " in often else f"{each} × {often}"


def shares_data(shares: Sequence[Contribution]) -> list[Value]:
    """Return the arithmetic of one number for programs. Amounts are formulas in its unit; those of money are in
    picodollars."""
    return [
        {
            "step": part.way,
            "what": part.what,
            "each": str(part.each),
            "often": str(part.often),
            "unit": part.unit,
            "words": share_text(part),
            "in_arm": part.chosen,
        }
        for part in shares
    ]


def _plain(amount: Amount, unit: Unit) -> str:
    """Return a bound in its unit; of a formula with many terms the first ones, and the number of the others."""
    text = amount.text(lambda count: written(count, unit))
    terms = text.split(" + ")
    if len(terms) <= _MOST_TERMS:
        return text
    return " + ".join([*terms[: _MOST_TERMS // 2], f"… ({len(terms) - _MOST_TERMS // 2} more, see --json)"])


def quantity_data(quantity: Quantity, sizes: Mapping[str, int] | None = None) -> dict[str, Value]:
    """Return a number for programs. Infinity and unknown prices are null."""
    scale = quantity.unit == "picodollars"
    most = quantity.number
    data: dict[str, Value] = {
        "formula": None if quantity.most.is_endless or quantity.unpriced else str(quantity.most),
        "most": None if most is None or quantity.unpriced else most / 10**12 if scale else most,
        "least": quantity.least,
        "unit": {"picodollars": "dollars"}.get(quantity.unit, quantity.unit),
        "sizes": list(quantity.most.sizes),
        "proven": quantity.sure
        and not quantity.unpriced
        and not (quantity.most.is_endless and quantity.ceiling is None),
        "premises": list(quantity.premises),
        "reasons": [reason_text(reason) for reason in quantity.most.reasons],
    }
    if quantity.ceiling is not None:
        data["ceiling"] = {
            "most": quantity.ceiling.most / 10**12 if scale else quantity.ceiling.most,
            "why": quantity.ceiling.why,
        }
    if quantity.unpriced:
        data["unpriced"] = list(quantity.unpriced)
    if quantity.parts:
        data["parts"] = {name: str(amount) for name, amount in quantity.parts.items()}
    estimate = (quantity.about if quantity.about is not None else quantity.most).with_sizes(sizes or {}).as_number
    if estimate is not None and (quantity.about is not None or sizes):
        data["estimate"] = estimate / 10**12 if scale else estimate
    return data
