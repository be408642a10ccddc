"""Import a run from an export file: check the file, prove it by a replay, and keep the run. Stored runs and files are
verified in the same way: seals, hashes, and a replay that gives the stated result.

An imported run can be looked at and forked, but not driven. The file may come from anywhere: every link of the chain,
every hash and the shape of every line are checked, and each problem is reported as a sentence that names the line,
never as a traceback.
"""

from __future__ import annotations

import re
import stat
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.records import EffectRecord, Event, NewRun, Question, RunRow, RunUpdate, Status, Usage
from quire.engine.requests import Failure
from quire.errors import BrokenSeal, CannotStart, JournalMismatch, QuireError, StoreError
from quire.formats import RUNNABLE
from quire.runs.adapters import one_name
from quire.runs.export import result_of
from quire.runs.runtime import Runtime
from quire.stores import open_store
from quire.stores.contract import MOST_NAME, MOST_NOTE, History
from quire.stores.run_pages import with_subject
from quire.values import InvalidValue, Value, decode, encode, fingerprint, sha256
from quire.versions import EXPORTED_RUN

if TYPE_CHECKING:
    from quire.workspace.settings import Settings


# The content of a line is checked where it is used; until then it is any JSON.
Entry: TypeAlias = dict[str, Any]
T = TypeVar("T")
_RUN_ID = re.compile(r"[A-Za-z0-9][\w.:-]{0,199}")


MAX_EXPORT_BYTES = 1_000_000_000


class BadExport(CannotStart):
    """The file is not an export, or was changed after it was written. `line` is 0 if it is not an export at all."""

    def __init__(self, path: Path, line: int, problem: str) -> None:
        super().__init__(f"{path}: line {line} {problem}" if line else f"{path} {problem}")
        self.line = line


class Exported(Struct, frozen=True):
    """A run as read from a file."""

    row: RunRow
    texts: Mapping[str, str]
    effects: Sequence[EffectRecord]
    events: Sequence[Event]
    questions: Sequence[Question]
    result: Mapping[str, Value]
    lines: int
    head: str
    """The hash of the last line but one, which covers all lines before it."""


def read_export(path: Path) -> Exported:
    """Read and check an export file. Raises `BadExport`, and `CannotStart` if the file cannot be read."""
    try:
        if path.stat().st_size > MAX_EXPORT_BYTES or not stat.S_ISREG(path.stat().st_mode):
            raise CannotStart(f"{path} cannot be read: it is not a file, or larger than {MAX_EXPORT_BYTES:,} bytes")
        data = path.read_bytes()
    except FileNotFoundError:
        raise CannotStart(f"the file {path} does not exist") from None
    except OSError as error:
        raise CannotStart(f"{path} cannot be read: {error.strerror or error}") from None
    return parse_export(data, path)


def parse_export(data: bytes, path: Path) -> Exported:
    """Check the content of an export file. Raises `BadExport`; `path` names the file in messages."""
    lines = data.split(b"\n")
    whole = len(lines) > 1 and lines[-1] == b""
    if whole:
        lines.pop()
    entries = _parsed(path, lines, whole)
    _check_version(path, entries[0])
    _check_chain(path, lines, entries)
    _check_end(path, lines, entries)
    return _Reading(path).read(entries)


def _parsed(path: Path, lines: Sequence[bytes], whole: bool) -> list[Entry]:
    entries: list[Entry] = []
    for number, line in enumerate(lines, 1):
        try:
            entry = decode(line.decode())
        except (InvalidValue, UnicodeDecodeError):
            entry = None
        if isinstance(entry, dict) and isinstance(entry.get("prev"), str) and isinstance(entry.get("type"), str):
            entries.append(entry)
        elif number == 1 and not (whole and line.startswith(b'{"prev"')):
            raise BadExport(path, 0, "is not an export of a run: `quire runs export` makes one")
        elif number == len(lines):
            reason = "has been changed: it is not a line of an export" if whole else "is cut off"
            raise BadExport(path, number, reason)
        else:
            raise BadExport(path, number, "has been changed: it is not a line of an export")
    if entries and entries[0]["type"] != "run":
        raise BadExport(path, 0, "is not an export of a run: `quire runs export` makes one")
    if not whole:
        raise BadExport(path, len(lines), "is cut off: its end is missing")
    return entries


def _check_version(path: Path, head: Entry) -> None:
    version = head.get("version")
    if isinstance(version, int) and version > EXPORTED_RUN:
        raise BadExport(
            path, 0, f"was written by a newer Quire (form {version}, this one knows {EXPORTED_RUN}): upgrade Quire"
        )


def _check_chain(path: Path, lines: Sequence[bytes], entries: Sequence[Entry]) -> None:
    """Check that each line contains the hash of the line before. Of two lines that do not fit, the one that also does
    not fit its other neighbour is reported."""
    if entries[0]["prev"]:
        raise BadExport(path, 1, "has been changed: nothing stands before it")
    hashes = [sha256(line) for line in lines]
    for at in range(1, len(lines)):
        if entries[at]["prev"] == hashes[at - 1]:
            continue
        if at + 1 < len(lines):
            other_fits = entries[at + 1]["prev"] == hashes[at]
        else:
            other_fits = entries[at].get("head") != hashes[at - 1]
        number = at if other_fits else at + 1
        raise BadExport(path, number, "has been changed, or a line behind it is missing")


