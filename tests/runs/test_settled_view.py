"""A run that rests has no step under way, whoever looks at it and however it came to rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.given import given
from tests.play import Play

import quire
from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import Usage
from quire.runs.runtime import Runtime

DOCUMENT = """# Page

## STEP 1: First

First.

## STEP 2: Second

Second.

```if x == "1"```

### STEP 2a: One

Never.

```else```

### STEP 2b: Other

@elicit(input, "Well?")

```endif```
"""


class Thinking:
    """Answers the first call; the second never comes back."""

    name = "thinking"

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self._calls = 0

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        self._calls += 1
        if self._calls > 1:
            self.asked.set()
            await asyncio.Event().wait()
        return ModelReply("fine", self.name, Usage(1, 1, 1.0))


@pytest.fixture
def page(here: Path) -> Path:
    return given({"page.playbook.md": DOCUMENT}, here) / "page.playbook.md"


async def steps(runtime: Runtime, run: str) -> dict[str, str]:
    view = await runtime.view(run)
    return {step.label: step.status for step in view.replay.progress.steps.values()}


@pytest.mark.parametrize("how", ["paused", "cancelled"])
async def test_a_step_that_was_cut_off_is_as_its_run(play: Play, page: Path, how: str) -> None:
    model = Thinking()
    runtime = play.open(model=model)
    run = await play.start(page)
    driving = asyncio.create_task(runtime.drive(run))
    await model.asked.wait()
    assert (await steps(runtime, run))["2"] == "running"
    assert (await runtime.view(run)).row.position == "2"
    if how == "paused":
        driving.cancel()
    else:
        await runtime.store.request_cancel(run)
    await asyncio.gather(driving, return_exceptions=True)
    assert (await runtime.row(run)).status == how
    assert await steps(runtime, run) == {"1": "completed", "2": how, "2a": "pending", "2b": "pending"}


async def test_a_limit_fails_the_step_at_which_it_was_reached(page: Path) -> None:
    result = await quire.run(page, model=Thinking(), budget=0.5, workspace=page.parent)
    assert (result.status, result.steps["2"]) == ("failed", "failed")


async def test_a_step_whose_sub_step_asks_waits_too(page: Path) -> None:
    model = quire.ScriptedModel([{"default": "fine"}])
    result = await quire.run(page, model=model, workspace=page.parent)
    waiting = {"1": "completed", "2": "awaiting_input", "2a": "pending", "2b": "awaiting_input"}
    assert (result.status, result.steps) == ("awaiting_input", waiting)
