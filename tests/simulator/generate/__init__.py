"""Documents of every format, made of decisions: any list of numbers is one."""

from __future__ import annotations

from tests.simulator.draw import Draw
from tests.simulator.generate.dialect import draw_dialect
from tests.simulator.generate.directive import draw_directive
from tests.simulator.generate.pipeline import draw_pipeline
from tests.simulator.generate.playbook import draw_playbook
from tests.simulator.scenario import Scenario

FORMATS = {
    "playbook": draw_playbook,
    "pipeline": draw_pipeline,
    "directive": draw_directive,
    "dialect": draw_dialect,
}


def draw_scenario(draw: Draw, format: str = "") -> Scenario:
    names = list(FORMATS)
    chosen = draw.fixed(names.index(format)) if format else draw.below(len(names))
    return FORMATS[names[chosen]](draw)
