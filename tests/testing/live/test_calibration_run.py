"""Calibrations from the file of the judge to the result beside it: budgets, and models that cannot be asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.given import given
from tests.models.conftest import Stub, stub

from quire.errors import CannotStart, LimitReached
from quire.testing.case_rows import BadRows
from quire.testing.live.calibration import stored_calibration
from quire.testing.live.live_run import calibration_plan, run_calibration

__all__ = ["stub"]

PASS = '{"reason": "x", "verdict": "pass"}'


@pytest.fixture
def judge(here: Path, home: Path) -> Path:
    home.mkdir()
    labels = [{"text": str(place), "label": "fail" if place % 2 else "pass"} for place in range(10)]
    given({"x.judge.yaml": "rubric: Pass.\n", "x.labels.jsonl": "\n".join(map(json.dumps, labels))})
    return here / "x.judge.yaml"


def _script(judge: Path, price: float = 0.0) -> str:
    (judge.parent / "s.json").write_text(json.dumps([{"default": PASS, "usage": {"output_tokens": 100}}]))
    text = f'[models.prices."script:s.json"]\ninput = 0.0\noutput = {price}\n'
    (judge.parent / "home" / "quire.toml").write_text(text)
    return "script:s.json"


def test_a_judge_that_passes_everything(judge: Path) -> None:
    plan = calibration_plan(judge, judge_model=_script(judge))
    assert (plan.announcement.calls, plan.announcement.bound) == (30, 0.0)
    found, standing = run_calibration(plan)
    assert (found.agreement.both_pass, found.agreement.only_judge, found.consistency) == (5, 5, 1.0)
    assert found.kappa is not None and found.kappa.value == 0.0
    assert not standing.gates
    assert stored_calibration(judge) == found


def test_the_budget_holds(judge: Path) -> None:
    """A call may cost 800 tokens of a dollar each, and costs 100: after seven of them the next does not fit."""
    plan = calibration_plan(judge, judge_model=_script(judge, 1_000_000.0), budget=1_500.0)
    with pytest.raises(LimitReached, match=r"the budget of \$1500 is used up"):
        run_calibration(plan)
    assert stored_calibration(judge) is None


def test_a_model_that_cannot_be_asked_leaves_nothing(judge: Path, stub: Stub) -> None:
    stub.behaviours = [stub.refuse(401)]
    with pytest.raises(CannotStart, match="the judge cannot be asked"):
        run_calibration(calibration_plan(judge, judge_model=stub.spec))
    assert stored_calibration(judge) is None
    assert len(stub.requests) < 10


def test_mistakes(judge: Path) -> None:
    with pytest.raises(CannotStart, match="names no model"):
        calibration_plan(judge)
    with pytest.raises(CannotStart, match="is not a judge"):
        calibration_plan(judge.with_name("s.json"), judge_model="a:b")
    judge.with_name("x.labels.jsonl").write_text('{"text": "a"}\n')
    with pytest.raises(BadRows, match="line 1: label is pass or fail"):
        calibration_plan(judge, judge_model=_script(judge))
    judge.with_name("x.labels.jsonl").unlink()
    with pytest.raises(BadRows, match="does not exist"):
        calibration_plan(judge, judge_model=_script(judge))
