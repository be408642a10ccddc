from __future__ import annotations

import pytest
from tests.library.item_tools.shelf import Shelf, directive, knowledge

from quire.errors import Denied, ToolFailed
from quire.library.item_tools.fetch import impossible
from quire.values import Value

INPUTS = (
    '<inputs><input name="n" type="string" required="true">N</input>'
    '<input name="times" type="integer" default="2">T</input></inputs>\n'
)


@pytest.fixture
def shelf(shelf: Shelf) -> Shelf:
    shelf.put(".ai/directives/demo/x.md", directive("x", inputs=INPUTS, body="Hi {input:n}, {input:times} times"))
    shelf.put(".ai/knowledge/demo/k.md", knowledge("k"))
    return shelf


async def test_a_directive_gives_its_directions(shelf: Shelf) -> None:
    answer = await shelf.call("execute", item_type="directive", item_id="x", parameters={"n": "Bo {input:times}"})
    assert answer == {
        "status": "success",
        "item_type": "directive",
        "item_id": "demo/x",
        "source": "project",
        "your_directions": "Hi Bo {input:times}, 2 times",
        "inputs": {"n": "Bo {input:times}", "times": 2},
    }


async def test_a_process_inside_the_fence_is_part_of_the_directions(shelf: Shelf) -> None:
    process = '<process><step name="s">Look at {input:n}.</step></process>\n'
    shelf.put(".ai/directives/demo/y.md", directive("y", inputs=INPUTS + process, body="First."))
    answer = await shelf.call("execute", item_type="directive", item_id="demo/y", parameters={"n": "it"})
    assert str(answer["your_directions"]).startswith("First.\n\n") and "Look at it." in str(answer["your_directions"])


async def test_knowledge_gives_its_body(shelf: Shelf) -> None:
    answer = await shelf.call("execute", item_type="knowledge", item_id="demo/k")
    assert (answer["status"], answer["content"]) == ("success", "BODY")


async def test_dry_run(shelf: Shelf) -> None:
    for thread in ("inline", "fork"):
        answer = await shelf.call(
            "execute",
            item_type="directive",
            item_id="demo/x",
            dry_run=True,
            thread=thread,
            parameters={"n": "Bo", "times": "3", "model": "low", "limit_overrides": {"turns": 2}},
        )
        assert (answer["status"], answer["inputs"]) == ("validation_passed", {"n": "Bo", "times": 3})
        assert "your_directions" not in answer
    assert (await shelf.call("execute", item_type="knowledge", item_id="demo/k", dry_run=True))["status"] == (
        "validation_passed"
    )


async def test_wrong_inputs_are_all_named(shelf: Shelf) -> None:
    answer = await shelf.call(
        "execute", item_type="directive", item_id="demo/x", parameters={"zz": 1, "times": "often"}, dry_run=True
    )
    assert answer["status"] == "error" and len(answer["issues"]) == 3  # type: ignore[arg-type]
    for word in ("zz", "n", "times"):
        assert word in str(answer["error"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"item_type": "tool", "thread": "fork"}, "fork is for directives"),
        ({"item_type": "knowledge", "thread": "fork"}, "fork is for directives"),
        ({"item_type": "pipeline", "thread": "fork"}, "fork is for directives"),
        ({"item_type": "directive", "thread": "remote:gpu"}, "remote threads are not supported"),
        ({"item_type": "directive", "thread": "sideways"}, 'unknown thread mode "sideways"'),
        ({"item_type": "directive", "async": True}, "use thread: fork"),
        ({"item_type": "directive", "thread": "fork", "async": True, "dry_run": True}, "do not go together"),
        ({"item_type": "knowledge", "async": True}, "async is not for knowledge"),
    ],
)
async def test_impossible_ways(shelf: Shelf, arguments: dict[str, Value], words: str) -> None:
    assert words in str(impossible(arguments))
    answer = await shelf.call("execute", item_id="demo/x", **arguments)
    assert answer["status"] == "error" and words in str(answer["error"])


async def test_dry_run_of_a_tool(shelf: Shelf) -> None:
    async def check(tool: str, grants: str = "rye.*", /, **parameters: Value) -> dict[str, Value]:
        return await shelf.call("execute", grants, item_type="tool", item_id=tool, dry_run=True, parameters=parameters)

    good = await check("rye/file-system/fs_write", path="a", content="b")
    assert (good["status"], good["item_id"]) == ("validation_passed", "rye/file-system/write")
    assert not (shelf.project / "a").exists()
    wrong = await check("rye/file-system/write", path="a")
    assert wrong["status"] == "error" and '"content" is a required property' in str(wrong["error"])
    assert "tool not found: rye/nope" in str((await check("rye/nope"))["error"])
    with pytest.raises(Denied, match=r"rye.execute.tool.rye.bash"):
        await check("shell", "rye.execute.tool.rye.file-system.*", command=":")


@pytest.mark.parametrize(
    "arguments",
    [
        {"item_type": "tool"},
        {"item_type": "pipeline"},
        {"item_type": "playbook"},
        {"item_type": "directive", "thread": "fork"},
        {"item_type": "directive", "thread": "fork", "async": True},
        {"item_type": "tool", "async": True},
    ],
)
async def test_what_the_engine_runs_is_possible_but_not_here(shelf: Shelf, arguments: dict[str, Value]) -> None:
    assert impossible(arguments) is None
    with pytest.raises(ToolFailed, match="executed by a thread") as failure:
        await shelf.call("execute", item_id="demo/x", **arguments)
    assert failure.value.kind == "dispatch"


async def test_refusals(shelf: Shelf) -> None:
    with pytest.raises(Denied, match=r"rye.execute.directive.demo.x"):
        await shelf.call("execute", "rye.fetch.* rye.execute.tool.*", item_type="directive", item_id="x")
    with pytest.raises(Denied, match=r"rye.execute.knowledge.demo.k"):
        await shelf.call("execute", "rye.fetch.*", item_type="knowledge", item_id="k")
    missing = await shelf.call("execute", item_type="directive", item_id="demo/none")
    assert "directive not found: demo/none" in str(missing["error"])
    shelf.put(".ai/directives/demo/x.md", directive("x"), sign=False)
    unsigned = await shelf.call("execute", item_type="directive", item_id="demo/x")
    assert unsigned["error_type"] == "integrity" and "your_directions" not in unsigned
    shelf.put(".ai/directives/demo/x.md", "# no fence\n", sign=False)
    shelf.mode = "warn"
    broken = await shelf.call("execute", item_type="directive", item_id="demo/x")
    assert "the directive demo/x cannot be read: line" in str(broken["error"])
