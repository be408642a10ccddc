"""What is refused when it cannot be judged, and what hooks are told: the rules of threads since 0.1.0."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import pytest
from msgspec.structs import replace
from tests.engine.thread.crew import Crew, Reply, Table, calls, directive, give, ls

from quire.engine.interpreter.thread.compose import Bundle
from quire.engine.interpreter.thread.loop import interpret_directive
from quire.engine.interpreter.thread.setup import set_up
from quire.engine.requests import ToolRequest
from quire.errors import ToolFailed
from quire.plan.thread import THREAD_PATH, THREAD_RULES
from quire.values import Value

CONTROL = "rye/agent/threads/internal/control"
JUDGE = '<action primary="execute" item_type="directive" item_id="judge" />'
HELD = "<execute><tool>rye.file-system.*</tool><directive>*</directive></execute>"
OUTPUT = '<outputs><output name="x">x</output></outputs>'
VERDICT = '<outputs><output name="action">what to do</output></outputs>'


@pytest.fixture
async def crew(hire: Callable[..., Awaitable[Crew]]) -> Crew:
    return await hire({}, {})


def control(**parameters: str) -> str:
    given = "".join(f'<param name="{name}">{value}</param>' for name, value in parameters.items())
    return f'<action primary="execute" item_type="tool" item_id="{CONTROL}">{given}</action>'


def crew_of(crew: Crew, action: str, event: str = "directive_return", verdict: Reply = "continue") -> None:
    hooks = f'<hooks><hook id="gate" event="{event}">{action}</hook></hooks>'
    crew.directives["main"] = directive("main", meta=hooks, permissions=HELD, more=OUTPUT)
    crew.directives["judge"] = directive("judge", permissions=HELD, more=VERDICT)
    judged = calls(give(action=verdict)) if isinstance(verdict, str) else verdict
    crew.table = Table({"main": [calls(ls()), calls(give(x="1"))], "judge": [judged]})


@pytest.mark.parametrize(
    ("action", "verdict", "why"),
    [
        (JUDGE, "continue", ""),
        (JUDGE, "reject", "hook gate: the action 'reject' is not a decision"),
        (JUDGE, "", "hook gate: the action '' is not a decision"),
        (JUDGE, calls(give(status="error", error_detail="no idea")), "hook gate: judge failed: no idea"),
        (JUDGE.replace("judge", "nobody"), "continue", "hook gate: there is no directive nobody"),
        (control(action="refuse"), "", "hook gate: the action 'refuse' is not a decision"),
        (control(message="hm"), "", "hook gate: no action is not a decision"),
        ('<action primary="execute" item_type="tool" item_id="rye/bash" />', "", "permission denied: rye/bash"),
    ],
)
async def test_outputs_that_could_not_be_judged_are_refused(crew: Crew, action: str, verdict: Reply, why: str) -> None:
    """G5: gates made of hooks do not fail open."""
    crew_of(crew, action, verdict=verdict)
    ended = await crew.go()
    if not why:
        assert ended.failure is None and crew.ended()["outputs"] == {"x": "1"}
        return
    assert (
        ended.failure is not None and why in ended.failure.message and "the outputs are refused" in str(ended.failure)
    )
    assert any(why in warning for warning in crew.warnings())


async def test_a_checker_that_decides_nothing_accepts(crew: Crew) -> None:
    crew_of(crew, JUDGE, verdict=calls(give()))
    assert (await crew.go()).failure is None


@pytest.mark.parametrize("event", ["after_step", "thread_started", "after_complete"])
async def test_elsewhere_an_unknown_decision_is_a_warning(crew: Crew, event: str) -> None:
    crew_of(crew, JUDGE, event, "reject")
    assert (await crew.go()).failure is None
    assert any("the action 'reject' is not a decision (known: retry, fail" in one for one in crew.warnings())


async def test_a_recorded_thread_of_0_1_0_still_lets_them_through(crew: Crew) -> None:
    crew_of(crew, JUDGE, verdict="reject")
    bundle = replace(crew.bundle("main"), rules=1)
    ended = await crew.drive(interpret_directive(set_up(bundle, {}, THREAD_PATH)))
    assert ended.failure is None and crew.warnings() == []


async def test_each_return_of_a_turn_is_judged(crew: Crew) -> None:
    """The second one is not the first one again: hooks see its own outputs."""
    read = '<action primary="execute" item_type="tool" item_id="rye/file-system/read">{}</action>'
    actions = read.format('<param name="path">${outputs.x}</param>') + control(action="retry")
    crew_of(crew, actions)
    crew.table = Table({"main": [calls(give(x="1"), give(x="2"))]})
    await crew.go()
    assert [given["path"] for _, given, _ in crew.tools.calls] == ["1", "2"]


def test_a_bundle_of_0_1_0_says_so_by_saying_nothing() -> None:
    stored = Bundle("main", {}).encoded()
    assert Bundle.of(stored).rules == THREAD_RULES
    assert Bundle.of(stored.replace(f',"rules":{THREAD_RULES}', "")).rules == 1


async def test_an_empty_block_grants_nothing(crew: Crew) -> None:
    """G12: only a leaf that has no block inherits."""
    for block in ("<permissions></permissions>", "<permissions><execute /></permissions>"):
        leaf = directive("main", permissions="", meta=block).replace("<directive ", '<directive extends="base" ', 1)
        crew.directives |= {"main": leaf, "base": directive("base")}
        bundle = crew.bundle("main")
        assert set_up(bundle, {}, THREAD_PATH).grants == ()
        assert set_up(replace(bundle, rules=1), {}, THREAD_PATH).grants != ()
    crew.table = Table({"main": [calls(ls()), "done"]})
    await crew.go()
    assert "permission denied" in crew.results()[0]


@pytest.mark.parametrize(("rules", "told"), [(1, '{"error":"no \\"such\\" file"}'), (2, 'no "such" file')])
async def test_hooks_are_told_of_errors_in_plain_text(crew: Crew, rules: int, told: str) -> None:
    """S5: the message of a tool's error is text, as that of a model's error is."""
    writes = '<action primary="execute" item_type="tool" item_id="rye/file-system/write">%s</action>'
    given = '<param name="content">${error.message}</param>'
    crew_of(crew, writes % given, "error")

    def act(request: ToolRequest) -> Value:
        if request.tool.endswith("read"):
            raise ToolFailed('no "such" file')
        return None

    crew.tools.act = act
    bundle = replace(crew.bundle("main"), rules=rules)
    await crew.drive(interpret_directive(set_up(bundle, {}, THREAD_PATH)))
    assert [given["content"] for tool, given, _ in crew.tools.calls if tool.endswith("write")] == [told]


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{input:who}", "${inputs.flag}"),
        ("for {input:who}, ${inputs.flag}", "for ${inputs.flag}, true"),
        ("{input:nobody} {input:nobody|x} {input:nobody?}.", "{input:nobody} x ."),
        ("${inputs.flag}", True),
    ],
)
async def test_inputs_are_filled_into_the_parameters_of_hooks(crew: Crew, text: str, filled: Value) -> None:
    """S6: in one pass, so that what an input brings is never read for references."""
    given: Mapping[str, Value] = {"who": "${inputs.flag}", "flag": True}
    crew_of(crew, control(action="continue", message=text), "after_step")
    inputs = '<inputs><input name="who" /><input name="flag" type="boolean" /></inputs>'
    crew.directives["main"] = crew.directives["main"].replace(OUTPUT, inputs + OUTPUT).replace("Do it.", "{input:flag}")
    await crew.go(given)
    params = next(one.data["params"] for one in crew.events if one.type == "hook_action")
    assert params == {"action": "continue", "message": filled}
    assert "\ntrue\n" in crew.table.asked[0].messages[0].content


def test_two_numbers_for_one_limit_keep_a_directive_from_starting(crew: Crew) -> None:
    """G13: also one that is only found in the middle of a run, which nobody has checked."""
    crew.directives["main"] = directive("main", meta='<limits turns="6" max_turns="7" />')
    with pytest.raises(Exception, match="max_turns and turns are the same limit, and have the values 7 and 6"):
        set_up(crew.bundle("main"), {}, THREAD_PATH)
    assert set_up(replace(crew.bundle("main"), rules=1), {}, THREAD_PATH).limits.turns == 6
