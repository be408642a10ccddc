"""Steps of the Quire dialect on the engine: blocks, conditions, loops, survived failures, ends and limits in time."""

from __future__ import annotations

import asyncio

import pytest
from tests.engine.house import House
from tests.engine.test_pipeline import failing, output, plan, walk
from tests.formats.pipeline.reading import dialect as quire

from quire.engine.interpreter.callees import Environment, Profile
from quire.engine.interpreter.pipeline.agent import with_settings
from quire.engine.interpreter.pipeline.interpret import interpret_pipeline
from quire.engine.records import Status
from quire.errors import ModelFailed, StepFailed
from quire.plan.pipeline_work import AgentStepSettings
from quire.values import Value


async def never(seconds: float) -> None:
    """Stands in for the clock of a test in which no time passes."""
    await asyncio.Event().wait()


SURVIVE = "tool: {name: t, on_error: continue, default: \"'none'\", output: a}"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (
            (
                "steps: [{transform: {value: '1', output: a}}, {transform: {value: a + 1}}]",
                "transform: {value: '[a, pipe]'}",
            ),
            [1, 2],
        ),
        (
            (
                "steps: {do: [{transform: {value: '1'}}, {transform: {value: pipe + 1}}], output: b}",
                "transform: {value: b}",
            ),
            2,
        ),
        (
            (
                "transform: {value: '1'}",
                "transform: {value: '2', when: pipe > 1, output: a}",
                "transform: {value: \"[pipe, get(ctx, 'a')]\"}",
            ),
            [1, None],
        ),
        (("transform: {value: '1'}", "steps: {when: 'false', do: [{transform: {value: '2'}}]}"), 1),
        (("repeat: {init: '1', do: {transform: {value: acc * 2}}, until: acc > 10, max: 9}",), 16),
        (
            (
                "transform: {value: \"sort(split('b a'))\", output: words}",
                'fold: {over: words, init: "\'\'", do: {transform: {value: "acc + upper(item)"}}, output: all}',
                "transform: {value: \"format('{} {}', all, json({n: text(count(words))}))\"}",
            ),
            'AB {"n": "2"}',
        ),
        (
            (
                "repeat: {do: {transform: {value: round}}, until: round == 3, max: 9, output: r}",
                "transform: {value: r}",
            ),
            3,
        ),
        (("repeat: {do: {transform: {value: round}}, until: 'false', max: 4, on_max: keep}",), 4),
        (
            (
                "for_each: {items: [1, 2], on_error: abort, do: {repeat: {init: item, do: {steps: ["
                "{transform: {value: acc + item, output: s}}, {transform: {value: s}}]}, until: acc > 3, max: 5}},"
                " collect: {transform: {value: pipe}}}",
            ),
            [4, 4],
        ),
        (
            (
                "match: {on: \"'b'\", cases: {a: {pipeline: q}, b: {steps: [{transform: {value: '1', output: c}}]}}}",
                "transform: {value: c}",
            ),
            1,
        ),
        (("match: {on: \"'x'\", cases: {a: {pipeline: q}}, default: '7'}",), 7),
        (("match: {on: \"'x'\", cases: {a: {pipeline: q}}, default: {steps: [{transform: {value: '8'}}]}}",), 8),
        (("match: {on: \"'a'\", cases: {a: {pipeline: nowhere}}, on_error: continue}",), None),
        (("stop: {value: '1', when: 'true'}", "fail: {message: too late}"), 1),
        (("transform: {value: '5'}", "steps: [{stop: {}}]", "fail: {message: too late}"), 5),
        (("repeat: {do: {stop: {value: round}}, until: 'true', max: 3}", "fail: {message: too late}"), 1),
        ((SURVIVE, "transform: {value: '[a, errors.a.message]'}"), ["none", "t is down"]),
        (("tool: {name: u, on_error: continue, output: a}", "transform: {value: '[a, errors.a]'}"), ["u", None]),
        (
            ("tool: {name: t, on_error: 'retry(2), continue', output: a}", "transform: {value: '[a, errors.a.kind]'}"),
            [None, "failed"],
        ),
        (
            (
                "steps: {on_error: continue, do: [{transform: {value: '1', output: a}}, {tool: {name: t}}]}",
                "transform: {value: \"get(ctx, 'a')\"}",
            ),
            None,
        ),
        (
            (
                "for_each: {items: [a, b, c], on_error: continue, default: item + '!',"
                " do: {tool: {name: x, args: {i: !expr item}}},"
                " collect: {transform: {value: '{all: pipe, bad: count(errors)}'}}}",
            ),
            {"all": ["a", "b!", "c"], "bad": 1},
        ),
        (
            (
                "parallel: {on_error: 'retry(1), continue', default: '0',"
                " branches: {a: {tool: {name: t}}, b: {tool: {name: u}}},"
                " collect: {transform: {value: pipe}}}",
            ),
            {"a": 0, "b": "u"},
        ),
        # real-work M2: fans inside a loop see acc and round, and an inner loop hides them.
        (
            (
                "repeat: {init: '0', do: {for_each: {items: [1, 2], on_error: retry(1),"
                " do: {transform: {value: item + 10 * round + acc}},"
                " collect: {transform: {value: sum(pipe) + acc + round}}}}, until: round == 2, max: 2}",
            ),
            sum((1 + 20 + 24, 2 + 20 + 24)) + 24 + 2,
        ),
        (
            (
                "repeat: {init: '1', do: {parallel: {branches: {a: {transform: {value: acc}}, b: {parallel: {"
                " branches: {c: {transform: {value: round}}}, collect: {transform: {value: '[c, round, acc]'}}}}},"
                " collect: {transform: {value: '[a, b, acc]'}}}}, until: 'true', max: 2}",
            ),
            [1, [1, 1, 1], 1],
        ),
        (
            (
                "fold: {items: [5], init: '7', do: {for_each: {items: [1], on_error: abort, do: {repeat: {init: '0',"
                " do: {transform: {value: '[item, acc, round]'}}, until: 'true', max: 2}},"
                " collect: {transform: {value: '[pipe, acc]'}}}}, output: r}",
            ),
            [[[1, 0, 1]], 7],
        ),
        (
            (
                "repeat: {init: '1', do: {fold: {items: [4], init: '0', do: {transform: {value: '[acc, round]'}},"
                " output: x}}, until: 'true', max: 1}",
            ),
            [0, 1],
        ),
        # real-work M3: a step that its `when` leaves out has its default, for its store and for the next step.
        (
            ("tool: {name: u, when: 'false', default: '[]', output: a}", "transform: {value: '[a, pipe]'}"),
            [[], []],
        ),
        (
            (
                "transform: {value: '1'}",
                "steps: [{tool: {name: u, when: 'false', on_error: continue, default: pipe + 1, output: a}}]",
                "transform: {value: '[a, pipe]'}",
            ),
            [2, 2],
        ),
        # seeds L2 (a): a store named errors is not hidden by that of collect.
        (
            (
                "transform: {value: \"'MINE'\", output: errors}",
                "for_each: {items: [1], on_error: continue, do: {tool: {name: t}},"
                " collect: {transform: {value: errors}}}",
            ),
            "MINE",
        ),
    ],
)
async def test_values_flow(house: House, steps: tuple[str, ...], expected: Value) -> None:
    house.tools.act = failing("t", "b")  # type: ignore[assignment]
    assert output(await house.drive(walk(quire(*steps)))) == expected


