"""Operations on the parts of one run: steps, effects, values, prompts, the transcript, its document and artifact."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

from msgspec import UNSET, Meta, UnsetType, field

from quire.display.run_parts_json import brief_data, columns_data, effect_data, step_detail, values_data
from quire.display.run_tree_json import MOST_ROWS, TreeRows
from quire.display.transcript import prompt_data, transcript_data
from quire.display.why import why_data
from quire.engine.records import Status
from quire.errors import RunState
from quire.operations.field_types import (
    After,
    File,
    Limit,
    Name,
    Object,
    OfRun,
    OfStep,
    Seq,
    Text,
    operation,
    shape,
    words,
)
from quire.operations.problems import Problem
from quire.operations.shelf import pinned_file
from quire.plan.vocabulary import EXTENSIONS
from quire.runs.transcript import transcripts
from quire.runs.why import Why, why_at
from quire.values import pretty

if TYPE_CHECKING:
    from quire.operations.host import Host
    from quire.runs.outcome import RunView
    from quire.stores.run_pages import EffectBrief
    from quire.values import Value

LARGE, SHOWN_OF_LARGE = 2_000_000, 200_000
"""An artifact with more characters is shown only in part."""
LONGEST_RENDERED = 100_000
"""Characters up to which a reply comes with its HTML."""


Tree = shape(rows=Object, start=float, end=float | None, now=float, partial=bool, etag=Name, next=str | None, total=Seq)
TextSlice = shape(
    path=Name,
    text=Text,
    html=str | None,
    after=Seq,
    next=int | None,
    total=Seq,
    kind=Annotated[str, words("text", "json")],
)


class ShowTree(OfRun, frozen=True, kw_only=True):
    under: Annotated[Text, Meta(description="Only the rows directly below this path, as a page.")] = ""
    state: Annotated[
        str,
        words("pending", "running", "waits", "done", "failed", "stopped", "skipped"),
        Meta(description="With `under`: only rows in this state."),
    ] = ""
    order: Annotated[str, words("document", "slowest", "first"), Meta(description="With `under`: the order.")] = (
        "document"
    )
    after: After = ""
    limit: Limit = 200


class ReadText(OfStep, frozen=True, kw_only=True):
    after: Annotated[Seq, Meta(description="The number of characters that are known already.")] = 0
    limit: Annotated[int, Meta(ge=1, le=1_000_000, description="The most characters to return.")] = 100_000


class ShowStep(OfStep, frozen=True, kw_only=True):
    after: Annotated[Seq, Meta(description="The number of effects that are known already.")] = 0


class ListEffects(OfRun, frozen=True, kw_only=True):
    after: Annotated[Seq, Meta(description="The number of the first effect to return.")] = 0
    before: Annotated[Seq, Meta(description="Return the last effects before this number.")] | UnsetType = UNSET
    columns: Annotated[bool, Meta(description="Return one list for each column.")] = False
    kind: Annotated[tuple[Name, ...], Meta(description="Only effects of this kind.")] = ()
    state: Annotated[
        tuple[Annotated[str, words("intent", "ok", "failed")], ...], Meta(description="Only effects in this state.")
    ] = ()
    under: Annotated[Name, Meta(description="Only effects at this path and below.")] = ""
    limit: Annotated[int, Meta(ge=1, le=20_000, description="The most effects to return.")] = 500


class ShowArtifact(OfRun, frozen=True, kw_only=True):
    form: Annotated[str, words("text", "html", "download"), Meta(description="How to return it.")] = field(
        name="as", default="text"
    )


async def _view(host: Host, given: OfRun) -> RunView:
    return (await host.views.of(await host.runtime.find(given.run))).view


@operation("One step, item or effect: prompts as sent, replies, calls, values and who wrote them.", ShowStep, Object)
async def show_step(host: Host, given: ShowStep) -> Value:
    view = await _view(host, given)
    detail = step_detail(view, _explained(view, given.path), after=given.after)
    await _render_replies(host, detail)
    return detail


@operation("The tree of a run: steps and effects as rows, with state, time and cost, in columns.", ShowTree, Tree)
async def show_tree(host: Host, given: ShowTree) -> Value:
    """Return the first rows of a run, opened towards what needs attention, or with `under` one page of the rows below
    another."""
    seen = await host.views.tree(await host.runtime.find(given.run))
    tag = f"{seen.tag}.{seen.partial:d}"
    if host.has(f'"{tag}"'):
        return None
    after = int(given.after) if given.after.isascii() and given.after.isdecimal() and len(given.after) < 10 else 0
    now = host.runtime.clock.now()
    elsewhere = seen.row.status is Status.RUNNING and not seen.driven
    rows = TreeRows(seen.tree, seen.row, now, elsewhere=elsewhere)
    page = (
        rows.page(given.under, given.state, given.order, after, given.limit) if given.under else rows.first(after=after)
    )
    if page is None:
        raise Problem.of("no-such-step", f"run {seen.row.id} has no row {given.under}")
    total, more = page
    return {
        "rows": {**rows.columns},
        "start": rows.start,
        "end": None if seen.row.status is Status.RUNNING else max(seen.tree.root.end, rows.start),
        "now": now,
        "partial": seen.partial,
        "etag": tag,
        "next": str(after + (given.limit if given.under else MOST_ROWS)) if more else None,
        "total": total,
    }


@operation("The text of a reply, a result or an output, in slices.", ReadText, TextSlice)
async def read_text(host: Host, given: ReadText) -> Value:
    """Return a slice of a text. A slice of prose ends at a paragraph, so that each can be rendered by itself."""
    run, path = await host.runtime.find(given.run), given.path
    first, text = host.written(run, path) or (0, None)
    text, kind = (text, "text") if text is not None else await _text_at(host, run, path)
    after = max(given.after, first)
    part = text[after - first : after - first + given.limit]
    end, total = after + len(part), first + len(text)
    if end < total and kind == "text" and (paragraph := part.rfind("\n\n")) > 0:
        part = part[: paragraph + 2]
        end = after + len(part)
    job = ("markdown", part)
    html = (await host.render([job]))[job] if kind == "text" and len(part) <= LONGEST_RENDERED else None
    data: dict[str, Value] = {"path": path, "text": part, "html": html, "after": after}
    return {**data, "next": end if end < total else None, "total": total, "kind": kind}


async def _text_at(host: Host, run: str, path: str) -> tuple[str, str]:
    """Return the text of an effect, of the output of a step, or of the last effect below a row; and its kind."""
    journal = host.runtime.store.journal()
    record = await journal.effect(run, path)
    if record is None:
        step = (await _view(host, OfRun(run=run))).progress.steps.get(path)
        if step is not None and step.output is not None:
            return step.output, "text"
        records = [record for _, record in (await host.views.tree(run)).tree.leaves.values()]
        below = [
            (record.ended_at, record.path)
            for record in records
            if record.path.startswith(f"{path}/") and record.kind in ("model", "tool")
        ]
        record = await journal.effect(run, max(below)[1]) if below else None
    if record is None:
        raise Problem.of("no-such-step", f"run {run} has no text at {path}")
    value = (
        record.value.get("text", "") if isinstance(record.value, Mapping) and record.kind == "model" else record.value
    )
    return (value, "text") if isinstance(value, str) else ("" if value is None else pretty(value), "json")


def _explained(view: RunView, path: str) -> Why:
    try:
        return why_at(view, path)
    except RunState as error:
        planned = {at for at, _ in view.document.runnable().steps()}
        problem = Problem.of("no-such-step", str(error))
        raise (error if path in planned else problem) from None


async def _render_replies(host: Host, detail: dict[str, Value]) -> None:
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
    rendered = await host.render(("markdown", text) for _, _, text in texts)
    for place, name, text in texts:
        place[name] = rendered["markdown", text]


@operation("The journal without values, as objects or as columns.", ListEffects, Object)
async def list_effects(host: Host, given: ListEffects) -> Value:
    run = await host.runtime.find(given.run)
    briefs = await host.runtime.store.journal().effects(run)
    fitting = [(at, brief) for at, brief in enumerate(briefs) if _fits(brief, given)]
    limit = given.limit
    if not isinstance(given.before, UnsetType):
        earlier = [(at, brief) for at, brief in fitting if at < given.before]
        page = earlier[-limit:]
        following = str(page[0][0]) if len(earlier) > limit else None
    else:
        later = [(at, brief) for at, brief in fitting if at >= given.after]
        page = later[:limit]
        following = str(page[-1][0] + 1) if len(later) > limit else None
    data: dict[str, Value] = {"next": following, "total": len(briefs), "first": page[0][0] if page else 0}
    if given.columns:
        return {**data, "columns": {**columns_data(brief for _, brief in page)}}
    return {**data, "items": [brief_data(brief) for _, brief in page]}


def _fits(brief: EffectBrief, given: ListEffects) -> bool:
    record, under = brief.record, given.under
    return (
        (not given.kind or record.kind in given.kind)
        and (not given.state or record.state in given.state)
        and (not under or record.path == under or record.path.startswith(f"{under}/"))
    )


@operation("One effect with its value.", OfStep, Object)
async def show_effect(host: Host, given: OfStep) -> Value:
    run = await host.runtime.find(given.run)
    record = await host.runtime.store.journal().effect(run, given.path)
    if record is None:
        raise Problem.of("no-such-step", f"run {run} has recorded nothing at {given.path}")
    return effect_data(record)


@operation("The values that a step read, and who wrote them.", OfStep, Object)
async def show_why(host: Host, given: OfStep) -> Value:
    return why_data(_explained(await _view(host, given), given.path))


@operation("The messages that the model of a step was sent, or would be sent.", OfStep, Object)
async def show_prompt(host: Host, given: OfStep) -> Value:
    from quire.runs.prompts import prompt_of_run

    preview = prompt_of_run(await _view(host, given), given.path, host.runtime.settings)
    return {**prompt_data(preview.request), "notes": list(preview.notes)}


@operation("The conversations of the threads of a run.", OfRun, Object)
async def show_transcript(host: Host, given: OfRun) -> Value:
    view = await _view(host, given)
    threads = transcripts(view)
    if not threads:
        raise RunState(f"run {view.row.id} has no thread: a transcript is of directives")
    return transcript_data(view, threads)


@operation("Inputs, named results and variables as they are now, and the steps that wrote them.", OfRun, Object)
async def show_values(host: Host, given: OfRun) -> Value:
    return values_data(await _view(host, given))


@operation("The state of a playbook's execution, as its specification has it.", OfRun, Object)
async def show_state(host: Host, given: OfRun) -> Value:
    view = await _view(host, given)
    if view.row.format != "playbook":
        raise RunState(f"run {view.row.id} is of a {view.row.format}: a state is of playbooks")
    return view.state()


@operation("The document as the run has it, and as its file is now.", OfRun, Object)
async def show_pinned(host: Host, given: OfRun) -> Value:
    view = await _view(host, given)
    file = pinned_file(host.folder, view.row)
    now = await asyncio.to_thread(file.text) if file else None
    pinned = view.document.source.text
    return {"id": file.id if file else None, "pinned": pinned, "now": now, "changed": now != pinned}


RENDERED = {"markdown": "markdown", "text": "markdown", "javascript": "javascript", "typescript": "typescript"}
"""Types of artifacts that become HTML here, with the way that they are rendered."""


@operation("The result of a completed run.", ShowArtifact, Object)
async def show_artifact(host: Host, given: ShowArtifact) -> Value | File:
    view = await _view(host, given)
    if not view.replay.finished:
        raise Problem.of("no-artifact", f"run {view.row.id} is {view.row.status.words}: it has no artifact yet")
    text, kind, form = view.artifact, view.file_type or "text", given.form
    name = f"{view.row.id}{EXTENSIONS.get(kind, '.txt')}"
    if form == "download":
        disposition = f"attachment; filename=\"{name}\"; filename*=UTF-8''{quote(name)}"
        headers = {"Content-Disposition": disposition, "X-Content-Type-Options": "nosniff"}
        return File(text.encode(), "application/octet-stream", headers)
    cut = len(text) > LARGE
    data: dict[str, Value] = {"type": kind, "size": len(text), "file": name, "cut": cut}
    if form == "html":
        if cut or kind not in RENDERED:  # the page draws other types itself, or in a frame
            return {**data, "html": None}
        job = (RENDERED[kind], text)
        return {**data, "html": (await host.render([job]))[job]}
    return {**data, "text": text[:SHOWN_OF_LARGE] if cut else text}
