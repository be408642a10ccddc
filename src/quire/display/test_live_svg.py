"""Draw the scores of a live test as an SVG picture: one line for each case and model, with its rate and its interval.

Shapes and texts only, as in `flowchart_svg`: no script, no link, nothing that is fetched. The share that has to pass is
a dashed line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.display.flowchart_svg import number, printable
from quire.display.test_live import percent
from quire.testing.live.tries import Status
from quire.wording import cut

if TYPE_CHECKING:
    from quire.testing.live.tries import LiveReport, Score

_LABELS = 300
_PLOT = 420
_COUNTS = 130
_LINE = 26
_HEAD = 30
_TOP = 34
_GREY = "#59636e"
_COLOURS = {
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


def live_svg(report: LiveReport, *, dark: bool = True) -> str:
    """Return the whole SVG file, with a final newline. `dark` adds the style of dark mode."""
    return "\n".join(_file(report, dark)) + "\n"


def _file(report: LiveReport, dark: bool) -> Iterator[str]:
    cases = list(dict.fromkeys(one.case for one in report.scores))
    height = _TOP + len(cases) * _HEAD + len(report.scores) * _LINE + 12
    width = _LABELS + _PLOT + _COUNTS
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="live" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="group" font-family="ui-sans-serif, system-ui, sans-serif" '
        'font-size="13" fill="#1f2328">'
    )
    yield "<title>Live test: rates with intervals of 95 %</title>"
    if dark:
        yield f"<style>{_DARK}</style>"
    yield f'<rect class="paper" fill="#ffffff" width="{width}" height="{height}"/>'
    for tenth in range(0, 101, 25):
        x = number(_x(tenth / 100))
        yield f'<line class="grid" stroke="#d1d9e0" x1="{x}" x2="{x}" y1="{_TOP - 8}" y2="{height - 12}"/>'
        yield f'<text class="axis" fill="{_GREY}" font-size="12" text-anchor="middle" x="{x}" y="18">{tenth} %</text>'
    top = _TOP
    for case in cases:
        scores = [one for one in report.scores if one.case == case]
        yield f'<text class="case" font-weight="600" x="12" y="{top + 20}">{printable(cut(case, 90))}</text>'
        top += _HEAD
        x = number(_x(scores[0].passes))
        bottom = top + len(scores) * _LINE
        yield (
            f'<line class="share" stroke="{_GREY}" stroke-dasharray="4 3" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}">'
            f"<title>has to pass: {percent(scores[0].passes)}</title></line>"
        )
        for one in scores:
            yield from _score(one, top + _LINE / 2)
            top += _LINE
    yield "</svg>"


def _score(one: Score, middle: float) -> Iterator[str]:
    y, colour = number(middle), _COLOURS[one.status]
    low, high, rate = (number(_x(part)) for part in (one.interval.low, one.interval.high, one.rate))
    words = f"{one.model}: {one.passed} of {one.tried}, {one.status}"
    text = number(middle + 4)
    yield f'<g role="img"><title>{printable(words)}</title>'
    yield f'<text text-anchor="end" x="{_LABELS - 16}" y="{text}">{printable(cut(one.model, 40))}</text>'
    if one.tried:
        kind = f'class="{one.status}" stroke="{colour}"'
        yield f'<line {kind} stroke-width="3" stroke-linecap="round" x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>'
        yield f'<circle class="{one.status}" fill="{colour}" cx="{rate}" cy="{y}" r="6"/>'
    count = f"{one.passed}/{one.tried} {one.status}"
    yield f'<text class="count" fill="{_GREY}" font-size="12" x="{_LABELS + _PLOT + 16}" y="{text}">{count}</text></g>'


def _x(rate: float) -> float:
    return _LABELS + rate * _PLOT
