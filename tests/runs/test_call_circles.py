"""What a run does with the circles that `quire check` finds: its pages say so."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runs.test_across_formats import DOUBLE, PIPELINES, House, use

from quire.engine.records import Status
from quire.errors import BadDocument

PAGE = "# Page\n\n## STEP 1: A\n\n@tool(quire, {})\n"


async def test_a_circle_of_playbooks_and_pipelines_never_starts(tmp_path: Path) -> None:
    house = House(tmp_path / "work")
    file = house.write("playbooks/letter.playbook.md", PAGE.replace("{}", "price"))
    house.write("pipelines/price.yaml", "pipeline: price\nsteps:\n- call: {pipeline: letter}\n")
    with pytest.raises(BadDocument, match="price can reach itself: price → letter → price"):
        await house.run(file, {}, [])


@pytest.mark.parametrize("begun_by", ["pipeline", "directive"])
async def test_a_circle_through_a_directive_goes_round_until_its_depth_is_used_up(
    tmp_path: Path, begun_by: str
) -> None:
    house = House(tmp_path / "work")
    directive = house.directive(PIPELINES, limits='<limits depth="2"/>')
    pipeline = house.write(
        "pipelines/round.yaml", "pipeline: round\nsteps:\n- call: {pipeline: greeter, pass: {who: \"'Bo'\"}}\n"
    )
    again = use("rye_execute", item_type="pipeline", item_id="round", parameters={})
    done = use("directive_return", greeting="hi")
    begin, inputs = (pipeline, {}) if begun_by == "pipeline" else (directive, {"who": "Bo"})
    ended, model = await house.run(begin, inputs, [again, again, again, done, done, done])
    assert ended.status is Status.COMPLETED
    told = house.told()
    assert told[0]["error"].startswith("limit reached: depth")
    assert [one.get("error") for one in told[1:]] == [None, None]
    assert len(model.calls) == 6


async def test_a_directive_that_a_playbook_calls_runs_a_pipeline(tmp_path: Path) -> None:
    house = House(tmp_path / "work")
    house.directive(PIPELINES)
    house.write("pipelines/double.yaml", DOUBLE)
    file = house.write(
        "playbooks/letter.playbook.md", PAGE.replace("{}", '"demo/greeter", {"who": "Bo"}') + "\n@output(said)\n"
    )
    twice = use("rye_execute", item_type="pipeline", item_id="double", parameters={"n": 21})
    ended, _ = await house.run(file, {}, [twice, use("directive_return", greeting="42 times")])
    assert ended.status is Status.COMPLETED
    assert house.told() == [42]


@pytest.mark.parametrize("depth", [0, 1, 9])
async def test_another_depth_on_resume_changes_nothing_that_was_decided(tmp_path: Path, depth: int) -> None:
    """What was let in stays in, and what was refused stays refused: the rest of the journal follows from it."""
    house = House(tmp_path / "work")
    directive = house.directive(PIPELINES + "<tool>ask</tool>", limits='<limits depth="1"/>')
    house.write("pipelines/round.yaml", "pipeline: round\nsteps:\n- call: {pipeline: greeter, pass: {who: \"'Bo'\"}}\n")
    again = use("rye_execute", item_type="pipeline", item_id="round", parameters={})
    done = use("directive_return", greeting="hi")
    ended, _ = await house.run(directive, {"who": "Bo"}, [again, again, done, use("ask", prompt="Go on?")])
    assert ended.status is Status.AWAITING_INPUT
    told = house.told()
    assert [str(one.get("error"))[:20] for one in told] == ["limit reached: depth", "None"]
    ended = await house.go_on("yes", [done], limits={"depth": depth})
    assert (ended.status, ended.failure) == (Status.COMPLETED, None)
