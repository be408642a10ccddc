"""The receipt of a fork says what the fork then does: what it keeps, which steps it does again, how much."""

from __future__ import annotations

import pytest
from tests.runs.travel import Travel

from quire.display.copies_json import receipt_data, receipt_line
from quire.errors import BadInputs, CannotStart, RunState
from quire.models.scripted import ScriptedModel
from quire.runs.fork import Changes, fork, fork_steps, receipt
from quire.values import Value


@pytest.mark.parametrize(
    ("step", "again"),
    [
        ("1", ["1", "2", "3", "4", "4a", "4b", "5", "6"]),
        ("4", ["4", "4a", "4b", "5", "6"]),
        ("4b", ["4b", "5", "6"]),
        ("6", ["6"]),
    ],
)
async def test_a_playbook(travel: Travel, step: str, again: list[str]) -> None:
    run = await travel.everything()
    replies: list[Value] = [{"contains": "gist of", "reply": '{"gist": "rust"}'}, {"default": "new"}]
    async with travel.runtime(replies) as runtime:
        before = [row.id for row in await runtime.store.list()]
        found = await receipt(runtime, run, step, Changes())
        assert [row.id for row in await runtime.store.list()] == before
        assert [one.label for one in found.again] == again
        made = await fork(runtime, run, step, Changes())
        await runtime.drive(made.run)
        assert len(made.kept) == len(found.fork.kept)
        assert isinstance(model := runtime.models.given, ScriptedModel)
        most = found.bounds.model_calls.most
        assert most is not None and 0 < len(model.calls) <= most
        assert f"keeps {len(made.kept)} recorded effect" in receipt_line(found)


async def test_the_steps_at_which_a_run_can_be_forked(travel: Travel) -> None:
    playbook, pipeline = await travel.everything(), await travel.board()
    async with travel.runtime([]) as runtime:
        steps = {one.label: one for one in fork_steps(await runtime.view(playbook))}
        assert (steps["1"].first, steps["1"].settable, steps["2"].first) == (True, True, False)
        # The first step of an arm has no end of a step before it, where values could be set.
        assert (steps["4a"].settable, steps["4b"].settable) == (False, True)
        assert "/" not in "".join(one.path for one in fork_steps(await runtime.view(pipeline)))


async def test_a_directive_has_the_turns_that_are_left(travel: Travel) -> None:
    run = await travel.parent()
    async with travel.runtime([]) as runtime:
        labels = [one.label for one in fork_steps(await runtime.view(run))]
        assert labels[:3] == ["turn 1", "turn 2", "turn 3"]
        whole = await receipt(runtime, run, "turn 1", Changes())
        later = await receipt(runtime, run, "turn 3", Changes())
        assert [one.label for one in later.again] == labels[2:]
        assert whole.bounds.model_calls.most is not None and later.bounds.model_calls.most is not None
        assert later.bounds.model_calls.most < whole.bounds.model_calls.most


async def test_what_cannot_be_forked_has_no_receipt(travel: Travel) -> None:
    run = await travel.everything()
    async with travel.runtime([]) as runtime:
        for step, changes, error in (
            ("99", Changes(), CannotStart),
            ("1", Changes({"nothing": "x"}), BadInputs),
            ("4a", Changes({"topic": "x"}), RunState),
        ):
            with pytest.raises(error):
                await receipt(runtime, run, step, changes)


async def test_the_data_has_the_command(travel: Travel) -> None:
    run = await travel.everything()
    async with travel.runtime([]) as runtime:
        changes = Changes({"topic": "it's"}, budget=1.5)
        data = receipt_data(await receipt(runtime, run, "1", changes), changes)
    assert data["command"] == f"quire runs fork {run} --from 1 --set 'topic=it'\"'\"'s' --budget 1.5"
    assert data["kept"] == {"effects": 0, "cost": 0, "input_tokens": 0, "output_tokens": 0}


DECLARED = """\
pipeline: declared
dialect: quire
input:
  rows: {type: list, of: {type: number}}
steps:
- transform: {value: "map(ctx.rows, item -> item + 1)", output: made}
- for_each: {over: %s, on_error: abort, do: {agent: {prompt: hi}}, collect: {transform: {value: pipe}}}
"""


@pytest.mark.parametrize(("over", "most"), [("ctx.rows", 3), ("ctx.made", None), ("pipe", None)])
async def test_values_of_steps_before_the_fork_are_not_taken_for_empty(
    travel: Travel, over: str, most: int | None
) -> None:
    travel.write("declared.yaml", DECLARED % over)
    run, _ = await travel.run("declared.yaml", {"rows": [1, 2, 3]}, [{"default": "x"}])
    async with travel.runtime([]) as runtime:
        assert (await receipt(runtime, run, "2", Changes())).bounds.model_calls.most == most