@pytest.mark.parametrize(
    ("steps", "kind", "path", "part"),
    [
        (("fail: {message: !expr \"'n is ' + join([ctx.n], '')\"}",), "fail", "1", "n is 3"),
        (("repeat: {do: {transform: {value: '1'}}, until: acc > 1, max: 2}",), "repeat", "1", "2 rounds"),
        (("transform: {value: '1', when: ctx.missing.x}",), "expression", "1", "missing"),
        (
            ("transform: {value: round(ctx.n)}",),
            "expression",
            "1",
            "round needs a number, not a text in `round(ctx.n)`",
        ),
        (("transform: {value: 'count(range(9000000))'}",), "expression", "1", "more than 1,000,000 items"),
        (
            ("repeat: {do: {steps: [{tool: {name: t}}]}, until: 'true', max: 2}",),
            "failed",
            "1/repeat[1]/steps/1/tool",
            "down",
        ),
        (("match: {on: \"'a'\", cases: {a: {steps: [{tool: {name: t}}]}}}",), "failed", "1/match[1]/1/tool", "down"),
        (("steps: {on_error: retry(1), do: [{tool: {name: t}}]}",), "failed", "1/try[2]/steps/1/tool", "down"),
        (("tool: {name: t, on_error: continue, default: ctx.nothing}",), "expression", "1", "nothing"),
        # real-work M3: a name that some step sets is never sent as it is written.
        (
            ("tool: {name: u, when: 'false', output: more}", "agent: {prompt: 'Use {more}'}"),
            "prompt",
            "2",
            "there is no more",
        ),
        (
            (
                "repeat: {do: {transform: {value: '1'}}, until: 'true', max: 1}",
                "agent: {prompt: 'In round {round}'}",
            ),
            "prompt",
            "2",
            "there is no round",
        ),
    ],
)
async def test_failures_say_where(house: House, steps: tuple[str, ...], kind: str, path: str, part: str) -> None:
    house.tools.act = failing("t")  # type: ignore[assignment]
    ended = await house.drive(walk(quire(*steps), {"n": "3"}))
    assert ended.status is Status.FAILED and ended.failure is not None
    row = await house.store.get(house.run)
    assert row is not None
    assert (ended.failure.kind, row.ended_by[0]) == (kind, path)
    assert part in ended.failure.message


