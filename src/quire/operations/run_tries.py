"""Operations that improve a document from its runs: try one model call again, and keep a run as a test case."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, field
from msgspec.structs import replace

from quire.display.shell_commands import shell_line
from quire.display.try_json import outcome_data, receipt_data
from quire.errors import NotTried, QuireError
from quire.formats.test.parse import parse
from quire.operations.document_cases import RUNNING
from quire.operations.field_types import Budget, Name, Object, OfRun, OfStep, Text, needs, operation
from quire.operations.problems import Problem
from quire.operations.shelf import pinned_file
from quire.runs.edited_document import document_in_place
from quire.runs.pins import PinnedState
from quire.runs.prompt_edit import prompt_text, with_prompt
from quire.runs.step_tries import TryChanges, make_tries, prepare_try
from quire.runs.why import origins, traced
from quire.runs.workspace_gate import document_writer
from quire.source import MAX_TEST_BYTES, Source, read_source
from quire.stores.run_pages import RunFilters
from quire.testing.discovery import bench_for, own_test
from quire.testing.drafts import added_text, case_text, file_text
from quire.testing.live.recorded_prompts import performer
from quire.testing.recorded_case import recorded_case
from quire.wording import free_name

if TYPE_CHECKING:
    from quire.operations.host import Host
    from quire.runs.step_tries import PreparedTry
    from quire.values import Value


class TryStep(OfStep, frozen=True, kw_only=True):
    prompt: Annotated[Text, Meta(description="The prompt in place of that of the document.")] | None = None
    set: Object = field(default_factory=dict)
    model: Name | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    n: Annotated[int, Meta(ge=1, le=1000)] = 1
    budget: Annotated[Budget, Meta(description="Never spend more than this on all tries.")] = UNSET
    dry_run: Annotated[bool, Meta(description="Only return the receipt.")] = False


@operation(
    "Ask the model of one step again, with another prompt, model or value, in runs that end after it.",
    TryStep,
    needs("receipt", "tries"),
)
async def try_step(host: Host, given: TryStep) -> Value:
    runtime, run = host.runtime, await host.runtime.find(given.run)
    budget = host.caller.budget if given.budget is UNSET else given.budget
    changes = TryChanges(
        sets=given.set,
        model=given.model,
        budget=None if budget is None else budget / given.n,
        unlimited=given.budget is None,
        prompt=given.prompt,
        temperature=given.temperature,
        door=host.caller.door,
        source=host.caller.source,
    )
    prepared = await prepare_try(runtime, run, given.path, changes)
    receipt = await _receipt(host, prepared, given)
    if given.dry_run:
        return {"receipt": receipt, "tries": await _tries(host, run, prepared.place.call)}
    runs = await make_tries(runtime, prepared, given.n)
    await asyncio.gather(*(host.begin(made, detach=False, goes_on=False) for made in runs))
    return {"receipt": receipt, "tries": await _tries(host, run, prepared.place.call, runs)}


async def _tries(host: Host, run: str, call: str, only: list[str] | None = None) -> list[Value]:
    """Return the tries of a call with their outcomes, in the order in which they were made."""
    store = host.runtime.store
    page = await store.page(RunFilters(origin=run, tries=True), None, 100)
    rows = [row for row in reversed(page.rows) if row.until and (only is None or row.id in only)]
    rows = [row for row in rows if PinnedState.of(row.pins).origin.get("path") == call]
    return [outcome_data(row, await store.effects(row.id), row.until or "") for row in rows]


async def _receipt(host: Host, prepared: PreparedTry, given: TryStep) -> dict[str, Value]:
    view, pins, runtime = prepared.view, prepared.pins, host.runtime
    prompt, why = "", ""
    try:
        prompt = prompt_text(view.document, prepared.place.step, view.pins.semantics_version)
    except NotTried as error:
        why = str(error)
    spec = pins.instead or pins.model
    model = runtime.models.open(spec, pins.settings_of(spec))
    most = performer(view, model, runtime.clock).estimate(replace(prepared.request, model=""))
    values = origins(await traced(runtime, view.row.id), prepared.place.step)
    written = await asyncio.to_thread(_written, host, prepared, given.prompt) if given.prompt is not None else None
    data = receipt_data(prepared, given.n, most, values)
    return {**data, "prompt": None if why else prompt, "why": why, "document": written, "editable": host.caller.edits}


def _written(host: Host, prepared: PreparedTry, prompt: str) -> Value:
    """Return the document as its file is now, with the prompt; None if the step has another one there."""
    view, step, rules = prepared.view, prepared.place.step, prepared.view.pins.semantics_version
    file = pinned_file(host.folder, view.row)
    if file is None or (text := file.text()) is None:
        return None
    try:
        now = document_in_place(Source.of(text, view.document.name), view.row, view.pins, rules)
        if prompt_text(now, step, rules) != prompt_text(view.document, step, rules):
            return None
        source = with_prompt(now, step, prompt, rules)
    except QuireError:
        return None
    return {"id": file.id, "etag": f'"{now.source.sha256[:32]}"', "text": source.text}


class DraftTest(OfRun, frozen=True, kw_only=True):
    write: Annotated[bool, Meta(description="Add it to the test of the document.")] = False


@operation(
    "A test case made of a run: its inputs, replies, answers and result.", DraftTest, needs("case", "text", "file")
)
async def draft_test(host: Host, given: DraftTest) -> Value:
    """Draft a case from a run; that of a try has its reply at the step, and the recorded replies elsewhere. With
    `write` it is added to the test of the document."""
    runtime, run = host.runtime, await host.runtime.find(given.run)
    view = await runtime.view(run)
    around = await runtime.view(str(view.pins.origin.get("run"))) if view.row.until else view
    file = pinned_file(host.folder, view.row)
    if file is None:
        raise Problem.of("run-state", f"run {run} has no document in this workspace: its test has no place")
    if given.write and not host.caller.edits:
        raise Problem.of("editing-off", "nothing is written: this server was started without --edit")
    test = Path(own_test(str(file.path)))
    name = test.relative_to(host.folder.resolve()).as_posix()

    def drafted() -> tuple[str, str]:
        document = document_in_place(read_source(file.path), view.row, view.pins)
        with RUNNING:
            draft = recorded_case(bench_for(document), view, around)
        before = read_source(test, limit=MAX_TEST_BYTES) if test.is_file() else None
        reading = parse(before).file if before else None
        draft.name = free_name(draft.name, {case.name for case in reading.cases} if reading else (), "{} ({})")
        text = case_text(draft) if before else file_text(file.path.name, [draft], recorded=True)
        if given.write:
            writer = document_writer(runtime.settings, runtime.environ)
            if before is None:
                writer.write({"path": name, "content": text})
            else:
                at, new = added_text(before.text, draft)
                writer.swap(name, before.text, before.text[:at] + new + before.text[at:])
        return draft.name, text

    case, text = await asyncio.to_thread(drafted)
    command = shell_line("runs", "test", run, "--write")
    return {"case": case, "text": text, "file": name, "written": given.write, "command": command}
