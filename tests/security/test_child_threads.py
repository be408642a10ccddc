"""Children that want more than their parent: capabilities, limits, money, depth, company."""

from __future__ import annotations

import pytest
from tests.security.stage import FILES, Call, Reply, Stage, completed, execute, fork

from quire.errors import Refused
from quire.values import Value

PARENT = "<execute><tool>rye.file-system.read</tool><tool>rye.agent.threads.*</tool></execute>"
EVERYTHING = "*<acknowledge risk='unrestricted'>x</acknowledge>"
WRITE: Call = ("rye_file_system_write", {"path": "pwned.txt", "content": "x"})
BASH: Call = ("rye_bash", {"command": "touch pwned.txt"})


@pytest.mark.parametrize(
    "permissions",
    [
        EVERYTHING,
        "<execute>*</execute>",
        "<execute><tool>*</tool></execute>",
        "<execute><tool>rye.*</tool></execute>",
        None,
        "<execute><tool>rye.file-system.*</tool></execute>",
        "<execute><tool>rye.file-system.r*</tool><tool>rye.file-system.write</tool></execute>",
        "<execute><tool>rye.file-system.read</tool></execute><sign>*</sign>",
    ],
)
@pytest.mark.parametrize("way", ["fork", "execute", "async"])
async def test_a_child_never_has_more_than_its_parent(stage: Stage, permissions: str | None, way: str) -> None:
    stage.directive("main", PARENT.replace("</execute>", "<directive>child</directive></execute>"))
    stage.directive("child", permissions, "AS A CHILD")
    start: dict[str, Reply] = {
        "fork": [fork("child")],
        "execute": [("rye_execute", {"item_type": "directive", "item_id": "child", "thread": "fork"})],
        "async": [fork("child", **{"async": True})],
    }
    waiting: Reply = [("rye_agent_threads_orchestrator", {"operation": "wait_threads"})]
    tried: Reply = [WRITE, BASH, ("rye_sign", {"item_type": "directive", "item_id": "child"})]
    before = stage.print()
    played = await stage.play("main", start[way], waiting, children={"AS A CHILD": [tried]})
    assert completed(played)
    assert played.kinds.count("denied") == 3, played.told
    assert stage.print() == before


async def test_nor_does_the_child_of_a_child(stage: Stage) -> None:
    stage.directive("main", PARENT)
    stage.directive("child", EVERYTHING, "AS A CHILD")
    stage.directive("grandchild", EVERYTHING, "AS A GRANDCHILD")
    before = stage.print()
    played = await stage.play(
        "main",
        [fork("child")],
        children={"AS A GRANDCHILD": [[WRITE, BASH]], "AS A CHILD": [[fork("grandchild")]]},
    )
    assert completed(played) and played.kinds.count("denied") == 2, played.told
    assert stage.print() == before


async def test_a_child_with_nothing_in_common_does_not_start(stage: Stage) -> None:
    stage.directive("main", PARENT)
    stage.directive("child", "<execute><tool>rye.bash</tool></execute>", "AS A CHILD")
    played = await stage.play("main", [fork("child")])
    assert played.kinds == ["denied"] and len(played.model.calls) == 2


async def test_what_blocks_at_the_top_blocks_below(stage: Stage) -> None:
    stage.directive("main", EVERYTHING)
    stage.directive("child", "*", "AS A CHILD")
    played = await stage.play("main", [fork("child")])
    assert played.kinds == ["denied"] and "unrestricted" in played.told[0]
    with pytest.raises(Refused, match="unrestricted"):
        await stage.play("child")


@pytest.mark.parametrize(
    "overrides",
    [
        {"turns": 10**6, "tokens": 10**9, "spend": 10**6, "spawns": 10**6, "depth": 10**6, "duration_seconds": 10**9},
        {"max_turns": 10**6, "max_tokens": 10**9},
        {"turns": None, "tokens": None, "spend": None, "spawns": None, "depth": None, "duration_seconds": None},
    ],
)
async def test_no_override_raises_a_limit_above_the_parents(stage: Stage, overrides: dict[str, Value]) -> None:
    own = '<limits turns="3" tokens="5000" spend="0.25" spawns="2" depth="2" duration_seconds="60" />'
    stage.directive("main", PARENT, meta=own)
    stage.directive("child", PARENT, "AS A CHILD", meta='<limits turns="99" spend="99" spawns="99" depth="99" />')
    look: Reply = [("rye_file_system_read", {"path": ".ai/directives/child.md"})]
    played = await stage.play("main", [fork("child", limit_overrides=overrides)], children={"AS A CHILD": [look] * 50})
    assert "turns 3 of 3" in played.told[-1], played.told
    assert len(played.model.calls) == 3 + 2
    bounded = [call.max_tokens for call in played.model.calls]
    assert all(most is not None and most <= 4096 for most in bounded)


