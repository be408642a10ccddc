"""Handlers for documents: list, show, check, save and test; and for codes of findings."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from quire import formats
from quire.display.commands import check_command, shell_line, show_command
from quire.display.diagnostics import finding_data
from quire.display.document_json import (
    bounds_data,
    document_row,
    envelope_data,
    inputs_data,
    outlined,
    signature_data,
    steps_data,
)
from quire.display.flowchart_json import chart_data
from quire.display.outline import outline_data
from quire.display.source_lines import source_lines
from quire.errors import QuireError, StoreError
from quire.library.codes import all_codes
from quire.library.document import read
from quire.library.foresight import Foresight
from quire.runs.usage_seen import UsageSeen, usage_seen
from quire.server.document_edits import save
from quire.server.document_proof import proof_parts
from quire.server.endpoints import Call, Reply
from quire.server.problems import Problem
from quire.values import encode
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.engine.records import RunRow
    from quire.library.document import Document
    from quire.library.document_state import DocumentState
    from quire.server.site import Site
    from quire.source import Source
    from quire.values import Value

PAGE = 500
LATEST_RUNS = 1000
"""The last run of a document is looked for among so many runs."""
MOST_FOLDERS = 200
NOT_SEEN = UsageSeen()

FIELDS = (
    *("source", "outline", "inputs", "steps", "bounds", "envelope", "diagnostics", "chart", "signature"),
    *("proof", "gates", "flows", "lock"),
)


async def list_documents(site: Site, call: Call) -> Reply:
    states = await asyncio.to_thread(site.shelf.all)
    last = await _last_runs(site)
    fitting = [one for one in states if _fits(one, call)]
    after, limit = call.text("after"), call.number("limit", PAGE)
    rest = [one for one in fitting if one.id > after] if after else fitting
    page = rest[:limit]
    following = page[-1].id if len(rest) > limit else None
    return Reply(
        {
            "items": [document_row(one, last.get(one.id)) for one in page],
            "next": following,
            "total": len(fitting),
            "counts": _counts(states),
        }
    )


def _fits(one: DocumentState, call: Call) -> bool:
    wanted, folder, finding = call.text("format"), call.text("folder").strip("/"), call.text("finding")
    if wanted and one.format != wanted:
        return False
    if folder and not one.id.startswith(folder + "/"):
        return False
    if finding and finding != _finding(one):
        return False
    text = f"{one.id} {one.title}".lower()
    return all(word in text for word in call.text("q").lower().split())


def _finding(one: DocumentState) -> str:
    return "error" if one.errors else "warning" if one.warnings else "none"


def _counts(states: Sequence[DocumentState]) -> dict[str, Value]:
    """Return how many documents there are of each kind, for filters."""
    folders = Counter(one.id.rpartition("/")[0] for one in states if "/" in one.id)
    return {
        "all": len(states),
        "formats": dict(Counter(one.format for one in states if one.format)),
        "findings": dict(Counter(map(_finding, states))),
        "folders": dict(sorted(folders.items())[:MOST_FOLDERS]),
    }


async def _last_runs(site: Site) -> dict[str, RunRow]:
    """Return the newest run of each document; none while the store cannot be read, because documents are files."""
    found: dict[str, RunRow] = {}
    with contextlib.suppress(StoreError):
        for row in await site.runtime.store.list(limit=LATEST_RUNS):
            found.setdefault(site.shelf.id_of(row), row)
    return found


async def show_document(site: Site, call: Call) -> Reply:
    wanted = [name for name in call.text("fields").split(",") if name]
    for name in wanted:
        if name not in FIELDS:
            known = did_you_mean(nearest(name, FIELDS)) or f"there are {', '.join(FIELDS)}"
            raise Problem.of("unfit-parameters", f"fields: a document has no {name}", help=known)
    state = await asyncio.to_thread(site.shelf.one, call.path["id"])
    seen = await _seen(site, state) if "proof" in wanted else UsageSeen()
    data = await asyncio.to_thread(_shown, site, state, wanted, seen)
    tag = etag(state, data)
    if call.request.headers.get("if-none-match") == tag:
        return Reply(None, 304, {"ETag": tag})
    return Reply(data, 200, {"ETag": tag})


async def _seen(site: Site, state: DocumentState) -> UsageSeen:
    """Return the usage of earlier runs; none while the store cannot be read, because documents are files."""
    if state.document is None or state.document.plan is None:
        return UsageSeen()
    try:
        return await usage_seen(site.runtime.store, state.document, state.document.folder)
    except StoreError:
        return UsageSeen()


def etag(state: DocumentState, data: Mapping[str, Value]) -> str:
    """Return the tag of an answer. The part before the dot stands for the text alone, and is what saving compares."""
    text = state.source.sha256[:32] if state.source else "unread"
    return f'"{text}.{hashlib.sha256(encode(data).encode()).hexdigest()[:16]}"'


def _shown(site: Site, state: DocumentState, wanted: Sequence[str], seen: UsageSeen = NOT_SEEN) -> dict[str, Value]:
    document = state.document if state.document and state.document.plan else None
    id = state.id
    data: dict[str, Value] = {
        **document_row(state, None),
        "editable": site.options.edit and state.source is not None,
        "commands": {
            "check": check_command(id),
            "show": show_command(id),
            "sign": shell_line("sign", id),
        },
    }
    del data["last_run"]
    parts: Mapping[str, Callable[[], Value]] = {
        "source": lambda: _source(state),
        "diagnostics": lambda: [_finding_data(state.source, one, id) for one in state.findings] if state.source else [],
        "signature": lambda: signature_data(state.signature),
    }
    if document is not None:
        parts = {**parts, **_plan_parts(site, state, document), **proof_parts(site, state, document, seen)}
    problems: dict[str, Value] = {}
    for name in wanted:
        try:
            data[name] = parts[name]() if name in parts else None
        except QuireError as error:
            data[name], problems[name] = None, str(error)
    return {**data, "problems": problems} if problems else data


def _plan_parts(site: Site, state: DocumentState, document: Document) -> dict[str, Callable[[], Value]]:
    runtime = site.runtime
    plan, settings = document.runnable(), runtime.settings
    verdict = state.signature.verdict
    by = state.signature.by if plan.format == "directive" and verdict and verdict.ok else ""
    return {
        "outline": lambda: outlined(document, runtime.library, runtime.environ),
        "inputs": lambda: inputs_data(document),
        "steps": lambda: steps_data(plan),
        "bounds": lambda: bounds_data(state.bounds) if state.bounds else None,
        "envelope": lambda: envelope_data(
            Foresight(settings).envelope(plan, document.name), settings, site.options.allow, by
        ),
        "chart": lambda: chart_data(plan),
    }


def _source(state: DocumentState) -> Value:
    source = state.source
    if source is None:
        return None
    lines: list[Value] = [
        line if isinstance(line, str) else [list(piece) for piece in line]
        for line in source_lines(source, state.format)
    ]
    return {"text": source.text, "sha256": source.sha256, "lines": lines}


def _finding_data(source: Source, found: Diagnostic, id: str) -> dict[str, Value]:
    # People know a document by its path in the workspace; the library needs the path on disk.
    return finding_data(source, found, id)


async def save_document(site: Site, call: Call) -> Reply:
    id = call.path["id"]
    await asyncio.to_thread(save, site, id, str(call.body["text"]), call.request.headers.get("if-match", ""))
    state = await asyncio.to_thread(site.shelf.one, id)
    data = await asyncio.to_thread(_shown, site, state, ["source", "diagnostics"])
    return Reply(data, 200, {"ETag": etag(state, data)})


async def check_text(site: Site, call: Call) -> Reply:
    text, path = str(call.body["text"]), str(call.body.get("path") or "unsaved.playbook.md")
    return Reply(await asyncio.to_thread(_checked, site, text, path))


def _checked(site: Site, text: str, path: str) -> dict[str, Value]:
    source, findings = site.shelf.checked(text, path)
    format = formats.format_of(source)
    plan = None if format in ("knowledge", "test") else read(source).plan
    return {
        "format": format,
        "title": plan.title if plan else None,
        "diagnostics": [_finding_data(source, one, path) for one in findings],
        "outline": (outline_data(plan) if plan.format == "directive" else outlined(read(source))) if plan else None,
        "bounds": bounds_data(Foresight(site.runtime.settings).bounds(plan, path)) if plan else None,
    }


async def list_cases(site: Site, call: Call) -> Reply:
    state = await asyncio.to_thread(site.shelf.one, call.path["id"])
    return Reply(await asyncio.to_thread(site.tests.look, state))


async def run_cases(site: Site, call: Call) -> Reply:
    state = await asyncio.to_thread(site.shelf.one, call.path["id"])
    return Reply(await asyncio.to_thread(site.tests.run, state))


async def explain_code(site: Site, call: Call) -> Reply:
    id = call.path["code"].upper()
    codes = {code.id: code for code in all_codes()}
    if id not in codes:
        raise Problem.of("no-such-code", f"there is no code {id}", help=did_you_mean(nearest(id, codes)))
    code = codes[id]
    return Reply(
        {
            "id": code.id,
            "name": code.name,
            "severity": code.severity.value,
            "explanation": code.explanation,
            "command": shell_line("check", "--explain", code.id),
        }
    )
