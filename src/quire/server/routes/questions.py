"""Endpoints: questions of runs to people."""

from __future__ import annotations

from quire.server.endpoints import Endpoint, Parameter
from quire.server.handlers import questions
from quire.server.schemas import FLAG, MOST_ITEMS, NAME, QUESTION, TEXT, answer_of, page_of, record

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/questions",
        "list_questions",
        "The open questions, the oldest first.",
        "FREE",
        questions.list_questions,
        parameters=(
            Parameter("run", NAME, "Only questions of this run."),
            Parameter("after", NAME, "The `next` of the page before."),
            MOST_ITEMS,
        ),
        response=page_of(QUESTION),
    ),
    Endpoint(
        "GET",
        "/questions/{run}/{path:path}",
        "show_question",
        "One question: if it is open with the outputs that led to it, else with its answer.",
        "FREE",
        questions.show_question,
        response={
            "type": "object",
            "properties": {"run": NAME, "path": NAME, "open": FLAG, "prompt": TEXT, "hash": NAME},
            "required": ["run", "path", "open"],
        },
    ),
    Endpoint(
        "POST",
        "/questions/answers",
        "answer_questions",
        "Answer several questions, and go on with their runs. Each is answered or not by itself.",
        "PAID",
        questions.answer_questions,
        body=record(
            ("answers",),
            answers={
                "type": "array",
                "maxItems": 500,
                "items": record(("run", "path", "hash", "value"), run=NAME, path=NAME, hash=NAME, value=TEXT),
            },
            drive=FLAG,
        ),
        response={"type": "object", "required": ["items", "answered"]},
    ),
    Endpoint(
        "POST",
        "/questions/{run}/{path:path}/answer",
        "answer_question",
        "Answer a question, and go on with its run.",
        "PAID",
        questions.answer_question,
        body=record(("value", "hash"), value=TEXT, hash=NAME, drive=FLAG),
        response=answer_of(run=NAME, path=NAME, driven_here=FLAG),
    ),
)
