"""Operations on questions: list the open ones, show one with the steps before it, and answer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from quire.display.inbox_json import given_answer, group_of, led_here, open_question
from quire.display.run_json import name_data
from quire.engine.records import Status
from quire.errors import BadInputs, QuireError, RunBusy, RunState
from quire.operations.field_types import After, Input, Limit, Name, OfStep, Page, Text, needs, operation, shape
from quire.operations.gates import freed_by
from quire.operations.problems import Problem, problem_of
from quire.operations.results import OpenQuestion, ShownQuestion
from quire.runs.adapters import one_name

if TYPE_CHECKING:
    from quire.engine.records import Answer, EffectRecord, Question, RunRow
    from quire.operations.host import Host
    from quire.values import Value


class ListQuestions(Input, frozen=True, kw_only=True):
    run: Annotated[Name, Meta(description="Only questions of this run.")] = ""
    after: After = ""
    limit: Limit = 100


@operation("The open questions, the oldest first, and their number, up to 1,001.", ListQuestions, Page[OpenQuestion])
async def list_questions(host: Host, given: ListQuestions) -> Value:
    store, limit, start = host.runtime.store, given.limit, 0
    if given.run:
        questions = await store.questions(await host.runtime.find(given.run))
        places, total = [_place_of(question) for question in questions], len(questions)
        start = places.index(given.after) + 1 if given.after in places else 0
    else:
        questions, total = await store.oldest_questions(limit + 1, _place(given.after))
    page = questions[start : start + limit]
    items: list[Value] = [*await listed(host, page, questions, await rows_of(host, page))]
    more = _place_of(page[-1]) if start + limit < len(questions) else None
    return {"items": items, "next": more, "total": total}


def _place_of(question: Question) -> str:
    return f"{question.asked_at!r}/{question.run}/{question.path}"


def _place(text: str) -> tuple[float, str, str] | None:
    """Return the place that a page follows. Raises `Problem`."""
    at, _, rest = text.partition("/")
    run, _, path = rest.partition("/")
    try:
        return (float(at), run, path) if text else None
    except ValueError:
        raise Problem.of("unfit-parameters", f"after: {text!r} is not a place in the list") from None


async def rows_of(host: Host, questions: Iterable[Question]) -> Mapping[str, RunRow]:
    """Return the runs of questions by their ids."""
    runs = list(dict.fromkeys(question.run for question in questions))
    return {row.id: row for row in await host.runtime.store.named(runs)} if runs else {}


async def listed(
    host: Host, page: Sequence[Question], questions: Sequence[Question], rows: Mapping[str, RunRow]
) -> list[dict[str, Value]]:
    """Return open questions as lists show them, with the key of their group. `questions` are all open ones; `alone`
    marks those of which each has to be answered by itself."""
    shown = await rendered_prompts(host, page)
    items: list[dict[str, Value]] = []
    for question in page:
        row = rows.get(question.run)
        others = [other for other in questions if other.run == question.run]
        items.append(
            {
                **open_question(question, name_data(row), others),
                "group": group_of(question, row),
                "alone": (await freed_by(host, row, question)).alone,
                "html": shown[question.prompt],
            }
        )
    return items


@operation("One question: if it is open with the outputs that led to it, else with its answer.", OfStep, ShownQuestion)
async def show_question(host: Host, given: OfStep) -> Value:
    run, path = await host.runtime.find(given.run), given.path
    questions = await host.runtime.store.questions(run)
    question = next((question for question in questions if question.path == path), None)
    row = await host.runtime.row(run)
    if question is None:
        answer = await _answer_of(host, run, path)
        if answer is None:
            raise await _not_open(host, run, path)
        return {"run": run, "path": path, **name_data(row), "open": False, "answer": given_answer(answer)}
    led: list[dict[str, Value]] = []
    with contextlib.suppress(QuireError):  # A run that cannot be replayed can still be answered.
        led = led_here((await host.views.of(run)).view, path)
    outputs = [("markdown", str(step["output"])) for step in led]
    rendered = await host.render([prompt := ("question", question.prompt), *outputs])
    for step, output in zip(led, outputs, strict=True):
        step["html"] = rendered[output]
    shown = {**open_question(question, name_data(row), questions), "html": rendered[prompt]}
    freed = await freed_by(host, row, question)
    return {**shown, "open": True, "led": [*led], "document": row.document, "alone": freed.alone, "frees": freed.data}


async def rendered_prompts(host: Host, questions: Iterable[Question]) -> dict[str, str | None]:
    """Return the HTML of each prompt; None for one that is plain, or would not be whole."""
    rendered = await host.render([("question", question.prompt) for question in questions])
    return {prompt: html for (_, prompt), html in rendered.items()}


class AnswerQuestion(OfStep, frozen=True, kw_only=True):
    value: Text
    hash: Name
    drive: bool = True


@operation("Answer a question and continue its run.", AnswerQuestion, shape(run=Name, path=Name, driven_here=bool))
async def answer_question(host: Host, given: AnswerQuestion) -> Value:
    run = await host.runtime.find(given.run)
    await _store_answer(host, run, given.path, given.hash, given.value)
    await _go_on(host, run, drive=given.drive)
    return {"run": run, "path": given.path, "driven_here": host.drives(run)}


class OneAnswer(Input, frozen=True, kw_only=True):
    run: Name
    path: Name
    hash: Name
    value: Text


class AnswerQuestions(Input, frozen=True, kw_only=True):
    answers: Annotated[tuple[OneAnswer, ...], Meta(max_length=500)]
    drive: bool = True


@operation(
    "Answer several questions and continue their runs. Each answer succeeds or fails alone.",
    AnswerQuestions,
    needs("items", "answered"),
)
async def answer_questions(host: Host, given: AnswerQuestions) -> Value:
    """Answer several questions. Each is answered or not by itself; their runs continue afterwards."""
    results: list[Value] = []
    answered = 0
    runs: dict[str, None] = {}
    for answer in given.answers:
        result: dict[str, Value] = {"run": answer.run, "path": answer.path}
        try:
            run = await host.runtime.find(answer.run)
            await _store_answer(host, run, answer.path, answer.hash, answer.value)
            runs[run] = None
            answered += 1
            results.append({**result, "answered": True})
        except (Problem, QuireError) as error:
            problem = problem_of(error)
            data: dict[str, Value] = {"code": problem.code, "detail": problem.detail, **problem.more}
            results.append({**result, "answered": False, "problem": data})
    for run in runs:
        await _go_on(host, run, drive=given.drive)
    return {"items": results, "answered": answered}


async def _store_answer(host: Host, run: str, path: str, hash: str, value: str) -> None:
    """Store an answer. Raises `Problem` if the question is answered, worded differently, or does not take it."""
    question = next((question for question in await host.runtime.store.questions(run) if question.path == path), None)
    if question is None:
        raise await _not_open(host, run, path)
    if hash != question.hash:
        raise Problem.of("question-changed", f"the question at {path} is worded differently now")
    is_strict = question.kind == "confirm" and host.runtime.settings.serve.different_approver
    if is_strict and (await host.runtime.row(run)).pins.get("source", "") == host.caller.source:
        raise Problem.of("same-user", f"you started run {run}: another user answers {path}, or `quire answer`")
    try:
        await host.runtime.answer(run, path, value, by=one_name(host.caller.by), person=host.caller.person)
    except BadInputs as error:
        raise Problem.of("unfit-answer", "; ".join(error.problems)) from None
    except RunState:
        raise await _not_open(host, run, path) from None


async def _go_on(host: Host, run: str, *, drive: bool) -> None:
    """Drive the run of an answered question, unless the client does not want that or another process drives it."""
    host.touch(run)
    row = await host.runtime.row(run)
    if drive and row.status is Status.AWAITING_INPUT and not host.drives(run):
        with contextlib.suppress(RunBusy):  # then its driver takes the answer
            await host.go_on(run)


async def _not_open(host: Host, run: str, path: str) -> Problem:
    """Return the problem about a question that is not open: its answer and author if it has one."""
    answer = await _answer_of(host, run, path)
    if answer is None:
        row = await host.runtime.row(run)
        return Problem.of("no-such-question", f"run {run} asks nothing at {path} (it is {row.status.words})")
    given = given_answer(answer)
    return Problem.of(
        "already-answered", f"answered {given['value']} {given['words']}", exit_code=4, more={"answer": given}
    )


async def _answer_of(host: Host, run: str, path: str) -> EffectRecord | Answer | None:
    for waiting in await host.runtime.store.answers(run):
        if waiting.path == path:
            return waiting
    for record in await host.runtime.store.effects(run):
        if record.path == path and record.kind == "ask" and record.state == "ok":
            return record
    return None