def _check_end(path: Path, lines: Sequence[bytes], entries: Sequence[Entry]) -> None:
    last = entries[-1]
    if last["type"] != "end":
        raise BadExport(path, len(lines), "is the last, and not the end: the file is cut off")
    expected = {"prev": last["prev"], "type": "end", "lines": len(lines), "head": last["prev"]}
    if encode(expected).encode() != lines[-1]:
        raise BadExport(path, len(lines), "has been changed: its number of lines is wrong")


class _Reading:
    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, entries: Sequence[Entry]) -> Exported:
        texts: dict[str, str] = {}
        effects: dict[str, EffectRecord] = {}
        events: list[Event] = []
        questions: list[Question] = []
        result: Mapping[str, Value] = {}
        row = self._shaped(1, partial(_row, entries[0]))
        for number, entry in enumerate(entries[1:-1], 2):
            match entry["type"]:
                case "text":
                    texts[str(entry.get("sha256"))] = self._text(number, entry)
                case "effect":
                    record = self._shaped(number, partial(_effect, entry))
                    if record.path in effects:
                        raise BadExport(self._path, number, f"has a second effect at {record.path}")
                    effects[record.path] = record
                case "event":
                    events.append(self._shaped(number, partial(_event, row.id, entry)))
                case "question":
                    questions.append(self._shaped(number, partial(_question, row.id, entry)))
                case "result":
                    result = {name: value for name, value in entry.items() if name not in ("prev", "type")}
                case "answer":
                    pass
                case other:
                    raise BadExport(self._path, number, f"is of the kind {other!r}, which no export has")
        head = str(entries[-1]["head"])
        return Exported(row, texts, list(effects.values()), events, questions, result, len(entries), head)

    def _text(self, number: int, entry: Entry) -> str:
        text = entry.get("text")
        if not isinstance(text, str) or sha256(text.encode()) != entry.get("sha256"):
            raise BadExport(self._path, number, "holds a text that is not the one its hash names")
        return text

    def _shaped(self, number: int, make: Callable[[], T]) -> T:
        """Return the result of `make` for a line. Raises `BadExport` if the line lacks a field or has a wrong value in
        one."""
        try:
            return make()
        except (KeyError, TypeError, ValueError, AttributeError):
            raise BadExport(self._path, number, "does not hold what a line of its kind holds") from None


def _text(entry: Entry, name: str) -> str:
    value = entry[name]
    if not isinstance(value, str):
        raise TypeError(name)
    return value


def _way(entry: Entry, label: str) -> str:
    """Return the way to a step; exports of 0.1.0 contain only its label."""
    return _text(entry, "way" if "way" in entry else label)


_MOST = 253_402_300_799
"""The last second of the year 9999. No valid time, amount or count of an export is larger."""


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(value)
    if not 0 <= value <= _MOST:
        raise ValueError(value)
    return value


def _failure(value: Any) -> Failure | None:
    if value is None:
        return None
    kind, message = value
    return Failure(_text({"kind": kind}, "kind"), _text({"message": message}, "message"))


def _cost(value: Any) -> float | None:
    return None if value is None else _number(value)


def _named(entry: Entry, name: str, most: int) -> str | None:
    return None if entry.get(name) is None else _text(entry, name)[:most] or None


def _row(entry: Entry) -> RunRow:
    run, pins = entry["run"], entry["pins"]
    if not isinstance(pins, dict):
        raise TypeError("pins")
    if run["format"] not in RUNNABLE:
        raise ValueError("format")
    if not _RUN_ID.fullmatch(_text(run, "id")):
        raise ValueError("id")
    return RunRow(
        id=_text(run, "id"),
        title=_text(run, "title"),
        format=run["format"],
        document=_text(run, "document"),
        status=Status(run["status"]),
        position=_way(run, "position"),
        created_at=_number(run["created_at"]),
        updated_at=_number(run["updated_at"]),
        expires_at=_cost(run["expires_at"]),
        input_tokens=int(_number(run["input_tokens"])),
        output_tokens=int(_number(run["output_tokens"])),
        cost=_cost(run["cost"]),
        failure=_failure(run["failure"]),
        ended_by=tuple(str(path) for path in run["ended_by"]),
        epoch=0,
        pins=pins,
        name=_named(run, "name", MOST_NAME),
        note=_named(run, "note", MOST_NOTE),
    )


def _effect(entry: Entry) -> EffectRecord:
    if entry["state"] not in ("intent", "ok", "failed"):
        raise ValueError("state")
    used = entry["usage"]
    usage = None
    if used is not None:
        in_tokens, out_tokens, cost = used
        usage = Usage(int(_number(in_tokens)), int(_number(out_tokens)), _cost(cost))
    return EffectRecord(
        _text(entry, "path"),
        _text(entry, "kind"),
        entry["state"],
        _text(entry, "request"),
        _number(entry["at"]),
        entry["value"],
        _failure(entry["failure"]),
        usage,
        _number(entry["elapsed"]),
        tuple(_number(delay) for delay in entry["delays"]),
        one_name(_text(entry, "by")) if "by" in entry else "",
    )


