"""Search, and the gallery of artifacts: both read the index of runs."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, field

from quire.display.document_json import document_row
from quire.display.run_json import name_data, row_data
from quire.display.visible import visible
from quire.library.check import all_codes
from quire.operations.field_types import After, Input, Limit, Name, Seq, Text, needs, operation, page_of, shape, words
from quire.operations.problems import Problem
from quire.plan.descriptions import step_name
from quire.stores.run_pages import RunFilters, words_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from quire.engine.records import RunRow
    from quire.library.document_state import DocumentState
    from quire.server.routes import RequestHost
    from quire.server.run_index import Artifact, Hit
    from quire.server.site import Site
    from quire.values import Value

PLACES = ("documents", "steps", "runs", "codes", "texts")
ARTIFACT = shape(run=Name, title=Any, document=Any, type=Text, size=Seq, head=Text, at=float)
MOST_ALIKE = 5
"""Number of texts that are looked at for each that is returned, because runs of one document often hold the same."""
_CURSOR = re.compile(r"(\d[\d.e+-]{0,30})_(\S{1,100})", re.ASCII)


class Search(Input, frozen=True, kw_only=True):
    q: Annotated[str, Meta(max_length=400, description="Plain words; the last one may be unfinished.")] = ""
    places: Annotated[tuple[Annotated[str, words(*PLACES)], ...], Meta(description="Only look there.")] = field(
        name="in", default=()
    )
    limit: Limit = 10


@operation(
    "Documents, steps, runs, codes, and texts of runs that hold all words.", Search, needs("q", "found", "indexed")
)
async def search(host: RequestHost, given: Search) -> Value:
    site, limit = host.site, given.limit
    looked_for = tuple(word.lower() for word in words_of(given.q))
    places = given.places or PLACES
    hits: dict[str, Value] = {}
    if not looked_for:
        return {"q": given.q, "found": hits, "indexed": _indexed(site)}
    shelved = await asyncio.to_thread(site.shelf.all) if {"documents", "steps"} & set(places) else []
    if "documents" in places:
        documents = [document_row(state, None) for state in shelved if _holds(_title(state), looked_for)]
        hits["documents"] = [*documents[:limit]]
    if "steps" in places:
        hits["steps"] = _steps(shelved, looked_for, limit)
    if "runs" in places:
        page = await site.runtime.store.page(RunFilters(words=looked_for), limit=limit)
        hits["runs"] = [row_data(row) for row in page.rows]
    if "codes" in places:
        codes = [code for code in all_codes() if _holds(f"{code.id} {code.name}", looked_for)]
        hits["codes"] = [
            {
                "id": code.id,
                "name": code.name,
                "explanation": code.explanation,
                "severity": code.severity.value,
                "command": f"quire check --explain {code.id}",
            }
            for code in codes[:limit]
        ]
    if "texts" in places:
        hits["texts"] = await _texts(site, given.q, limit)
    return {"q": given.q, "found": hits, "indexed": _indexed(site)}


def _title(state: DocumentState) -> str:
    plan = state.document.plan if state.document else None
    return f"{state.id} {plan.title} {plan.description}" if plan else state.id


def _holds(text: str, words: Sequence[str]) -> bool:
    text = text.lower()
    return all(word in text for word in words)


def _steps(shelved: Sequence[DocumentState], words: Sequence[str], limit: int) -> list[Value]:
    steps: list[Value] = []
    for state in shelved:
        plan = state.document.plan if state.document else None
        for path, step in plan.steps() if plan else ():
            if _holds(f"{step.label} {step_name(step)}", words):
                steps.append({"document": state.id, "path": path, "label": step.label, "title": step_name(step)})
            if len(steps) == limit:
                return steps
    return steps


async def _texts(site: Site, text: str, limit: int) -> list[Value]:
    """Return the texts of runs that hold the words, each once with the runs that hold the same. Runs that were removed
    meanwhile are left out."""
    await site.indexer.ready()
    try:
        hits, _ = await asyncio.to_thread(site.indexer.index.find, text, MOST_ALIKE * limit)
    except sqlite3.Error:
        return []
    alike: dict[tuple[str, tuple[str, ...]], list[Hit]] = {}
    for hit in hits:
        alike.setdefault((hit.kind, hit.parts), []).append(hit)
    rows = await _rows(site, {hit.run for hit in hits})
    texts: list[Value] = []
    for group in alike.values():
        there = [(hit, row) for hit in group if (row := rows.get(hit.run)) is not None]
        if there:
            hit, row = there[0]
            others: list[Value] = [*dict.fromkeys(other.run for other, _ in there if other.run != hit.run)]
            parts: list[Value] = [{"text": text, "found": at % 2 == 1} for at, text in enumerate(hit.parts) if text]
            place = {"run": hit.run, "path": hit.path, "kind": hit.kind, "parts": parts}
            texts.append({**place, **name_data(row), "status": str(row.status), "also": others})
    return texts[:limit]


async def _rows(site: Site, runs: Collection[str]) -> dict[str, RunRow]:
    """Return runs of the index; those that no longer exist are removed from it."""
    rows = {row.id: row for row in await site.runtime.store.named(list(runs))}
    for run in set(runs) - rows.keys():
        await site.indexer.forget(run)
    return rows


def _indexed(site: Site) -> Value:
    return {"runs": site.indexer.runs, "whole": site.indexer.whole, "problem": site.indexer.problem or None}


class ListArtifacts(Input, frozen=True, kw_only=True):
    type: Annotated[str, Meta(max_length=100, description="Only artifacts of this type.")] = ""
    document: Annotated[Name, Meta(description="Only artifacts of this document.")] = ""
    after: After = ""
    limit: Limit = 24


@operation(
    "Artifacts of completed runs, the newest first, from the index of the newest 5,000 runs.",
    ListArtifacts,
    page_of(ARTIFACT),
)
async def list_artifacts(host: RequestHost, given: ListArtifacts) -> Value:
    site, after, limit = host.site, given.after, given.limit
    await site.indexer.ready()
    place = _CURSOR.fullmatch(after) if after else None
    if after and place is None:
        raise Problem.of("unfit-parameters", f"{after!r} is not a place in the list")
    index = site.indexer.index
    try:
        rows = await asyncio.to_thread(
            lambda: index.artifacts(
                type=given.type,
                document=given.document,
                before=(float(place[1]), place[2]) if place else None,
                limit=limit + 1,
            )
        )
        types, documents = await asyncio.to_thread(index.artifact_counts)
    except sqlite3.Error:
        rows, types, documents = [], {}, {}
    runs = await _rows(site, [row.run for row in rows[:limit]])
    artifacts = [row for row in rows[:limit] if row.run in runs]
    texts = [("markdown", artifact.head) for artifact in artifacts if artifact.type in ("markdown", "text")]
    rendered = await site.renderer.render(texts)
    items: list[Value] = [
        {
            **_artifact(artifact, documents, rendered.get(("markdown", artifact.head))),
            "subject": visible(runs[artifact.run].label),
        }
        for artifact in artifacts
    ]
    last = rows[limit - 1] if len(rows) > limit else None
    return {
        "items": items,
        "next": f"{last.at!r}_{last.run}" if last else None,
        "types": types,
        "documents": documents,
        "indexed": _indexed(site),
    }


def _artifact(artifact: Artifact, documents: dict[str, int], html: str | None) -> dict[str, Value]:
    return {
        "run": artifact.run,
        "title": artifact.title,
        "document": artifact.document,
        "type": artifact.type,
        "size": artifact.size,
        "head": artifact.head,
        "html": html if artifact.type in ("markdown", "text") else None,
        "at": artifact.at,
        "versions": documents.get(artifact.document, 1),
    }
