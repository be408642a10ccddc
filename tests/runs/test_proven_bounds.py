"""Bounds that were proven before a run are pinned, and compared at its end as long as it is the proven run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quire.engine.proven_bounds import ProvenBounds
from quire.engine.records import Event, Status
from quire.library.document import read
from quire.models.scripted import ScriptedModel
from quire.runs.fork import Changes, fork
from quire.runs.options import RunOptions
from quire.runs.resume import Given
from quire.runs.runtime import Runtime
from quire.source import Source
from quire.values import Value

PAGE = "# Two\n\n## STEP 1: One\n\nSay one.\n\n## STEP 2: Two\n\nSay two.\n"
LOW = ProvenBounds(model_calls=1, output_tokens=1)


@pytest.fixture
async def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Runtime]:
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path / "home"))
    reply: Value = {"default": "well", "usage": {"input_tokens": 9, "output_tokens": 9}}
    runtime = Runtime.open(tmp_path, model=ScriptedModel([reply]))
    yield runtime
    await runtime.close()


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