@pytest.mark.parametrize(
    ("rules", "dialect", "sent"),
    [(4, True, ""), (3, True, "{more} {{more}}"), (4, False, "{more} {{more}}")],
)
async def test_names_without_a_value_are_sent_only_under_older_rules(
    house: House, rules: int, dialect: bool, sent: str
) -> None:
    """real-work M3: as `{ctx.more}`, and only in the dialect. A run that is under way keeps its rules."""
    text = quire(
        "match: {on: \"'a'\", cases: {b: {steps: [{transform: {value: '1', output: more}}]}}, default: '1'}",
        "agent: {prompt: '{more} {{more}}'}",
    )
    if not dialect:
        text = "pipeline: p\nsteps:\n- agent: {prompt: '{more} {{more}}'}\n- transform: {value: '1', output: more}\n"
    ended = await house.drive(
        interpret_pipeline(plan(text), {}, Environment(rules=rules, profiles={"default": Profile()}))
    )
    assert [call.messages[0].content for call in house.model.calls] == ([sent] if sent else [])
    assert ended.status is (Status.COMPLETED if sent else Status.FAILED)


async def test_runs_that_are_under_way_keep_what_a_skipped_step_left(house: House) -> None:
    text = quire("transform: {value: '1'}", "tool: {name: u, when: 'false', default: '[]'}")
    ended = await house.drive(interpret_pipeline(plan(text), {}, Environment(rules=3)))
    assert output(ended) == 1


async def test_a_stop_ends_the_callee_and_not_its_caller(house: House) -> None:
    callee = plan(quire("stop: {value: \"'early'\"}", "fail: {message: too late}"))
    caller = plan(quire("call: {pipeline: inner, output: a}", "transform: {value: a + '!'}"))
    ended = await house.drive(interpret_pipeline(caller, {}, Environment(documents={"inner": callee})))
    assert output(ended) == "early!"


