"""The outline of pipelines: blocks are lists of steps, each under its own label."""

from __future__ import annotations

import click
from tests.engine.test_pipeline import plan

from quire.display.outline_pipeline import pipeline_outline

TEXT = """\
pipeline: p
dialect: quire
steps:
- steps: [{transform: {value: '1'}}, {transform: {value: pipe + 1}}]
- match:
    on: pipe
    cases:
      "2": {steps: [{transform: {value: '2'}}]}
    default: {steps: [{transform: {value: '3'}}, {transform: {value: '4'}}]}
"""


def test_the_steps_of_a_block_follow_each_other() -> None:
    lines = [click.unstyle(line).strip() for line in pipeline_outline(plan(TEXT), (), ())]
    shown = lines[lines.index("steps") + 1 :]
    assert shown == [
        "1  Block",
        "1.1  Compute",
        "is 1",
        "1.2  Compute",
        "is pipe + 1",
        "2  Choose",
        "on pipe",
        "2: step 2.2.1",
        "otherwise: steps 2.default.1 to 2.default.2",
        "2.2.1  Compute",
        "is 2",
        "2.default.1  Compute",
        "is 3",
        "2.default.2  Compute",
        "is 4",
    ]
