"""Every kind of step is complete: what a new kind must have, and the modules that must know what it is like.

CONTRIBUTING.md lists what to write for a kind. mypy finds the closed `match` statements that lack it, the tests of the
docs and of the grammars ask for its keys there, and these tests find the rest.
"""

from __future__ import annotations

from functools import cache
from typing import get_args

import pytest
from tests.analysis.test_counts import proven
from tests.docs.pages import blocks
from tests.documents import draw_scenario
from tests.documents.draw import Draw

from quire.display.outline_pipeline import pipeline_data
from quire.engine.interpreter.pipeline import interpret
from quire.engine.interpreter.pipeline.steps import RUNNERS
from quire.engine.progress import place_in_plan
from quire.expr import RESERVED
from quire.formats.pipeline.language import KINDS, Kind
from quire.formats.pipeline.language_words import KIND_MEANINGS, SNIPPETS, meaning
from quire.formats.pipeline.syntax import Body
from quire.library.document import read
from quire.plan.descriptions import instead_of_model, step_name
from quire.plan.nodes import Plan, Step
from quire.plan.pipeline_work import PipelineWork
from quire.runs.run_tree import ITEMS
from quire.runs.step_reads import _IN_BLOCK
from quire.source import Source

NODES: tuple[type[PipelineWork], ...] = get_args(PipelineWork)
SHELL = "pipeline: commands\nsteps:\n- shell: {command: [ls], output: files}\n"
"""The simulator has no sandbox, so its documents run no commands."""


@cache
def plans() -> tuple[Plan, ...]:
    """Generated documents with every kind of step."""
    drawn = [draw_scenario(Draw.seeded(seed), "dialect").files["simulated.yaml"] for seed in range(60)]
    documents = [read(Source.of(text, "drawn.yaml")).plan for text in (SHELL, *drawn)]
    return tuple(plan for plan in documents if plan is not None)


@cache
def steps() -> dict[str, Step]:
    """A step of each kind."""
    return {step.kind: step for plan in plans() for _, step in plan.steps()}


def test_every_node_and_every_body_has_a_row_and_a_runner() -> None:
    assert {kind.node for kind in KINDS} == set(NODES)
    assert set(NODES) <= set(RUNNERS), f"{interpret.__name__} lists the runners"
    assert [kind.body for kind in KINDS] == list(dict.fromkeys(kind.body for kind in KINDS))
    assert {kind.body for kind in KINDS} == set(get_args(Body))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_is_drawn_lowered_and_described(kind: Kind) -> None:
    step = steps()[kind.name]
    assert type(step.work) is kind.node
    assert step_name(step) not in ("", "agent", "tool")
    assert instead_of_model(step)
    assert any(f"{kind.name}:" in block.text for block in blocks("docs/reference/pipelines.md", "yaml"))


def test_every_kind_is_proven_and_outlined() -> None:
    for plan in plans():
        assert proven(plan).bound("model_calls")
        assert pipeline_data(plan, (), ())["steps"]
    assert set(steps()) == {kind.name for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_editor_has_words_for_every_kind_and_key(kind: Kind) -> None:
    assert KIND_MEANINGS[kind.name]
    assert [key.name for key in kind.keys if not meaning("body", kind.name, key.name)] == []
    assert [key.name for key in kind.keys if key.needed and key.name not in SNIPPETS] == []


def test_the_paths_of_inner_steps_are_known() -> None:
    words = {word for node in NODES for word in node.binds}
    assert [word for word in words - {"collect", "parallel"} if place_in_plan(f"1/{word}[7]/x") != f"1/{word}/x"] == []
    assert words - {"collect"} == ITEMS
    sharing = [step.work for step in steps().values() if step.work and step.work.shares_stores]
    paths = [f"1/{part}" for work in sharing for part, _ in work.parts()]
    assert paths and {_IN_BLOCK.sub("", path) for path in paths} == {"1"}
    # Rounds are counted from 1: `tree_model.js` of the page knows the word as well.
    assert words == {"collect", "fold", "for_each", "parallel", "repeat"}


def test_the_names_that_are_bound_are_known() -> None:
    names = {name for node in NODES for names in node.binds.values() for name in names}
    # `readable_names` of the interpreter must know what is not reserved: a prompt may refer to it.
    assert names - set(RESERVED) == {"errors", "round"}


def test_what_a_node_can_reach_is_known() -> None:
    def nodes_with(field: str) -> set[str]:
        return {node.__name__ for node in NODES if field in node.__struct_fields__}

    # `asked_models` of runs/start.py asks for the identities, `_unknown_name` of runs/preflight.py looks for schemas
    # and identities, and `_asks` of runs/options.py says which steps may ask a person.
    assert nodes_with("identity") == nodes_with("prompt") == {"Agent"}
    assert nodes_with("schema") == {"Agent", "Invoke"}
    assert nodes_with("tool") == {"Invoke"} and nodes_with("document") == {"Call"}