async def test_survived_failures_are_not_performed_again_by_a_resume(house: House) -> None:
    house.tools.act = failing("t", "last")  # type: ignore[assignment]
    text = quire(SURVIVE, "steps: {on_error: 'retry(1), continue', do: [{tool: {name: t}}]}", "tool: {name: last}")
    assert (await house.drive(walk(text))).status is Status.FAILED
    before = len(house.tools.calls)
    house.tools.act = failing()  # type: ignore[assignment]
    ended = await house.drive(walk(text))
    assert output(ended) == "last"
    assert [tool for tool, _, _ in house.tools.calls[before:]] == ["last"]


async def test_a_limit_in_time_fails_the_step_and_says_so_again_in_a_replay(house: House) -> None:
    house.tools.kind = "read"
    house.tools.gate = asyncio.Event()
    text = quire(
        "tool: {name: t, timeout: 30s, on_error: continue, output: a}",
        "agent: {prompt: hi}",
        "transform: {value: errors.a.message}",
    )
    house.model.replies["hi"] = ModelFailed("down")
    assert (await house.drive(walk(text))).status is Status.FAILED
    house.model.replies.clear()
    assert output(await house.drive(walk(text))) == "it was not done after 30 seconds (timeout)"
    assert len(house.tools.calls) == 1


async def test_a_step_that_timed_out_is_performed_again_by_a_resume(house: House) -> None:
    house.tools.kind = "read"
    house.tools.gate = asyncio.Event()
    text = quire("tool: {name: t, timeout: 30s}")
    ended = await house.drive(walk(text))
    assert ended.status is Status.FAILED and ended.failure is not None and ended.failure.kind == "timeout"
    house.tools.gate = None
    assert output(await house.drive(walk(text))) == "did t"


async def test_a_step_with_a_limit_in_time_keeps_its_value_and_the_place_of_its_failure(house: House) -> None:
    house.clock.sleep = never  # type: ignore[method-assign]
    done = quire("tool: {name: t, timeout: 1m}", "agent: {prompt: hi, timeout: 1m}")
    assert output(await house.drive(walk(done))) == "reply to hi"


async def test_a_failure_inside_a_limit_in_time_is_performed_again_by_a_resume(house: House) -> None:
    house.clock.sleep = never  # type: ignore[method-assign]
    house.tools.act = failing("t")  # type: ignore[assignment]
    text = quire("tool: {name: t, timeout: 1m}")
    ended = await house.drive(walk(text))
    row = await house.store.get(house.run)
    assert row is not None and ended.failure is not None
    assert (ended.failure.kind, row.ended_by) == ("failed", ("1/tool", "1/join"))
    house.tools.act = failing()  # type: ignore[assignment]
    assert output(await house.drive(walk(text))) == "t"


async def test_a_model_call_has_the_settings_of_its_step(house: House) -> None:
    ended = await house.drive(walk(quire("agent: {prompt: go, max_tokens: 50, temperature: 0.5}")))
    assert ended.status is Status.COMPLETED
    (call,) = house.model.calls
    assert (call.max_tokens, call.temperature) == (50, 0.5)


@pytest.mark.parametrize(
    ("said", "limit", "expected"), [(AgentStepSettings(), None, 8), (AgentStepSettings(turns=30), 20, 20)]
)
def test_an_agent_of_the_dialect_has_eight_turns_and_never_more_than_its_profile(
    said: AgentStepSettings, limit: int | None, expected: int
) -> None:
    assert with_settings(Profile(turns=limit), said).turns == expected


async def test_a_prompt_in_a_file_is_read_once_and_filled_in(house: House) -> None:
    house.loader.texts["file:prompts/hi.md"] = "Greet {ctx.name}."
    text = quire("agent: {prompt: !file prompts/hi.md}", "tool: {name: t}")
    house.tools.act = failing("t")  # type: ignore[assignment]
    await house.drive(walk(text, {"name": "Ada"}))
    house.tools.act = failing()  # type: ignore[assignment]
    assert output(await house.drive(walk(text, {"name": "Ada"}))) == "t"
    assert house.model.asked() == ["Greet Ada."] and house.loader.loads == ["file:prompts/hi.md"]


