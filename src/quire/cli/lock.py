"""`quire lock`: record the permissions and costs of the documents of a workspace, and show changes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.cli.options import named_file, require_text
from quire.cli.stdio import complain, tell, write_json, write_lines, write_text
from quire.display.visible import visible
from quire.errors import Unreadable
from quire.wording import counted, cut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quire.analysis.lock.compare import Change
    from quire.analysis.lock.file import Lock, LockedTool
    from quire.errors import ToolChanged
    from quire.library.lock_facts import LockableDocument, LockFacts
    from quire.workspace.locate import Workspace

_LONGEST_TOLD = 300
_FORMATS = ("terminal", "markdown", "json")


@click.command("lock")
@click.argument("paths", nargs=-1, metavar="PATH…", callback=require_text)
@click.option("--diff", "old", metavar="OLD", help="Compare the documents with a lock instead; writes nothing.")
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), default="terminal", show_default=True, help="How to print --diff."
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--no-tools", is_flag=True, help="Start no MCP server: keep the tools as they are in the lock.")
@click.pass_context
def command(
    context: click.Context, paths: tuple[str, ...], old: str | None, form: str, as_json: bool, no_tools: bool
) -> None:
    """Write quire.lock: permissions, approvals and the highest cost of each document.

    PATH is a document, a name or a folder; without one, all documents. MCP servers that you have agreed to are started
    to pin their tools. Exit 1 when a document has errors: its entry stays as it was.
    """
    from quire.formats import sniff
    from quire.library.collect import collect
    from quire.library.lock_check import load_lock, lock_path
    from quire.library.lock_facts import LockFacts
    from quire.workspace.locate import find_workspace

    if (form != "terminal" or as_json) and old is None:
        raise click.UsageError("--format and --json are for --diff", context)
    workspace = find_workspace(Path.cwd())
    collected, problems = collect([named_file(path) for path in paths] or (str(workspace.folder),))
    problems += [f"{file.path} does not exist" for file in collected if not file.path.exists()]
    for problem in problems:
        complain(problem)
    if problems and paths and old is None:
        context.exit(2)
    file = lock_path(workspace)
    try:
        reading = load_lock(file)
    except Unreadable as error:
        reading = None
        complain(f"{error}; it is written anew" if old is None else str(error))
    locked = reading.lock if reading else None
    # A search finds knowledge too, which documents read and nothing runs.
    files = [
        file.path
        for file in collected
        if str(file.path) in paths or sniff(str(file.path.absolute()), "") != "knowledge"
    ]
    if old is not None:
        status = _show(old, "json" if as_json else form, LockFacts.with_lock(workspace, locked), files, all=not paths)
        context.exit(2 if problems else status)
    if not paths:
        files += LockFacts(workspace).missed(files, locked.documents if locked else ())
    if reading is not None and locked is None:
        complain(f"{file.name} could not be read ({reading.diagnostics[0].message}); it is written anew")
    status = _write(workspace, locked, files, partly=bool(paths), no_tools=no_tools)
    context.exit(2 if problems else status)


def _write(workspace: Workspace, locked: Lock | None, files: Sequence[Path], *, partly: bool, no_tools: bool) -> int:
    from msgspec.structs import replace

    from quire.analysis.lock.compare import compare
    from quire.analysis.lock.file import Lock, kept_entries
    from quire.display.lock_diff import diff_lines, diff_summary
    from quire.library.lock_check import lock_path, save_lock
    from quire.library.lock_facts import LockFacts, effect_classes

    before = locked or Lock()
    facts = LockFacts(workspace, before.tools)
    documents = list(facts.documents(files))
    _say_unreadable(facts)
    if partly and facts.unreadable and not documents:
        return 2
    new = facts.lock(documents)
    pins = _pins(workspace, before, new, no_tools=no_tools)
    if effect_classes(pins) != effect_classes(before.tools):
        new = LockFacts(workspace, pins).lock(documents)  # the classes of effects are facts too
    new = replace(new, tools=pins)
    broken = {document.key for document in documents if document.plan is None}
    if partly or broken or facts.unreadable:
        updated = _updated(before, documents) if partly else [*before.documents, *new.documents]
        new = kept_entries(before, new, set(updated) - broken - _unread(before, facts))
    file = lock_path(workspace)
    save_lock(file, new)
    changes = compare(before, new) if locked is not None else ()
    write_text(f"{file.name}\n")
    for line in diff_lines(changes, new.assumed):
        tell(line)
    for note in facts.old_prices():
        complain(note)
    for key in sorted(broken):
        state = "its entry stays as it was" if key in new.documents else "it is not in the lock"
        complain(f"{key} has errors, and {state}: quire check {key}")
    summary = f"; {diff_summary(changes)}" if locked is not None else ""
    tell(f"{counted(len(new.documents), 'document')} locked{summary}")
    return 2 if facts.unreadable else 1 if broken else 0


def _say_unreadable(facts: LockFacts) -> None:
    for problem in facts.unreadable.values():
        complain(problem)


def _unread(lock: Lock, facts: LockFacts) -> set[str]:
    """Return the entries of files that could not be read."""
    return {key for key in lock.documents if key.partition("#")[0] in facts.unreadable}


def _pins(workspace: Workspace, before: Lock, new: Lock, *, no_tools: bool) -> dict[str, LockedTool]:
    """Return the pins of the tools that documents may call, and say which servers were not asked."""
    from quire.library.tool_pins import needed_pins, python_pins
    from quire.workspace.configuration import load_settings

    settings = load_settings(workspace)
    listed = python_pins(settings)
    servers = sorted({name for document in new.documents.values() for name in document.servers})
    if servers and not no_tools:
        import asyncio

        from quire.runs.connections import ask_servers

        answers = asyncio.run(ask_servers(settings, servers))
        listed |= answers.pins
        for name, why in answers.not_asked.items():
            complain(f"the server {name} was not asked, and its tools keep their pins: {why}")
    elif servers:
        complain(f"not asked, as --no-tools says: {', '.join(servers)}")
    return needed_pins(new.documents.values(), listed, before.tools)


def _updated(before: Lock, documents: Sequence[LockableDocument]) -> list[str]:
    """Return the keys of the documents, and of those that the lock has of the same files."""
    files = {document.key.partition("#")[0] for document in documents}
    return [
        *(document.key for document in documents),
        *(key for key in before.documents if key.partition("#")[0] in files),
    ]


def _show(old: str, form: str, facts: LockFacts, files: Sequence[Path], *, all: bool) -> int:
    from quire.analysis.lock.compare import compare
    from quire.display.lock_diff import NOTHING, diff_data, diff_lines, diff_markdown, diff_summary
    from quire.library.lock_check import load_old_lock, require_lock

    before = require_lock(load_old_lock(Path(old)))
    further = facts.missed(files, before.documents) if all else []
    documents = list(facts.documents([*files, *further]))
    _say_unreadable(facts)
    new = facts.lock(documents)
    changes: tuple[Change, ...] = compare(before, new)
    broken = {document.key for document in documents if document.plan is None}
    compared = {*(before.documents if all else ()), *_updated(before, documents), ""} - broken - _unread(before, facts)
    changes = tuple(change for change in changes if change.document in compared)
    for key in sorted(broken):
        complain(f"{key} has errors and cannot be compared: quire check {key}")
    not_compared = sorted({*broken, *facts.unreadable})
    if form == "json":
        write_json(diff_data(changes, new.assumed, not_compared))
    elif form == "markdown":
        write_text(diff_markdown(changes, new.assumed, not_compared))
    else:
        write_lines(diff_lines(changes, new.assumed))
        sys.stdout.flush()
        if changes or not not_compared:
            tell(diff_summary(changes) if changes else NOTHING)
    return 2 if facts.unreadable else 1 if broken else 0


def lock_changed_tools(changed: ToolChanged) -> bool:
    """Show tools that are not those that were locked, as they are now, and ask whether they are locked so."""
    import asyncio

    from msgspec.structs import replace

    from quire.cli.terminal import yes_or_no
    from quire.library.lock_check import load_lock, lock_path, save_lock
    from quire.runs.connections import ask_servers
    from quire.workspace.configuration import settings_here

    settings = settings_here()
    reading = load_lock(lock_path(settings.workspace))
    servers = {name.partition("/")[0] for name in changed.tools}
    listed = asyncio.run(ask_servers(settings, sorted(servers)))
    pins = {name: listed.pins[name] for name in changed.tools if name in listed.pins}
    if reading is None or reading.lock is None or not pins:
        return False
    tell(visible(str(changed)))
    for name in sorted(listed.specs):
        if name in pins:
            tell(f"  {visible(name)} says now: {visible(cut(listed.specs[name].description, _LONGEST_TOLD))}")
    if not yes_or_no("Lock it as it is now, and continue? yes or no [no]: "):
        return False
    save_lock(lock_path(settings.workspace), replace(reading.lock, tools={**reading.lock.tools, **pins}))
    return True
