"""The look before the start is the same whoever starts a run, and its warnings reach whoever started it (G4)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.given import given
from tests.play import Play

import quire
from quire.api.launches import launch
from quire.engine.records import Event, Status
from quire.errors import BadInputs, Denied, LimitReached, QuireError
from quire.library.document import load
from quire.mcp_server.launch_tools import result_of
from quire.models.scripted import ScriptedModel
from quire.runs.fork import Changes
from quire.runs.launch import LaunchResult
from quire.runs.options import RunOptions
from quire.runs.repair import repair
from quire.runs.runtime import Runtime
from quire.values import Value

CAPPED = "pipeline: p\nsteps:\n- agent: {prompt: A.}\n- agent: {prompt: B.}\n- agent: {prompt: C.}\n"
NEST = "pipeline: p\nsteps:\n- agent: {prompt: Pay.}\n- "
INNER = "{transform: {value: pipe}}"
ITEMS = f"for_each: {{items: [1, 2, 3], max_items: 2, on_error: abort, do: {INNER}, collect: {INNER}}}"
MAYBE = """pipeline: maybe
steps:
- agent: {prompt: Say.}
- for_each: {over: "[1]", on_error: continue, do: {shell: {command: ls}}, collect: {transform: {value: pipe}}}
"""


PAGE = "# Page\n\n## INPUTS\n\n- `topic` (string): T\n\n## STEP 1: A\n\n{{topic}}\n"


def fans(depth: int, policy: str = "abort") -> str:
    """Fans within fans. Flow style, so that they can stand in one line."""
    text = INNER
    for _ in range(depth):
        text = f"{{for_each: {{items: [1], on_error: {policy}, do: {text}, collect: {INNER}}}}}"
    return text.removeprefix("{").removesuffix("}")


@pytest.fixture(autouse=True)
def space(here: Path) -> None:
    Path("pipelines").mkdir()
    given({"quire.toml": "[safety.spawn]\nmax_pipeline_spawns = 2\n", "playbooks/page.playbook.md": PAGE})


def model() -> ScriptedModel:
    return ScriptedModel([{"default": "fine"}])


REFUSED: dict[str, tuple[str, type[QuireError], str]] = {
    "cap": (CAPPED, LimitReached, "at least 3 model calls"),
    "depth": (NEST + fans(6), BadInputs, "fan-out depth 6 exceeds max_pipeline_fan_out_depth"),
    "items": (NEST + ITEMS, BadInputs, "3 items are more than max_items, which is 2"),
    "grant": (NEST + "shell: {command: ls}", Denied, "--allow shell"),
    "pipeline": (NEST + "call: {pipeline: nobody}", BadInputs, "step 2: unknown pipeline nobody"),
    "schema": (NEST + "agent: {prompt: x, schema: No}", BadInputs, "step 2: unknown schema No: it is not in this file"),
    "identity": (NEST + "agent: {prompt: x, identity: ghost}", BadInputs, "step 2: unknown identity ghost"),
    "inputs": (NEST + "call: {pipeline: page}", BadInputs, "the playbook page needs topic, which it is not given"),
    "arguments": (NEST + "tool: {name: file__read, args: {pth: x}}", BadInputs, "did you mean path?"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_every_door_refuses_the_same(play: Play, tmp_path: Path, name: str) -> None:
    """A refusal costs nothing: no model is asked, no row is left, `last` stays what it was."""
    text, error, said = REFUSED[name]
    file = tmp_path / "pipelines" / "p.yaml"
    file.write_text(text)
    asked = model()
    with pytest.raises(error, match=said):
        await quire.run(file, model=asked)
    told = await launch("p", model=asked)
    assert told["status"] == "error" and said.replace("\\", "") in told["data"]["error"]
    later = await launch("p", model=asked, wait=False)
    assert later["status"] == "error" and "run_id" not in later["data"]
    opened = play.open(model=asked)
    with pytest.raises(error, match=said):
        await Runtime(opened.settings, opened.store, model=asked, queue="q").start(load(file), {}, RunOptions())
    assert (await opened.store.list(), asked.calls) == ([], [])


async def test_fans_that_may_not_be_reached_only_warn(play: Play, tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(NEST + fans(6, "continue"))
    run = await play.start(file)
    (warning,) = await play.runtime.warnings(run)
    assert "may fail" in warning and "fan-out depth 6" in warning
    file.write_text(NEST + fans(5))
    assert await play.runtime.warnings(await play.start(file)) == ()


async def test_fans_around_a_call_count_in_the_callee(play: Play, tmp_path: Path) -> None:
    (tmp_path / "pipelines" / "inner.yaml").write_text(f"pipeline: inner\nsteps:\n- {fans(3)}\n")
    call, deep = "{call: {pipeline: inner}}", fans(3).replace(INNER, "{call: {pipeline: inner}}", 1)
    file = tmp_path / "p.yaml"
    file.write_text(f"pipeline: p\nsteps:\n- {call}\n- {deep}\n")
    with pytest.raises(BadInputs, match=r"step 2\.do\.do\.do › 1\.do\.do: fan-out depth 6"):
        await play.start(file)


async def test_calls_that_are_nested_too_deep_are_refused(play: Play, tmp_path: Path) -> None:
    for number in range(101):
        call = f"call: {{pipeline: p{number + 1}}}"
        (tmp_path / "pipelines" / f"p{number}.yaml").write_text(f"pipeline: p{number}\nsteps:\n- {call}\n")
    (tmp_path / "pipelines" / "p101.yaml").write_text("pipeline: p101\nsteps:\n- transform: {value: '1'}\n")
    with pytest.raises(BadInputs, match="step 1 › 1 › 1 › … › 1 › 1 › 1: the calls are nested too deep"):
        await play.start("pipelines/p0.yaml")
    assert (await play("pipelines/p1.yaml")).ended.status is Status.COMPLETED


async def test_warnings_reach_programs(tmp_path: Path) -> None:
    file = tmp_path / "pipelines" / "maybe.yaml"
    file.write_text(MAYBE)
    running = quire.run(file, model=model())
    events: list[Event] = [event async for event in running]
    said = [str(event.data["message"]) for event in events if event.type == "warning"]
    assert len(said) == 1 and "--allow shell" in said[0]
    assert (await running).warnings == tuple(said)
    told = await launch("maybe", model=model())
    assert told["status"] == "ok" and told["data"]["warnings"] == said


def test_warnings_reach_mcp_clients_beside_the_output() -> None:
    data: dict[str, Value] = {"run_id": "r", "output": "text", "warnings": ["a", "b"]}
    result = result_of(LaunchResult("ok", data))
    assert [getattr(block, "text", "") for block in result.content] == ["text", "warning: a\nwarning: b"]
    assert result.structured_content == {"status": "ok", "data": data}


async def test_a_worker_finishes_the_look_before_anything_is_paid(play: Play, tmp_path: Path) -> None:
    """What a cluster's own keys, servers and modules say, only its worker knows."""
    file = tmp_path / "p.yaml"
    file.write_text(MAYBE)
    asked = model()
    opened = play.open(model=asked)
    starting = Runtime(opened.settings, opened.store, model=asked, queue="q")
    run = await starting.start(load(file), {}, RunOptions())
    events: list[Event] = []
    await opened.drive(run, listen=events.append)
    assert ["--allow shell" in str(event.data["message"]) for event in events if event.type == "warning"] == [True]
    file.write_text(NEST + "tool: {name: nope__x, args: {}}")
    unknown = await starting.start(load(file), {}, RunOptions())
    paid = len(asked.calls)
    with pytest.raises(BadInputs, match='unknown tool "nope__x"'):
        await opened.drive(unknown)
    assert len(asked.calls) == paid


