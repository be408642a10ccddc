"""Running one command: a text by `/bin/sh -c`, a list as it is. Its output is JSON where it can be, else text."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quire.errors import Denied, ToolFailed
from quire.tools.builtin.protected import Protection, put_aside
from quire.tools.sandbox import Watch, sandboxed, scrubbed
from quire.tools.threads import in_thread
from quire.values import InvalidValue, Value, decode, encode

if TYPE_CHECKING:
    import asyncio

MAX_OUTPUT = 1_000_000
SECONDS = 60.0
_TAIL = 2000
_KEPT = 65_536
"""More than the end that is shown: secrets are taken out before the cut."""

_GRACE = 1.0


@dataclass(frozen=True, slots=True)
class Shell:
    """`sandbox` false is the user's own word. `private` are folders that a command must not see."""

    workspace: Path
    protection: Protection
    environ: Mapping[str, str]
    private: Sequence[Path] = ()
    network: bool = False
    sandbox: bool = True
    seconds: float = SECONDS
    redact: Callable[[str], str] = lambda text: text
    """Takes secrets out of what a command wrote, before that is cut."""

    async def run(self, arguments: Mapping[str, Value], folder: str = "") -> Value:
        """`folder` is one of the workspace to run in. Raises `ToolFailed` or `Denied`."""
        line, given = _line(arguments["command"]), _stdin(arguments.get("stdin"))
        if folder:
            # From inside of the sandbox: a folder that somebody swaps for a link leads nowhere else.
            line = ["/bin/sh", "-c", 'cd -- "$1" && shift && exec "$@"', "sh", f"./{folder}", *line]
        seconds = float(arguments.get("timeout", self.seconds))  # type: ignore[arg-type]  # the schema says integer
        if not self.sandbox:
            return await self._output(line, given, seconds)
        root = self.workspace.resolve()
        before = self.protection.at_the_top(root)
        command = await in_thread(lambda: self._sandboxed(line, root))
        try:
            with Watch() as watch:
                value = await self._output(watch.told(command), given, seconds, watch)
        except BaseException:
            self._put_aside(root, before)
            raise
        if moved := self._put_aside(root, before):
            raise Denied(
                f"permission denied: the command made what no tool may make; it was put aside as {', '.join(moved)}"
            )
        return value

    def _sandboxed(self, line: Sequence[str], root: Path) -> list[str]:
        return sandboxed(
            line,
            root,
            read_only=sorted(self.protection.read_only(root)),
            hidden=[folder for folder in self.private if folder.is_dir()],
            network=self.network,
        )

    def _put_aside(self, root: Path, before: Mapping[str, object]) -> list[str]:
        """What was there is bound read-only; what was not can only be found afterwards, right in the workspace."""
        now = self.protection.at_the_top(root)
        return put_aside(root, (name for name, what in now.items() if before.get(name) != what))

    async def _output(self, command: Sequence[str], given: bytes, seconds: float, watch: Watch | None = None) -> Value:
        import asyncio

        home = "/tmp" if self.sandbox else str(self.workspace)  # noqa: S108
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self.workspace,
                env=scrubbed(self.environ, home),
                start_new_session=True,
                pass_fds=watch.passed if watch else (),
            )
        )
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # It may run already, and asyncio would end the command alone, not what that has started.
            with suppress(OSError, ValueError):
                await _end(await starting, watch)
            raise
        except (OSError, ValueError) as error:
            raise ToolFailed(f"the command cannot be started: {error}", kind="exit") from None
        try:
            async with asyncio.timeout(seconds):
                output, errors = await _talk(process, given)
        except TimeoutError:
            raise ToolFailed(f"the command took longer than {seconds:g} s and was ended", kind="timeout") from None
        finally:
            await _end(process, watch)
        if process.returncode:
            raise ToolFailed(_ended(process.returncode, self.redact(_text(errors or output))), kind="exit")
        return _value(output)


def _line(command: Value) -> list[str]:
    return ["/bin/sh", "-c", command] if isinstance(command, str) else [str(part) for part in command]  # type: ignore[union-attr]


def _stdin(given: Value) -> bytes:
    """A text as it is; anything else as JSON."""
    return b"" if given is None else (given if isinstance(given, str) else encode(given)).encode()


async def _talk(process: asyncio.subprocess.Process, given: bytes) -> tuple[bytes, bytes]:
    """All that it writes, and the end of what it complains about.

    Is over when the command is: what it left running in the background is ended, and if that holds the pipes
    open all the same, it is not waited for.
    """
    import asyncio

    assert process.stdin and process.stdout and process.stderr  # noqa: S101  # they are pipes, see above
    output, errors = bytearray(), bytearray()

    async def feed(pipe: asyncio.StreamWriter) -> None:
        try:
            pipe.write(given)
            await pipe.drain()
        except (BrokenPipeError, ConnectionResetError):
            return  # It need not read what it is given.
        finally:
            pipe.close()

    async def listen(pipe: asyncio.StreamReader) -> None:
        while piece := await pipe.read(65_536):
            output.extend(piece)
            if len(output) > MAX_OUTPUT:
                raise ToolFailed(f"the command wrote more than {MAX_OUTPUT:,} bytes and was ended", kind="too_large")

    async def complaints(pipe: asyncio.StreamReader) -> None:
        while piece := await pipe.read(65_536):
            errors.extend(piece)
            del errors[:-_KEPT]

    async def end() -> None:
        await _exited(process)
        _kill(process.pid)

    async def both(out: asyncio.StreamReader, err: asyncio.StreamReader) -> None:
        await asyncio.gather(listen(out), complaints(err))

    listening = asyncio.create_task(both(process.stdout, process.stderr))
    ending, feeding = asyncio.create_task(end()), asyncio.create_task(feed(process.stdin))
    try:
        await asyncio.wait({listening, ending}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({listening}, timeout=_GRACE)
        if listening.done():
            listening.result()
        await ending
        return bytes(output), bytes(errors)
    finally:
        for task in (listening, ending, feeding):
            task.cancel()
        await asyncio.gather(listening, ending, feeding, return_exceptions=True)


async def _exited(process: asyncio.subprocess.Process) -> None:
    """Not `wait()`: on some releases it also waits for the pipes, which something in the background may hold."""
    import asyncio

    pause = 0.001
    while process.returncode is None:
        await asyncio.sleep(pause)
        pause = min(pause * 2, 0.05)


async def _end(process: asyncio.subprocess.Process, watch: Watch | None) -> None:
    """The whole group, whatever came before: nothing of a command outlives its call."""
    _kill(process.pid)
    await _exited(process)
    if watch is not None:
        await watch.emptied()
    # Closes our ends of the pipes, whoever holds the others.
    process._transport.close()  # type: ignore[attr-defined]


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _text(said: bytes) -> str:
    return said[-_KEPT:].decode("utf-8", "replace")


def _ended(status: int, said: str) -> str:
    how = f"ended with status {status}" if status > 0 else f"was killed by signal {-status}"
    words = said[-_TAIL:].strip()
    return f"the command {how}" + (f":\n{words}" if words else "")


def _value(output: bytes) -> Value:
    text = output.decode("utf-8", "replace")
    try:
        return decode(text)
    except InvalidValue:
        return text.removesuffix("\n")
