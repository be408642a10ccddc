"""Stored runs as tests of an edited document: say for each run whether the new text comes to the same end.

Nothing is asked, called or written: every request of the new text is answered by a record of the run, or it is the
point at which the new text asks something new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.driver.drive import DriveResult
from quire.engine.driver.shadow import Recording, Shadow, shadow
from quire.engine.progress import Progress
from quire.engine.records import RunRow, Status
from quire.engine.request_hashes import KINDS
from quire.engine.requests import (
    Boundary,
    Effect,
    Failure,
    Halt,
    HumanRequest,
    Join,
    Load,
    ModelRequest,
    Offer,
    ToolRequest,
)
from quire.errors import JournalMismatch, LimitReached, NoSuchRun, RunState
from quire.runs.diff import Change
from quire.runs.edited_document import EditedDocument, MissingInputs
from quire.runs.outcome import RunOutcome
from quire.runs.reuse import is_run_of

if TYPE_CHECKING:
    from quire.engine.progress import StepView
    from quire.library.document import Document
    from quire.runs.outcome import RunView
    from quire.runs.runtime import Runtime

MOST_RUNS = 200
"""Stored runs of a document that are replayed unless the user says how many."""
_LOOKED_AT = 10_000
_ALIKE = 0.3
"""Requests that share less than this part of their words have nothing to do with each other."""
_COMPARED = 200
"""Requests that no longer occur, among which the one that was changed is looked for."""

_MOST_STEPS = 300
"""Steps of a document up to which those that did not change are looked for."""
_LONGEST = 20_000
"""Characters of a request that are compared for that."""

Verdict = Literal["same", "different", "new", "unreadable"]


class NewRequest(Struct, frozen=True):
    """The first request of the edited document that no record answers."""

    request: Effect
    before: Effect | None
    """The request of the old run at this place; None if it had none like it."""
    what: str
    """Two or three words: `prompt changed`, `new tool call`, `another branch`."""
    others: int = 0
    """Requests without an answer in branches beside this one."""


class Replayed(Struct, frozen=True):
    """One stored run, walked with an edited document."""

    run: str
    title: str
    verdict: Verdict
    new: NewRequest | None = None
    changes: Sequence[Change] = ()
    """Results that differ from those of the stored run; there may be some although the end is the same."""
    dropped: Sequence[Effect] = ()
    """Effects of the run that the edited document does not ask for any more. Known only if it came to an end."""
    reworded: Sequence[tuple[HumanRequest, HumanRequest]] = ()
    """Questions whose answer was taken although their words changed: as they were, and as they are."""
    problem: str = ""
    """The inputs that are missing, or the reason why the run cannot be read."""

    @property
    def reason(self) -> str:
        """The verdict in a few words, which runs with the same fate share."""
        match self.verdict:
            case "new":
                return self.new.what if self.new else "new input"
            case "different":
                return f"{', '.join(dict.fromkeys(change.what for change in self.changes if is_end(change)))} changed"
            case "same" | "unreadable":
                return ""
            case _:
                assert_never(self.verdict)


_SILENT = (Boundary, Offer, Join, Halt)
"""Requests that neither ask nor change anything."""
_SETTLED = ("completed", "failed", "skipped", "pending")
_ENDS = ("status", "error", "output")


def is_end(change: Change) -> bool:
    """Tell whether a change is one of the end of a run, and not of the way to it."""
    return change.what in _ENDS


async def runs_of(runtime: Runtime, edited: EditedDocument, most: int) -> tuple[list[str], int]:
    """Return the newest completed runs of a document, and the number of all that were found. Raises `NoSuchRun`."""
    document = edited.whole
    folder = document.folder
    rows = await runtime.store.list(status=Status.COMPLETED, limit=_LOOKED_AT)
    ids = [row.id for row in rows if is_run_of(row, replace(document, declared=_declared(row)), folder)]
    if not ids:
        raise NoSuchRun(f"no completed run of {document.name} is stored here: name the runs to replay")
    return ids[:most], len(ids)


def _declared(row: RunRow) -> str:
    declared = row.pins.get("declared", "")
    return declared if isinstance(declared, str) else ""


async def replay_run(runtime: Runtime, run: str, edited: EditedDocument) -> Replayed:
    """Walk the edited document with the records of one run. Raises `CannotStart` if it is not a document for it."""
    row = await runtime.row(run)
    try:
        old = await runtime.view_of(row, await runtime.store.effects(run), await runtime.store.questions(run))
    except (RunState, JournalMismatch, LimitReached) as error:
        return Replayed(run, row.title, "unreadable", problem=str(error))
    try:
        held = await edited.pinned(old)
    except MissingInputs as error:
        return Replayed(run, row.title, "new", problem="; ".join(error.problems))
    try:
        walked = await shadow(
            held.walk,
            Recording.of(old.replay, old.effects, same_steps(old.document, held.document)),
            lambda: Progress.of(held.plan),
            edited.load,
            pure_work=runtime.settings.runs.pure_work,
        )
    except LimitReached as error:
        return Replayed(run, row.title, "unreadable", problem=str(error))
    return judge(old, walked, replace(row, pins=held.pins.as_json()))


def same_steps(old: Document, new: Document) -> dict[str, str]:
    """Return the old paths of the top-level steps whose text has not changed, by their paths in the new document."""
    before, now = _step_texts(old), _step_texts(new)
    if len(before) * len(now) > _MOST_STEPS**2:
        return {}
    from difflib import SequenceMatcher

    blocks = SequenceMatcher(None, list(before.values()), list(now.values()), autojunk=False).get_matching_blocks()
    then, after = list(before), list(now)
    return {after[b + at]: then[a + at] for a, b, size in blocks for at in range(size)}


def _step_texts(document: Document) -> dict[str, str]:
    """Return the texts of top-level steps by path, without the numbers in the headings of a playbook."""
    plan, text = document.runnable(), document.source.text
    if plan.thread:
        return {}
    starts = [*(step.span.start for step in plan.body.steps), len(text)]
    texts = {}
    for step, end in zip(plan.body.steps, starts[1:], strict=True):
        own = text[step.span.start : end]
        own = own.partition("\n")[2] if plan.format == "playbook" else own.rstrip("- \n")
        texts[f"{step.position}"] = f"{step.title}\n{own.strip()}"
    return texts


def judge(old: RunView, walked: Shadow, row: RunRow) -> Replayed:
    """Compare the end of a walk with that of the run whose records it was walked with. `row` is that of the run as the
    walk stands for it."""
    again = walked.replay
    ended = again.finished or again.failure is not None
    if not ended and not again.open:
        return Replayed(row.id, row.title, "unreadable", problem=again.exhausted)
    reworded = list(_reworded(old, walked))
    unanswered = [request for request in again.open if request.path not in walked.journal.waits]
    if not ended and unanswered:
        return Replayed(row.id, row.title, "new", _first_new(old, walked, unanswered), reworded=reworded)
    status = Status.COMPLETED if again.finished else Status.FAILED if again.failure else old.row.status
    failure = Failure.of(again.failure) if again.failure else None if again.finished else old.rest.failure
    outcome = RunOutcome(row, again.progress, DriveResult(status, "", again.result, failure), ())
    changes = [*_ends(old, outcome), *_ways(old, outcome)]
    set_by_hand = {record.path for record in old.effects if record.kind == "break" and record.value}
    left = ((path, old.replay.asked[path]) for path in walked.journal.left)
    dropped = [request for path, request in left if not isinstance(request, _SILENT) or path in set_by_hand]
    verdict: Verdict = "different" if any(map(is_end, changes)) else "same"
    return Replayed(row.id, row.title, verdict, None, changes, dropped if ended else (), reworded)


def _reworded(old: RunView, walked: Shadow) -> Iterator[tuple[HumanRequest, HumanRequest]]:
    for path, before in walked.journal.reworded.items():
        then, now = old.replay.asked[before], walked.replay.asked[path]
        if isinstance(then, HumanRequest) and isinstance(now, HumanRequest):
            yield then, now


def _ends(old: RunView, new: RunOutcome) -> Iterator[Change]:
    then = old.replay
    status = Status.COMPLETED if then.finished else Status.FAILED if then.failure else old.row.status
    if status != new.status:
        yield Change("status", "", str(status), str(new.status))
    before = Failure.of(then.failure) if then.failure else old.rest.failure
    after = new.rest.failure
    if before != after and new.status is Status.FAILED:
        yield Change("error", "", before.message if before else None, after.message if after else None)
    if old.value != new.value:
        yield Change("output", "", old.value, new.value)
    elif old.artifact != new.artifact:
        yield Change("output", "artifact", old.artifact, new.artifact)


def _ways(old: RunView, new: RunOutcome) -> Iterator[Change]:
    for what, then, now in (("named", old.named, new.named), ("store", old.stores, new.stores)):
        for name in dict.fromkeys((*then, *now)):
            if not name.startswith("__") and then.get(name) != now.get(name):
                yield Change(what, name, then.get(name), now.get(name))
    before, after = _by_title(old.own_steps), _by_title(new.own_steps)
    for key in before:
        a, b = before[key].status, after[key].status if key in after else ""
        if a != b and a in _SETTLED and b in _SETTLED:
            yield Change("step", key[0], a, b)
    messages = {message for _, message in old.replay.progress.warnings}
    for way, message in new.progress.warnings:
        if message not in messages:
            yield Change("warning", way, None, message)


def _by_title(steps: Sequence[StepView]) -> dict[tuple[str, str], StepView]:
    return {(step.label, step.title): step for step in steps if not step.thread}


def _first_new(old: RunView, walked: Shadow, unanswered: Sequence[Effect]) -> NewRequest:
    request = unanswered[0]
    others = len(unanswered) - 1
    if _was_skipped(old, walked, request):
        return NewRequest(request, None, "another branch", others)
    before = _before(old, walked, request)
    return NewRequest(request, before, what_changed(before, request), others)


def _was_skipped(old: RunView, walked: Shadow, request: Effect) -> bool:
    now = walked.replay.progress.step_of(request.path)
    then = _by_title(old.own_steps).get((now.label, now.title)) if now else None
    return then is not None and then.status == "skipped"


def _before(old: RunView, walked: Shadow, request: Effect) -> Effect | None:
    """Return the request that an edit has turned into this one: at the same place, or the most alike."""
    requests = old.replay.asked
    left = [requests[path] for path in walked.journal.left if type(requests[path]) is type(request)][:_COMPARED]
    left += [candidate for candidate in old.replay.open if type(candidate) is type(request)]
    places = list(walked.journal.places(request.path))
    now = walked.replay.progress.step_of(request.path)
    best, most = None, _ALIKE
    for candidate in left:
        alike = likeness(candidate, request)
        if candidate.path in places:
            then = old.replay.progress.step_of(candidate.path)
            same_step = now is not None and then is not None and (now.label, now.title) == (then.label, then.title)
            alike += 1.0 if same_step and (now and now.title) else 0.1
        if alike > most or (best is None and alike == most):
            best, most = candidate, alike
    return best


def likeness(request: Effect, other: Effect) -> float:
    """Return which part of their words two requests of one kind share."""
    words, others = (set(_own_text(effect)[:_LONGEST].split()) for effect in (request, other))
    return len(words & others) / max(len(words), len(others), 1)


def _own_text(request: Effect) -> str:
    """Return the part of a request that tells it from others of its kind."""
    match request:
        case ModelRequest(messages=messages, known=known):
            return "\n".join(message.content for message in messages[known:])
        case HumanRequest(prompt=prompt, options=options):
            return "\n".join((prompt, *options))
        case ToolRequest(connection=connection, tool=tool, arguments=arguments):
            return " ".join((connection, tool, tool, *(f"{name} {value}" for name, value in arguments.items())))
        case Load(scheme=scheme, where=where):
            return f"{scheme} {where}"
        case Offer() | Boundary() | Join() | Halt():
            return KINDS[type(request)]
        case _:
            assert_never(request)


def what_changed(before: Effect | None, now: Effect) -> str:
    """Say in a few words how a request differs from the one before."""
    match now:
        case ModelRequest():
            return _changed_call(before, now) if isinstance(before, ModelRequest) else "new model call"
        case HumanRequest():
            return "question changed" if before else "new question"
        case ToolRequest(connection=place, tool=tool):
            same = isinstance(before, ToolRequest) and (before.connection, before.tool) == (place, tool)
            return "arguments changed" if same else "new tool call"
        case Load():
            return "another text loaded"
        case Offer():
            return "other tools offered"
        case Join() | Halt():
            return "threads changed"
        case Boundary():
            return "stop changed"
        case _:
            assert_never(now)


_PARTS: Mapping[str, str] = {
    "model": "model changed",
    "tools": "tools changed",
    "schema": "schema changed",
    "closing": "schema changed",
    "identity": "identity changed",
}


def _changed_call(before: ModelRequest, now: ModelRequest) -> str:
    if (before.system, before.messages) != (now.system, now.messages):
        return "prompt changed"
    return next(
        (words for part, words in _PARTS.items() if getattr(before, part) != getattr(now, part)), "call changed"
    )
