"""Apply the fixes that come with findings to their documents, and print the changes."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from pathlib import Path

from quire import formats
from quire.cli.stdio import tell
from quire.diagnostics import Diagnostic, Edit, Fix, fix_of
from quire.display.visible import visible
from quire.errors import CannotStart, QuireError, Refused, Unreadable
from quire.source import Source, file_identity, normalise, read_source, replace_file

Check = Callable[[Source], tuple[Diagnostic, ...]]
_ROUNDS = 10
"""Most rounds of fixing. A fix can reveal new findings: a step that can now be read has keys of its own."""
_LINE = re.compile(r"[^\r\n]*+(?:\r\n|\r|\n|\Z)")


def fix_files(paths: Iterable[Path], check: Check, *, unsafe: bool = False) -> list[str]:
    """Fix each file and print the changes on stderr; fixes that are not safe only with `unsafe`. Return the files that
    could not be written, each with the reason."""
    problems = []
    for path in paths:
        try:
            _fix_file(path, check, unsafe)
        except (Unreadable, Refused) as error:
            problems.append(str(error))
        except CannotStart:
            continue  # the check that comes next reports it
    return problems


def _fix_file(path: Path, check: Check, unsafe: bool) -> None:
    try:
        source, before = read_source(path, limit=formats.most_bytes(path.name)), file_identity(path)
    except QuireError:
        return  # likewise
    text = path.read_bytes().decode("utf-8")
    if normalise(text) != source.text:
        raise Unreadable(path, "was changed while it was read")
    text, changes = fixed_text(text, source, check, unsafe)
    if not changes:
        return
    _refuse(path, before[-1])
    data = text.encode("utf-8")
    if len(data) > (most := formats.most_bytes(path.name)):
        raise Unreadable(path, f"would be larger than {most:,} bytes with its fixes")
    replace_file(path, data, before, "fixed; check it again")
    for change in changes:
        tell(visible(change))
    _warn_of_signature(path, source)


def fixed_text(text: str, source: Source, check: Check, unsafe: bool) -> tuple[str, list[str]]:
    """Return the text as it is stored with its fixes, and a line for each change."""
    changes = list[str]()
    for _ in range(_ROUNDS):
        fixes = list(chosen_fixes(source, check(source), unsafe=unsafe))
        if not fixes:
            break
        for fix in fixes:
            changes += [f"{source.name}:{source.position(at).line}: {change}" for at, change in _changes(fix)]
        text = edited(text, source, [edit for fix in fixes for edit in fix.edits])
        source = Source.of(text, source.name)
    return text, changes


def chosen_fixes(source: Source, findings: Iterable[Diagnostic], *, unsafe: bool = False) -> Iterator[Fix]:
    """Yield the fixes that can be made together. Of fixes that overlap, or that insert at one place, only the first is
    used: the next round finds the others."""
    taken: list[tuple[int, int]] = []
    for diagnostic in findings:
        fix = fix_of(source, diagnostic)
        if fix and (fix.safe or unsafe) and not any(_collides(edit, taken) for edit in fix.edits):
            for edit in fix.edits:
                insort(taken, (edit.span.start, edit.span.end))
            yield fix


def _collides(edit: Edit, taken: list[tuple[int, int]]) -> bool:
    """Tell whether an edit overlaps with one of the places, which are in order and do not overlap."""
    start, end = edit.span.start, edit.span.end
    at = bisect_left(taken, (start, end))
    near = taken[max(at - 1, 0) : at + 1]
    return any((start < last and first < end) or start == first or end == last for first, last in near)


def edited(text: str, source: Source, edits: Iterable[Edit]) -> str:
    """Apply edits, which do not overlap, to the text as it is stored. Its byte order mark is kept, and new lines end as
    its first line does."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    lines = _LINE.findall(text, len(mark))
    starts = list(accumulate(map(len, lines), initial=len(mark)))
    ending = lines[0][len(lines[0].rstrip("\r\n")) :] or "\n"
    parts, done = list[str](), 0
    for edit in sorted(edits, key=lambda edit: edit.span.start):
        first, last = source.position(edit.span.start), source.position(edit.span.end)
        parts += [text[done : starts[first.line - 1] + first.column - 1], edit.new.replace("\n", ending)]
        done = starts[last.line - 1] + last.column - 1
    return "".join([*parts, text[done:]])


def _changes(fix: Fix) -> Iterator[tuple[int, str]]:
    """Yield each edit in one line, and its offset. Edits that insert, remove or have several lines are told once, by
    the title of the fix."""
    is_told = False
    for edit in sorted(fix.edits, key=lambda edit: not edit.old):
        old, new = edit.old.strip(), edit.new.strip()
        if old and new and "\n" not in old + new:
            yield edit.span.start, f"{old} → {new}"
        elif not is_told:
            is_told = True
            yield edit.span.start, fix.title


def _refuse(path: Path, mode: int) -> None:
    from quire.trust.sign_file import SYSTEM

    if path.resolve().is_relative_to(SYSTEM):
        raise Refused(f"{path} is a part of Quire and is never changed; copy it into your project's .ai folder first")
    if path.is_symlink():
        raise Unreadable(path, "is a link; fix the file that it leads to, under its own name")
    if not mode & 0o222:
        raise Unreadable(path, "is read-only, so its fixes were not written")


def _warn_of_signature(path: Path, source: Source) -> None:
    from quire.trust.signature_line import looks_signed

    if looks_signed(source.text, "yaml" if path.suffix in (".yaml", ".yml") else "markdown"):
        message = f"{path} was signed, and its signature is void now: quire sign {path} signs it again"
        tell(f"quire: warning: {visible(message)}")
