"""Handlers for webhooks: list them with what waits, send a test, and drop what waits. Addresses are in the settings."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from quire.server.endpoints import Call, Reply
from quire.server.problems import Problem

if TYPE_CHECKING:
    from quire.server.site import Site
    from quire.server.webhooks import Webhooks
    from quire.values import Value


async def list_webhooks(site: Site, call: Call) -> Reply:
    hooks = _on(site)
    return Reply({"items": [await _state(hooks, name) for name in hooks.hooks], "next": None})


async def test_webhook(site: Site, call: Call) -> Reply:
    hooks, name = _named(site, call)
    await asyncio.to_thread(hooks.test, name)
    await hooks.send_due()
    return Reply(await _state(hooks, name), 202)


async def drop_messages(site: Site, call: Call) -> Reply:
    hooks, name = _named(site, call)
    dropped = await asyncio.to_thread(hooks.outbox.drop, name)
    return Reply({**await _state(hooks, name), "dropped": dropped})


def _on(site: Site) -> Webhooks:
    if site.webhooks is None:
        raise Problem.of("webhooks-off", "this server sends no webhooks")
    return site.webhooks


def _named(site: Site, call: Call) -> tuple[Webhooks, str]:
    hooks, name = _on(site), call.path["name"]
    if name not in hooks.hooks:
        raise Problem.of("no-such-webhook", f"there is no webhook {name}")
    return hooks, name


async def _state(hooks: Webhooks, name: str) -> dict[str, Value]:
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
