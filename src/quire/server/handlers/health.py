"""Handlers for health and trust: what the workspace has, lacks and asks for. All of it is read only."""

from __future__ import annotations

import asyncio
import os
import platform
import time
from typing import TYPE_CHECKING

from quire import __version__
from quire.display.models_json import models_data
from quire.display.trust_json import trust_data
from quire.errors import CannotStart, QuireError
from quire.runs.doctor import examine
from quire.server.endpoints import Call, Reply
from quire.stores.contract import Watchable
from quire.workspace.configuration import load_settings

if TYPE_CHECKING:
    from quire.server.site import Site
    from quire.values import Value

SECONDS_FOR_CLUSTER = 2.0


async def doctor(site: Site, call: Call) -> Reply:
    workspace, environ = site.runtime.settings.workspace, site.runtime.environ
    findings = await asyncio.to_thread(lambda: list(examine(workspace, environ)))
    return Reply({"items": [one.data() for one in findings], "next": None, "command": "quire doctor"})


async def health(site: Site, call: Call) -> Reply:
    settings = site.runtime.settings
    data: dict[str, Value] = {
        "version": __version__,
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
    return Reply(data)


async def _store(site: Site) -> dict[str, Value]:
    """Return the state of the store, and the time that a small question to it takes."""
    store, settings = site.runtime.store, site.runtime.settings
    place = getattr(store, "place", "")
    found: dict[str, Value] = {
        "kind": (settings.store_url or "").partition("://")[0] if "://" in (settings.store_url or "") else "sqlite",
        "place": str(place),
        "durability": settings.runs.durability,
    }
    began = time.monotonic()
    try:
        if isinstance(store, Watchable):
            marks = await store.marks()
            found |= {"runs": marks.runs, "questions": marks.questions}
        found["seconds"] = round(time.monotonic() - began, 4)
    except QuireError as error:
        found["problem"] = str(error)
    return found


async def _cluster(site: Site) -> dict[str, Value]:
    from quire.cluster.client import workers_of

    where = site.runtime.settings.cluster
    found: dict[str, Value] = {
        "temporal": where.temporal,
        "namespace": where.namespace,
        "task_queue": where.task_queue,
    }
    try:
        workers = await workers_of(where, SECONDS_FOR_CLUSTER)
        found["workers"] = [
            {
                "identity": worker.identity,
                "seen_at": worker.seen_at,
                "state": "unfit" if worker.unfit else "fit",
                "reason": worker.unfit or None,
            }
            for worker in workers
        ]
    except CannotStart as error:
        found["problem"] = str(error)
    return found


async def models(site: Site, call: Call) -> Reply:
    return Reply(await asyncio.to_thread(models_data, site.runtime))


async def trust(site: Site, call: Call) -> Reply:
    """Answer with the trust as it is now: the settings are read again, because the user may have agreed meanwhile."""
    settings = load_settings(site.runtime.settings.workspace, site.runtime.environ)
    documents = await asyncio.to_thread(site.shelf.all)
    return Reply(await asyncio.to_thread(trust_data, settings, documents))
