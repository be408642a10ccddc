"""Compare documents with the lock of their workspace: the findings of `quire check --locked`. Nothing is started, and
no price list is loaded: the tools and prices are those of the lock.

The lock on disk is `quire.lock` in the folder of the workspace, read whole and replaced whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire import formats
from quire.analysis.lock.file import FILE_NAME, Lock, document_lines, is_signed
from quire.analysis.lock.read import BAD_LOCK, MOST_BYTES, MOST_FACTS, NO_LOCK, STALE, TAMPERED, LockReading, read_lock
from quire.diagnostics import Diagnostic
from quire.errors import CannotStart, QuireError, Unreadable
from quire.library.lock_facts import LockFacts
from quire.source import NOWHERE, Source, Span, read_source, relative_to_here, written_beside
from quire.workspace.configuration import load_settings
from quire.workspace.locate import find_workspace, workspace_of

if TYPE_CHECKING:
    from quire.analysis.lock.compare import Change
    from quire.library.lock_facts import LockableDocument
    from quire.trust.signatures import Verification
    from quire.workspace.locate import Workspace
    from quire.workspace.settings import Settings


_LOCK = "look at the change, then write the lock again: quire lock"
_FIRST = "write it, and look at what it says: quire lock"

_BEYOND = {"LK103": "not in the lock: ", "LK104": "higher than in the lock: "}


class LockedFindings(Struct, frozen=True):
    """The findings about one file: a document, or the lock itself."""

    source: Source
    diagnostics: tuple[Diagnostic, ...]


def locked_findings(sources: Iterable[Source], *, all: bool) -> list[LockedFindings]:
    """Return the findings about documents that differ from the locks of their workspaces. With `all` these are all
    documents that exist, so entries of others are findings too."""
    runnable = [source for source in sources if formats.format_of(source) in formats.RUNNABLE]
    held = [(source, workspace_of(Path(source.name).parent)) for source in runnable]
    workspaces = {workspace.folder: workspace for _, workspace in held}
    if all and lock_path(here := find_workspace(Path.cwd())).is_file():
        workspaces.setdefault(here.folder, here)  # all of its documents may be in workspaces of their own
    paths: dict[Path, list[Path]] = {folder: [] for folder in workspaces}
    for source, workspace in held:
        paths[workspace.folder].append(Path(source.name))
    checks = {folder: _LockCheck(workspace, None if all else paths[folder]) for folder, workspace in workspaces.items()}
    findings: dict[str, tuple[Source, list[Diagnostic]]] = {}

    def add(source: Source, diagnostics: Iterable[Diagnostic]) -> None:
        findings.setdefault(source.name, (source, []))[1].extend(diagnostics)

    for source, workspace in held:
        add(source, checks[workspace.folder].of(source))
    for folder, check in checks.items():
        for source, diagnostics in check.of_missed(paths[folder]) if all else ():
            add(source, diagnostics)
        if of_lock := check.of_lock(all=all):
            add(of_lock.source, of_lock.diagnostics)
    return [LockedFindings(source, tuple(diagnostics)) for source, diagnostics in findings.values()]


def lock_issues(path: Path) -> list[str]:
    """Return why a lock should not be signed, a line each: it cannot be read, or its documents differ from it."""
    from quire.library.collect import collect
    from quire.library.document import load

    reading = load_lock(path)
    if reading is None:
        return [f"{path} does not exist: quire lock writes it"]
    if reading.lock is None:
        return [
            f"line {reading.source.position(diagnostic.span.start).line}: {diagnostic.message}"
            for diagnostic in reading.diagnostics
        ]
    sources = []
    for file in collect([str(path.parent)])[0]:
        try:
            sources.append(load(file.path).source)
        except QuireError:
            continue
    findings = locked_findings(sources, all=True)
    return [
        f"{finding.source.name}: {diagnostic.code.id} {diagnostic.message}"
        for finding in findings
        for diagnostic in finding.diagnostics
    ]


class _LockCheck:
    """Compares the documents of one workspace with its lock."""

    def __init__(self, workspace: Workspace, paths: Sequence[Path] | None) -> None:
        """`paths` are the files that are checked; None for all documents of the workspace."""
        self._workspace = workspace
        self._path = lock_path(workspace)
        self._is_part = paths is not None
        self._reading = self._read(paths)
        self._lock = self._reading.lock if self._reading else None
        self._facts = LockFacts.with_lock(workspace, self._lock)
        self._compared: set[str] = set()

    def _read(self, paths: Sequence[Path] | None) -> LockReading | None:
        keys = LockFacts(self._workspace).key_of
        try:
            return load_lock(self._path, None if paths is None else {key for path in paths if (key := keys(path))})
        except Unreadable as error:
            source = Source.of("", relative_to_here(self._path) or str(self._path))
            return LockReading(source, None, (Diagnostic(BAD_LOCK, str(error), NOWHERE, help=_LOCK),))

    def of(self, source: Source) -> Iterator[Diagnostic]:
        """Yield the findings about a document. A lock that cannot be read has a finding of its own."""
        if self._reading is not None and self._lock is None:
            return
        for document in self._facts.documents([Path(source.name)]):
            self._compared.add(document.key)
            yield from self._differences(document)

    def of_missed(self, paths: Sequence[Path]) -> Iterator[tuple[Source, list[Diagnostic]]]:
        """Yield the documents that a search did not find and that the lock or the settings name, with the findings
        about them."""
        if self._reading is not None and self._lock is None:
            return
        locked = set(self._lock.documents) - self._compared if self._lock else ()
        for document in self._facts.documents(self._facts.missed(paths, sorted(locked))):
            self._compared.add(document.key)
            yield document.source, [*document.errors, *self._differences(document)]

    def _differences(self, document: LockableDocument) -> Iterator[Diagnostic]:
        locked = self._lock.documents.get(document.key) if self._lock else None
        if document.plan is None:
            return
        if locked is None:
            what = f"{FILE_NAME} does not exist" if self._lock is None else f"{document.key} is not in {FILE_NAME}"
            yield Diagnostic(NO_LOCK, f"{what}: its permissions were never reviewed", NOWHERE, help=_FIRST)
            return
        facts = self._facts.facts(document)
        if facts is not None and [*document_lines(locked)] == [*document_lines(facts)]:
            return
        from quire.analysis.lock.compare import compare_document  # most documents are as they were locked

        changes = compare_document(document.key, locked, facts, self._facts.tools)
        wider = [change for change in changes if change.direction == "wider"]
        for change in wider:
            message = f"{_BEYOND.get(change.code.id, '')}{_told(change)}"
            # The first step that needs it, if it is a step of the document itself.
            spans = {step.label: step.span for _, step in document.plan.steps()}
            place = next((spans[label] for label in change.steps if label in spans), NOWHERE)
            yield Diagnostic(change.code, message, place, help=_LOCK)
        if changes and not wider:
            listed = "; ".join(_told(change) for change in changes[:5])
            yield Diagnostic(STALE, f"the lock is not up to date: {listed}", NOWHERE, help="quire lock")

    def _changed_tools(self, reading: LockReading) -> list[Diagnostic]:
        """Return the tools that are not as they were locked, as far as they are known without starting a server. They
        do not matter to named documents that may call none."""
        lock = reading.lock
        if lock is None or not lock.tools:
            return []
        if self._is_part and not any(document.may for document in lock.documents.values()):
            return []
        from quire.library.tool_pins import known_pins

        now = known_pins(lock.tools, self._workspace)
        if all(lock.tools[name] == pin for name, pin in now.items()):
            return []
        from quire.analysis.lock.compare import compare_tools

        return _wider(compare_tools(lock, Lock(tools=now)), reading.source)

    def _dearer(self, reading: LockReading) -> list[Diagnostic]:
        """Return the models that cost more now. The price list is loaded only if it is not the one of the lock."""
        lock = reading.lock
        if lock is None or not lock.prices or not _is_other_list(lock.price_source):
            return []
        from quire.analysis.lock.compare import compare_prices

        now = Lock(prices=self._facts.prices_now(lock.prices))
        return _wider(compare_prices(lock, now), reading.source)

    def _tampered(self, text: str) -> str:
        """Return what is wrong with the signature of a lock. A key that is not known here says nothing about the lock,
        because a build has no keys of its own."""
        if not is_signed(text):
            return ""
        from quire.trust.signatures import Verification

        outcome, message = signature_problem(text, load_settings(self._workspace))
        return "" if outcome is Verification.UNTRUSTED else message

    def of_lock(self, *, all: bool) -> LockedFindings | None:
        """Return the findings about the lock itself."""
        reading = self._reading
        if reading is None:
            return None
        if reading.lock is None:
            return LockedFindings(reading.source, reading.diagnostics)
        if message := self._tampered(reading.source.text):
            return LockedFindings(reading.source, (Diagnostic(TAMPERED, message, Span(0, 1)),))
        findings = [*self._changed_tools(reading), *self._dearer(reading)]
        gone = sorted(set(reading.lock.documents) - self._compared) if all else []
        for key in gone:
            message = f"the lock has an entry of {key}, which does not exist any more"
            findings.append(Diagnostic(STALE, message, _line_of(reading.source, key), help="quire lock"))
        return LockedFindings(reading.source, tuple(findings)) if findings else None


def _wider(changes: Iterable[Change], lock: Source) -> list[Diagnostic]:
    """Return the findings about changes that are shown in the lock itself."""
    return [
        Diagnostic(change.code, _told(change), _line_of(lock, change.name), help=_LOCK)
        for change in changes
        if change.direction == "wider"
    ]


def _told(change: Change) -> str:
    from quire.analysis.lock.difference_words import told  # only a difference needs words

    return told(change)


def _is_other_list(source: str) -> bool:
    """Tell whether another version of the price list is installed than the one that a lock was made with."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return "genai-prices" in source and f"genai-prices {version('genai-prices')}" not in source
    except PackageNotFoundError:
        return False


