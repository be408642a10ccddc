"""Handlers for the parts of one run: steps, effects, values, prompts, the transcript, the document and the artifact."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.responses import Response

from quire.display.run_json import step_data
from quire.display.step_json import brief_data, columns_data, effect_data, step_detail, values_data
from quire.display.transcript import prompt_data, transcript_data
from quire.display.why import why_data
from quire.errors import RunState
from quire.plan.vocabulary import EXTENSIONS
from quire.runs.transcript import transcripts
from quire.runs.why import Why, why_at
from quire.server.endpoints import Call, Reply
from quire.server.pinned_file import pinned_file
from quire.server.problems import Problem
from quire.stores.journal_pages import EffectBrief, JournalPages, Paged

if TYPE_CHECKING:
    from quire.runs.live_views import SeenView
    from quire.runs.view import RunView
    from quire.server.site import Site
    from quire.values import Value

LARGE, SHOWN_OF_LARGE = 2_000_000, 200_000
"""An artifact with more characters is shown only in part."""
LONGEST_RENDERED = 100_000
"""Replies up to so many characters come with their HTML."""


async def _seen(site: Site, call: Call) -> SeenView:
    return await site.views.of(await site.runtime.find(call.path["run"]))


async def list_steps(site: Site, call: Call) -> Reply:
    seen = await site.views.head(await site.runtime.find(call.path["run"]))
    parent, after, limit = call.text("parent"), call.text("after"), call.number("limit", 100)
    steps = seen.view.progress.steps
    above = {path: _parent(path, steps) for path in steps}
    below = [path for path, one in above.items() if one == parent]
    if after:
        below = below[below.index(after) + 1 :] if after in below else []
    counts: dict[str, int] = {}
    for one in above.values():
        counts[one] = counts.get(one, 0) + 1
    items: list[Value] = [
        {**step_data(steps[path], output=False), "children": counts.get(path, 0)} for path in below[:limit]
    ]
    return Reply({"items": items, "next": below[limit - 1] if len(below) > limit else None})


def _parent(path: str, steps: Collection[str]) -> str:
    while path := path.rpartition("/")[0]:
        if path in steps:
            return path
    return ""


async def show_step(site: Site, call: Call) -> Reply:
    seen = await _seen(site, call)
    after = call.number("after", 0)
    detail = step_detail(seen.view, _explained(seen.view, call.path["path"]), after=after)
    await _render_replies(site, detail)
    return Reply(detail)


def _explained(view: RunView, path: str) -> Why:
    try:
        return why_at(view, path)
    except RunState as error:
        planned = {at for at, _ in view.document.runnable().steps()}
        problem = Problem.of("no-such-step", str(error))
        raise (error if path in planned else problem) from None


async def _render_replies(site: Site, detail: dict[str, Value]) -> None:
    """Add the HTML of the output and of each reply of a model."""
    texts: list[tuple[dict[str, Value], str, str]] = []
    output = detail.get("output")
    if isinstance(output, str) and not detail.get("output_cut"):
        texts.append((detail, "output_html", output))
    for effect in detail["effects"]:  # type: ignore[union-attr]
        reply = effect.get("answer_value") if isinstance(effect, dict) and effect["kind"] == "model" else None
        text = reply.get("text") if isinstance(reply, dict) else None
        if isinstance(text, str):
            texts.append((effect, "html", text))  # type: ignore[arg-type]
    texts = [row for row in texts if len(row[2]) <= LONGEST_RENDERED]
    rendered = await site.renderer.render(("markdown", text) for _, _, text in texts)
    for place, name, text in texts:
        place[name] = rendered["markdown", text]


def _journal(site: Site) -> JournalPages:
    store = site.runtime.store
    if not isinstance(store, Paged):
        raise Problem.of("store", "this store cannot read parts of a journal")
    return store.journal()


async def list_effects(site: Site, call: Call) -> Reply:
    run = await site.runtime.find(call.path["run"])
    found = await _journal(site).effects(run)
    kinds, states, under = call.texts("kind"), call.texts("state"), call.text("under")
    fitting = [(at, one) for at, one in enumerate(found) if _fits(one, kinds, states, under)]
    limit = call.number("limit", 500)
    if "before" in call.query:
        earlier = [one for one in fitting if one[0] < call.number("before", 0)]
        page, more = earlier[-limit:], len(earlier) > limit
        following = str(page[0][0]) if more else None
    else:
        later = [one for one in fitting if one[0] >= call.number("after", 0)]
        page, more = later[:limit], len(later) > limit
        following = str(page[-1][0] + 1) if more else None
    first = page[0][0] if page else 0
    data: dict[str, Value] = {"next": following, "total": len(found), "first": first}
    if call.flag("columns"):
        columns: dict[str, Value] = {**columns_data(one for _, one in page)}
        return Reply({**data, "columns": columns})
    return Reply({**data, "items": [brief_data(one) for _, one in page]})


def _fits(brief: EffectBrief, kinds: Collection[str], states: Collection[str], under: str) -> bool:
    record = brief.record
    return (
        (not kinds or record.kind in kinds)
        and (not states or record.state in states)
        and (not under or record.path == under or record.path.startswith(f"{under}/"))
    )


async def show_effect(site: Site, call: Call) -> Reply:
    run = await site.runtime.find(call.path["run"])
    record = await _journal(site).effect(run, call.path["path"])
    if record is None:
        raise Problem.of("no-such-step", f"run {run} has recorded nothing at {call.path['path']}")
    return Reply(effect_data(record))


async def show_why(site: Site, call: Call) -> Reply:
    seen = await _seen(site, call)
    return Reply(why_data(_explained(seen.view, call.path["path"])))


async def show_prompt(site: Site, call: Call) -> Reply:
    from quire.runs.prompts import prompt_of_run

    seen = await _seen(site, call)
    found = prompt_of_run(seen.view, call.path["path"], site.runtime.settings)
    return Reply({**prompt_data(found.request), "notes": list(found.notes)})


async def show_transcript(site: Site, call: Call) -> Reply:
    seen = await _seen(site, call)
    found = transcripts(seen.view)
    if not found:
        raise RunState(f"run {seen.view.row.id} has no thread: a transcript is of directives")
    return Reply(transcript_data(seen.view, found))


async def show_values(site: Site, call: Call) -> Reply:
    return Reply(values_data((await _seen(site, call)).view))


async def show_state(site: Site, call: Call) -> Reply:
    view = (await _seen(site, call)).view
    if view.row.format != "playbook":
        raise RunState(f"run {view.row.id} is of a {view.row.format}: a state is of playbooks")
    return Reply(view.state())


async def show_pinned(site: Site, call: Call) -> Reply:
    view = (await _seen(site, call)).view
    file = pinned_file(site.folder, view.row)
    now = await asyncio.to_thread(file.text) if file else None
    pinned = view.document.source.text
    data: dict[str, Value] = {"id": file.id if file else None, "pinned": pinned, "now": now, "changed": now != pinned}
    return Reply(data)


RENDERED = {"markdown": "markdown", "text": "markdown", "javascript": "javascript", "typescript": "typescript"}
"""Types of artifacts that become HTML here, with the way that they are rendered."""


async def show_artifact(site: Site, call: Call) -> Reply | Response:
    view = (await _seen(site, call)).view
    if not view.replay.finished:
        raise Problem.of("no-artifact", f"run {view.row.id} is {view.row.status.words}: it has no artifact yet")
    text, kind, form = view.artifact, view.file_type or "text", call.text("as", "text")
    name = f"{view.row.id}{EXTENSIONS.get(kind, '.txt')}"
    if form == "download":
        disposition = f"attachment; filename=\"{name}\"; filename*=UTF-8''{quote(name)}"
        headers = {"Content-Disposition": disposition, "X-Content-Type-Options": "nosniff"}
        return Response(text.encode(), headers=headers, media_type="application/octet-stream")
    cut = len(text) > LARGE
    data: dict[str, Value] = {"type": kind, "size": len(text), "file": name, "cut": cut}
    if form == "html":
        if cut or kind not in RENDERED:  # the page draws other types itself, or in a frame
            return Reply({**data, "html": None})
        job = (RENDERED[kind], text)
        return Reply({**data, "html": (await site.renderer.render([job]))[job]})
    return Reply({**data, "text": text[:SHOWN_OF_LARGE] if cut else text})
