"""Documents of every format, made of decisions: any list of numbers is one.

Those of `FORMATS` are for the simulator; sizes, calls across formats and limits add the others for proofs. `marked` and
`gated` draw documents for the proofs about values from outside and about questions before effects.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.documents.dialect import draw_dialect
from tests.documents.directive import draw_directive
from tests.documents.draw import Draw
from tests.documents.mixed import draw_mixed
from tests.documents.pipeline import draw_pipeline
from tests.documents.playbook import draw_playbook
from tests.documents.sized import draw_sized
from tests.documents.threads import draw_threads
from tests.simulator.scenario import Scenario

FORMATS = {
    "playbook": draw_playbook,
    "pipeline": draw_pipeline,
    "directive": draw_directive,
    "dialect": draw_dialect,
}
DOCUMENTS: dict[str, Callable[[Draw], Scenario]] = {
    **FORMATS,
    "sized": draw_sized,
    "mixed": draw_mixed,
    "threads": draw_threads,
}


def draw_scenario(draw: Draw, format: str = "") -> Scenario:
    names = list(FORMATS)
    chosen = draw.fixed(names.index(format)) if format else draw.below(len(names))
    return FORMATS[names[chosen]](draw)
