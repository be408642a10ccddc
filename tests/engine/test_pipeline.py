"""Pipelines on the engine: values, paths, fans and resumes, with real documents and a real database."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from tests.engine.house import House

from quire.engine.driver.drive import DriveResult
from quire.engine.driver.walker import DriveLimits
from quire.engine.interpreter.callees import Environment, Profile
from quire.engine.interpreter.pipeline.interpret import interpret_pipeline
from quire.engine.interpreter.pipeline.steps import RUNNERS, PipelineScope
from quire.engine.progress import place_in_plan
from quire.engine.records import Status
from quire.engine.requests import ToolRequest, Walk
from quire.errors import StepFailed
from quire.library.document import read
from quire.plan.nodes import Plan, Step
from quire.plan.parts import binds
from quire.plan.pipeline_work import PipelineWork, Transform
from quire.source import Source
from quire.values import MAX_DEPTH, Value


def plan(text: str) -> Plan:
    document = read(Source.of(text, "test.yaml"))
    assert document.plan is not None, document.diagnostics
    return document.plan


def walk(text: str, ctx: dict[str, Value] | None = None, **setting: object) -> Walk:
    return interpret_pipeline(plan(text), ctx or {}, Environment(**setting))  # type: ignore[arg-type]


def output(ended: DriveResult) -> Value:
    assert ended.status is Status.COMPLETED, ended.failure
    assert isinstance(ended.result, dict)
    return ended.result["output"]


def failing(*tools: str) -> object:
    def act(request: ToolRequest) -> Value:
        if request.tool in tools or request.arguments.get("i") in tools:
            raise StepFailed(f"{request.tool} is down")
        return request.arguments.get("i", request.tool)

    return act


FAN = """
pipeline: p
steps:
- for_each: {over: ctx.l, on_error: %s, max_parallel: 2, do: {tool: {name: t, args: {i: !expr item}}},
    collect: {transform: {value: "{ok: pipe, bad: map(errors, e -> e.index)}"}}}
"""


@pytest.mark.parametrize(
    ("text", "ctx", "expected"),
    [
        (
            'pipeline: p\nsteps:\n- transform: {value: "ctx.n + 1", output: m}\n- transform: {value: "[m, pipe]"}',
            {"n": 1},
            [2, 2],
        ),
        (
            "pipeline: p\nsteps:\n"
            '- fold: {items: [1, 2, 3], init: "10", do: {transform: {value: "acc + item"}}, output: t}',
            {},
            16,
        ),
        (
            'pipeline: p\nsteps:\n- parallel: {branches: {a: {transform: {value: "1"}}, b: {transform: {value: "2"}}},'
            ' collect: {transform: {value: "[a, b, count(pipe.a + [])]"}}}',
            {},
            None,
        ),
        (FAN % "continue", {"l": ["x", "y"]}, {"ok": ["x", "y"], "bad": []}),
        (
            "pipeline: p\nsteps:\n- transform: {value: ctx, output: before}\n"
            '- transform: {value: "1", output: b}\n- transform: {value: before}',
            {"k": 0},
            {"k": 0},
        ),
        (
            "pipeline: p\nsteps:\n"
            '- fold: {items: [1, 2], init: "0", do: {transform: {value: "{c: ctx}", output: s}}, output: t}',
            {},
            {"c": {"s": {"c": {}}}},
        ),
    ],
)
async def test_values_flow(house: House, text: str, ctx: dict[str, Value], expected: Value) -> None:
    house.tools.act = failing()  # type: ignore[assignment]
    ended = await house.drive(walk(text, ctx))
    if expected is None:
        assert ended.failure is not None
        assert ended.failure.kind == "expression"
    else:
        assert output(ended) == expected


async def test_a_drop_is_final_and_told_to_collect(house: House) -> None:
    house.tools.act = failing("b")  # type: ignore[assignment]
    assert output(await house.drive(walk(FAN % "continue", {"l": ["a", "b", "c"]}))) == {"ok": ["a", "c"], "bad": [1]}


async def test_every_failure_of_an_aborted_fan_is_performed_again(house: House) -> None:
    house.tools.act = failing("a", "b")  # type: ignore[assignment]
    ended = await house.drive(walk(FAN % "abort", {"l": ["a", "b"]}))
    assert ended.status is Status.FAILED
    row = await house.store.get(house.run)
    assert row is not None
    assert set(row.ended_by) <= {"1/for_each[0]/tool", "1/for_each[1]/tool"}
    house.tools.act = failing()  # type: ignore[assignment]
    assert output(await house.drive(walk(FAN % "abort", {"l": ["a", "b"]}))) == {"ok": ["a", "b"], "bad": []}


async def test_attempts_have_paths_of_their_own(house: House) -> None:
    house.tools.act = failing("a")  # type: ignore[assignment]
    ended = await house.drive(walk(FAN % '"retry(2)"', {"l": ["a"]}))
    assert ended.status is Status.FAILED
    assert await house.paths() == [f"1/for_each[0]/try[{n}]/tool" for n in (1, 2, 3)]
    house.tools.act = failing()  # type: ignore[assignment]
    house.tools.calls.clear()
    assert output(await house.drive(walk(FAN % '"retry(2)"', {"l": ["a"]}))) == {"ok": ["a"], "bad": []}
    assert len(house.tools.calls) == 1


async def test_a_callee_sees_what_is_passed_and_its_path_leads_through_the_call(house: House) -> None:
    callee = plan("pipeline: sub\nsteps:\n- tool: {name: t, args: {i: !expr ctx.x, p: !expr pipe}}")
    text = 'pipeline: p\nsteps:\n- transform: {value: "7"}\n- call: {pipeline: sub, pass: {x: "pipe + 1"}}'
    house.tools.act = lambda request: dict(request.arguments)
    assert output(await house.drive(walk(text, documents={"sub": callee}))) == {"i": 8, "p": 7}
    assert await house.paths() == ["2/call/1/tool"]


async def test_an_agent_is_held_to_its_schema_and_told_what_is_wrong(house: House) -> None:
    text = """
