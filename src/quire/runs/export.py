"""Export a run as one file: JSON Lines, each with the sha256 of the line before, so that every changed byte is noticed.

    {"prev": "",  "type": "run", "version": 1, …}    the run's row and its pins
    {"prev": …, "type": "text", …}                   each pinned text, by its hash
    {"prev": …, "type": "effect", …}                 the journal
    {"prev": …, "type": "event", …}                  the event feed
    {"prev": …, "type": "question", …}               open questions
    {"prev": …, "type": "answer", …}                 answers that the run has not consumed yet
    {"prev": …, "type": "result", …}                 the result of a replay
    {"prev": …, "type": "end", "lines": …, "head": …}

The chain detects accidents and careless edits. A person who rewrites the whole file can make a new chain: only a copy
of the head hash kept elsewhere detects that.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from quire.errors import CannotStart
from quire.plan.vocabulary import last_label
from quire.runs.fork import pinned_texts
from quire.values import Value, encode, sha256

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord, Event, Question, RunRow
    from quire.runs.outcome import RunView
    from quire.runs.runtime import Runtime


async def export_lines(runtime: Runtime, run: str) -> list[str]:
    """Return the lines of the whole file, without line ends. Raises the errors of `Runtime.view`."""
    from quire import __version__
    from quire.versions import EXPORTED_RUN

    view = await runtime.view(run)
    # A folder is meaningful only on its own machine, and may contain the name of its user.
    pins = {**view.pins.as_json(), "folder": None, "out": ""}
    entries: list[dict[str, Value]] = [
        {"type": "run", "version": EXPORTED_RUN, "quire": __version__, "run": _row(view.row), "pins": pins}
    ]
    for digest in pinned_texts(view.pins):
        entries.append({"type": "text", "sha256": digest, "text": await runtime.store.text(digest)})
    entries += [_effect(record) for record in view.effects]
    entries += [_event(event) for event in await runtime.store.events(run)]
    entries += [_question(question) for question in view.questions]
    for answer in await runtime.store.answers(run):
        entries.append({"type": "answer", "path": answer.path, "hash": answer.hash, "value": answer.value})
    entries.append({"type": "result", **result_of(view)})
    return list(chained(entries))


def result_of(view: RunView) -> dict[str, Value]:
    """Return the outcome of a replay: a result, a failure, or the paths of effects without a record."""
    replayed = view.replay
    failure = replayed.failure
    return {
        "finished": replayed.finished,
        "result": replayed.result,
        "failure": [failure.kind, failure.message, failure.path] if failure else None,
        "open": sorted(request.path for request in replayed.open),
        "steps": {path: step.status for path, step in replayed.progress.steps.items()},
    }


def chained(entries: Iterable[dict[str, Value]]) -> Iterator[str]:
    prev, count = "", 0
    for entry in entries:
        line = encode({"prev": prev, **entry})
        yield line
        prev, count = sha256(line.encode()), count + 1
    yield encode({"prev": prev, "type": "end", "lines": count + 1, "head": prev})


def write_export(lines: Iterable[str], to: Path) -> int:
    """Write the whole file or nothing, and return its size in bytes. Raises `CannotStart`."""
    if to.exists() and not to.is_file():
        raise CannotStart(f"{to} is not a regular file: name one, or leave -o out for standard output")
    beside = to.with_name(f".{to.name}.{secrets.token_hex(4)}")
    try:
        with beside.open("x", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(to)
        return to.stat().st_size
    except OSError as error:
        raise CannotStart(f"{to} cannot be written: {error.strerror or error} (nothing is left of it)") from None
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


def _row(row: RunRow) -> Value:
    return {
        "id": row.id,
        "title": row.title,
        "format": row.format,
        "document": row.document,
        "status": str(row.status),
        "position": last_label(row.position),
        "way": row.position,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "expires_at": row.expires_at,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
        "cost": row.cost,
        "failure": [row.failure.kind, row.failure.message] if row.failure else None,
        "ended_by": list(row.ended_by),
        **({"name": row.name} if row.name else {}),
        **({"note": row.note} if row.note else {}),
    }


def _effect(record: EffectRecord) -> dict[str, Value]:
    usage, failure = record.usage, record.failure
    return {
        "type": "effect",
        "path": record.path,
        "kind": record.kind,
        "state": record.state,
        "request": record.request,
        "at": record.at,
        "value": record.value,
        "failure": [failure.kind, failure.message] if failure else None,
        "usage": [usage.input_tokens, usage.output_tokens, usage.cost] if usage else None,
        "elapsed": record.elapsed,
        "delays": list(record.delays),
        **({"by": record.by} if record.by else {}),
    }


def _event(event: Event) -> dict[str, Value]:
    return {
        "type": "event",
        "seq": event.seq,
        "event": event.type,
        "at": event.at,
        "path": event.path,
        "label": event.label,
        **({"way": event.way} if event.way != event.label else {}),
        "data": dict(event.data),
    }


def _question(question: Question) -> dict[str, Value]:
    return {
        "type": "question",
        "path": question.path,
        "label": question.label,
        "way": question.way,
        "title": question.title,
        "kind": question.kind,
        "prompt": question.prompt,
        "options": list(question.options),
        "default": question.default,
        "hash": question.hash,
        "asked_at": question.asked_at,
        "expires_at": question.expires_at,
    }
