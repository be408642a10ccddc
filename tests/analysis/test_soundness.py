"""Drawn documents in hard worlds: nothing happens more often than proven. `python -m tests.analysis.explore` does the
same for as many seeds as one likes."""

from __future__ import annotations

import pytest
from tests.analysis.explore import explore_seed
from tests.depth import depth
from tests.documents import DOCUMENTS

from quire.analysis import pipeline_calls
from quire.analysis.amounts import NOTHING
from quire.analysis.costs import Cost

SEEDS = {"directive": depth(4, 60)}


@pytest.mark.parametrize("format", DOCUMENTS)
def test_what_happens_was_proven(format: str) -> None:
    tallies = [explore_seed(seed, format) for seed in range(SEEDS.get(format, depth(40, 1_000)))]
    assert [(one.seed, one.problems) for one in tallies if one.problems] == []
    assert sum(one.counts["completed"] for one in tallies) > 5
    assert sum(one.counts["model_calls"] for one in tallies) > 20


@pytest.mark.parametrize("format", ["pipeline", "sized", "threads"])
def test_a_proof_that_is_low_is_found(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries and turns that are left out of the sum are noticed."""
    repeated = Cost.times
    monkeypatch.setattr(Cost, "times", lambda self, often, least, span_of=None: repeated(self, often.divided(2), least))
    count = Cost.count
    monkeypatch.setattr(Cost, "count", lambda self, kind, most, least=0: count(self, kind, most // 2, least))
    assert any(explore_seed(seed, format).problems for seed in range(40))


def test_a_prompt_that_is_measured_low_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = pipeline_calls.prompt_of
    monkeypatch.setattr(pipeline_calls, "prompt_of", lambda prompt, scope: (NOTHING, measured(prompt, scope)[1]))
    problems = [one for seed in range(40) for one in explore_seed(seed, "pipeline").problems]
    assert any("input_tokens" in one for one in problems)