schema: S
fields: {ok: {type: bool}}
---
pipeline: p
steps:
- agent: {prompt: "go {ctx.x}", schema: S, output: r}
"""
    house.model.replies["go 1"] = 'Well. {"ok": "yes"}'
    house.model.reply_default = '{"ok": true}'
    ended = await house.drive(walk(text, {"x": 1}))
    assert output(ended) == {"ok": True}
    assert await house.paths() == ["1/model", "1/model/repair[1]"]
    assert "ok" in house.model.calls[1].messages[-1].content


async def test_too_many_calls_end_the_run_at_the_step_of_the_call(house: House) -> None:
    text = "pipeline: p\nsteps:\n- agent: {prompt: a}\n- agent: {prompt: b}"
    ended = await house.drive(walk(text), DriveLimits(max_model_calls=1))
    assert ended.failure is not None
    assert ended.failure.kind == "too_many_calls"
    assert "max_pipeline_spawns" in ended.failure.message
    row = await house.store.get(house.run)
    assert row is not None and row.ended_by == ("2/model",)
    assert [event.path for event in house.events if event.type == "step_failed"] == ["2"]
    assert house.model.asked() == ["a"]
    assert output(await house.drive(walk(text), DriveLimits(max_model_calls=2))) == "reply to b"


_ITEM = 'agent: {prompt: "{item}"}'
_COLLECT = "{transform: {value: pipe}}"
_FAN = f"for_each: {{items: [1, 2, 3, 4, 5, 6], on_error: %s, do: {{%s}}, collect: {_COLLECT}}}"
_BRANCHES = ", ".join(f"b{n}: {{agent: {{prompt: '{n}'}}}}" for n in range(1, 7))
_SURVIVING = {
    "continue": _FAN % ("continue", _ITEM),
    "retry": _FAN % ('"retry(3)"', _ITEM),
    "default": f"parallel: {{on_error: continue, default: \"'no'\", collect: {_COLLECT}, branches: {{{_BRANCHES}}}}}",
    "guard": _FAN % ("abort", "agent: {prompt: '{item}', on_error: 'retry(1), continue', default: \"'no'\"}"),
    "time": _FAN % ("continue", "agent: {prompt: '{item}', timeout: 1m}"),
    "callee": _FAN % ("continue", "call: {pipeline: sub, pass: {x: item}}"),
}


@pytest.mark.parametrize("policy", _SURVIVING)
async def test_no_policy_survives_a_limit_of_the_run(house: House, policy: str) -> None:
    """Law 14: results are kept, calls under way are recorded, and a resume makes only the calls that are missing."""
    text = f"pipeline: p\ndialect: quire\nsteps:\n- {_SURVIVING[policy]}"
    documents = {"sub": plan('pipeline: sub\nsteps:\n- agent: {prompt: "{ctx.x}"}')}
    ended = await house.drive(walk(text, documents=documents), DriveLimits(max_model_calls=4))
    assert (ended.status, ended.failure and ended.failure.kind) == (Status.FAILED, "too_many_calls")
    assert len(house.model.calls) == 4
    assert sum(path.endswith("/model") for path in await house.paths()) == 4
    done: Any = output(await house.drive(walk(text, documents=documents), DriveLimits()))
    assert list(done.values() if isinstance(done, dict) else done) == [f"reply to {n}" for n in range(1, 7)]
    assert len(house.model.calls) == 6


async def test_a_limit_that_a_policy_survived_in_an_old_journal_stays_survived(house: House) -> None:
    """0.1.0 recorded the refusal as a failure of the item."""
    text = f"pipeline: p\nsteps:\n- {_SURVIVING['continue']}\n- tool: {{name: t, args: {{i: !expr pipe}}}}"
    house.model.replies["3"] = StepFailed("the run has made the 2 model calls", kind="too_many_calls")
    house.tools.act = failing("t")  # type: ignore[assignment]
    assert (await house.drive(walk(text))).status is Status.FAILED
    house.tools.act = failing()  # type: ignore[assignment]
    assert len(output(await house.drive(walk(text), DriveLimits(max_model_calls=5)))) == 5  # type: ignore[arg-type]


async def test_an_agent_uses_only_what_profile_and_step_leave(house: House) -> None:
    text = "pipeline: p\nsteps:\n- agent: {prompt: a, capabilities: {tools: [look, rm]}}"
    house.tools.offered = {"look": "Looks."}
    profiles = {"default": Profile(tools=("look", "write"))}
    house.model.uses["a"] = [("look", {"q": 1}), ("rm", {})]
    house.model.reply_default = "done"
    ended = await house.drive(walk(text, profiles=profiles))
    assert output(ended) == "done"
    assert house.tools.names() == ["look"]
    told = [message.content for message in house.model.calls[1].messages if message.role == "tool"]
    assert told[0] == '"did look"'
    assert "there is no tool rm" in told[1]
    assert await house.paths() == ["1/model", "1/offer", "1/turn[1]/tool[0]", "1/turn[2]/model"]


async def test_an_unknown_identity_fails_before_the_model_is_asked(house: House) -> None:
    ended = await house.drive(walk("pipeline: p\nsteps:\n- agent: {prompt: a, identity: ghost}"))
    assert ended.failure is not None
    assert "ghost" in ended.failure.message
    assert house.model.calls == []


@pytest.mark.parametrize("rules", [1, 2])
async def test_a_number_among_the_words_of_a_command_is_a_word(house: House, rules: int) -> None:
    """G17: a short hash that has only digits. A run of 0.1.0 keeps failing there, as its journal says."""
    text = """pipeline: p\nsteps:\n- shell: {command: !expr "['git', 'show', ctx.commit, 1.5]"}"""
    ended = await house.drive(walk(text, {"commit": 1234567}, rules=rules))
    assert ended.status is (Status.COMPLETED if rules > 1 else Status.FAILED)
    if rules > 1:
        assert house.tools.calls[-1][1]["command"] == ["git", "show", "1234567", "1.5"]


@pytest.mark.parametrize(
    ("command", "ok"),
    [('"echo hi"', True), ("[echo, hi]", True), ("!expr \"['echo', 'hi']\"", True), ("!expr \"'echo hi'\"", False)],
)
async def test_a_command_that_is_computed_meets_no_shell(house: House, command: str, ok: bool) -> None:
    ended = await house.drive(walk(f"pipeline: p\nsteps:\n- shell: {{command: {command}}}"))
    assert (ended.status is Status.COMPLETED) == ok
    assert len(house.tools.calls) == ok


async def test_depth_is_counted_through_calls(house: House) -> None:
    each = "- for_each: {{items: [1], on_error: abort, do: {do}, collect: {{transform: {{value: pipe}}}}}}"
    inner = plan("pipeline: inner\nsteps:\n" + each.format(do="{transform: {value: item}}"))
    text = "pipeline: p\nsteps:\n" + each.format(do="{call: {pipeline: inner}}")
    assert output(await house.drive(walk(text, documents={"inner": inner}, fan_out_depth=2))) == [[1]]
    house.run = "run-2"
    await house.create()
    ended = await house.drive(walk(text, documents={"inner": inner}, fan_out_depth=1))
    assert ended.failure is not None
    assert "max_pipeline_fan_out_depth" in ended.failure.message


@pytest.mark.parametrize(("length", "ok"), [(100, True), (101, False), (1000, False)])
async def test_a_chain_of_calls_has_a_length(house: House, length: int, ok: bool) -> None:
    documents = {f"d{n}": plan(f"pipeline: d{n}\nsteps:\n- call: {{pipeline: d{n + 1}}}") for n in range(1, length)}
    documents[f"d{length}"] = plan("pipeline: last\nsteps:\n- transform: {value: '5'}")
    ended = await house.drive(walk("pipeline: p\nsteps:\n- call: {pipeline: d1}", documents=documents))
    if ok:
        assert output(ended) == 5
    else:
        assert ended.failure is not None
        assert ended.failure.kind == "depth"


async def test_an_answer_that_does_not_fit_its_schema_is_asked_for_again(house: House) -> None:
    text = """
