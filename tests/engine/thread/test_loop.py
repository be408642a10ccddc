"""The loop of one thread: turns, calls, nudges, outputs, limits, and what happens after it was interrupted."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import pytest
from tests.engine.thread.crew import Crew, Reply, calls, directive, down, fork, give, ls

from quire.engine.records import Status
from quire.errors import ToolFailed
from quire.values import Value

OUTPUT = '<outputs><output name="path" required="true">Where</output></outputs>'
Hire = Callable[..., Awaitable[Crew]]


def hook(event: str, action: str, message: str = "", condition: str = "") -> str:
    """A hook that decides."""
    said = f'<param name="message">{message}</param>' if message else ""
    return (
        f'<hooks><hook id="h" event="{event}">{condition}<action primary="execute" item_type="tool" '
        f'item_id="rye/agent/threads/internal/control"><param name="action">{action}</param>{said}</action>'
        "</hook></hooks>"
    )


async def test_calls_of_one_turn_go_side_by_side_and_are_told_in_order(hire: Hire) -> None:
    crew = await hire({"main": directive("main")}, {"main": [calls(ls("a"), ls("b"), ls("c")), "all read"]})
    crew.tools.act = lambda request: {"read": request.arguments["path"], "none": None, "ok": True}
    ended = await crew.go()
    assert (ended.status, ended.result) == (Status.COMPLETED, _result(ended.result, "all read"))
    assert crew.tools.most_live > 1
    told = [message for message in crew.table.asked[1].messages if message.role == "tool"]
    assert [json.loads(one.content)["read"] for one in told] == ["a", "b", "c"]
    assert [one.answers for one in told] == ["main-0-0", "main-0-1", "main-0-2"]
    assert '"none":null,"ok":true' in told[0].content.replace(" ", "")


def _result(result: Value, output: Value) -> Value:
    assert isinstance(result, dict)
    assert result["output"] == output
    return result


async def test_outputs_are_handed_back_after_the_calls_beside_them(hire: Hire) -> None:
    crew = await hire({"main": directive("main", more=OUTPUT)}, {"main": [calls(ls(), give(path="p"), text="so")]})
    ended = await crew.go()
    _result(ended.result, {"path": "p"})
    assert crew.tools.names() == ["rye/file-system/read"]


@pytest.mark.parametrize(
    ("replies", "status", "turns"),
    [
        (["I am done", "really", "truly"], Status.FAILED, 3),
        (["I am done", calls(give(path="x"))], Status.COMPLETED, 2),
        ([calls(give()), calls(give(path=""))], Status.COMPLETED, 2),
        ([calls(give(status="error", error_detail="no key"))], Status.FAILED, 1),
    ],
)
async def test_owed_outputs_are_nudged_for_twice(hire: Hire, replies: list[Reply], status: Status, turns: int) -> None:
    crew = await hire({"main": directive("main", more=OUTPUT)}, {"main": replies})
    ended = await crew.go()
    assert ended.status is status
    assert crew.ended()["cost"]["turns"] == turns


async def test_a_failing_tool_and_an_unknown_one_are_told(hire: Hire) -> None:
    crew = await hire({"main": directive("main")}, {"main": [calls(ls()), calls(("rye_bash", {})), "sorry"]})

    def act(request: object) -> Value:
        raise ToolFailed("the disk is on fire")

    crew.tools.act = act
    assert (await crew.go()).status is Status.COMPLETED
    assert "the disk is on fire" in crew.results()[0]
    assert "permission denied" in crew.results()[1]


async def test_arguments_cannot_make_a_call_another_one(hire: Hire) -> None:
    """What is checked is what is dispatched, whatever ids stand in the arguments."""
    smuggled: list[Reply] = [
        calls(("rye_bash", {"command": "id", "item_id": "rye/file-system/read", "item_type": "tool"})),
        calls(("rye_execute", {"item_type": "tool", "item_id": "rye/bash", "parameters": {"item_id": "x"}})),
        calls(("rye_execute", {"item_type": "tool", "item_id": "rye/execute", "parameters": {}})),
        calls(("rye_execute", {"item_type": "tool", "item_id": "rye/bash/", "parameters": {}})),
        "no luck",
    ]
    crew = await hire({"main": directive("main")}, {"main": smuggled})
    assert (await crew.go()).status is Status.COMPLETED
    assert crew.tools.calls == []
    assert all("error" in json.loads(result) for result in crew.results())


async def test_the_same_turn_again_and_again_is_told_and_stopped(hire: Hire) -> None:
    crew = await hire({"main": directive("main")}, {"main": [calls(ls())] * 80})
    ended = await crew.go(turns=100)
    assert (ended.status, ended.failure and ended.failure.kind) == (Status.FAILED, "repeated")
    assert len(crew.tools.calls) == 50
    assert "3 times in a row" in crew.table.asked[3].messages[-1].content


async def test_a_long_result_is_cut_for_the_model(hire: Hire) -> None:
    crew = await hire({"main": directive("main")}, {"main": [calls(ls()), "ok"]})
    crew.tools.act = lambda request: "x" * 100_000
    await crew.go()
    assert "[cut: 100,002 characters in all]" in crew.results()[0]
    assert len(crew.results()[0]) < 61_000


async def test_a_limit_ends_the_run_and_a_higher_one_goes_on_where_it_stood(hire: Hire) -> None:
    crew = await hire({"main": directive("main")}, {"main": [calls(ls(str(at))) for at in range(4)]})
    ended = await crew.go(turns=2)
    assert (ended.status, ended.failure and ended.failure.kind) == (Status.FAILED, "turns_exceeded")
    assert crew.ended()["limit_type"] == "turns_exceeded"
    before = list(crew.table.calls)
    ended = await crew.go(turns=3)
    assert ended.failure and ended.failure.kind == "turns_exceeded"
    ended = await crew.go(turns=9)
    assert ended.status is Status.COMPLETED
    assert crew.table.calls == [*before, ("main", 2), ("main", 3), ("main", 4)]
    assert len(crew.tools.calls) == 4


async def test_a_lower_limit_does_not_refuse_what_is_recorded(hire: Hire) -> None:
    crew = await hire({"main": directive("main")}, {"main": [calls(ls(str(at))) for at in range(4)]})
    await crew.go(turns=3)
    ended = await crew.go(turns=1)
    assert ended.failure and ended.failure.kind == "turns_exceeded"
    assert len(crew.table.calls) == 3
    ended = await crew.go(turns=10)
    assert ended.status is Status.COMPLETED
    assert len(crew.tools.calls) == 4


async def test_money_is_reserved_before_a_call(hire: Hire) -> None:
    crew = await hire({"main": directive("main")}, {"main": [calls(ls(str(at))) for at in range(9)]}, cost=0.3)
    ended = await crew.go(spend=0.8)
    assert ended.failure and ended.failure.kind == "spend_exceeded"
    assert len(crew.table.calls) == 2
    assert crew.ended()["cost"]["spend"] == pytest.approx(0.6)


async def test_a_price_that_nobody_knows_is_bounded_by_tokens(hire: Hire) -> None:
    crew = await hire({"main": directive("main")}, {"main": [calls(ls(str(at))) for at in range(9)]}, cost=None)
    ended = await crew.go(tokens=50)
    assert ended.failure and ended.failure.kind == "tokens_exceeded"
    assert crew.ended()["cost"]["spend"] is None
    assert crew.table.asked[0].max_tokens == 50


async def test_a_limit_that_a_hook_escalates_is_a_persons_to_raise(hire: Hire) -> None:
    crew = await hire(
        {"main": directive("main", meta=hook("limit", "escalate"))}, {"main": [calls(ls(str(at))) for at in range(4)]}
    )
    ended = await crew.go(turns=2)
    assert ended.status is Status.AWAITING_INPUT
    (question,) = await crew.store.questions(crew.run)
    assert "turns" in question.prompt
    await crew.answer(question.path, "20")
    assert (await crew.go(turns=2)).status is Status.COMPLETED
    assert len(crew.tools.calls) == 4


async def test_a_person_who_gives_no_more_ends_it(hire: Hire) -> None:
    crew = await hire({"main": directive("main", meta=hook("limit", "suspend"))}, {"main": [calls(ls())] * 4})
    crew.people.given = {"turn 3": ["no"]}
    ended = await crew.go(turns=2)
    assert ended.failure and ended.failure.kind == "turns_exceeded"
    crew.people.given = {"turn 3": ["8"]}
    assert (await crew.go(turns=2)).status is Status.COMPLETED


async def test_a_limit_that_is_not_a_number_is_asked_for_again(hire: Hire) -> None:
    crew = await hire(
        {"main": directive("main", meta=hook("limit", "escalate", "so soon"))},
        {"main": [calls(ls(str(at))) for at in range(4)]},
    )
    for slip in ("ten", "nan", "-3"):
        assert (await crew.go(turns=2)).status is Status.AWAITING_INPUT
        (question,) = await crew.store.questions(crew.run)
        await crew.answer(question.path, slip)
    assert (await crew.go(turns=2)).status is Status.AWAITING_INPUT
    (question,) = await crew.store.questions(crew.run)
    assert question.prompt == "main: '-3' is not a number.\nA higher limit for turns, or no to end it?"
    await crew.answer(question.path, "20")
    assert (await crew.go(turns=2)).status is Status.COMPLETED


async def test_after_step_may_suspend_and_a_person_lets_it_go_on(hire: Hire) -> None:
    condition = '<condition path="cost.turns" op="eq" value="1" />'
    crew = await hire(
        {"main": directive("main", meta=hook("after_step", "suspend", "look at it", condition))},
        {"main": [calls(ls()), "fine"]},
    )
    assert (await crew.go()).status is Status.AWAITING_INPUT
    (question,) = await crew.store.questions(crew.run)
    assert "look at it" in question.prompt
    await crew.answer(question.path, "yes")
    assert (await crew.go()).status is Status.COMPLETED
    assert len(crew.tools.calls) == 1


async def test_a_hook_that_fails_the_thread_blames_no_effect(hire: Hire) -> None:
    crew = await hire({"main": directive("main", meta=hook("after_step", "fail", "enough"))}, {"main": [calls(ls())]})
    for _ in range(2):
        ended = await crew.go()
        assert ended.failure and (ended.failure.kind, ended.failure.message) == ("hook", "enough")
    assert len(crew.tools.calls) == len(crew.table.calls) == 1


async def test_a_model_that_fails_ends_the_run_and_a_resume_asks_it_again(hire: Hire) -> None:
    replies: dict[str, list[Reply]] = {"main": [calls(ls()), down()]}
    crew = await hire({"main": directive("main")}, replies)
    ended = await crew.go()
    assert ended.failure and ended.failure.kind == "server"
    replies["main"][1] = "back"
    ended = await crew.go()
    _result(ended.result, "back")
    assert len(crew.tools.calls) == 1


async def test_replies_of_no_use_are_paid_for_and_a_resume_does_not_give_their_money_back(hire: Hire) -> None:
    crew = await hire({"main": directive("main")}, {"main": [calls(ls()), ""]})
    crew.table.cost = crew.table.estimated = 0.3
    for spent in (0.6, 0.9):
        ended = await crew.go(spend=1.0)
        assert ended.failure and ended.failure.kind == "empty"
        row = await crew.store.get(crew.run)
        assert row is not None and row.cost == pytest.approx(spent)
    ended = await crew.go(spend=1.0)
    assert ended.failure and (ended.failure.kind, ended.failure.message) == (
        "spend_exceeded",
        "the next call may cost $0.3000, and $0.1000 are left",
    )
    assert len(crew.table.calls) == 3


async def test_a_model_without_estimates_is_not_asked_when_nothing_is_left(hire: Hire) -> None:
    crew = await hire(
        {"main": directive("main"), "child": directive("child")},
        {"main": [calls(fork("child"), fork("child")), "ok"], "child": [calls(ls()), "ok"]},
    )
    crew.table.cost, crew.table.estimated = 0.3, None
    ended = await crew.go(spend=0.8)
    assert ended.failure and ended.failure.kind == "spend_exceeded"
    assert crew.ended("child")["limit_type"] == "spend_exceeded"
    assert crew.table.calls == [("main", 0), ("child", 0), ("child", 0)]


@pytest.mark.parametrize(("decision", "asked"), [("retry", 3), ("fail", 1), ("continue", 3)])
async def test_what_hooks_decide_about_a_failing_model(hire: Hire, decision: str, asked: int) -> None:
    crew = await hire({"main": directive("main", meta=hook("error", decision))}, {"main": [down()]})
    assert (await crew.go()).status is Status.FAILED
    assert len(crew.table.calls) == asked


async def test_a_hook_tells_the_resource_that_was_denied(hire: Hire) -> None:
    meta = (
        '<hooks><hook id="d" event="error"><condition path="error.type" op="eq" value="permission_denied" />'
        '<action primary="execute" item_type="tool" item_id="rye/file-system/write">'
        '<param name="path">denied.txt</param><param name="content">${error.resource}</param></action></hook></hooks>'
    )
    crew = await hire({"main": directive("main", meta=meta)}, {"main": [calls(("rye_bash", {"command": "x"})), "ok"]})
    assert (await crew.go()).status is Status.COMPLETED
    assert [(tool, given["content"]) for tool, given, _ in crew.tools.calls] == [("rye/file-system/write", "rye/bash")]


async def test_a_hook_has_no_more_than_its_thread(hire: Hire) -> None:
    meta = (
        '<hooks><hook id="d" event="after_step"><action primary="execute" item_type="tool" item_id="rye/bash">'
        '<param name="command">id</param></action></hook></hooks>'
    )
    crew = await hire({"main": directive("main", meta=meta)}, {"main": [calls(ls()), "ok"]})
    assert (await crew.go()).status is Status.COMPLETED
    assert crew.tools.names() == ["rye/file-system/read"]
    assert any("permission denied" in warning for warning in crew.warnings())


async def test_a_question_of_the_model_parks_the_thread(hire: Hire) -> None:
    crew = await hire({"main": directive("main")}, {"main": [calls(("ask", {"prompt": "Which?"})), "thanks"]})
    assert (await crew.go()).status is Status.AWAITING_INPUT
    (question,) = await crew.store.questions(crew.run)
    await crew.answer(question.path, "that one")
    assert (await crew.go()).status is Status.COMPLETED
    assert "that one" in crew.table.asked[-1].messages[-1].content
    assert len(crew.table.calls) == 2


async def test_every_warning_of_the_start_is_kept_and_shown_once(hire: Hire) -> None:
    context = "<context><before>k/one</before><after>k/two</after></context>"
    crew = await hire({"main": directive("main", meta=context)}, {"main": [calls(ls()), "fine"]})
    missing = [
        "knowledge k/one not found: <before> of main goes without it",
        "knowledge k/two not found: <after> of main goes without it",
    ]
    assert (await crew.go(turns=1)).status is Status.FAILED
    assert [one.data["message"] for one in crew.events if one.type == "warning" and one.seq] == missing
    assert (await crew.go()).status is Status.COMPLETED
    assert [one.data["message"] for one in crew.events if one.type == "warning" and one.seq] == missing


@pytest.mark.parametrize(
    ("action", "needed"),
    [
        ('primary="execute" item_type="directive" item_id="t/kid"', "rye.execute.directive.t.kid"),
        ('primary="fetch" item_type="knowledge" item_id="k/one"', "rye.fetch.knowledge.k.one"),
    ],
)
async def test_a_hook_that_may_not_says_what_is_missing(hire: Hire, action: str, needed: str) -> None:
    meta = f'<hooks><hook id="h" event="after_step"><action {action} /></hook></hooks>'
    crew = await hire({"main": directive("main", meta=meta)}, {"main": [calls(ls()), "fine"]})
    assert (await crew.go()).status is Status.COMPLETED
    (warning,) = crew.warnings()
    assert f"needs the capability {needed}, which the permissions at main do not cover" in warning
