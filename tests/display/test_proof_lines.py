"""Numbers of a proof as they are printed: rounded up, with units."""

from __future__ import annotations

import pytest
from tests.analysis.rules.rule_cases import findings_of, proof_of

from quire.analysis.amounts import Reason, duration, endless, money, number, short_number, size, total
from quire.analysis.approvals import gates_of
from quire.analysis.assumptions import assumptions_of
from quire.analysis.quantities import Ceiling, Quantity
from quire.display.proof import Footnotes, Seen, bound_lines, gate_lines, proven_text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1 K"),
        (1001, "1.1 K"),
        (409_600, "410 K"),
        (3_100_000, "3.1 M"),
        (99_999, "100 K"),
    ],
)
def test_numbers_are_rounded_up(count: int, text: str) -> None:
    assert short_number(count) == text


@pytest.mark.parametrize(
    ("picodollars", "text"),
    [(0, "$0.00"), (1, "$0.0001"), (10**10, "$0.01"), (10**10 + 1, "$0.02"), (5_800_000_000_000, "$5.80")],
)
def test_money_is_rounded_up(picodollars: int, text: str) -> None:
    assert money(picodollars) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"), [(0, "0 s"), (1, "1 s"), (119_001, "2 min"), (7_140_001, "2 h"), (10**9, "12 days")]
)
def test_times_are_rounded_up(milliseconds: int, text: str) -> None:
    assert duration(milliseconds) == text


CASES = [
    (Quantity("model_calls", "count", 2, number(2)), "2", []),
    (Quantity("model_calls", "count", 0, size("|x|")), "0 to |x|", []),
    (
        Quantity("model_calls", "count", 0, size("|x|"), ceiling=Ceiling(100, "a cap")),
        "0 to |x|, stopped at 100 [1]",
        ["[1] a cap"],
    ),
    (Quantity("tool_calls", "count", 0, endless(Reason("nothing limits it"))), "∞ [1]", ["[1] nothing limits it"]),
    (
        Quantity("tool_calls", "count", 0, endless(Reason("nothing limits it", "max_items: 9"))),
        "∞ [1]",
        ["[1] nothing limits it; bound it with max_items: 9"],
    ),
    (Quantity("money", "picodollars", unpriced=("m: no price",)), "unpriced [1]", ["[1] m: no price"]),
    (Quantity("money", "picodollars", 0, number(0)), "free", []),
    (
        Quantity("money", "picodollars", 0, size("|x|"), ceiling=Ceiling(10**12, "100 calls")),
        "≤ $1.00 [1]",
        ["[1] 100 calls"],
    ),
]


@pytest.mark.parametrize(("one", "text", "notes"), CASES)
def test_a_proven_number(one: Quantity, text: str, notes: list[str]) -> None:
    footnotes = Footnotes()
    assert proven_text(one, footnotes) == text
    assert footnotes.lines() == notes


def test_of_a_long_formula_the_beginning_is_printed() -> None:
    most = total(size(f"|a{at:02}|") for at in range(40)).plus(number(7))
    text = proven_text(Quantity("model_calls", "count", 1, most), Footnotes())
    assert text == "1 to |a00| + |a01| + |a02| + |a03| + |a04| + |a05| + … (35 more, see --json)"


def test_the_three_columns() -> None:
    calls = Quantity("model_calls", "count", 0, size("|x|").times(number(3)))
    lines = list(bound_lines([calls], assumptions_of({}, ["x=20"]), Seen(31, {"model_calls": 41.0})))
    assert [line.split() for line in lines[2:]] == [
        ["proven", "x=20", "seen", "in", "31", "runs", "(95", "of", "100)"],
        ["model", "calls", "0", "to", "3·|x|", "~", "60", "41"],
    ]


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("seen == 'a'", "no question before it, and a model (1) decides whether"),
        ("page.status == 200", "no question before it, and http__get of step 2 decides whether"),
        ("ctx.go == 'a'", "no question before it"),
    ],
)
def test_a_gate_says_who_decides(when: str, words: str) -> None:
    """real-work M6: of a constant command, `show` says it, and no rule reports it."""
    text = (
        "pipeline: p\ndialect: quire\nsteps:\n- agent: {prompt: Look, capabilities: {tools: []}, output: seen}\n"
        '- tool: {name: http__get, args: {url: "https://example.org"}, output: page}\n'
        f"- shell: {{command: [make, all], stdin: '', when: \"{when}\"}}\n"
    )
    (line,) = [one for one in gate_lines(gates_of(proof_of(text))) if "shell" in one]
    assert line.endswith(f"write, elevated  {words}")
    assert findings_of("approvals", text) == findings_of("flows", text) == []
