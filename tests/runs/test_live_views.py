"""Views that a server keeps: never older than they say, made once for all that ask, and without a replay while it
drives."""

from __future__ import annotations

import asyncio

import pytest
from tests.play import Play

from quire.display.run_json import view_data
from quire.display.run_tree_json import TreeRows
from quire.engine.records import Event, Status
from quire.errors import NoSuchRun
from quire.library.document import read
from quire.runs import live_views
from quire.runs.live_views import LiveViews
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.runs.why import traced
from quire.source import Source
from quire.values import Value

PAGE = """# Tea

## STEP 1: Choose

Choose a pot.

@output(pot)

## STEP 2: Ask

@elicit(input, "In {{pot}}?")

## STEP 3: Pour

Pour into {{pot}}.
"""
FAN = """pipeline: fan
steps:
- for_each:
    over: ctx.xs
    on_error: continue
    do: {agent: {prompt: "say {item}"}}
    collect: {transform: {value: pipe}}
    output: said
"""


@pytest.fixture
def runtime(play: Play) -> Runtime:
    return play.open(["a pot", "poured", "more", "again"])


async def started(runtime: Runtime, options: RunOptions | None = None) -> str:
    run = await runtime.start(read(Source.of(PAGE, "tea.playbook.md")), {}, options or RunOptions())
    await runtime.drive(run)
    return run


async def test_a_view_is_made_once_for_all_that_ask(runtime: Runtime) -> None:
    run, views = await started(runtime), LiveViews(runtime)
    seen = await asyncio.gather(*(views.of(run) for _ in range(5)))
    assert views.replays == 1 and len({id(one.view) for one in seen}) == 1
    assert (await views.of(run)).view is seen[0].view and views.replays == 1


async def test_a_change_by_another_process_is_seen(runtime: Runtime, play: Play) -> None:
    run, views = await started(runtime), LiveViews(runtime)
    before = await views.of(run)
    other = play.open(["poured"])
    await other.answer(run, None, "yes")
    assert (await views.of(run)).view.questions == []
    assert views.replays == 1  # an answer that waits is not in the journal yet
    await other.drive(run)
    after = await views.of(run)
    assert after.version != before.version and after.version.tag != before.version.tag
    assert (before.view.row.status, after.view.row.status) == (Status.AWAITING_INPUT, Status.COMPLETED)
    assert view_data(after.view) == view_data(await runtime.view(run))


async def test_a_view_knows_origins_and_requests(runtime: Runtime) -> None:
    run, views = await started(runtime, RunOptions(answers={"2": "yes"})), LiveViews(runtime)
    found, expected = (await views.of(run)).view, await traced(runtime, run)
    assert {path: one.content() for path, one in found.replay.asked.items()} == {
        path: one.content() for path, one in expected.replay.asked.items()
    }
    assert getattr(found.replay.progress, "writes", None) == getattr(expected.replay.progress, "writes", None)


async def test_the_same_view_from_a_thread(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    run = await started(runtime, RunOptions(answers={"2": "yes"}))
    inline = view_data((await LiveViews(runtime).of(run)).view)
    monkeypatch.setattr(live_views, "IN_THREAD", 0)
    assert view_data((await LiveViews(runtime).of(run)).view) == inline


async def test_few_views_are_kept(runtime: Runtime) -> None:
    runs = [await started(runtime) for _ in range(3)]
    views = LiveViews(runtime, runs=2)
    for run in runs:
        await views.of(run)
    await views.of(runs[2])
    await views.of(runs[1])
    assert views.replays == 3
    await views.of(runs[0])
    assert views.replays == 4


async def test_large_views_push_others_out(runtime: Runtime) -> None:
    runs = [await started(runtime) for _ in range(2)]
    views = LiveViews(runtime, effects=1)
    for run in (*runs, runs[1]):
        await views.of(run)
    assert views.replays == 2
    await views.of(runs[0])
    assert views.replays == 3


async def test_an_unknown_run_is_an_error_and_leaves_nothing(runtime: Runtime) -> None:
    with pytest.raises(NoSuchRun):
        await LiveViews(runtime).of("nothing")


async def test_a_run_under_way_is_followed_without_a_replay(runtime: Runtime) -> None:
    run = await runtime.start(read(Source.of(PAGE, "tea.playbook.md")), {}, RunOptions(answers={"2": "yes"}))
    views = LiveViews(runtime)
    heads: list[tuple[str, int]] = []
    looking: list[asyncio.Task[None]] = []

    async def look(seq: int) -> None:
        seen = await views.head(run)
        heads.append((seen.view.progress.steps["1"].status, seen.version.told - seq))

    async with views.driving(run) as following:

        def listen(event: Event) -> None:
            following.listen(event)
            if event.type == "step_completed" and event.path == "1":
                looking.append(asyncio.create_task(look(event.seq)))

        await runtime.drive(run, began=following.began, listen=listen)
        await asyncio.gather(*looking)
        last = (await views.head(run)).view.progress
    assert [status for status, _ in heads] == ["completed"] and heads[0][1] >= 0 and views.replays == 0
    whole = (await views.head(run)).view.progress
    assert views.replays == 1  # not driven any more
    assert [(one.status, one.elapsed) for one in last.steps.values()] == [
        (one.status, one.elapsed) for one in whole.steps.values()
    ]


async def test_a_resumed_run_counts_its_older_effects_once(runtime: Runtime) -> None:
    run = await started(runtime)
    await runtime.answer(run, None, "yes")
    views = LiveViews(runtime)
    async with views.driving(run) as following:
        await runtime.drive(run, began=following.began, listen=following.listen)
        live = (await views.head(run)).view.progress
    stored = (await views.of(run)).view.progress
    assert {path: round(one.elapsed, 6) for path, one in live.steps.items()} == {
        path: round(one.elapsed, 6) for path, one in stored.steps.items()
    }


async def test_items_of_a_fan(play: Play) -> None:
    error: Value = {"kind": "refused", "message": "no", "retryable": False}
    replies: list[Value] = [{"contains": "say b", "error": error}, {"default": "said"}]
    played = await play(read(Source.of(FAN, "fan.yaml")), replies, {"xs": ["a", "b", "c"]})
    seen = await LiveViews(play.runtime).tree(played.run)
    rows = TreeRows(seen.tree, seen.row, 2e9)
    rows.first()
    assert list(zip(*(rows.columns[name] for name in ("path", "hint", "state")), strict=True))[1:] == [
        ("1/for_each[0]", "a", "done"),
        ("1/for_each[1]", "b · no", "failed"),
        ("1/for_each[2]", "c", "done"),
    ]
