"""Remember live results, so that `quire test --status` can list verified and changed cases for free.

A receipt belongs to a case, a model, the plan of the document and the test, by hashes of their structure: it stays
valid when only comments or line breaks change. It lies in the workspace's `.quire/`, beside the runs, and is only a
report: no test passes because of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from quire.errors import CannotStart, Unreadable
from quire.source import Span, read_source, written_beside
from quire.testing.live.tries import Status
from quire.values import Value, fingerprint

if TYPE_CHECKING:
    from quire.library.callees import Callee
    from quire.library.document import Document


FILE = Path(".quire", "live-receipts.json")
MOST = 5_000
_LARGEST = 10_000_000
_FORMAT = 1


class Receipt(Struct, frozen=True, omit_defaults=True):
    """A result of a case on a model."""

    file: str
    """The test, relative to the workspace."""
    case: str
    model: str
    plan: str
    """The hash of the document's plan."""
    test: str
    """The hash of the case, its rows and its judge."""
    status: Status
    passed: int
    tried: int
    at: float
    cost: float | None = None
    """Of one try, in dollars."""
    seconds: float | None = None
    """p50 of one try."""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.file, self.case, self.model


class _Kept(Struct, frozen=True):
    receipts: list[Receipt]
    format: int = _FORMAT


def read_receipts(workspace: Path) -> list[Receipt]:
    """Return the receipts of a workspace; none if there is no file, or one that cannot be read."""
    try:
        stored = msgspec.json.decode(read_source(workspace / FILE, limit=_LARGEST).text.encode(), type=_Kept)
    except (Unreadable, msgspec.DecodeError, UnicodeError, RecursionError):
        return []
    return stored.receipts if stored.format == _FORMAT else []


def store_receipts(workspace: Path, fresh: Sequence[Receipt]) -> None:
    """Add receipts, each in place of the one of the same case and model. Raises `CannotStart`."""
    path = workspace / FILE
    replaced = {receipt.key for receipt in fresh}
    receipts = [*(receipt for receipt in read_receipts(workspace) if receipt.key not in replaced), *fresh]
    receipts.sort(key=lambda receipt: receipt.at)
    data = msgspec.json.format(msgspec.json.encode(_Kept(receipts[-MOST:])), indent=1)
    if path.parent.is_symlink():
        raise CannotStart(f"{path.parent} is a link: results are only kept in the workspace itself")
    try:
        path.parent.mkdir(exist_ok=True)
        with written_beside(path, data + b"\n") as new:
            new.replace(path)
    except OSError as error:
        raise CannotStart(f"{path} cannot be written: {error.strerror or error}") from None


class Subject(Struct, frozen=True):
    """A case as it is now."""

    file: str
    case: str
    plan: str
    test: str


class Standing(Struct, frozen=True):
    """A case and a model, with the status that holds now."""

    file: str
    case: str
    model: str
    """Empty if the case was never measured."""
    status: Status
    receipt: Receipt | None = None
    changed: tuple[str, ...] = ()
    """`document` and `test`, if they differ from those that were measured."""


def standings(subjects: Iterable[Subject], receipts: Sequence[Receipt]) -> list[Standing]:
    """Return the standing of each case on each model that it was measured on."""
    by_case: dict[tuple[str, str], list[Receipt]] = {}
    for receipt in receipts:
        by_case.setdefault((receipt.file, receipt.case), []).append(receipt)
    result = []
    for subject in subjects:
        measured = by_case.get((subject.file, subject.case), [])
        if not measured:
            result.append(Standing(subject.file, subject.case, "", Status.UNVERIFIED))
        for receipt in sorted(measured, key=lambda receipt: receipt.model):
            pairs = (("document", receipt.plan, subject.plan), ("test", receipt.test, subject.test))
            changed = tuple(name for name, then, now in pairs if then != now)
            status = Status.STALE if changed else receipt.status
            result.append(Standing(subject.file, subject.case, receipt.model, status, receipt, changed))
    return result


def seen_cost(receipts: Sequence[Receipt], file: str, case: str, model: str) -> float | None:
    """Return the price of one try that was seen last, in dollars; None if none was, or its price was not known."""
    return next((receipt.cost for receipt in reversed(receipts) if receipt.key == (file, case, model)), None)


_PLACES = ("span", "spans", "compiled")


def structure_hash(value: object, without: tuple[str, ...] = ()) -> str:
    """Return a hash of everything in a value but places, compiled code, and fields with the names in `without`."""
    return fingerprint(_plain(value, (*_PLACES, *without)))


def document_hash(document: Document, callees: Mapping[str, Callee], texts: Mapping[str, str]) -> str:
    """Return the hash of a document's plan, of all plans that it can call, and of further texts that runs read.

    A directive that is called counts with everything that it is composed from.
    """
    called: dict[str, Value] = {
        name: callee.text if callee.bundle else structure_hash(callee.plan) for name, callee in sorted(callees.items())
    }
    return fingerprint({"plan": structure_hash(document.runnable()), "called": called, "texts": dict(texts)})


def _plain(value: object, without: tuple[str, ...]) -> Value:
    if value is None or isinstance(value, str | int | float | bool):
        return str(value) if isinstance(value, Enum) else value
    if isinstance(value, Span) or callable(value):
        return None
    if isinstance(value, Struct) or is_dataclass(value):
        names = value.__struct_fields__ if isinstance(value, Struct) else [field.name for field in fields(value)]
        named = {name: _plain(getattr(value, name), without) for name in names if name not in without}
        return [type(value).__name__, named]
    if isinstance(value, Mapping):
        return {str(key): _plain(item, without) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, without) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(str(item) for item in value)
    return str(value) if isinstance(value, Enum) else type(value).__name__
