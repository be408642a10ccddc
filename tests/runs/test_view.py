"""A run as it is looked at: everything comes from the row and the journal, whatever state the run is in."""

from __future__ import annotations

from typing import Any

from tests.given import given
from tests.play import Play

from quire.engine.records import Status
from quire.runs.outcome import RunView
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


async def tea(play: Play, *replies: Value, **options: Any) -> RunView:
    """Run the page until it rests, and look at it from another runtime."""
    given({"tea.playbook.md": PAGE})
    played = await play("tea.playbook.md", replies, {"kind": "green"}, **options)
    return await play.open().view(played.run)


def states(view: RunView) -> dict[str, str]:
    return {step.label: step.status for step in view.replay.progress.steps.values()}


async def test_completed(play: Play) -> None:
    usage = {"input_tokens": 7, "output_tokens": 2, "cost": 0.5}
    view = await tea(play, {"reply": "the pot", "usage": usage}, "poured", answers={"2": "yes please"})
    assert view.row.status is Status.COMPLETED
    assert (view.output, view.artifact_type) == ("poured", "markdown")
    assert view.named["pot"] == "the pot" and view.named["__elicit_step_2"] == "yes please"
    assert states(view) == {"1": "completed", "2": "completed", "3": "completed", "3a": "skipped", "3b": "completed"}
    assert view.step_outputs() == {"1": "the pot", "2": "yes please", "3": "poured", "3b": "poured"}
    first = view.replay.progress.steps["1"]
    assert (first.input_tokens, first.output_tokens, first.cost) == (7, 2, 0.5)
    assert view.state()["paused_at_step"] is None


async def test_waiting_for_an_answer(play: Play) -> None:
    view = await tea(play, "the pot")
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


async def test_standing_at_a_breakpoint(play: Play) -> None:
    view = await tea(play, "the pot", breakpoints=("1",))
    assert view.row.status is Status.PAUSED
    assert states(view)["1"] == "completed" and states(view)["2"] == "pending"
    state = view.state()
    assert (state["breakpoints"], state["paused_at_step"]) == ({"1": True}, 1)


async def test_failed(play: Play) -> None:
    view = await tea(play, {"error": "no water"})
    assert view.row.status is Status.FAILED
    assert states(view)["1"] == "failed"
    assert view.replay.progress.steps["1"].message == "no water"
    assert view.row.failure is not None and view.row.failure.message == "no water"


async def test_every_prompt_that_was_sent_is_known(play: Play) -> None:
    view = await tea(play, "the pot", "poured", answers={"2": "no"})
    assert sorted(view.replay.asked) == sorted(
        ["1/model", "1/break", "2/ask", "2/break", "3/case[1]/1/model", "3/case[1]/1/break", "3/break"]
    )


async def test_labels_that_stand_twice_keep_both_outputs(play: Play) -> None:
    given({"t.playbook.md": "# T\n\n## STEP 1: A\n\nx\n\n## STEP 1: B\n\ny\n"})
    view = await (await play("t.playbook.md", ["one", "two"])).view()
    assert view.step_outputs() == {"1": "one", "1#2": "two"}
