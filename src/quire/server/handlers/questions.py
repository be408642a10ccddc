"""Handlers for questions: list the open ones, and answer."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from quire.display.run_json import question_data
from quire.engine.records import Status
from quire.errors import RunBusy
from quire.runs.adapters import one_name
from quire.server.endpoints import Call, Reply
from quire.server.problems import Problem

if TYPE_CHECKING:
    from quire.engine.records import Question
    from quire.server.site import Site
    from quire.values import Value

ANSWERED_BY = "web"


async def list_questions(site: Site, call: Call) -> Reply:
    store = site.runtime.store
    questions = await store.questions(call.text("run") or None)
    titles: dict[str, str] = {}
    items: list[Value] = []
    for question in questions[: call.number("limit", 100)]:
        if question.run not in titles:
            row = await store.get(question.run)
            titles[question.run] = row.title if row else ""
        items.append({**question_data(question, titles[question.run]), "hash": question.hash})
    return Reply({"items": items, "next": None, "total": len(questions)})


async def show_question(site: Site, call: Call) -> Reply:
    question = await _question(site, call)
    row = await site.runtime.row(question.run)
    return Reply({**question_data(question, row.title), "hash": question.hash})


async def answer_question(site: Site, call: Call) -> Reply:
    question = await _question(site, call)
    if call.body["hash"] != question.hash:
        raise Problem.of("question-changed", f"the question at {question.path} is worded differently now")
    run = question.run
    await site.runtime.answer(run, question.path, str(call.body["value"]), by=one_name(ANSWERED_BY))
    site.hub.touch(run)
    row = await site.runtime.row(run)
    if call.body.get("drive", True) is True and row.status is Status.AWAITING_INPUT and run not in site.runs:
        with contextlib.suppress(RunBusy):  # then its driver takes the answer
            await site.runs.go_on(run)
    return Reply({"run": run, "path": question.path, "driven_here": run in site.runs})


async def _question(site: Site, call: Call) -> Question:
    run, path = await site.runtime.find(call.path["run"]), call.path["path"]
    for question in await site.runtime.store.questions(run):
        if question.path == path:
            return question
    raise Problem.of("no-such-question", f"run {run} asks nothing at {path}")
