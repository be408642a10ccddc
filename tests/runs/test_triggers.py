"""Triggers on a real store: what enabling refuses, what a fire does, and what nothing may start."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
from tests.runs.trigger_place import ASKING, DAY, HELLO, NOON, Place, nothing

from quire.cli.resume_all import wanted_runs
from quire.engine.records import NewRun
from quire.errors import BadConfiguration, CannotStart, Refused, RunState, Untrusted
from quire.library.document import Document
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.runs.triggers import MOST_WAITING, Facts, Triggers
from quire.values import Value

HOOK = 'webhook = {scheme = "hmac", secret_env = "LONG"}'


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
async def runtime(place: Place) -> AsyncIterator[Runtime]:
    place.configure(noon='cron = "0 12 * * *"')
    runtime = place.runtime()
    yield runtime
    await runtime.close()


async def states(runtime: Runtime, name: str = "noon") -> list[tuple[str, str]]:
    return [(start.state, start.key) for start in await runtime.store.starts(f"trigger:{name}")]


async def test_a_due_time_starts_one_run_that_pins_its_source(place: Place, runtime: Runtime) -> None:
    triggers = await place.enabled(runtime, "noon")
    assert await triggers.tick(NOON + 3600, nothing) == []
    place.clock.time += 86_400 + 5
    (run,) = await triggers.tick(place.clock.now(), nothing)
    row = await runtime.row(run)
    assert (row.source, row.pins["inputs"]) == (
        "trigger:noon",
        {"day": "2027-01-16T12:00:00Z"},
    )
    (start,) = await runtime.store.starts()
    assert (start.key, start.due, start.state, start.run) == ("2027-01-16T12:00:00Z", NOON + 86_400, "started", run)
    await runtime.drive(run)
    assert await triggers.tick(place.clock.now(), nothing) == []
    assert len(await runtime.store.list()) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('run = "hello"\nevery = "1h"\n', "input day is not mapped"),
        (f'run = "hello"\n{DAY.replace("due", "body")}\nevery = "1h"', "day: "),
        (f'run = "hello"\n{DAY}\nevery = "1h"\nwhen = "1 +"', "the expression of when: "),
        (f'run = "hello"\n{DAY}\ncron = "0 0 30 2 *"', "Bad day-of-month"),
        (f'run = "hello"\n{DAY}\ncron = "0 0 1 1 *"\nzone = "Mars"', "zone Mars does not exist"),
        ('run = "nowhere"\nevery = "1h"', "nowhere"),
        ('run = "asking"\nevery = "1h"\nquestions = "default"', "step 1 asks without a default"),
        ('run = "writes"\nevery = "1h"\n' + DAY, "is not granted: allow names its tool"),
        (f'run = "hello"\nevery = "1h"\nallow = ["http__send"]\n{DAY}', "cannot allow http__send without a host"),
        (f'run = "../away.playbook.md"\nevery = "1h"\n{DAY}', "is outside of this workspace"),
        (f'run = "hello"\n{DAY}\nevery = "1h"\nmodel = "openai:gpt-4o"', "it needs a budget"),
        (f'run = "hello"\n{DAY}\nevery = "1h"\nmodel = "openai:gpt-4o"\nbudget = 0.00001', "more than its budget"),
        (f'run = "hello"\n{DAY}\nevery = "1h"\nmodel = "openai:nobody-knows"\nbudget = 1.0', "the price of"),
        (
            f'run = "hello"\n{DAY}\nevery = "1h"\nmodel = "anthropic:claude-sonnet-4-5"\nbudget = 1.0',
            "ANTHROPIC_API_KEY",
        ),
        (f'run = "hello"\n{DAY}\nevery = "1h"\nday_budget = 1.0', "day_budget: "),
        (f'run = "hello"\n{DAY}\n{HOOK.replace("LONG", "NOT_SET")}', "the variable NOT_SET has no secret"),
        (f'run = "hello"\n{DAY}\n{HOOK.replace("LONG", "SHORT")}', "SHORT is shorter than 24 bytes"),
        (f'run = "hello"\n{DAY.replace("due", "file.path")}\n{HOOK}', "day: file is unknown; it can read due, body"),
        (f'run = "hello"\n{DAY}\n{HOOK}\nkey = "headers.id"', "key: headers is unknown; it can read body"),
        (f'run = "hello"\n{DAY}\n{HOOK}\nwhen = "bdy.x"', "when: bdy is unknown"),
        (f'run = "writes"\nallow = ["http__get"]\n{HOOK}\ninputs = {{url = {{expr = "body.url"}}}}', "--accept TA103"),
    ],
)
async def test_enabling_refuses(place: Place, monkeypatch: pytest.MonkeyPatch, text: str, problem: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    (place.base / "away.playbook.md").write_text(HELLO)
    (place.work / "pipelines").mkdir()
    (place.work / "pipelines" / "writes.yaml").write_text(
        "pipeline: writes\nsteps:\n  - tool: {name: http__get, args: {url: !expr 'ctx.url'}}\n"
    )
    place.configure(wrong=text)
    runtime = place.runtime()
    proposal = await Triggers(runtime).propose("wrong")
    assert any(problem in line for line in proposal.problems), proposal.problems
    with pytest.raises(Refused):
        await Triggers(runtime).enable("wrong", proposal.digest, "ada")
    assert not await runtime.store.triggers()
    await runtime.close()


async def test_all_reasons_are_told_at_once(place: Place) -> None:
    place.configure(wrong='run = "hello"\nevery = "1h"\nbudget = 1.0\nquestions = "default"')
    runtime = place.runtime()
    problems = (await Triggers(runtime).propose("wrong")).problems
    assert len(problems) >= 2 and "input day is not mapped" in problems
    with pytest.raises(CannotStart, match=r"unknown trigger wrnog: did you mean wrong\?"):
        await Triggers(runtime).propose("wrnog")
    await runtime.close()


async def test_a_host_is_grant_enough_to_read_from_it_and_costs_nothing(place: Place) -> None:
    fetch = "pipeline: fetch\nsteps:\n- tool: {name: http__get, args: {url: 'https://example.org/x'}}\n"
    (place.work / "fetch.yaml").write_text(fetch)
    place.configure(fetch='run = "fetch.yaml"\nevery = "1h"\nallow = ["http__get=example.org"]')
    runtime = place.runtime()
    proposal = await Triggers(runtime).propose("fetch")
    assert (proposal.problems, proposal.most, proposal.may) == ((), 0.0, ("rye.execute.tool.rye.web.fetch",))
    await runtime.close()


async def test_only_what_was_shown_is_enabled(place: Place, runtime: Runtime) -> None:
    triggers = Triggers(runtime)
    seen = (await triggers.propose("noon")).digest
    place.configure(noon='cron = "0 13 * * *"')
    with pytest.raises(Refused, match="not what was shown"):
        await triggers.enable("noon", seen, "ada")


async def test_a_trigger_of_a_workspace_needs_its_consent(place: Place) -> None:
    (place.work / "quire.toml").write_text(f'[triggers.theirs]\nrun = "hello"\nevery = "1h"\n{DAY}\n')
    runtime = place.runtime()
    (problem,) = (await Triggers(runtime).propose("theirs")).problems
    assert "offer the trigger theirs" in problem and "quire trust workspace" in problem
    await runtime.close()


async def test_changed_settings_start_nothing_until_they_are_enabled(place: Place, runtime: Runtime) -> None:
    triggers = await place.enabled(runtime, "noon")
    place.configure(noon='cron = "0 12 * * *"\noverlap = "allow"')
    place.clock.time += 86_400
    assert await triggers.tick(place.clock.now(), nothing) == []
    assert (await triggers.rows())["noon"][2] == "its settings have changed since it was enabled"
    with pytest.raises(RunState, match="its settings have changed"):
        await triggers.fire("noon", "now")
    assert not await runtime.store.starts()


async def test_a_document_that_may_do_more_is_refused_and_told(place: Place, tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    place.configure(noon='cron = "0 12 * * *"')
    settings = place.home / "quire.toml"
    settings.write_text(settings.read_text() + f'\n[notify]\ncommand = ["/bin/sh", "-c", "cat > {told}"]\n')
    lines: list[str] = []
    runtime = place.runtime()
    await place.enabled(runtime, "noon")
    document = place.work / "hello.playbook.md"
    document.write_text(HELLO.replace("Say hello", "Say a warm hello"))  # prose may change
    triggers = Triggers(runtime, lines.append)
    assert (await triggers.fire("noon", "first"))[0].state == "started"
    document.write_text(HELLO.replace("## STEP 1", "## STEP 1: Ask\n\nThink.\n\n## STEP 2"))  # authority may not
    start, _ = await triggers.fire("noon", "second")
    assert (start.state, start.run) == ("refused", "") and "may do or cost more" in start.reason
    assert len(await runtime.store.list()) == 1 and "noon is refused" in lines[0]
    await runtime.close()  # it waits for the user's program
    assert json.loads(told.read_text())["type"] == "trigger.refused"


async def test_rows_that_the_user_did_not_write_start_nothing(place: Place, runtime: Runtime, tmp_path: Path) -> None:
    """A row of a clone, a row that was changed, and one that another key has sealed."""
    triggers = await place.enabled(runtime, "noon")
    await runtime.close()
    place.clock.time += 86_400
    shutil.copytree(place.work, tmp_path / "clone")
    clone = Place(tmp_path / "other")
    shutil.copytree(place.work / ".quire", clone.work / ".quire", dirs_exist_ok=True)
    shutil.copy(place.home / "quire.toml", clone.home)
    shutil.copytree(place.home / "keys", clone.home / "keys")  # even of the same user
    clone.clock.time = place.clock.time
    cloned = clone.runtime()
    assert await Triggers(cloned).tick(place.clock.now(), nothing) == []
    assert "its seal is of another user or folder" in (await Triggers(cloned).rows())["noon"][2]
    await cloned.close()
    with sqlite3.connect(place.work / ".quire" / "quire.db") as database:
        database.execute("UPDATE triggers SET enabled_by = 'eve'")
    again = place.runtime()
    assert await Triggers(again).tick(place.clock.now(), nothing) == []
    assert not await again.store.starts()
    await again.close()
    assert triggers is not None


@pytest.mark.parametrize(
    ("overlap", "expected"), [("skip", ["skipped", "started"]), ("allow", ["started"] * 2), ("queue", ["started"] * 2)]
)
async def test_overlap(place: Place, overlap: str, expected: list[str]) -> None:
    place.configure(fast=f'every = "60s"\ncatch_up = "all"\noverlap = "{overlap}"')
    runtime = place.runtime()
    triggers = await place.enabled(runtime, "fast")
    place.clock.time += 120
    driven = await triggers.tick(place.clock.now(), nothing)
    assert [state for state, _ in await states(runtime, "fast")] == expected
    runs = [row.id for row in await runtime.store.list()][::-1]
    # A queue is driven one by one, the oldest first, and nothing more while one is under way.
    assert driven == (runs if overlap == "allow" else runs[:1])
    if overlap == "queue":
        await runtime.drive(runs[0])
        assert await triggers.tick(place.clock.now(), nothing) == [runs[1]]
    await runtime.close()


async def test_runs_that_wait_do_not_wedge_a_trigger_until_they_are_many(place: Place) -> None:
    place.configure(ask='run = "asking"\nevery = "1h"')
    assert ASKING
    runtime = place.runtime()
    triggers = await place.enabled(runtime, "ask")
    for number in range(MOST_WAITING):
        start, _ = await triggers.fire("ask", str(number))
        await runtime.drive(start.run)
    start, _ = await triggers.fire("ask", "one more")
    assert (start.state, start.reason) == ("skipped", f"{MOST_WAITING} of its runs wait")
    await runtime.close()


async def test_runs_that_may_not_overlap_are_not_resumed_side_by_side(place: Place) -> None:
    place.configure(noon='every = "1h"\noverlap = "queue"\ncatch_up = "all"')
    runtime = place.runtime()
    triggers = await place.enabled(runtime, "noon")
    place.clock.time += 3 * 3600
    assert len(await triggers.tick(place.clock.now(), nothing)) == 1
    place.clock.time += 60
    assert len(await runtime.store.list()) == 3
    assert await wanted_runs(runtime, status=None, document="", since=None) == []
    await runtime.close()


async def test_a_mistake_in_one_trigger_holds_up_no_other(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.configure(early='every = "1h"', noon='cron = "0 12 * * *"')
    runtime, reports = place.runtime(), list[str]()
    await place.enabled(runtime, "early", "noon")
    triggers = Triggers(runtime, reports.append)
    prepared = runtime.prepared

    async def broken(document: Document, inputs: Value, options: RunOptions) -> NewRun:
        if options.source == "trigger:early":
            raise ZeroDivisionError
        return await prepared(document, cast("dict[str, Value]", inputs), options)

    monkeypatch.setattr(runtime, "prepared", broken)
    place.clock.time += 86_400
    for _ in range(2):
        (run,) = await triggers.tick(place.clock.now(), nothing)
        assert (await runtime.row(run)).source == "trigger:noon"
    assert reports == ["early has failed, and is tried again: a mistake of Quire: ZeroDivisionError()"]
    await runtime.close()


async def test_a_false_condition_skips(place: Place) -> None:
    place.configure(some='every = "1h"\nwhen = "due < \'2000\'"')
    runtime = place.runtime()
    start, _ = await (await place.enabled(runtime, "some")).fire("some", "now")
    assert (start.state, start.reason) == ("skipped", "when is false")
    await runtime.close()


async def test_a_failure_that_may_pass_claims_nothing_until_the_window_ends(place: Place) -> None:
    place.configure(noon='cron = "0 12 * * *"\nwindow = "1h"')
    lines: list[str] = []
    runtime = place.runtime()
    await place.enabled(runtime, "noon")
    triggers, document = Triggers(runtime, lines.append), place.work / "hello.playbook.md"
    document.rename(place.work / "away.txt")
    place.clock.time += 86_400
    for _ in range(3):
        assert await triggers.tick(place.clock.now(), nothing) == []
    assert not await runtime.store.starts() and len(lines) == 1 and "is tried again" in lines[0]
    (place.work / "away.txt").rename(document)
    assert len(await triggers.tick(place.clock.now(), nothing)) == 1
    document.rename(place.work / "away.txt")
    place.clock.time += 86_400
    await triggers.tick(place.clock.now(), nothing)
    place.clock.time += 3600 + 60
    await triggers.tick(place.clock.now(), nothing)
    assert await states(runtime) == [
        ("missed", "2027-01-17T12:00:00Z..2027-01-17T12:01:00Z"), ("started", "2027-01-16T12:00:00Z")
    ]  # fmt: skip
    await runtime.close()


async def test_a_clock_that_was_wrong_for_a_while_silences_nothing(place: Place, runtime: Runtime) -> None:
    triggers = await place.enabled(runtime, "noon")
    place.clock.time += 5 * 86_400
    (run,) = await triggers.tick(place.clock.now(), nothing)
    await runtime.drive(run)
    place.clock.time = NOON + 3600
    for _ in range(2):
        assert await triggers.tick(place.clock.now(), nothing) == []
    place.clock.time = NOON + 86_400
    assert len(await triggers.tick(place.clock.now(), nothing)) == 1


def test_the_error_of_an_untrusted_workspace_is_a_refusal() -> None:
    assert issubclass(Untrusted, Refused)


async def test_text_from_outside_needs_an_accepted_code_and_a_merge_adds_no_flow(place: Place) -> None:
    (place.work / "pipelines").mkdir()
    document = place.work / "pipelines" / "fetch.yaml"
    fetch = (
        "  - tool:\n      name: http__get\n      args:\n        url: !expr ctx.url\n        headers: !expr ctx.name\n"
    )
    document.write_text(f"pipeline: fetch\nsteps:\n{fetch.replace('ctx.name', 'ctx.day')}")
    inputs = '{url = {expr = "body.url"}, name = {expr = "body.name"}, day = {expr = "due"}}'
    place.configure(hook=f'run = "fetch"\nallow = ["http__get"]\n{HOOK}\ninputs = {inputs}')
    runtime = place.runtime()
    triggers = Triggers(runtime)
    (problem,) = (await triggers.propose("hook")).problems
    assert "TA103: url reaches http__get url" in problem and "--accept TA103" in problem
    proposal = await triggers.propose("hook", ("TA103",))
    assert not proposal.problems
    with pytest.raises(Refused):  # what was accepted is part of what was shown
        await triggers.enable("hook", proposal.digest, "ada")
    await triggers.enable("hook", proposal.digest, "ada", ("TA103",))
    facts: Facts = {"body": {"url": "https://example.com", "name": "a"}, "headers": {}}
    assert (await triggers.fire("hook", "1", facts=facts))[0].state == "started"
    document.write_text(f"pipeline: fetch\nsteps:\n{fetch}")  # the same call, with one more text from outside
    start, _ = await triggers.fire("hook", "2", facts=facts)
    assert start.state == "refused" and "name" in start.reason, start
    await runtime.close()


async def test_a_sample_of_each_type_is_tried_at_enable(place: Place) -> None:
    (place.work / "pipelines").mkdir()
    (place.work / "pipelines" / "typed.yaml").write_text(
        "schema: Item\nfields: {id: {type: number, minimum: 3}, tags: {type: list, of: {type: string}}}\n"
        "---\npipeline: typed\ndialect: quire\ninput:\n"
        "  rows: {type: list, of: {type: string}, max_items: 9}\n  size: {type: number, minimum: 1}\n"
        "  kind: {type: enum, values: [a, b]}\n  on: {type: bool}\n  item: {type: ref, schema: Item}\n"
        "steps:\n  - transform: {value: size}\n"
    )
    inputs = ", ".join(f'{name} = {{expr = "body.{name}"}}' for name in ("rows", "size", "kind", "on", "item"))
    place.configure(typed=f'run = "typed"\n{HOOK}\ninputs = {{{inputs}}}')
    runtime = place.runtime()
    triggers = await place.enabled(runtime, "typed")
    wrong, _ = await triggers.fire("typed", "1", facts={"body": {"rows": 1}, "headers": {}})
    assert wrong.state == "refused"
    body: Value = {"rows": ["a"], "size": 2, "kind": "b", "on": True, "item": {"id": 4, "tags": ["x"]}}
    start, _ = await triggers.fire("typed", "2", facts={"body": body, "headers": {}})
    assert (start.state, start.reason) == ("started", "")
    await runtime.close()


@pytest.mark.parametrize("table", [
    'every = "1h"\nfiles = "*.csv"', 'cron = "* * * * *"\nwebhook = {scheme = "hmac", secret_env = "A"}', "",
    'webhook = {scheme = "hamc", secret_env = "A"}', 'webhook = {scheme = "hmac"}', "webhook = []",
    'webhook = {scheme = "hmac", secret_env = "A", secret_file = "/b"}', 'webhook = "A"',
    'webhook = [{scheme = "hmac", secret_file = "relative"}]', f"{HOOK}\nrate = 0", 'files = "a"\nexisting = "yes"',
])  # fmt: skip
def test_settings_that_are_wrong_are_told_with_their_place(place: Place, table: str) -> None:
    place.configure(wrong=table)
    with pytest.raises(BadConfiguration, match=r"home/quire.toml: \[triggers.wrong(.webhook)?\] "):
        place.runtime()
