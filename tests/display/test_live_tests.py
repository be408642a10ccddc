"""Live tests as people, programs and pages see them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from msgspec.structs import replace

from quire.display.test_live import (
    announcement_line,
    calibration_text,
    dollars,
    live_svg,
    pair_sentence,
    percent,
    report_json,
    report_text,
    standings_text,
)
from quire.display.text import visible
from quire.errors import CannotStart
from quire.testing.live.calibration import Calibration, standing_of
from quire.testing.live.judges import Judge
from quire.testing.live.plan import Announcement, CaseForecast, announce
from quire.testing.live.receipts import Receipt, Standing
from quire.testing.live.schedule import Terms
from quire.testing.live.statistics import Agreement, Comparison
from quire.testing.live.tries import (
    Attempt,
    Ending,
    JudgeNote,
    LiveReport,
    Pair,
    Score,
    Skipped,
    Status,
    Try,
    pairs,
    read_report,
    score,
    with_baseline,
)

CASE = "board.test.yaml: rows"


def _score(
    model: str, rows: list[str], passes: float | None = 0.9, case: str = CASE, planned: int | None = None
) -> Score:
    endings: dict[str, Ending] = {"p": "passed", "f": "failed", "l": "lost"}
    tries = [
        Try(
            Attempt(case, f"row {place}", model, repeat),
            endings[letter],
            ("output: it does not contain “bread”",) if letter == "f" else (),
            1.5 + place / 10,
            1,
            120,
            30,
            0.002,
        )
        for place, row in enumerate(rows, 1)
        for repeat, letter in enumerate(row)
    ]
    return score(case, model, tries, passes=passes, repeats=len(rows[0]), planned=planned)


def _report() -> LiveReport:
    scores = (
        _score("anthropic:claude-haiku-5-5", ["ppp"] * 19 + ["ppf"]),
        _score("local:qwen.gguf", ["fpf", "fff", "ffl"], planned=60),
        _score("anthropic:claude-haiku-5-5", ["p"], None, "board.test.yaml: greets"),
        _score("local:qwen.gguf", ["f"], None, "board.test.yaml: greets"),
    )
    return LiveReport(
        ("anthropic:claude-haiku-5-5", "local:qwen.gguf"),
        scores,
        tuple(pairs(scores)),
        (),
        (JudgeNote("tone", "openai:gpt-6.1-sol", False, "it was never compared with people"),),
        (Skipped("board.test.yaml: then", "it acts on a run that rests"),),
        {},
        122,
        71,
        0.1402,
    )


def test_a_report() -> None:
    assert report_text(_report()) == snapshot("""\
board.test.yaml: rows, pass ≥ 90 %
  status    model                       passed  95 %         pass^3       tokens    cost   p50   p95
  verified  anthropic:claude-haiku-5-5   59/60  91.0–99.7 %    95 %  7,200+1,800   $0.12  2.5s  3.4s
  flaky     local:qwen.gguf                1/8  2.2–47.4 %      0 %    1,080+270  $0.018  1.7s  1.8s
    anthropic:claude-haiku-5-5: output: it does not contain “bread”
    local:qwen.gguf: decided after 9 of 60 tries: they exclude 90 %
    local:qwen.gguf: 1 try lost: not counted
    local:qwen.gguf: note[TS152]: the same row passes at one time and fails at another
    local:qwen.gguf: output: it does not contain “bread” (7 times)

board.test.yaml: greets
  status    model                       passed  95 %          pass^1  tokens     cost   p50   p95
  verified  anthropic:claude-haiku-5-5     1/1  20.7–100.0 %   100 %  120+30  $0.0020  1.6s  1.6s
  failing   local:qwen.gguf                0/1  0.0–79.3 %       0 %  120+30  $0.0020  1.6s  1.6s
    local:qwen.gguf: output: it does not contain “bread”

Compared by rows
  anthropic:claude-haiku-5-5 100 %, local:qwen.gguf 8.3 % (4 to 0 of 4 rows, p = 0.125)
    not decided: about 2 more rows would decide a difference of 100 points

warning[TS150]: judge tone on openai:gpt-6.1-sol gives advice only: it was never compared with people
not tried: board.test.yaml: then: it acts on a run that rests

