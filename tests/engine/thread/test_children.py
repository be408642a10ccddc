"""Threads that a thread starts: what they may do, what they cost, how they end, and what a crash leaves of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.depth import depth
from tests.engine.test_crashes import Died, Mortal
from tests.engine.thread.crew import Crew, Reply, SlowClock, Table, calls, directive, down, fork, give, ls, orchestrate

from quire.engine.driver.replay import replay
from quire.engine.progress import Progress
from quire.engine.records import Status
from quire.stores import open_store
from quire.values import Value

Hire = Callable[..., Awaitable[Crew]]
OUT = '<outputs><output name="answer">A</output></outputs>'


async def test_a_child_gives_its_outputs_by_name(hire: Hire) -> None:
    crew = await hire(
        {"main": directive("main"), "child": directive("child", "Ask {input:q}", more=OUT + _inputs("q"))},
        {"main": [calls(fork("child", inputs={"q": "why"})), "ok"], "child": [calls(ls(), give(answer=42))]},
    )
    assert (await crew.go()).status is Status.COMPLETED
    told = json.loads(crew.results()[-1])
    assert (told["success"], told["outputs"]) == (True, {"answer": 42})
    assert "Ask why" in crew.table.asked[1].messages[0].content
    assert "thread/turn[1]/tool[0]/thread/turn[1]/tool[0]/tool" in await crew.paths()


def _inputs(*names: str) -> str:
    return "<inputs>" + "".join(f'<input name="{name}" required="true">x</input>' for name in names) + "</inputs>"


async def test_a_child_never_has_more_than_its_parent(hire: Hire) -> None:
    wide = "<execute><tool>rye.bash.*</tool><tool>rye.file-system.*</tool></execute>"
    crew = await hire(
        {
            "main": directive(
                "main", permissions="<execute><tool>rye.file-system.read</tool><tool>rye.agent.*</tool></execute>"
            ),
            "child": directive("child", permissions=wide),
            "bare": directive("bare", permissions=""),
        },
        {
            "main": [calls(fork("child"), fork("bare")), "ok"],
            "child": [calls(("rye_bash", {}), ("rye_file_system_write", {}), ls()), "tried"],
            "bare": [calls(("rye_bash", {}), ls("bare")), "tried"],
        },
    )
    assert (await crew.go()).status is Status.COMPLETED
    assert sorted(str(given) for _, given, _ in crew.tools.calls) == ["{'path': 'bare'}", "{'path': 'x'}"]
    offered = {
        thread: [tool.name for tool in call.tools]
        for call, (thread, turn) in zip(crew.table.asked, crew.table.calls, strict=True)
        if turn == 0
    }
    assert offered["child"] == ["rye_file_system_read"]
    assert "rye_bash" not in offered["bare"]


_FORK = "<tool>rye.agent.threads.*</tool>"
_FILES = "<tool>rye.file-system.*</tool>"


@pytest.mark.parametrize(
    ("main", "child", "started"),
    [
        ("<directive>child</directive>", "", ["child"]),
        ("<directive>other</directive>", "", []),
        ("", "<directive>third</directive>", ["child", "third"]),
        ("", "<directive>other</directive>", ["child"]),
        # A child that holds the tool alone starts no more than its parent could.
        ("<directive>child</directive>", "<directive>third</directive>", ["child"]),
        ("<directive>[ct]h*</directive>", "", ["child", "third"]),
        ("<directive>*</directive>", "", ["child", "third"]),
    ],
)
async def test_a_thread_that_names_directives_starts_only_these(
    hire: Hire, main: str, child: str, started: list[str]
) -> None:
    """Ruling 19 of directives, also where the thread holds the tool that starts any."""
    threads = {
        name: directive(name, permissions=f"<execute>{_FORK}{_FILES}{named}</execute>")
        for name, named in (("main", main), ("child", child), ("third", ""))
    }
    replies: dict[str, list[Reply]] = {
        "main": [calls(fork("child")), "ok"],
        "child": [calls(fork("third")), "ok"],
        "third": ["ok"],
    }
    crew = await hire(threads, replies)
    assert (await crew.go()).status is Status.COMPLETED
    assert list(dict.fromkeys(name for name, _ in crew.table.calls if name != "main")) == started
    if started != ["child", "third"]:
        (denied,) = [one for one in crew.results() if "needs the capability rye.execute.directive." in one]
        assert "which the permissions at" in denied


@pytest.mark.parametrize(
    ("child", "given", "words"),
    [
        (None, {}, "no directive child"),
        (directive("child", more=_inputs("q")), {}, "q"),
        (directive("child", permissions="<execute><tool>rye.bash</tool></execute>"), {}, "no capabilities"),
        (directive("child", permissions="*"), {}, "unrestricted"),
    ],
)
async def test_a_child_that_cannot_start_is_told_of(
    hire: Hire, child: str | None, given: dict[str, Value], words: str
) -> None:
    directives = {"main": directive("main")} | ({"child": child} if child else {})
    crew = await hire(directives, {"main": [calls(fork("child", inputs=given)), "ok"]})
    assert (await crew.go()).status is Status.COMPLETED
    assert words in crew.results()[0]


@pytest.mark.parametrize(
    "permissions", ["*", "<execute><tool>rye.bash</tool></execute>"], ids=["too much risk", "nothing granted"]
)
async def test_a_child_that_cannot_start_takes_no_money_with_it(hire: Hire, permissions: str) -> None:
    crew = await hire(
        {"main": directive("main"), "child": directive("child", permissions=permissions)},
        {"main": [calls(fork("child")), "ok"]},
        cost=0.1,
    )
    ended = await crew.go(spend=0.55)
    assert ended.status is Status.COMPLETED, ended.failure
    assert crew.ended()["cost"]["spend"] == pytest.approx(0.2)


async def test_spawns_and_depth_are_limits(hire: Hire) -> None:
    crew = await hire(
        {"main": directive("main"), "child": directive("child")},
        {"main": [calls(fork("child")), calls(fork("child")), "ok"], "child": [calls(fork("child")), "no deeper"]},
    )
    await crew.go(spawns=1, depth=1)
    assert "depth" in crew.results()[0]
    assert "spawns 1 of 1" in crew.results()[2]


async def test_a_childs_money_is_its_parents(hire: Hire) -> None:
    crew = await hire(
        {"main": directive("main"), "child": directive("child", meta='<limits spend="5" />')},
        {"main": [calls(fork("child")), "ok"], "child": [calls(ls(str(at))) for at in range(9)]},
        cost=0.1,
    )
    ended = await crew.go(spend=0.55)
    assert crew.ended("child")["limit_type"] == "spend_exceeded"
    assert ended.failure and ended.failure.kind == "spend_exceeded"
    assert crew.ended()["cost"]["spend"] == pytest.approx(0.5)
    assert len(crew.table.calls) == 5


async def test_children_beside_the_parent_are_waited_for(hire: Hire) -> None:
    crew = await hire(
        {"main": directive("main"), "a": directive("a", more=OUT), "b": directive("b")},
        {
            "main": [
                calls(fork("a", **{"async": True}), fork("b", **{"async": True})),
                calls(orchestrate("wait_threads")),
                "ok",
            ],
            "a": [calls(ls("a"), give(answer="A"))],
            "b": [calls(ls("b")), "said b"],
        },
    )
    assert (await crew.go()).status is Status.COMPLETED
    started = [json.loads(one) for one in crew.results() if '"running"' in one]
    assert [one["thread_id"] for one in started] == ["a#1", "b#2"]
    waited = json.loads(crew.results()[-1])
    assert waited["success"] is True
    assert waited["results"]["a#1"]["outputs"] == {"answer": "A"}
    assert waited["results"]["b#2"]["result"] == "said b"


async def test_a_child_that_nobody_waits_for_ends_with_its_parent(hire: Hire) -> None:
    crew = await hire(
        {"main": directive("main"), "slow": directive("slow")},
        {"main": [calls(fork("slow", **{"async": True})), "gone"], "slow": [calls(ls()), "never"]},
    )
    crew.table.gates["slow"] = asyncio.Event()
    assert (await crew.go()).status is Status.COMPLETED
    assert "thread/end/halt" in await crew.paths()
    assert crew.tools.calls == []


async def test_a_child_is_stopped_and_stays_stopped_on_replay(hire: Hire) -> None:
    crew = await hire(
        {"main": directive("main"), "slow": directive("slow")},
        {
            "main": [
                calls(fork("slow", **{"async": True})),
                calls(orchestrate("cancel_thread", thread_id="slow#1")),
                calls(("ask", {"prompt": "well?"})),
                calls(orchestrate("get_status")),
                "done",
            ],
            "slow": [calls(ls()), "never"],
        },
    )
    crew.table.gates["slow"] = asyncio.Event()
    assert (await crew.go()).status is Status.AWAITING_INPUT
    crew.table.gates["slow"].set()
    (question,) = await crew.store.questions(crew.run)
    await crew.answer(question.path, "yes")
    assert (await crew.go()).status is Status.COMPLETED
    assert '"cancelled"' in crew.results()[-1]
    assert crew.tools.calls == []


async def test_a_question_in_a_child_parks_the_run_while_the_parent_waits(hire: Hire) -> None:
    crew = await hire(
        {"main": directive("main"), "child": directive("child")},
        {
            "main": [calls(fork("child", **{"async": True})), calls(orchestrate("wait_threads")), "ok"],
            "child": [calls(("ask", {"prompt": "which?"})), "thanks"],
        },
    )
    assert (await crew.go()).status is Status.AWAITING_INPUT
    (question,) = await crew.store.questions(crew.run)
    await crew.answer(question.path, "this")
    assert (await crew.go()).status is Status.COMPLETED
    assert json.loads(crew.results()[-1])["results"]["child#1"]["result"] == "thanks"


async def test_a_wait_is_over_when_its_time_is_up(hire: Hire) -> None:
    crew = await hire(
        {"main": directive("main"), "slow": directive("slow")},
        {
            "main": [calls(fork("slow", **{"async": True})), calls(orchestrate("wait_threads", timeout=5)), "ok"],
            "slow": ["never"],
        },
    )
    crew.table.gates["slow"] = asyncio.Event()
    assert (await crew.go()).status is Status.COMPLETED
    assert json.loads(crew.results()[-1])["results"] == {"slow#1": {"status": "running"}}


async def test_what_breaks_the_run_breaks_it_in_a_child_too(hire: Hire) -> None:
    from quire.engine.driver.walker import DriveLimits

    crew = await hire(
        {"main": directive("main"), "child": directive("child")},
        {
            "main": [calls(fork("child", **{"async": True})), calls(orchestrate("wait_threads")), "ok"],
            "child": [calls(ls(str(at))) for at in range(9)],
        },
        cost=0.1,
    )
    ended = await crew.go(terms=DriveLimits(budget=0.45), spend=20.0)
    assert ended.failure and ended.failure.kind == "limit"
    assert (await crew.go(terms=DriveLimits(budget=9.0), spend=20.0)).status is Status.COMPLETED
    assert len({effect for _, _, effect in crew.tools.calls}) == len(crew.tools.calls) == 9


async def test_only_its_own_children_can_be_named(hire: Hire) -> None:
    crew = await hire(
        {"main": directive("main")}, {"main": [calls(orchestrate("wait_threads", thread_ids=["x#1"])), "ok"]}
    )
    await crew.go()
    assert "has not started x#1" in crew.results()[0]


DIRECTIVES = {
    "main": directive(
        "main",
        meta='<hooks><hook id="n" event="after_step"><condition path="turn" op="eq" value="2" />'
        '<action primary="execute" item_type="tool" item_id="rye/file-system/write"><param name="path">n${turn}</param>'
        "</action></hook></hooks>",
    ),
    "child": directive("child", more=OUT),
    "aside": directive("aside"),
}
REPLIES: Mapping[str, list[Reply]] = {
    "main": [
        calls(fork("aside", **{"async": True}), ls("m1")),
        calls(fork("child"), ls("m2"), ("rye_bash", {}), ("ask", {"prompt": "sugar?"})),
        calls(orchestrate("wait_threads")),
        calls(ls("m3")),
        "end",
    ],
    "child": [calls(ls("c1"), ls("c2")), calls(("ask", {"prompt": "milk?"})), calls(give(answer="tea"))],
    "aside": [calls(ls("a1")), calls(ls("a2")), "aside is done"],
}


class Crash:
    """A crew that dies at a write and is hired again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.performed: Counter[str] = Counter()
        self.asked: Counter[tuple[str, int]] = Counter()

    async def live(self, nth: int, when: Literal["before", "after"]) -> tuple[int, Value, dict[str, Any]]:
        """The number of writes, the result and the records of a run that was carried to its end."""
        clock = SlowClock()
        store: Any = Mortal(open_store(self.folder / "db", durability="process", now=clock.now), nth, when)
        crew = Crew(store, clock=clock, directives=dict(DIRECTIVES), table=Table(REPLIES))
        try:
            if not await store.list():
                await crew.create()
            while True:
                row = await store.get(crew.run)
                if row.status is Status.COMPLETED:
                    break
                for question in await store.questions(crew.run):
                    await crew.answer(question.path, "yes")
                ended = await crew.go()
                assert ended.status in (Status.AWAITING_INPUT, Status.COMPLETED), ended
            effects = await store.effects(crew.run)
            again = await replay(lambda work: crew.walk({}, {}), effects, Progress({}), lambda boundary: False)
            assert again.finished
            return store.writes, again.result, {one.path: (one.state, one.value) for one in effects}
        finally:
            self.performed.update(effect for _, _, effect in crew.tools.calls)
            self.asked.update(crew.table.calls)
            await store.close()


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_death_at_any_write_changes_nothing(tmp_path: Path, when: Literal["before", "after"]) -> None:
    (tmp_path / "calm").mkdir()
    calm = Crash(tmp_path / "calm")
    writes, result, records = await calm.live(10**9, when)
    assert writes > 25
    assert set(calm.performed.values()) == set(calm.asked.values()) == {1}
    for nth in range(1, writes + 1, depth(3, 1)):
        folder = tmp_path / f"{when}-{nth}"
        folder.mkdir()
        crash = Crash(folder)
        with contextlib.suppress(Died):
            await crash.live(nth, when)
        _, again, ended = await crash.live(10**9, when)
        assert again == result, nth
        assert {path: ended.get(path) for path in records} == records, nth
        # What was under way at the death may have happened twice, once; nothing that was recorded did.
        assert max(crash.performed.values()) <= 2
        assert sum(count == 2 for count in crash.performed.values()) <= 4
        assert sum(count == 2 for count in crash.asked.values()) <= 3