def _line_of(source: Source, name: str) -> Span:
    """Return the key of an entry in the text of a lock."""
    for text in (f"\n  {name}:", f'\n  "{name}":', f"\n    {name}:"):
        at = source.text.find(text)
        if at >= 0:
            return Span(at + 3, at + len(text) - 1)
    return NOWHERE


def lock_path(workspace: Workspace) -> Path:
    return workspace.folder / FILE_NAME


def load_lock(path: Path, named: Collection[str] | None = None) -> LockReading | None:
    """Return the lock in a file; None if there is no file. `named` are the documents whose entries are needed, if these
    are not all. Raises `Unreadable` for one that is not a text."""
    if not path.exists() and not path.is_symlink():
        return None
    return read_lock(read_source(Path(relative_to_here(path) or path), limit=MOST_BYTES), named)


def load_old_lock(path: Path) -> LockReading:
    """Return the lock of a file that the user names. An empty file is an empty lock: the first pull request with a lock
    has nothing to compare with. Raises `Unreadable`."""
    try:
        reading = load_lock(path)
    except Unreadable as error:
        if error.kind != "empty":
            raise
        return LockReading(Source.of("", str(path)), Lock())
    if reading is None:
        raise Unreadable(path, "does not exist")
    return reading


def require_lock(reading: LockReading) -> Lock:
    """Return the lock. Raises `CannotStart` with the first problem and its line if it cannot be read."""
    if reading.lock is not None:
        return reading.lock
    first = reading.diagnostics[0]
    line = reading.source.position(first.span.start).line
    raise CannotStart(f"{reading.source.name}:{line}: {first.code.id} {first.message}; {first.help}")


