"""Handlers for questions: list the open ones, show one with what led to it, and answer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from quire.display.inbox_json import given_answer, led_here, open_question
from quire.engine.records import Status
from quire.errors import BadInputs, QuireError, RunBusy, RunState
from quire.runs.adapters import one_name
from quire.server.endpoints import Call, Reply
from quire.server.problems import Problem, problem_of
from quire.stores.contract import oldest_questions

if TYPE_CHECKING:
    from quire.engine.records import Answer, EffectRecord, Question
    from quire.server.site import Site
    from quire.values import Value

ANSWERED_BY = "web"


async def list_questions(site: Site, call: Call) -> Reply:
    store = site.runtime.store
    wanted, after, limit = call.text("run"), call.text("after"), call.number("limit", 100)
    if wanted or after:
        questions = await store.questions(await site.runtime.find(wanted) if wanted else None)
        total = len(questions)
    else:
        questions, total = await oldest_questions(store, limit)
    start = _after(questions, after)
    page = questions[start : start + limit]
    titles: dict[str, str] = {}
    items: list[Value] = []
    shown = await rendered_prompts(site, page)
    for question in page:
        if question.run not in titles:
            row = await store.get(question.run)
            titles[question.run] = row.title if row else ""
        others = [one for one in questions if one.run == question.run]
        items.append({**open_question(question, titles[question.run], others), "html": shown[question.prompt]})
    more = f"{page[-1].run}/{page[-1].path}" if page and start + limit < total else None
    return Reply({"items": items, "next": more, "total": total})


def _after(questions: Sequence[Question], place: str) -> int:
    """Return the number of questions before a place, as `next` names it; 0 if that question is gone."""
    names = [f"{one.run}/{one.path}" for one in questions] if place else []
    return names.index(place) + 1 if place in names else 0


async def show_question(site: Site, call: Call) -> Reply:
    run, path = await site.runtime.find(call.path["run"]), call.path["path"]
    asked = await site.runtime.store.questions(run)
    question = next((one for one in asked if one.path == path), None)
    row = await site.runtime.row(run)
    if question is None:
        answer = await _answer_of(site, run, path)
        if answer is None:
            raise await _not_open(site, run, path)
        return Reply({"run": run, "path": path, "title": row.title, "open": False, "answer": given_answer(answer)})
    led: list[dict[str, Value]] = []
    with contextlib.suppress(QuireError):  # A run that cannot be replayed can still be answered.
        led = led_here((await site.views.of(run)).view, path)
    outputs = [("markdown", str(step["output"])) for step in led]
    rendered = await site.renderer.render([prompt := ("question", question.prompt), *outputs])
    for step, output in zip(led, outputs, strict=True):
        step["html"] = rendered[output]
    shown = {**open_question(question, row.title, asked), "html": rendered[prompt]}
    return Reply({**shown, "open": True, "led": [*led], "document": row.document})


async def rendered_prompts(site: Site, questions: Iterable[Question]) -> dict[str, str | None]:
    """Return the HTML of each prompt; None for one that is plain, or would not be whole."""
    rendered = await site.renderer.render([("question", question.prompt) for question in questions])
    return {prompt: html for (_, prompt), html in rendered.items()}


async def answer_question(site: Site, call: Call) -> Reply:
    run, path = await site.runtime.find(call.path["run"]), call.path["path"]
    await _store_answer(site, run, path, str(call.body["hash"]), str(call.body["value"]))
    await _go_on(site, run, call)
    return Reply({"run": run, "path": path, "driven_here": run in site.runs})


async def answer_questions(site: Site, call: Call) -> Reply:
    """Answer several questions. Each is answered or not by itself; their runs go on afterwards."""
    results: list[Value] = []
    answered = 0
    runs: dict[str, None] = {}
    for one in cast("list[Mapping[str, str]]", call.body["answers"]):
        result: dict[str, Value] = {"run": one["run"], "path": one["path"]}
        try:
            run = await site.runtime.find(one["run"])
            await _store_answer(site, run, one["path"], one["hash"], one["value"])
            runs[run] = None
            answered += 1
            results.append({**result, "answered": True})
        except (Problem, QuireError) as error:
            problem = error if isinstance(error, Problem) else problem_of(error)
            data: dict[str, Value] = {"code": problem.code, "detail": problem.detail, **problem.more}
            results.append({**result, "answered": False, "problem": data})
    for run in runs:
        await _go_on(site, run, call)
    return Reply({"items": results, "answered": answered})


async def _store_answer(site: Site, run: str, path: str, hash: str, value: str) -> None:
    """Store an answer. Raises `Problem` if the question is answered, worded differently, or does not take it."""
    asked = next((one for one in await site.runtime.store.questions(run) if one.path == path), None)
    if asked is None:
        raise await _not_open(site, run, path)
    if hash != asked.hash:
        raise Problem.of("question-changed", f"the question at {path} is worded differently now")
    try:
        await site.runtime.answer(run, path, value, by=one_name(ANSWERED_BY))
    except BadInputs as error:
        raise Problem.of("unfit-answer", "; ".join(error.problems)) from None
    except RunState:
        raise await _not_open(site, run, path) from None


async def _go_on(site: Site, run: str, call: Call) -> None:
    """Drive the run of an answered question, unless the client does not want that or another process drives it."""
    site.hub.touch(run)
    row = await site.runtime.row(run)
    if call.body.get("drive", True) is True and row.status is Status.AWAITING_INPUT and run not in site.runs:
        with contextlib.suppress(RunBusy):  # then its driver takes the answer
            await site.runs.go_on(run)


async def _not_open(site: Site, run: str, path: str) -> Problem:
    """Return the problem about a question that is not open: its answer and author if it has one."""
    answer = await _answer_of(site, run, path)
    if answer is None:
        row = await site.runtime.row(run)
        return Problem.of("no-such-question", f"run {run} asks nothing at {path} (it is {row.status.words})")
    given = given_answer(answer)
    return Problem.of(
        "already-answered", f"answered {given['value']} {given['words']}", exit_code=4, more={"answer": given}
    )


async def _answer_of(site: Site, run: str, path: str) -> EffectRecord | Answer | None:
    for waiting in await site.runtime.store.answers(run):
        if waiting.path == path:
            return waiting
    for record in await site.runtime.store.effects(run):
        if record.path == path and record.kind == "ask" and record.state == "ok":
            return record
    return None