def _event(run: str, entry: Entry) -> Event:
    if not isinstance(entry["data"], dict) or not isinstance(entry["seq"], int) or not 1 <= entry["seq"] < 1 << 28:
        raise TypeError("data")
    return Event(
        _text(entry, "event"),
        run,
        _number(entry["at"]),
        entry["seq"],
        _text(entry, "path"),
        _way(entry, "label"),
        entry["data"],
    )


def _question(run: str, entry: Entry) -> Question:
    if entry["kind"] not in ("input", "confirm", "select"):
        raise ValueError("kind")
    default = entry["default"]
    return Question(
        run,
        _text(entry, "path"),
        _way(entry, "label"),
        _text(entry, "title"),
        entry["kind"],
        _text(entry, "prompt"),
        tuple(str(option) for option in entry["options"]),
        None if default is None else str(default),
        _text(entry, "hash"),
        _number(entry["asked_at"]),
        _cost(entry["expires_at"]),
    )


def as_imported(row: RunRow) -> RunRow:
    """Return the row under which an imported run is kept. It cannot continue, so a run that had not ended gets the
    status expired."""
    ended = (Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.EXPIRED)
    status = row.status if row.status in ended else Status.EXPIRED
    pins = {**row.pins, "folder": None, "out": "", "imported": {"status": str(row.status)}}
    return replace(row, status=status, expires_at=None, pins=cast("Mapping[str, Value]", pins))


class NotProved(CannotStart):
    """The file is intact, but its document with its records does not give the result that the file states."""


async def prove(exported: Exported, settings: Settings) -> None:
    """Replay the pinned document with the records of the file, in a temporary store. Raises `NotProved`."""
    with tempfile.TemporaryDirectory(prefix="quire-") as folder:
        runtime = Runtime(settings, open_store(Path(folder) / "proof.db", durability="process"))
        try:
            await _keep(runtime, exported, exported.row)
            view = await runtime.view_of(exported.row, exported.effects, exported.questions)
            replayed: dict[str, Value] = result_of(view)
        except JournalMismatch as error:
            raise NotProved(f"the journal does not belong to the document: {error}") from None
        except QuireError as error:
            raise NotProved(f"the document of the run cannot be walked: {error}") from None
        except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
            # Pins in a file from elsewhere may have any shape.
            raise NotProved(f"the documents of the run cannot be read: {type(error).__name__}: {error}") from None
        finally:
            await runtime.close()
    for name in dict.fromkeys((*exported.result, *replayed)):
        stated, actual = exported.result.get(name), replayed.get(name)
        if fingerprint(stated) != fingerprint(actual):
            raise NotProved(f"the replay gives another {name} than the file states")


async def import_run(runtime: Runtime, exported: Exported) -> str:
    """Prove a run and store it; return its id. Raises `CannotStart`, and `StoreError` if the store has the run
    already."""
    await prove(exported, runtime.settings)
    await _keep(runtime, exported, as_imported(exported.row))
    return exported.row.id


async def _keep(runtime: Runtime, exported: Exported, row: RunRow) -> None:
    made = NewRun(row.id, row.title, row.format, row.document, row.created_at, row.pins, exported.texts)
    made = replace(await with_subject(runtime.store, made), name=row.name, note=row.note)
    update = RunUpdate(row.status, row.position, row.failure, row.ended_by, row.expires_at)
    history = History(
        update,
        exported.effects,
        [replace(event) for event in exported.events],
        row.updated_at,
        row.input_tokens,
        row.output_tokens,
        row.cost,
    )
    await runtime.store.restore(made, history)


class Verdict(Struct, frozen=True):
    """The result of a verification. `run` is empty for a file that is not an export."""

    run: str
    problem: str = ""
    """The reason why the run is not as it was written; empty if it is."""
    effects: int = 0
    line: int = 0
    """The line of a file that is wrong; 0 if no line is."""
    exported: Exported | None = None

    @property
    def ok(self) -> bool:
        return not self.problem


async def verify_run(runtime: Runtime, run: str) -> Verdict:
    """Check the seals of a stored run, and replay it."""
    try:
        await runtime.store.check_seal(run)
        view = await runtime.view(run)
    except (BrokenSeal, JournalMismatch, StoreError) as error:
        return Verdict(run, f"run {run}: {error.reason if isinstance(error, BrokenSeal) else error}")
    return Verdict(run, effects=len(view.effects))


async def verify_export(read: Callable[[], Exported], name: str, settings: Settings) -> Verdict:
    """Check an exported run: every line's hash, and that a replay gives the result that the file states. `name` is the
    name of the file."""
    try:
        exported = read()
    except BadExport as error:
        return Verdict("", str(error), line=error.line)
    run, effects = exported.row.id, len(exported.effects)
    try:
        await prove(exported, settings)
    except NotProved as error:
        return Verdict(run, f"{name}: {error}", effects, exported=exported)
    return Verdict(run, effects=effects, exported=exported)
