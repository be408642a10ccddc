"""What the verbs that only look have in common: a workspace opened for a moment, and texts put out exactly."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, TextIO, TypeVar

import click

if TYPE_CHECKING:
    from quire.runtime import Runtime
    from quire.values import Value

T = TypeVar("T")


def look(work: Callable[[Runtime], Coroutine[object, object, T]]) -> T:
    """Does something with the runtime of the workspace around the current folder, then closes it."""
    import asyncio

    from quire.runtime import Runtime

    async def opened() -> T:
        runtime = Runtime.open()
        try:
            return await work(runtime)
        finally:
            await runtime.close()

    return asyncio.run(opened())


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
        from quire.render.text import visible

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
    from quire.render.visible import escaped

    put(escaped(json.dumps(value, indent=2, ensure_ascii=False)))
