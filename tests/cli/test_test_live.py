"""`quire test --live`, `--calibrate` and `--status`: what is said before paying, what is printed, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke
from tests.cli.test_test import DOCUMENT
from tests.given import given

from quire.cli.test import command

TEST = """\
cases:
  - name: teas
    matrix: {kind: [sencha, assam]}
    model: {"1": "Leaves."}
    expect: {output: {contains: leaves}}
    live: {}
"""
JUDGE = "rubric: Pass if it is polite.\n"


@pytest.fixture(autouse=True)
def tests(workspace: Path) -> Path:
    (workspace / "tea.playbook.md").write_text(DOCUMENT)
    (workspace / "tea.test.yaml").write_text(TEST)
    (workspace / "good.json").write_text('[{"default": "Green leaves."}]')
    (workspace / "bad.json").write_text('[{"default": "Water."}]')
    return workspace


def _free(home: Path, *specs: str) -> None:
    """Give models a price of nothing, so that no budget is needed."""
    given({"quire.toml": "".join(f'[models.prices."{spec}"]\ninput = 0.0\noutput = 0.0\n' for spec in specs)}, home)


@pytest.fixture
def priced(home: Path) -> Path:
    _free(home, "script:good.json", "script:bad.json", "script:judge.json")
    return home


def test_paying_needs_a_budget_where_no_terminal_is(invoke: Invoke) -> None:
    result = invoke(command, "--live", "--model", "script:good.json")
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "PAID: 2 rows × 1 model × 1 = 2 calls, no bound: the price of script:good.json is not known",
        "error: without a terminal a paid test needs --budget USD",
    ]


def test_a_table_and_its_exit_codes(invoke: Invoke, priced: Path) -> None:
    good = invoke(command, "--live", "--model", "script:good.json")
    assert (good.exit_code, good.stdout.splitlines()[2].split()[:3]) == (0, ["verified", "script:good.json", "2/2"])
    bad = invoke(command, "--live", "--model", "script:good.json", "--model", "script:bad.json")
    assert bad.exit_code == 1
    assert "failing   script:bad.json" in bad.stdout
    assert "not decided: about" in bad.stdout
    spent = invoke(command, "--live", "--model", "script:good.json", "--budget", "1", "--repeat", "2")
    assert spent.exit_code == 0 and "4 of 4 tries, $0 spent" in spent.stdout


def test_a_budget_that_is_reached(invoke: Invoke, priced: Path) -> None:
    (priced / "quire.toml").write_text('[models.prices."script:good.json"]\ninput = 0.0\noutput = 1.0\n')
    result = invoke(command, "--live", "--model", "script:good.json", "--budget", "0.001")
    assert result.exit_code == 5
    assert result.stdout.splitlines()[-1].startswith("stopped: the budget of $0.0010 is used up")


def test_json_baseline_and_chart(invoke: Invoke, priced: Path, tests: Path) -> None:
    result = invoke(command, "--live", "--model", "script:bad.json", "--json", "--chart", "chart.svg")
    value = json.loads(result.stdout)
    assert (result.exit_code, value["models"], value["made"]) == (1, ["script:bad.json"], 2)
    assert (tests / "chart.svg").read_text().startswith("<svg")
    (tests / "baseline.json").write_text(result.stdout)
    later = invoke(command, "--live", "--model", "script:good.json", "--baseline", "baseline.json")
    assert "script:bad.json (baseline) 0 %, script:good.json 100 %" in later.stdout


def test_standings(invoke: Invoke, priced: Path) -> None:
    assert invoke(command, "--status").stdout.splitlines()[1].split() == ["unverified", "tea.test.yaml:", "teas"]
    invoke(command, "--live", "--model", "script:good.json")
    result = invoke(command, "--status")
    assert (result.exit_code, result.stdout.splitlines()[1].split()[:2]) == (0, ["verified", "tea.test.yaml:"])
    value = json.loads(invoke(command, "--status", "--json").stdout)
    assert (value["status"], value["receipt"]["passed"], value["changed"]) == ("verified", 2, [])


def test_a_calibration(invoke: Invoke, priced: Path, tests: Path) -> None:
    (tests / "tone.judge.yaml").write_text(JUDGE)
    labels = [
        {"text": f"{'kind' if place % 2 else 'rude'} {place}", "label": "pass" if place % 2 else "fail"}
        for place in range(60)
    ]
    (tests / "tone.labels.jsonl").write_text("\n".join(map(json.dumps, labels)))
    verdicts = [
        {"contains": f"| {word} ", "reply": json.dumps({"reason": word, "verdict": verdict})}
        for word, verdict in (("kind", "pass"), ("rude", "fail"))
    ]
    (tests / "judge.json").write_text(json.dumps(verdicts))
    result = invoke(command, "--calibrate", "tone.judge.yaml", "--judge-model", "script:judge.json")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == ["PAID: 60 rows × 1 model × 3 = 180 calls, ≤ $0 (bound)"]
    assert result.stdout.splitlines()[-1] == "It may fail cases: kappa is 1.00, and at least 0.88."
    kept = json.loads((tests / "tone.calibration.json").read_text())
    assert (kept["model"], kept["agreement"]["both_pass"], kept["consistency"]) == ("script:judge.json", 30, 1.0)
    result = invoke(command, "--calibrate", "tone.judge.yaml", "--judge-model", "script:judge.json", "--json")
    assert (json.loads(result.stdout)["kappa"], json.loads(result.stdout)["gates"]) == (1.0, True)
    given({"few.jsonl": "\n".join(map(json.dumps, labels[:20]))}, tests)
    result = invoke(
        command, "--calibrate", "tone.judge.yaml", "--judge-model", "script:judge.json", "--each", "few.jsonl"
    )
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1].startswith("Its verdicts are advice: it was compared with 20 labels")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "script:good.json"], "--model is for tests on real models: add --live"),
        (["--judge-model", "a:b"], "--judge-model is for tests on real models: add --live"),
        (["--live", "--junit", "x.xml"], "--live and --junit exclude each other"),
        (["--status", "--cov"], "--status and --cov exclude each other"),
        (["--live", "--budget", "nan"], "'nan' is not a finite number"),
        (["--live", "--repeat", "0"], "0 is not in the range"),
        (["--calibrate", "tea.test.yaml"], "tea.test.yaml is not a judge: its name ends in .judge.yaml"),
        (["--live", "--model", "script:good.json", "-k", "nothing"], "no case has live terms"),
        (["--live", "--model", "script:good.json", "--baseline", "none.json", "--budget", "0"], "is not known"),
    ],
)
def test_mistakes(invoke: Invoke, arguments: list[str], message: str) -> None:
    result = invoke(command, *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.splitlines())