async def test_an_edited_document_is_looked_at_like_a_new_one(play: Play, tmp_path: Path) -> None:
    """`fork --document` and `resume --document`: what is refused leaves the runs as they are."""
    runtime = play.runtime
    file = tmp_path / "p.yaml"
    file.write_text("pipeline: p\nsteps:\n- agent: {prompt: Pay.}\n")
    run = await play.start(file)
    await runtime.drive(run)
    for name, (text, error, said) in REFUSED.items():
        file.write_text(text)
        with pytest.raises(error, match=said):
            await repair(runtime, run, str(file), Changes())
        assert ([row.id for row in await runtime.store.list()], await runtime.find("last")) == ([run], run), name
    file.write_text(MAYBE.replace("maybe", "p"))
    made = await repair(runtime, run, str(file), Changes())
    assert ["--allow shell" in one for one in await runtime.warnings(made.run)] == [True]


async def test_a_callee_that_cannot_be_read_is_named_with_its_mistake(play: Play, tmp_path: Path) -> None:
    (tmp_path / "pipelines" / "inner.yaml").write_text("pipeline: inner\nsteps:\n- tool: {name: ask, store: n}\n")
    file = tmp_path / "p.yaml"
    file.write_text("pipeline: p\nsteps:\n- call: {pipeline: inner}\n")
    with pytest.raises(BadInputs, match=r'not loaded: .*inner\.yaml:3: "store" is not a key of tool'):
        await play.start(file)