schema: S
fields: {a: {type: number}}
---
pipeline: p
steps:
- tool: {name: ask, args: {prompt: x}, schema: S}
"""
    house.people.given = {"1": ["seven"]}
    assert (await house.drive(walk(text))).status is Status.FAILED
    row = await house.store.get(house.run)
    assert row is not None
    assert row.ended_by == ("1/ask",)
    assert (await house.drive(walk(text))).status is Status.AWAITING_INPUT


async def test_what_is_nested_too_deep_for_a_command_fails_its_step(house: House) -> None:
    deep: Value = 1
    for _ in range(MAX_DEPTH):
        deep = [deep]
    house.tools.act = lambda request: deep
    each = "{items: [1], on_error: abort, do: {tool: {name: t, args: {}}}, collect: {shell: {command: cat}}}"
    ended = await house.drive(walk(f"pipeline: p\nsteps:\n- for_each: {each}"))
    assert ended.failure is not None
    assert ended.failure.kind == "arguments"


def test_every_kind_of_step_can_be_run() -> None:
    # The coverage of document tests adds kinds of its own, which watch those of the plan.
    plain = {kind for kind in RUNNERS if kind.__module__.startswith("quire.plan.")}
    assert plain == set(get_args(PipelineWork))


@pytest.mark.parametrize(
    "work",
    [
        'fold: {items: [1], init: "0", do: {transform: {value: acc}}, output: t}',
        "for_each: {items: [1], on_error: abort, do: {transform: {value: item}}, collect: {transform: {value: pipe}}}",
        'parallel: {branches: {a: {transform: {value: "1"}}, b: {transform: {value: "2"}}}, on_error: abort,'
        " collect: {transform: {value: pipe}}}",
        'repeat: {do: {transform: {value: round}}, until: "true", max: 1}',
        'steps: [{transform: {value: "1"}}]',
        'match: {on: "\'x\'", cases: {x: {steps: [{transform: {value: "1"}}]}}}',
    ],
    ids=lambda text: text.partition(":")[0],
)
async def test_a_kind_binds_the_names_that_its_steps_see(
    house: House, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, set[str]] = {}
    run = RUNNERS[Transform]

    def watch(step: Step, work: Transform, path: str, frame: PipelineScope) -> Walk:
        seen[place_in_plan(path)] = {*frame.bound, *frame.near, *(["pipe"] if frame.pipe is not None else [])}
        return run(step, work, path, frame)

    monkeypatch.setitem(RUNNERS, Transform, watch)
    text = f"pipeline: p\ndialect: quire\nsteps:\n- {work}\n"
    assert (await house.drive(walk(text))).status is Status.COMPLETED
    (step,) = plan(text).body.steps
    assert step.work is not None
    assert seen == {f"1/{part}": binds(step.work, part) for part, _ in step.work.parts()}
    holds_items = not step.work.shares_stores
    assert {part.partition("[")[0] for part, _ in step.work.parts()} == set(step.work.binds) or not holds_items
    assert bool(step.work.binds) == holds_items
