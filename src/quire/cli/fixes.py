"""Apply the fixes that come with findings to their documents, and print the changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click

from quire import formats
from quire.diagnostics import Diagnostic, Edit, edits_of
from quire.display.visible import visible
from quire.errors import CannotStart, QuireError, Refused, Unreadable
from quire.source import Source, file_identity, normalise, read_source, replace_file

Check = Callable[[Source], tuple[Diagnostic, ...]]
_ROUNDS = 10
"""Most rounds of fixing. A fix can reveal new findings: a step that can now be read has keys of its own."""
_LINE = re.compile(r"[^\r\n]*+(?:\r\n|\r|\n|\Z)")


def fix_files(paths: Iterable[Path], check: Check) -> list[str]:
    """Fix each file and print the changes on stderr. Return the files that could not be written, each with the
    reason."""
    problems = []
    for path in paths:
        try:
            _fix_file(path, check)
        except (Unreadable, Refused) as error:
            problems.append(str(error))
        except CannotStart:
            continue  # the check that comes next reports it
    return problems


def _fix_file(path: Path, check: Check) -> None:
    try:
        source, before = read_source(path, limit=formats.most_bytes(path.name)), file_identity(path)
    except QuireError:
        return  # likewise
    text, changes = path.read_bytes().decode("utf-8"), list[str]()
    if normalise(text) != source.text:
        raise Unreadable(path, "was changed while it was read")
    for _ in range(_ROUNDS):
        edits = list(chosen_edits(source, check(source)))
        if not edits:
            break
        changes += [f"{path}:{source.position(edit.span.start).line}: {_change(edit)}" for edit in edits]
        text = edited(text, source, edits)
        source = Source.of(text, source.name)
    if not changes:
        return
    _refuse(path, before[-1])
    data = text.encode("utf-8")
    if len(data) > (most := formats.most_bytes(path.name)):
        raise Unreadable(path, f"would be larger than {most:,} bytes with its fixes")
    replace_file(path, data, before, "fixed; check it again")
    for change in changes:
        click.echo(visible(change), err=True)
    _warn_of_signature(path, source)


def chosen_edits(source: Source, found: Iterable[Diagnostic]) -> Iterator[Edit]:
    """Return the edits of all fixes in text order. Of overlapping fixes only the first is used."""
    taken: dict[tuple[int, int], Edit] = {}
    for diagnostic in found:
        fix = edits_of(source, diagnostic)
        if not any(edit.span.start < end and start < edit.span.end for edit in fix for start, end in taken):
            taken |= {(edit.span.start, edit.span.end): edit for edit in fix}
    return (taken[place] for place in sorted(taken))


def edited(text: str, source: Source, edits: Iterable[Edit]) -> str:
    """Apply the edits to the text as it is stored, keeping its byte order mark and line ends."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    lines = _LINE.findall(text, len(mark))
    for edit in reversed(list(edits)):
        at = source.position(edit.span.start)
        line, column = lines[at.line - 1], at.column - 1
        lines[at.line - 1] = line[:column] + edit.new + line[column + len(edit.old) :]
    return mark + "".join(lines)


def _change(edit: Edit) -> str:
    return f"{edit.old.strip()} → {edit.new.strip()}"


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
        click.echo(f"quire: warning: {visible(message)}", err=True)