71 of 122 tries, $0.14 spent
""")


def test_a_report_has_colours_only_where_they_are_wanted() -> None:
    assert "\x1b[32mverified" in report_text(_report(), colour=True)
    assert "\x1b" not in report_text(_report())


def test_how_a_test_ended() -> None:
    report = replace(_report(), budget=0.14, budget_reached=True, unpriced=1)
    assert report.exit_code == 5
    assert report_text(report).splitlines()[-1] == snapshot(
        "stopped: the budget of $0.14 is used up after 71 of 122 tries, $0.14 spent, and 1 call without a known price"
    )
    assert report_text(replace(_report(), interrupted=True)).splitlines()[-1] == snapshot(
        "interrupted after 71 of 122 tries, $0.14 spent"
    )
    assert _report().exit_code == 1
    assert replace(_report(), scores=_report().scores[:1]).exit_code == 0


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [
        (
            Comparison(40, 2, 9, 0.6, 0.775),
            snapshot(
                "a:one 60 %, b:two 77.5 % (2 to 9 of 40 rows, p = 0.065): not decided: about 31 more rows would "
                "decide a difference of 18 points"
            ),
        ),
        (
            Comparison(40, 1, 12, 0.6, 0.875),
            snapshot("a:one 60 %, b:two 87.5 % (1 to 12 of 40 rows, p = 0.003): b:two is better"),
        ),
        (
            Comparison(100, 5, 5, 0.6, 0.6),
            snapshot(
                "a:one 60 %, b:two 60 % (5 to 5 of 100 rows, p = 1.000): not decided: about 240 more rows would "
                "decide a difference of 5 points"
            ),
        ),
        (
            Comparison(5_000, 600, 610, 0.6, 0.602),
            snapshot(
                "a:one 60 %, b:two 60.2 % (600 to 610 of 5000 rows, p = 0.796): not decided: "
                "a difference of 5 points would probably have shown"
            ),
        ),
        (Comparison(0, 0, 0, 0.0, 0.0), snapshot("a:one and b:two: no row was tried on both")),
        (
            Comparison(900, 10, 400, 0.1, 0.9),
            snapshot("a:one 10 %, b:two 90 % (10 to 400 of 900 rows, p < 0.001): b:two is better"),
        ),
    ],
)
def test_sentences_about_two_models(comparison: Comparison, expected: str) -> None:
    assert pair_sentence(Pair("a:one", "b:two", comparison)) == expected


FORECASTS = [CaseForecast("rows", model, 1, 0.0068, "", 0.0022) for model in ("a", "b", "c")]


def test_the_line_before_paying() -> None:
    terms = [Terms("rows", tuple(map(str, range(40))), 5, 0.9)]
    assert announcement_line(announce(terms, "abc", FORECASTS, None)) == snapshot(
        "PAID: 40 rows × 3 models × 5 = 600 calls, ≤ $4.08 (bound), about $1.32 (seen)"
    )
    several = [replace(one, calls=3, judge_calls=1, judge_cost=0.001) for one in FORECASTS]
    assert announcement_line(announce(terms, "abc", several, 2.0)) == snapshot(
        "PAID: 40 rows × 3 models × 5 = 600 runs, ≤ 1,800 calls and 600 of judges, ≤ $4.68 (bound), about "
        "$1.32 (seen), budget $2.00"
    )
    unknown = [
        *FORECASTS[:2],
        replace(FORECASTS[2], calls=None, cost=None, why="the price of c is not known", seen=None),
    ]
    assert announcement_line(announce(terms, "abc", unknown, None)) == snapshot(
        "PAID: 40 rows × 3 models × 5 = 600 runs, without a bound on calls, no bound: the price of c is not known"
    )
    mixed = [*terms, Terms("greets")]
    more = [*FORECASTS, *(replace(one, case="greets") for one in FORECASTS)]
    assert announcement_line(announce(mixed, "abc", more, None)) == snapshot(
        "PAID: 41 rows × 3 models × 1 to 5 = 603 calls, ≤ $4.10 (bound), about $1.33 (seen)"
    )
    one = announce([Terms("rows")], ["a"], [CaseForecast("rows", "a", 1, 0.0, "", None)], None)
    assert announcement_line(one) == snapshot("PAID: 1 row × 1 model × 1 = 1 call, ≤ $0 (bound)")


def test_no_tries_are_announced_as_none() -> None:
    assert announce([], [], [], None) == Announcement(0, (), (0, 0), 0, 0, 0, 0.0, "", 0.0)


@pytest.mark.parametrize(
    ("amount", "shown"),
    [(None, "unknown"), (0, "$0"), (1234.5, "$1,234.50"), (0.41, "$0.41"), (0.0142, "$0.014"), (0.00002, "$0.000020")],
)
def test_dollars(amount: float | None, shown: str) -> None:
    assert dollars(amount) == shown


@pytest.mark.parametrize(
    ("rate", "shown"),
    [(1.0, "100 %"), (0.9996, "> 99.9 %"), (0.5, "50 %"), (0.905, "90.5 %"), (0.0001, "< 0.1 %"), (0.0, "0 %")],
)
def test_percent(rate: float, shown: str) -> None:
    assert percent(rate) == shown


def test_standings() -> None:
    receipt = Receipt("x.test.yaml", "rows", "a:b", "plan", "test", Status.VERIFIED, 9, 10, 1000.0)
    listed = [
        Standing("x.test.yaml", "rows", "a:b", Status.VERIFIED, receipt),
        Standing("x.test.yaml", "rows", "c:d", Status.STALE, receipt, ("document", "test")),
        Standing("x.test.yaml", "new", "", Status.UNVERIFIED),
    ]
    assert standings_text(listed, 8200.0) == snapshot("""\
