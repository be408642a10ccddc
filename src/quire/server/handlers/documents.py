"""Handlers for documents: list, show, check, preview and save."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from quire.display.diagnostics import finding_data
from quire.server.endpoints import Call, Reply
from quire.server.shelf import Shelved, checked
from quire.source import Source

if TYPE_CHECKING:
    from quire.server.site import Site
    from quire.values import Value


async def list_documents(site: Site, call: Call) -> Reply:
    wanted, folder, words = call.text("format"), call.text("folder"), call.text("q").lower().split()
    rows = []
    for one in await asyncio.to_thread(site.shelf.all):
        row = summary(one)
        text = f"{row['id']} {row['title']}".lower()
        if wanted and row["format"] != wanted:
            continue
        if folder and not one.id.startswith(folder.rstrip("/") + "/"):
            continue
        if all(word in text for word in words):
            rows.append(row)
    return Reply({"items": rows})


def summary(one: Shelved) -> dict[str, Value]:
    """Return a document as the list shows it."""
    plan = one.document.plan if one.document else None
    return {
        "id": one.id,
        "title": plan.title if plan else one.id.rpartition("/")[2],
        "format": one.document.format if one.document else None,
        "description": plan.description if plan else "",
        "errors": one.errors,
        "warnings": one.warnings,
        "error": one.error or None,
    }


async def check_text(site: Site, call: Call) -> Reply:
    text, path = str(call.body["text"]), str(call.body.get("path") or "unsaved.playbook.md")
    source = Source.of(text, str(site.folder / path))
    findings = await asyncio.to_thread(checked, source)
    return Reply({"diagnostics": [{**finding_data(source, one), "file": path} for one in findings]})
