"""`quire check`: find and print the problems of documents, in several output formats."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire import formats
from quire.cli.options import named_file, require_text
from quire.cli.stdio import complain, tell, wants_colour, write_exactly
from quire.diagnostics import Diagnostic, Severity, edits_of
from quire.display.diagnostics import FORMATS, Findings, FormatName, printer
from quire.display.visible import visible
from quire.errors import BadConfiguration, CannotStart, NoSuchDocument, Unreadable
from quire.library.check import DocumentCheck
from quire.library.collect import FoundFile, collect, suffix_of
from quire.source import OPEN_TEXTS, Source, Span, decoded, read_source
from quire.wording import counted, did_you_mean, nearest

if TYPE_CHECKING:
    from quire.formats.suppressions import Hidden


@click.command("check")
@click.argument("paths", nargs=-1, metavar="PATH…", callback=require_text)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="full",
    metavar="FORMAT",
    help="full (default), concise, json, github or sarif.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--strict", is_flag=True, help="Fail on warnings and lints as well.")
@click.option("--portable", is_flag=True, help="Fail on Quire-only features.")
@click.option("--locked", is_flag=True, help="Fail on documents that differ from quire.lock.")
@click.option("--fix", is_flag=True, help="Fix what has only one fix, such as a typo. WRITES.")
@click.option("--unsafe", is_flag=True, help="With --fix: also fixes that may change the meaning.")
@click.option("--stdin-name", metavar="NAME", help="With PATH -: the name, which gives format and place.")
@click.option("--explain", metavar="CODE", help="Print the page of a code and exit.")
@click.pass_context
def command(
    context: click.Context,
    paths: tuple[str, ...],
    form: FormatName,
    as_json: bool,
    strict: bool,
    portable: bool,
    locked: bool,
    fix: bool,
    unsafe: bool,
    stdin_name: str | None,
    explain: str | None,
) -> None:
    """Find mistakes in documents before a run.

    PATH is a document, a test, a folder, a quoted glob, a name, or - for stdin; without one, the current folder. With
    --fix, - prints the mended text, and findings go to stderr. Findings go to
    stdout, a summary to stderr. Exit 0: no error, 1: an error, or a finding that stops a run, 2: something could not be
    read.
    """
    if unsafe and not fix:
        raise click.UsageError("--unsafe does nothing without --fix")
    if explain is not None:
        click.echo(_page(explain))
        return
    is_stdin = "-" in paths or stdin_name is not None
    if is_stdin and paths != ("-",):
        raise click.UsageError("- is checked alone, and --stdin-name is for -")
    problems: list[str] = []
    if is_stdin:
        files = [FoundFile(_open_stdin(context, stdin_name, fix, unsafe), named=True)]
    else:
        files, problems = collect([named_file(path) for path in paths] or (".",), tests=True)
    if fix and not is_stdin:
        from quire.cli.fixes import fix_files

        problems += fix_files([file.path for file in files], DocumentCheck().of, unsafe=unsafe)
    checked = _findings(files, DocumentCheck(portable=portable), problems)
    if locked:
        checked = _with_locks(checked, all=not paths)
    form = "json" if as_json else form
    if form == "json" and not checked and problems:
        is_there = any(os.path.lexists(path) for path in paths)
        raise (CannotStart if is_there else NoSuchDocument)("\n".join(problems))
    out = sys.stderr if is_stdin and fix else sys.stdout
    click.echo(printer(form)(checked, wants_colour(out)), nl=False, file=out)
    out.flush()
    for problem in problems:
        complain(problem)
    if checked or not problems:
        tell(_summary(checked))
        if sys.stderr.isatty() and form == "full":
            _say_what_to_do(checked, is_fixed=fix)
    context.exit(2 if problems else _status(checked, strict, portable))


def _open_stdin(context: click.Context, name: str | None, fix: bool, unsafe: bool) -> Path:
    """Read the document on stdin as if an editor had it open under its name, and return that. With `fix`, print it with
    its fixes."""
    from quire.cli.inputs import stdin_bytes

    if name is not None and (Path(name).is_absolute() or ".." in Path(name).parts or not Path(name).name):
        raise click.UsageError(f"--stdin-name {name}: give the path of a file below this folder")
    path, data = Path(name or "stdin.md"), stdin_bytes("the document")
    text = decoded(path, data)
    if name is None:
        path = Path(f"stdin{suffix_of(text)}")
    OPEN_TEXTS[key := os.path.abspath(path)] = source = Source.of(text, str(path))  # noqa: PTH100
    context.call_on_close(lambda: OPEN_TEXTS.pop(key, None))
    if fix and not source.exceeds(formats.most_bytes(path.name)):
        from quire.cli.fixes import fixed_text

        text, changes = fixed_text(text, source, DocumentCheck().of, unsafe)
        for change in changes:
            tell(visible(change))
        OPEN_TEXTS[key] = Source.of(text, str(path))
        write_exactly(text)
    return path


def _findings(files: Sequence[FoundFile], checks: DocumentCheck, problems: list[str]) -> list[Findings]:
    """Return the findings about files; unreadable files are added to the problems."""
    checked: list[Findings] = []
    for file in files:
        try:
            source = read_source(file.path, limit=formats.most_bytes(file.path.name))
            hidden: list[Hidden] = []
            findings = checks.of(source, hidden)
            checked.append(
                Findings(source, findings, tuple((comment.finding, comment.allow.reason) for comment in hidden))
            )
        except Unreadable as error:
            if file.named:
                from quire.library.lookup import with_near_file

                problems.append(str(with_near_file(error)))
                if reading := formats.unread(error):
                    checked.append(Findings(reading.source, reading.diagnostics))
                elif error.kind == "not_utf8":
                    wrong = Diagnostic(formats.invisible.NOT_TEXT, f"the file {error.reason}", Span(0, 0))
                    checked.append(Findings(Source.of("", str(error.path)), (wrong,)))
        except BadConfiguration as error:
            if str(error) not in problems:
                problems.append(str(error))
        except CannotStart as error:
            if file.named:
                problems.append(str(error))
    return checked


def _say_what_to_do(checked: Sequence[Findings], *, is_fixed: bool) -> None:
    """Print on a terminal how to continue after findings."""
    order = list(Severity)
    worst = min(_all(checked), key=lambda finding: order.index(finding.severity), default=None)
    if worst is not None:
        tell(f"the meaning of a code: quire check --explain {worst.code.id}")
        if not is_fixed and any(edits_of(file.source, finding) for file in checked for finding in file.diagnostics):
            tell("some of this can be mended: quire check --fix")


def _with_locks(checked: Sequence[Findings], *, all: bool) -> list[Findings]:
    """Return the findings with those about documents that differ from their locks."""
    from quire.library.lock_check import locked_findings

    locked = {lock.source.name: lock for lock in locked_findings([file.source for file in checked], all=all)}
    joined = [
        Findings(file.source, (*file.diagnostics, *locked.pop(file.source.name).diagnostics), file.hidden)
        if file.source.name in locked
        else file
        for file in checked
    ]
    return [*joined, *(Findings(lock.source, lock.diagnostics) for lock in locked.values())]


def _page(id: str) -> str:
    from quire.library.check import all_codes

    codes = {code.id: code for code in all_codes()}
    code = codes.get(id.upper()) or next((code for code in codes.values() if code.name == id.lower()), None)
    if code is None:
        close = nearest(id.upper(), codes) or nearest(id.lower(), [code.name for code in codes.values()])
        raise CannotStart(f"unknown code {id}" + did_you_mean(close, lead="; "))
    return f"{code.id} {code.name} ({code.severity.value})\n\n{code.explanation}"


def _status(checked: Sequence[Findings], strict: bool, portable: bool) -> int:
    failing = {Severity.ERROR, Severity.WARNING, Severity.LINT} if strict else {Severity.ERROR}
    return int(
        any(
            finding.stops or finding.severity in failing or (portable and not finding.code.portable)
            for finding in _all(checked)
        )
    )


def _all(checked: Sequence[Findings]) -> Iterator[Diagnostic]:
    return (finding for file in checked for finding in file.diagnostics)


def _summary(checked: Sequence[Findings]) -> str:
    count = Counter(finding.severity for finding in _all(checked))
    parts = [counted(count[severity], severity.value) for severity in Severity if count[severity]]
    files = counted(len(checked), "file")
    hidden = sum(len(file.hidden) for file in checked)
    stops = sum(finding.stops for finding in _all(checked))
    further = [f"{stops} would stop a run"] * bool(stops) + [f"{hidden} allowed by comments"] * bool(hidden)
    return f"{', '.join(parts) or 'nothing found'} in {files}" + (f" ({', '.join(further)})" if further else "")
