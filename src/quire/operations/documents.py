"""Operations on documents: list, show with the bounds proven before a run, check; and codes of findings."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType

from quire import formats
from quire.analysis.approvals import gates_of
from quire.analysis.flow_paths import flows_of
from quire.display.diagnostics import finding_data
from quire.display.document_json import (
    bounds_data,
    document_row,
    envelope_data,
    flows_data,
    gates_data,
    inputs_data,
    lock_data,
    outlined,
    proof_data,
    signature_data,
    steps_data,
)
from quire.display.flowchart_drawing import chart_data
from quire.display.flowchart_marks import overlay_of
from quire.display.outline import outline_data
from quire.display.shell_commands import shell_line
from quire.display.source_lines import source_lines
from quire.errors import QuireError, StoreError
from quire.library.check import all_codes
from quire.library.document import read
from quire.library.foresight import Foresight
from quire.library.lock_state import lock_state
from quire.operations.field_types import Input, Limit, Name, Object, Page, Text, operation, shape, words
from quire.operations.problems import Problem
from quire.operations.results import Cases, ShownDocument
from quire.operations.results import Document as DocumentRow
from quire.patterns import late_pattern
from quire.runs.earlier_runs import UsageSeen, usage_seen
from quire.runs.proven import assumed_sizes, prove_document
from quire.values import encode, sha256
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.display.flowchart_marks import Overlay
    from quire.engine.records import RunRow
    from quire.library.document import Document
    from quire.library.document_state import DocumentState
    from quire.operations.host import Host
    from quire.plan.nodes import Plan
    from quire.runs.proven import ProvenDocument
    from quire.runs.runtime import Runtime
    from quire.values import Value

PAGE = 500
_UNSAVED = (
    (late_pattern(r"^cases:", re.MULTILINE), "unsaved.test.yaml"),
    (late_pattern(r"^(pipeline|schema):", re.MULTILINE), "unsaved.yaml"),
)
"""The place of a text without one, by its content; else it is a playbook or a directive."""
LATEST_RUNS = 1000
"""Number of newest runs among which the last run of a document is looked for."""
MOST_FOLDERS = 200
NOT_SEEN = UsageSeen()

FIELDS = (
    *("source", "outline", "inputs", "steps", "bounds", "envelope", "diagnostics", "chart", "signature"),
    *("proof", "gates", "flows", "lock"),
)


class ListDocuments(Input, frozen=True, kw_only=True):
    format: Annotated[
        str, words("playbook", "directive", "pipeline", "knowledge"), Meta(description="Only documents of this format.")
    ] = ""
    q: Annotated[Text, Meta(description="Words that title or path contain.")] = ""
    folder: Annotated[Text, Meta(description="Only documents below this folder.")] = ""
    finding: Annotated[
        str, words("error", "warning", "none"), Meta(description="Only documents whose worst finding is this.")
    ] = ""
    after: Annotated[Text, Meta(description="The `next` of the page before.")] = ""
    limit: Limit = PAGE


@operation(
    "The documents of the workspace with their findings, bounds, signatures and last runs, by path.",
    ListDocuments,
    Page[DocumentRow],
)
async def list_documents(host: Host, given: ListDocuments) -> Value:
    states = await asyncio.to_thread(host.shelf.all)
    last = await _last_runs(host)
    fitting = [state for state in states if _fits(state, given)]
    rest = [state for state in fitting if state.id > given.after] if given.after else fitting
    page = rest[: given.limit]
    return {
        "items": [document_row(state, last.get(state.id)) for state in page],
        "next": page[-1].id if len(rest) > given.limit else None,
        "total": len(fitting),
        "counts": _counts(states),
    }


def _fits(state: DocumentState, given: ListDocuments) -> bool:
    folder = given.folder.strip("/")
    text = f"{state.id} {state.title}".lower()
    return (
        given.format in ("", state.format)
        and given.finding in ("", _finding(state))
        and (not folder or state.id.startswith(folder + "/"))
        and all(word in text for word in given.q.lower().split())
    )


def _finding(state: DocumentState) -> str:
    return "error" if state.errors else "warning" if state.warnings else "none"


def _counts(states: Sequence[DocumentState]) -> dict[str, Value]:
    """Return how many documents there are of each kind, for filters."""
    folders = Counter(state.id.rpartition("/")[0] for state in states if "/" in state.id)
    return {
        "all": len(states),
        "formats": dict(Counter(state.format for state in states if state.format)),
        "findings": dict(Counter(map(_finding, states))),
        "folders": dict(sorted(folders.items())[:MOST_FOLDERS]),
    }


async def _last_runs(host: Host) -> dict[str, RunRow]:
    """Return the newest run of each document; none while the store cannot be read, because documents are files."""
    rows: dict[str, RunRow] = {}
    if host.caller.door == "mcp":
        return rows  # a client sees the runs that it has launched, and no others
    with contextlib.suppress(StoreError):
        for row in await host.runtime.store.list(limit=LATEST_RUNS):
            rows.setdefault(host.shelf.id_of(row), row)
    return rows


class OfDocument(Input, frozen=True, kw_only=True):
    id: Annotated[str, Meta(description="The path of the document from the folder of the workspace.")]


class ShowDocument(OfDocument, frozen=True, kw_only=True):
    fields: Annotated[Text, Meta(description=f"Parts with commas between them: {', '.join(FIELDS)}.")] = ""


@operation("One document. `fields` says which parts are wanted.", ShowDocument, ShownDocument)
async def show_document(host: Host, given: ShowDocument) -> Value:
    names = [name for name in given.fields.split(",") if name]
    for name in names:
        if name not in FIELDS:
            help = did_you_mean(nearest(name, FIELDS), f"there are {', '.join(FIELDS)}")
            raise Problem.of("unfit-parameters", f"fields: a document has no {name}", help=help)
    state = await asyncio.to_thread(host.shelf.one, given.id)
    usage = await _usage(host, state) if "proof" in names else UsageSeen()
    data = await asyncio.to_thread(shown, host, state, names, usage)
    return None if host.has(etag(state, data)) else data


async def _usage(host: Host, state: DocumentState) -> UsageSeen:
    """Return the usage of earlier runs; none while the store cannot be read, because documents are files."""
    if state.document is None or state.document.plan is None:
        return UsageSeen()
    try:
        return await usage_seen(host.runtime.store, state.document, state.document.folder)
    except StoreError:
        return UsageSeen()


def etag(state: DocumentState, data: Mapping[str, Value]) -> str:
    """Return the tag of an answer. The part before the dot stands for the text alone, and is what saving compares."""
    text = state.source.sha256[:32] if state.source else "unread"
    return f'"{text}.{sha256(encode(data).encode())[:16]}"'


def shown(host: Host, state: DocumentState, names: Sequence[str], usage: UsageSeen = NOT_SEEN) -> dict[str, Value]:
    """Return a document with the named parts."""
    document = state.document if state.document and state.document.plan else None
    id = state.id
    data: dict[str, Value] = {
        **document_row(state, None),
        "editable": host.caller.edits and state.source is not None,
        "commands": {verb: shell_line(verb, id) for verb in ("check", "show", "sign")},
    }
    del data["last_run"]
    parts: Mapping[str, Callable[[], Value]] = {
        "source": lambda: _source(state),
        "diagnostics": lambda: (
            [finding_data(state.source, finding, id) for finding in state.findings] if state.source else []
        ),
        "signature": lambda: signature_data(state.signature),
    }
    if document is not None:
        parts = {**parts, **_plan_parts(host, state, document), **_proof_parts(host.runtime, state, document, usage)}
    problems: dict[str, Value] = {}
    for name in names:
        try:
            data[name] = parts[name]() if name in parts else None
        except QuireError as error:
            data[name], problems[name] = None, str(error)
    return {**data, "problems": problems} if problems else data


def _plan_parts(host: Host, state: DocumentState, document: Document) -> dict[str, Callable[[], Value]]:
    runtime = host.runtime
    plan, settings = document.runnable(), runtime.settings
    return {
        "outline": lambda: outlined(document, runtime.library, runtime.environ),
        "inputs": lambda: inputs_data(document),
        "steps": lambda: steps_data(plan),
        "bounds": lambda: bounds_data(state.bounds) if state.bounds else None,
        "envelope": lambda: envelope_data(
            Foresight(settings).envelope(plan, document.name), settings, host.caller.allow, signer_of(state, plan)
        ),
        "chart": lambda: chart_data(plan),
    }


def signer_of(state: DocumentState, plan: Plan) -> str:
    """Return the owner of the key whose signature grants a directive its permissions; empty if none does."""
    verdict = state.signature.verdict
    return state.signature.by if plan.thread and verdict and verdict.ok else ""


def _source(state: DocumentState) -> Value:
    source = state.source
    if source is None:
        return None
    lines: list[Value] = [
        line if isinstance(line, str) else [list(piece) for piece in line]
        for line in source_lines(source, state.format)
    ]
    return {"text": source.text, "sha256": source.sha256, "lines": lines}


def _proof_parts(
    runtime: Runtime, state: DocumentState, document: Document, usage: UsageSeen
) -> Mapping[str, Callable[[], Value]]:
    """Return the functions that make each part, all from one proof, which is made when the first is asked for."""

    @cache
    def proven() -> ProvenDocument:
        today = datetime.datetime.now(datetime.UTC).date()
        return prove_document(document, runtime.settings, today=today, environ=runtime.environ)

    def numbers() -> Value:
        assumed = assumed_sizes(runtime.settings, (), None)
        return proof_data(proven().quantities, proven().model, assumed, usage, proven().proof.unknown)

    return {
        "proof": numbers,
        "gates": lambda: gates_data(gates_of(proven().proof)),
        "flows": lambda: flows_data(flows_of(proven().proof)),
        "lock": lambda: lock_data(lock_state(runtime.settings.workspace, state.path)),
    }


def overlay_for(runtime: Runtime, document: Document) -> Overlay:
    """Return the marks and ways of a document's chart."""
    return overlay_of(Foresight(runtime.settings).proof(document.runnable(), document.name))


