"""Recorded prompts asked of another model: compared in their place, while everything else stays as it was."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.runs.test_fork_everywhere import Parrot
from tests.runs.travel import DIALECT_SCRIPT, DIRECTIVE_SCRIPT, PIPELINE_SCRIPT, Travel, use

from quire.engine.ports import ModelCall
from quire.engine.premises import REPLY_TOKENS
from quire.engine.records import EffectRecord
from quire.models.scripted import ScriptedModel
from quire.runs.options import RunOptions
from quire.testing.live.recorded_prompts import AskedCall, FollowedRun, ask_again, follow_run, most_cost, recorded_run
from quire.testing.live.schedule import Purse
from quire.values import Value

TAGLINE = """# Tagline

## STEP 1: Idea

A tagline.

@output(best, extract:"best")

## STEP 2: Look

@tool(quire, file__read, {"path": "{{best}}.txt"})

## STEP 3: Finish

```if best == "notes"```

### STEP 3a: Polish

Polish it.

@output(whole)

```else```

### STEP 3b: Again

Another.

```endif```
"""
FIRST: Sequence[Value] = ['So. {"best": "notes"}', "Polished."]


@pytest.fixture
def travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Travel:
    made = Travel(tmp_path / "work")
    monkeypatch.chdir(made.folder)
    made.write("tagline.playbook.md", TAGLINE)
    return made


async def asked(travel: Travel, run: str, script: Sequence[Value], budget: float | None = None) -> list[AskedCall]:
    async with travel.runtime() as runtime:
        before = list(await runtime.store.effects(run)), await runtime.store.list(limit=100)
        recorded = await recorded_run(runtime, run)
        found: list[AskedCall] = []
        await ask_again([recorded], ScriptedModel(list(script)), Purse(budget), runtime.clock, found)
        assert (list(await runtime.store.effects(run)), await runtime.store.list(limit=100)) == before
    return found


async def followed(travel: Travel, run: str, script: Sequence[Value], purse: Purse | None = None) -> FollowedRun:
    async with travel.runtime() as runtime:
        before = list(await runtime.store.effects(run)), await runtime.store.list(limit=100)
        recorded = await recorded_run(runtime, run)
        model, money = ScriptedModel(list(script)), purse or Purse()
        found = await follow_run(recorded, model, money, runtime.clock, pure_work=1_000_000)
        assert (list(await runtime.store.effects(run)), await runtime.store.list(limit=100)) == before
    return found


@pytest.mark.parametrize(
    ("script", "kinds", "changes"),
    [
        (FIRST, ["same", "same"], []),
        (['Well. {"best": "notes"}', "Shiny."], ["words", "words"], []),
        (
            ['So. {"best": "other"}', "Polished."],
            ["changed", "same"],
            [
                ("named", "best", "notes", "other"),
                ("arguments", "of file__read at 2", {"path": "notes.txt"}, {"path": "other.txt"}),
            ],
        ),
        (["No object", "Polished."], ["changed", "same"], None),
        ([{"error": "busy"}, "Polished."], ["failed", "same"], []),
    ],
)
async def test_each_reply_is_compared_in_its_place(
    travel: Travel, script: Sequence[Value], kinds: list[str], changes: list[tuple[object, ...]] | None
) -> None:
    run, _ = await travel.run("tagline.playbook.md", {}, FIRST)
    found = await asked(travel, run, script)
    assert [one.kind for one in found] == kinds
    seen = [(one.what, one.where, one.a, one.b) for call in found for one in call.changes]
    assert seen == changes if changes is not None else "warning" in {one[0] for one in seen}


async def test_another_branch_is_told(travel: Travel) -> None:
    travel.write("tagline.playbook.md", TAGLINE.replace("{{best}}.txt", "notes.txt"))
    run, _ = await travel.run("tagline.playbook.md", {}, FIRST)
    (first, _) = await asked(travel, run, ['So. {"best": "other"}', "Polished."])
    assert [(one.what, one.where, one.a, one.b) for one in first.changes] == [
        ("named", "best", "notes", "other"),
        ("step", "3b", "skipped", "reached"),
    ]


@pytest.mark.parametrize(
    ("name", "script"),
    [("board", PIPELINE_SCRIPT), ("dialect", DIALECT_SCRIPT), ("parent", DIRECTIVE_SCRIPT)],
)
async def test_calls_of_all_formats_are_asked_once(travel: Travel, name: str, script: Sequence[Value]) -> None:
    """Also those in fans, loops, retries and threads. Calls that failed are left out."""
    run: str = await getattr(travel, name)(f"run-{name}")
    async with travel.runtime() as runtime:
        recorded = await recorded_run(runtime, run)
        effects = await runtime.store.effects(run)
    whole = [one.path for one in effects if one.kind == "model" and one.state == "ok"]
    assert sorted(call.request.path for call in recorded.calls) == sorted(whole)
    assert recorded.left_out == sum(one.kind == "model" and one.state == "failed" for one in effects)
    found = await asked(travel, run, [{"default": "something else"}])
    assert len(found) == len(whole)
    assert {one.kind for one in found} <= {"words", "changed"}


async def test_other_tool_calls_are_changes(travel: Travel) -> None:
    run = await travel.parent("run-parent")
    found = await asked(travel, run, [{"default": "I refuse."}])
    changes = {one.what for call in found for one in call.changes}
    assert "calls" in changes
    assert not (travel.folder / "x").exists()


READ: tuple[str, dict[str, Value]] = ("rye_file_system_read", {"path": "notes.txt"})


class Dear(ScriptedModel):
    """Costs a dollar at most, and half of that really."""

    def estimate(self, call: ModelCall) -> float | None:
        return 1.0


HALF: Value = {"input_tokens": 1, "output_tokens": 1, "cost": 0.5}


async def test_a_budget_is_kept_and_the_rest_is_not_asked(travel: Travel) -> None:
    run, _ = await travel.run("tagline.playbook.md", {}, FIRST)
    async with travel.runtime() as runtime:
        recorded = [await recorded_run(runtime, run)]
        model = Dear([{"default": '{"best": "notes"}', "usage": HALF}])
        assert most_cost(recorded, model, runtime.clock) == 2.0
        purse = Purse(1.2)
        found: list[AskedCall] = []
        await ask_again(recorded, model, purse, runtime.clock, found)
        assert ([one.kind for one in found].count(None), purse.exhausted, purse.spent) == (1, True, 0.5)
        assert [call.max_tokens for call in model.calls] == [REPLY_TOKENS]
        ended = await follow_run(
            recorded[0],
            Dear([{"default": '{"best": "notes"}', "usage": HALF}]),
            Purse(1.2),
            runtime.clock,
            pure_work=10**6,
        )
        assert (ended.replayed.verdict, ended.replayed.problem) == ("unreadable", "the budget is used up")


@pytest.mark.parametrize(
    ("script", "verdict", "reason", "calls"),
    [
        (FIRST, "same", "", 2),
        (['Hm. {"best": "notes"}', "Polished."], "same", "", 2),
        (['Hm. {"best": "notes"}', "Shiny."], "different", "output changed", 2),
        (['Hm. {"best": "other"}', "Shiny."], "new", "arguments changed", 1),
        ([{"error": "gone"}], "different", "status, error, output changed", 1),
    ],
)
async def test_a_run_is_followed(
    travel: Travel, script: Sequence[Value], verdict: str, reason: str, calls: int
) -> None:
    run, _ = await travel.run("tagline.playbook.md", {}, FIRST)
    found = await followed(travel, run, script)
    assert (found.replayed.verdict, found.replayed.reason, found.calls) == (verdict, reason, (2, calls))


async def test_the_other_branch_is_followed(travel: Travel) -> None:
    travel.write("tagline.playbook.md", TAGLINE.replace("{{best}}.txt", "notes.txt"))
    run, _ = await travel.run("tagline.playbook.md", {}, FIRST)
    found = (await followed(travel, run, ['{"best": "other"}', "Another one."])).replayed
    assert (found.verdict, found.reason) == ("different", "output changed")
    assert ("step", "3b", "skipped", "completed") in [(one.what, one.where, one.a, one.b) for one in found.changes]


async def test_a_question_in_other_words_keeps_its_answer(travel: Travel) -> None:
    text = TAGLINE.replace('@tool(quire, file__read, {"path": "{{best}}.txt"})', '@elicit(confirm, "Take {{best}}?")')
    travel.write("tagline.playbook.md", text)
    run, _ = await travel.run("tagline.playbook.md", {}, FIRST, RunOptions(answers={"2": "yes"}))
    found = (await followed(travel, run, ['{"best": "other"}', "Another one."])).replayed
    assert [(then.prompt, now.prompt) for then, now in found.reworded] == [("Take notes?", "Take other?")]
    assert found.verdict == "different"


async def test_a_thread_may_call_a_tool_again_but_no_other(travel: Travel) -> None:
    back = use(("directive_return", {"said": "hello Bo"}))
    file = ".ai/directives/demo/parent.md"
    run, ended = await travel.run(file, {"who": "Bo"}, [use(READ), back])
    assert str(ended.status) == "completed"
    again = await followed(travel, run, [use(READ), use(READ), back])
    assert (again.replayed.verdict, again.calls) == ("same", (2, 3))
    write: tuple[str, dict[str, Value]] = ("rye_file_system_write", {"path": "x.txt", "content": "x"})
    other = await followed(travel, run, [use(READ), use(write), back])
    assert (other.replayed.verdict, other.replayed.reason) == ("new", "new tool call")
    assert not (travel.folder / "x.txt").exists()


async def test_a_loop_is_given_up(travel: Travel) -> None:
    file = travel.folder / ".ai/directives/demo/parent.md"
    file.write_text(file.read_text().replace('turns="20"', 'turns="90"'))
    travel.sign(file)
    back = use(("directive_return", {"said": "hello Bo"}))
    run, _ = await travel.run(".ai/directives/demo/parent.md", {"who": "Bo"}, [use(READ), back])
    found = await followed(travel, run, [use(READ)] * 40)
    assert (found.replayed.verdict, found.calls[1] <= 20) == ("unreadable", True)


@pytest.mark.parametrize("name", ["everything", "board", "dialect", "parent"])
async def test_the_same_replies_lead_to_the_same_end(travel: Travel, name: str) -> None:
    """The model says again what it said to the same words, wherever that is in a run."""
    run: str = await getattr(travel, name)(f"run-{name}")
    async with travel.runtime() as runtime:
        view = await runtime.view(run)
        records: dict[str, EffectRecord] = {one.path: one for one in view.effects if one.kind == "model"}
        recorded = await recorded_run(runtime, run)
        found = await follow_run(recorded, Parrot(view), Purse(), runtime.clock, pure_work=1_000_000)
    assert (found.replayed.verdict, list(found.replayed.changes)) == ("same", []), found.replayed
    assert found.calls[1] <= len(records)
