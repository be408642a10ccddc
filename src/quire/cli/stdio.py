"""Standard output of the verbs: open a workspace for one look, print texts exactly, and keep stdout for results.

While a run is driven, stdout is reserved for its result or, with `--json`, its events. Everything else written there
is redirected to stderr at the file-descriptor level: prints of Python tools and of their modules during import, and
the output of programs that inherit the stream. Tools run concurrently and in threads, so the redirection lasts for the
whole drive instead of one call.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from quire.errors import CannotStart

if TYPE_CHECKING:
    from quire.operations.field_types import Given, Work
    from quire.runs.runtime import Runtime
    from quire.runs.stored import StoredRuns
    from quire.values import Value


T = TypeVar("T")


def with_runtime(work: Callable[[Runtime], Coroutine[object, object, T]], runtime: Runtime | None = None) -> T:
    """Open the runtime of the workspace around the current folder, do some work with it, and close it. A `runtime`
    that was opened before is used instead."""
    import asyncio

    from quire.runs.runtime import Runtime

    opened = runtime or Runtime.open()

    async def whole() -> T:
        try:
            return await work(opened)
        finally:
            await opened.close()

    return asyncio.run(whole())


def perform(work: Work[Given], given: Mapping[str, Value]) -> Any:
    """Perform an operation on the workspace, and return its answer. Raises `CannotStart` for values that do not fit."""
    from quire.operations.host import Caller, Host
    from quire.operations.problems import Problem

    async def performed(runtime: Runtime) -> Any:
        return await work.run(Host(runtime, Caller(edits=True)), work.read(given))

    try:
        return with_runtime(performed)
    except Problem as error:
        raise CannotStart(error.detail) from None


def look_at_runs(work: Callable[[StoredRuns], Coroutine[object, object, T]]) -> T:
    """Read something of the stored runs of the workspace, then close them."""
    from quire.runs.stored import StoredRuns, finish_reading, store_place

    runs = StoredRuns.around()

    async def opened() -> T:
        try:
            return await work(runs)
        finally:
            await runs.close()

    return finish_reading(opened(), store_place(runs.settings))


def wants_colour(stream: TextIO) -> bool:
    """Tell whether a stream is a terminal whose user has not asked for plain text."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def columns() -> int | None:
    """Return the width of a table; None, which means no limit, for a file or a pipe."""
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def write_lines(lines: Iterable[str]) -> None:
    """Print finished lines to stdout. The caller has already made them safe for a terminal. Colours appear only on a
    terminal, unless `NO_COLOR` is set."""
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    for line in lines:
        click.echo(line, color=False if plain else None)


def complain(problem: str) -> None:
    """Print a problem on stderr, safe for a terminal."""
    from quire.display.visible import visible

    tell(f"quire: {visible(problem)}")


def tell(message: str, stream: TextIO | None = None) -> None:
    """Print a message, which is safe for a terminal already, on stderr or another stream. A terminal gets lines that
    fit it."""
    stream = stream or sys.stderr
    if stream.isatty():
        from quire.display.text import folded, terminal_columns

        message = folded(message, terminal_columns(stream))
    click.echo(message, file=stream)


def write_text(text: str) -> None:
    """Print foreign text to stdout, without lone surrogates. Ends with a newline."""
    from quire.values import clean

    text = clean(text)
    write_exactly(text if text.endswith("\n") else f"{text}\n")


def write_exactly(text: str) -> None:
    """Print a text to stdout as it is; a terminal gets its control characters made visible."""
    if sys.stdout.isatty():
        from quire.display.text import visible

        text = visible(text)
    else:
        as_utf8(sys.stdout)
    # Without `color=True` click would remove escape sequences from the output to a file.
    click.echo(text, nl=False, color=True)


def as_utf8(stream: TextIO) -> None:
    """Switch a stream to UTF-8, so that a file or a pipe gets foreign texts unchanged in any locale."""
    with contextlib.suppress(AttributeError):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[attr-defined]


def write_json(value: Value) -> None:
    import json

    from quire.display.visible import escaped

    write_text(escaped(json.dumps(value, indent=2, ensure_ascii=False)))


STDOUT, STDERR = 1, 2


@contextlib.contextmanager
def stdout_aside() -> Iterator[TextIO]:
    """Redirect stdout to stderr and yield a stream for the real stdout. The stream can also be written to
    afterwards."""
    mine = sys.stdout
    if not _is_the_real_one(mine):
        with contextlib.redirect_stdout(sys.stderr):
            yield mine
        return
    mine.flush()
    real = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield os.fdopen(os.dup(real), "w", encoding="utf-8", errors="backslashreplace", newline="\n")
    finally:
        with contextlib.suppress(OSError, ValueError):
            # Text written through a kept reference to the stream must not appear after our own output.
            mine.flush()
        os.dup2(real, STDOUT)
        os.close(real)


def _is_the_real_one(stream: TextIO) -> bool:
    try:
        return stream.fileno() == STDOUT
    except (OSError, ValueError):
        return False