@operation("The cases of a document's test file, with the results of their last run here.", OfDocument, Cases)
async def list_cases(host: Host, given: OfDocument) -> Value:
    state = await asyncio.to_thread(host.shelf.one, given.id)
    return await asyncio.to_thread(host.shelf.tests.look, state)


@operation(
    "Run the cases of a document, without a model: their results, and the coverage of its lines.", OfDocument, Cases
)
async def run_cases(host: Host, given: OfDocument) -> Value:
    state = await asyncio.to_thread(host.shelf.one, given.id)
    return await asyncio.to_thread(host.shelf.tests.run, state)


class CheckText(Input, frozen=True, kw_only=True):
    text: Annotated[Text, Meta(description="The text of a document that need not be saved.")] | UnsetType = UNSET
    path: Annotated[
        Text,
        Meta(description="Its place in the workspace, which tells its format; without a text, the document to check."),
    ] = ""


@operation("Find the mistakes of a document: of a file, or of a text.", CheckText, shape(diagnostics=list[Object]))
async def check_text(host: Host, given: CheckText) -> Value:
    if not isinstance(given.text, UnsetType):
        place = next((place for pattern, place in _UNSAVED if pattern.search(given.text)), "unsaved.md")
        return await asyncio.to_thread(_checked, host, given.text, given.path or place)
    if not given.path:
        raise Problem.of("unfit-body", "text or path is needed")
    state = await asyncio.to_thread(host.shelf.one, given.path)
    if state.source is None:
        raise Problem.of("cannot-start", state.error)
    return await asyncio.to_thread(_checked, host, state.source.text, state.id)


def _checked(host: Host, text: str, path: str) -> dict[str, Value]:
    source, findings = host.shelf.checked(text, path)
    format = formats.format_of(source)
    plan = None if format in ("knowledge", "test") else read(source).plan
    return {
        "format": format,
        "title": plan.title if plan else None,
        "diagnostics": [finding_data(source, finding, path) for finding in findings],
        "outline": (outline_data(plan) if plan.thread else outlined(read(source))) if plan else None,
        "bounds": bounds_data(Foresight(host.runtime.settings).bounds(plan, path)) if plan else None,
    }


class ExplainCode(Input, frozen=True, kw_only=True):
    code: str


@operation("The meaning of the code of a finding.", ExplainCode, shape(id=Name, explanation=Text))
async def explain_code(host: Host, given: ExplainCode) -> Value:
    id = given.code.upper()
    codes = {code.id: code for code in all_codes()}
    if id not in codes:
        raise Problem.of("no-such-code", f"unknown code {id}", help=did_you_mean(nearest(id, codes)))
    code = codes[id]
    return {
        "id": code.id,
        "name": code.name,
        "severity": code.severity.value,
        "explanation": code.explanation,
        "command": shell_line("check", "--explain", code.id),
    }