async def test_the_events_of_blocks_are_at_their_places_in_the_plan(house: House) -> None:
    house.tools.act = failing("t")  # type: ignore[assignment]
    text = quire(
        "steps: {on_error: 'retry(1), continue', do: [{transform: {value: '1'}}, {tool: {name: t}}]}",
        "stop: {when: 'false'}",
    )
    await house.drive(walk(text))
    told = [(event.type, event.path) for event in house.events if event.type.startswith("step_")]
    assert ("step_started", "1/steps/2") in told and ("step_failed", "1/steps/2") in told
    assert ("step_completed", "1") in told and ("step_skipped", "2") in told
    assert not any("try" in path for _, path in told)


def test_a_failure_of_the_document_is_a_step_failure() -> None:
    with pytest.raises(StepFailed, match="no"):
        list(walk(quire("fail: {message: no}")))


async def test_items_with_a_limit_in_time_end_their_fan_one_by_one(house: House) -> None:
    """An item that is done gives its slot back only when its spawned work is no longer counted."""
    house.clock.sleep = never  # type: ignore[method-assign]
    house.tools.act = failing()  # type: ignore[assignment]
    fan = "for_each: {items: [a, b], max_parallel: 1, on_error: abort, do: {tool: {name: t, args: {i: !expr item}, "
    text = quire(f"{fan}timeout: 1h}}}}, collect: {{transform: {{value: pipe}}}}}}")
    assert output(await house.drive(walk(text))) == ["a", "b"]


async def test_work_with_a_limit_in_time_is_asked_for_with_the_same_values_by_a_replay(house: House) -> None:
    house.clock.sleep = never  # type: ignore[method-assign]
    house.tools.act = failing("last")  # type: ignore[assignment]
    text = quire("agent: {prompt: 'first {pipe}', timeout: 1h}", "tool: {name: last}", "transform: {value: pipe}")
    assert (await house.drive(walk(text))).status is Status.FAILED
    house.tools.act = failing()  # type: ignore[assignment]
    assert output(await house.drive(walk(text))) == "last"
    assert house.model.asked() == ["first null"]


SCHEMA = "schema: Mark\nfields: {n: {type: number}}\n---\n"


@pytest.mark.parametrize(("default", "kind"), [("{n: 1}", None), ("{n: 'one'}", "schema"), ("[]", "schema")])
async def test_a_default_is_held_to_the_schema_of_its_step(house: House, default: str, kind: str | None) -> None:
    house.tools.act = failing("t")  # type: ignore[assignment]
    step = f'tool: {{name: t, schema: Mark, on_error: continue, default: "{default}", output: a}}'
    ended = await house.drive(walk(SCHEMA + quire(step)))
    assert (ended.failure.kind if ended.failure else None) == kind


async def test_a_question_shows_a_value_and_expires_with_its_run(house: House) -> None:
    args = "{prompt: ok?, type: confirm, show: !expr ctx.plan, expiry: 2h}"
    text = f"pipeline: p\nsteps:\n- tool: {{name: ask, args: {args}}}\n"
    ended = await house.drive(walk(text, {"plan": {"steps": ["build", "ship"]}}))
    assert ended.status is Status.AWAITING_INPUT
    (question,) = await house.store.questions(house.run)
    assert question.prompt.startswith("```json\n{") and question.prompt.endswith("```\n\nok?")
    row = await house.store.get(house.run)
    assert row is not None and row.expires_at == question.expires_at == house.clock.now() + 7200


@pytest.mark.parametrize("expiry", ["soon", "0m", "3", "[1]"])
async def test_a_wrong_expiry_fails_before_the_question(house: House, expiry: str) -> None:
    ended = await house.drive(
        walk(f"pipeline: p\nsteps:\n- tool: {{name: ask, args: {{prompt: ok?, expiry: {expiry}}}}}\n")
    )
    assert ended.failure is not None and ended.failure.kind == "arguments" and "2h" in ended.failure.message
