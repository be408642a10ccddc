"""Operations on triggers: list, check, enable, disable, fire and tick; and list the claims of their occurrences.

No tool of an MCP server enables a trigger: a person does.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, json, to_builtins

from quire.operations.field_types import Input, Limit, Name, Names, Object, Text, operation, shape, words
from quire.runs.start import new_run_id
from quire.runs.ticker import POLL_SECONDS
from quire.runs.triggers import Consent, Triggers, due_times, source_of, time_text
from quire.workspace.locate import account_name

if TYPE_CHECKING:
    from quire.operations.host import Host
    from quire.values import Value
    from quire.workspace.settings import TriggerSettings

_LIST, _FIRES = shape(triggers=list[Object]), shape(fires=list[Object])
_CHECK = shape(
    problems=Names, digest=str, document=str, may=Names, needs=list[Object], model=str, most=float | None, next=Names
)


class SomeTriggers(Input, frozen=True, kw_only=True):
    name: Annotated[Text, Meta(description="Only this trigger.")] = ""


class OfTrigger(Input, frozen=True, kw_only=True):
    name: Name


class CheckTrigger(OfTrigger, frozen=True, kw_only=True):
    accept: Annotated[Names, Meta(description="Codes of findings that refuse it otherwise.")] = ()


class EnableTrigger(CheckTrigger, frozen=True, kw_only=True):
    digest: Annotated[Name, Meta(description="That of the check which the person has seen.")]


class Backfill(OfTrigger, frozen=True, kw_only=True):
    since: Annotated[Name, Meta(description="A time like 2026-11-01 or 2026-11-01T06:00, in the zone of the trigger.")]
    until: Annotated[Name, Meta(description="Another one.")]
    dry_run: Annotated[bool, Meta(description="Start nothing.")] = False


class ListFires(SomeTriggers, frozen=True, kw_only=True):
    state: Annotated[
        str, words("", "started", "skipped", "missed", "refused"), Meta(description="Only claims in this state.")
    ] = ""
    limit: Limit = 50


def _next(host: Host, trigger: TriggerSettings, most: int) -> list[Value]:
    times = due_times(trigger, host.runtime.clock.now())
    return [time_text(time, trigger.zone) for time in itertools.islice(times, most)]


@operation("The triggers with their next times and their last claims.", SomeTriggers, _LIST)
async def list_triggers(host: Host, given: SomeTriggers) -> Value:
    triggers = Triggers(host.runtime)
    listed: list[Value] = []
    rows, known = await triggers.rows(), triggers.settings.triggers
    if given.name not in ("", *rows):
        triggers.trigger(given.name)
    for name in [given.name] if given.name else sorted({*known, *rows}):
        off = rows[name][2] if name in rows else "it is not enabled"
        last = (await list_fires.run(host, ListFires(name=name, limit=1)))["fires"]
        facts: dict[str, Value] = {"name": name, "enabled": not off, "reason": off, "last": last[0] if last else None}
        times = [] if off else _next(host, known[name], 1)
        listed.append({**facts, "next": times, "settings": to_builtins(known.get(name))})
    return {"triggers": listed}


@operation("All reasons against a trigger, and the bounds of its runs.", CheckTrigger, _CHECK)
async def check_trigger(host: Host, given: CheckTrigger) -> Value:
    """Check a trigger; while it is enabled, with the findings that the user has accepted."""
    triggers = Triggers(host.runtime)
    row, _, off = (await triggers.rows()).get(given.name, (None, None, ""))
    accepted = json.decode(row.authority, type=Consent).accepted if row and not off else ()
    trigger, proposal = triggers.trigger(given.name), await triggers.propose(given.name, given.accept or accepted)
    facts = to_builtins(proposal)
    del facts["authority"]
    return {**facts, "next": [] if proposal.problems else _next(host, trigger, 3), "settings": to_builtins(trigger)}


@operation("Let a trigger start runs, as a check has shown it.", EnableTrigger, _LIST)
async def enable_trigger(host: Host, given: EnableTrigger) -> Value:
    await Triggers(host.runtime).enable(given.name, given.digest, host.caller.by or account_name(), given.accept)
    listed: Value = await list_triggers.run(host, SomeTriggers(name=given.name))
    return listed


@operation("Let a trigger start nothing more.", OfTrigger, _LIST)
async def disable_trigger(host: Host, given: OfTrigger) -> Value:
    triggers = Triggers(host.runtime)
    known = given.name in triggers.settings.triggers
    if given.name not in await triggers.rows():
        triggers.trigger(given.name)
    await host.runtime.store.disable(given.name)
    listed: Value = await list_triggers.run(host, SomeTriggers(name=given.name)) if known else {"triggers": []}
    return listed


@operation("Start a run of a trigger now.", OfTrigger, shape(state=str, reason=str, run=str, runs=list[Object]))
async def fire_trigger(host: Host, given: OfTrigger) -> Value:
    key = f"by hand {new_run_id(host.runtime.clock.now())}"
    start, _ = await Triggers(host.runtime, door=host.caller.door).fire(given.name, key)
    runs = [await host.begin(start.run, detach=False, goes_on=False)] if start.run else []
    return {**to_builtins(start), "runs": runs}


@operation("The claims of the occurrences of triggers, newest first.", ListFires, _FIRES)
async def list_fires(host: Host, given: ListFires) -> Value:
    source = source_of(given.name)
    starts = await host.runtime.store.starts(source if given.name else "", given.state, given.limit)
    runs = {row.id: str(row.status) for row in await host.runtime.store.named([start.run for start in starts])}
    known = [start for start in starts if start.source.startswith(source)]
    return {"fires": [{**to_builtins(start), "status": runs.get(start.run, "")} for start in known]}


@operation(
    "Start the runs of due times that nothing has claimed, one after another.",
    Backfill,
    shape(due=Names, most=float | None, fires=list[Object]),
)
async def backfill_trigger(host: Host, given: Backfill) -> Value:
    triggers = Triggers(host.runtime, host.runtime.notice, host.caller.door)
    due = await triggers.holes(given.name, given.since, given.until)
    most = (await triggers.propose(given.name)).most
    most = triggers.trigger(given.name).budget if most is None else most
    starts = [await triggers.fire(given.name, time_text(at), due=at, late=True) for at in due if not given.dry_run]
    if starts:
        await triggers.begin(host.go_on)
    return {"due": [time_text(at) for at in due], "most": most, "fires": [to_builtins(start) for start, _ in starts]}


@operation(
    "Start the runs of all triggers that are due, and drive them.", Input, shape(runs=list[Object], problems=Names)
)
async def tick_triggers(host: Host, given: Input) -> Value:
    problems, clock = list[str](), host.runtime.clock
    triggers = Triggers(host.runtime, problems.append, host.caller.door)
    runs = await triggers.tick(clock.now(), host.go_on)
    if triggers.polls:  # a file is taken at the second look
        await clock.sleep(POLL_SECONDS)
        runs += await triggers.tick(clock.now(), host.go_on)
    return {"runs": [await host.shown(run) for run in runs], "problems": problems}