@pytest.mark.parametrize("more", [1, 2, 0])
async def test_a_resumed_thread_may_leave_other_children_behind(hire: Hire, more: int) -> None:
    """What it stopped when it failed is stopped anew when it ends, and the journal has what was stopped last."""
    replies: dict[str, list[Reply]] = {"main": [calls(fork("child", **{"async": True})), down()], "child": []}
    crew = await hire({"main": directive("main"), "child": directive("child")}, replies)
    crew.table.gates["child"] = asyncio.Event()
    assert (await crew.go()).status is Status.FAILED
    assert "thread/end/halt" in await crew.paths()
    waiting = calls(orchestrate("cancel_thread"))
    again = [calls(fork("child", **{"async": True})) for _ in range(more)] if more else [waiting]
    replies["main"][1:] = [*again, "done"]
    ended = await crew.go()
    assert ended.status is Status.COMPLETED, ended.failure
    records = {one.path: one for one in await crew.store.effects(crew.run)}
    halted = [f"thread/turn[{turn}]/tool[0]/thread" for turn in range(1, more + 2)]
    assert ("thread/end/halt" in records) == bool(more)
    assert not more or records["thread/end/halt"].value == halted
    walked = await replay(lambda work: crew.walk({}, {}), records.values(), Progress({}), lambda boundary: False)
    assert walked.finished and walked.failure is None