status      case               model  passed  measured
verified    x.test.yaml: rows  a:b      9/10  2h ago
stale       x.test.yaml: rows  c:d      9/10  2h ago    document and test changed
unverified  x.test.yaml: new
""")
    assert standings_text([], 0.0) == "no case has live terms\n"


def test_a_calibration() -> None:
    judge = Judge("tone", "Pass.", "")
    found = Calibration(judge.hash, "a:b", "labels", Agreement(38, 3, 2, 17), 3, 0.9667, 4)
    assert calibration_text("judges/tone.judge.yaml", found, standing_of(judge, "a:b", found)) == snapshot("""\
judges/tone.judge.yaml on a:b
  labels of people         60, 66.7 % of them pass
  agreement                91.7 %
  kappa                    0.81 (0.59 to 0.97)
  passes what people pass  95 %
  fails what people fail   85 %
  agrees with itself       96.7 %, 3 repeats
  no verdict               4 of 180
Its verdicts are advice: kappa is 0.81, but may be as low as 0.59; 0.6 is needed.
""")
    same = replace(found, agreement=Agreement(50, 0, 0, 0), repeats=1, consistency=None)
    assert calibration_text("tone", same, standing_of(judge, "a:b", same)) == snapshot("""\
tone on a:b
  labels of people         50, 100 % of them pass
  agreement                100 %
  kappa                    undefined: all labels are the same
  passes what people pass  100 %
  fails what people fail   no such labels
  agrees with itself       not measured, 1 repeat
  no verdict               4 of 50
Its verdicts are advice: all labels are the same, so agreement says nothing.
""")


def test_a_report_is_read_again_as_a_baseline(tmp_path: Path) -> None:
    report = _report()
    path = tmp_path / "baseline.json"
    path.write_text(report_json(report))
    earlier = read_report(path)
    assert earlier.scores == report.scores
    same = with_baseline(report.scores, earlier)
    assert [(one.first, one.second, one.comparison.rows) for one in same] == [
        ("anthropic:claude-haiku-5-5 (baseline)", "anthropic:claude-haiku-5-5", 21),
        ("local:qwen.gguf (baseline)", "local:qwen.gguf", 4),
    ]
    assert all(one.comparison.p == 1 for one in same)
    other = [replace(one, model="c:new") for one in report.scores[:1]]
    assert with_baseline(other, earlier) == ()
    single = replace(earlier, models=("local:qwen.gguf",))
    assert [one.first for one in with_baseline(other, single)] == ["local:qwen.gguf (baseline)"]


@pytest.mark.parametrize("text", ["no", "{}", "[" * 90_000, '{"models": [], "scores": [], "format": 2}'])
def test_a_file_that_is_not_a_report(tmp_path: Path, text: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(text)
    with pytest.raises(CannotStart, match="report"):
        read_report(path)


def test_json_says_what_is_not_decided() -> None:
    value = json.loads(report_json(_report()))
    assert value["pairs"][0]["decided"] is False
    assert value["pairs"][0]["more_rows"] >= 1
    assert value["scores"][0]["interval"]["low"] < 1


def test_a_picture() -> None:
    picture = live_svg(_report())
    root = ElementTree.fromstring(picture)
    texts = [part.text for part in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "59/60 verified" in texts and "board.test.yaml: greets" in texts
    assert len(list(root.iter("{http://www.w3.org/2000/svg}circle"))) == 4
    for part in root.iter():
        assert {"x1", "x2"}.isdisjoint(part.attrib) or 300 <= float(part.attrib["x1"]) <= float(
            part.attrib["x2"]
        ) <= 720


@given(st.text(min_size=1))
def test_no_name_is_anything_but_text(name: str) -> None:
    report = replace(
        _report(), scores=tuple(replace(one, case=name, model=name) for one in _report().scores[:1]), pairs=()
    )
    assert ElementTree.fromstring(live_svg(report)) is not None
    text = report_text(replace(report, given_up={name: name}, skipped=(Skipped(name, name),)))
    assert visible(text) == text
