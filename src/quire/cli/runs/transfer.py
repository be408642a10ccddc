"""`quire runs export`, `share`, `import`, `verify`, `backup`: runs as files or links, and the check of stored runs.

`quire runs why` explains a step: its values, requests, answers and cost. `quire runs diff` compares two runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from quire.cli.options import require_text
from quire.cli.shell_completion import complete_run
from quire.cli.stdio import perform, tell, with_runtime, write_json, write_lines
from quire.errors import CannotStart
from quire.loopback import is_loopback_name
from quire.units import seconds_of
from quire.wording import counted

if TYPE_CHECKING:
    from quire.runs.imports import Verdict
    from quire.runs.runtime import Runtime


FINDINGS = 1


@click.command("export")
@click.argument("runs", metavar="RUN|last…", nargs=-1, shell_complete=complete_run, callback=require_text)
@click.option("-o", "--out", metavar="FILE", type=click.Path(path_type=Path), help="A file; else standard output.")
@click.option("--otlp", is_flag=True, help="Send the traces of RUNs again.")
@click.option("--since", metavar="AGE", help="With --otlp: all runs that were started since, as in 1d.")
@click.option("--html", metavar="FILE", type=click.Path(path_type=Path), help="A page to look at, without prompts.")
@click.option("--full", is_flag=True, help="With --html: cut no text, and leave out no row.")
@click.option("--force", is_flag=True, help="Overwrite the FILE where it exists.")
def export_command(
    runs: tuple[str, ...], out: Path | None, otlp: bool, since: str | None, html: Path | None, full: bool, force: bool
) -> None:
    """Print a run as JSON Lines: its pins, journal, events and result; or write it as one HTML file; or send its trace.

    Exports contain no keys or other secrets; files do contain inputs, prompts and replies.
    """
    if otlp:
        if out or html or full or force or bool(runs) == bool(since):
            raise click.UsageError("--otlp takes RUNs or --since AGE, and no other option")
        from quire.runs.traces import export_traces

        if since and seconds_of(since) is None:
            raise click.UsageError(f"--since {since}: write a number and s, m, h or d: 1d")
        tell(with_runtime(lambda runtime: export_traces(runtime, runs, seconds_of(since or ""))))
        return
    if len(runs) != 1 or since:
        raise click.UsageError("name one RUN; several, or --since AGE, need --otlp")
    run = runs[0]
    if out is not None and html is not None:
        raise click.UsageError("--out and --html are two files: write one at a time")
    for file in filter(None, (out, html)):
        if not force and file.is_file():
            raise CannotStart(f"{file} exists: name another file, or say --force")
    if html is not None:
        from quire.cli.output import write_report
        from quire.operations.run_copies import export_run

        data = perform(export_run, {"run": run, "as": "html", "full": full}).data
        write_report(str(html), data.decode())
        tell(f"wrote {html}: {len(data):,} bytes")
        return
    with_runtime(lambda runtime: _export(runtime, run, out))


async def _export(runtime: Runtime, name: str, out: Path | None) -> None:
    from quire.display.visible import escaped
    from quire.runs.export import export_lines, write_export

    run = await runtime.find(name)
    lines = await export_lines(runtime, run)
    if out is None:
        # Write bytes: the hashes are of UTF-8 with this line end, for any encoding of the terminal.
        stream = sys.stdout.buffer
        shown = escaped if sys.stdout.isatty() else str  # a terminal gets no bytes that it would obey
        for line in lines:
            stream.write(f"{shown(line)}\n".encode())
        stream.flush()
        return
    size = write_export(lines, out)
    tell(f"wrote {out}: {len(lines):,} lines, {size:,} bytes")


@click.command("share")
@click.argument("run", metavar="[RUN|last]", required=False, shell_complete=complete_run, callback=require_text)
@click.option("--days", metavar="N", type=click.IntRange(1, 90), default=7, show_default=True, help="Until it expires.")
@click.option("--list", "lists", is_flag=True, help="List the links of the RUN that have not expired.")
@click.option("--revoke", metavar="ID", help="Close a link.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def share_command(run: str | None, days: int, lists: bool, revoke: str | None, as_json: bool) -> None:
    """Print a link with which another person reads one run: head, tree, replies and result, but no prompts.

    The server of this workspace has to run, and the person has to reach it. `quire runs export RUN --html FILE` writes
    a file, which needs no server.
    """
    from quire.operations.run_copies import list_shares, revoke_share, share_run

    if run is None and revoke is None:
        raise click.UsageError("name a RUN, or --revoke ID")
    if revoke is not None:
        data = perform(revoke_share, {"share": revoke})
        lines = [f"revoked {revoke}"]
    elif lists:
        data = perform(list_shares, {"run": run})["items"]
        lines = [f"{share['id']}  until {_clock(share)}  by {share['by']}" for share in data]
        tell(f"{counted(len(data), 'link')} to run {run}")
    else:
        url = with_runtime(_server)
        share = perform(share_run, {"run": run, "days": days})
        data, lines = {**share, "link": f"{url}{share['path']}"}, [f"{url}{share['path']}"]
        tell(f"until {_clock(share)}; to close it: quire runs share --revoke {share['id']}")
        if is_loopback_name(urlsplit(url).hostname or ""):
            tell(f"only this machine can open it; a file to send: quire runs export {share['run']} --html FILE")
    write_json(data) if as_json else write_lines(lines)


def _clock(share: Mapping[str, Any]) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(share["expires_at"]))


async def _server(runtime: Runtime) -> str:
    from quire.server.address import running_url

    return running_url(runtime.settings)


@click.command("import")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def import_command(file: Path, as_json: bool) -> None:
    """Import an exported run under its own id, after verifying it.

    It can be shown and forked, but not resumed or answered; a fork of it runs with your grants and your model.
    """
    with_runtime(lambda runtime: _import(runtime, file, as_json))


async def _import(runtime: Runtime, file: Path, as_json: bool) -> None:
    from quire.display.copies_json import imported_data
    from quire.runs.imports import import_run, read_export

    exported = read_export(file)
    run = await import_run(runtime, exported)
    if as_json:
        write_json(imported_data(exported))
        return
    click.echo(run)
    tell(f"to see it: quire runs {run}")


@click.command("verify")
@click.argument("what", metavar="RUN|FILE")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def verify_command(context: click.Context, what: str, as_json: bool) -> None:
    """Check that a stored or an exported run is as it was written.

    RUN: its seals are yours, and its document with its records replays. FILE: the hashes fit, and the replay gives the
    stated result. A forger can make a whole new file: compare the head hash with one that you had from elsewhere. Exit
    1 when something is not as it was written.
    """
    file = Path(what)
    if file.exists() or "/" in what or file.suffix:
        context.exit(with_runtime(lambda runtime: _verify_file(runtime, file, as_json)))
    context.exit(with_runtime(lambda runtime: _verify_run(runtime, what, as_json)))


async def _verify_run(runtime: Runtime, name: str, as_json: bool) -> int:
    from quire.runs.imports import verify_run

    verdict = await verify_run(runtime, await runtime.find(name))
    if not _is_printed(verdict, "", as_json):
        tell(f"run {verdict.run} is as you wrote it: {verdict.effects:,} effects, sealed and replayed")
    return 0 if verdict.ok else FINDINGS


async def _verify_file(runtime: Runtime, file: Path, as_json: bool) -> int:
    from quire.runs.imports import read_export, verify_export

    verdict = await verify_export(lambda: read_export(file), str(file), runtime.settings)
    exported = verdict.exported
    if not _is_printed(verdict, str(file), as_json) and exported is not None:
        click.echo(exported.head)
        click.echo(
            f"run {verdict.run} is as it was written: {exported.lines:,} lines, "
            f"{verdict.effects:,} effects, replayed to the same result",
            err=True,
        )
    return 0 if verdict.ok else FINDINGS


def _is_printed(verdict: Verdict, file: str, as_json: bool) -> bool:
    """Print a verdict as JSON, or its problem. Return False if there is a success to print."""
    from quire.display.copies_json import verdict_data
    from quire.display.text import visible

    if as_json:
        write_json(verdict_data(verdict, file))
    elif not verdict.ok:
        tell(visible(verdict.problem))
    return as_json or not verdict.ok


@click.command("backup")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def backup_command(file: Path, as_json: bool) -> None:
    """Copy all runs of this folder to a file, as they are at one moment.

    To restore the copy, put it in the place of .quire/quire.db. An existing file is never overwritten.
    """
    with_runtime(lambda runtime: _backup(runtime, file, as_json))


async def _backup(runtime: Runtime, file: Path, as_json: bool) -> None:

    size = await runtime.store.backup(file)
    write_json({"file": str(file), "bytes": size}) if as_json else tell(f"wrote {file}: {size:,} bytes")


@click.command("why")
@click.argument("run", metavar="RUN|last", shell_complete=complete_run, callback=require_text)
@click.argument("step", metavar="STEP")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def why_command(run: str, step: str, as_json: bool) -> None:
    """Explain a step: the values it read, the prompt, the reply, tool calls, retries, time and cost.

    STEP is a label, or the path of an item or of an effect as `quire runs RUN --journal` shows it.
    """
    with_runtime(lambda runtime: _why(runtime, run, step, as_json))


async def _why(runtime: Runtime, name: str, step: str, as_json: bool) -> None:
    from quire.display.why import why_data, why_page
    from quire.runs.why import traced, why

    story = why(await traced(runtime, await runtime.find(name)), step)
    write_json(why_data(story)) if as_json else write_lines(why_page(story))


@click.command("diff")
@click.argument("a", metavar="A", shell_complete=complete_run, callback=require_text)
@click.argument("b", metavar="B", shell_complete=complete_run, callback=require_text)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def diff_command(a: str, b: str, as_json: bool) -> None:
    """Compare two runs step by step: values read, requests, answers and cost.

    A and B are ids, beginnings of ids, or `last`. Steps are compared by their place in the document.
    """
    with_runtime(lambda runtime: _diff(runtime, a, b, as_json))


async def _diff(runtime: Runtime, a: str, b: str, as_json: bool) -> None:
    from quire.display.why import diff_data, diff_page
    from quire.runs.diff import diff
    from quire.runs.why import traced

    of_a, of_b = [await traced(runtime, await runtime.find(name)) for name in (a, b)]
    pairs = diff(of_a, of_b)
    write_json(diff_data(of_a, of_b, pairs)) if as_json else write_lines(diff_page(of_a, of_b, pairs))
