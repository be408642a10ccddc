"""Snapshots: values that a test keeps beside itself, in `x.test.snap.yaml`, and compares with.

A value is kept by the name of its case and by its place among the expectations. A new one is added, a different one
fails the case until the user says `--update`, and one that no case has any more fails a run of the whole file. Nothing
is written where the variable `CI` is set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.diagnostics import Diagnostic, Severity
from quire.errors import CannotStart, Unreadable
from quire.formats.test import codes
from quire.source import Source, read_source, written_beside
from quire.testing.case_results import CaseResult, Outcome, SnapshotChange
from quire.testing.matchers import Mismatch, same
from quire.values import clean

if TYPE_CHECKING:
    from quire.source import Span
    from quire.values import Value

ENDING = ".snap.yaml"
MAX_BYTES = 5_000_000
_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))
_HEAD = "# Values that the test beside this file expects. Written by `quire test --update`.\n"


class SnapshotMode(Struct, frozen=True):
    """How a run treats snapshots."""

    update: bool = False
    ci: bool = False
    """True where the variable `CI` is set: nothing is written, and a new snapshot fails."""

    @classmethod
    def of(cls, environ: Mapping[str, str], *, update: bool) -> SnapshotMode:
        """Return the mode of this process. Raises `CannotStart` for an update where nothing is written."""
        ci = environ.get("CI", "").lower() not in ("", "0", "false")
        if ci and update:
            raise CannotStart("--update writes files, and CI is set: update snapshots on your own machine")
        return cls(update, ci)


class CaseSnapshots:
    """The snapshots of one case. `seen` are the values that its expectations have compared, by place."""

    def __init__(self, stored: Mapping[str, Value], mode: SnapshotMode) -> None:
        self.seen: dict[str, Value] = {}
        self._kept = stored
        self._mode = mode

    def __call__(self, place: str, value: Value, span: Span) -> Mismatch | None:
        value = _cleaned(value)
        place = self._free(place)
        self.seen[place] = value
        if place not in self._kept:
            if not self._mode.ci:
                return None
            message = "the snapshot does not exist yet: run `quire test` on your own machine, and commit the file"
            return Mismatch(message, span, code=codes.SNAPSHOT_NEW.id)
        stored = self._kept[place]
        if same(stored, value) or self._mode.update:
            return None
        message = "it is not the snapshot any more; if it is right so, run `quire test --update`"
        return Mismatch(message, span, (), as_text(stored), as_text(value), codes.SNAPSHOT_DIFFERS.id)

    def _free(self, place: str) -> str:
        free, number = place, 1
        while free in self.seen:
            number += 1
            free = f"{place} {number}"
        return free


class SnapshotFile(Struct, frozen=True):
    """The snapshots of one test file, as they are kept."""

    path: Path
    cases: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)

    @classmethod
    def beside(cls, test: str) -> SnapshotFile:
        """Read the snapshots of a test file; there need not be any. Raises `CannotStart`."""
        path = snapshot_path(test)
        if not path.is_file():
            return cls(path)
        try:
            source = read_source(path, limit=MAX_BYTES)
        except Unreadable as error:
            if error.kind == "empty":
                return cls(path)
            raise
        value = read_value(source)
        if not isinstance(value, Mapping):
            raise CannotStart(f"{source.name}:1: a snapshot file is a mapping of cases")
        return cls(path, {str(name): dict(places) for name, places in value.items() if isinstance(places, Mapping)})

    def of(self, case: str, mode: SnapshotMode) -> CaseSnapshots:
        return CaseSnapshots(self.cases.get(case, {}), mode)

    def settle(self, results: Sequence[CaseResult], mode: SnapshotMode, *, complete: bool) -> list[SnapshotChange]:
        """Write new entries, and with `--update` changed and unused ones, and return them.

        `complete` is true if all cases of the file ran: only then a snapshot can be unused.
        """
        updated: dict[str, dict[str, Value]] = {name: dict(places) for name, places in self.cases.items()}
        changes: list[SnapshotChange] = []
        for result in results:
            if result.failed:
                continue
            for place, value in result.snapshots.items():
                before = self.cases.get(result.name, {}).get(place)
                is_kept = place in self.cases.get(result.name, {})
                if is_kept and (same(before, value) or not mode.update):
                    continue
                old = as_text(before) if is_kept else None
                changes.append(SnapshotChange(result.name, place, old, as_text(value)))
                updated.setdefault(result.name, {})[place] = value
        if mode.update and complete:
            for name, place in self.unused(results):
                changes.append(SnapshotChange(name, place, as_text(updated[name].pop(place)), None))
        cases: dict[str, Value] = {name: places for name, places in updated.items() if places}
        if changes and not mode.ci and cases:
            write_beside(self.path, _HEAD + as_text(cases))
        elif changes and not mode.ci:
            self.path.unlink(missing_ok=True)
        return changes

    def unused(self, results: Iterable[CaseResult]) -> list[tuple[str, str]]:
        """Return the snapshots, by case and place, that no case of a complete run compared."""
        listed = list(results)
        compared = {(result.name, place) for result in listed for place in result.snapshots}
        unsure = {result.name for result in listed if result.outcome is not Outcome.PASSED}
        return [
            (name, place)
            for name, places in self.cases.items()
            for place in places
            if (name, place) not in compared and name not in unsure
        ]


def snapshot_path(test: str) -> Path:
    """Return the file with the snapshots of a test file."""
    return Path(test.removesuffix(".yaml") + ENDING)


def unused_finding(name: str, place: str, path: Path, where: Span) -> Diagnostic:
    """Return the finding about a snapshot that no case compares."""
    message = f"{path.name} keeps {place} of the case {name!r}, and no case compares it"
    return Diagnostic(codes.SNAPSHOT_UNREFERENCED, message, where, "", "quire test --update removes it")


def as_text(value: Value) -> str:
    """Return a value as YAML that a person can read and compare."""
    import yaml

    text: str = yaml.dump(
        value, Dumper=_dumper(), allow_unicode=True, sort_keys=False, width=1_000_000, default_flow_style=False
    )
    return text.removesuffix("...\n")


def _dumper() -> type[object]:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes texts of several lines as blocks, and never uses aliases."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = "|" if "\n" in value else '"' if _is_ambiguous(value) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return Dumper


def _is_ambiguous(value: str) -> bool:
    """Tell whether a text would be something else if it stood without quotes, for any reader of YAML."""
    return not value or not value[0].isalpha() or value[-1] in " :" or value.lower() in _WORDS


def write_beside(path: Path, text: str) -> None:
    """Replace a file that belongs to a test. Raises `CannotStart`."""
    try:
        with written_beside(path, text.encode(), 0o644) as new:
            new.replace(path)
    except OSError as error:
        raise CannotStart(f"{path} cannot be written: {error.strerror or error}") from None


def read_value(source: Source) -> Value:
    """Return the value of a file that belongs to a test. Raises `CannotStart`."""
    from quire.formats.yaml import literal, read_yaml

    reading = read_yaml(source)
    errors = [finding for finding in reading.diagnostics if finding.severity is Severity.ERROR]
    value = literal(reading.documents[0], errors) if reading.documents and not errors else {}
    if errors:
        raise CannotStart(f"{source.name}:{source.position(errors[0].span.start).line}: {errors[0].message}")
    return value


def _cleaned(value: Value) -> Value:
    """Return a value without characters that YAML cannot keep."""
    if isinstance(value, str):
        return "".join(sign if sign in "\n\t" or sign.isprintable() else f"\\x{ord(sign):02x}" for sign in clean(value))
    if isinstance(value, Mapping):
        return {str(_cleaned(name)): _cleaned(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(part) for part in value]
    return value
