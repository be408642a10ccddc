"""Line editor for answers and inputs typed at a terminal: editing keys, history, pasted texts, `$EDITOR`.

The event loop keeps running while `edit` is awaited. prompt_toolkit is imported by the first prompt, because importing
it takes longer than most verbs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import InMemoryHistory
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.output import Output

ANSWER_KEYS = "Alt-Enter: new line · Ctrl-X Ctrl-E: editor"
OPTION_KEYS = "↑ ↓ choose"
_TO_EDITOR = object()
"""Result of a prompt whose text is to be edited in `$EDITOR`."""


class Field(Struct, frozen=True):
    """The text to ask for, and how it is typed."""

    prompt: str
    options: tuple[str, ...] = ()
    """Values that the up and down keys put into the line."""
    paragraphs: bool = False
    """If True, Enter begins a new line; a line with only a dot, or Ctrl-D, ends the text."""
    keep_typed: bool = False
    """If True, keys typed before the prompt appeared count."""


def usable() -> bool:
    """Return True if the terminal can move its cursor."""
    return os.environ.get("TERM", "") not in ("dumb", "unknown", "") or sys.platform == "win32"


async def edit(field: Field, left: asyncio.Event | None = None) -> str | None:
    """Return the typed text; None on Ctrl-D in an empty line, or if `left` is set first. Ctrl-C raises SIGINT."""
    text = ""
    while True:
        typed = await _prompt(field, text, left)
        if not isinstance(typed, tuple):
            return typed
        edited = await _in_editor(typed[0], left)
        if left is not None and left.is_set():
            return None
        text = typed[0] if edited is None else edited


async def _prompt(field: Field, text: str, left: asyncio.Event | None) -> str | tuple[str] | None:
    """Show the prompt once and return the text; a tuple with the text if the user wants to continue in the editor."""
    session = _session(field)
    session.default_buffer.reset()
    session.default_buffer.insert_text(text)
    task = asyncio.ensure_future(session.app.run_async(set_exception_handler=False, handle_sigint=False))
    try:
        await done_or_left(task, left)
    finally:
        if not task.done():
            # End the prompt instead of cancelling it, so that it restores the terminal.
            if session.app.is_running:
                session.app.exit(exception=EOFError)
            else:
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError, EOFError):
                await task
    try:
        result: object = task.result()
    except (EOFError, asyncio.CancelledError):
        return None
    if result is _TO_EDITOR:
        return (session.default_buffer.text,)
    if not isinstance(result, str):
        return None
    # Bytes that are not UTF-8 come as surrogates.
    return result.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


async def done_or_left(future: asyncio.Future[Any], left: asyncio.Event | None) -> None:
    """Wait until a future is done or `left` is set."""
    leaving: list[asyncio.Future[Any]] = [] if left is None else [asyncio.ensure_future(left.wait())]
    try:
        await asyncio.wait([future, *leaving], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in leaving:
            task.cancel()


def _session(field: Field) -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.application import get_app
    from prompt_toolkit.input import create_input
    from prompt_toolkit.input.typeahead import clear_typeahead

    keyboard = create_input(sys.stdin)
    if not field.keep_typed:
        clear_typeahead(keyboard)
    keys = OPTION_KEYS if field.options else "" if field.paragraphs else ANSWER_KEYS
    return PromptSession(
        field.prompt,
        multiline=True,
        key_bindings=_bindings(field),
        history=None if field.options or field.paragraphs else _history(),
        placeholder=lambda: [] if get_app().is_done else [("fg:ansibrightblack", keys)],
        prompt_continuation="",
        reserve_space_for_menu=0,
        enable_suspend=True,
        input=keyboard,
        output=_output(),
    )


def _output() -> Output:
    from prompt_toolkit.output import create_output

    output = create_output(sys.stderr)
    if hasattr(output, "enable_cpr"):
        # A terminal that does not report its cursor position would get a warning, and the position is not needed.
        output.enable_cpr = False
    return output


_HISTORY: list[InMemoryHistory] = []


def _history() -> InMemoryHistory:
    """Return the history of answers in this process. It is not written to disk, because users also type passwords."""
    from prompt_toolkit.history import InMemoryHistory

    if not _HISTORY:
        _HISTORY.append(InMemoryHistory())
    return _HISTORY[0]


def _bindings(field: Field) -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings

    bindings = KeyBindings()

    @bindings.add("c-c")
    def _(event: KeyPressEvent) -> None:
        signal.raise_signal(signal.SIGINT)

    @bindings.add("c-d")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if not buffer.text:
            event.app.exit(exception=EOFError)
        elif field.paragraphs:
            buffer.validate_and_handle()
        else:
            buffer.delete()

    @bindings.add("c-x", "c-e")
    def _(event: KeyPressEvent) -> None:
        event.app.exit(result=_TO_EDITOR)

    @bindings.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if field.paragraphs:
            before, newline, last = buffer.text.rpartition("\n")
            if last.strip() != "." or not buffer.document.is_cursor_at_the_end:
                buffer.newline(copy_margin=False)
                return
            buffer.text = before if newline else ""
        buffer.validate_and_handle()

    if field.options:
        _bind_options(bindings, field.options)
    return bindings


def _bind_options(bindings: KeyBindings, options: tuple[str, ...]) -> None:
    def step(event: KeyPressEvent, by: int) -> None:
        from prompt_toolkit.document import Document

        buffer = event.current_buffer
        at = options.index(buffer.text) + by if buffer.text in options else (0 if by > 0 else -1)
        buffer.document = Document(options[at % len(options)])

    for key in ("down", "tab", "c-n"):
        bindings.add(key)(lambda event: step(event, 1))
    for key in ("up", "s-tab", "c-p"):
        bindings.add(key)(lambda event: step(event, -1))


async def _in_editor(text: str, left: asyncio.Event | None) -> str | None:
    """Return the text as the user's editor left it; None if there is no editor, or if it failed."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with _file_of(text) as file:
        try:
            if await _edited(shlex.split(command), file, left):
                return file.read_text("utf-8", "replace").removesuffix("\n")
            problem = "failed"
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            problem = f"cannot be started: {reason}"
    if left is None or not left.is_set():
        click.echo(f"the editor {command} {problem}: set $EDITOR to another one", err=True)
    return None


@contextlib.contextmanager
def _file_of(text: str) -> Iterator[Path]:
    """Create a temporary file with the text that only the user can read."""
    handle, name = tempfile.mkstemp(suffix=".md", prefix="quire-")
    os.close(handle)
    file = Path(name)
    try:
        file.write_text(text, "utf-8", "replace", newline="")
        yield file
    finally:
        file.unlink(missing_ok=True)


async def _edited(command: list[str], file: Path, left: asyncio.Event | None) -> bool:
    """Run the editor on the terminal and return True if it succeeded. It is ended if the question is withdrawn
    meanwhile."""
    process = await asyncio.create_subprocess_exec(*command, str(file), stdout=sys.stderr.fileno())
    waits = asyncio.ensure_future(process.wait())
    try:
        await done_or_left(waits, left)
    finally:
        if not waits.done():
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await waits
    return process.returncode == 0
