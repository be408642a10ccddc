"""Endpoints: documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.server.endpoints import Endpoint, Parameter
from quire.server.handlers import documents, forecasts
from quire.server.proof_schemas import FLOWS, GATES, LOCK, PROOF_PARTS, RUN_PROOF
from quire.server.schemas import (
    DOCUMENT,
    FINDINGS,
    FLAG,
    MOST_ITEMS,
    NAME,
    RUN_OPTIONS,
    SEQ,
    TEXT,
    VALUES,
    page_of,
    record,
)

if TYPE_CHECKING:
    from quire.values import Value

_FIELDS = ", ".join(documents.FIELDS)
KIND = {"type": "string", "enum": ["playbook", "directive", "pipeline", "knowledge"]}
FINDING = {"type": "string", "enum": ["error", "warning", "none"]}

SHOWN: dict[str, Value] = {
    "type": "object",
    "properties": {"id": NAME, "title": TEXT, "errors": SEQ, "warnings": SEQ, **PROOF_PARTS},
    "required": ["id", "title", "errors", "warnings"],
}

CASES: dict[str, Value] = {
    "type": "object",
    "properties": {
        "file": {"type": ["string", "null"]},
        "cases": {"type": "array", "items": {"type": "object"}},
        "problems": {"type": "array", "items": {"type": "object"}},
        "coverage": {"type": ["object", "null"]},
        "at": {"type": ["number", "null"]},
        "old": FLAG,
        "make": {"type": ["string", "null"]},
    },
    "required": ["file", "cases", "problems", "coverage", "at", "old"],
}

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/documents",
        "list_documents",
        "The documents of the workspace with their findings, bounds, signatures and last runs, by path.",
        "FREE",
        documents.list_documents,
        parameters=(
            Parameter("format", KIND, "Only documents of this format."),
            Parameter("q", TEXT, "Words that title or path contain."),
            Parameter("folder", TEXT, "Only documents below this folder."),
            Parameter("finding", FINDING, "Only documents whose worst finding is this."),
            Parameter("after", TEXT, "The `next` of the page before."),
            MOST_ITEMS,
        ),
        response=page_of(DOCUMENT),
    ),
    Endpoint(
        "POST",
        "/documents/check",
        "check_text",
        "Check a text that need not be saved.",
        "FREE",
        documents.check_text,
        body=record(("text",), text=TEXT, path=NAME),
        response=FINDINGS,
    ),
    Endpoint(
        "GET",
        "/documents/{id:path}",
        "show_document",
        "One document. `fields` says which parts are wanted.",
        "FREE",
        documents.show_document,
        parameters=(Parameter("fields", TEXT, f"Parts with commas between them: {_FIELDS}."),),
        response=SHOWN,
    ),
    Endpoint(
        "PUT",
        "/documents/{id:path}",
        "save_document",
        "Save a text over the version that `If-Match` names. Only with `quire serve --edit`.",
        "WRITES",
        documents.save_document,
        body=record(("text",), text=TEXT),
        response=DOCUMENT,
    ),
    Endpoint(
        "POST",
        "/documents/{id:path}/preview",
        "preview_prompt",
        "The messages that a model would get at a step, with these inputs.",
        "FREE",
        forecasts.preview_prompt,
        body=record(inputs=VALUES, step=TEXT),
        response={
            "type": "object",
            "properties": {"prompt": {"type": "object"}, "notes": {"type": "array"}, "inputs": {"type": "object"}},
            "required": ["prompt", "notes", "inputs"],
        },
    ),
    Endpoint(
        "POST",
        "/documents/{id:path}/preflight",
        "preflight",
        "What a run would do at most, with which model and for how much, and what still stops it. Starts nothing.",
        "FREE",
        forecasts.preflight,
        body=record((), **RUN_OPTIONS, detach=FLAG),
        response={
            "type": "object",
            "properties": {
                "ready": FLAG,
                "line": {"type": ["string", "null"]},
                "bounds": {"type": "object"},
                "proof": RUN_PROOF,
                "gates": GATES,
                "flows": FLOWS,
                "lock": LOCK,
                "command": TEXT,
            },
            "required": ["ready", "bounds", "command"],
        },
    ),
    Endpoint(
        "GET",
        "/documents/{id:path}/tests",
        "list_cases",
        "The cases of a document's test file, with the results of their last run here.",
        "FREE",
        documents.list_cases,
        response=CASES,
    ),
    Endpoint(
        "POST",
        "/documents/{id:path}/tests",
        "run_cases",
        "Run the cases of a document, without a model: their results, and the coverage of its lines.",
        "FREE",
        documents.run_cases,
        body=record(),
        response=CASES,
    ),
    Endpoint(
        "GET",
        "/codes/{code}",
        "explain_code",
        "What a code of a finding means.",
        "FREE",
        documents.explain_code,
        response={"type": "object", "properties": {"id": NAME, "explanation": TEXT}, "required": ["id", "explanation"]},
    ),
)
