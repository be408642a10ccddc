"""Mutants of documents that a simulator draws: each differs, each has a name of its own, and each can be walked."""

from __future__ import annotations

import pytest
from tests.depth import depth
from tests.documents import FORMATS, draw_scenario
from tests.documents.draw import Draw
from tests.testing.scripted import Scripted, plan_of, start_of, walked
from tests.walks.answers import WalkLimits

from quire.engine.records import Status
from quire.errors import BadDocument
from quire.source import Source
from quire.testing.mutation.mutants import mutants

SEEDS = depth(8, 200)
LIMITS = WalkLimits(pure_work=500_000, max_effects=200)


@pytest.mark.parametrize("format", FORMATS)
def test_any_document(format: str) -> None:
    made = 0
    for seed in range(SEEDS):
        scenario = draw_scenario(Draw.seeded(f"mutants-{seed}"), format)
        text = scenario.files[scenario.document]
        try:
            plan = plan_of(text)
        except (AssertionError, BadDocument):
            continue  # a file of several pipelines
        found = mutants(plan, Source.of(text))
        assert len({one.id for one in found}) == len(found), scenario.name
        for mutant in found:
            made += 1
            assert mutant.plan != plan, mutant.id
            assert 0 <= mutant.span.start <= mutant.span.end <= len(text), mutant.id
            assert "\n" not in mutant.kill.expectation(), mutant.id
            answers = Scripted(people=dict.fromkeys(map(str, range(20)), "yes"))
            end = walked(start_of(text, scenario.inputs, plan=mutant.plan), answers, LIMITS)
            assert end.status in (Status.COMPLETED, Status.FAILED, Status.AWAITING_INPUT), mutant.id
    assert made > 10
