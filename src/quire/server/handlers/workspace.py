"""The workspace itself: version and links, the API's own description, tasks that need the user now, health and trust,
webhooks of the user's settings. Addresses of webhooks are in the settings."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import time
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from starlette.responses import HTMLResponse

from quire import __version__
from quire.display.document_json import document_row
from quire.display.inbox_json import differing_inputs, group_of, letter_data
from quire.display.workspace_json import models_data, running_data, stopped_data, trust_data
from quire.engine.records import Status
from quire.errors import QuireError
from quire.operations.field_types import (
    File,
    Input,
    Limit,
    Name,
    Names,
    Object,
    Seq,
    Text,
    needs,
    operation,
    page_of,
    shape,
    words,
)
from quire.operations.gates import freed_by
from quire.operations.problems import Problem
from quire.operations.questions import listed, rows_of
from quire.operations.run_list import error_of, group_data, own_labels
from quire.operations.run_list import listed as listed_runs
from quire.runs.doctor import examine, examine_triggers
from quire.stores.contract import MOST_QUESTIONS
from quire.stores.run_pages import RunFilters
from quire.telemetry.metrics import MEDIA
from quire.versions import versions
from quire.workspace.configuration import load_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from starlette.responses import Response

    from quire.engine.ports import Store
    from quire.engine.records import Question, RunRow
    from quire.operations.host import Host
    from quire.server.routes import RequestHost
    from quire.server.site import Site
    from quire.server.webhooks import Webhooks
    from quire.values import Value

SECONDS_FOR_CLUSTER = 2.0
WORKSPACE = shape(version=Name, workspace=Name, folder=Name, formats=Names, features=Object, links=Object)
LETTER = shape(run=Any, recipient=Any, text=Any, at=Any)
FINDING = shape(what=Name, state=Annotated[str, words("ok", "missing", "problem")], detail=Text)
WEBHOOK = shape(name=Name, host=Any, events=Any, waiting=Seq, arrived=Seq, lost=Seq)
DAY = 86_400.0
MOST_GROUPS = 20
MOST_OF_GROUP = 20
MOST_STOPPED = 20
MOST_RUNNING = 50
MOST_FAILED = 500
"""Failed runs among which the new ones are looked for."""
FINISHED = 8
LETTERS = 5
SUGGESTED = 3


@operation("Version, workspace, features and links.", Input, WORKSPACE)
async def root(host: RequestHost, given: Input) -> Value:
    site = host.site
    base = f"{site.options.base}/api/v1"
    return {
        "version": __version__,
        "role": host.access.role,
        "workspace": site.folder.name,
        "folder": str(site.folder),
        "formats": ["playbook", "directive", "pipeline"],
        "features": {"edit": host.caller.edits, "allow": [*site.options.allow], "webhooks": site.webhooks is not None},
        "links": {name: f"{base}/{name}" for name in ("documents", "runs", "questions", "openapi.json")},
    }


@operation("This description of the API.", Input, shape(openapi=Name, info=Object, paths=Object, components=Object))
async def openapi(host: RequestHost, given: Input) -> Value:
    from quire.server.endpoints import describe
    from quire.server.routes import ENDPOINTS

    return describe(ENDPOINTS, host.site.options.base)


@operation("The page of the API, for people.", Input, None)
async def docs(host: RequestHost, given: Input) -> Response:
    from quire.server.endpoints import api_page
    from quire.server.routes import ENDPOINTS

    return HTMLResponse(api_page(ENDPOINTS, host.site.options.base))


@operation(
    "Questions in groups, stopped and failed runs, those that are running and those that have just ended.",
    Input,
    needs("questions", "stopped", "failed", "running", "finished", "letters"),
)
async def now(host: RequestHost, given: Input) -> Value:
    site, at = host.site, time.time()
    store = site.runtime.store
    questions, total = await store.oldest_questions(MOST_QUESTIONS)
    stopped = [row for status in (Status.PAUSED, Status.INTERRUPTED) for row in await _list(store, status)]
    stopped = sorted(stopped, key=lambda row: -row.updated_at)
    rows = await _list(store, Status.FAILED, MOST_FAILED)
    failed = [row for row in rows if row.updated_at > max(at - DAY, row.seen_at or 0)]  # lately, and not seen since
    running = await _list(store, Status.RUNNING)
    finished = await _list(store, Status.COMPLETED, FINISHED)
    quiet = not questions and not running
    documents = await asyncio.to_thread(site.shelf.all) if quiet else []
    return {
        "questions": {"groups": await _groups(host, questions), "total": total},
        "stopped": [stopped_data(row) for row in stopped[:MOST_STOPPED]],
        "stopped_more": max(0, len(stopped) - MOST_STOPPED),
        "failed": _failures(failed),
        "running": [await _running(host, row) for row in running],
        "finished": await listed_runs(host, finished),
        "letters": await _letters(site, LETTERS),
        "suggested": [
            document_row(document, None) for document in documents if document.document and not document.errors
        ][:SUGGESTED],
        "documents": len(documents) if quiet else None,
    }


@operation("Metrics of the store and of this process, for Prometheus.", Input, None)
async def metrics(host: RequestHost, given: Input) -> File:
    return File((await host.site.metrics.text()).encode(errors="replace"), MEDIA)


def _failures(rows: Iterable[RunRow]) -> list[Value]:
    """Return failed runs, those of one document with the same error together."""
    groups: dict[tuple[str, ...], list[RunRow]] = {}
    for row in rows:
        groups.setdefault((row.document, *error_of(row)), []).append(row)
    return [group_data(key, group, stopped_data(group[0])) for key, group in groups.items()]


async def _list(store: Store, status: Status, limit: int = MOST_RUNNING) -> Sequence[RunRow]:
    """Return the newest runs of a status without tries."""
    return (await store.page(RunFilters((status,)), limit=limit)).rows


async def _groups(host: Host, questions: Sequence[Question]) -> list[Value]:
    """Return the questions, those that are alike together, in the order of their oldest."""
    rows = await rows_of(host, questions)
    groups: dict[str, list[Question]] = {}
    for question in questions:
        groups.setdefault(group_of(question, rows.get(question.run)), []).append(question)
    items: list[Value] = []
    for key, group in [*groups.items()][:MOST_GROUPS]:
        first, shown = group[0], group[:MOST_OF_GROUP]
        row = rows.get(first.run)
        asking = dict.fromkeys(question.run for question in shown)
        differing = differing_inputs([rows[run] for run in asking if run in rows])
        freed = await freed_by(host, row, first)
        asks: list[Value] = [
            {**ask, "differing": differing.get(question.run, "")}
            for question, ask in zip(shown, await listed(host, shown, questions, rows), strict=True)
        ]
        items.append(
            {
                "key": key,
                "run": first.run,
                "title": row.title if row else "",
                "document": row.document if row else "",
                "way": first.way,
                "fan": len(group) > 1 and len({question.run for question in group}) == 1,
                "same": len({question.prompt for question in group}) == 1,
                "count": len(group),
                "alone": freed.alone,
                "frees": freed.data,
                "items": asks,
            }
        )
    return items


async def _running(host: Host, row: RunRow) -> Value:
    """Return a run under way. Only a run that is driven here has its progress at hand; none is replayed for a list."""
    progress = None
    with contextlib.suppress(QuireError):  # A run of another version is shown from its row.
        progress = (await host.views.head(row.id)).view.progress if host.drives(row.id) else None
    return running_data(row, progress, await own_labels(host, row))


class ListLetters(Input, frozen=True, kw_only=True):
    limit: Limit = 100


@operation("Notices of launched runs that have ended, the newest first.", ListLetters, page_of(LETTER))
async def list_letters(host: RequestHost, given: ListLetters) -> Value:
    return {"items": await _letters(host.site, given.limit), "next": None}


async def _letters(site: Site, most: int) -> list[Value]:
    letters = await site.runtime.store.letters()
    return [letter_data(letter) for letter in reversed(letters[-most:])]


@operation("The checks of this machine, as `quire doctor --json` prints them.", Input, page_of(FINDING))
async def doctor(host: Host, given: Input) -> Value:
    workspace, environ = host.runtime.settings.workspace, host.runtime.environ
    findings = await asyncio.to_thread(lambda: list(examine(workspace, environ)))
    findings += await examine_triggers(host.runtime) if host.runtime.settings.triggers else []
    return {"items": [finding.data() for finding in findings], "next": None, "command": "quire doctor"}


@operation(
    "The server, its store, its cluster, and the last lines that it has printed.",
    Input,
    needs("version", "store", "driving", "log"),
)
async def health(host: RequestHost, given: Input) -> Value:
    site, settings = host.site, host.runtime.settings
    return {
        "version": __version__,
        "versions": versions(),
        "python": platform.python_version(),
        "process": os.getpid(),
        "folder": str(site.folder),
        "started_at": site.started_at,
        "listeners": site.hub.listeners,
        "driving": len(site.runs),
        "store": await _store(site),
        "cluster": await _cluster(site) if settings.cluster.temporal else None,
        "log": [{"at": at, "text": text} for at, text in site.log],
    }


async def _store(site: Site) -> dict[str, Value]:
    """Return the state of the store, and the time that a small question to it takes."""
    store, settings = site.runtime.store, site.runtime.settings
    scheme, separator, _ = (settings.store_url or "").partition("://")
    data: dict[str, Value] = {
        "kind": scheme if separator else "sqlite",
        "place": str(getattr(store, "place", "")),
        "durability": settings.runs.durability,
    }
    began = time.monotonic()
    try:
        marks = await store.marks()
        data |= {"runs": marks.runs, "questions": marks.questions, "seconds": round(time.monotonic() - began, 4)}
    except QuireError as error:
        data["problem"] = str(error)
    return data


async def _cluster(site: Site) -> dict[str, Value]:
    from quire.cluster.client import connect

    where = site.runtime.settings.cluster
    data: dict[str, Value] = {"temporal": where.temporal, "namespace": where.namespace, "task_queue": where.task_queue}
    try:
        await connect(where, SECONDS_FOR_CLUSTER)
        data["workers"] = [
            {
                "identity": f"quire {process.pid}@{process.host}",
                "seen_at": process.seen_at,
                "state": process.state,
                "reason": process.reason or None,
            }
            for process in await site.runtime.store.processes()
            if process.queue == where.task_queue and process.is_recent(time.time())
        ]
    except QuireError as error:
        data["problem"] = str(error)
    return data


@operation(
    "The model that a run would use, the models of the settings, and those on this machine.",
    Input,
    needs("default", "tiers", "providers", "local"),
)
async def list_models(host: Host, given: Input) -> Value:
    return await asyncio.to_thread(models_data, host.runtime)


@operation(
    "Keys, signatures, and what the workspace asks for, with the commands that change it.",
    Input,
    needs("trusted", "requests", "keys", "own", "signatures"),
)
async def show_trust(host: Host, given: Input) -> Value:
    """Answer with the trust as it is now: the settings are read again, because the user may have agreed meanwhile."""
    settings = load_settings(host.runtime.settings.workspace, host.runtime.environ)
    documents = await asyncio.to_thread(host.shelf.all)
    return await asyncio.to_thread(trust_data, settings, documents)


class OfWebhook(Input, frozen=True, kw_only=True):
    name: str


@operation("The webhooks of the user's settings, with what waits and what has arrived.", Input, page_of(WEBHOOK))
async def list_webhooks(host: RequestHost, given: Input) -> Value:
    hooks = _on(host.site)
    return {"items": [await _webhook(hooks, name) for name in hooks.hooks], "next": None}


@operation("Send a message of the type `test` to one webhook.", OfWebhook, WEBHOOK)
async def test_webhook(host: RequestHost, given: OfWebhook) -> Value:
    hooks, name = _named(host.site, given.name)
    await asyncio.to_thread(hooks.test, name)
    await hooks.send_due()
    return await _webhook(hooks, name)


@operation("Drop the messages to one webhook that have not arrived yet.", OfWebhook, WEBHOOK)
async def drop_messages(host: RequestHost, given: OfWebhook) -> Value:
    hooks, name = _named(host.site, given.name)
    dropped = await asyncio.to_thread(hooks.outbox.drop, name)
    return {**await _webhook(hooks, name), "dropped": dropped}


def _on(site: Site) -> Webhooks:
    if site.webhooks is None:
        raise Problem.of("webhooks-off", "this server sends no webhooks")
    return site.webhooks


def _named(site: Site, name: str) -> tuple[Webhooks, str]:
    hooks = _on(site)
    if name not in hooks.hooks:
        raise Problem.of("no-such-webhook", f"unknown webhook {name}")
    return hooks, name


async def _webhook(hooks: Webhooks, name: str) -> dict[str, Value]:
    """Return one webhook. Of its address only the host is told: some receivers put a secret into the path."""
    hook = hooks.hooks[name]
    waiting, arrived, lost, at, error = await asyncio.to_thread(hooks.outbox.state, name)
    return {
        "name": name,
        "host": urlsplit(hook.url).hostname,
        "events": list(hook.events),
        "include": list(hook.include),
        "waiting": waiting,
        "arrived": arrived,
        "lost": lost,
        "last_try_at": at,
        "last_error": error or None,
    }