@pytest.mark.parametrize(
    "overrides",
    [
        {"turns": -1},
        {"spend": -0.5},
        {"spend": "NaN"},
        {"spend": "Infinity"},
        {"turns": 10**400},
        {"turns": True},
        {"turns": [1]},
        {"turns": "ten"},
        {"capabilities": ["rye.*"]},
        {"grants": "rye.*"},
        {"max_spend": 5},
        "turns=5",
        [["turns", 5]],
        5,
    ],
)
async def test_odd_overrides_start_nothing(stage: Stage, overrides: Value) -> None:
    stage.directive("main", PARENT)
    stage.directive("child", PARENT, "AS A CHILD")
    played = await stage.play("main", [fork("child", limit_overrides=overrides)])
    assert completed(played) and played.kinds[0] in ("refused", "arguments"), played.told
    assert len(played.model.calls) == 2


@pytest.mark.parametrize("more", [{"model": "openai:gpt-5"}, {"grants": ["rye.*"]}, {"parent_thread_id": "x"}])
async def test_other_words_to_a_fork_give_nothing(stage: Stage, more: dict[str, Value]) -> None:
    stage.directive("main", PARENT)
    stage.directive("child", EVERYTHING, "AS A CHILD")
    played = await stage.play("main", [fork("child", **more)], children={"AS A CHILD": [[WRITE]]})
    assert completed(played) and not (stage.work / "pwned.txt").exists()
    assert "denied" in played.kinds or played.kinds == ["arguments"]


async def test_a_directive_that_starts_itself_comes_to_an_end(stage: Stage) -> None:
    stage.directive("main", PARENT, "AS ONE OF MANY", meta='<limits depth="3" />')
    played = await stage.play("main", children={"AS ONE OF MANY": [[fork("main")]] * 4})
    assert completed(played)
    assert sum("depth" in one for one in played.told) >= 1 and len(played.model.calls) <= 2 * 4


async def test_spawns_are_counted_in_one_turn_too(stage: Stage) -> None:
    stage.directive("main", PARENT, meta='<limits spawns="3" />')
    stage.directive("child", PARENT, "AS A CHILD")
    played = await stage.play("main", [fork("child")] * 20)
    assert played.kinds.count("spawns_exceeded") == 17, played.kinds


async def test_only_its_own_children_are_a_threads_business(stage: Stage) -> None:
    stage.directive("main", PARENT)
    stage.directive("child", PARENT, "AS A CHILD")
    calls: list[Call] = [
        ("rye_agent_threads_orchestrator", {"operation": operation, "thread_ids": [name]})
        for operation in ("cancel_thread", "kill_thread", "get_status", "wait_threads")
        for name in ("main", "child#1", "thread", "../main", "*")
    ]
    played = await stage.play("main", [fork("child")], children={"AS A CHILD": [calls]})
    assert completed(played) and played.kinds[:-1] == ["arguments"] * len(calls), played.kinds


@pytest.mark.parametrize("seconds", [10**400, -5, 1e300, "x", [1], True, None])
async def test_an_odd_wait_is_a_wait(stage: Stage, seconds: Value) -> None:
    stage.directive("main", PARENT)
    played = await stage.play(
        "main", [("rye_agent_threads_orchestrator", {"operation": "wait_threads", "timeout": seconds})]
    )
    assert completed(played)


async def test_a_document_that_a_thread_calls_is_held_to_the_thread(stage: Stage) -> None:
    """Not to what the user would grant it if the user ran it."""
    stage.directive("main", "<execute><tool>rye.file-system.read</tool><playbook>*</playbook></execute>")
    text = '# X\n\n## STEP 1: Write\n\n@tool(quire, file__write, {"path": "pwned.txt", "content": "x"})\n'
    stage.write("x.playbook.md", text)
    played = await stage.play("main", [("rye_execute", {"item_type": "playbook", "item_id": "x"})])
    assert "rye.execute.tool.rye.file-system.write" in played.told[0], played.told
    assert not (stage.work / "pwned.txt").exists()
    assert completed(await stage.play("x", path="x.playbook.md")) and (stage.work / "pwned.txt").exists()


async def test_a_directive_in_a_document_in_a_thread_is_held_to_the_thread(stage: Stage) -> None:
    stage.directive("main", "<execute><tool>rye.file-system.read</tool><playbook>*</playbook></execute>")
    stage.directive("strong", FILES, "AS A CHILD")
    stage.write("x.playbook.md", "# X\n\n## STEP 1: Call\n\n@tool(quire, strong, {})\n")
    played = await stage.play(
        "main",
        [("rye_execute", {"item_type": "playbook", "item_id": "x"})],
        children={"AS A CHILD": [[WRITE, execute("rye/file-system/edit", {"path": "a", "old": "x", "new": "y"})]]},
    )
    assert played.kinds.count("denied") == 2, played.told
    assert not (stage.work / "pwned.txt").exists()
