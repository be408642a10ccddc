"""Show live tests: the line before anything is paid, the scores as a table and as an SVG picture, comparisons of
models, and standings.

The words are careful: a difference that chance may have made is "not decided", and a judge that was not measured gives
"advice". The picture has shapes and texts only: no script, no link, nothing that is fetched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from quire.display.flowchart_drawing import number, printable
from quire.display.text import age, duration, one_line, short, table
from quire.display.visible import escaped
from quire.testing.live.statistics import rows_to_decide
from quire.testing.live.tries import Status
from quire.values import encode
from quire.wording import cut, pluralize

if TYPE_CHECKING:
    from quire.testing.live.calibration import Calibration
    from quire.testing.live.calibration import Standing as JudgeStanding
    from quire.testing.live.plan import Announcement
    from quire.testing.live.receipts import Standing
    from quire.testing.live.tries import LiveReport, Pair, Score


_TERMINAL_COLOURS = {
    Status.VERIFIED: "green",
    Status.FLAKY: "yellow",
    Status.STALE: "yellow",
    Status.FAILING: "red",
    Status.UNVERIFIED: "red",
}
_LONGEST = 200


def announcement_line(plan: Announcement) -> str:
    """Return the line that stands before a live test: the number of calls, their price at most, the price seen."""
    models = len(plan.models)
    least, most = plan.repeats
    repeats = f"{most}" if least == most else f"{least} to {most}"
    runs = f"{plan.rows:,} {pluralize('row', plan.rows)} × {models} {pluralize('model', models)} × {repeats}"
    if plan.calls == plan.tries:
        counted = f"{runs} = {plan.tries:,} {pluralize('call', plan.tries)}"
    else:
        calls = "without a bound on calls" if plan.calls is None else f"≤ {plan.calls:,} calls"
        counted = f"{runs} = {plan.tries:,} {pluralize('run', plan.tries)}, {calls}"
    judged = f" and {plan.judge_calls:,} of judges" if plan.judge_calls else ""
    bound = f"≤ {dollars(plan.bound)} (bound)" if plan.bound is not None else f"no bound: {plan.why or 'not known'}"
    seen_price = f", about {dollars(plan.seen)} (seen)" if plan.seen is not None else ""
    budget = f", budget {dollars(plan.budget)}" if plan.budget is not None else ""
    return one_line(f"PAID: {counted}{judged}, {bound}{seen_price}{budget}")


def progress_line(done: int, planned: int, passed: int, cost: float | None) -> str:
    """Return the line that a terminal shows while tries are made."""
    spent = "" if cost is None else f", {dollars(cost)}"
    return f"{done:,} of {planned:,} tries, {passed:,} passed{spent}"


def report_text(report: LiveReport, colour: bool = False) -> str:
    """Return a live test as a person reads it; ends with a line end."""
    blocks = [_case(case, report, colour) for case in dict.fromkeys(score.case for score in report.scores)]
    compared: list[str] = []
    for pair in (*report.pairs, *report.baseline):
        rates, bracket, verdict = pair_sentence(pair).partition("): ")
        compared += [f"  {rates})", f"    {verdict}"] if bracket else [f"  {rates}"]
    if compared:
        blocks.append(["Compared by rows", *compared])
    notes = list(_notes(report))
    if notes:
        blocks.append(notes)
    blocks.append([_total(report)])
    return "\n".join("\n".join(block) + "\n" for block in blocks)


def report_json(report: LiveReport) -> str:
    """Return a live test for programs, and as a baseline for later ones; one line."""
    return escaped(encode(report.as_value())) + "\n"


def pair_sentence(pair: Pair) -> str:
    """Say which of two models is better, if that is decided, and otherwise how many more rows would decide it."""
    comparison = pair.comparison
    first, second = short(pair.first, 60), short(pair.second, 60)
    if not comparison.rows:
        return f"{first} and {second}: no row was tried on both"
    rates = f"{first} {percent(comparison.first_rate)}, {second} {percent(comparison.second_rate)}"
    rows = f"{comparison.rows} {pluralize('row', comparison.rows)}"
    p = "< 0.001" if comparison.p < 0.001 else f"= {comparison.p:.3f}"
    ways = f"{comparison.first_only} to {comparison.second_only} of {rows}, p {p}"
    if comparison.decided:
        better = first if comparison.first_only > comparison.second_only else second
        return f"{rates} ({ways}): {better} is better"
    more = rows_to_decide(comparison)
    points = f"{more.difference * 100:.0f} points"
    if not more.rows:
        return f"{rates} ({ways}): not decided: a difference of {points} would probably have shown"
    about = f"about {more.rows:,} more {pluralize('row', more.rows)}"
    return f"{rates} ({ways}): not decided: {about} would decide a difference of {points}"


def standings_text(standings: Sequence[Standing], now: float, colour: bool = False) -> str:
    """Return what is known of all live cases without asking a model; ends with a line end."""
    rows = []
    for standing in standings:
        receipt = standing.receipt
        counts = f"{receipt.passed}/{receipt.tried}" if receipt else ""
        ago = f"{age(now - receipt.at)} ago" if receipt else ""
        why = f"{' and '.join(standing.changed)} changed" if standing.changed else ""
        rows.append(
            [
                standing.status,
                short(f"{standing.file}: {standing.case}", 80),
                short(standing.model, 60),
                counts,
                ago,
                why,
            ]
        )
    header = ["status", "case", "model", "passed", "measured", ""]
    lines = table(rows, header, right=frozenset({3}), style=lambda cell, column: _painted(cell, column == 0 and colour))
    return "\n".join(lines) + "\n" if rows else "no case has live terms\n"


def standings_json(standings: Sequence[Standing]) -> str:
    """Return the standings for programs, one JSON object in each line."""
    return "".join(f"{escaped(encode(to_builtins(standing)))}\n" for standing in standings)


def calibration_json(calibration: Calibration, standing: JudgeStanding) -> str:
    """Return a calibration for programs; one line."""
    measured, agreement = calibration.kappa, calibration.agreement
    value = {
        **to_builtins(calibration),
        "kappa": measured.value if measured else None,
        "kappa_interval": [measured.interval.low, measured.interval.high] if measured else None,
        "true_pass_rate": agreement.true_pass_rate,
        "true_fail_rate": agreement.true_fail_rate,
        "base_rate": agreement.base_rate,
        "gates": standing.gates,
        "reason": standing.reason,
    }
    return escaped(encode(value)) + "\n"


def calibration_text(name: str, calibration: Calibration, standing: JudgeStanding) -> str:
    """Return how well a judge agrees with people; ends with a line end."""
    agreement, measured = calibration.agreement, calibration.kappa
    consistent = "not measured" if calibration.consistency is None else percent(calibration.consistency)
    kappa = "undefined: all labels are the same"
    if measured is not None:
        kappa = f"{measured.value:.2f} ({measured.interval.low:.2f} to {measured.interval.high:.2f})"
    rows = [
        ["labels of people", f"{agreement.count}, {percent(agreement.base_rate)} of them pass"],
        ["agreement", percent(agreement.observed)],
        ["kappa", kappa],
        ["passes what people pass", _maybe(agreement.true_pass_rate)],
        ["fails what people fail", _maybe(agreement.true_fail_rate)],
        ["agrees with itself", f"{consistent}, {calibration.repeats} {pluralize('repeat', calibration.repeats)}"],
        ["no verdict", f"{calibration.no_verdicts} of {agreement.count * calibration.repeats}"],
    ]
    verdict = "It may fail cases" if standing.gates else "Its verdicts are advice"
    head = f"{one_line(name)} on {one_line(calibration.model)}"
    return "\n".join([head, *(f"  {line}" for line in table(rows)), f"{verdict}: {one_line(standing.reason)}."]) + "\n"


def dollars(amount: float | None) -> str:
    """Format money: cents, and more digits only for less than ten cents."""
    if amount is None:
        return "unknown"
    if amount == 0:
        return "$0"
    digits = 2 if amount >= 0.1 else min(8, 1 - math.floor(math.log10(amount)))
    return f"${amount:,.{digits}f}"


def percent(rate: float) -> str:
    """Format a rate. 99.96 % is not shown as all."""
    shown = f"{rate * 100:.1f}".removesuffix(".0")
    if shown == "100" and rate < 1:
        return "> 99.9 %"
    return "< 0.1 %" if shown == "0" and rate > 0 else f"{shown} %"


def _case(case: str, report: LiveReport, colour: bool) -> list[str]:
    scores = [score for score in report.scores if score.case == case]
    least, times = scores[0].passes, scores[0].repeats
    share = f", pass ≥ {percent(least)}" if least < 1 else ""
    header = ["status", "model", "passed", "95 %", f"pass^{times}", "tokens", "cost", "p50", "p95"]
    rows = [_row(score) for score in scores]
    right = frozenset({2, 4, 5, 6, 7, 8})
    lines = table(rows, header, right=right, style=lambda cell, column: _painted(cell, column == 0 and colour))
    out = [f"{short(case, _LONGEST)}{share}", *(f"  {line}" for line in lines)]
    for score in scores:
        out += [f"    {short(score.model, 60)}: {line}" for line in _remarks(score)]
    return out


def _row(score: Score) -> list[str]:
    return [
        score.status,
        short(score.model, 60),
        f"{score.passed}/{score.tried}",
        f"{score.interval.low * 100:.1f}–{score.interval.high * 100:.1f} %" if score.tried else "",
        "" if score.pass_all is None else percent(score.pass_all),
        f"{score.input_tokens:,}+{score.output_tokens:,}",
        dollars(score.cost),
        "" if score.seconds_half is None else duration(score.seconds_half),
        "" if score.seconds_most is None else duration(score.seconds_most),
    ]


def _remarks(score: Score) -> Iterator[str]:
    if score.stopped and score.tried:
        planned = score.stopped + score.tried + score.lost
        if score.complete:
            tries = f"{score.tried + score.lost:,} of {planned:,} tries"
            yield f"decided after {tries}: they exclude {percent(score.passes)}"
        else:
            yield f"incomplete: {score.stopped:,} of {planned:,} tries were not made"
    if score.lost:
        yield f"{score.lost} {pluralize('try', score.lost) if score.lost == 1 else 'tries'} lost: not counted"
    if score.status is Status.FLAKY:
        yield "note[TS152]: the same row passes at one time and fails at another"
    if score.undecided:
        yield f"note[TS151]: not decided: the interval holds {percent(score.passes)}"
    passed, failed, none = score.advice
    if passed or failed or none:
        yield f"advice of the judge: {passed} pass, {failed} fail, {none} without a verdict"
    yield from (short(problem, _LONGEST) for problem in score.problems)


def _notes(report: LiveReport) -> Iterator[str]:
    for judge in report.judges:
        name = f"judge {short(judge.judge, 80)} on {short(judge.model, 60)}"
        if judge.gates:
            yield f"{name} may fail cases: {one_line(judge.reason)}"
        else:
            yield f"warning[TS150]: {name} gives advice only: {one_line(judge.reason)}"
    for model, reason in report.given_up.items():
        yield f"{short(model, 60)} was given up: {short(reason, _LONGEST)}"
    for skipped in report.skipped:
        yield f"not tried: {short(skipped.case, 120)}: {short(skipped.reason, _LONGEST)}"


def _total(report: LiveReport) -> str:
    made = f"{report.made:,} of {report.planned:,} {'try' if report.planned == 1 else 'tries'}"
    spent = f"{dollars(report.spent)} spent"
    if report.unpriced:
        spent += f", and {report.unpriced:,} {pluralize('call', report.unpriced)} without a known price"
    if report.interrupted:
        return f"interrupted after {made}, {spent}"
    if report.budget_reached:
        return f"stopped: the budget of {dollars(report.budget)} is used up after {made}, {spent}"
    return f"{made}, {spent}"


def _painted(cell: str, coloured: bool) -> str:
    colour = next((colour for status, colour in _TERMINAL_COLOURS.items() if status == cell), None)
    return click.style(cell, fg=colour) if coloured and colour else cell


def _maybe(rate: float | None) -> str:
    return "no such labels" if rate is None else percent(rate)


_LABELS = 300
_PLOT = 420
_COUNTS = 130
_LINE = 26
_HEAD = 30
_TOP = 34
_GREY = "#59636e"
_BADGE_COLOURS = {
    Status.VERIFIED: "#1a7f37",
    Status.FLAKY: "#9a6700",
    Status.STALE: "#9a6700",
    Status.FAILING: "#cf222e",
    Status.UNVERIFIED: "#59636e",
}
_DARK = """
  svg { color-scheme: light dark; }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117; }
    .grid { stroke: #3d444d; }
    .share { stroke: #9198a1; }
    .verified { fill: #3fb950; stroke: #3fb950; }
    .flaky, .stale { fill: #d29922; stroke: #d29922; }
    .failing { fill: #f85149; stroke: #f85149; }
    .unverified { fill: #9198a1; stroke: #9198a1; }
    text { fill: #f0f6fc; }
    .axis, .count { fill: #9198a1; }
  }
"""


def live_svg(report: LiveReport) -> str:
    """Return the whole SVG file, with a final newline: a line for each case and model, with its rate and its interval.
    The share that has to pass is a dashed line."""
    return "\n".join(_file(report)) + "\n"


def _file(report: LiveReport) -> Iterator[str]:
    cases = list(dict.fromkeys(score.case for score in report.scores))
    height = _TOP + len(cases) * _HEAD + len(report.scores) * _LINE + 12
    width = _LABELS + _PLOT + _COUNTS
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="live" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="group" font-family="ui-sans-serif, system-ui, sans-serif" '
        'font-size="13" fill="#1f2328">'
    )
    yield "<title>Live test: rates with intervals of 95 %</title>"
    yield f"<style>{_DARK}</style>"
    yield f'<rect class="paper" fill="#ffffff" width="{width}" height="{height}"/>'
    for tenth in range(0, 101, 25):
        x = number(_x(tenth / 100))
        yield f'<line class="grid" stroke="#d1d9e0" x1="{x}" x2="{x}" y1="{_TOP - 8}" y2="{height - 12}"/>'
        yield f'<text class="axis" fill="{_GREY}" font-size="12" text-anchor="middle" x="{x}" y="18">{tenth} %</text>'
    top = _TOP
    for case in cases:
        scores = [score for score in report.scores if score.case == case]
        yield f'<text class="case" font-weight="600" x="12" y="{top + 20}">{printable(cut(case, 90))}</text>'
        top += _HEAD
        x = number(_x(scores[0].passes))
        bottom = top + len(scores) * _LINE
        yield (
            f'<line class="share" stroke="{_GREY}" stroke-dasharray="4 3" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}">'
            f"<title>has to pass: {percent(scores[0].passes)}</title></line>"
        )
        for score in scores:
            yield from _score(score, top + _LINE / 2)
            top += _LINE
    yield "</svg>"


def _score(score: Score, middle: float) -> Iterator[str]:
    y, colour = number(middle), _BADGE_COLOURS[score.status]
    low, high, rate = (number(_x(part)) for part in (score.interval.low, score.interval.high, score.rate))
    words = f"{score.model}: {score.passed} of {score.tried}, {score.status}"
    text = number(middle + 4)
    yield f'<g role="img"><title>{printable(words)}</title>'
    yield f'<text text-anchor="end" x="{_LABELS - 16}" y="{text}">{printable(cut(score.model, 40))}</text>'
    if score.tried:
        kind = f'class="{score.status}" stroke="{colour}"'
        yield f'<line {kind} stroke-width="3" stroke-linecap="round" x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>'
        yield f'<circle class="{score.status}" fill="{colour}" cx="{rate}" cy="{y}" r="6"/>'
    count = f"{score.passed}/{score.tried} {score.status}"
    yield f'<text class="count" fill="{_GREY}" font-size="12" x="{_LABELS + _PLOT + 16}" y="{text}">{count}</text></g>'


def _x(rate: float) -> float:
    return _LABELS + rate * _PLOT
