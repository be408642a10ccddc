"""Handlers for what needs the user now: one answer with everything that the first screen shows."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from quire.display.document_json import document_row
from quire.display.inbox_json import letter_data, open_question, question_groups
from quire.display.now_json import running_data, stopped_data
from quire.display.run_json import row_data
from quire.engine.progress import Progress
from quire.engine.records import Status
from quire.errors import QuireError
from quire.server.endpoints import Call, Reply
from quire.server.handlers.questions import rendered_prompts
from quire.stores.contract import Ledger, oldest_questions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quire.engine.records import Question, RunRow
    from quire.server.site import Site
    from quire.values import Value

DAY = 86_400.0
MOST_QUESTIONS = 2000
"""The oldest open questions that are read and put into groups."""
MOST_GROUPS = 20
MOST_OF_GROUP = 20
MOST_STOPPED = 20
MOST_RUNNING = 50
FINISHED = 8
LETTERS = 5
SUGGESTED = 3


async def now(site: Site, call: Call) -> Reply:
    store, at = site.runtime.store, time.time()
    questions, total = await oldest_questions(store, MOST_QUESTIONS)
    stopped = [row for status in (Status.PAUSED, Status.INTERRUPTED) for row in await store.list(status=status)]
    failed = [row for row in await store.list(status=Status.FAILED) if row.updated_at > at - DAY]
    stopped = sorted([*stopped, *failed], key=lambda row: -row.updated_at)
    running = await store.list(status=Status.RUNNING, limit=MOST_RUNNING)
    finished = await store.list(status=Status.COMPLETED, limit=FINISHED)
    quiet = not questions and not running
    documents = await asyncio.to_thread(site.shelf.all) if quiet else []
    data: dict[str, Value] = {
        "questions": {"groups": await _groups(site, questions), "total": total},
        "stopped": [stopped_data(row) for row in stopped[:MOST_STOPPED]],
        "stopped_more": max(0, len(stopped) - MOST_STOPPED),
        "running": [await _running(site, row) for row in running],
        "finished": [row_data(row) for row in finished],
        "letters": await _letters(site, LETTERS),
        "spent": await _spent(site, at),
        "suggested": [document_row(one, None) for one in documents if one.document and not one.errors][:SUGGESTED],
        "documents": len(documents) if quiet else None,
    }
    return Reply(data)


async def _groups(site: Site, questions: Sequence[Question]) -> list[Value]:
    """Return the questions, those of one fan-out together."""
    of_run: dict[str, list[Question]] = {}
    for question in questions:
        of_run.setdefault(question.run, []).append(question)
    found: list[Value] = []
    groups = list(question_groups(questions))[:MOST_GROUPS]
    shown = await rendered_prompts(site, (question for group in groups for question in group[:MOST_OF_GROUP]))
    for group in groups:
        first = group[0]
        row = await site.runtime.store.get(first.run)
        title = row.title if row else ""
        items: list[Value] = [
            {**open_question(question, title, of_run[first.run]), "html": shown[question.prompt]}
            for question in group[:MOST_OF_GROUP]
        ]
        found.append({"run": first.run, "title": title, "way": first.way, "count": len(group), "items": items})
    return found


async def _running(site: Site, row: RunRow) -> Value:
    """Return a run under way. Only a run that is driven here has its progress at hand; none is replayed for a list."""
    try:
        progress = (await site.views.head(row.id)).view.progress if row.id in site.runs else None
        shown = progress or Progress.of((await site.runtime.stored(row)).plan)
    except QuireError:
        return running_data(row, None, [])  # A run of another version: what its row says is shown.
    return running_data(row, progress, [step.label for step in shown.steps.values() if not step.depth])


async def list_letters(site: Site, call: Call) -> Reply:
    return Reply({"items": await _letters(site, call.number("limit", 100)), "next": None})


async def _letters(site: Site, most: int) -> list[Value]:
    letters = await site.runtime.store.letters()
    return [letter_data(one) for one in reversed(letters[-most:])]


async def _spent(site: Site, at: float) -> Value:
    """Return the cost of the runs that were started today (by the clock of this machine) and in the last seven days."""
    store = site.runtime.store
    if not isinstance(store, Ledger):
        return None
    local = time.localtime(at)
    midnight = time.mktime((local.tm_year, local.tm_mon, local.tm_mday, 0, 0, 0, 0, 0, -1))
    found: dict[str, Value] = {}
    for name, since in (("today", midnight), ("week", at - 7 * DAY)):
        spent = await store.spent(since)
        found[name] = {"runs": spent.runs, "cost": spent.cost, "unknown": spent.unknown}
    return found
