"""Declared inputs of pipelines that other documents, programs, agents and clients start."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.given import given

import quire
from quire.errors import BadInputs
from quire.values import Value

CALLEE = """\
pipeline: greet
dialect: quire
input:
  name: {type: string, max_length: 5}
  tone: {type: enum, values: [warm, dry], default: dry}
steps:
  - transform: {value: "[name, tone]"}
"""
PLAYBOOK = """# Calls

## INPUTS

- `who` (string): Who

## STEP 1: Greet

@tool(quire, greet, {"name": "{{who}}"})
"""


@pytest.fixture(autouse=True)
def callee(here: Path) -> None:
    given({"pipelines/greet.yaml": CALLEE})


def caller(step: str) -> str:
    return f"pipeline: caller\nsteps:\n  - {step}\n"


@pytest.mark.parametrize(
    ("step", "value"),
    [
        ("call: {pipeline: greet, pass: [name]}", ["Ann", "dry"]),
        ("call: {pipeline: greet, pass: {name: name, tone: \"'warm'\"}}", ["Ann", "warm"]),
        ("call: {pipeline: greet, pass: {name: name, tone: \"get(ctx, 'x')\"}}", ["Ann", "dry"]),
        ("match: {on: name, cases: {Ann: {pipeline: greet, pass: [name]}}}", ["Ann", "dry"]),
    ],
)
async def test_a_call_gets_defaults(step: str, value: Value) -> None:
    result = await quire.run(caller(step), inputs={"name": "Ann"})
    assert result.value == value


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ("call: {pipeline: greet}", "missing input name (string (at most 5 characters))"),
        ("call: {pipeline: greet, pass: {name: '3'}}", "input name must be text, not 3"),
        (
            "match: {on: name, cases: {Ann: {pipeline: greet, pass: {nam: name, tone: \"'x'\"}}}}",
            "unknown input nam (did you mean name?); missing input name (string (at most 5 characters)); "
            'input tone must be one of "warm", "dry", not "x"',
        ),
    ],
)
async def test_a_wrong_call_fails_its_step(step: str, problem: str) -> None:
    result = await quire.run(caller(step), inputs={"name": "Ann"})
    assert result.steps == {"1": "failed"}
    assert f"greet cannot be called so: {problem}" in result.error


async def test_a_playbook_calls_with_the_declared_types() -> None:
    result = await quire.run(PLAYBOOK, inputs={"who": "Ann"})
    assert result.output == '["Ann","dry"]'
    failed = await quire.run(PLAYBOOK, inputs={"who": "Annabel"})
    assert "input name must have at most 5 characters, not 7" in failed.error


async def test_programs_are_told_everything_at_once() -> None:
    with pytest.raises(BadInputs) as caught:
        await quire.run("greet", inputs={"name": 3, "tune": "x"})
    assert caught.value.inputs == {
        "tune": "unknown input tune (did you mean tone?)",
        "name": "input name must be text, not 3",
    }
    result = await quire.run("greet", inputs={"name": "Ann"})
    assert (result.value, result.stores) == (["Ann", "dry"], {"name": "Ann", "tone": "dry"})


async def test_a_name_that_javascript_knows_is_a_name() -> None:
    text = CALLEE.replace("name: {", "__proto__: {").replace("[name,", "[ctx.__proto__,")
    result = await quire.run(text, inputs={"__proto__": "Ann"})
    assert result.value == ["Ann", "dry"]
