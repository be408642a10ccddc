"""What the verbs that only look have in common: a workspace opened for a moment, and texts put out exactly.

stdout belongs to the result of a run and, with `--json`, to its events: what else is written there is talk.

A Python tool prints, a module of tools does while it is loaded, a program that a tool starts inherits the stream. Tools
run side by side and in threads, so nothing is set for one call: as long as a run is driven, all of it goes to stderr.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import TYPE_CHECKING, TextIO, TypeVar

import click

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime
    from quire.runs.stored import StoredRuns
    from quire.values import Value


T = TypeVar("T")


def look(work: Callable[[Runtime], Coroutine[object, object, T]]) -> T:
    """Does something with the runtime of the workspace around the current folder, then closes it."""
    import asyncio

    from quire.runs.runtime import Runtime

    async def opened() -> T:
        runtime = Runtime.open()
        try:
            return await work(runtime)
        finally:
            await runtime.close()

    return asyncio.run(opened())


def look_at_runs(work: Callable[[StoredRuns], Coroutine[object, object, T]]) -> T:
    """Do something with the stored runs of the workspace, then close them.

    Reading a file never waits: then no event loop is needed, whose import takes longer than most reads."""
    from quire.runs.stored import StoredRuns
    from quire.stores import is_server

    runs = StoredRuns.around()

    async def opened() -> T:
        try:
            return await work(runs)
        finally:
            await runs.close()

    if is_server(runs.settings.store_url or ""):
        import asyncio

        return asyncio.run(opened())
    return _without_loop(opened())


def _without_loop(work: Coroutine[object, object, T]) -> T:
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("reading a file waited for something")


def put_lines(lines: Iterable[str]) -> None:
    """Finished lines on stdout, made harmless by whoever made them; colour only where somebody sees it and wants it."""
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    for line in lines:
        click.echo(line, color=False if plain else None)


def put(text: str) -> None:
    """Text of others on stdout: to the byte for a file or a pipe, harmless for a terminal. Ends with a newline."""
    from quire.values import clean

    text = clean(text)
    if sys.stdout.isatty():
        from quire.display.text import visible

        text = visible(text)
    else:
        as_utf8(sys.stdout)
    # click would take escape sequences out of what goes to a file.
    click.echo(text, nl=not text.endswith("\n"), color=True)


def as_utf8(stream: TextIO) -> None:
    """Lets a file or a pipe get texts of others as they are, whatever encoding the locale has."""
    with contextlib.suppress(AttributeError):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[attr-defined]


def put_json(value: Value) -> None:
    from quire.display.visible import escaped

    put(escaped(json.dumps(value, indent=2, ensure_ascii=False)))


STDOUT, STDERR = 1, 2


@contextlib.contextmanager
def stdout_aside() -> Iterator[TextIO]:
    """Gives the stream that is stdout for us meanwhile; it can be written to afterwards as well."""
    mine = sys.stdout
    if not _is_the_real_one(mine):
        with contextlib.redirect_stdout(sys.stderr):
            yield mine
        return
    mine.flush()
    kept = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield os.fdopen(os.dup(kept), "w", encoding="utf-8", errors="backslashreplace", newline="\n")
    finally:
        with contextlib.suppress(OSError, ValueError):
            # Of those who held on to the stream itself: it must not come after what is ours.
            mine.flush()
        os.dup2(kept, STDOUT)
        os.close(kept)


def _is_the_real_one(stream: TextIO) -> bool:
    try:
        return stream.fileno() == STDOUT
    except (OSError, ValueError):
        return False
