"""Bounds that were proven before a run are pinned, and compared at its end as long as it is the proven run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.given import given
from tests.play import Play

from quire.engine.ports import Model, ModelCall, ModelReply
from quire.engine.proven_bounds import ProvenBounds
from quire.engine.records import Event, Status, Usage
from quire.errors import ModelFailed
from quire.library.document import read
from quire.models.scripted import ScriptedModel
from quire.runs.drives import Given
from quire.runs.fork import Changes, fork
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.source import Source
from quire.values import Value

PAGE = "# Two\n\n## STEP 1: One\n\nSay one.\n\n## STEP 2: Two\n\nSay two.\n"
LOW = ProvenBounds(model_calls=1, output_tokens=1)


@pytest.fixture
def runtime(play: Play) -> Runtime:
    return play.open([{"default": "well", "usage": {"input_tokens": 9, "output_tokens": 9}}])


async def started(runtime: Runtime, options: RunOptions) -> str:
    return await runtime.start(read(Source.of(PAGE, "two.playbook.md")), {}, options)


async def broken(runtime: Runtime, run: str, **how: object) -> list[object]:
    events: list[Event] = []
    ended = await runtime.drive(run, listen=events.append, **how)  # type: ignore[arg-type]
    assert ended.status is Status.COMPLETED
    return [event.data["name"] for event in events if event.type == "bound_broken"]


async def test_a_run_keeps_what_was_proven_of_it(runtime: Runtime) -> None:
    run = await started(runtime, RunOptions(proven=LOW))
    assert (await runtime.row(run)).pins["proven"] == {"model_calls": 1, "output_tokens": 1}
    assert await broken(runtime, run) == ["model_calls", "output_tokens"]
    view = await runtime.view(run)
    kept = [event.type for event in await runtime.store.events(run)]
    assert kept.count("bound_broken") == 2
    assert [label for label, text in view.warnings if "at most 1 were proven possible" in text] == ["", ""]


async def test_a_run_of_which_nothing_is_proven_pins_nothing(runtime: Runtime) -> None:
    run = await started(runtime, RunOptions())
    assert "proven" not in (await runtime.row(run)).pins
    assert await broken(runtime, run) == []


async def test_a_pause_does_not_end_the_comparison(runtime: Runtime) -> None:
    run = await started(runtime, RunOptions(proven=LOW, breakpoints=("1",)))
    assert (await runtime.drive(run)).status is Status.PAUSED
    assert await broken(runtime, run) == ["model_calls", "output_tokens"]


@pytest.mark.parametrize(
    ("given", "overrides", "found"),
    [
        (Given(), {"x": "y"}, []),
        (Given(limits={"turns": 3}), {}, []),
        (Given(budget=3.0), {}, ["model_calls", "output_tokens"]),
    ],
)
async def test_another_run_than_the_proven_one_is_not_compared(
    tmp_path: Path, runtime: Runtime, given: Given, overrides: dict[str, str], found: list[str]
) -> None:
    page = PAGE.replace("Say two.", "Say {{x}}.").replace("Say one.", "Say one.\n\n@output(x)")
    document = read(Source.of(page, "two.playbook.md"))
    run = await runtime.start(document, {}, RunOptions(proven=LOW, breakpoints=("1",)))
    assert (await runtime.drive(run)).status is Status.PAUSED
    assert await broken(runtime, run, given=given, overrides=overrides) == found
    assert len((await runtime.view(run)).warnings) == len(found)


async def test_a_fork_is_not_compared(runtime: Runtime) -> None:
    run = await started(runtime, RunOptions(proven=LOW))
    await runtime.drive(run)
    made = await fork(runtime, run, "2", Changes())
    assert await broken(runtime, made.run) == []


AGENTS = """pipeline: p
dialect: quire
steps:
  - agent: {prompt: One, capabilities: {tools: []}}
  - agent: {prompt: Two, capabilities: {tools: []}}
"""
MODEL_TOOLS = AGENTS.replace("tools: []", "tools: [file__read]").replace("prompt: One", "prompt: One, identity: reader")


class Counting:
    """A model of a program, which counts its tokens. It fails the calls whose usage is None."""

    name = "counting"

    def __init__(self, *usages: Usage | None) -> None:
        self._usages = list(usages)

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        usage = self._usages.pop(0)
        if usage is None:
            raise ModelFailed("not now")
        return ModelReply("well", self.name, usage)


async def pinned_and_broken(
    play: Play, model: Model, text: str = AGENTS, drives: int = 1
) -> tuple[dict[str, Value], list[str]]:
    """Run a pipeline; return what was proven of it, and the messages about broken bounds."""
    runtime = play.open(model=model)
    played = await play(read(Source.of(text, "p.yaml")))
    events = played.events
    for _ in range(1, drives):
        events.clear()
        await runtime.drive(played.run, listen=events.append)
    pinned = played.row.pins["proven"]
    assert isinstance(pinned, dict)
    return pinned, [f"{one.data['name']}: {one.data['message']}" for one in events if one.type == "bound_broken"]


async def test_tokens_of_a_run_are_compared(play: Play) -> None:
    used = Usage(1_000, 16_384, None)
    proven, broken = await pinned_and_broken(play, Counting(used, used))
    assert (proven["output_tokens"], proven["reply_tokens"], "cost" in proven) == (2 * 16_384, 16_384, False)
    assert broken == []
    _, broken = await pinned_and_broken(play, Counting(used, Usage(1_000, 16_385, None)))
    assert [one.partition(":")[0] for one in broken] == ["output_tokens"]
    assert "does not keep to max_tokens" in broken[0]
    _, broken = await pinned_and_broken(play, Counting(used, Usage(10_000, 1, None)))
    assert [one.partition(":")[0] for one in broken] == ["input_tokens"]


async def test_input_that_only_a_window_bounds_is_not_compared(play: Play) -> None:
    given({"home/quire.toml": '[agents.reader]\ntools = ["file__read"]\n'})
    used = Usage(10**9, 1, None)
    proven, broken = await pinned_and_broken(play, Counting(used, used), MODEL_TOOLS)
    assert "input_tokens" not in proven and "output_tokens" in proven
    assert broken == []


async def test_the_numbers_of_a_script_are_not_compared(play: Play) -> None:
    reply: Value = {"default": "well", "usage": {"input_tokens": 10**6, "output_tokens": 10**6, "cost": 9.0}}
    proven, broken = await pinned_and_broken(play, ScriptedModel([reply]))
    assert set(proven) == {"model_calls", "tool_calls", "questions", "threads"}
    assert broken == []


async def test_tokens_are_those_of_all_drives_of_a_run(play: Play) -> None:
    model = Counting(Usage(10, 17_000, None), None, Usage(10, 17_000, None))
    _, broken = await pinned_and_broken(play, model, drives=2)
    assert len(broken) == 1
    assert broken[0].startswith("output_tokens: 34,000 tokens of output were seen, and at most 32,768")
