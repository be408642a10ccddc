"""`quire show`: bounds as formulas, what is assumed, the arithmetic, and wrong options."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke

from quire.cli.show import command

BOARD = """
pipeline: board
steps:
  - for_each:
      over: ctx.readers
      on_error: retry(1)
      do: {agent: {prompt: "Judge as {item}", capabilities: {tools: []}}}
      collect: {transform: {value: pipe}}
  - agent: {prompt: "Sum up {pipe}", capabilities: {tools: []}}
"""


@pytest.fixture
def board(workspace: Path) -> str:
    (workspace / "board.yaml").write_text(BOARD)
    return "board.yaml"


def test_a_formula_with_the_names_of_the_author(invoke: Invoke, board: str) -> None:
    assert invoke(command, board).stdout.startswith("≤ 2·|readers| + 1 calls, stopped at 100 · unpriced\n")
    assert "1 to 2·|readers| + 1, stopped at 100 [1]" in invoke(command, board, "--bounds").stdout


def test_assumed_sizes(invoke: Invoke, board: str) -> None:
    lines = invoke(command, board, "--assume", "readers=20").stdout.splitlines()
    calls = next(line for line in lines if line.startswith("  model calls"))
    assert calls.endswith("~ 41")


def test_an_assumed_size_of_another_document_is_left_out(invoke: Invoke, board: str, workspace: Path) -> None:
    (workspace / "quire.toml").write_text("[assume]\nreaders = 20\nnosuch = 3\n")
    result = invoke(command, board, "--bounds")
    assert result.exit_code == 0 and "nosuch" not in result.output
    assert result.stdout.count("readers=20") == 1


def test_a_cap_is_not_a_bound(invoke: Invoke, workspace: Path) -> None:
    (workspace / "calls.yaml").write_text("pipeline: calls\nsteps:\n  - call: {pipeline: gone}\n")
    lines = invoke(command, "calls.yaml", "--bounds").stdout.splitlines()
    calls = next(line for line in lines if line.startswith("  model calls"))
    assert calls.split(maxsplit=2)[2] == "∞ [1], stopped at 100 [2]"
    assert "  [2] [safety.spawn] max_pipeline_spawns = 100: a run stops there" in lines


def test_the_arithmetic(invoke: Invoke, board: str) -> None:
    lines = [line.split() for line in invoke(command, board, "--why", "model_calls").stdout.splitlines()]
    assert ["step", "1.do", "asks", "the", "model", "1", "×", "2·|readers|"] in lines
    assert ["step", "2", "asks", "the", "model", "1"] in lines


def test_the_arithmetic_of_tokens_and_money(invoke: Invoke, board: str) -> None:
    home = Path(os.environ["QUIRE_HOME"])
    home.mkdir(exist_ok=True)
    (home / "quire.toml").write_text('[models.prices."ollama:a"]\ninput = 3.0\noutput = 15.0\n')
    read = " ".join(invoke(command, board, "--why", "input_tokens").stdout.split())
    assert "a token for each byte, and what the service adds (‖readers[]‖ + 1.1 K) × 2·|readers|" in read
    assert "step 2 reads up to the window of its model in 1 call ∞" in read
    paid = " ".join(invoke(command, board, "--why", "money", "--model", "ollama:a").stdout.split())
    assert "writes up to 16,384 tokens a call 16,384 × $15/M × 2·|readers|" in paid
    assert "step 2 writes up to 16,384 tokens a call 16,384 × $15/M = $0.25" in paid
    options = ["--why", "money", "--model", "ollama:a", "--json"]
    found = json.loads(invoke(command, board, *options).stdout)["proof"]["why"]
    assert found["money"][-1] == {
        "step": "2",
        "what": "writes up to 16,384 tokens a call",
        "each": "245,760,000,000",
        "often": "1",
        "unit": "picodollars",
        "words": "16,384 × $15/M = $0.25",
        "in_arm": False,
    }


def test_the_same_for_programs(invoke: Invoke, board: str) -> None:
    found = json.loads(invoke(command, board, "--assume", "readers=20", "--json").stdout)["proof"]
    calls = found["numbers"]["model_calls"]
    assert (calls["formula"], calls["most"], calls["least"]) == ("2·|readers| + 1", 100, 1)
    assert calls["estimate"] == 41
    assert found["numbers"]["money"]["most"] is None
    assert found["numbers"]["money"]["unpriced"]
    assert found["assumed"] == {"|readers|": 20}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--assume", "readers"], "NAME=NUMBER"),
        (["--assume", "reader=20"], "did you mean |readers|"),
        (["--assume", "readers=20", "--assume", "readers=21"], "readers"),
        (["--assume-from-runs"], "no run of this document"),
        (["--why", "modelcalls"], "did you mean model_calls"),
        (["--why", "--graph", "svg"], "are for the bounds"),
    ],
)
def test_wrong_options_are_one_line(invoke: Invoke, board: str, options: list[str], told: str) -> None:
    result = invoke(command, board, *options)
    assert result.exit_code == 2
    assert told in result.stderr