def save_lock(path: Path, lock: Lock) -> bool:
    """Write the lock, unless the file already says the same; return whether it was written. Raises `CannotStart`."""
    from quire.analysis.lock.file import written

    text = written(lock)
    if len(text.encode()) > MOST_BYTES or text.count("\n") > MOST_FACTS:
        raise CannotStart(
            f"{path} would be larger than a lock can be ({MOST_FACTS:,} lines, {MOST_BYTES:,} bytes): "
            f"lock parts of the workspace, each in a folder with a quire.toml of its own"
        )
    try:
        if path.is_file() and not path.is_symlink() and _unsigned(path.read_bytes()) == text.encode():
            return False  # a signature of it still holds
        mode = path.stat().st_mode & 0o777 if path.is_file() else 0o644
        with written_beside(path, text.encode(), mode) as new:
            new.replace(path)
    except OSError as error:
        raise CannotStart(f"{path} cannot be written: {error.strerror or error}") from None
    return True


def _unsigned(stored: bytes) -> bytes:
    line, _, rest = stored.partition(b"\n")
    return rest if is_signed(line.decode("utf-8", "replace")) else stored


def signature_problem(text: str, settings: Settings) -> tuple[Verification, str]:
    """Return the verdict on the signature of a lock, with the sentence about it; `OK` for a lock without one, because
    no lock has to be signed."""
    from quire.trust.signatures import Verification, verify_text
    from quire.trust.trusted_keys import TrustedKeys

    if not is_signed(text):
        return Verification.OK, ""
    verdict = verify_text(text, "lock", FILE_NAME, TrustedKeys.load(settings), syntax="yaml")
    return verdict.outcome, verdict.message
