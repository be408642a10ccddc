"""`why` and `diff`: from the journal alone, who wrote what, what was sent, and where two runs part."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runs.travel import Travel

from quire.display.why import diff_data, diff_page, why_data, why_page
from quire.engine.requests import HumanRequest, Load, ModelRequest, ToolRequest
from quire.errors import CannotStart
from quire.models.scripted import ScriptedModel
from quire.runs.diff import diff
from quire.runs.fork import Changes, fork
from quire.runs.outcome import RunView
from quire.runs.why import Why, traced, why


async def view(travel: Travel, run: str) -> RunView:
    async with travel.runtime() as runtime:
        return await traced(runtime, run)


def read(found: Why) -> list[tuple[str, Any, str]]:
    return [(one.name, one.value, one.source) for one in found.values]


async def test_a_playbook_says_who_wrote_each_value(travel: Travel) -> None:
    seen = await view(travel, await travel.everything())
    assert read(why(seen, "2")) == [
        ("notes", "Rust is fast.", "step 1"),
        ("topic", "speed", "input"),
        ("size", "3", "input, as it is by default"),
    ]
    assert read(why(seen, "3")) == [("gist", "rust", "step 2")]
    assert read(why(seen, "4")) == [("agreed", "yes", "step 3")]
    assert read(why(seen, "6")) == [("twice", "6", "step 5"), ("topic", "safety", "set at the end of step 2")]


async def test_the_prompt_is_the_one_that_was_sent(travel: Travel) -> None:
    run = await travel.everything()
    async with travel.runtime(["END"]) as runtime:
        made = await fork(runtime, run, "6", Changes())
        await runtime.drive(made.run)
        model = runtime.models.given
        assert isinstance(model, ScriptedModel)
        (call,) = model.calls
        found = why(await traced(runtime, made.run), "6")
    (performed,) = found.performed
    assert isinstance(performed.request, ModelRequest)
    assert (performed.request.system, performed.request.messages) == (call.system, call.messages)
    assert performed.record is not None and performed.record.value["text"] == "END"  # type: ignore[index, call-overload]
    assert list(found.told) == ["1", "2", "3", "4a", "4b", "5"]


async def test_loads_questions_and_tools_are_there_with_what_came_back(travel: Travel) -> None:
    seen = await view(travel, await travel.everything())
    kinds = {label: [type(one.request) for one in why(seen, label).performed] for label in ("1", "2", "3")}
    assert kinds["1"] == [ToolRequest]
    assert kinds["2"][:2] == [Load, ModelRequest]
    assert kinds["3"] == [HumanRequest]
    page = "\n".join(why_page(why(seen, "2")))
    for text in ("reads\n    library:style", "Write in plain words.", '{"gist": "rust"}', "25 tokens · $0.2500"):
        assert text in page, page
    data = why_data(why(seen, "1"))
    assert data["effects"][0]["answer"] == "Rust is fast."  # type: ignore[index, call-overload]


async def test_a_pipeline_reads_stores_and_what_comes_in(travel: Travel) -> None:
    seen = await view(travel, await travel.board())
    assert read(why(seen, "1")) == [("papers", ["one", "two"], "input")]
    assert read(why(seen, "3")) == [("loud", ["one!", "two!"], "step 1"), ("marker", "Bo", "step 2")]
    assert [name for name, _, _ in read(why(seen, "7"))] == ["checks", "twice", "marker"]
    item = why(seen, "3/for_each[0]")
    assert [one.path for one in item.performed] == [
        "3/for_each[0]/try[1]/model",
        "3/for_each[0]/try[1]/model/repair[1]",
    ]
    assert [one.path for one in why(seen, "3/for_each").performed if "repair" not in one.path] == [
        "3/for_each[0]/try[1]/model",
        "3/for_each[1]/try[1]/model",
    ]
    assert len(why(seen, "4/parallel[lost]/model").performed) == 1


async def test_a_turn_reads_inputs_and_then_results(travel: Travel) -> None:
    seen = await view(travel, await travel.parent())
    assert read(why(seen, "turn 1")) == [("who", "Bo", "input")]
    (first, second) = read(why(seen, "2"))
    assert (first[0], first[2]) == ("rye_file_system_read", "turn 1, tool 0")
    assert "psst" in str(second[1])
    assert len(why(seen, "thread/turn[1]/tool[1]").performed) == 3


@pytest.mark.parametrize(
    ("step", "message"),
    [("44", "has no step 44: there are 1, 2, 3"), ("6/modl", "did you mean 6/model"), ("", "has no step")],
)
async def test_a_step_that_is_not_there(travel: Travel, step: str, message: str) -> None:
    seen = await view(travel, await travel.everything())
    with pytest.raises(CannotStart, match=message):
        why(seen, step)


async def test_an_arm_that_was_not_taken(travel: Travel) -> None:
    found = why(await view(travel, await travel.everything()), "4c")
    assert (found.status, found.performed) == ("skipped", [])


async def test_a_run_is_the_same_as_itself(travel: Travel) -> None:
    for run in (await travel.everything(), await travel.board(), await travel.parent()):
        seen = await view(travel, run)
        found = diff(seen, seen)
        assert found.same and found.steps


async def test_a_fork_differs_from_its_step_on(travel: Travel) -> None:
    run = await travel.everything()
    async with travel.runtime(["shorter", "another end"]) as runtime:
        made = await fork(runtime, run, "4b", Changes({"topic": "cost"}))
        await runtime.drive(made.run)
        a, b = await traced(runtime, run), await traced(runtime, made.run)
    found = diff(a, b)
    states = {step.label: step.state for step in found.steps}
    assert states == {
        "1": "same", "2": "same", "3": "same", "4": "changed", "4a": "changed", "4b": "same", "4c": "same", "5": "same",
        "6": "changed",
    }  # fmt: skip
    last = {change.what: (change.a, change.b) for change in found.steps[-1].changes}
    assert last["input"] == ("safety", "cost")
    assert last["reply"] == ("the end", "another end")
    assert set(last) == {"input", "prompt", "reply", "output"}
    page = "\n".join(diff_page(a, b, found))
    assert "+another end" in page and f"forked from {run} at step 4b" in page
    assert diff_data(a, b, found)["same"] is False


async def test_steps_that_only_one_has(travel: Travel) -> None:
    run = await travel.everything()
    async with travel.runtime(["anew", "end"]) as runtime:
        made = await fork(runtime, run, "3", Changes())
        await runtime.drive(made.run)
        await runtime.answer(made.run, None, "no")
        await runtime.drive(made.run)
        found = diff(await traced(runtime, run), await traced(runtime, made.run))
    states = {step.label: step.state for step in found.steps}
    assert (states["4a"], states["4b"], states["4c"]) == ("only in A", "only in A", "only in B")
    (answer,) = [change for change in found.steps[2].changes if change.what == "answer"]
    assert (answer.a, answer.b) == ("yes", "no")
