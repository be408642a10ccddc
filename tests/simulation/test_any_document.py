"""Documents and faults that hypothesis comes up with, and makes smaller where they find something."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.depth import depth
from tests.documents import FORMATS, draw_scenario
from tests.documents.draw import Draw
from tests.simulator.case import simulate
from tests.simulator.faults import draw_faults


@pytest.mark.parametrize("format", FORMATS)
def test_any_document_under_any_faults(format: str) -> None:
    @settings(max_examples=depth(6, 12), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def tried(data: st.DataObject) -> None:
        draw = Draw(lambda count: data.draw(st.integers(0, count - 1)))
        scenario = draw_scenario(draw, format)
        faults = draw_faults(draw)
        verdict = simulate(scenario, faults, draw.below(1000), attended=draw.chance(25), slow=draw.chance(30))
        assert not verdict.problems, (verdict.problems, verdict.trace, dict(scenario.files), faults)

    tried()
