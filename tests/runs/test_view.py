"""A run as it is looked at: everything comes from the row and the journal, whatever state the run is in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from quire.engine.records import Status
from quire.library.document import read
from quire.models.scripted import ScriptedModel
from quire.runs.options import RunOptions
from quire.runs.outcome import RunView
from quire.runs.runtime import Runtime
from quire.source import Source
from quire.values import Value

PAGE = """# Tea

## INPUTS

- `kind` (string): Which tea

## STEP 1: Choose

Choose a pot for {{kind}}.

@output(pot)

## STEP 2: Ask

@elicit(select, "In {{pot}}?", "yes please", "no")

## STEP 3: Brew

```if __elicit_step_2 == "no"```

### STEP 3a: Stop

Say why not.

```else```

### STEP 3b: Pour

Pour {{kind}}.

```endif```

## ARTIFACTS

type: markdown
"""

Go = Callable[..., Awaitable[RunView]]


@pytest.fixture
async def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Go]:
    """Starts a run, drives it until it rests, and looks at it from another runtime."""
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path / "home"))
    opened: list[Runtime] = []

    def open_runtime(replies: Sequence[Value]) -> Runtime:
        runtime = Runtime.open(tmp_path, model=ScriptedModel(list(replies)))
        opened.append(runtime)
        return runtime

    async def drive(replies: Sequence[Value], options: RunOptions, page: str = PAGE) -> RunView:
        runtime = open_runtime(replies)
        document = read(Source.of(page, "tea.playbook.md"))
        run = await runtime.start(document, {"kind": "green"} if page == PAGE else {}, options)
        await runtime.drive(run)
        return await open_runtime(()).view(run)

    yield drive
    for runtime in opened:
        await runtime.close()


def states(view: RunView) -> dict[str, str]:
    return {step.label: step.status for step in view.replay.progress.steps.values()}


async def test_completed(go: Go) -> None:
    usage = {"input_tokens": 7, "output_tokens": 2, "cost": 0.5}
    view = await go([{"reply": "the pot", "usage": usage}, "poured"], RunOptions(answers={"2": "yes please"}))
    assert view.row.status is Status.COMPLETED
    assert (view.output, view.artifact_type) == ("poured", "markdown")
    assert view.named["pot"] == "the pot" and view.named["__elicit_step_2"] == "yes please"
    assert states(view) == {"1": "completed", "2": "completed", "3": "completed", "3a": "skipped", "3b": "completed"}
    assert view.step_outputs() == {"1": "the pot", "2": "yes please", "3": "poured", "3b": "poured"}
    first = view.replay.progress.steps["1"]
    assert (first.input_tokens, first.output_tokens, first.cost) == (7, 2, 0.5)
    assert view.state()["paused_at_step"] is None


async def test_waiting_for_an_answer(go: Go) -> None:
    view = await go(["the pot"], RunOptions())
    assert view.row.status is Status.AWAITING_INPUT
    assert [(question.label, question.prompt, question.options) for question in view.questions] == [
        ("2", "In the pot?", ("yes please", "no"))
    ]
    assert states(view) == {
        "1": "completed",
        "2": "awaiting_input",
        "3": "pending",
        "3a": "pending",
        "3b": "pending",
    }
    assert not view.replay.finished and view.output == ""
    assert view.state()["paused_at_step"] == 2


async def test_standing_at_a_breakpoint(go: Go) -> None:
    view = await go(["the pot"], RunOptions(breakpoints=("1",)))
    assert view.row.status is Status.PAUSED
    assert states(view)["1"] == "completed" and states(view)["2"] == "pending"
    state = view.state()
    assert (state["breakpoints"], state["paused_at_step"]) == ({"1": True}, 1)


async def test_failed(go: Go) -> None:
    view = await go([{"error": "no water"}], RunOptions())
    assert view.row.status is Status.FAILED
    assert states(view)["1"] == "failed"
    assert view.replay.progress.steps["1"].message == "no water"
    assert view.row.failure is not None and view.row.failure.message == "no water"


async def test_every_prompt_that_was_sent_is_known(go: Go) -> None:
    view = await go(["the pot", "poured"], RunOptions(answers={"2": "no"}))
    assert sorted(view.replay.asked) == sorted(
        ["1/model", "1/break", "2/ask", "2/break", "3/case[1]/1/model", "3/case[1]/1/break", "3/break"]
    )


async def test_labels_that_stand_twice_keep_both_outputs(go: Go) -> None:
    view = await go(["one", "two"], RunOptions(), "# T\n\n## STEP 1: A\n\nx\n\n## STEP 1: B\n\ny\n")
    assert view.step_outputs() == {"1": "one", "1#2": "two"}
