"""What an agent is left of its profile's tools when its step names some: names, other names, and patterns."""

from __future__ import annotations

import pytest

from quire.engine.interpreter.callees import Environment, Profile
from quire.engine.interpreter.pipeline.agent import narrowed_tools
from quire.engine.interpreter.pipeline.steps import PipelineScope, run_step
from quire.engine.requests import Offer
from quire.formats.pipeline.lower import lower
from quire.formats.pipeline.parse import parse
from quire.source import Source


@pytest.mark.parametrize(
    ("step", "profile", "left"),
    [
        (["file__glob"], ["file__g*"], ["file__glob"]),
        (["file__glob", "file__read"], ["file__g*"], ["file__glob"]),
        (["file__g*"], ["file__glob", "file__read"], ["file__glob"]),
        (["file__*"], ["file__g*"], ["file__g*"]),
        (["file__g*"], ["file__*"], ["file__g*"]),
        (["*"], ["shell", "docs__*"], ["shell", "docs__*"]),
        (["shell"], ["*"], ["shell"]),
        (["rye/file-system/glob"], ["file__g*"], ["rye/file-system/glob"]),
        (["file__glob"], ["rye/file-system/*"], ["file__glob"]),
        (["shell"], ["rye/bash"], ["shell"]),
        (["docs__search"], ["docs/*"], ["docs__search"]),
        (["docs/search"], ["docs__*"], ["docs/search"]),
        (["mcp/docs/search"], ["docs__search"], ["mcp/docs/search"]),
        (["my.docs__search"], ["my.docs/*"], ["my.docs__search"]),
        (["file__read"], ["file__g*"], []),
        (["*__g*"], ["file__*"], []),
        (["file__g?ob"], ["file__glob"], []),
        (["file__glob"], ["file__g?ob"], []),
        ([], ["*"], []),
        (["a", "a"], ["a", "*"], ["a"]),
    ],
)
def test_never_more_than_either(step: list[str], profile: list[str], left: list[str]) -> None:
    assert list(narrowed_tools(step, profile)) == left


def test_what_is_left_is_what_is_offered() -> None:
    text = "pipeline: p\nsteps:\n- agent: {prompt: a, capabilities: {tools: [file__glob, shell]}}"
    file = parse(Source.of(text)).file
    assert file is not None
    plan = lower(file, file.pipelines[0])
    setting = Environment(profiles={"default": Profile(tools=("file__g*",))})
    walk = run_step(plan.body.steps[0], "1", PipelineScope(setting, plan, {}))
    asked = next(request for request in walk if isinstance(request, Offer))
    assert asked.names == ("file__glob",)
