"""Calibrations: labels of people, what is measured, what is kept, and when a judge may fail a case."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from quire.engine.records import Usage
from quire.errors import LimitReached
from quire.testing.case_rows import BadRows
from quire.testing.live.calibration import (
    Calibration,
    Label,
    calibrate,
    calibration_path,
    labels_path,
    read_labels,
    standing_of,
    store_calibration,
    stored_calibration,
)
from quire.testing.live.judges import Example, Judge, Judgement
from quire.testing.live.statistics import Agreement

JUDGE = Judge("tone", "Pass if it is friendly.", "", ("output",), (Example("Bread.", "fail"),))
GOOD = Calibration(JUDGE.hash, "a:b", "labels", Agreement(40, 1, 1, 40), 3, 0.99)


def _labels(folder: Path, *lines: object) -> Path:
    path = labels_path(folder / "tone.judge.yaml")
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return path


def test_labels(tmp_path: Path) -> None:
    path = _labels(tmp_path, {"text": "Hi.", "label": "pass"}, {"text": "No.", "label": "fail", "by": "ada"})
    assert path.name == "tone.labels.jsonl"
    assert read_labels(JUDGE, path) == [Label((("output", "Hi."),), "pass", 1), Label((("output", "No."),), "fail", 2)]
    pair = replace(JUDGE, reads=("inputs.doc", "output"))
    path = _labels(tmp_path, {"text": {"output": {"a": 1}, "inputs.doc": "d"}, "label": "pass"})
    assert read_labels(pair, path) == [Label((("inputs.doc", "d"), ("output", '{"a":1}')), "pass", 1)]


def test_labels_that_are_refused(tmp_path: Path) -> None:
    path = _labels(
        tmp_path,
        {"text": "Hi.", "label": "good"},
        {"text": "Hi.", "label": "pass"},
        {"text": "Hi.", "label": "fail"},
        {"text": "Bread.", "label": "fail"},
        {"text": {"output": 3, "more": 4}, "label": "fail"},
    )
    with pytest.raises(BadRows) as caught:
        read_labels(JUDGE, path)
    assert [(one.line, one.message) for one in caught.value.problems] == [
        (1, "label is pass or fail"),
        (3, "this text is also in line 2"),
        (4, "this text is also an example of the judge"),
        (5, "text is a text, as the judge reads it"),
    ]


async def test_measuring() -> None:
    """Texts 0 to 5 are passed by people, 6 to 9 not. The judge fails 0, passes 9, says nothing about 1, and wavers
    about 2."""
    labels = [Label((("output", str(place)),), "pass" if place < 6 else "fail") for place in range(10)]
    asked: list[str] = []
    seen: list[int] = []

    async def ask(parts: object) -> Judgement:
        text = parts[0][1]  # type: ignore[index]
        asked.append(text)
        first = asked.count(text) == 1
        if text == "1":
            return Judgement(None, "", Usage(1, 1, 0.1))
        passes = {"0": False, "9": True, "2": first}.get(text, int(text) < 6)
        return Judgement("pass" if passes else "fail", "", Usage(1, 1, 0.1))

    found = await calibrate(JUDGE, "a:b", labels, ask, repeats=3, on_judged=lambda done, usage: seen.append(done))
    assert found.agreement == Agreement(both_pass=4, only_judge=1, only_person=2, both_fail=3)
    assert found.no_verdicts == 3
    assert found.consistency == pytest.approx(28 / 30)  # two of the three pairs of text 2 differ
    assert (found.rubric, found.model, found.repeats) == (JUDGE.hash, "a:b", 3)
    assert seen == list(range(1, 31))


async def test_measuring_can_be_stopped() -> None:
    labels = [Label((("output", str(place)),), "pass") for place in range(10)]
    asked = 0

    async def ask(parts: object) -> Judgement:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        return Judgement("pass")

    def stop(done: int, usage: Usage) -> None:
        if done == 3:
            raise LimitReached("budget")

    with pytest.raises(ExceptionGroup):
        await calibrate(JUDGE, "a:b", labels, ask, on_judged=stop)
    assert asked < 10


def test_storing(tmp_path: Path) -> None:
    judge = tmp_path / "tone.judge.yaml"
    assert stored_calibration(judge) is None
    path = store_calibration(judge, GOOD)
    assert path == calibration_path(judge) == tmp_path / "tone.calibration.json"
    assert stored_calibration(judge) == GOOD
    assert json.loads(path.read_text())["shown"]["labels_of_people"] == 82


@pytest.mark.parametrize(
    "change",
    [
        lambda kept: "no JSON",
        lambda kept: "[" * 90_000,
        lambda kept: json.dumps({**kept, "format": 2}),
        lambda kept: json.dumps({**kept, "agreement": {**kept["agreement"], "both_pass": -1}}),
        lambda kept: json.dumps({**kept, "agreement": {**kept["agreement"], "both_pass": 1e9}}),
        lambda kept: json.dumps({key: value for key, value in kept.items() if key != "rubric"}),
        lambda kept: "\0",
    ],
)
def test_a_file_that_is_not_a_calibration_is_none(tmp_path: Path, change: object) -> None:
    judge = tmp_path / "tone.judge.yaml"
    path = store_calibration(judge, GOOD)
    path.write_text(change(json.loads(path.read_text())))  # type: ignore[operator]
    assert stored_calibration(judge) is None


@pytest.mark.parametrize(
    ("found", "gates", "reason"),
    [
        (GOOD, True, "kappa is 0.95, and at least 0.83"),
        (None, False, "it was never compared with people"),
        (replace(GOOD, rubric="other"), False, "it changed since it was compared with people"),
        (replace(GOOD, model="c:d"), False, "it was compared with people on c:d, not on a:b"),
        (
            replace(GOOD, agreement=Agreement(24, 0, 0, 25)),
            False,
            "it was compared with 49 labels of people; 50 are needed",
        ),
        (replace(GOOD, agreement=Agreement(25, 0, 0, 25)), True, "kappa is 1.00, and at least 0.86"),
        (replace(GOOD, agreement=Agreement(60, 0, 0, 0)), False, "all labels are the same, so agreement says nothing"),
        (
            replace(GOOD, agreement=Agreement(58, 0, 0, 2)),
            False,
            "kappa is 1.00, but may be as low as 0.07; 0.6 is needed",
        ),
        (
            replace(GOOD, agreement=Agreement(30, 8, 6, 30)),
            False,
            "kappa is 0.62, but may be as low as 0.41; 0.6 is needed",
        ),
    ],
)
def test_a_judge_gates_only_when_it_was_measured_and_is_good(
    found: Calibration | None, gates: bool, reason: str
) -> None:
    standing = standing_of(JUDGE, "a:b", found)
    assert (standing.gates, standing.reason) == (gates, reason)
